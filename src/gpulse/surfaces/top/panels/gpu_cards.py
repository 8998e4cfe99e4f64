"""GPUs as cards: bars for use, memory and activity, who uses it, MIG instances, and a chart where the card is tall enough."""

from __future__ import annotations

from ....model.catalog import Gpu
from ....present.cells import severity
from ....present.text import fit, width
from ....present.words import (
    degrees,
    has,
    label,
    memory_style,
    part_of_whole,
    power,
    share_style,
    short_name,
    silence,
)
from ....screen.grid import draw
from ..area import Area
from ..layout import CARD, GAP
from . import charts
from .gpu_parts import ACTIVITY, fade, fraction, gauge, limit, mark, notes, percent, who

TYPE_CHECKING = False
if TYPE_CHECKING:
    from ....model.metric import Number
    from ....present.words import Note
    from ....screen.grid import Grid
    from ..gpu_plan import GpuPlan
    from ..state import State

_LONGEST_BAR = 24
_SHORTEST_CHART = 5  # rows


def paint(grid: Grid, state: State, gpus: tuple[Gpu, ...], plan: GpuPlan, old: str) -> None:
    """Draw all cards; `old` is the age of values that are no longer current, or empty."""
    for gpu, place in zip(gpus, plan.places, strict=False):
        _card(grid, place, state, gpu, old)


def _card(grid: Grid, area: Area, state: State, gpu: Gpu, old: str) -> None:
    _card_body(grid, area, state, gpu, _title(grid, area, state, gpu, old))
    if old:
        fade(grid, Area(area.row + 1, area.column, area.rows - 1, area.columns))


def _card_body(grid: Grid, area: Area, state: State, gpu: Gpu, below: list[Note]) -> None:
    sample = state.shown
    words, style = silence(gpu, sample.time if sample else 0.0)
    if words:
        grid.put(area.row + 1, area.column, fit(words, area.columns, state.theme.more), style)
        return
    rest = [(name, metric) for name, metric in ACTIVITY if has(gpu, metric)]
    right = max(20, (area.columns - GAP) * 9 // 20) if rest else 0
    left = area.columns - (right + GAP if rest else 0)
    memory = part_of_whole(gpu.memory_used, gpu.memory_total, state.settings.decimal)
    bar = left - 5 - 14
    _use(grid, area, state, gpu, bar)
    row, column = area.row + 2, draw(grid, area.row + 2, area.column, "mem  ", "label")
    column = gauge(grid, row, column, state, fraction(gpu.memory_percent), bar, memory_style(gpu))
    grid.put(row, column, f"{memory:>14}", "calm", 14)
    for at, (name, metric) in enumerate(rest):
        _activity(grid, area.row + 1 + at, area.column + left + GAP, right, state, name, gpu, metric)
    row = area.row + 3
    if below or gpu.processes or len(rest) == len(ACTIVITY):
        who(grid, row, area.column, left if len(rest) == len(ACTIVITY) else area.columns, state, below, gpu)
        row += 1
    for at, part in enumerate(gpu.instances):
        _part_row(grid, Area(row + at, area.column, 1, area.columns), state, part)
    row = area.row + CARD + len(gpu.instances)
    if area.end - row >= _SHORTEST_CHART:
        charts.paint_gpu(grid, Area(row, area.column, area.end - row - 1, area.columns), state, gpu)


def _title(grid: Grid, area: Area, state: State, gpu: Gpu, old: str) -> list[Note]:
    """Draw number and name at the left, heat and power at the right, a rule between; return the notes that found no room."""
    theme, row, end = state.theme, area.row, area.column + area.columns
    mute = bool(silence(gpu, 0.0)[0])
    told = [] if mute else notes(state, gpu, clock=False)
    facts = [] if mute else _facts(gpu, state)
    if old:
        facts = [(old, "warn"), *((text, "faint") for text, _ in facts)]
    taken = sum(2 + width(text) for text, _ in facts)
    column = grid.put(row, area.column, label(gpu), mark(gpu, state), area.columns)
    name = fit(short_name(gpu), max(0, area.columns - taken - (column - area.column) - 2), theme.more)
    column = grid.put(row, column + 1, name, "title", end - column - 1) + 1
    if state.focus == "gpus" and mark(gpu, state) == "selected":
        grid.restyle(row, area.column, column - 1 - area.column, "selected")
    room = end - column - taken - 3
    shown: list[tuple[str, str]] = []
    for text, style, _ in told:
        room -= 2 + width(text)
        if room < 0:
            break
        shown.append((text, style))
    facts = shown + facts
    start = end - sum(2 + width(text) for text, _ in facts) + (1 if facts else 0)
    draw(grid, row, column, theme.glyph("─", "-") * (start - column), "border")
    column = start + (1 if facts else 0)
    for text, style in facts:
        column = grid.put(row, column, text, style, end - column) + 2
    return told[len(shown) :]


def _facts(gpu: Gpu, state: State) -> list[tuple[str, str]]:
    facts = [] if gpu.fan_speed is None else [(f"fan {gpu.fan_speed:.0f}%", "label")]
    facts.append((degrees(gpu.temperature, state.theme, state.settings.fahrenheit), severity(Gpu.temperature, gpu)))
    return [*facts, (f"{power(gpu):>9}", "calm")]


def _use(grid: Grid, area: Area, state: State, gpu: Gpu, bar: int) -> None:
    use, row = gpu.utilization, area.row + 1
    column = gauge(
        grid, row, draw(grid, row, area.column, "util ", "label"), state, fraction(use), bar, share_style(use)
    )
    draw(grid, row, column, f"{percent(use):>5}", share_style(use))
    if gpu.clock_sm is not None:
        alarm = severity(Gpu.throttle_reasons, gpu) == "critical"
        draw(grid, row, column + 5, f"{gpu.clock_sm:5.0f} MHz", "critical" if alarm else "label")


def _activity(grid: Grid, row: int, column: int, cells: int, state: State, name: str, gpu: Gpu, metric: Number) -> None:
    value = gpu.get(metric.key)
    share = value if isinstance(value, (int, float)) else None
    text = state.theme.more if share is None and gpu.gaps.get(metric.key) == "pending" else percent(share)
    column = draw(grid, row, column, f"{name:7}", "label")
    column = gauge(grid, row, column, state, fraction(share), cells - 12, share_style(share))
    draw(grid, row, column, f"{text:>5}", share_style(share))


def _part_row(grid: Grid, area: Area, state: State, part: Gpu) -> None:
    """Draw a MIG instance: its size, its memory, how busy its SMs are, what limits it, who."""
    name = short_name(part).removeprefix("MIG ")
    column = draw(grid, area.row, area.column, state.theme.glyph("└ ", "- "), "border")
    grid.put(area.row, column, fit(name, 10, state.theme.more), "calm")
    told = limit(state, part)
    bar = max(0, min(_LONGEST_BAR, area.columns - 13 - 14 - 9 - (14 if part.processes or told else 0)))
    column = gauge(grid, area.row, column + 11, state, fraction(part.memory_percent), bar, memory_style(part))
    memory = part_of_whole(part.memory_used, part.memory_total, state.settings.decimal)
    column = grid.put(area.row, column, f"{memory:>14}", "calm", 14)
    if has(part, Gpu.sm_active):
        column = grid.put(area.row, column, f"  SM {percent(part.sm_active):>4}", share_style(part.sm_active))
    who(grid, area.row, column + 2, area.column + area.columns - column - 2, state, told, part)
