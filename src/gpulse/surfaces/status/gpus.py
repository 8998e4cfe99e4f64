"""A line for every GPU, where what does not fit beside goes below; or a card for each, where there are few."""

from __future__ import annotations

from ...model.catalog import Gpu
from ...present.cells import severity, throttle_text, value_text
from ...present.gpu_columns import ACTIVITY, GpuColumns
from ...present.line import Line, gauge, line_of, line_of_cells
from ...present.text import clean
from ...present.words import (
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
    from ...model.snapshot import Snapshot
    from ...present.theme import Theme


def table(snapshot: Snapshot, theme: Theme, columns: int, name_width: int | None = None) -> tuple[str, list[Line]]:
    """Return the name of all GPUs where the lines leave it out, and the titles with one or two lines for every GPU.

    `name_width` fixes the cells of the name; 0 leaves it out.
    """
    gpus = snapshot.gpus
    index = max(len(label(gpu)) for gpu in gpus) + 1
    parts = [part for gpu in gpus for part in (gpu, *gpu.instances)]
    notes = max(line_of(notes_and_owners(part, remarks(part), columns, theme)).width for part in parts)
    layout = GpuColumns(gpus, columns - index, theme, notes, below=True, name_width=name_width)
    lines = [Line().add("", cells=index + layout.name).add(layout.titles(), "label")]
    for gpu in gpus:
        lines += _rows(gpu, layout, Line().add(f"{label(gpu)} ", "accent", index, right=True), columns, snapshot.time)
        for part in gpu.instances:
            lead = Line().add(theme.glyph("└ ", "- "), "accent", index)
            lines += _rows(part, layout, lead, columns, snapshot.time)
    names = {short_name(gpu) for gpu in gpus}
    if layout.name or name_width is not None or len(names) > 1:
        return "", lines
    return f"{len(gpus)} {theme.glyph('×', 'x')} {names.pop()}" if len(gpus) > 1 else names.pop(), lines


def _rows(gpu: Gpu, layout: GpuColumns, line: Line, columns: int, now: float) -> list[Line]:
    """Return the line of a GPU that begins with its number, and a second one where notes and owners stand below."""
    below = Line().add("", cells=line.width)
    if layout.name:
        line.add(short_name(gpu), "calm", layout.name - 2).add("  ")
    words, style = silence(gpu, now)
    if words:
        return [line.add(words, style)]
    line.extend(line_of_cells(*layout.numbers(gpu)))
    more = line.add("  ") if layout.notes else below
    notes = line_of(notes_and_owners(gpu, remarks(gpu), columns - more.width, layout.theme))
    more.extend(notes)
    return [line, below] if more is below and notes.width else [line]


WIDEST = 110
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
    for name, metric in (("util", Gpu.utilization), *ACTIVITY):
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
