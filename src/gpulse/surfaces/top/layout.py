"""The layout of the panels and of the GPUs in theirs: a pure function of the screen size and the content."""

from __future__ import annotations

from ...value import Value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from ...model.catalog import Gpu
    from .state import State

PANELS = ("header", "problems", "gpus", "serving", "charts", "host", "processes", "events", "footer")
CARD, GAP = 4, 2  # rows of a card without MIG instances; columns between adjacent items
_NARROWEST_CARD, _WIDEST_CARD = 48, 110
_NARROWEST_LINE = 36
_CHARTS, _TABLE = 6, 5  # minimum rows of a chart and of the process table
_SHORTEST_TABLE = 3  # where that shows every GPU, or the screen is small
_SERVERS = 3  # rows of model servers at most
_SERVING = 14  # rows between header and footer from which they are shown
_ROOMY = 8  # rows between header and footer from which one says what is wrong
_TALLEST_CHARTS = 20
_CARD_SHARES = (0.2, 0.35, 0.5)  # share of the screen for cards; beyond it, cards get narrower first
_GROWN = 5  # rows from which a maximized card has a chart
_LINES_SHARE = 0.6  # share of the screen for lines; beyond it, they are set in several columns


class Area(Value):
    """Where a panel may draw: its first row and column, and the number of rows and columns, which may be 0."""

    row: int
    column: int
    rows: int
    columns: int

    def __init__(self, row: int, column: int, rows: int, columns: int) -> None:
        self.row = row
        self.column = column
        self.rows = max(0, rows)
        self.columns = max(0, columns)

    @property
    def end(self) -> int:
        """The row after the last."""
        return self.row + self.rows

    def holds(self, row: int, column: int) -> bool:
        """Return whether a cell is inside."""
        return self.row <= row < self.end and self.column <= column < self.column + self.columns


class Shape(Value):
    """How the GPUs are drawn: as cards or lines, how many per row, and the number of rows."""

    cards: bool
    across: int
    rows: int


def arrange(state: State) -> dict[str, Area]:
    """Return the area of each panel by name; a hidden panel, or one without space, has no rows.

    Areas never overlap and never leave the screen, whatever its size.
    """
    columns, rows = max(0, state.columns), max(0, state.rows)
    top = min(1, rows)
    bottom = 1 if rows >= 3 else 0
    heights = dict.fromkeys(PANELS, 0)
    heights["header"], heights["footer"] = top, bottom
    body = rows - top - bottom
    if state.concerns and not state.back and body >= _ROOMY:  # the past is not judged
        heights["problems"] = 1
        body -= 1
    if state.enlarged in ("gpus", "charts", "host", "processes"):
        heights[state.enlarged] = body
    else:
        _share(heights, state, columns, body)
    areas, row = {}, 0
    for name in PANELS:
        areas[name] = Area(row, 0, heights[name], columns)
        row += heights[name]
    areas["footer"] = Area(rows - bottom, 0, bottom, columns)
    areas["events"] = Area(rows - bottom - heights["events"], 0, heights["events"], columns)
    return areas


def _share(heights: dict[str, int], state: State, columns: int, body: int) -> None:
    """Distribute the rows between header and footer among the panels, GPUs first."""
    # on 24 rows, what is wrong now stands in place of the last event, so that eight GPUs keep a line each
    heights["events"] = 1 if body >= (22 if heights["problems"] else 14) else 0
    body -= heights["events"]
    if "host" not in state.hidden and body >= 9:
        heights["host"] = _host_rows(state, columns, body)
    body -= heights["host"]
    if state.shown is not None and body >= _SERVING:
        heights["serving"] = min(_SERVERS if body >= 26 else 1, len(state.shown.serving))
    body -= heights["serving"]
    # servers take their rows from the processes, not from the GPUs
    shortest = max(_SHORTEST_TABLE, _TABLE - heights["serving"])
    if "gpus" in state.hidden:
        left = body
    else:
        heights["gpus"] = _gpu_rows(state, columns, body, shortest)
        left = body - heights["gpus"]
    table = "processes" not in state.hidden
    if "charts" not in state.hidden and state.settings.charts and left >= _CHARTS + shortest * table:
        heights["charts"] = _chart_rows(state, left, shortest) if table else left
    if table:
        heights["processes"] = left - heights["charts"]
    elif not heights["charts"]:
        heights["gpus"] += left if "gpus" not in state.hidden else 0


def _host_rows(state: State, columns: int, body: int) -> int:
    cores = len((state.shown.host.cpu_per_core or ()) if state.shown else ())
    if body < 26:
        return 1
    return 3 if body >= 34 and (columns < 110 or cores > columns - 8) else 2


def _chart_rows(state: State, left: int, shortest: int) -> int:
    """Divide the remaining rows between charts and processes: at least a third for charts, more if there are few processes."""
    count = sum(1 for gpu in (state.shown.gpus if state.shown else ()) for _ in gpu.all_processes())
    table = max(_TABLE, -(-(count + 3) // 8) * 8)  # in steps of 8: starting and ending processes move nothing
    return max(_CHARTS, min(_TALLEST_CHARTS, left - shortest, max(left // 3, min(left - table, left * 3 // 5))))


def _gpu_rows(state: State, columns: int, body: int, shortest: int) -> int:
    gpus = state.shown.gpus if state.shown else ()
    table = 0 if "processes" in state.hidden else shortest if body >= 12 else _SHORTEST_TABLE
    charts = 0 if "charts" in state.hidden or not state.settings.charts else _CHARTS
    most = max(1, body - table) if body >= 7 else max(0, body)
    beside = min(most, body - table - charts)  # what leaves room for charts
    for share in _CARD_SHARES:
        shape = shape_of(gpus, columns, min(beside, int(body * share)))
        if shape.cards:
            return shape.rows
    for room in (min(beside, int(body * _LINES_SHARE)), beside, most, body - min(table, _SHORTEST_TABLE)):
        shape = shape_of(gpus, columns, room)
        if shape.rows <= room:
            return shape.rows
    return most


def shape_of(gpus: tuple[Gpu, ...], columns: int, rows: int) -> Shape:
    """Return the largest way to draw the GPUs in this number of rows; its `rows` is larger if it must be scrolled."""
    count = max(1, len(gpus))
    fewest, most = min(count, -(-columns // _WIDEST_CARD)), min(count, (columns + GAP) // (_NARROWEST_CARD + GAP))
    # Prefer complete rows: a gap at the end of the last row looks like a missing GPU.
    for across in sorted(range(max(1, fewest), most + 1), key=lambda across: (count % across > 0, across)):
        needed = sum(card_rows(gpus, across))
        if needed <= rows:
            return Shape(True, across, needed)
    lines = max(1, sum(1 + len(gpu.instances) for gpu in gpus))
    widest = max(1, min(lines, (columns + GAP) // (_NARROWEST_LINE + GAP)))
    titles = 1 if rows >= 3 else 0
    for across in range(1, widest + 1):
        if -(-lines // across) + titles <= rows:
            break
    return Shape(False, across, -(-lines // across) + titles)


def card_rows(gpus: tuple[Gpu, ...], across: int) -> list[int]:
    """Return the height of each row of cards: that of its tallest card, including MIG instances."""
    heights = [CARD + len(gpu.instances) for gpu in gpus] or [1]
    return [max(heights[at : at + across]) for at in range(0, len(heights), across)]


def split(area: Area, count: int) -> list[Area]:
    """Return adjacent areas with gaps, as equal as possible, that fill the whole width."""
    if count <= 0:
        return []
    room = area.columns - GAP * (count - 1)
    edges = [at * room // count + GAP * at for at in range(count)]
    ends = [(at + 1) * room // count + GAP * at for at in range(count)]
    return [Area(area.row, area.column + start, area.rows, end - start) for start, end in zip(edges, ends, strict=True)]


class GpuPlan:
    """The places of GPUs and MIG instances in an area.

    `entries` are positions in `gpus` and, for a MIG instance, its position in the GPU, else None; `places` are the areas of the
    entries from `first` on that are visible. Cards always fit; lines that do not are reached by scrolling, and the row below
    them reports those (`fold`) where there is room for one.
    """

    def __init__(self, gpus: tuple[Gpu, ...], area: Area, scrolled: int = 0, grown: bool = False) -> None:
        shape = shape_of(gpus, area.columns, area.rows)
        self.cards = shape.cards and shape.rows <= area.rows
        self.across = shape.across
        self.titles = 0 if self.cards else 1 if area.rows >= 3 else 0
        self.first, self.fold = 0, False
        if self.cards:
            self.entries: list[tuple[int, int | None]] = [(at, None) for at in range(len(gpus))]
            self.places = _cards(gpus, area, shape.across, grown)
            self.height = -(-len(gpus) // shape.across)
        else:
            self.entries = [(at, part) for at, gpu in enumerate(gpus) for part in (None, *range(len(gpu.instances)))]
            room = max(0, area.rows - self.titles)
            self.fold = room >= 2 and len(self.entries) > room * shape.across
            room -= self.fold
            self.first = max(0, min(scrolled, len(self.entries) - room * shape.across))
            shown = min(len(self.entries) - self.first, room * shape.across)
            self.height = min(room, -(-shown // shape.across))
            columns = split(area, shape.across)
            self.places = []
            for at in range(shown):
                place = columns[at // self.height]
                self.places.append(Area(area.row + self.titles + at % self.height, place.column, 1, place.columns))

    @property
    def hidden(self) -> tuple[int, int]:
        """How many entries are above and below what is visible."""
        return self.first, len(self.entries) - self.first - len(self.places)

    def at(self, row: int, column: int) -> int | None:
        """Return the position of the GPU at a cell, None if there is none."""
        for place, (gpu, _) in zip(self.places, self.entries[self.first :], strict=False):
            if place.holds(row, column):
                return gpu
        return None

    def step(self, where: str) -> int:
        """Return by how many entries a key moves the cursor."""
        down, aside = (self.across, 1) if self.cards else (1, self.height if self.across > 1 else 1)
        page, every = max(1, len(self.places)), len(self.entries)
        steps = {"up": -down, "down": down, "left": -aside, "right": aside, "pageup": -page, "pagedown": page}
        return {**steps, "home": -every, "end": every}.get(where, 0)


def _cards(gpus: tuple[Gpu, ...], area: Area, across: int, grown: bool) -> list[Area]:
    """Return the areas of all cards; with `grown`, they share the rows that are left."""
    heights = card_rows(gpus, across)
    more = (area.rows - sum(heights)) // len(heights) if grown else 0
    places: list[Area] = []
    row = area.row
    for height in heights:
        tall = height + (more if more >= _GROWN else 0)
        places += split(Area(row, area.column, tall, area.columns), across)
        row += tall
    return places[: len(gpus)]


def plan(state: State, area: Area) -> GpuPlan:
    """Return where the GPUs on screen are."""
    return GpuPlan(state.shown.gpus if state.shown else (), area, state.gpu_scrolled, state.enlarged == "gpus")
