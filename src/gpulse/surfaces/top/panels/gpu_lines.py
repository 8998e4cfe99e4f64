"""GPUs as lines, in several columns where that saves rows; scrolled where they do not fit."""

from __future__ import annotations

from ....model.catalog import Gpu
from ....present.cells import MISSING, severity
from ....present.text import fit, width
from ....present.words import (
    NARROWEST,
    degrees,
    has,
    label,
    memory_style,
    notes_and_owners,
    owner_cells,
    part_of_whole,
    power,
    ranges,
    share_style,
    short_name,
    silence,
    worst,
)
from ....screen.grid import draw
from ..area import Area
from .gpu_parts import ACTIVITY, corner, fade, fraction, gauge, mark, notes, percent, who
from .sections import hidden_text

TYPE_CHECKING = False
if TYPE_CHECKING:
    from ....screen.grid import Grid
    from ..gpu_plan import GpuPlan
    from ..state import State

_LONGEST_BAR = 24
_SHORTEST_NAME = 8


def paint(grid: Grid, area: Area, state: State, gpus: tuple[Gpu, ...], plan: GpuPlan, old: str) -> None:
    """Draw the visible lines, with titles above them; `old` is the age of values that are no longer current, or empty."""
    entries = [gpus[at] if part is None else gpus[at].instances[part] for at, part in plan.entries]
    names = {short_name(gpu) for gpu in entries}
    cells = plan.places[0].columns if plan.places else area.columns
    columns = _Columns(gpus, state, cells, _longest_note(state, entries), plan.across == 1, len(names) > 1)
    for at, place in enumerate(plan.places):
        gpu, part = entries[plan.first + at], plan.entries[plan.first + at][1] is not None
        if plan.titles and at % plan.height == 0:
            _titles(grid, Area(area.row, place.column, 1, place.columns), columns)
        _row(grid, place, state, columns, gpu, part)
    if old:
        fade(grid, area)
        corner(grid, area, old)
    if plan.fold:
        _folded(grid, Area(area.row + plan.titles + plan.height, area.column, 1, area.columns), state, plan, gpus)
    elif any(plan.hidden):
        corner(grid, area, hidden_text(state.theme, *plan.hidden))


def _longest_note(state: State, gpus: list[Gpu]) -> int:
    """Return the cells that the notes need, in steps, so that a note that comes or goes moves little."""
    theme, decimal = state.theme, state.settings.decimal
    longest = 0
    for gpu in gpus:
        pieces = notes_and_owners(gpu, notes(state, gpu), 60, theme, decimal)
        longest = max(longest, sum(2 + width(text) for text, _ in pieces))
    return min(64, -(-longest // 8) * 8)


class _Columns:
    """The columns of lines of one width: the vital numbers always, the rest in order of worth as room allows."""

    def __init__(self, gpus: tuple[Gpu, ...], state: State, cells: int, notes: int, named: bool, mixed: bool) -> None:
        decimal = state.settings.decimal
        parts = [part for gpu in gpus for part in (gpu, *gpu.instances)]
        self.index = max(len(label(gpu)) for gpu in gpus)
        self.index = max([self.index, *(1 + len(label(part)) for gpu in gpus for part in gpu.instances)])
        self.temperature = 5 if state.settings.fahrenheit else 4
        memory = max(8, *(len(part_of_whole(gpu.memory_used, gpu.memory_total, decimal)) for gpu in gpus))
        limited = max(6, *(len(power(gpu)) for gpu in gpus))
        active = any(has(part, metric) for part in parts for _, metric in ACTIVITY)
        name = min(20, max(width(short_name(part)) for part in parts))
        owner = owner_cells(parts)
        least = 2 + NARROWEST  # of the worst note, with the space before
        self.bar = self.name = self.activity = self.notes = 0
        self.power, self.memory = 5, 4
        room = cells - (self.index + 1 + 4 + 2 + 4 + 2 + self.temperature + 1 + 5)
        if room < 0:
            self.power = 0

        def afford(more: int) -> bool:
            nonlocal room
            if more > room:
                return False
            room -= more
            return True

        self.flag = 2 if afford(2) else 0
        if afford(2 * 5):
            self.bar = 4
        for wanted in (least + (2 + owner if owner else 0), least):
            if self.flag and not self.notes and afford(wanted - self.flag):
                self.notes = wanted
        if afford(memory - 4):
            self.memory = memory
        if mixed and (shown := min(name, room - 2)) >= min(name, _SHORTEST_NAME) and afford(shown + 2):
            self.name = shown + 2
        if active and afford(3 * 5):
            self.activity = 15
        if afford(limited - 5 + 1):
            self.power = limited + 1
        if self.bar:
            more = min(4, room // 2)
            self.bar += more
            room -= 2 * more
        if self.notes:
            more = max(0, min(notes + 2 - self.notes, room))
            self.notes += more
            room -= more
        if named and not self.name and afford(name + 2):
            self.name = name + 2
        if self.bar:
            self.bar += max(0, min(_LONGEST_BAR - self.bar, room // 2))


def _titles(grid: Grid, area: Area, columns: _Columns) -> None:
    row, column = area.row, area.column + columns.index + 1 + columns.name
    bar = columns.bar + 1 if columns.bar else 0
    draw(grid, row, column, "UTIL", "label")
    column += bar + 4
    if columns.activity:
        column = draw(grid, row, column, "   SM TENS DRAM", "label")
    column += 2
    draw(grid, row, column, "MEMORY" if bar or columns.memory > 4 else " MEM", "label")
    column += bar + columns.memory + 2
    column = draw(grid, row, column, f"{'TEMP':>{columns.temperature}}", "label") + 1
    if columns.power:
        draw(grid, row, column, f"{'POWER':>{columns.power}}", "label")


def _row(grid: Grid, area: Area, state: State, columns: _Columns, gpu: Gpu, part: bool) -> None:
    row, column, theme = area.row, area.column, state.theme
    if part:
        grid.put(row, column, f"{theme.glyph('└', '-') + label(gpu):>{columns.index}}", "border")
    else:
        grid.put(row, column, f"{label(gpu):>{columns.index}}", mark(gpu, state))
    column += columns.index + 1
    if columns.name:
        grid.put(row, column, fit(short_name(gpu), columns.name - 2, theme.more), "calm")
        column += columns.name
    words, style = silence(gpu, state.shown.time if state.shown else 0.0)
    if words:
        grid.put(row, column, fit(words, area.column + area.columns - column, theme.more), style)
        return
    use, bar = gpu.utilization, columns.bar
    if bar:
        column = gauge(grid, row, column, state, fraction(use), bar, share_style(use)) + 1
    column = draw(grid, row, column, f"{percent(use):>4}", share_style(use))
    if columns.activity:
        column = _numbers(grid, row, column, state, gpu)
    column += 2
    if bar:
        column = gauge(grid, row, column, state, fraction(gpu.memory_percent), bar, memory_style(gpu)) + 1
    if columns.memory > 4:
        text, style = part_of_whole(gpu.memory_used, gpu.memory_total, state.settings.decimal), "calm"
    else:
        text, style = percent(gpu.memory_percent), memory_style(gpu)
    column = draw(grid, row, column, f"{text:>{columns.memory}}", style) + 2
    text = degrees(gpu.temperature, theme, state.settings.fahrenheit)
    column = draw(grid, row, column, f"{text:>{columns.temperature}}", severity(Gpu.temperature, gpu)) + 1
    if columns.power:
        text = power(gpu) if columns.power > 5 else power(gpu, limit=False).replace(" ", "")
        column = draw(grid, row, column, f"{text:>{columns.power}}", "calm")
    room = area.column + area.columns - column - 2
    if columns.notes:
        who(grid, row, column + 2, room, state, notes(state, gpu), gpu)
    elif columns.flag and worst(gpu, notes(state, gpu), theme)[1] == "critical":
        draw(grid, row, column + 1, "!", "critical")


def _numbers(grid: Grid, row: int, column: int, state: State, gpu: Gpu) -> int:
    for _, metric in ACTIVITY:
        value = gpu.get(metric.key)
        share = value if isinstance(value, (int, float)) else None
        pending = share is None and gpu.gaps.get(metric.key) == "pending"
        text = state.theme.more if pending else MISSING if share is None else f"{share:.0f}"
        column = draw(grid, row, column, f"{text:>5}", share_style(share))
    return column


def _folded(grid: Grid, area: Area, state: State, plan: GpuPlan, gpus: tuple[Gpu, ...]) -> None:
    """Draw the row below the lines: how many are not visible, and what is wrong with which of them, the worst first."""
    column = grid.put(area.row, area.column, hidden_text(state.theme, *plan.hidden), "label", area.columns)
    end = area.column + area.columns
    wrong: dict[tuple[str, str], list[str]] = {}
    for at, part in (*plan.entries[: plan.first], *plan.entries[plan.first + len(plan.places) :]):
        gpu = gpus[at] if part is None else gpus[at].instances[part]
        name = label(gpus[at]) if part is None else f"{label(gpus[at])}:{label(gpu)}"
        wrong.setdefault(worst(gpu, notes(state, gpu), state.theme), []).append(name)
    wrong.pop(("", ""), None)
    for (text, style), names in sorted(wrong.items(), key=lambda each: each[0][1] != "critical"):
        for told in (f"{ranges(names)} {text}", f"{len(names)} {text}" if len(names) > 1 else ""):
            if told and column + 2 + width(told) <= end:
                column = grid.put(area.row, column + 2, told, style)
                break
