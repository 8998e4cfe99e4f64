"""Where each GPU is on the screen: as a card or a line, which ones are visible, and how the cursor moves between them."""

from __future__ import annotations

from .area import Area
from .layout import card_rows, shape_of, split

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

    from ...model.catalog import Gpu
    from ...screen.keys import KeyEvent
    from .state import State

_WHEEL = 3  # entries that one step of the wheel scrolls
_CHART = 5  # rows from which a maximized card has a chart


class GpuPlan:
    """The places of GPUs and MIG instances in an area.

    `entries` are positions in `gpus` and, for a MIG instance, its position in the GPU, else None; `places` are the areas of the
    entries from `first` on that are visible. Cards always fit; lines that do not are reached by scrolling, and the row below
    them tells of those (`fold`) where there is room for one.
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
            self.places = [
                Area(area.row + self.titles + at % self.height, columns[at // self.height].column, 1,
                     columns[at // self.height].columns)
                for at in range(shown)
            ]  # fmt: skip

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
        tall = height + (more if more >= _CHART else 0)
        places += split(Area(row, area.column, tall, area.columns), across)
        row += tall
    return places[: len(gpus)]


def plan(state: State, area: Area) -> GpuPlan:
    """Return where the GPUs on screen are."""
    return GpuPlan(state.shown.gpus if state.shown else (), area, state.gpu_scrolled, state.enlarged == "gpus")


def move(state: State, area: Area, where: str) -> None:
    """Move the cursor to another GPU, and scroll so that it is visible; the first key only shows the cursor."""
    gpus = state.shown.gpus if state.shown else ()
    if not gpus:
        return
    seen = plan(state, area)
    first = seen.entries[seen.first][0] if seen.first < len(seen.entries) else 0
    here = next((at for at, gpu in enumerate(gpus) if gpu.index == state.chart_gpu), None)
    if here is None:
        target = len(gpus) - 1 if where == "end" else first
    else:
        entry = seen.entries.index((here, None))
        to = max(0, min(len(seen.entries) - 1, entry + seen.step(where)))
        target = seen.entries[to][0]
        if target == here and where in ("down", "right", "pagedown"):  # on an instance of the same GPU: go past it
            target = min(len(gpus) - 1, here + 1)
    select(state, target)
    _reveal(state, area, seen, seen.entries.index((target, None)))


def select(state: State, position: int) -> None:
    """Put the cursor on a GPU; the charts follow it."""
    gpus = state.shown.gpus if state.shown else ()
    if 0 <= position < len(gpus):
        state.focus = "gpus"
        index = gpus[position].index
        state.chart_gpu = None if index is None else int(index)


def scroll(state: State, area: Area, step: int) -> None:
    """Scroll the lines by steps of the wheel; the cursor stays where it is."""
    seen = plan(state, area)
    most = len(seen.entries) - len(seen.places)
    state.gpu_scrolled = max(0, min(most, seen.first + step * _WHEEL))


def next_gpu(state: State, step: int) -> None:
    """Move the cursor by some GPUs, around the ends."""
    gpus = state.shown.gpus if state.shown else ()
    here = next((at for at, gpu in enumerate(gpus) if gpu.index == state.chart_gpu), 0)
    if gpus:
        select(state, (here + step) % len(gpus))


def pointed(state: State, areas: Mapping[str, Area], event: KeyEvent) -> bool:
    """Take a mouse event on the GPUs or the host and return whether it was there.

    The wheel scrolls the GPUs. A click selects a GPU; a click on the selected one opens its view, one on the host the host's.
    """
    gpus, host = areas["gpus"], areas["host"]
    if host.holds(event.row, event.column) and event.mouse == "press":
        state.focus, state.dialog, state.choice = "host", "host", 0
        return True
    if not gpus.holds(event.row, event.column):
        return False
    if event.mouse in ("wheelup", "wheeldown"):
        scroll(state, gpus, -1 if event.mouse == "wheelup" else 1)
    elif event.mouse == "press" and (found := plan(state, gpus).at(event.row, event.column)) is not None:
        before = state.chart_gpu
        select(state, found)
        if state.chart_gpu is not None and state.chart_gpu == before:
            state.dialog, state.choice = "gpu", 0
    return True


def _reveal(state: State, area: Area, seen: GpuPlan, entry: int) -> None:
    visible = len(seen.places)
    if not visible or seen.cards:
        return
    state.gpu_scrolled = max(entry - visible + 1, min(seen.first, entry))
