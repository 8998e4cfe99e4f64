"""A line for every GPU, where what does not fit beside goes below; or a card for each, where there are few."""

from __future__ import annotations

from ...model.catalog import Gpu
from ...present.cells import MISSING, severity, throttle_text, value_text
from ...present.line import Line, gauge, line_of
from ...present.text import clean, width
from ...present.words import (
    degrees,
    has,
    label,
    memory_style,
    notes_and_owners,
    part_of_whole,
    power,
    remarks,
    share_style,
    short_name,
    silence,
)

TYPE_CHECKING = False
if TYPE_CHECKING:
    from ...model.metric import Number
    from ...model.snapshot import Snapshot
    from ...present.theme import Theme

_ACTIVITY = (Gpu.sm_active, Gpu.tensor_active, Gpu.dram_active)
_SMALLEST_BAR, _BAR, _LONGEST_BAR = 4, 8, 24
_ENOUGH = 28  # cells in which remarks and owners can stand beside the numbers, cut if need be


class ColumnLayout:
    """The columns of a table, made to fill a width. Remarks and owners stand beside the numbers where they fit."""

    def __init__(self, gpus: tuple[Gpu, ...], theme: Theme, columns: int, name_width: int | None = None) -> None:
        self.columns = columns
        self.index = max([1, *(len(label(gpu)) for gpu in gpus)])
        self.name = min(24, max([0, *(width(short_name(gpu)) for gpu in gpus)])) if name_width is None else name_width
        self.power = max([6, *(len(power(gpu)) for gpu in gpus)])
        self.memory = max([8, *(len(part_of_whole(gpu.memory_used, gpu.memory_total)) for gpu in gpus)])
        self.activity = columns >= 72 and any(has(gpu, metric) for gpu in gpus for metric in _ACTIVITY)
        side = max([0, *(line_of(notes_and_owners(gpu, remarks(gpu), columns, theme)).width for gpu in gpus)])
        self.headline = ""
        names = {short_name(gpu) for gpu in gpus}
        self.bar = _BAR
        if name_width is None and len(names) == 1 and len(gpus) > 1 and columns < self._width() + min(side, _ENOUGH):
            self.headline = f"{len(gpus)} {theme.glyph('×', 'x')} {names.pop()}"
            self.name = 0
        self.bar = _SMALLEST_BAR
        if name_width is None and columns < self._width():
            self.name = max(0, self.name + columns - self._width())
            self.name = self.name if self.name >= 8 else 0
        self.bar = _BAR if columns >= self._width() + 2 * (_BAR - _SMALLEST_BAR) else _SMALLEST_BAR
        self.beside = columns >= self._width() + min(side, _ENOUGH)
        spare = max(0, columns - self._width() - (side if self.beside else 0))
        self.bar = max(_SMALLEST_BAR, min(_LONGEST_BAR, self.bar + spare // 2))

    def _width(self) -> int:
        name = self.name + 2 if self.name else 0
        activity = 3 * 5 + 3 if self.activity else 0
        return (
            self.index + 1 + name + 2 * self.bar + 1 + 4 + 2 + activity + 1 + self.memory + 2 + 4 + 2 + self.power + 2
        )


def table(snapshot: Snapshot, theme: Theme, columns: int, name_width: int | None = None) -> tuple[str, list[Line]]:
    """Return the name of all GPUs where the lines leave it out, and the titles with one or two lines for every GPU.

    `name_width` fixes the cells of the name; 0 leaves it out.
    """
    layout = ColumnLayout(snapshot.gpus, theme, columns, name_width)
    lines = [_titles(layout)]
    for gpu in snapshot.gpus:
        lines += _rows(gpu, layout, theme, snapshot.time)
        for instance in gpu.instances:
            lines += _rows(instance, layout, theme, snapshot.time, "└ " if theme.unicode else "- ")
    return layout.headline, lines


def _titles(layout: ColumnLayout) -> Line:
    line = Line().add("", cells=layout.index + 1)
    if layout.name:
        line.add("", cells=layout.name + 2)
    line.add("UTIL", "label", layout.bar + 1 + 4 + 2)
    if layout.activity:
        for metric in _ACTIVITY:
            line.add(metric.short[:4] if metric is Gpu.tensor_active else metric.short, "label", 5, right=True)
        line.add("   ")
    line.add("MEMORY", "label", layout.bar + 1 + layout.memory + 2)
    return line.add("TEMP", "label", 4, right=True).add("  ").add("POWER", "label", layout.power, right=True)


def _rows(gpu: Gpu, layout: ColumnLayout, theme: Theme, now: float, lead: str = "") -> list[Line]:
    line = Line().add(lead or f"{label(gpu)} ", "accent", layout.index + 1, right=not lead)
    if layout.name:
        line.add(short_name(gpu), "calm", layout.name).add("  ")
    words, style = silence(gpu, now)
    if words:
        return [line.add(words, style)]
    _numbers(line, gpu, layout, theme)
    beside = line.add("  ") if layout.beside else Line().add("", cells=layout.index + 1)
    more = line_of(notes_and_owners(gpu, remarks(gpu), layout.columns - beside.width, theme))
    beside.extend(more)
    return [line] if layout.beside or not more.width else [line, beside]


def _numbers(line: Line, gpu: Gpu, layout: ColumnLayout, theme: Theme) -> None:
    use = gpu.utilization
    line.extend(gauge(theme, None if use is None else use / 100, layout.bar, share_style(use)))
    line.add(" ").add(MISSING if use is None else f"{use:.0f}%", share_style(use), 4, right=True).add("  ")
    if layout.activity:
        for metric in _ACTIVITY:
            value = gpu.get(metric.key)
            share = value if isinstance(value, (int, float)) else None
            line.add(MISSING if share is None else f"{share:.0f}", share_style(share), 5, right=True)
        line.add("   ")
    full = None if gpu.memory_percent is None else gpu.memory_percent / 100
    line.extend(gauge(theme, full, layout.bar, memory_style(gpu))).add(" ")
    line.add(part_of_whole(gpu.memory_used, gpu.memory_total), "calm", layout.memory, right=True).add("  ")
    line.add(degrees(gpu.temperature, theme), severity(Gpu.temperature, gpu), 4, right=True).add("  ")
    line.add(power(gpu), "calm", layout.power, right=True)


WIDEST = 110
_NAMES: tuple[tuple[str, Number], ...] = (
    ("util", Gpu.utilization),
    ("SM", Gpu.sm_active),
    ("tensor", Gpu.tensor_active),
    ("DRAM", Gpu.dram_active),
)
_SIDE = 32  # cells of the column at the right


def deck(snapshot: Snapshot, theme: Theme, columns: int) -> list[Line]:
    """Return the cards, a blank line before each."""
    lines: list[Line] = []
    for gpu in snapshot.gpus:
        lines += [Line(), *_card(gpu, theme, min(columns, WIDEST), snapshot.time)]
    return lines


def _card(gpu: Gpu, theme: Theme, columns: int, now: float) -> list[Line]:
    title = Line().add(f" {label(gpu)} ", "accent").add(clean(gpu.name or "unknown GPU"), "title")
    words, style = silence(gpu, now)
    if words:
        return [title.add(f"  {words}", style)]
    left = []
    for name, metric in _NAMES:
        if metric is Gpu.utilization or has(gpu, metric):
            value = gpu.get(metric.key)
            share = value if isinstance(value, (int, float)) else None
            style = share_style(share)
            left.append(
                _bar_line(name, share, style, theme, columns).add(value_text(metric, value), style, 6, right=True)
            )
    memory = _bar_line("memory", gpu.memory_percent, memory_style(gpu), theme, columns)
    left.append(memory.add(part_of_whole(gpu.memory_used, gpu.memory_total), "calm", 16, right=True))
    if gpu.power_draw is not None and gpu.power_limit:
        draw = _bar_line("power", 100 * gpu.power_draw / gpu.power_limit, "chart3", theme, columns)
        left.append(draw.add(power(gpu), "calm", 16, right=True))
    right = _side(gpu, theme)
    for line, side in zip(left, right, strict=False):
        line.to(columns - _SIDE).extend(side)
    rest = [Line().to(columns - _SIDE).extend(side) for side in right[len(left) :]]
    lines = [title, *left, *rest]
    more = line_of(notes_and_owners(gpu, remarks(gpu, throttling=False), columns - 11, theme))
    if more.width:
        lines.append(Line().add("   ").add("who" if gpu.processes else "note", "label", 8).extend(more))
    return [*lines, *(_part_line(part, theme, columns) for part in gpu.instances)]


def _bar_line(name: str, percent: float | None, style: str, theme: Theme, columns: int) -> Line:
    bar = gauge(theme, None if percent is None else percent / 100, _bar_cells(columns), style)
    return Line().add("   ").add(name, "label", 8).extend(bar).add(" ")


def _part_line(part: Gpu, theme: Theme, columns: int) -> Line:
    share = None if part.memory_percent is None else part.memory_percent / 100
    line = Line().add("   ").add(clean(part.name or "MIG"), "label", 16)
    line.extend(gauge(theme, share, max(6, _bar_cells(columns) - 8), memory_style(part)))
    line.add(" ").add(part_of_whole(part.memory_used, part.memory_total), "calm", 16, right=True).add("  ")
    if part.sm_active is not None:
        line.add(f"SM {part.sm_active:.0f} %  ", share_style(part.sm_active))
    return line.extend(line_of(notes_and_owners(part, (), columns - line.width, theme)))


def _bar_cells(columns: int) -> int:
    return max(6, columns - 11 - 17 - _SIDE - 2)


def _side(gpu: Gpu, theme: Theme) -> list[Line]:
    degrees = "-" if gpu.temperature is None else f"{gpu.temperature:.0f} {theme.glyph('°C', 'C')}"
    limit = "" if not gpu.temperature_limit else f"of {gpu.temperature_limit:.0f}"
    rows = [("temp", degrees, severity(Gpu.temperature, gpu), limit)]
    if gpu.power_draw is None or not gpu.power_limit:  # else it has a bar
        rows.append(("power", value_text(Gpu.power_draw, gpu.power_draw), "calm", ""))
    hot = severity(Gpu.throttle_reasons, gpu) == "critical"
    rows.append(("clock", value_text(Gpu.clock_sm, gpu.clock_sm), "critical" if hot else "calm", throttle_text(gpu)))
    return [
        Line().add(name, "label", 7).add(text, style, 9).add(extra, "critical" if hot and name == "clock" else "label")
        for name, text, style, extra in rows
    ]
