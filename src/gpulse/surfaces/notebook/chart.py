"""Charts over time as images without scripts, style sheets or fonts: SVG, and PNG where matplotlib is installed."""

from __future__ import annotations

from base64 import b64encode
from io import BytesIO

from ...errors import GpulseError
from ...present.html import escape
from ...sinks.base import load
from ...value import Value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any, TypeAlias

    Points: TypeAlias = list[tuple[float, float]]

_WIDTH, _HEIGHT = 320, 110  # of one chart
_LEFT, _RIGHT, _TOP, _BOTTOM = 58, 8, 20, 18
_KEYS = 14  # height of the legend
# visible on white and on black
_COLORS = ("#3b76d6", "#d9822b", "#1f9e77", "#cc4a3a", "#5fa8e8", "#d163a7", "#7aa836", "#7d8597")
_INK = "#808890"
_POINTS = 300  # of one line


class CellLine(Value):
    """One line: label, position in the palette, and one value per time; None is a gap."""

    label: str
    place: int
    values: Sequence[float | None]

    @property
    def color(self) -> str:
        """The color of the line."""
        return _COLORS[self.place % len(_COLORS)]


class CellChart(Value):
    """One chart: a title, lines on a scale from 0 to `top`, and areas below them; more than two would hide each other."""

    title: str
    lines: Sequence[CellLine]
    top: float
    top_text: str
    areas: Sequence[CellLine] = ()


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
        """Return the image as PNG, with twice as many pixels for sharp screens; raise GpulseError if matplotlib is not installed."""
        paper = _Picture(self.width, self.height)
        self._draw(paper)
        return paper.png()

    def bundle(self) -> dict[str, str]:
        """Return the image for an output of a notebook, which shows SVG only where it is trusted: also as PNG, if that can be drawn."""
        found = {"image/svg+xml": self.svg()}
        try:
            found["image/png"] = b64encode(self.png()).decode()
        except GpulseError:
            pass  # without matplotlib, a notebook that is not trusted shows the text instead
        return found

    def html(self, alternative: str) -> str:
        """Return the image inside an HTML element, with a text for readers that show none.

        SVG inside of one is shown even where a notebook is not trusted, since it cannot run scripts there.
        """
        source = f"data:image/svg+xml;base64,{b64encode(self.svg().encode()).decode()}"
        return f'<img width="{self.width}" alt="{escape(alternative)}" src="{source}">'

    def metadata(self) -> dict[str, Any]:
        """Return the metadata of that output: the width of the PNG, which has more pixels."""
        return {"image/png": {"width": self.width}}

    def _draw(self, paper: _Svg | _Picture) -> None:
        for at, chart in enumerate(self._charts):
            self._draw_chart(paper, chart, _WIDTH * (at % 2), _HEIGHT * (at // 2))
        step = min(80.0, (self.width - _LEFT - _RIGHT) / max(1, len(self._keys)))
        for at, line in enumerate(self._keys):
            x, y = round(_LEFT + at * step), self.height - _KEYS + 8
            paper.area([(x, y - 7), (x + 8, y - 7)], y + 1, line.color, 1.0)
            paper.text(x + 12, y, line.label, _INK)

    def _draw_chart(self, paper: _Svg | _Picture, chart: CellChart, left: int, above: int) -> None:
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
        for area in chart.areas if len(chart.areas) <= 2 else ():
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


_SCALE = 2  # pixels per unit of length, for sharp screens
_DPI = 100
_POINT = 72 / _DPI  # points, in which matplotlib measures lines and letters, per unit of length


class _Picture:
    """Draws with matplotlib, in the same units of length, without the dashes, markers and LaTeX of the program's own figures."""

    def __init__(self, width: int, height: int) -> None:
        try:
            figure = load("matplotlib.figure", "matplotlib").Figure
        except GpulseError as error:
            raise GpulseError(f"PNG cannot be drawn: {error.message}", f"{error.remedy[:-1]}, or use SVG.") from None
        self._figure = figure((width / _DPI, height / _DPI), dpi=_DPI * _SCALE, facecolor="none")
        self._axes = self._figure.add_axes((0, 0, 1, 1), xlim=(0, width), ylim=(height, 0))
        self._axes.set_axis_off()

    def line(self, points: Points, color: str, width: float, opacity: float = 1.0) -> None:
        look = {"linestyle": "-", "marker": "", "solid_capstyle": "butt"}
        self._axes.plot(*zip(*points, strict=True), color=color, linewidth=width * _POINT, alpha=opacity, **look)

    def area(self, points: Points, base: float, color: str, opacity: float) -> None:
        self._axes.fill_between(*zip(*points, strict=True), base, color=color, alpha=opacity, linewidth=0)

    def text(self, x: float, y: float, text: str, color: str, *, right: bool = False, bold: bool = False) -> None:
        look = {"ha": "right" if right else "left", "weight": "bold" if bold else "normal", "family": "DejaVu Sans"}
        plain = {"parse_math": False, "usetex": False}
        self._axes.text(x, y, text, color=color, fontsize=9 * _POINT, va="baseline", **look, **plain)

    def png(self) -> bytes:
        file = BytesIO()
        load("matplotlib.backends.backend_agg", "matplotlib").FigureCanvasAgg(self._figure).print_png(file)
        return file.getvalue()
