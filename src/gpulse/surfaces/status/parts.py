"""Parts that lines and cards share: the header, the owners, the remarks, a bar with its number."""

from __future__ import annotations

import time

from ...model.catalog import Gpu, Process
from ...present.cells import MISSING, severity, throttle_text, value_text
from ...present.line import Line
from ...present.text import clean
from ...units import duration_text, size_text

TYPE_CHECKING = False
if TYPE_CHECKING:
    from ...model.metric import Number
    from ...model.snapshot import Snapshot
    from ...present.theme import Theme

_UNATTRIBUTED = 512 << 20  # bytes below which the difference is the driver's own bookkeeping
_NEARLY_ALL = 0.95  # of the memory: then the memory column already says what the one process holds
_STATES = {"lost": "lost", "timeout": "driver does not answer", "asleep": "asleep"}
_GAPS = {"denied": "no permission", "failed": "cannot be read", "timeout": "driver does not answer", "lost": "lost"}


def header(snapshot: Snapshot, theme: Theme, columns: int, gpus: str = "") -> Line:
    """Return the first line: which machine, which driver, what time; `gpus` names them all where they have one name."""
    dot = theme.glyph(" · ", " | ")
    host, driver = snapshot.host, snapshot.driver
    line = Line().add(clean(host.name or "gpulse"), "title")
    facts = [gpus] if gpus else []
    facts += [f"driver {clean(driver['version'])}"] if "version" in driver else []
    facts += [f"CUDA {clean(driver['cuda'])}"] if "cuda" in driver else []
    if host.load and columns >= 100:
        facts.append(f"load {host.load[0]:.1f}")
    if host.memory_used is not None and host.memory_total and columns >= 100:
        facts.append(f"memory {_of(host.memory_used, host.memory_total)}")
    line.add(dot + dot.join(facts) if facts else "", "label")
    clock = time.strftime("%H:%M:%S", time.localtime(snapshot.time))
    return line.to(columns - len(clock)).add(clock, "label") if line.width + len(clock) < columns else line


def short_name(gpu: Gpu) -> str:
    """Return a product name without the words that say nothing: NVIDIA GeForce RTX 4090 is RTX 4090."""
    name = clean(gpu.name or "unknown GPU")
    for word in ("NVIDIA ", "GeForce "):
        name = name.removeprefix(word)
    return name


def gauge(theme: Theme, share: float | None, cells: int, style: str) -> Line:
    """Return a bar."""
    filled, empty = theme.bar(share, cells)
    return Line().add(filled, style).add(empty, "track")


def has(gpu: Gpu, metric: Number) -> bool:
    """Tell whether a GPU has this metric, even if its value is still on the way."""
    return gpu.get(metric.key) is not None or gpu.gaps.get(metric.key) == "pending"


def memory_text(gpu: Gpu) -> str:
    """Return used of total memory in one unit."""
    if gpu.memory_used is None or gpu.memory_total is None:
        return MISSING
    return _of(gpu.memory_used, gpu.memory_total)


def _of(part: float, whole: float) -> str:
    return f"{size_text(part, whole, False)}/{size_text(whole, whole)}"


def memory_style(gpu: Gpu) -> str:
    """Return the colour of a memory bar: its own until it is nearly full."""
    level = severity(Gpu.memory_percent, gpu)
    return "memory" if level == "calm" else level


def share_style(share: float | None) -> str:
    """Return the colour of an activity: the busier the brighter, never alarming."""
    return "faint" if share is None or share < 5 else "busy" if share >= 50 else "good"


def number_text(gpu: Gpu, metric: Number) -> str:
    """Return a share as bare digits, for a column whose header says per cent."""
    value = gpu.get(metric.key)
    return f"{value:.0f}" if isinstance(value, (int, float)) else MISSING


def power_text(gpu: Gpu, theme: Theme) -> str:
    """Return power against its limit."""
    if gpu.power_draw is None:
        return MISSING
    return f"{gpu.power_draw:.0f}/{gpu.power_limit:.0f} W" if gpu.power_limit else f"{gpu.power_draw:.0f} W"


def temperature_text(gpu: Gpu, theme: Theme) -> str:
    """Return the temperature, short."""
    return MISSING if gpu.temperature is None else f"{gpu.temperature:.0f}{theme.glyph('°C', 'C')}"


def silence(gpu: Gpu, now: float) -> str:
    """Return in words why a GPU shows nothing at all, or nothing when it shows something."""
    if gpu.state != "ok":
        since = "" if gpu.since is None or now - gpu.since < 1 else f" for {duration_text(now - gpu.since)}"
        fault = "" if gpu.xid_last is None else f" (XID {gpu.xid_last:.0f})"
        return _STATES[gpu.state] + since + fault
    if gpu.utilization is None and gpu.memory_used is None and gpu.temperature is None and not gpu.instances:
        reasons = {gap for key, gap in gpu.gaps.items() if key in ("utilization", "memory_used", "temperature")}
        return ", ".join(_GAPS[gap] for gap in sorted(reasons) if gap in _GAPS)
    return ""


def remarks(gpu: Gpu, throttling: bool = True) -> Line:
    """Return what needs saying beyond the numbers: throttling with the clock it costs, errors, memory nobody owns."""
    line = Line()
    if throttling and (why := throttle_text(gpu)):
        alarming = severity(Gpu.throttle_reasons, gpu) == "critical"
        clock = f"{gpu.clock_sm:.0f} MHz " if gpu.clock_sm is not None and alarming else ""
        line.add(f"{clock}{why}  ", "critical" if alarming else "label")
    if gpu.ecc_uncorrected:
        line.add(f"{gpu.ecc_uncorrected:.0f} memory errors  ", "critical")
    if gpu.xid_last is not None:
        line.add(f"XID {gpu.xid_last:.0f}  ", "critical")
    if gpu.memory_unattributed and gpu.memory_unattributed >= _UNATTRIBUTED:
        line.add(f"unattributed {size_text(gpu.memory_unattributed)}  ", "warn")
    if gpu.memory_unified:
        line.add("unified memory  ", "label")
    return line


def owners(gpu: Gpu, room: int, theme: Theme) -> Line:
    """Return who uses how much, biggest first, as many as fit."""
    line = Line()
    people = gpu.processes
    alone = len(people) == 1 and (people[0].memory_used or 0) >= _NEARLY_ALL * (gpu.memory_used or 0)
    for at, process in enumerate(people):
        piece = _owner(process, not alone)
        rest = f"+{len(people) - at}"
        needed = piece.width + (0 if at == len(people) - 1 else len(rest) + 2)
        if line.width + needed > room and at:
            return line.add(rest, "label")
        line.extend(piece).add("  ")
    return line


def _owner(process: Process, amount: bool) -> Line:
    line = Line().add(clean(process.user or value_text(Process.pid, process.pid)), "user")
    line.add(f" {clean(process.name)}" if process.name else "", "calm")
    shown = amount and process.memory_used is not None
    return line.add(f" {value_text(Process.memory_used, process.memory_used)}" if shown else "", "label")


def problem_lines(snapshot: Snapshot) -> list[Line]:
    """Return a line for each thing that went wrong beside the data."""
    return [
        Line().add(f"{clean(problem.message)} {clean(problem.remedy)}".strip(), "warn") for problem in snapshot.problems
    ]
