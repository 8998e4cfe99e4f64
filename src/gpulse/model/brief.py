"""Short descriptions of values for `repr()`: one line of plain text, safe to print whatever a process or a board is called."""

from __future__ import annotations

import time as clock

from ..units import size_text

TYPE_CHECKING = False
if TYPE_CHECKING:
    from .catalog import Gpu, Host, Process
    from .snapshot import Snapshot

_LONGEST = 40  # characters of a name
_SHOWN = 8  # GPUs listed in a snapshot


def printable(text: str, most: int = _LONGEST) -> str:
    """Return a text without control characters, cut to `most` characters."""
    kept = text if len(text) <= most else f"{text[: most - 1]}…"
    return "".join(char if char.isprintable() else "?" for char in kept)


def utc_text(seconds: float) -> str:
    """Return a time as 2026-11-15 18:00:00 UTC; the number itself where no calendar has it."""
    try:
        return clock.strftime("%Y-%m-%d %H:%M:%S UTC", clock.gmtime(seconds))
    except (OverflowError, ValueError, OSError):
        return repr(seconds)


def snapshot_brief(snapshot: Snapshot) -> str:
    """Return <Snapshot TIME, N GPUs: state or utilization of each>."""
    count = len(snapshot.gpus)
    shown = ", ".join(_state(gpu) for gpu in snapshot.gpus[:_SHOWN])
    more = ", …" if count > _SHOWN else ""
    problems = f"; {_counted(len(snapshot.problems), 'problem')}" if snapshot.problems else ""
    listed = f": {shown}{more}" if count else ""
    return f"<Snapshot {utc_text(snapshot.time)}, {_counted(count, 'GPU')}{listed}{problems}>"


def gpu_brief(gpu: Gpu) -> str:
    """Return <Gpu INDEX NAME: utilization, memory, temperature, power, processes>."""
    who = f"Gpu {_number(gpu.index)} {printable(gpu.name or 'without a name')}"
    if gpu.state != "ok":
        return f"<{who}: {gpu.state}>"
    parts = [_state(gpu)] if gpu.utilization is not None else []
    if gpu.memory_used is not None:
        parts.append(_part(gpu.memory_used, gpu.memory_total))
    parts += [f"{gpu.temperature:.0f} °C"] if gpu.temperature is not None else []
    parts += [f"{gpu.power_draw:.0f} W"] if gpu.power_draw is not None else []
    parts += [_counted(len(gpu.instances), "MIG instance")] if gpu.instances else []
    count = sum(1 for _ in gpu.all_processes())
    parts += [_counted(count, "process", "processes")] if count else []
    return f"<{who}: {', '.join(parts)}>" if parts else f"<{who}>"


def process_brief(process: Process) -> str:
    """Return <Process PID NAME, user: GPU memory>."""
    user = f", {printable(process.user)}" if process.user else ""
    held = f": {size_text(process.memory_used)}" if process.memory_used is not None else ""
    return f"<Process {_number(process.pid)} {printable(process.name or '?')}{user}{held}>"


def host_brief(host: Host) -> str:
    """Return <Host NAME: CPU, memory>."""
    parts = [f"CPU {host.cpu_percent:.0f} %"] if host.cpu_percent is not None else []
    if host.memory_used is not None:
        parts.append(_part(host.memory_used, host.memory_total))
    return f"<Host {printable(host.name or '?')}{': ' if parts else ''}{', '.join(parts)}>"


def _state(gpu: Gpu) -> str:
    if gpu.state != "ok":
        return gpu.state
    return "?" if gpu.utilization is None else f"{gpu.utilization:.0f} %"


def _part(used: float, total: float | None) -> str:
    return size_text(used) if total is None else f"{size_text(used, total, unit=False)}/{size_text(total, total)}"


def _number(value: float | None) -> str:
    return "?" if value is None else f"{value:.0f}"


def _counted(count: int, one: str, many: str = "") -> str:
    return f"{count} {one if count == 1 else many or one + 's'}"
