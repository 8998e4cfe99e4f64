"""The GPUs: a card for each where there is room, else a line; a GPU that does not respond is marked."""

from __future__ import annotations

from ....model.catalog import Gpu
from ....present.cells import severity
from ....present.gpu_columns import ACTIVITY, GpuColumns, activity
from ....present.text import fit, width
from ....present.words import (
    degrees,
    has,
    label,
    memory_style,
    narrow,
    notes_and_owners,
    part_of_whole,
    percent,
    power,
    ranges,
    remarks,
    share_style,
    short_name,
    silence,
    worst,
)
from ....screen.grid import draw, draw_styled
from ..layout import CARD, GAP, Area, plan
from . import charts

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from ....model.verdict import Diagnosis
    from ....present.theme import Theme
    from ....present.words import Note
    from ....screen.grid import Grid
    from ..layout import GpuPlan
    from ..state import State

# verdicts shown as remarks of the moment
_REMARKED = frozenset({"thermal_throttled", "hw_slowdown", "lost", "xid", "memory_errors", "orphaned_memory"})
_LONGEST_BAR = 24
_SHORTEST_CHART = 5  # rows


def paint(grid: Grid, area: Area, state: State) -> None:
    """Draw every GPU as large as the area allows; what is older than three intervals is pale and says its age."""
    if area.rows <= 0 or area.columns <= 0:
        return
    sample = state.shown
    if sample is None or not sample.gpus:
        words = f"waiting for the first sample{state.theme.more}" if sample is None else "no GPU"
        grid.put(area.row, area.column, words, "label", area.columns)
        return
    places, old = plan(state, area), state.stale
    if not places.cards:
        _lines(grid, area, state, sample.gpus, places, old)
        return
    for gpu, place in zip(sample.gpus, places.places, strict=False):
        _card(grid, place, state, gpu, old)
        if old:
            _fade(grid, Area(place.row + 1, place.column, place.rows - 1, place.columns))


def _card(grid: Grid, area: Area, state: State, gpu: Gpu, old: str) -> None:
    """Draw bars for use, memory and activity, who uses it, MIG instances, and a chart where the card is tall enough."""
    words, style = silence(gpu, state.shown.time if state.shown else 0.0)
    below = _card_title(grid, area, state, gpu, old, bool(words))
    if words:
        grid.put(area.row + 1, area.column, fit(words, area.columns, state.theme.more), style)
        return
    rest = [(name, metric) for name, metric in ACTIVITY if has(gpu, metric)]
    right = max(20, (area.columns - GAP) * 9 // 20) if rest else 0
    left = area.columns - (right + GAP if rest else 0)
    row, bar, use = area.row + 1, left - 5 - 14, gpu.utilization
    column = _bar_row(grid, row, area.column, state, "util ", use, bar, percent(use))
    if gpu.clock_sm is not None:
        alarm = severity(Gpu.throttle_reasons, gpu) == "critical"
        draw(grid, row, column, f"{gpu.clock_sm:5.0f} MHz", "critical" if alarm else "label")
    row += 1
    column = draw(grid, row, area.column, "mem  ", "label")
    column = _gauge(grid, row, column, state, gpu.memory_percent, bar, memory_style(gpu))
    grid.put(row, column, f"{part_of_whole(gpu.memory_used, gpu.memory_total, state.settings.decimal):>14}", "calm", 14)
    for at, (name, metric) in enumerate(rest):
        share, text = activity(gpu, metric, state.theme)
        text += "" if share is None else "%"
        _bar_row(grid, area.row + 1 + at, area.column + left + GAP, state, f"{name:7}", share, right - 12, text)
    row += 1
    if below or gpu.processes or len(rest) == len(ACTIVITY):
        _who(grid, row, area.column, left if len(rest) == len(ACTIVITY) else area.columns, state, below, gpu)
        row += 1
    for at, part in enumerate(gpu.instances):
        _part_row(grid, Area(row + at, area.column, 1, area.columns), state, part)
    row = area.row + CARD + len(gpu.instances)
    if area.end - row >= _SHORTEST_CHART:
        charts.paint_gpu(grid, Area(row, area.column, area.end - row - 1, area.columns), state, gpu)


def _card_title(grid: Grid, area: Area, state: State, gpu: Gpu, old: str, mute: bool) -> list[Note]:
    """Draw number and name at the left, heat and power at the right, a rule between; return the notes that found no room."""
    theme, row, end = state.theme, area.row, area.column + area.columns
    told = [] if mute else _notes(state, gpu, clock=False)
    facts = []
    if not mute:
        facts += [] if gpu.fan_speed is None else [(f"fan {gpu.fan_speed:.0f}%", "label")]
        facts.append((degrees(gpu.temperature, theme, state.settings.fahrenheit), severity(Gpu.temperature, gpu)))
        facts.append((f"{power(gpu):>9}", "calm"))
    if old:
        facts = [(old, "warn"), *((text, "faint") for text, _ in facts)]
    taken = sum(2 + width(text) for text, _ in facts)
    column = grid.put(row, area.column, label(gpu), _mark(gpu, state), area.columns)
    name = fit(short_name(gpu), max(0, area.columns - taken - (column - area.column) - 2), theme.more)
    column = grid.put(row, column + 1, name, "title", end - column - 1) + 1
    if state.focus == "gpus" and _mark(gpu, state) == "selected":
        grid.restyle(row, area.column, column - 1 - area.column, "selected")
    room = end - column - taken - 3
    shown: list[tuple[str, str]] = []
    for text, style, _ in told:
        room -= 2 + width(text)
        if room < 0:
            break
        shown.append((text, style))
    charts.draw_facts(grid, state, row, column, end, shown + facts)
    return told[len(shown) :]


def _bar_row(
    grid: Grid, row: int, column: int, state: State, name: str, share: float | None, bar: int, text: str
) -> int:
    style = share_style(share)
    drawn, styles = state.theme.gauge(None if share is None else share / 100, max(0, bar), style)
    number = f"{text:>5}"
    styles = [*["label"] * len(name), *styles, *[style] * len(number)]
    return draw_styled(grid, row, column, f"{name}{drawn}{number}", styles)


def _part_row(grid: Grid, area: Area, state: State, part: Gpu) -> None:
    """Draw a MIG instance: its size, its memory, how busy its SMs are, what limits it, who."""
    name = short_name(part).removeprefix("MIG ")
    column = draw(grid, area.row, area.column, state.theme.glyph("└ ", "- "), "border")
    grid.put(area.row, column, fit(name, 10, state.theme.more), "calm")
    told = _limit(state, part)
    bar = max(0, min(_LONGEST_BAR, area.columns - 13 - 14 - 9 - (14 if part.processes or told else 0)))
    column = _gauge(grid, area.row, column + 11, state, part.memory_percent, bar, memory_style(part))
    memory = part_of_whole(part.memory_used, part.memory_total, state.settings.decimal)
    column = grid.put(area.row, column, f"{memory:>14}", "calm", 14)
    if has(part, Gpu.sm_active):
        column = grid.put(area.row, column, f"  SM {percent(part.sm_active):>4}", share_style(part.sm_active))
    _who(grid, area.row, column + 2, area.column + area.columns - column - 2, state, told, part)


def _lines(grid: Grid, area: Area, state: State, gpus: tuple[Gpu, ...], plan: GpuPlan, old: str) -> None:
    """Draw the visible lines, with titles above them; `old` is the age of values that are no longer current, or empty."""
    entries = [gpus[at] if part is None else gpus[at].instances[part] for at, part in plan.entries]
    notes = [_notes(state, gpu) for gpu in entries]
    index = max(len(_label(state, gpus[at], part)) for at, part in plan.entries)
    columns = GpuColumns(
        gpus,
        (plan.places[0].columns if plan.places else area.columns) - index - 1,
        state.theme,
        _longest_note(state, entries, notes),
        named=plan.across == 1,
        shaded=True,
        decimal=state.settings.decimal,
        fahrenheit=state.settings.fahrenheit,
    )
    for at, place in enumerate(plan.places, plan.first):
        if plan.titles and (at - plan.first) % plan.height == 0:
            draw(grid, area.row, place.column + index + 1 + columns.name, columns.titles(), "label")
        whole, part = plan.entries[at]
        number = f"{_label(state, gpus[whole], part):>{index}}"
        grid.put(place.row, place.column, number, "border" if part is not None else _mark(entries[at], state))
        row = Area(place.row, place.column + index + 1, 1, place.columns - index - 1)
        _row(grid, row, state, columns, entries[at], notes[at])
    if old:
        _fade(grid, area)
        _corner(grid, area, old)
    if plan.fold:
        _folded(grid, Area(area.row + plan.titles + plan.height, area.column, 1, area.columns), state, plan, gpus)
    elif any(plan.hidden):
        _corner(grid, area, hidden_text(state.theme, *plan.hidden))


def _longest_note(state: State, gpus: list[Gpu], notes: list[list[Note]]) -> int:
    """Return the cells that the notes need, in steps, so that a note that comes or goes moves little."""
    theme, decimal = state.theme, state.settings.decimal
    longest = 0
    for gpu, told in zip(gpus, notes, strict=True):
        pieces = notes_and_owners(gpu, told, 60, theme, decimal)
        longest = max(longest, sum(2 + width(text) for text, _ in pieces))
    return min(64, -(-longest // 8) * 8)


def _label(state: State, gpu: Gpu, part: int | None) -> str:
    """Return the number of a GPU, or of one of its MIG instances with a branch before it."""
    return label(gpu) if part is None else state.theme.glyph("└", "-") + label(gpu.instances[part])


def _row(grid: Grid, area: Area, state: State, columns: GpuColumns, gpu: Gpu, notes: Sequence[Note]) -> None:
    row, column, theme = area.row, area.column, state.theme
    if columns.name:
        grid.put(row, column, fit(short_name(gpu), columns.name - 2, theme.more), "calm")
        column += columns.name
    words, style = silence(gpu, state.shown.time if state.shown else 0.0)
    if words:
        grid.put(row, column, fit(words, area.column + area.columns - column, theme.more), style)
        return
    column = draw_styled(grid, row, column, *columns.numbers(gpu))
    if columns.notes:
        _who(grid, row, column + 2, area.column + area.columns - column - 2, state, notes, gpu)
    elif columns.flag and worst(gpu, notes, theme)[1] == "critical":
        draw(grid, row, column + 1, "!", "critical")


def _folded(grid: Grid, area: Area, state: State, plan: GpuPlan, gpus: tuple[Gpu, ...]) -> None:
    """Draw the row below the lines: how many are not visible, and what is wrong with which of them, the worst first."""
    column = grid.put(area.row, area.column, hidden_text(state.theme, *plan.hidden), "label", area.columns)
    end = area.column + area.columns
    wrong: dict[tuple[str, str], list[str]] = {}
    for at, part in (*plan.entries[: plan.first], *plan.entries[plan.first + len(plan.places) :]):
        gpu = gpus[at] if part is None else gpus[at].instances[part]
        name = label(gpus[at]) if part is None else f"{label(gpus[at])}:{label(gpu)}"
        wrong.setdefault(worst(gpu, _notes(state, gpu), state.theme), []).append(name)
    wrong.pop(("", ""), None)
    for (text, style), names in sorted(wrong.items(), key=lambda each: each[0][1] != "critical"):
        for told in (f"{ranges(names)} {text}", f"{len(names)} {text}" if len(names) > 1 else ""):
            if told and column + 2 + width(told) <= end:
                column = grid.put(area.row, column + 2, told, style)
                break


def _notes(state: State, gpu: Gpu, clock: bool = True) -> list[Note]:
    """Return what the numbers of a GPU do not say: remarks of the moment, what limits it, video engines in use."""
    return [*remarks(gpu, clock=clock, decimal=state.settings.decimal), *_limit(state, gpu), *_engines(gpu)]


def _limit(state: State, gpu: Gpu) -> list[Note]:
    """Return in a few words what limits a GPU or MIG instance; nothing where that is not known, or where a remark says it already."""
    if state.back or not state.diagnosis:
        return []
    if _Limits.diagnosis is not state.diagnosis:
        from ....present.verdicts import QUIET, short, style  # loaded after the first frame

        _Limits.diagnosis = state.diagnosis
        _Limits.notes = {
            one.uuid: (short(one), style(one), narrow(short(one)))
            for one in reversed(state.diagnosis)
            if one.key not in QUIET and one.key not in _REMARKED
        }
    found = _Limits.notes.get(gpu.uuid)
    return [] if found is None else [found]


class _Limits:
    """The notes of the last judgement, by UUID: looking for its verdict among those of 64 GPUs would take longer than drawing one."""

    diagnosis: Diagnosis | None = None
    notes: dict[str | None, Note] = {}


def _engines(gpu: Gpu) -> list[Note]:
    """Return the use of the video engines, only where they are used: most GPUs here never touch them."""
    shares = (("enc", gpu.encoder_utilization), ("dec", gpu.decoder_utilization), ("video", gpu.video_utilization))
    return [(text := f"{name} {share:.0f}%", "busy", text) for name, share in shares if share]


def _who(grid: Grid, row: int, column: int, room: int, state: State, notes: Sequence[Note], gpu: Gpu) -> None:
    """Write notes and owners, as many as fit into `room` cells."""
    for text, style in notes_and_owners(gpu, notes, room, state.theme, state.settings.decimal):
        column = grid.put(row, column, text, style)


def _mark(gpu: Gpu, state: State) -> str:
    """Return the style of a GPU's number: the one under the cursor, whose charts are shown, stands out."""
    return "selected" if state.chart_gpu is not None and gpu.index == state.chart_gpu else "accent"


def _fade(grid: Grid, area: Area) -> None:
    """Take the colors out of an area: what it shows is no longer so."""
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
    """Draw a bar of a percentage and return the column after it."""
    text, styles = state.theme.gauge(None if share is None else share / 100, max(0, cells), style)
    return draw_styled(grid, row, column, text, styles)


def hidden_text(theme: Theme, above: int, below: int) -> str:
    """Return how many lines are above and below what is visible: ↑3 ↓40 more."""
    marks = ((theme.glyph("↑", "^"), above), (theme.glyph("↓", "v"), below))
    return " ".join([*(f"{mark}{count}" for mark, count in marks if count > 0), "more"])
