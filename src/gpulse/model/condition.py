"""Conditions: everything that can be said of a GPU, a job, a link or the machine, once each, with how bad it is.

Events, alerts and verdicts refer to these entries: an event says that a condition began or ended, a verdict that it limits the work,
an alert that somebody is to be told. `critical` is what stops a GPU or a job, or has the hardware protect itself, and does not mend by
itself; `warn` what costs speed or ends one program; `info` what is good to know.

The error codes of NVIDIA's driver, XIDs, are a table of their own below.
"""

from __future__ import annotations

from ..value import Value
from .catalog import PCIE_LINK

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence
    from typing import Literal, TypeAlias

    Severity: TypeAlias = Literal["critical", "warn", "info", "good"]
    Affected: TypeAlias = Literal["program", "gpu", "link", "notice"]

SEVERITIES: tuple[Severity, ...] = ("critical", "warn", "info", "good")  # the worst first
_WORST: dict[str, int] = {severity: place for place, severity in enumerate(SEVERITIES)}
VERDICT = "verdict"  # the kind of events about conditions that only verdicts find


class Condition(Value):
    """One thing that can be the case.

    `key` is its name, `title` a few words for lists and columns, `narrow` the same in nine characters; `level` is how bad it is, or
    tells it by a code. `kind` is what its events are called in JSON and histories, by default as the key with dashes, `alert` the
    alert rule that reports it. One that is `lasting` has an end. `needs` are the metrics without which it cannot be found.
    """

    key: str
    title: str
    level: Severity | Callable[[float | None], Severity]
    narrow: str = ""
    kind: str = ""
    alert: str = ""
    lasting: bool = False
    needs: Sequence[str] = ()

    def __post_init__(self) -> None:
        self.narrow = self.narrow or self.title
        self.kind = self.kind or self.key.replace("_", "-")

    def severity(self, code: float | None = None) -> Severity:
        """Return how bad it is; what makes the difference is the code of an XID."""
        return self.level if isinstance(self.level, str) else self.level(code)

    @property
    def names(self) -> tuple[str, ...]:
        """Every word that means it: its key, the kind of its events and its alert rule."""
        kind = () if self.kind == VERDICT else (self.kind,)
        return tuple(dict.fromkeys((self.key, *kind, *((self.alert,) if self.alert else ()))))


def _xid(code: float | None) -> Severity:
    return "critical" if code is None else xid_of(code).severity


def _found(key: str, title: str, severity: Severity, narrow: str = "") -> Condition:
    """Return a condition that only the diagnosis finds, over a window of time."""
    return Condition(key, title, severity, narrow, kind=VERDICT, alert="diagnosis", lasting=True)


_HELD = ("memory_used", "memory_total")
_ERRORS = ("pcie_replays", "nvlink_crc_errors", "nvlink_replay_errors", "nvlink_recovery_errors")
_FABRIC = ("fabric_state", "fabric_status", "fabric_health")
_PORTS = ("port_names", "port_states", "port_downs")
_PEERS = ("name", "utilization", "clock_memory", "pcie_width", "pcie_width_max")
_SLOW = ("throttle_reasons",)
_STATE = ("state",)
_HOLDERS = ("processes", "memory_used")
_USERS = ("processes", "utilization")

# In the order in which they are listed where they are equally bad.
_CONDITIONS = (
    Condition("lost", "lost", "critical", alert="lost", lasting=True, needs=_STATE),
    Condition("driver_unresponsive", "not responding", "critical", "no answer", kind="timeout", alert="lost", lasting=True, needs=_STATE),
    Condition("xid", "XID error", _xid, "XID", alert="xid", needs=("xid_last",)),
    Condition("memory_errors", "memory errors", "critical", "ECC error", alert="ecc", needs=("ecc_uncorrected",)),
    Condition("nvlink_down", "NVLinks down", "critical", alert="nvlink_down", lasting=True, needs=("nvlink_links",)),
    Condition("fabric_not_ready", "NVLink fabric not ready", "critical", alert="fabric_not_ready", lasting=True, needs=_FABRIC),
    Condition("hang", "job hangs", "critical", kind=VERDICT, alert="diagnosis", lasting=True),
    Condition("serving_stuck", "model server stuck", "critical", "stuck", alert="serving_stuck", lasting=True),
    Condition("hw_slowdown", "hardware slowdown", "critical", "slowdown", kind="throttled", alert="throttled", lasting=True, needs=_SLOW),
    Condition("out_of_memory", "out of memory", "warn", "OOM", alert="job_finished", needs=_HOLDERS),
    Condition("thermal_throttled", "too hot", "critical", kind="throttled", alert="throttled", lasting=True, needs=_SLOW),
    Condition("power_throttled", "power-throttled", "warn", "power cap", kind="throttled", alert="diagnosis", lasting=True, needs=_SLOW),
    Condition("hot", "near temperature limit", "warn", alert="hot", lasting=True, needs=("temperature",)),
    Condition("pcie_degraded", "PCIe link degraded", "warn", "slow PCIe", alert="pcie_degraded", lasting=True, needs=PCIE_LINK),
    Condition("link_errors", "link errors", "warn", alert="link_errors", needs=_ERRORS),
    Condition("port_flaps", "network port flaps", "warn", alert="port_flaps", lasting=True, needs=_PORTS),
    Condition("slower_than_peers", "slower than similar GPUs", "warn", alert="slower_than_peers", lasting=True, needs=_PEERS),
    Condition("memory_pressure", "memory nearly full", "warn", "mem full", "memory-nearly-full", alert="memory", lasting=True, needs=_HELD),
    Condition("memory_leak", "memory leak", "warn", "mem leak", kind="memory-growth", alert="leak", lasting=True, needs=_HOLDERS),
    Condition("idle_allocation", "memory held, idle", "warn", "held idle", alert="idle_allocation", lasting=True, needs=_USERS),
    Condition("allocation_unused", "allocated, not used", "warn", alert="allocation_unused", lasting=True, needs=("processes", "job")),
    Condition("stalled", "GPU no longer used", "warn", alert="stalled", lasting=True, needs=_USERS),
    Condition("threshold", "beyond its threshold", "warn", lasting=True),
    Condition("serving_queue_long", "requests wait", "warn", alert="serving_queue", lasting=True),
    Condition("serving_slow", "first token late", "warn", alert="serving_first_token", lasting=True),
    Condition("serving_errors", "requests fail", "warn", alert="serving_errors", lasting=True),
    _found("contention", "shared by several jobs", "warn", "shared"),
    _found("orphaned_memory", "memory without owner", "warn", "no owner"),
    _found("clocks_locked", "clocks locked low", "warn", "low clock"),
    _found("straggler", "slower than its peers", "warn", "straggler"),
    _found("serving_cache_full", "KV cache full", "warn", "KV full"),
    _found("serving_preemptions", "requests preempted", "warn", "preempts"),
    _found("serving_queue", "queue, idle SMs", "warn", "queue"),
    _found("communication_bound", "waiting for other GPUs", "warn", "peer wait"),
    _found("stalls", "interrupted", "warn", "stalls"),
    _found("transfer_bound", "waiting for copies", "warn", "copy wait"),
    _found("input_bound_cpu", "waiting for CPUs", "warn", "CPU wait"),
    _found("input_bound_io", "waiting for storage", "warn", "disk wait"),
    _found("host_bound", "waiting for one thread", "warn", "1 thread"),
    _found("launch_bound", "launch-bound", "warn", "launches"),
    _found("not_used", "GPU not used", "warn", "not used"),
    _found("serving_prefill", "busy with prompts", "info", "prefill"),
    _found("serving_decode", "decode, bandwidth", "info", "decode"),
    _found("memory_bandwidth", "memory bandwidth", "info", "bandwidth"),
    _found("fp32_no_tensor", "FP32, no tensor cores", "warn", "no tensor"),
    _found("memory_latency", "memory latency", "info", "latency"),
    _found("small_batch", "batch too small", "warn", "low batch"),
    _found("waiting", "waiting, outside", "warn", "waiting"),
    _found("underused", "underused", "info"),
    _found("serving_idle", "serving, no traffic", "info", "no calls"),
    _found("starting", "starting", "info"),
    _found("loading", "loading", "info"),
    _found("idle", "idle", "info"),
    _found("busy", "busy", "info"),
    _found("unknown", "unknown", "info"),
    _found("healthy", "healthy", "good"),
    Condition("gap", "no samples", "warn"),
    Condition("dropped", "samples lost", "warn"),
    Condition("history_damaged", "history damaged", "warn"),
    Condition("removed", "GPU disappeared", "critical", alert="lost"),
    Condition("added", "GPU appeared", "good"),
    Condition("back", "GPU responds again", "good"),
    Condition("gpu_free", "GPU free", "info", alert="gpu_free", needs=_HELD),
    Condition("instance_removed", "MIG instance removed", "info"),
    Condition("server_ended", "model server ended", "info"),
    Condition("asleep", "asleep", "info", needs=_STATE),
    Condition("process_end", "process end", "info", alert="job_finished", needs=("processes",)),
    Condition("process_start", "process start", "info", needs=("processes",)),
    Condition("verdict", "new verdict", "info"),
    Condition("suspend", "machine suspended", "info"),
    Condition("clock", "system clock set", "info"),
    Condition("alert_silenced", "alerts silenced", "info"),
    Condition("alert_unsilenced", "silence ended", "info"),
    Condition("alert_acknowledged", "alert acknowledged", "info"),
    Condition("boot", "machine booted", "info"),
    Condition("start", "recording started", "info"),
    Condition("stop", "recording stopped", "info"),
)  # fmt: skip
CONDITIONS = {one.key: one for one in _CONDITIONS}
KINDS = tuple(dict.fromkeys(one.kind for one in _CONDITIONS))  # of events
LASTING = tuple(dict.fromkeys(one.kind for one in _CONDITIONS if one.lasting and one.kind != VERDICT))
_BY_KIND = {one.kind: one for one in reversed(_CONDITIONS)} | {VERDICT: CONDITIONS[VERDICT]}
_PLACES = {kind: place for place, kind in enumerate(KINDS)}
HEAT = frozenset({"sw_thermal_slowdown", "hw_thermal_slowdown"})  # throttle reasons that tell of heat
POWER_BRAKE = "hw_power_brake_slowdown"
BRAKES = frozenset({"hw_slowdown", POWER_BRAKE})  # those that tell of a fault; with heat the first is set as well


def named(name: str) -> tuple[Condition, ...]:
    """Return the conditions that a word means, by key, kind of event or alert rule; several for one like `lost`."""
    return tuple(one for one in _CONDITIONS if name in one.names)


def of_event(kind: str, reasons: Iterable[str] = ()) -> Condition | None:
    """Return the condition that an event is about; `reasons` tell kinds of throttling apart. None for an unknown kind."""
    if kind == "throttled":
        return CONDITIONS[_throttling(frozenset(reasons))]
    return _BY_KIND.get(kind)


def of_verdict(key: str) -> Condition | None:
    """Return the condition that a verdict is about; None for an unknown key."""
    return CONDITIONS.get(key)


def rank(severity: str, kind: str) -> tuple[int, int]:
    """Return the place of an event among those of one moment: the worst first, then in the order of the conditions."""
    return _WORST.get(severity, len(_WORST)), _PLACES.get(kind, len(_PLACES))


def _throttling(reasons: frozenset[str]) -> str:
    if POWER_BRAKE in reasons or (reasons & BRAKES and not reasons & HEAT):
        return "hw_slowdown"
    return "power_throttled" if reasons and not reasons & HEAT else "thermal_throttled"


_SEVERITY: dict[Affected, Severity] = {"program": "warn", "gpu": "critical", "link": "critical", "notice": "info"}


class Xid(Value):
    """One code. `affects` is what it ends or damages: a program only, the GPU, a link, or nothing (a notice of the driver)."""

    affects: Affected
    meaning: str = ""
    remedy: str = ""

    @property
    def severity(self) -> Severity:
        """How bad it is: a code that ends one program leaves the GPU as good as before."""
        return _SEVERITY[self.affects]


_UNKNOWN = Xid("gpu")  # to be taken seriously until somebody has looked it up
_RESTART = "restart the program; usually a bug in it"
_NVLINK = "follow NVIDIA's NVLink workflow"
# After NVIDIA's XID catalog.
XIDS = {
    13: Xid("program", "graphics engine exception", _RESTART),
    31: Xid("program", "memory page fault", _RESTART),
    43: Xid("program", "the program was stopped", "nothing to do for the GPU"),
    45: Xid("program", "the program was terminated", "nothing to do for the GPU"),
    48: Xid("gpu", "uncorrectable memory error", "drain the node and reset the GPU"),
    62: Xid("gpu", "internal microcontroller halt", "reset the GPU"),
    63: Xid("notice", "a memory row was remapped", "nothing to do now; it takes effect at the next reset"),
    64: Xid("gpu", "row remapping failed", "reset the GPU; replace it if this comes back"),
    74: Xid("link", "NVLink error", "check the NVLink bridge and reset the GPU"),
    79: Xid("gpu", "GPU has fallen off the bus", "restart the machine; check power and slot if this comes back"),
    92: Xid("notice", "many corrected memory errors", "nothing to do now; watch the GPU"),
    94: Xid("program", "contained memory error", "restart the program"),
    95: Xid("gpu", "uncontained memory error", "reset the GPU"),
    109: Xid("gpu", "context switch timeout", "reset the GPU"),
    119: Xid("gpu", "GSP firmware timeout", "reset the GPU"),
    120: Xid("gpu", "GSP firmware error", "reset the GPU"),
    140: Xid("gpu", "unrecovered memory error", "reset the GPU"),
    143: Xid("gpu", "GPU initialization error", "reset the GPU"),
    145: Xid("link", "NVLink error", _NVLINK),
    149: Xid("link", "NVLink error", _NVLINK),
}


def xid_of(code: float) -> Xid:
    """Return what is known of a code; of one that is not in the table only that the GPU is suspected."""
    return XIDS.get(int(code), _UNKNOWN)
