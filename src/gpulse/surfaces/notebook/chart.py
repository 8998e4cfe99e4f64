"""Charts as SVG images without scripts, style sheets or fonts, so that every viewer of saved notebooks can show them."""

from __future__ import annotations

from ...present.html import escape
from ...units import size_text

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

_WIDTH, _HEIGHT = 320, 110  # of one chart
_LEFT, _RIGHT, _TOP, _BOTTOM = 58, 8, 20, 18
_COLORS = (
    "#3b76d6",
    "#d9822b",
    "#1f9e77",
    "#cc4a3a",
    "#5fa8e8",
    "#d163a7",
    "#7aa836",
    "#7d8597",
)  # visible on white and on black
_INK = "#808890"
_POINTS = 300  # of one line


class CellChartLine:
    """One line: label, position in the palette, and one value per time; None is a gap."""

    def __init__(self, label: str, place: int, values: Sequence[float | None]) -> None:
        self.label = label
        self.place = place
        self.values = values

    @property
    def color(self) -> str:
        """The color of the line."""
        return _COLORS[self.place % len(_COLORS)]


def cell_chart(
    times: Sequence[float],
    title: str,
    busy: Sequence[CellChartLine],
    work: Sequence[CellChartLine],
    memory: Sequence[CellChartLine],
    total: float | None,
) -> str:
    """Return two charts side by side: how busy GPUs were, with SM activity as an area below it, and memory in use."""
    areas = work if len(busy) <= 2 else ()  # more of them would hide each other
    rows = 1 + (len(busy) > 1)
    height = _HEIGHT + (rows - 1) * 14
    top = total or max((value for line in memory for value in line.values if value is not None), default=0.0) or 1.0
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{2 * _WIDTH}" height="{height}" viewBox="0 0 {2 * _WIDTH} {height}" '
        f'font-family="system-ui,sans-serif" font-size="10" fill="{_INK}">',
        _chart(0, f"{title}, SM active below" if areas else title, times, busy, areas, 100.0, "100 %"),
        _chart(_WIDTH, "Memory used", times, memory, (), top, size_text(top)),
    ]
    if rows > 1:
        parts += [_key(at, line, len(busy)) for at, line in enumerate(busy)]
    return "".join([*parts, "</svg>"])


def _chart(
    left: int,
    title: str,
    times: Sequence[float],
    lines: Sequence[CellChartLine],
    areas: Sequence[CellChartLine],
    top: float,
    top_text: str,
) -> str:
    x0, x1, y0, y1 = left + _LEFT, left + _WIDTH - _RIGHT, _TOP, _HEIGHT - _BOTTOM
    end = times[-1] or 1.0

    def spot(time: float, value: float) -> str:
        return f"{x0 + (x1 - x0) * time / end:.1f} {y1 - (y1 - y0) * min(1.0, max(0.0, value / top)):.1f}"

    def path(line: CellChartLine, closed: bool) -> str:
        runs = []
        for run in _runs(times, line.values):
            points = " L".join(spot(*point) for point in run)
            runs.append(f"M{points}" if not closed else f"M{spot(run[0][0], 0)} L{points} L{spot(run[-1][0], 0)}Z")
        return "".join(runs)

    parts = [f'<text x="{x0}" y="12" font-weight="600">{escape(title)}</text>']
    for share, text in ((0.0, "0"), (0.5, ""), (1.0, top_text)):
        y = y1 - (y1 - y0) * share
        parts.append(f'<path d="M{x0} {y:.1f}H{x1}" stroke="{_INK}" stroke-opacity=".3" fill="none"/>')
        if text:
            parts.append(f'<text x="{x0 - 5}" y="{y + 3:.1f}" text-anchor="end">{escape(text)}</text>')
    parts += [f'<path d="{path(area, True)}" fill="{area.color}" fill-opacity=".25"/>' for area in areas]
    parts += [f'<path d="{path(line, False)}" fill="none" stroke="{line.color}" stroke-width="1.4"/>' for line in lines]
    parts.append(f'<text x="{x0}" y="{_HEIGHT - 5}">0 s</text>')
    parts.append(f'<text x="{x1}" y="{_HEIGHT - 5}" text-anchor="end">{_time(end)}</text>')
    return "".join(parts)


def _key(at: int, line: CellChartLine, count: int) -> str:
    """Return the entry of the legend for a GPU."""
    x = _LEFT + at * min(80.0, (2 * _WIDTH - _LEFT - _RIGHT) / count)
    y = _HEIGHT + 8
    swatch = f'<rect x="{x:.0f}" y="{y - 7}" width="8" height="8" rx="1.5" fill="{line.color}"/>'
    return f'{swatch}<text x="{x + 12:.0f}" y="{y}">{escape(line.label)}</text>'


def _runs(times: Sequence[float], values: Sequence[float | None]) -> list[list[tuple[float, float]]]:
    """Return the runs of values between gaps, thinned out to what an image can show."""
    runs: list[list[tuple[float, float]]] = [[]]
    stride = max(1, len(times) // _POINTS)
    for at in range(0, len(times), stride):
        value = values[at]
        if value is None:
            runs.append([])
        else:
            runs[-1].append((times[at], value))
    return [run for run in runs if run]


def _time(seconds: float) -> str:
    return f"{seconds:.1f} s" if seconds < 100 else f"{seconds / 60:.1f} min"
