"""Charts over time as images without scripts, style sheets or fonts: SVG, and PNG for notebooks that are not trusted."""

from __future__ import annotations

import struct
import zlib
from base64 import b64encode
from functools import lru_cache
from itertools import pairwise
from math import ceil, floor, hypot

from ...present.html import escape
from ...value import Value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any, TypeAlias

    Points: TypeAlias = list[tuple[float, float]]

    Point: TypeAlias = tuple[float, float]

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


_SCALE = 2  # pixels per unit of length
# Letters as strokes through points of a grid, x then y; the baseline is at 2. What charts are labelled with, and no more.
_GLYPHS = {
    "0": "03 08 19 39 48 43 32 12 03", "1": "17 39 32", "2": "08 19 39 48 46 02 42",
    "3": "08 19 39 48 47 36 26,36 45 43 32 12 03", "4": "32 39 04 44", "5": "49 09 06 36 45 43 32 12 03",
    "6": "48 39 19 08 03 12 32 43 45 36 16 05", "7": "09 49 12", "9": "03 12 32 43 48 39 19 08 06 15 35 46",
    "8": "16 07 08 19 39 48 47 36 16 05 03 12 32 43 45 36", "%": "12 59,08 19 28 17 08,43 54 63 52 43", ".": "12 12",
    ",": "12 00", "/": "00 39", "-": "05 35", "–": "05 55", "°": "08 19 28 17 08", "A": "02 29 42,14 34",
    "B": "02 09 39 48 47 36 06,36 45 43 32 02", "C": "48 39 19 08 03 12 32 43", "D": "02 09 29 47 44 22 02",
    "E": "49 09 02 42,06 36", "F": "49 09 02,06 36", "G": "48 39 19 08 03 12 32 43 45 25", "H": "09 02,49 42,06 46",
    "I": "09 02", "J": "39 33 22 12 03", "K": "09 02,49 05,16 42", "L": "09 02 42", "M": "02 09 35 69 62",
    "N": "02 09 42 49", "O": "03 08 19 39 48 43 32 12 03", "P": "02 09 39 48 46 35 05",
    "Q": "03 08 19 39 48 43 32 12 03,24 42", "R": "02 09 39 48 46 35 05,25 42", "S": "48 39 19 08 07 16 36 45 43 32 12 03",
    "T": "09 49,29 22", "U": "09 03 12 32 43 49", "V": "09 22 49", "W": "09 12 37 52 69", "X": "09 42,49 02",
    "Y": "09 25 49,25 22", "Z": "09 49 02 42", "a": "46 37 17 06 03 12 32 43,47 42", "b": "09 02,06 17 37 46 43 32 12 03",
    "c": "46 37 17 06 03 12 32 43", "d": "46 37 17 06 03 12 32 43,49 42", "e": "05 45 46 37 17 06 03 12 32 43",
    "f": "39 29 18 12,07 37", "g": "46 37 17 06 03 12 32 43,47 41 30 10", "h": "09 02,06 17 37 46 42", "i": "07 02,09 09",
    "j": "17 11 00,19 19", "k": "09 02,37 04,15 32", "l": "09 02", "m": "07 02,06 17 27 36 32,36 47 57 66 62",
    "n": "07 02,06 17 37 46 42", "o": "06 17 37 46 43 32 12 03 06", "p": "07 00,06 17 37 46 43 32 12 03",
    "q": "46 37 17 06 03 12 32 43,47 40", "r": "07 02,05 16 27 37", "s": "46 37 17 06 15 35 44 43 32 12 03",
    "t": "19 13 22 32,07 37", "u": "07 03 12 32 43,47 42", "v": "07 22 47", "w": "07 12 36 52 67", "x": "07 42,47 02",
    "y": "07 22,47 10", "z": "07 47 02 42",
}  # fmt: skip
_REACH = 0.5  # pixels by which a line is wider to both sides, so that a steep one is as thick as a flat one
_UNIT = 0.95  # of that grid, in units of length
_GAP = 2.5  # between two letters, from the middle of one stroke to that of the next
_SPACE = 3.3  # the width of a character that has no strokes
_BASELINE = 2


class Raster:
    """A picture of `width` by `height` units of length; what lies outside of it is cut off."""

    def __init__(self, width: int, height: int) -> None:
        self._width, self._height = width * _SCALE, height * _SCALE
        self._pixels = bytearray(4 * self._width * self._height)

    def line(self, points: Sequence[Point], color: str, width: float, opacity: float = 1.0) -> None:
        """Draw a line through points from left to right: in each column of pixels from its lowest to its highest value."""
        half = width * _SCALE / 2
        for column, low, high in _columns(points, _REACH):
            self._column(column, low - half, high + half, color, opacity)

    def area(self, points: Sequence[Point], base: float, color: str, opacity: float) -> None:
        """Fill between a line and a base below it."""
        for column, low, high in _columns(points):
            self._column(column, (low + high) / 2, base * _SCALE, color, opacity)

    def text(self, x: float, y: float, text: str, color: str, *, right: bool = False, bold: bool = False) -> None:
        """Write text on the baseline `y`, to the right of `x` or, if `right`, to the left of it."""
        start = x - sum(_advance(letter) for letter in text) + _UNIT if right else x
        for letter in text:
            left, top = round(start * _SCALE), round(y * _SCALE)
            for across, down, share in _glyph(letter, bold):
                self._blend(left + across, top + down, color, share)
            start += _advance(letter)

    def png(self) -> bytes:
        """Return the picture as a PNG file."""
        stride = 4 * self._width
        rows = b"".join(b"\0" + self._pixels[at : at + stride] for at in range(0, len(self._pixels), stride))
        head = struct.pack(">IIBBBBB", self._width, self._height, 8, 6, 0, 0, 0)  # 8 bits; red, green, blue and alpha
        chunks = ((b"IHDR", head), (b"IDAT", zlib.compress(rows, 9)), (b"IEND", b""))
        return b"\x89PNG\r\n\x1a\n" + b"".join(_chunk(kind, data) for kind, data in chunks)

    def _column(self, x: int, low: float, high: float, color: str, opacity: float) -> None:
        for y in range(floor(low), ceil(high)):
            self._blend(x, y, color, opacity * (min(high, y + 1) - max(low, y)))

    def _blend(self, x: int, y: int, color: str, share: float) -> None:
        if not (0 <= x < self._width and 0 <= y < self._height) or share <= 0:
            return
        pixels, at, ink = self._pixels, 4 * (y * self._width + x), _rgb(color)
        under = pixels[at + 3] / 255 * (1 - share)
        alpha = share + under
        if under:
            ink = bytes(
                round((new * share + old * under) / alpha) for new, old in zip(ink, pixels[at : at + 3], strict=False)
            )
        pixels[at : at + 3] = ink
        pixels[at + 3] = round(255 * alpha)


def _columns(points: Sequence[Point], reach: float = 0.0) -> list[tuple[int, float, float]]:
    """Return for each column of pixels the lowest and highest place of a line that is `reach` pixels wider to both sides."""
    found: dict[int, tuple[float, float]] = {}
    scaled = [(x * _SCALE, y * _SCALE) for x, y in points]
    for (x0, y0), (x1, y1) in zip(scaled, scaled[1:] or scaled, strict=False):
        slope = (y1 - y0) / (x1 - x0) if x1 > x0 else 0.0
        first = floor(x0 - reach)
        for column in range(first, max(first + 1, ceil(x1 + reach))):
            ends = [min(max(edge, x0), x1) for edge in (column - reach, column + 1 + reach)]
            places = [y0 + slope * (end - x0) for end in ends] if slope else [y0, y1]
            low, high = found.get(column, (places[0], places[0]))
            found[column] = min(low, *places), max(high, *places)
    return [(column, low, high) for column, (low, high) in found.items()]


@lru_cache(maxsize=256)
def _glyph(letter: str, bold: bool) -> list[tuple[int, int, float]]:
    """Return the pixels of a letter, right of and below the start of its baseline, and how much of each is covered."""
    unit, half = _UNIT * _SCALE, (1.45 if bold else 1.05) * _SCALE / 2
    covered: dict[tuple[int, int], float] = {}
    for stroke in _strokes(letter):
        points = [(x * unit + half, (_BASELINE - y) * unit - half) for x, y in stroke]
        for (x0, y0), (x1, y1) in pairwise(points):
            for x in range(floor(min(x0, x1) - half - 1), ceil(max(x0, x1) + half + 1)):
                for y in range(floor(min(y0, y1) - half - 1), ceil(max(y0, y1) + half + 1)):
                    share = min(1.0, half + 0.5 - _distance(x + 0.5, y + 0.5, x0, y0, x1, y1))
                    if share > covered.get((x, y), 0.0):
                        covered[x, y] = share
    return [(x, y, share) for (x, y), share in covered.items()]


def _distance(x: float, y: float, x0: float, y0: float, x1: float, y1: float) -> float:
    length = (x1 - x0) ** 2 + (y1 - y0) ** 2
    along = max(0.0, min(1.0, ((x - x0) * (x1 - x0) + (y - y0) * (y1 - y0)) / length)) if length else 0.0
    return hypot(x - x0 - along * (x1 - x0), y - y0 - along * (y1 - y0))


def _strokes(letter: str) -> list[list[tuple[int, int]]]:
    return [
        [(int(spot[0]), int(spot[1])) for spot in stroke.split()]
        for stroke in _GLYPHS.get(letter, "").split(",")
        if stroke
    ]


def _advance(letter: str) -> float:
    return _UNIT * (max((x for stroke in _strokes(letter) for x, _ in stroke), default=_SPACE - _GAP) + _GAP)


@lru_cache(maxsize=32)
def _rgb(color: str) -> bytes:
    return bytes.fromhex(color[1:])


def _chunk(kind: bytes, data: bytes) -> bytes:
    return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))
