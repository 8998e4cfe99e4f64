"""The process table: titles to click on, the rows that fit, the cursor, tags and what is missing."""

from __future__ import annotations

from functools import lru_cache

from ....model.catalog import OWNERS, PROCESS_METRICS
from ....model.metric import Number
from ....model.process_filter import ProcessFilter
from ....present.cells import MISSING, value_text
from ....present.line import wrapped_lines
from ....present.text import clean, fit, fit_name, pad, width
from ....present.words import GAPS, heading, problem_text
from ....screen.grid import draw_styled
from ....units import BYTES, SECOND
from ..processes import all_rows, filter_text, pids, rows

TYPE_CHECKING = False
if TYPE_CHECKING:
    from ....model.metric import Value
    from ....model.snapshot import Snapshot
    from ....present.line import Line
    from ....present.theme import Theme
    from ....screen.grid import Grid
    from ..layout import Area
    from ..processes import ProcessRow
    from ..state import State

_MARKS = 2  # cells before the first column: the cursor and the tag
_GAP = 1
_SIZE = 8  # cells of any size: 71.2 GiB
_DURATION = 6  # cells of any duration below 100 days: 12m05s
_OWNERS = ("job", "container")  # shown without being chosen if there is space
_ENOUGH = 40  # cells of the command that these leave
_LEAST = 12  # cells the last column keeps while others can go
_MOST = {"user": 12, "name": 16, "container": 14, "pod": 24, "job": 16, "type": 5, "gpu": 7}
# What a narrow screen does without, first to go first; whose process it is and how much it holds go last.
_DISPENSABLE = (
    "children", "encoder_utilization", "decoder_utilization", "tree_cpu_percent", "memory_utilization", "type", "pod",
    "name", "host_memory", "container", "running_time", "job", "cpu_percent", "sm_utilization", "user", "gpu",
    "memory_used", "pid",
)  # fmt: skip
_STYLES = {"gpu": "accent", "command": "label", "user": "user"}
_MOST_TEXTS = 20_000
_WHY = {**GAPS, "skipped": "not recorded"}


class ProcessColumn:
    """A column on screen: which key, where it begins in the area, and how many cells it has."""

    __slots__ = ("cells", "key", "right", "start", "title")

    def __init__(self, key: str, cells: int) -> None:
        metric = PROCESS_METRICS.get(key)
        self.key = key
        self.title = "GPU" if metric is None else metric.short.upper()
        self.right = isinstance(metric, Number)
        self.start = 0
        # room for the mark of the sorted column, so that sorting by another one moves nothing; on the left it takes the gap
        self.cells = max(cells, width(self.title) + (1 if self.right else 0))


@lru_cache(1)
def me() -> str:
    """Return the name of the user who looks, or the number where it has no name."""
    import os
    import pwd

    try:
        return pwd.getpwuid(os.getuid()).pw_name
    except KeyError:
        return str(os.getuid())


def paint(grid: Grid, area: Area, state: State) -> None:
    """Draw titles and rows into an area of any size; the state stays as it is."""
    if not area.rows or not area.columns:
        return
    found = rows(state.shown, state)
    columns = layout(found, state, area.columns)
    _titles(grid, area, state, columns)
    told = _notes(area, state)
    for at, line in enumerate(told, area.end - len(told)):
        grid.line(at, area.column + _MARKS, line, area.columns - _MARKS)
    if not found:
        _remark(grid, area, state, columns, (0, 0, 0))
        _nothing(grid, area, state)
        return
    first, last = window(found, state, _height(area, state))
    # other users are dimmed only for a user who has processes here
    mine = me() if any(row.pid is not None and row.process.get("user") == me() for row in found) else None
    for at, row in enumerate(found[first:last], area.row + 1):
        _row(grid, at, area, row, columns, state, mine)
    _scroll_marks(grid, area, state, (first, last, len(found)))
    _remark(grid, area, state, columns, (first, last, len(found)))


def column_at(area: Area, state: State, x: int) -> str | None:
    """Return the key of the column that a screen column belongs to."""
    inside = x - area.column
    if not 0 <= inside < area.columns:
        return None
    for column in layout(rows(state.shown, state), state, area.columns):
        if column.start <= inside < column.start + column.cells + _GAP:
            return column.key
    return None


def row_at(area: Area, state: State, y: int) -> int | None:
    """Return the pid of the process drawn in a screen row; None for titles, heads of groups and blank rows."""
    found = rows(state.shown, state)
    first, last = window(found, state, _height(area, state))
    at = first + y - area.row - 1
    return found[at].pid if first <= at < last else None


def page(area: Area, state: State) -> int:
    """Return how many rows are seen at once, at least one."""
    return max(1, _height(area, state))


def window(found: list[ProcessRow], state: State, height: int) -> tuple[int, int]:
    """Return which rows are seen, the last one not included: from `state.scrolled`, moved so that the selected one is there."""
    first = max(0, min(state.scrolled, len(found) - height))
    if state.selected is not None and height > 0:
        where = [at for at, row in enumerate(found) if row.pid == state.selected]
        if where and not any(first <= at < first + height for at in where):
            first = where[0] if where[0] < first else where[0] - height + 1
    return first, min(len(found), first + max(0, height))


class _LastRows:
    """The columns made last, and what for: walking 5,000 rows for each click and frame would be felt."""

    rows: list[ProcessRow] | None = None
    asked: tuple[tuple[str, ...], int, bool] = ((), 0, False)
    columns: list[ProcessColumn] = []


def layout(found: list[ProcessRow], state: State, columns: int) -> list[ProcessColumn]:
    """Return the columns that fit, placed; the last one takes what is left."""
    asked = (tuple(state.settings.columns), columns, state.settings.decimal)
    if _LastRows.rows is not found or _LastRows.asked != asked:
        _LastRows.columns = _placed(_with_owners(_kept(_wished(found, state), columns), found, columns), columns)
        _LastRows.rows, _LastRows.asked = found, asked
    return _LastRows.columns


def _wished(found: list[ProcessRow], state: State) -> list[ProcessColumn]:
    keys = [key for key in dict.fromkeys(state.settings.columns) if key == "gpu" or key in PROCESS_METRICS]
    return [ProcessColumn(key, _LEAST if key == "command" else _cells(key, found)) for key in keys]


def _cells(key: str, found: list[ProcessRow]) -> int:
    """Return how many cells the values of a column need, up to what is sensible."""
    if key == "gpu":
        return min(_MOST["gpu"], max([0, *(len(row.gpu) for row in found)]))
    metric = PROCESS_METRICS[key]
    if metric.unit is BYTES:
        return _SIZE
    if not found:
        return 0
    values = [value for row in found if (value := row.process.get(key)) is not None]
    if isinstance(metric, Number):
        # the widest number is the largest, so only that one is written out; durations are six cells from 10m on
        cells = width(value_text(metric, max(values, default=0)))
        return max(_DURATION, cells) if metric.unit is SECOND else cells
    return min(_MOST.get(key, 20), max([0, *(width(clean(str(text))) for text in dict.fromkeys(values))]))


def _kept(columns: list[ProcessColumn], room: int) -> list[ProcessColumn]:
    for key in _DISPENSABLE:
        if len(columns) <= 1 or _MARKS + sum(column.cells + _GAP for column in columns) - _GAP <= room:
            break
        columns = [column for column in columns if column.key != key or column is columns[-1]]
    return columns


def _with_owners(columns: list[ProcessColumn], found: list[ProcessRow], room: int) -> list[ProcessColumn]:
    """Add job and container where a process has one and the command keeps enough space."""
    if not columns or columns[-1].key != "command":
        return columns
    for key in _OWNERS:
        left = room - _MARKS - sum(column.cells + _GAP for column in columns[:-1])
        if all(column.key != key for column in columns) and any(row.process.get(key) for row in found):
            extra = ProcessColumn(key, _cells(key, found))
            if left - extra.cells - _GAP >= _ENOUGH:
                columns = [*columns[:-1], extra, columns[-1]]
    return columns


def _placed(columns: list[ProcessColumn], room: int) -> list[ProcessColumn]:
    at = _MARKS
    for column in columns:
        column.start = at
        column.cells = max(0, min(column.cells, room - at))
        at += column.cells + _GAP
    if columns and not columns[-1].right:
        columns[-1].cells = max(0, room - columns[-1].start)
    return columns


def _titles(grid: Grid, area: Area, state: State, columns: list[ProcessColumn]) -> None:
    grid.fill(area.row, area.column, 1, area.columns)
    mark = state.theme.glyph("▼", "v") if state.falling else state.theme.glyph("▲", "^")
    for column in columns:
        chosen = column.key == state.sort
        cells = min(column.cells + (0 if column.right else _GAP), area.columns - column.start)
        metric = PROCESS_METRICS.get(column.key)
        word = column.title if metric is None or state.shown is None else heading(metric, state.shown.gpus).upper()
        title = pad(fit(word + (mark if chosen else ""), cells, ""), cells, column.right)
        grid.put(area.row, area.column + column.start, title, "accent" if chosen else "label", cells)


def _row(
    grid: Grid, at: int, area: Area, row: ProcessRow, columns: list[ProcessColumn], state: State, mine: str | None
) -> None:
    selected = row.pid is not None and row.pid == state.selected
    user = row.process.get("user")
    others = mine is not None and user not in (None, mine)
    whole = "title" if row.head else "faint" if row.launcher or others else ""
    if selected:
        whole = "selected"
        grid.fill(at, area.column, 1, area.columns, whole)
        grid.put(at, area.column, state.theme.glyph("▸", ">"), whole, area.columns)  # seen without colours too
    if row.pid in state.tagged:
        grid.put(at, area.column + 1, state.theme.glyph("●", "*"), whole or "accent", area.columns - 1)
    known = _CellTexts.of(state)
    texts, styles = [], []
    for column in columns:
        key, style = column.key, _STYLES.get(column.key, "calm")
        if key == "gpu":
            value: Value | None = row.gpu
        elif key == "command":
            value = _command(row, state)
        elif (value := row.process.get(key)) is None:
            value, style = ("", "") if row.head or row.launcher else (None, "faint")
        text = known.get((key, column.cells, value))
        texts.append(_CellTexts.written(column, value, state) if text is None else text)
        styles.append(whole or style)
    line = " ".join(texts)
    if line.isascii():  # at once, with the gaps between the columns
        cells = tuple(map(len, texts))
        draw_styled(grid, at, area.column + _MARKS, line, _row_styles(tuple(styles), cells, whole if selected else ""))
        return
    for column, text, style in zip(columns, texts, styles, strict=True):
        grid.put(at, area.column + column.start, text, style, column.cells)


@lru_cache(512)
def _row_styles(styles: tuple[str, ...], cells: tuple[int, ...], gap: str) -> list[str]:
    """Return the style of each cell of a row: of its columns and of the gaps between them."""
    return [style for each, count in zip(styles, cells, strict=True) for style in (*[each] * count, *[gap] * _GAP)][
        :-_GAP
    ]


class _CellTexts:
    """Cells as they were written last: most values are the same at every sample, and writing one takes seven calls."""

    made_for: tuple[Theme | None, bool] = (None, False)
    texts: dict[tuple[str, int, object], str] = {}

    @classmethod
    def of(cls, state: State) -> dict[tuple[str, int, object], str]:
        """Return what is known, by column, cells and value."""
        theme, decimal = cls.made_for
        if theme is not state.theme or decimal is not state.settings.decimal or len(cls.texts) > _MOST_TEXTS:
            cls.made_for, cls.texts = (state.theme, state.settings.decimal), {}
        return cls.texts

    @classmethod
    def written(cls, column: ProcessColumn, value: Value | None, state: State) -> str:
        """Return a value as text, cut and filled to the cells of its column, and keep it."""
        key, theme = column.key, state.theme
        text = value if isinstance(value, str) else value_text(PROCESS_METRICS[key], value, state.settings.decimal)
        text = (fit_name if key in OWNERS else fit)(theme.spelled(clean(text)), column.cells, theme.more)
        found = cls.texts[key, column.cells, value] = pad(text, column.cells, column.right)
        return found


def _command(row: ProcessRow, state: State) -> str:
    if row.head:
        return f"{row.head}: {row.count} process{'' if row.count == 1 else 'es'}"
    return state.theme.spelled(row.branch) + (row.process.command or row.process.name or MISSING)


def _nothing(grid: Grid, area: Area, state: State) -> None:
    if state.shown is None:
        words = "waiting for the first sample"
    elif filter_text(state).strip() and all_rows(state.shown):
        note = ProcessFilter(filter_text(state)).note
        words = "no process matches the filter" + (f" ({note})" if note else "")
    elif _notes(area, state):
        return  # that a list could not be read is said already; it may well be full
    else:
        words = "no process uses a GPU"
    if area.rows > 1:
        grid.put(area.row + 1, area.column + _MARKS, words, "label", area.columns - _MARKS)


def _missing(snapshot: Snapshot | None) -> list[str]:
    """Return a sentence for each reason why lists of processes are missing, with the GPUs it is about, and for each problem."""
    reasons: dict[str, list[str]] = {}
    for at, gpu in enumerate(snapshot.gpus if snapshot else ()):
        why = _WHY.get(gpu.gaps.get("processes", ""))
        if why:
            reasons.setdefault(why, []).append(f"{at if gpu.index is None else gpu.index:.0f}")
    found = [f"processes of GPU {', '.join(which)} not shown: {why}" for why, which in reasons.items()]
    return [*found, *(problem_text(problem) for problem in (snapshot.problems if snapshot else ()))]


def _notes(area: Area, state: State) -> list[Line]:
    """Return the rows at the end of the area that say what is missing, in whole sentences; the titles and half of the rows stay."""
    told: list[Line] = []
    for sentence in _missing(state.shown):
        lines = wrapped_lines([(state.theme.spelled(sentence), "warn")], area.columns - _MARKS)
        if len(told) + len(lines) <= area.rows // 2:
            told += lines
    return told


def _height(area: Area, state: State) -> int:
    return max(0, area.rows - 1 - len(_notes(area, state)))


def _remark(grid: Grid, area: Area, state: State, columns: list[ProcessColumn], seen: tuple[int, int, int]) -> None:
    """Say at the end of the titles which rows are seen, and how many processes an active filter leaves."""
    first, last, total = seen
    part = "" if last - first >= total else f"{first + 1}-{last} of {total}" if last > first else f"{total} rows"
    remarks = [(part, "label")]
    if text := filter_text(state).strip():
        count = f"{len(pids(rows(state.shown, state)))} of {len(pids(all_rows(state.shown))) if state.shown else 0}"
        tail = f", rows {part}" if part else ""
        remarks = [
            (words, "warn") for words in (f"filter {clean(text)}: {count}{tail}", f"filter: {count}{tail}", count)
        ]
    taken = columns[-1].start + min(columns[-1].cells, width(columns[-1].title) + 1) if columns else 0
    for words, style in remarks:
        if words and taken + 1 + width(words) <= area.columns:
            grid.put(area.row, area.column + area.columns - width(words), state.theme.spelled(words), style)
            return


def _scroll_marks(grid: Grid, area: Area, state: State, seen: tuple[int, int, int]) -> None:
    first, last, total = seen
    if last - first >= total:
        return
    edge = area.column + area.columns - 1
    if first > 0 and last > first:
        grid.put(area.row + 1, edge, state.theme.glyph("▲", "^"), "accent", 1)
    if last < total and last > first:
        grid.put(area.row + last - first, edge, state.theme.glyph("▼", "v"), "accent", 1)
