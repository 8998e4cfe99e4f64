"""Stacks of a report: the flame graph, and the text that other tools read."""

from __future__ import annotations

import xml.etree.ElementTree as ElementTree

from gpulse.model.stacks import Frame
from gpulse.surfaces.report.flame import flame_svg, folded
from gpulse.surfaces.report.recorded_samples import shortened

MAIN = Frame("/home/ada/secret/train.py", 3, "<module>")
STEP = Frame("/home/ada/secret/train.py", 9, "train", "loss.item")
SAVE = Frame("/opt/lib/python3.12/site-packages/torch/serialization.py", 900, "save")
STACKS = [((MAIN, STEP), 2.0, 8.0), ((MAIN, STEP, SAVE), 6.0, 0.0), ((MAIN,), 0.0, 1.0)]


def test_folded_stacks_are_milliseconds_waited() -> None:
    assert folded(STACKS) == (
        "train.py:3 <module>;train.py:9 train 2000\n"
        "train.py:3 <module>;train.py:9 train;torch/serialization.py:900 save 6000\n"
    )


def test_a_flame_graph_begins_where_stacks_part_and_is_as_wide_as_the_time_lost() -> None:
    picture = ElementTree.fromstring(flame_svg(STACKS))
    boxes = [(group[0].text, float(group[1].attrib["width"]), group.attrib["class"]) for group in picture]
    assert boxes == [
        ("train.py:9 train: 8.00 s", 999.5, "own"),
        ("torch/serialization.py:900 save: 6.00 s", 749.5, "library"),
    ]


def test_no_graph_without_waits_and_names_cannot_break_out() -> None:
    assert flame_svg([]) == flame_svg([((MAIN,), 0.0, 5.0)]) == ""
    evil = Frame("/x/<script>.py", 1, "<b>&\"'")
    assert "<script>" not in flame_svg([((evil,), 1.0, 0.0)])


def test_a_shared_report_does_not_tell_folders() -> None:
    plain = {"frames": {"0": [*MAIN], "1": [*SAVE]}, "times": []}
    assert shortened(plain) == {"frames": {"0": ["train.py", *MAIN[1:]], "1": [*SAVE]}, "times": []}
    assert shortened(None) is None
