"""Charts of a notebook: images that any reader of notebooks shows."""

from __future__ import annotations

import base64
import io
import sys
import xml.etree.ElementTree as ET
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gpulse.errors import GpulseError
from gpulse.surfaces.notebook.chart import CellChart, CellLine, ChartImage

_VALUES = st.lists(st.none() | st.floats(0, 1e12), min_size=3, max_size=700)
_SVG = "{http://www.w3.org/2000/svg}"


def image(lines: list[CellLine], top: float = 100.0, charts: int = 2) -> ChartImage:
    times = [float(at) for at in range(len(lines[0].values))]
    return ChartImage(times, [CellChart("Utilization, SM active below", lines, top, "100 %", lines)] * charts)


@given(_VALUES, st.integers(1, 9), st.floats(1, 1e12), st.integers(1, 5))
def test_whatever_is_drawn_is_well_formed_and_inside(
    values: list[float | None], count: int, top: float, charts: int
) -> None:
    root = ET.fromstring(image([CellLine(f"GPU {at}", at, values) for at in range(count)], top, charts).svg())
    width, height = float(root.attrib["width"]), float(root.attrib["height"])
    for path in root.iter(f"{_SVG}path"):
        numbers = path.attrib["d"].replace("M", " ").replace("L", " ").replace("Z", " ").split()
        assert all(-1 <= float(x) <= width + 1 for x in numbers[::2])
        assert all(-1 <= float(y) <= height + 1 for y in numbers[1::2])


def test_a_gap_is_a_gap() -> None:
    line = CellLine("GPU 0", 0, [10.0, 20.0, None, 30.0, 40.0])
    root = ET.fromstring(image([line], charts=1).svg())
    strokes = [path for path in root.iter(f"{_SVG}path") if path.attrib.get("stroke") == line.color]
    assert len(strokes) == 2


def test_several_gpus_have_a_legend_and_one_has_none() -> None:
    def labels(count: int) -> list[str]:
        root = ET.fromstring(image([CellLine(f"GPU {at}", at, [1.0, 2.0, 3.0]) for at in range(count)]).svg())
        return [text.text or "" for text in root.iter(f"{_SVG}text") if (text.text or "").startswith("GPU")]

    assert labels(1) == []
    assert labels(3) == ["GPU 0", "GPU 1", "GPU 2"]


def test_the_png_shows_what_the_svg_shows(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MPLCONFIGDIR", str(tmp_path))
    matplotlib = pytest.importorskip("matplotlib")
    images = pytest.importorskip("PIL.Image")
    monkeypatch.setitem(matplotlib.rcParams, "lines.linestyle", "--")  # a program's own settings do not change it
    line = CellLine("GPU 0", 0, [0.0, 100.0, None, 50.0, 50.0])
    drawn = image([line], charts=1)
    picture = images.open(io.BytesIO(drawn.png()))
    picture.load()
    assert (picture.mode, picture.size) == ("RGBA", (2 * drawn.width, 2 * drawn.height))
    assert picture.getpixel((0, 0))[3] == 0, "the page shows through"
    color = tuple(bytes.fromhex(line.color[1:]))

    def height(x: int) -> list[int]:
        """Return where the line passes a column, in units of the image."""
        solid = [y for y in range(picture.height) if picture.getpixel((2 * x, y)) == (*color, 255)]
        return [solid[0] // 2, solid[-1] // 2] if solid else []

    left, right, top, bottom = 58, 312, 20, 92
    quarter = (right - left) // 4
    assert abs(height(left + quarter // 2)[0] - (top + bottom) // 2) <= 2, "half way up"
    assert not height(left + quarter + quarter // 2), "a gap"
    (high, low), middle = height(right - quarter // 2), (top + bottom) // 2
    assert middle - 1 <= high <= low <= middle, "level"
    assert set(drawn.bundle()) == {"image/svg+xml", "image/png"}


def test_without_matplotlib_there_is_svg(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    monkeypatch.delitem(sys.modules, "matplotlib.figure", raising=False)
    drawn = image([CellLine("GPU 0", 0, [1.0, 2.0])])
    with pytest.raises(
        GpulseError, match=r"^PNG cannot be drawn: matplotlib is not installed\. .*matplotlib`, or use SVG\.$"
    ):
        drawn.png()
    assert set(drawn.bundle()) == {"image/svg+xml"}


def test_html_holds_the_svg() -> None:
    drawn = image([CellLine("GPU 0", 0, [1.0, 2.0])])
    element = ET.fromstring(drawn.html("GPU 0: <1 %").replace(">", "/>"))
    assert (element.attrib["alt"], element.attrib["width"]) == ("GPU 0: <1 %", str(drawn.width))
    head, _, coded = element.attrib["src"].partition(",")
    assert (head, base64.b64decode(coded).decode()) == ("data:image/svg+xml;base64", drawn.svg())
