"""The lines of a cell: those of this run of this cell, named as the notebook names its cells."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from gpulse.model.stacks import Frame
from gpulse.monitor.quiet import QUIET_MONITOR
from gpulse.surfaces.notebook.cell import CellCode, named_lines

compilerop = pytest.importorskip("IPython.core.compilerop")

SHELL = Frame("/opt/site-packages/IPython/core/interactiveshell.py", 3000, "run_code")


class Stacks:
    """What the monitor of the kernel has seen so far."""

    def __init__(self) -> None:
        self.seen: dict[tuple[Frame, ...], tuple[float, float]] = {}

    def stacks(self) -> list[Any]:
        return [(frames, *times) for frames, times in self.seen.items()]


@pytest.fixture
def seen(monkeypatch: pytest.MonkeyPatch) -> Stacks:
    stacks = Stacks()
    monitor = SimpleNamespace(ledger=SimpleNamespace(code=stacks))
    monkeypatch.setattr(QUIET_MONITOR, "sampling", lambda: monitor)
    return stacks


def cells(compiler: Any, *texts: str) -> list[str]:
    """Compile cells, numbered from 1, and return their files."""
    return [compiler.cache(text, number, raw_code=text) for number, text in enumerate(texts, 1)]


def result(number: int | None, text: str) -> Any:
    return SimpleNamespace(execution_count=number, info=SimpleNamespace(transformed_cell=text))


def test_only_this_run_of_this_cell_counts_with_the_functions_it_calls(seen: Stacks) -> None:
    compiler = compilerop.CachingCompiler()
    function, cell, other = cells(compiler, "def score():\n    pass", "score()", "sleep()")
    called = (SHELL, Frame(cell, 1, "<module>", "score"), Frame(function, 2, "score"))
    seen.seen[called] = (3.0, 1.0)
    code = CellCode()
    seen.seen[called] = (8.0, 1.5)
    seen.seen[SHELL, Frame(other, 1, "<module>", "sleep")] = (4.0, 0.0)
    [line] = code.lines(compiler, result(2, "score()"))
    assert (line.file, line.line, line.function) == ("In [1]", 2, "score")
    assert (line.waited, line.computed) == (5.0, 0.5)
    assert code.lines(compiler, None) == [], "an interrupted cell has no number"


def test_the_copies_of_a_repeated_cell_are_one_text(seen: Stacks) -> None:
    compiler = compilerop.CachingCompiler()
    text = "magic()\nstep()\nwait()\n" * 3
    [cell] = cells(compiler, text)
    code = CellCode(copies=3)
    for at in (3, 6, 9):
        seen.seen[SHELL, Frame(cell, at, "<module>", "wait")] = (2.0, 0.0)
    [line] = code.lines(compiler, result(1, text))
    assert (line.file, line.line, line.waited) == ("In [1]", 3, 6.0)


def test_a_kernel_that_is_not_sampled_has_no_lines(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(QUIET_MONITOR, "sampling", lambda: None)
    compiler = compilerop.CachingCompiler()
    cells(compiler, "1")
    assert CellCode().lines(compiler, result(1, "1")) == []


def test_files_that_are_no_cells_keep_their_names(seen: Stacks) -> None:
    compiler = compilerop.CachingCompiler()
    [cell] = cells(compiler, "train()")
    code = CellCode()
    seen.seen[SHELL, Frame(cell, 1, "<module>", "train"), Frame("/home/ada/train.py", 7, "train")] = (5.0, 1.0)
    [line] = named_lines(code.lines(compiler, result(1, "train()")), compiler)
    assert (line.file, line.line) == ("/home/ada/train.py", 7)
