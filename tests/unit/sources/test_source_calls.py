"""The call in a line of source code."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gpulse.model.stacks import Frame
from gpulse.sources.source_calls import call_at, with_call

SOURCE = """\
total += loss.item()
x = 1
step(batch.to(device), print)
f(g(x))
f(x) + f(y)
out = model(
    x,
)
[row for row in rows()[0].cpu()]
torch.save(model.state_dict(), path)
"""


@pytest.fixture
def file(tmp_path: Path) -> str:
    path = tmp_path / "train.py"
    path.write_text(SOURCE)
    return str(path)


@pytest.mark.parametrize(
    ("line", "call"),
    [
        (1, "loss.item"),
        (2, ""),
        (3, "batch.to"),  # of two calls, the one that waits
        (4, ""),  # either
        (5, "f"),
        (7, "model"),
        (9, ".cpu"),
        (10, "torch.save"),
        (99, ""),
    ],
)
def test_the_call_as_it_is_written(file: str, line: int, call: str) -> None:
    assert call_at(file, line) == call


def test_only_the_programs_own_innermost_frame_names_its_call(file: str) -> None:
    outer, own = Frame(file, 10, "<module>"), Frame(file, 1, "train")
    inner = Frame("/usr/lib/python3.11/site-packages/torch/_tensor.py", 5, "item")
    assert with_call((outer, own, inner)) == (outer, own._replace(call="loss.item"), inner)
    assert with_call((inner,)) == (inner,)
    assert with_call(()) == ()


@pytest.mark.parametrize("name", ["missing.py", "\0", "", "<string>"])
def test_a_file_that_is_not_there(name: str) -> None:
    assert call_at(name, 1) == ""


@given(st.binary(max_size=60))
def test_whatever_is_in_a_file(tmp_path_factory: pytest.TempPathFactory, content: bytes) -> None:
    path = tmp_path_factory.mktemp("source") / "file.py"
    path.write_bytes(content)
    assert isinstance(call_at(str(path), 1), str)
