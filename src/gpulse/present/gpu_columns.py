"""The columns of a line per GPU, fitted to a width: `status` and the lines of `top` have the same ones."""

from __future__ import annotations

from ..model.catalog import Gpu
from .cells import MISSING, severity
from .text import width
from .words import (
    NARROWEST,
    degrees,
    has,
    memory_style,
    owner_cells,
    part_of_whole,
    percent,
    power,
    share_style,
    short_name,
)

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from typing import TypeAlias

    from ..model.metric import Number
    from .theme import Theme

    # the fewest cells, so that columns seldom move; the text of a GPU, and its style
    Form: TypeAlias = tuple[int, Callable[[Gpu, "GpuColumns"], str], Callable[[Gpu], str]]
    Bar: TypeAlias = tuple[Callable[[Gpu], float | None], Callable[[Gpu], str]]  # a percentage, and its style

ACTIVITY = (("SM", Gpu.sm_active), ("tensor", Gpu.tensor_active), ("DRAM", Gpu.dram_active))  # beside the utilization
_SMALLEST_BAR, _BAR, _LONGEST_BAR = 4, 8, 24
_SHORTEST_NAME, _LONGEST_NAME = 8, 24
_GAP = 2  # cells after names and before notes
_ENOUGH = 28  # cells in which notes and owners can stand beside the numbers, cut if need be


def activity(gpu: Gpu, metric: Number, theme: Theme) -> tuple[float | None, str]:
    """Return a share of activity and its text without a unit: a dash if there is none, dots while it is being measured."""
    value = gpu.get(metric.key)
    if isinstance(value, (int, float)):
        return value, f"{value:.0f}"
    return None, theme.more if gpu.gaps.get(metric.key) == "pending" else MISSING


class GpuColumn:
    """One column: its titles, the longest first, its forms, the narrowest first, and the bar before it, if any."""

    __slots__ = ("bar", "forms", "gap", "titles")

    def __init__(self, titles: tuple[str, ...], *forms: Form, gap: int = 2, bar: Bar | None = None) -> None:
        self.titles = titles
        self.forms = forms
        self.gap = gap
        self.bar = bar


def _of_activity(name: str, metric: Number) -> GpuColumn:
    def text(gpu: Gpu, columns: GpuColumns) -> str:
        return activity(gpu, metric, columns.theme)[1]

    def style(gpu: Gpu) -> str:
        return share_style(metric.__get__(gpu, Gpu))

    return GpuColumn(
        (name.upper()[:4],), (5, text, style), gap=0
    )  # with its space, so that neighbors of one style are one piece


def _busy(gpu: Gpu) -> str:
    return share_style(gpu.utilization)


def _calm(gpu: Gpu) -> str:
    return "calm"


_UTILIZATION = GpuColumn(
    ("UTIL",),
    (4, lambda gpu, _: percent(gpu.utilization), _busy),
    gap=0,
    bar=(lambda gpu: gpu.utilization, _busy),
)
_ACTIVITY = tuple(_of_activity(name, metric) for name, metric in ACTIVITY)
_MEMORY = GpuColumn(
    ("MEMORY", "MEM"),
    (4, lambda gpu, _: percent(gpu.memory_percent), memory_style),
    (8, lambda gpu, columns: part_of_whole(gpu.memory_used, gpu.memory_total, columns.decimal), _calm),
    bar=(lambda gpu: gpu.memory_percent, memory_style),
)
_TEMPERATURE = GpuColumn(
    ("TEMP",),
    (
        4,
        lambda gpu, columns: degrees(gpu.temperature, columns.theme, columns.fahrenheit),
        lambda gpu: severity(Gpu.temperature, gpu),
    ),
)
_POWER = GpuColumn(
    ("POWER",),
    (4, lambda gpu, _: power(gpu, limit=False).replace(" ", ""), _calm),
    (6, lambda gpu, _: power(gpu), _calm),
)
_ORDER = (_UTILIZATION, *_ACTIVITY, _MEMORY, _TEMPERATURE, _POWER)  # from left to right
_BLANKS = [" " * cells for cells in range(3)]
_PLAIN = [[""] * cells for cells in range(3)]


class GpuColumns:
    """The columns that fit into `room` cells: the vital numbers always, then the rest in order of importance.

    `name` and `notes` are the cells for names before the numbers and for notes and owners beside them, each with a gap; `flag` is
    room for a mark where notes do not fit. `notes` is how many cells they need. Notes that may stand `below` are beside the
    numbers only if all numbers fit and there is enough room for them; others get at least the room for the worst one first.
    Names that are all the same are shown last, and only if `named`; `name_width` sets their cells, 0 for none. `shaded` bars
    become brighter to their end.
    """

    def __init__(
        self,
        gpus: Sequence[Gpu],
        room: int,
        theme: Theme,
        notes: int,
        *,
        below: bool = False,
        named: bool = True,
        name_width: int | None = None,
        shaded: bool = False,
        decimal: bool = False,
        fahrenheit: bool = False,
    ) -> None:
        self.theme: Theme = theme
        self.decimal: bool = decimal
        self.fahrenheit: bool = fahrenheit
        self.bar = self.name = self.notes = self.flag = 0
        self._shaded = shaded
        self._gpus = [part for gpu in gpus for part in (gpu, *gpu.instances)]
        self._room = room
        self._placed: dict[GpuColumn, tuple[int, int]] = {}  # form and cells
        for column in (_UTILIZATION, _MEMORY, _TEMPERATURE):
            self._place(column, always=True)
        self._place(_POWER)
        self._place_name(name_width or 0)
        if below:
            self._place(_MEMORY, 1)
        self._fit(notes, below, named and name_width is None, name_width is None)
        self._shown = [(column, *self._placed[column]) for column in _ORDER if column in self._placed]

    def _fit(self, notes: int, below: bool, named: bool, told_apart: bool) -> None:
        """Give the room that is left to what is worth most; `told_apart`: show names if they differ."""
        names = {short_name(gpu) for gpu in self._gpus}
        longest = min(_LONGEST_NAME, max(map(width, names), default=0))
        self.flag = 2 if not below and self._afford(2) else 0
        self._lengthen_bars(_SMALLEST_BAR)
        if self.flag:
            self._reserve_notes()
        self._place(_MEMORY, 1)
        if told_apart and len(names) > 1:
            self._place_name(longest, _SHORTEST_NAME)
        if self._room >= sum(column.gap + column.forms[0][0] for column in _ACTIVITY) and self._measures_activity():
            for column in _ACTIVITY:
                self._place(column)
        self._place(_POWER, 1)
        self._lengthen_bars(_BAR)
        if self.notes or (below and self._room >= _GAP + min(notes, _ENOUGH)):
            self._widen_notes(notes)
        if named and not self.name and (not below or self.notes or not notes):
            self._place_name(longest, longest)
        self._lengthen_bars(_LONGEST_BAR)

    def titles(self) -> str:
        """Return the titles; they begin where the numbers do."""
        return "".join(self._title(column, cells) for column, _, cells in self._shown)

    def _title(self, column: GpuColumn, cells: int) -> str:
        bar = self.bar + 1 if self.bar and column.bar else 0
        room = column.gap + bar + cells
        title = next((title for title in column.titles if len(title) < room), column.titles[-1])
        return f"{title:>{room}}" if not bar else _BLANKS[column.gap] + f"{title:{room - column.gap}}"

    def numbers(self, gpu: Gpu) -> tuple[str, list[str]]:
        """Return what the columns say of a GPU: a text whose characters all take one cell, and the style of each."""
        texts: list[str] = []
        styles: list[str] = []
        for column, form, cells in self._shown:
            texts.append(_BLANKS[column.gap])
            styles += _PLAIN[column.gap]
            if self.bar and column.bar is not None:
                share, style = column.bar[0](gpu), column.bar[1](gpu)
                bar, shades = self.theme.gauge(None if share is None else share / 100, self.bar, style, self._shaded)
                texts += (bar, " ")
                styles += (*shades, "")
            _, text, style_of = column.forms[form]
            texts.append(text(gpu, self).rjust(cells))
            styles += [style_of(gpu)] * cells
        return "".join(texts), styles

    def _afford(self, cells: int, always: bool = False) -> bool:
        fits = cells <= self._room or always
        self._room -= cells if fits else 0
        return fits

    def _place(self, column: GpuColumn, form: int = 0, always: bool = False) -> None:
        """Place a column, or give one that is placed another form, if there is room."""
        least, text, _ = column.forms[form]
        cells = max([least, *(len(text(gpu, self)) for gpu in self._gpus)])
        taken = column.gap + self._placed[column][1] if column in self._placed else 0
        if (not form or taken) and self._afford(column.gap + cells - taken, always):
            self._placed[column] = (form, cells)

    def _measures_activity(self) -> bool:
        return any(has(gpu, metric) for gpu in self._gpus for _, metric in ACTIVITY)

    def _place_name(self, cells: int, least: int = 0) -> None:
        """Show names in as many cells as there are, but not in fewer than `least`."""
        shown = min(cells, max(least, self._room - _GAP))
        if shown and self._afford(shown + _GAP):
            self.name = shown + _GAP

    def _reserve_notes(self) -> None:
        """Reserve room for the worst note of each GPU, with its biggest owner if possible."""
        least, owner = _GAP + NARROWEST, owner_cells(self._gpus)
        for wanted in (least + (2 + owner if owner else 0), least):
            if not self.notes and self._afford(wanted - self.flag):
                self.notes = wanted

    def _widen_notes(self, notes: int) -> None:
        more = max(0, min(_GAP + notes - self.notes, self._room))
        self.notes += more
        self._room -= more

    def _lengthen_bars(self, most: int) -> None:
        """Make bars as long as there is room, up to `most`; the first time, only if they get all of it."""
        bars = sum(column.bar is not None for column in self._placed)
        if not self.bar:
            self.bar = most if self._afford(bars * (most + 1)) else 0
        elif (more := min(most - self.bar, self._room // bars)) > 0:
            self.bar += more
            self._room -= bars * more
