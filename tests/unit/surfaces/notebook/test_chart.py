"""The chart of a cell: an image that any reader of notebooks shows."""

from __future__ import annotations

import xml.etree.ElementTree as ET

from hypothesis import given
from hypothesis import strategies as st

from gpulse.surfaces.notebook.chart import CellChartLine, cell_chart

_VALUES = st.lists(st.none() | st.floats(0, 1e12), min_size=3, max_size=700)
_SVG = "{http://www.w3.org/2000/svg}"


@given(_VALUES, st.integers(1, 9), st.none() | st.floats(1, 1e12))
def test_whatever_is_drawn_is_well_formed_and_inside(
    values: list[float | None], count: int, total: float | None
) -> None:
    times = [float(at) for at in range(len(values))]
    lines = [CellChartLine(f"GPU {at}", at, values) for at in range(count)]
    root = ET.fromstring(cell_chart(times, "Utilization", lines, lines, lines, total))
    width, height = float(root.attrib["width"]), float(root.attrib["height"])
    for path in root.iter(f"{_SVG}path"):
        numbers = path.attrib["d"].replace("M", " ").replace("L", " ").replace("Z", " ").replace("H", " ").split()
        assert all(-1 <= float(number) <= max(width, height) + 1 for number in numbers)


def test_a_gap_is_a_gap() -> None:
    line = CellChartLine("GPU 0", 0, [10.0, 20.0, None, 30.0, 40.0])
    root = ET.fromstring(cell_chart([0.0, 1.0, 2.0, 3.0, 4.0], "Utilization", [line], [], [line], None))
    strokes = [path.attrib["d"] for path in root.iter(f"{_SVG}path") if path.attrib.get("stroke-width")]
    assert [stroke.count("M") for stroke in strokes] == [2, 2]


def test_several_gpus_have_a_legend_and_one_has_none() -> None:
    def labels(count: int) -> list[str]:
        lines = [CellChartLine(f"GPU {at}", at, [1.0, 2.0, 3.0]) for at in range(count)]
        root = ET.fromstring(cell_chart([0.0, 1.0, 2.0], "Utilization", lines, lines, lines, 4.0))
        return [text.text or "" for text in root.iter(f"{_SVG}text") if (text.text or "").startswith("GPU")]

    assert labels(1) == []
    assert labels(3) == ["GPU 0", "GPU 1", "GPU 2"]
