"""A card for each GPU where there are few: every gauge on a line of its own."""

from __future__ import annotations

from ...model.catalog import Gpu
from ...present.cells import severity, throttle_text, value_text
from ...present.line import Line, gauge, line_of
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
    silence,
)

TYPE_CHECKING = False
if TYPE_CHECKING:
    from ...model.metric import Number
    from ...model.snapshot import Snapshot
    from ...present.theme import Theme

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
