"""What happened between two samples, in a sentence each: faults, throttling, processes that came and went."""

from __future__ import annotations

from ...present.cells import throttle_text
from ...present.text import clean

TYPE_CHECKING = False
if TYPE_CHECKING:
    from ...model.catalog import Gpu, Process
    from ...model.snapshot import Snapshot

_NEARLY_FULL = 97.0  # per cent of memory at which a process that ends has probably run out of it


class Happening:
    """Something that happened: when, in words, and how bad (a style)."""

    __slots__ = ("style", "text", "time")

    def __init__(self, time: float, text: str, style: str = "label") -> None:
        self.time = time
        self.text = text
        self.style = style


def happenings(before: Snapshot, after: Snapshot) -> list[Happening]:
    """Return what happened between two samples, the worst first."""
    old = {gpu.uuid or gpu.index: gpu for gpu in before.gpus}
    found: list[Happening] = []
    for gpu in after.gpus:
        was = old.get(gpu.uuid or gpu.index)
        if was is not None:
            found += _of_gpu(was, gpu, after.time)
    return sorted(found, key=lambda happening: ("critical", "warn", "good", "label").index(happening.style))


def _of_gpu(was: Gpu, gpu: Gpu, time: float) -> list[Happening]:
    name = f"GPU {gpu.index:.0f}" if gpu.index is not None else "a GPU"
    if gpu.state != was.state:
        if gpu.state == "ok":
            return [Happening(time, f"{name} answers again", "good")]
        words = {"lost": "was lost", "timeout": "does not answer", "asleep": "fell asleep"}
        fault = f" (XID {gpu.xid_last:.0f})" if gpu.xid_last is not None else ""
        return [Happening(time, f"{name} {words[gpu.state]}{fault}", "critical" if gpu.state != "asleep" else "label")]
    found = []
    if gpu.xid_last is not None and gpu.xid_last != was.xid_last:
        found.append(Happening(time, f"{name} reported XID {gpu.xid_last:.0f}", "critical"))
    why = throttle_text(gpu)
    if why and why != throttle_text(was) and why != "power cap":
        found.append(Happening(time, f"{name} is held down: {why}", "warn"))
    return found + _of_processes(was, gpu, name, time)


def _of_processes(was: Gpu, gpu: Gpu, name: str, time: float) -> list[Happening]:
    if "processes" in gpu.gaps or "processes" in was.gaps:
        return []
    old = {process.pid: process for process in was.all_processes()}
    new = {process.pid: process for process in gpu.all_processes()}
    found = []
    for pid, process in old.items():
        if pid not in new:
            full = (was.memory_percent or 0) >= _NEARLY_FULL
            text = f"{_called(process)} ended on {name}" + (", whose memory was full" if full else "")
            found.append(Happening(time, text, "warn" if full else "label"))
    found += [Happening(time, f"{_called(new[pid])} started on {name}") for pid in new if pid not in old]
    return found


def _called(process: Process) -> str:
    pid = "" if process.pid is None else f" {process.pid:.0f}"
    return clean(f"{process.user}'s {process.name or 'process'}{pid}" if process.user else f"process{pid}")
