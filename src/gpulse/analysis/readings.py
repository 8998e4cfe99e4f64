"""What single readings mean: a server that is stuck, a link below its maximum, an XID that is new."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Literal, TypeAlias

    from ..model.catalog import Gpu, Process, Server

    Activity: TypeAlias = Literal["serving", "idle", "stuck", "silent", "unknown"]

POWER_CAP = "sw_power_cap"  # how a healthy GPU under full load lives, so it counts apart
HARMLESS = {"gpu_idle", "applications_clocks_setting", "sync_boost", "display_clock_setting", POWER_CAP}
TRAFFIC = 0.3e9  # bytes per second that show a link in use
REST_SM = 0.02  # percent of SM activity up to which nothing runs; a context that rests reads 0
BUSY = 50.0  # percent of utilization that show a GPU in use


def number_of(gpu: Gpu) -> str:
    """Return the number a GPU is called by; empty where it has none."""
    return "" if gpu.index is None else f"{gpu.index:.0f}"


def in_use(gpu: Gpu) -> bool | None:
    """Return whether a GPU is busy enough for its link to run at full speed; an idle link slows down to save power."""
    if gpu.utilization is None and gpu.pcie_rx is None:
        return None
    return (gpu.utilization or 0.0) >= BUSY or max(gpu.pcie_rx or 0.0, gpu.pcie_tx or 0.0) >= TRAFFIC


def below_maximum(gpu: Gpu) -> dict[str, float]:
    """Return the link's generation and width where they are below the maximum of GPU and slot; empty if neither is."""
    found: dict[str, float] = {}
    for key in ("pcie_gen", "pcie_width"):
        now, most = gpu.get(key), gpu.get(f"{key}_max")
        if isinstance(now, (int, float)) and isinstance(most, (int, float)) and now < most:
            found |= {key: now, f"{key}_max": most}
    return found


UNLISTED = (
    256 << 20
)  # bytes that no listed process holds and that may be the driver's; an empty context on an H200 is 520 MiB
HIDDEN = 300 << 20  # bytes in use that show a program where processes cannot be listed


def unlisted_memory(gpu: Gpu) -> float:
    """Return the bytes in use that no listed process holds."""
    return (gpu.memory_used or 0.0) - sum(process.memory_used or 0.0 for process in gpu.processes)


_SLACK = 5.0  # seconds by which a process may seem younger than it is


def is_another(old: Process, new: Process, elapsed: float) -> bool:
    """Tell whether a PID was given to another process in the `elapsed` seconds between two samples of it."""
    before, after = old.running_time, new.running_time
    return before is not None and after is not None and after < max(before, elapsed) - _SLACK


STUCK_AFTER = 60.0  # seconds with requests and without a single token: longer than any prompt takes
IDLE_AFTER = 60.0


def activity(server: Server) -> Activity:
    """Return what a server does, by its counters: utilization cannot tell one that is stuck from one without traffic."""
    if server.running is None and server.gaps.get("running") in ("timeout", "failed", "denied", "lost"):
        return "silent"
    if server.idle_time is None:
        return "unknown"
    queued = (server.running or 0) + (server.waiting or 0)
    if queued > 0:
        return "stuck" if server.idle_time >= STUCK_AFTER else "serving"
    return "idle" if server.idle_time >= IDLE_AFTER else "serving"


def gpus_of(server: Server, gpus: Sequence[Gpu]) -> list[Gpu]:
    """Return the GPUs and MIG instances of a server."""
    return [part for gpu in gpus for part in (gpu, *gpu.instances) if part.uuid in (server.gpus or ())]


class XidNews:
    """The XIDs of one GPU over time. Where a source has only the last code, a code that comes again cannot be told."""

    __slots__ = ("_last", "_watched")

    def __init__(self) -> None:
        self._last: float | None = None
        self._watched = False

    def codes(self, gpu: Gpu) -> list[int]:
        """Return the codes reported since the previous sample, in order, each as often as it came."""
        before, self._last = self._last, self._last if gpu.xid_last is None else gpu.xid_last
        watched, self._watched = self._watched, True
        if gpu.xids or (gpu.xids is not None and not watched):  # what came before the first sample is no news
            return [int(code) for code in gpu.xids]
        # without a list, or where the sample that had it was dropped because its reader was slow
        return [] if gpu.xid_last is None or gpu.xid_last == before else [int(gpu.xid_last)]
