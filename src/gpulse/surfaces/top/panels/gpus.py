"""The GPUs: a card for each where there is room, else a line; what does not answer says so."""

from __future__ import annotations

from ....model.catalog import Gpu
from ....present.cells import MISSING, severity
from ....present.text import fit, width
from ....present.verdicts import QUIET, short
from ....present.verdicts import style as verdict_style
from ....present.words import (
    degrees,
    has,
    label,
    memory_style,
    notes_and_owners,
    of,
    power,
    remarks,
    share_style,
    short_name,
    silence,
)
from ....units import duration_text
from ..area import Area
from ..grid import draw
from ..layout import GAP, card_rows, shape_of, split

TYPE_CHECKING = False
if TYPE_CHECKING:
    from ....model.metric import Number
    from ..grid import Grid
    from ..state import State

_ACTIVITY = (("SM", Gpu.sm_active), ("tensor", Gpu.tensor_active), ("DRAM", Gpu.dram_active))
_STALE = 3  # intervals after which what is on screen is no longer what is
_LONGEST_BAR = 24
_REMARKED = frozenset(
    {"thermal_throttled", "hw_slowdown", "fault", "orphaned_memory"}
)  # shown as remarks of the moment
_NOTES = 11  # cells in which a reason or a name fits, with the space before


def paint(grid: Grid, area: Area, state: State) -> None:
    """Draw every GPU as large as the area allows; what is older than three intervals is pale and says its age."""
    if area.rows <= 0 or area.columns <= 0:
        return
    sample = state.shown
    if sample is None or not sample.gpus:
        words = "waiting for the first sample" if sample is None else "no GPU"
        grid.put(area.row, area.column, words + (state.theme.more if sample is None else ""), "label", area.columns)
        return
    shape = shape_of(sample.gpus, area.columns, area.rows)
    old = stale(state)
    if shape.cards and shape.rows <= area.rows:
        _cards(grid, area, state, sample.gpus, shape.across, old)
    else:
        _lines(grid, area, state, shape.across, old)


def stale(state: State) -> str:
    """Return how old the newest sample is, in words, when it is older than it should be; else nothing."""
    if state.shown is None or state.back or state.paused:
        return ""
    age = state.now - state.shown.time
    return f"{duration_text(age)} old" if age > _STALE * state.settings.interval else ""


# --- cards


def _cards(grid: Grid, area: Area, state: State, gpus: tuple[Gpu, ...], across: int, old: str) -> None:
    row = area.row
    for at, height in enumerate(card_rows(gpus, across)):
        places = split(Area(row, area.column, height, area.columns), across)
        for gpu, place in zip(gpus[at * across : (at + 1) * across], places, strict=False):
            _card(grid, place, state, gpu, old)
        row += height


def _card(grid: Grid, area: Area, state: State, gpu: Gpu, old: str) -> None:
    _card_body(grid, area, state, gpu, _title(grid, area, state, gpu, old))
    if old:
        _fade(grid, Area(area.row + 1, area.column, area.rows - 1, area.columns))


def _card_body(grid: Grid, area: Area, state: State, gpu: Gpu, below: list[tuple[str, str]]) -> None:
    sample = state.shown
    words, style = silence(gpu, sample.time if sample else 0.0)
    if words:
        grid.put(area.row + 1, area.column, fit(words, area.columns, state.theme.more), style)
        return
    rest = [(name, metric) for name, metric in _ACTIVITY if has(gpu, metric)]
    right = max(20, (area.columns - GAP) * 9 // 20) if rest else 0
    left = area.columns - (right + GAP if rest else 0)
    memory = of(gpu.memory_used, gpu.memory_total, state.settings.decimal)
    bar = left - 5 - 14
    _use(grid, area, state, gpu, bar)
    row, column = area.row + 2, draw(grid, area.row + 2, area.column, "mem  ", "label")
    column = _gauge(grid, row, column, state, _part(gpu.memory_percent), bar, memory_style(gpu))
    grid.put(row, column, f"{memory:>14}", "calm", 14)
    for at, (name, metric) in enumerate(rest):
        _activity(grid, area.row + 1 + at, area.column + left + GAP, right, state, name, gpu, metric)
    row = area.row + 3
    if below or gpu.processes or len(rest) == len(_ACTIVITY):
        _who(grid, row, area.column, left if len(rest) == len(_ACTIVITY) else area.columns, state, below, gpu)
        row += 1
    for at, part in enumerate(gpu.instances):
        _part_row(grid, Area(row + at, area.column, 1, area.columns), state, part)


def _title(grid: Grid, area: Area, state: State, gpu: Gpu, old: str) -> list[tuple[str, str]]:
    """Draw number and name at the left, heat and power at the right, a rule between; return the notes that found no room."""
    theme, row, end = state.theme, area.row, area.column + area.columns
    mute = bool(silence(gpu, 0.0)[0])
    notes = [] if mute else [*remarks(gpu, clock=False, decimal=state.settings.decimal), *limit(state, gpu)]
    facts = [] if mute else _facts(gpu, state)
    if old:
        facts = [(old, "warn"), *((text, "faint") for text, _ in facts)]
    taken = sum(2 + width(text) for text, _ in facts)
    column = grid.put(row, area.column, label(gpu), _mark(gpu, state), area.columns)
    name = fit(short_name(gpu), max(0, area.columns - taken - (column - area.column) - 2), theme.more)
    column = grid.put(row, column + 1, name, "title", end - column - 1) + 1
    room = end - column - taken - 3
    shown: list[tuple[str, str]] = []
    for note in notes:
        if sum(2 + width(text) for text, _ in [*shown, note]) > room:
            break
        shown.append(note)
    facts = shown + facts
    start = end - sum(2 + width(text) for text, _ in facts) + (1 if facts else 0)
    draw(grid, row, column, theme.glyph("─", "-") * (start - column), "border")
    column = start + (1 if facts else 0)
    for text, style in facts:
        column = grid.put(row, column, text, style, end - column) + 2
    return notes[len(shown) :]


def limit(state: State, gpu: Gpu) -> list[tuple[str, str]]:
    """Return in a few words what limits a GPU; nothing where that is not known, or where a remark says it already."""
    verdict = None if state.back else next((one for one in state.diagnosis if one.uuid == gpu.uuid), None)
    if verdict is None or verdict.key in QUIET or verdict.key in _REMARKED:
        return []
    return [(short(verdict), verdict_style(verdict))]


def _facts(gpu: Gpu, state: State) -> list[tuple[str, str]]:
    facts = [] if gpu.fan_speed is None else [(f"fan {gpu.fan_speed:.0f}%", "label")]
    facts.append((degrees(gpu.temperature, state.theme, state.settings.fahrenheit), severity(Gpu.temperature, gpu)))
    return [*facts, (f"{power(gpu):>9}", "calm")]


def _use(grid: Grid, area: Area, state: State, gpu: Gpu, bar: int) -> None:
    use, row = gpu.utilization, area.row + 1
    column = _gauge(grid, row, draw(grid, row, area.column, "util ", "label"), state, _part(use), bar, share_style(use))
    draw(grid, row, column, f"{_percent(use):>5}", share_style(use))
    if gpu.clock_sm is not None:
        alarm = severity(Gpu.throttle_reasons, gpu) == "critical"
        draw(grid, row, column + 5, f"{gpu.clock_sm:5.0f} MHz", "critical" if alarm else "label")


def _activity(grid: Grid, row: int, column: int, cells: int, state: State, name: str, gpu: Gpu, metric: Number) -> None:
    value = gpu.get(metric.key)
    share = value if isinstance(value, (int, float)) else None
    text = state.theme.more if share is None and gpu.gaps.get(metric.key) == "pending" else _percent(share)
    column = draw(grid, row, column, f"{name:7}", "label")
    column = _gauge(grid, row, column, state, _part(share), cells - 12, share_style(share))
    draw(grid, row, column, f"{text:>5}", share_style(share))


def _part_row(grid: Grid, area: Area, state: State, part: Gpu) -> None:
    """Draw a MIG instance: its size, its memory, how busy its SMs are, who."""
    name = short_name(part).removeprefix("MIG ")
    column = draw(grid, area.row, area.column, state.theme.glyph("└ ", "- "), "border")
    grid.put(area.row, column, fit(name, 10, state.theme.more), "calm")
    bar = max(0, min(_LONGEST_BAR, area.columns - 13 - 14 - 9 - (14 if part.processes else 0)))
    column = _gauge(grid, area.row, column + 11, state, _part(part.memory_percent), bar, memory_style(part))
    memory = of(part.memory_used, part.memory_total, state.settings.decimal)
    column = grid.put(area.row, column, f"{memory:>14}", "calm", 14)
    if has(part, Gpu.sm_active):
        column = grid.put(area.row, column, f"  SM {_percent(part.sm_active):>4}", share_style(part.sm_active))
    _who(grid, area.row, column + 2, area.column + area.columns - column - 2, state, [], part)


def _who(grid: Grid, row: int, column: int, room: int, state: State, notes: list[tuple[str, str]], gpu: Gpu) -> None:
    for text, style in notes_and_owners(gpu, notes, room, state.theme, state.settings.decimal):
        column = grid.put(row, column, text, style)


# --- lines


class _Columns:
    """The columns of lines of one width: the vital numbers always, the rest in order of worth as room allows."""

    def __init__(self, gpus: tuple[Gpu, ...], state: State, cells: int, notes: int, named: bool) -> None:
        decimal = state.settings.decimal
        parts = [part for gpu in gpus for part in (gpu, *gpu.instances)]
        self.index = max(len(label(gpu)) for gpu in gpus)
        self.index = max([self.index, *(1 + len(label(part)) for gpu in gpus for part in gpu.instances)])
        self.temperature = 5 if state.settings.fahrenheit else 4
        memory = max(8, *(len(of(gpu.memory_used, gpu.memory_total, decimal)) for gpu in gpus))
        limited = max(6, *(len(power(gpu)) for gpu in gpus))
        active = any(has(part, metric) for part in parts for _, metric in _ACTIVITY)
        name = min(20, max(width(short_name(part)) for part in parts))
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
        if afford(memory - 4):
            self.memory = memory
        if active and afford(3 * 5):
            self.activity = 15
        if afford(limited - 5 + 1):
            self.power = limited + 1
        if self.flag and room + self.flag >= _NOTES:
            room -= _NOTES - self.flag
            self.notes = _NOTES
        if self.bar:
            more = min(4, room // 2)
            self.bar += more
            room -= 2 * more
        if named and afford(name + 2):
            self.name = name + 2
        if self.notes:
            more = max(0, min(notes + 2 - self.notes, room))
            self.notes += more
            room -= more
        if self.bar:
            self.bar += max(0, min(_LONGEST_BAR - self.bar, room // 2))


def _lines(grid: Grid, area: Area, state: State, across: int, old: str) -> None:
    sample = state.shown
    gpus = sample.gpus if sample else ()
    entries = [(part, part is not gpu) for gpu in gpus for part in (gpu, *gpu.instances)]
    titles = 1 if area.rows >= 3 else 0
    height = area.rows - titles
    first = max(0, min(state.gpu_scrolled, len(entries) - height * across))
    shown = entries[first : first + height * across]
    height = min(height, -(-len(shown) // across))
    places = split(Area(area.row, area.column, area.rows, area.columns), across)
    longest = max(
        sum(
            2 + width(text)
            for text, _ in notes_and_owners(
                gpu, [*remarks(gpu), *limit(state, gpu)], 60, state.theme, state.settings.decimal
            )
        )
        for gpu, _ in entries
    )
    names = {short_name(part) for part, _ in entries}
    longest = min(64, -(-longest // 8) * 8)  # in steps: a note that comes or goes moves little
    columns = _Columns(gpus, state, places[0].columns, longest, len(names) > 1 or across == 1)
    for at, place in enumerate(places):
        mine = shown[at * height : (at + 1) * height]
        if titles and mine:
            _titles(grid, place, columns)
        for row, (gpu, part) in enumerate(mine):
            _row(grid, Area(place.row + titles + row, place.column, 1, place.columns), state, columns, gpu, part)
    if old:
        _fade(grid, area)
        _corner(grid, area, old)
    if len(shown) < len(entries):
        _scrolled(grid, area, state, first, len(entries) - first - len(shown))


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
        grid.put(row, column, f"{label(gpu):>{columns.index}}", _mark(gpu, state))
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
        column = _gauge(grid, row, column, state, _part(use), bar, share_style(use)) + 1
    column = draw(grid, row, column, f"{_percent(use):>4}", share_style(use))
    if columns.activity:
        column = _numbers(grid, row, column, state, gpu)
    column += 2
    if bar:
        column = _gauge(grid, row, column, state, _part(gpu.memory_percent), bar, memory_style(gpu)) + 1
    if columns.memory > 4:
        text, style = of(gpu.memory_used, gpu.memory_total, state.settings.decimal), "calm"
    else:
        text, style = _percent(gpu.memory_percent), memory_style(gpu)
    column = draw(grid, row, column, f"{text:>{columns.memory}}", style) + 2
    text = degrees(gpu.temperature, theme, state.settings.fahrenheit)
    column = draw(grid, row, column, f"{text:>{columns.temperature}}", severity(Gpu.temperature, gpu)) + 1
    if columns.power:
        text = power(gpu) if columns.power > 5 else power(gpu, limit=False).replace(" ", "")
        column = draw(grid, row, column, f"{text:>{columns.power}}", "calm")
    notes = [*remarks(gpu, clock=columns.notes >= 20, decimal=state.settings.decimal), *limit(state, gpu)]
    room = area.column + area.columns - column - 2
    if columns.notes:
        _who(grid, row, column + 2, room, state, notes, gpu)
    elif columns.flag and any(style == "critical" for _, style in notes):
        draw(grid, row, column + 1, "!", "critical")


def _numbers(grid: Grid, row: int, column: int, state: State, gpu: Gpu) -> int:
    for _, metric in _ACTIVITY:
        value = gpu.get(metric.key)
        share = value if isinstance(value, (int, float)) else None
        pending = share is None and gpu.gaps.get(metric.key) == "pending"
        text = state.theme.more if pending else MISSING if share is None else f"{share:.0f}"
        column = draw(grid, row, column, f"{text:>5}", share_style(share))
    return column


def _scrolled(grid: Grid, area: Area, state: State, above: int, below: int) -> None:
    up, down = (state.theme.glyph("↑", "^"), state.theme.glyph("↓", "v"))
    text = " ".join(([f"{up}{above}"] if above else []) + ([f"{down}{below}"] if below else []))
    _corner(grid, area, text)


# --- both


def _mark(gpu: Gpu, state: State) -> str:
    """Return the style of a GPU's number: the one whose charts are shown stands out."""
    return "selected" if state.chart_gpu is not None and gpu.index == state.chart_gpu else "accent"


def _fade(grid: Grid, area: Area) -> None:
    """Take the colours out of an area: what it shows is no longer so."""
    for row in range(area.row, area.end):
        grid.restyle(row, area.column, area.columns, "faint")


def _corner(grid: Grid, area: Area, text: str) -> None:
    """Write at the right end of the first row; a word that stands there goes as a whole."""
    start = area.column + max(0, area.columns - len(text) - 1)
    while start > area.column and grid.chars[area.row][start] != " ":
        start -= 1
    end = area.column + area.columns
    draw(grid, area.row, start, f"{text:>{end - start}}", "warn")


def _gauge(grid: Grid, row: int, column: int, state: State, share: float | None, cells: int, style: str) -> int:
    filled, empty = state.theme.bar(share, max(0, cells))
    return draw(grid, row, draw(grid, row, column, filled, style), empty, "track")


def _part(percent: float | None) -> float | None:
    return None if percent is None else percent / 100


def _percent(share: float | None) -> str:
    return MISSING if share is None else f"{share:.0f}%"
