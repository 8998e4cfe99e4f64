"""Real programs on a scripted driver whose power follows their work: the line that keeps the GPU waiting is named, with its seconds."""

from __future__ import annotations

import importlib.util

import pytest

from bench.code_lines import judge, run

SECONDS = 12.0
NEAR = 0.25  # a busy machine starts a program late and reads late; bench/code_lines.py asks for 0.1 of half a minute


@pytest.mark.parametrize("program", ["metric", "item", "lock"])
def test_the_first_line_is_the_guilty_one(program: str) -> None:
    found = run(program, SECONDS)
    right, error = judge(program, found)
    assert right
    assert abs(error) < NEAR
    (text,) = found["told"]  # by a sink
    assert f"\n| {program}.py:" in text


@pytest.mark.skipif(importlib.util.find_spec("torch") is None, reason="needs torch")
def test_the_line_of_a_loader_worker_is_named() -> None:
    found = run("augment", SECONDS)
    right, _ = judge("augment", found)
    assert right
    assert "augment.py" in found["code"][0]["file"]
