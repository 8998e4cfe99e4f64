"""Words for a GPU as a person reads them: its short name, its memory, its heat, what is wrong with it and who uses it."""

from __future__ import annotations

from ..analysis.links import below_maximum, in_use
from ..model.catalog import Gpu
from ..units import duration_text, size_text
from .cells import MISSING, severity, throttle_text
from .text import clean, fit, fit_name, width

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from ..model.catalog import Process
    from ..model.metric import Metric, Number
    from .theme import Theme

_UNATTRIBUTED = 512 << 20  # bytes below which the difference is the driver's own bookkeeping
_STATES = {"lost": "lost", "timeout": "driver does not answer", "asleep": "asleep"}
_GAPS = {"denied": "no permission", "failed": "cannot be read", "timeout": "driver does not answer", "lost": "lost"}
_NEARLY_ALL = 0.95  # of the memory in use: then the memory column already says what the only owner holds
_CUT = 8  # cells from which a text that does not fit is cut instead of left out
_VITAL = ("utilization", "memory_used", "temperature")


def label(gpu: Gpu) -> str:
    """Return the number a GPU is called by."""
    return "?" if gpu.index is None else f"{gpu.index:.0f}"


def ranges(labels: Iterable[str]) -> str:
    """Return labels with a dash for three or more numbers in a row: 0-3, 7."""
    parts: list[list[str]] = []
    for label in labels:
        before = parts[-1][-1] if parts else ""
        if label.isdecimal() and before.isdecimal() and int(label) == int(before) + 1:
            parts[-1].append(label)
        else:
            parts.append([label])
    return ", ".join(f"{part[0]}-{part[-1]}" if len(part) > 2 else ", ".join(part) for part in parts)


def gpus_text(labels: Sequence[str]) -> str:
    """Return which GPUs: GPU 0, GPUs 0-3."""
    return f"GPU{'s' if len(labels) > 1 else ''} {ranges(labels) or '?'}"


def product_name(name: str) -> str:
    """Return a product name without the words that say nothing: NVIDIA GeForce RTX 4090 is RTX 4090."""
    return clean(name).removeprefix("NVIDIA ").removeprefix("GeForce ")


def short_name(gpu: Gpu) -> str:
    """Return the product name of a GPU, short."""
    return product_name(gpu.name or "unknown GPU")


def of(part: float | None, whole: float | None, decimal: bool = False) -> str:
    """Return a part of a whole in one unit: 66.8/79.6 GiB."""
    if part is None or whole is None:
        return MISSING if part is None else size_text(part, decimal=decimal)
    return f"{size_text(part, whole, False, decimal)}/{size_text(whole, whole, True, decimal)}"


def degrees(celsius: float | None, theme: Theme, fahrenheit: bool = False) -> str:
    """Return a temperature, short: 66°C."""
    if celsius is None:
        return MISSING
    return (
        f"{celsius * 1.8 + 32:.0f}{theme.glyph('°F', 'F')}" if fahrenheit else f"{celsius:.0f}{theme.glyph('°C', 'C')}"
    )


def power(gpu: Gpu, limit: bool = True) -> str:
    """Return power, against its limit where there is one: 690/700 W."""
    if gpu.power_draw is None:
        return MISSING
    return f"{gpu.power_draw:.0f}/{gpu.power_limit:.0f} W" if limit and gpu.power_limit else f"{gpu.power_draw:.0f} W"


def share_style(share: float | None) -> str:
    """Return the colour of an activity: the busier the brighter, never alarming."""
    return "faint" if share is None or share < 5 else "busy" if share >= 50 else "good"


def memory_style(gpu: Gpu) -> str:
    """Return the colour of a memory bar: its own until it is nearly full."""
    level = severity(Gpu.memory_percent, gpu)
    return "memory" if level == "calm" else level


def has(gpu: Gpu, metric: Number) -> bool:
    """Tell whether a GPU has this metric, even if its value is still on the way."""
    return gpu.get(metric.key) is not None or gpu.gaps.get(metric.key) == "pending"


def silence(gpu: Gpu, now: float) -> tuple[str, str]:
    """Return in words why a GPU shows nothing at all, and their style; two empty texts when it shows something."""
    if gpu.state != "ok":
        since = "" if gpu.since is None or now - gpu.since < 1 else f" for {duration_text(now - gpu.since)}"
        fault = "" if gpu.xid_last is None else f" (XID {gpu.xid_last:.0f})"
        return _STATES[gpu.state] + since + fault, "label" if gpu.state == "asleep" else "critical"
    if gpu.instances or any(gpu.get(key) is not None for key in _VITAL):
        return "", ""
    words = ", ".join(sorted({_GAPS[gpu.gaps[key]] for key in _VITAL if gpu.gaps.get(key) in _GAPS}))
    return words, "warn" if words else ""


def remarks(gpu: Gpu, clock: bool = True, decimal: bool = False, *, throttling: bool = True) -> list[tuple[str, str]]:
    """Return what the numbers do not say, with styles: throttling (and the clock it leaves), errors, a slow link, unattributed memory."""
    found: list[tuple[str, str]] = []
    if throttling and (why := throttle_text(gpu)):
        alarming = severity(Gpu.throttle_reasons, gpu) == "critical"
        speed = f"{gpu.clock_sm:.0f} MHz " if clock and alarming and gpu.clock_sm is not None else ""
        found.append((speed + why, "critical" if alarming else "label"))
    if gpu.ecc_uncorrected:
        found.append((f"{gpu.ecc_uncorrected:.0f} memory errors", "critical"))
    if gpu.xid_last is not None:
        found.append((f"XID {gpu.xid_last:.0f}", "critical"))
    if in_use(gpu) and (link := below_maximum(gpu)):
        found.append((link_text(link), "warn"))
    if gpu.memory_unattributed and gpu.memory_unattributed >= _UNATTRIBUTED:
        found.append((f"unattributed {size_text(gpu.memory_unattributed, decimal=decimal)}", "warn"))
    if gpu.memory_unified:
        found.append(("unified memory", "label"))
    return found


def link_text(values: Mapping[str, object]) -> str:
    """Return how far a PCIe link is below its maximum: PCIe x4 of x16, PCIe Gen 1 x4 of Gen 5 x16."""

    def side(end: str) -> str:
        words = [
            f"{word}{values[key + end]:.0f}"
            for word, key in (("Gen ", "pcie_gen"), ("x", "pcie_width"))
            if key in values
        ]
        return " ".join(words)

    return f"PCIe {side('')} of {side('_max')}"


def owners(processes: Iterable[Process]) -> list[tuple[str, str, float, int]]:
    """Return who uses a GPU: user, name of the biggest program, bytes held, number of processes; biggest first."""
    people: dict[str, list[Process]] = {}
    for process in processes:
        people.setdefault(process.user or ("" if process.pid is None else f"{process.pid:.0f}"), []).append(process)
    found = []
    for user, theirs in people.items():
        biggest = max(theirs, key=lambda one: one.memory_used or 0)
        held = sum(one.memory_used or 0 for one in theirs)
        found.append((clean(user), clean(biggest.name or ""), held, len(theirs)))
    return sorted(found, key=lambda one: -one[2])


def notes_and_owners(
    gpu: Gpu, notes: Iterable[tuple[str, str]], room: int, theme: Theme, decimal: bool = False
) -> list[tuple[str, str]]:
    """Return the notes and owners that fit into `room` cells, with styles; biggest owner first, then how many more there are."""
    found: list[tuple[str, str]] = []
    for text, style in notes:
        if width(text) > room:
            if room >= _CUT:
                found.append((fit(text, room, theme.more), style))
            return found
        found.append((text + "  ", style))
        room -= width(text) + 2
    people = owners(gpu.processes)
    alone = len(people) == 1 and people[0][2] >= _NEARLY_ALL * (gpu.memory_used or 0)
    for at, (user, name, held, count) in enumerate(people):
        more = f"+{len(people) - at}"
        tail = 0 if at == len(people) - 1 else len(more) + 2
        program = f" {name}" + (f" {theme.glyph('×', 'x')}{count}" if count > 1 else "") if name else ""
        amount = f" {size_text(held, decimal=decimal)}" if held and not alone else ""
        left = room - width(user) - tail
        cut = fit_name(program, left, theme.more) if left >= _CUT and len(people) == 1 else program
        for extra in ((program, amount), (program, ""), (cut, ""), ("", amount), ("", "")):
            if width(extra[0]) + len(extra[1]) <= left:
                found += [(user, "user"), (extra[0], "calm"), (extra[1] + "  ", "label")]
                room -= width(user) + width(extra[0]) + len(extra[1]) + 2
                break
        else:
            return [*found, (more, "label")] if len(more) <= room else found
    return found


_CORES = {"amd": "CU", "intel": "EU"}  # what others call an SM


def heading(metric: Metric, gpus: Iterable[Gpu]) -> str:
    """Return the column heading of a metric, in the vendor's own word if all GPUs are of one vendor: SM, CU or EU."""
    vendors = {gpu.vendor or "nvidia" for gpu in gpus}
    return metric.short.replace("SM", _CORES.get(vendors.pop(), "SM") if len(vendors) == 1 else "SM")
