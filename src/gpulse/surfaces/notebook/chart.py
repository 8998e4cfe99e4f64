"""Charts over time as images without scripts, style sheets or fonts: SVG, and PNG for notebooks that are not trusted."""

from __future__ import annotations

from base64 import b64encode

from ...present.html import escape
from .raster import Raster

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any, TypeAlias

    Points: TypeAlias = list[tuple[float, float]]

_WIDTH, _HEIGHT = 320, 110  # of one chart
_LEFT, _RIGHT, _TOP, _BOTTOM = 58, 8, 20, 18
_KEYS = 14  # height of the legend
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


class CellLine:
    """One line: label, position in the palette, and one value per time; None is a gap."""

    def __init__(self, label: str, place: int, values: Sequence[float | None]) -> None:
        self.label = label
        self.place = place
        self.values = values

    @property
    def color(self) -> str:
        """The color of the line."""
        return _COLORS[self.place % len(_COLORS)]


class CellChart:
    """One chart: a title, lines on a scale from 0 to `top`, and areas below them; more than two would hide each other."""

    def __init__(
        self, title: str, lines: Sequence[CellLine], top: float, top_text: str, areas: Sequence[CellLine] = ()
    ) -> None:
        self.title = title
        self.lines = lines
        self.top = top
        self.top_text = top_text
        self.areas = areas if len(areas) <= 2 else ()


class ChartImage:
    """Charts of the same GPUs and times, two side by side, with a legend where there are several GPUs."""

    def __init__(self, times: Sequence[float], charts: Sequence[CellChart]) -> None:
        self._times = times
        self._charts = charts
        self._keys = charts[0].lines if len(charts[0].lines) > 1 else ()
        self.width = _WIDTH * min(2, len(charts))
        self.height = _HEIGHT * ((len(charts) + 1) // 2) + (_KEYS if self._keys else 0)

    def svg(self) -> str:
        """Return the image as SVG."""
        paper = _Svg()
        self._draw(paper)
        return (
            f'<svg xmlns="http://www.w3.org/2000/svg" width="{self.width}" height="{self.height}" '
            f'viewBox="0 0 {self.width} {self.height}" font-family="system-ui,sans-serif" font-size="10" fill="{_INK}">'
            f"{''.join(paper.parts)}</svg>"
        )

    def png(self) -> bytes:
        """Return the image as PNG, with twice as many pixels for sharp screens."""
        paper = Raster(self.width, self.height)
        self._draw(paper)
        return paper.png()

    def bundle(self) -> dict[str, str]:
        """Return the image in both formats for an output of a notebook, which shows SVG only where it is trusted."""
        return {"image/svg+xml": self.svg(), "image/png": b64encode(self.png()).decode()}

    def html(self, alternative: str) -> str:
        """Return the image inside an HTML element, with a text for readers that show none."""
        source = f"data:image/png;base64,{b64encode(self.png()).decode()}"
        return f'<img width="{self.width}" alt="{escape(alternative)}" src="{source}">'

    def metadata(self) -> dict[str, Any]:
        """Return the metadata of that output: the width of the PNG, which has more pixels."""
        return {"image/png": {"width": self.width}}

    def _draw(self, paper: _Svg | Raster) -> None:
        for at, chart in enumerate(self._charts):
            self._draw_chart(paper, chart, _WIDTH * (at % 2), _HEIGHT * (at // 2))
        step = min(80.0, (self.width - _LEFT - _RIGHT) / max(1, len(self._keys)))
        for at, line in enumerate(self._keys):
            x, y = round(_LEFT + at * step), self.height - _KEYS + 8
            paper.area([(x, y - 7), (x + 8, y - 7)], y + 1, line.color, 1.0)
            paper.text(x + 12, y, line.label, _INK)

    def _draw_chart(self, paper: _Svg | Raster, chart: CellChart, left: int, above: int) -> None:
        x0, x1, y0, y1 = left + _LEFT, left + _WIDTH - _RIGHT, above + _TOP, above + _HEIGHT - _BOTTOM
        end = self._times[-1] or 1.0

        def runs(line: CellLine) -> list[Points]:
            scale = (y1 - y0) / chart.top
            return [
                [(x0 + (x1 - x0) * time / end, y1 - min(y1 - y0, max(0.0, value * scale))) for time, value in run]
                for run in _runs(self._times, line.values)
            ]

        paper.text(x0, above + 12, chart.title, _INK, bold=True)
        for share, text in ((0.0, "0"), (0.5, ""), (1.0, chart.top_text)):
            y = y1 - (y1 - y0) * share
            paper.line([(x0, y), (x1, y)], _INK, 1.0, 0.3)
            paper.text(x0 - 5, y + 3, text, _INK, right=True)
        for area in chart.areas:
            for run in runs(area):
                paper.area(run, y1, area.color, 0.25)
        for line in chart.lines:
            for run in runs(line):
                paper.line(run, line.color, 1.4)
        paper.text(x0, above + _HEIGHT - 5, "0 s", _INK)
        paper.text(x1, above + _HEIGHT - 5, _time(end), _INK, right=True)


class _Svg:
    """Draws SVG elements."""

    def __init__(self) -> None:
        self.parts: list[str] = []

    def line(self, points: Points, color: str, width: float, opacity: float = 1.0) -> None:
        look = f'stroke="{color}" stroke-width="{width:g}" stroke-opacity="{opacity:g}"'
        self.parts.append(f'<path d="M{_path(points)}" fill="none" {look}/>')

    def area(self, points: Points, base: float, color: str, opacity: float) -> None:
        path = _path([(points[0][0], base), *points, (points[-1][0], base)])
        self.parts.append(f'<path d="M{path}Z" fill="{color}" fill-opacity="{opacity:g}"/>')

    def text(self, x: float, y: float, text: str, color: str, *, right: bool = False, bold: bool = False) -> None:
        look = (' text-anchor="end"' if right else "") + (' font-weight="600"' if bold else "")
        if text:
            self.parts.append(f'<text x="{x:g}" y="{y:g}" fill="{color}"{look}>{escape(text)}</text>')


def _path(points: Points) -> str:
    return " L".join(f"{x:.1f} {y:.1f}" for x, y in points)


def _runs(times: Sequence[float], values: Sequence[float | None]) -> list[Points]:
    """Return the runs of values between gaps, thinned out to what an image can show."""
    runs: list[Points] = [[]]
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
