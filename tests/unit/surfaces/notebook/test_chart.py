"""Charts of a notebook: images that any reader of notebooks shows."""

from __future__ import annotations

import io
import xml.etree.ElementTree as ET

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gpulse.surfaces.notebook.chart import CellChart, CellLine, ChartImage, Raster

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


def test_the_png_shows_what_the_svg_shows() -> None:
    images = pytest.importorskip("PIL.Image")
    line = CellLine("GPU 0", 0, [0.0, 100.0, None, 50.0, 50.0])
    drawn = image([line], charts=1)
    picture = images.open(io.BytesIO(drawn.png()))
    picture.load()
    assert (picture.mode, picture.size) == ("RGBA", (2 * drawn.width, 2 * drawn.height))
    color = tuple(bytes.fromhex(line.color[1:]))

    def height(x: int) -> list[int]:
        """Return where the line passes a column, in units of the image."""
        solid = [y for y in range(picture.height) if picture.getpixel((2 * x, y)) == (*color, 255)]
        return [solid[0] // 2, solid[-1] // 2] if solid else []

    left, right, top, bottom = 58, 312, 20, 92
    quarter = (right - left) // 4
    assert abs(height(left + quarter // 2)[0] - (top + bottom) // 2) <= 2, "half way up"
    assert not height(left + quarter + quarter // 2), "a gap"
    assert height(right - quarter // 2) == [(top + bottom) // 2 - 1, (top + bottom) // 2], "level"


def test_a_picture_is_cut_off_at_its_edges_and_colors_mix_by_opacity() -> None:
    images = pytest.importorskip("PIL.Image")
    raster = Raster(10, 10)
    raster.line([(-50.0, -3.0), (50.0, 30.0)], "#ff0000", 1.0)
    raster.text(-5.0, 40.0, "M§", "#00ff00")
    raster.area([(2.0, 0.0), (4.0, 0.0)], 2.0, "#0000ff", 0.5)
    raster.area([(2.0, 0.0), (4.0, 0.0)], 2.0, "#00ff00", 0.5)
    picture = images.open(io.BytesIO(raster.png()))
    assert picture.getpixel((5, 1)) == (0, 170, 85, 192)


def test_every_letter_of_a_label_can_be_drawn() -> None:
    raster = Raster(40, 20)
    blank = raster.png()
    for letter in "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789.,%/-–°":
        raster = Raster(40, 20)
        raster.text(5.0, 12.0, letter, "#000000")
        assert raster.png() != blank, letter
