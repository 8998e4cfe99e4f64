"""Words for a GPU as a person reads them: its short name, its memory, its heat, what is wrong with it and who uses it."""

from __future__ import annotations

import time
from functools import lru_cache

from ..analysis.readings import below_maximum, in_use
from ..model.catalog import Gpu
from ..model.condition import CONDITIONS, of_event, xid_of
from ..units import count_text, duration_text, size_text
from ..units import gpus_text as gpus_text
from ..units import ranges as ranges
from .cells import MISSING, severity, severity_style, throttle_text, when_text
from .text import clean, fit_name, width

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence
    from typing import TypeAlias

    from ..model.catalog import Process
    from ..model.metric import Metric, Number
    from ..model.snapshot import Problem
    from .theme import Theme

    Note: TypeAlias = tuple[str, str, str]  # a text, its style, and the same in at most NARROWEST cells

UNATTRIBUTED = 512 << 20  # bytes below which the difference is the driver's own bookkeeping
STATES = {state: one.title for state in ("lost", "timeout", "asleep") if (one := of_event(state)) is not None}
GAPS = {"denied": "no permission", "failed": "cannot be read", "timeout": STATES["timeout"], "lost": STATES["lost"]}
PAGE_GAPS = {  # of every gap, where there is room for it
    **GAPS,
    "unsupported": "this GPU does not have it",
    "lost": "GPU lost",
    "asleep": "GPU asleep",
    "skipped": "not sampled",
    "pending": "after the next sample",
}
SEVERITIES = {"critical": "Critical", "warn": "Warning", "info": "Info"}
_NEARLY_ALL = 0.95  # of the memory in use: then the memory column already says what the only owner holds
_CUT = 8  # cells from which a program that does not fit is cut instead of left out
_NAME = 4  # the same for a user
_USER = 32  # characters of a user's name in a sentence
_VITAL = ("utilization", "memory_used", "temperature")
_ALARMS = ("critical", "warn")  # styles of what somebody should look at, the worst first
NARROWEST = 9  # cells in which every note has a form, so that none is ever cut
# What stands in narrow columns for titles of conditions, throttle reasons, and values that cannot be read.
_NARROW = {one.title: one.narrow for one in CONDITIONS.values()} | {
    "power brake": "brake",
    "current limit": "current",
    "clocks set lower": "low clock",
    "sync boost": "sync",
    "display clocks": "display",
    "no permission": "no access",
    "cannot be read": "unread",
}


def label(gpu: Gpu) -> str:
    """Return the number a GPU is called by."""
    return "?" if gpu.index is None else f"{gpu.index:.0f}"


def product_name(name: str) -> str:
    """Return a product name without the words that say nothing: NVIDIA GeForce RTX 4090 is RTX 4090."""
    return clean(name).removeprefix("NVIDIA ").removeprefix("GeForce ")


def short_name(gpu: Gpu) -> str:
    """Return the product name of a GPU, short."""
    return product_name(gpu.name or "unknown GPU")


def part_of_whole(part: float | None, whole: float | None, decimal: bool = False) -> str:
    """Return a part of a whole in one unit: 66.8/79.6 GiB."""
    if part is None or whole is None:
        return MISSING if part is None else size_text(part, decimal=decimal)
    return f"{size_text(part, whole, False, decimal)}/{size_text(whole, whole, True, decimal)}"


def percent(share: float | None) -> str:
    """Return a percentage, short: 97%."""
    return MISSING if share is None else f"{share:.0f}%"


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
    """Return the color of an activity: the busier the brighter, never alarming."""
    return "faint" if share is None or share < 5 else "busy" if share >= 50 else "good"


def memory_style(gpu: Gpu) -> str:
    """Return the color of a memory bar: its own until it is nearly full."""
    level = severity(Gpu.memory_percent, gpu)
    return "memory" if level == "calm" else level


def has(gpu: Gpu, metric: Number) -> bool:
    """Tell whether a GPU has this metric, even if its value is still on the way."""
    return gpu.get(metric.key) is not None or gpu.gaps.get(metric.key) == "pending"


def silence(gpu: Gpu, now: float) -> tuple[str, str]:
    """Return why a GPU shows nothing at all, and their style; two empty texts when it shows something."""
    if gpu.state != "ok":
        since = "" if gpu.since is None or now - gpu.since < 1 else f" for {duration_text(now - gpu.since)}"
        fault = "" if gpu.xid_last is None else f" (XID {gpu.xid_last:.0f})"
        return STATES[gpu.state] + since + fault, "label" if gpu.state == "asleep" else "critical"
    if gpu.instances or any(gpu.get(key) is not None for key in _VITAL):
        return "", ""
    words = ", ".join(sorted({GAPS[gpu.gaps[key]] for key in _VITAL if gpu.gaps.get(key) in GAPS}))
    return words, "warn" if words else ""


def remarks(gpu: Gpu, clock: bool = True, decimal: bool = False, *, throttling: bool = True) -> list[Note]:
    """Return what the numbers do not say: throttling (and the clock it leaves), errors, a slow link, unattributed memory."""
    found: list[Note] = []
    if throttling and (why := throttle_text(gpu)):
        alarming = severity(Gpu.throttle_reasons, gpu) == "critical"
        speed = f"{gpu.clock_sm:.0f} MHz " if clock and alarming and gpu.clock_sm is not None else ""
        found.append((speed + why, "critical" if alarming else "label", narrow(throttle_text(gpu, worst=True))))
    if gpu.ecc_uncorrected:
        found.append((count_text(gpu.ecc_uncorrected, "memory error"), "critical", "ECC error"))
    if gpu.xid_last is not None:
        found.append(
            (f"XID {gpu.xid_last:.0f}", severity_style(xid_of(gpu.xid_last).severity), f"XID {gpu.xid_last:.0f}")
        )
    if in_use(gpu) and (link := below_maximum(gpu)):
        found.append((link_text(link), "warn", "slow PCIe"))
    if gpu.memory_unattributed and gpu.memory_unattributed >= UNATTRIBUTED:
        found.append((f"unattributed {size_text(gpu.memory_unattributed, decimal=decimal)}", "warn", "no owner"))
    if gpu.memory_unified:
        found.append(("unified memory", "label", "unified"))
    if held := hold_note(gpu):
        found.append((held, "label", "held"))
    return found


def held_text(user: str, until: float | None, now: float) -> str:
    """Return for whom a GPU is held: held for ada until 18:00."""
    return f"held for {clean(user)[:_USER]}{'' if until is None else f' until {when_text(until, now)}'}"


def hold_note(gpu: Gpu) -> str:
    """Return for whom a GPU is held; empty if for no one, or if its only claim is that of a program that is there to be seen."""
    if not gpu.held_for or (gpu.held_until is None and any(one.user == gpu.held_for for one in gpu.processes)):
        return ""
    return held_text(gpu.held_for, gpu.held_until, time.time())


def narrow(text: str) -> str:
    """Return the words of a verdict, a throttle reason or a state as narrow columns have them."""
    return _NARROW.get(text, text)


def worst(gpu: Gpu, notes: Iterable[Note], theme: Theme) -> tuple[str, str]:
    """Return the worst thing about a GPU in at most NARROWEST cells, and its style; two empty texts where nothing is wrong."""
    if gpu.state != "ok":
        return ("", "") if gpu.state == "asleep" else (narrow(STATES[gpu.state]), "critical")
    words, style = silence(gpu, 0.0)
    if words:
        return narrow(words.split(", ")[0]), style
    found = _alarms(notes)
    if severity(Gpu.temperature, gpu) == "critical" and not (found and found[0][1] == "critical"):
        return degrees(gpu.temperature, theme), "critical"
    return found[0] if found else ("", "")


def _alarms(notes: Iterable[Note]) -> list[tuple[str, str]]:
    """Return the notes that somebody should look at, narrow, the worst first."""
    return sorted(
        ((short, style) for _, style, short in notes if style in _ALARMS), key=lambda note: _ALARMS.index(note[1])
    )


def problem_text(problem: Problem) -> str:
    """Return what could not be read, and the remedy: whole sentences, to be wrapped and never cut."""
    return f"{clean(problem.message)} {clean(problem.remedy)}".strip()


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
    gpu: Gpu, notes: Sequence[Note], room: int, theme: Theme, decimal: bool = False
) -> list[tuple[str, str]]:
    """Return the notes and owners that fit into `room` cells, with styles; biggest owner first, then how many more there are.

    Notes are never cut. Where room is short they are narrow, then without good news, then only problems, then only the worst, so
    that the owner has a place.
    """
    people = tuple(owners(gpu.processes))
    alone = len(people) == 1 and people[0][2] >= _NEARLY_ALL * (gpu.memory_used or 0)
    glyphs = (theme.glyph("×", "x"), theme.more)
    return [*_laid_out(people, alone, tuple(notes), room, glyphs, decimal)]


@lru_cache(maxsize=1024)  # it is the same at most samples
def _laid_out(
    people: tuple[tuple[str, str, float, int], ...],
    alone: bool,
    notes: tuple[Note, ...],
    room: int,
    glyphs: tuple[str, str],
    decimal: bool,
) -> list[tuple[str, str]]:
    times, cut_mark = glyphs
    found = _fitting(notes, room, _least(people))
    room -= sum(width(text) for text, _ in found)
    for at, (user, name, held, count) in enumerate(people):
        more = f"+{len(people) - at}"
        tail = 0 if at == len(people) - 1 else len(more) + 2
        program = f" {name}" + (f" {times}{count}" if count > 1 else "") if name else ""
        amount = f" {size_text(held, decimal=decimal)}" if held and not alone else ""
        left = room - width(user) - tail
        cut = fit_name(program, left, cut_mark) if left >= _CUT and len(people) == 1 else program
        for extra in ((program, amount), (program, ""), (cut, ""), ("", amount), ("", "")):
            if width(extra[0]) + len(extra[1]) <= left:
                found += [(user, "user"), (extra[0], "calm"), (extra[1] + "  ", "label")]
                room -= width(user) + width(extra[0]) + len(extra[1]) + 2
                break
        else:
            if at == 0 and room - tail >= _NAME:
                found += [(fit_name(user, room - tail, cut_mark), "user"), ("  ", "label")]
                room, more = tail - 2, f"+{len(people) - 1}" if tail else ""
            return [*found, (more, "label")] if more and len(more) <= room else _ended(found)
    return _ended(found)


def _ended(pieces: list[tuple[str, str]]) -> list[tuple[str, str]]:
    """Return pieces without the space that would separate the last one from another."""
    while pieces:
        text, style = pieces.pop()
        if text := text.rstrip():
            return [*pieces, (text, style)]
    return []


def _least(people: Sequence[tuple[str, str, float, int]]) -> int:
    """Return the cells that the biggest owner needs: the name, and how many more there are."""
    if not people:
        return 0
    return min(NARROWEST, width(people[0][0])) + (len(f"  +{len(people) - 1}") if len(people) > 1 else 0)


def _fitting(notes: Sequence[Note], room: int, owner: int) -> list[tuple[str, str]]:
    """Return the notes in the fullest form that leaves `owner` cells; without any such, the worst problem if it fits alone."""
    alarms = _alarms(notes)
    full, brief = [(text, style) for text, style, _ in notes], [(short, style) for _, style, short in notes]
    news = [note for note in brief if note[1] != "good"]
    forms = ((full, owner), (brief, owner), (news, owner), (alarms, owner), (alarms[:1], owner), (alarms[:1], 0))
    for shown, reserved in forms:
        if sum(2 + width(text) for text, _ in shown) + reserved <= room + (0 if reserved else 2):
            return [(f"{text}  ", style) for text, style in shown]
    return []


def owner_cells(gpus: Iterable[Gpu]) -> int:
    """Return the cells in which the biggest owner of every GPU has a place."""
    return max((_least(owners(gpu.processes)) for gpu in gpus), default=0)


_CORES = {"amd": "CU", "intel": "EU"}  # what others call an SM


def heading(metric: Metric, gpus: Iterable[Gpu]) -> str:
    """Return the column heading of a metric, in the vendor's own word if all GPUs are of one vendor: SM, CU or EU."""
    vendors = {gpu.vendor or "nvidia" for gpu in gpus}
    return metric.short.replace("SM", _CORES.get(vendors.pop(), "SM") if len(vendors) == 1 else "SM")
