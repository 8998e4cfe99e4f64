"""The sentence of each verdict."""

from __future__ import annotations

from ..units import duration_text, size_text
from .figures import figure_text
from .text import clean
from .xid import xid_remedy, xid_text

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from ..model.verdict import Holder, Verdict


def who(holder: Holder) -> str:
    """Return a process as events name it, with what it holds: "ada's python (pid 4242, 12.3 GiB)"."""
    owner = f"{clean(holder.user)}'s " if holder.user else ""
    facts = [f"pid {holder.pid}" if holder.pid is not None else "", clean(holder.job)]
    facts.append("" if holder.memory is None else size_text(holder.memory))
    told = ", ".join(fact for fact in facts if fact)
    return f"{owner}{clean(holder.name) or 'process'}{f' ({told})' if told else ''}"


def _first(verdict: Verdict, default: str = "the process") -> str:
    return who(verdict.processes[0]) if verdict.processes else default


def _number(verdict: Verdict, key: str) -> float | None:
    value = verdict.values.get(key)
    return value if isinstance(value, (int, float)) else None


def _figure(verdict: Verdict, metric: str) -> str:
    found = next((one for one in verdict.evidence if one.metric == metric), None)
    return "" if found is None else figure_text(metric, found.value)


def _healthy(verdict: Verdict) -> str:
    if verdict.values.get("guess"):
        return "Probably compute-bound and healthy: busy all the time and near its power limit (no GPM counters to confirm it)."
    pipe = "FP64 pipes" if _figure(verdict, "fp64_active") else "tensor cores"
    limit = "at its power limit, as it should be" if verdict.values.get("limit") == "power" else "as it should be"
    return f"Compute-bound and healthy: {pipe} busy {_figure(verdict, 'tensor_active') or _figure(verdict, 'fp64_active')}, {limit}."


def _bandwidth(verdict: Verdict) -> str:
    if verdict.values.get("guess"):
        return "Probably limited by memory bandwidth (judged by memory utilization; no GPM counters)."
    return f"Limited by memory bandwidth: DRAM busy {_figure(verdict, 'dram_active')}, while 80 to 90 % is the practical maximum."


def _launch(verdict: Verdict) -> str:
    if not _figure(verdict, "fill"):
        return "Probably launch-bound: one CPU thread is busy and the GPU is never idle for long (no GPM counters to confirm it)."
    return (
        f"Launch-bound: kernels are too small, so one CPU thread spends its time launching them and the "
        f"SMs are {_figure(verdict, 'sm_active')} active."
    )


def _single(verdict: Verdict) -> str:
    if not verdict.values.get("worked"):
        return f"The GPU waits: {_first(verdict)} keeps a CPU busy and has run nothing on the GPU in this window."
    return f"Input-bound: the GPU waits while {_first(verdict)} prepares data in its own thread."


def _cpus(verdict: Verdict) -> str:
    cores, workers = _number(verdict, "cores"), _number(verdict, "workers") or 0
    if verdict.values.get("kind") == "all_workers":
        return f"Input-bound: all {workers:.0f} loader workers are busy and the GPU waits for them."
    count = "" if cores is None else f" all {cores:.0f}"
    return f"Input-bound:{count} CPU cores are busy preparing data and cannot feed the GPU."


def _io(verdict: Verdict) -> str:
    rate = _number(verdict, "rate")
    speed = "" if not rate or rate < 1e6 else f" ({figure_text('read_rate', rate)})"
    place = "the network" if verdict.values.get("kind") == "network" else "storage"
    return f"Input-bound: the GPU waits while data is read from {place}{speed}."


def _transfer(verdict: Verdict) -> str:
    way = "host-to-device" if verdict.values.get("direction") == "h2d" else "device-to-host"
    memory = {"pageable": " from pageable memory" if way == "host-to-device" else " to pageable memory", "pinned": ""}
    rate = _number(verdict, "rate") or 0.0
    return (
        f"Transfer-bound: {way} copies{memory.get(str(verdict.values.get('memory')), '')} take the time "
        f"({figure_text('pcie_rx', rate)})."
    )


def _stalls(verdict: Verdict) -> str:
    period = _number(verdict, "period")
    cause = (
        "checkpoints (data is written meanwhile)"
        if verdict.values.get("kind") == "checkpoint"
        else "evaluation, logging or waits"
    )
    every = "" if period is None else f" about every {figure_text('period', period)}"
    return f"Interrupted{every}: pauses for {cause} take {_figure(verdict, 'gap_share')} of the time."


def _communication(verdict: Verdict) -> str:
    link = "NVLink" if verdict.values.get("kind") == "nvlink" else "PCIe"
    return f"Communication-bound: the GPUs of this job exchange data over {link} and compute little meanwhile."


def _straggler(verdict: Verdict) -> str:
    if verdict.values.get("kind") == "clock":
        return (
            f"Straggler: it runs at {_figure(verdict, 'clock_sm')} while the other GPUs of the job run "
            f"at {_figure(verdict, 'peer_clock')} and wait for it."
        )
    return "Straggler: it computes less than the other GPUs of the job, which wait for it inside a collective."


def _hang(verdict: Verdict) -> str:
    stuck = verdict.values.get("stuck")
    names = (
        ", ".join(f"{one:.0f}" for one in stuck if isinstance(one, (int, float))) if isinstance(stuck, tuple) else ""
    )
    hint = f"; GPU {names} does nothing and may be the cause" if names else ""
    return (
        f"The job hangs: its {_number(verdict, 'gpus') or 0:.0f} GPUs spin without computing or exchanging data{hint}."
    )


def _idle_allocation(verdict: Verdict) -> str:
    held = _number(verdict, "held")
    more = f" and {len(verdict.processes) - 1} more" if len(verdict.processes) > 1 else ""
    return f"Idle allocation: {_first(verdict)}{more} holds {size_text(held or 0)} and runs nothing."


def _underused(verdict: Verdict) -> str:
    if verdict.values.get("kind") == "server":
        return "Underused: a server that waits for requests; nothing is wrong but the size of the GPU."
    return f"Underused: kernels run {_figure(verdict, 'busy')} of the time and the program waits for something outside."


def _contention(verdict: Verdict) -> str:
    names = " and ".join(who(one) for one in verdict.processes[:3])
    if verdict.confidence == "low":
        return f"Probably shared: {names} are on this GPU at the same time."
    return f"Contention: {names} compute on this GPU at the same time and slow each other down."


def _power(verdict: Verdict) -> str:
    share = _figure(verdict, "power_capped_share")
    return f"Power-throttled: the limit of {_figure(verdict, 'power_limit')} holds the clocks down for {share} of the time."


def _thermal(verdict: Verdict) -> str:
    return (
        f"Thermally throttled for {_figure(verdict, 'throttled_share')} of the time: {_figure(verdict, 'temperature')}, "
        f"clocks at {_figure(verdict, 'clock_sm')}."
    )


def _pcie(verdict: Verdict) -> str:
    width = next((one for one in verdict.evidence if one.metric == "pcie_width"), None)
    gen = next((one for one in verdict.evidence if one.metric == "pcie_gen"), None)
    parts = [f"x{width.value:.0f} of x{width.threshold:.0f}"] if width and isinstance(width.value, (int, float)) else []
    parts += (
        [f"generation {gen.value:.0f} of {gen.threshold:.0f}"] if gen and isinstance(gen.value, (int, float)) else []
    )
    return f"The PCIe link is degraded under load: {', '.join(parts)}."


def _leak(verdict: Verdict) -> str:
    eta = verdict.values.get("eta")
    rate = _number(verdict, "rate") or 0.0
    when = ""
    if isinstance(eta, tuple) and len(eta) == 2:
        when = f", full in {duration_text(float(eta[0]))} to {duration_text(float(eta[1]))} at this rate"
    return f"Memory leak: {_first(verdict, 'memory in use')} grows by {size_text(rate * 60)} per minute{when}."


def _oom(verdict: Verdict) -> str:
    others = len(verdict.processes) - 1
    beside = "" if others < 1 else f"; {others} other process{'es' if others > 1 else ''} held memory too"
    sure = "Ran out of memory" if verdict.confidence == "high" else "Probably ran out of memory"
    return f"{sure}: {_first(verdict)} ended just after its memory had risen to {_figure(verdict, 'process_memory')}{beside}."


def _fault(verdict: Verdict) -> str:
    code = _number(verdict, "xid")
    if verdict.values.get("kind") == "lost":
        back = " and came back" if _number(verdict, "end_time") is not None else ""
        return f"Hardware fault: the GPU was lost for {_figure(verdict, 'state_lost')}{back}{'' if code is None else f' (XID {code:.0f})'}."
    if verdict.values.get("kind") == "ecc":
        return f"Hardware fault: {_figure(verdict, 'ecc_uncorrected')} memory errors that could not be corrected."
    return f"The driver reported {xid_text(code or 0.0)}{f': {xid_remedy(code)}' if code and xid_remedy(code) else ''}."


def _driver(verdict: Verdict) -> str:
    now = "does not answer" if verdict.values.get("kind") == "now" else "did not answer"
    return f"The driver {now} for this GPU ({_figure(verdict, 'state_timeout')})."


def _unknown(verdict: Verdict) -> str:
    reasons = {
        "short": "Unknown: too few samples to judge.",
        "blind": "Unknown: the GPU reports no activity.",
        "starting": "Unknown: a process holds the GPU and has not used it yet: starting up, or running on the CPU.",
        "no_counters": "Unknown: without GPM counters (Hopper and later) utilization alone cannot tell.",
    }
    return reasons.get(str(verdict.values.get("kind")), "Unknown: no single limit stands out.")


TITLES: dict[str, Callable[[Verdict], str]] = {
    "healthy": _healthy,
    "fp32_no_tensor": lambda verdict: (
        f"Compute-bound without tensor cores: FP32 pipes busy {_figure(verdict, 'fp32_active')}, tensor "
        f"cores {_figure(verdict, 'tensor_active')}."
    ),
    "memory_bandwidth": _bandwidth,
    "memory_latency": lambda verdict: (
        f"Limited by memory latency: the SMs are {_figure(verdict, 'sm_active')} occupied but wait; DRAM "
        f"is busy only {_figure(verdict, 'dram_active')}."
    ),
    "launch_bound": _launch,
    "small_batch": lambda verdict: (
        f"Too little work per kernel: kernels run all the time but use {_figure(verdict, 'sm_active')} "
        f"of the SMs; the batch is small for this GPU."
    ),
    "input_bound_cpu": _cpus,
    "input_bound_single_core": _single,
    "input_bound_io": _io,
    "transfer_bound": _transfer,
    "stalls": _stalls,
    "communication_bound": _communication,
    "straggler": _straggler,
    "hang": _hang,
    "idle_allocation": _idle_allocation,
    "underused": _underused,
    "idle": lambda verdict: "Idle: nothing runs and nothing is held.",
    "contention": _contention,
    "power_throttled": _power,
    "thermal_throttled": _thermal,
    "hw_slowdown": lambda verdict: (
        f"Slowed down by the hardware for {_figure(verdict, 'throttled_share')} of the time ({_figure(verdict, 'throttle_reasons')})."
    ),
    "clocks_locked": lambda verdict: (
        f"Clocks are locked low: {_figure(verdict, 'clock_sm')} of {_figure(verdict, 'clock_sm_max')} "
        f"under load, without heat or power as a reason."
    ),
    "pcie_degraded": _pcie,
    "memory_pressure": lambda verdict: (
        f"Memory is nearly full: {_figure(verdict, 'memory_percent')} in use; peaks between samples can be higher."
    ),
    "memory_leak": _leak,
    "out_of_memory": _oom,
    "orphaned_memory": lambda verdict: (
        f"{_figure(verdict, 'memory_unattributed')} are in use and no visible process holds them."
    ),
    "fault": _fault,
    "driver_unresponsive": _driver,
    "unknown": _unknown,
}
