"""The process table as somebody last looked at it and found it right: divided, lost and many GPUs, trees, filters, themes."""

from __future__ import annotations

from itertools import groupby

import pytest

from gpulse.model.snapshot import Snapshot
from gpulse.present.theme import Theme
from gpulse.screen.grid import Grid
from gpulse.sources.base import Relative
from gpulse.surfaces.top.layout import Area
from gpulse.surfaces.top.panels import processes as panel
from gpulse.surfaces.top.state import State
from tests.golden import check_golden
from tests.unit.surfaces.top.screens import machine, screen, troubled, watched

SIZES = ((80, 10), (120, 16), (200, 24))
LAUNCHED = {31871 + at: Relative(31871 + at, 31806, "python") for at in range(4)} | {
    31806: Relative(31806, 1, "slurmstepd", "slurmstepd: [48213.batch]", "root")
}


@pytest.fixture(autouse=True)
def _me(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(panel, "me", lambda: "ada")


def drawn(state: State) -> Grid:
    grid = Grid(state.columns, state.rows)
    panel.paint(grid, Area(0, 0, state.rows, state.columns), state)
    return grid


def colored(grid: Grid, theme: Theme) -> list[str]:
    return [
        "".join(
            theme.paint("".join(char for char, _ in run), style)
            for style, run in groupby(zip(chars, styles, strict=True), key=lambda cell: cell[1])
        ).rstrip()
        for chars, styles in zip(grid.chars, grid.styles, strict=True)
    ]


def divided() -> Snapshot:
    sample = troubled()
    return Snapshot(sample.time, sample.gpus[-1:], sample.host, sample.driver)


@pytest.mark.parametrize(("columns", "rows"), SIZES)
class TestGoldens:
    @pytest.mark.parametrize("name", ["mig", "lost", "64"])
    def test_machines(self, name: str, columns: int, rows: int) -> None:
        sample = divided() if name == "mig" else troubled() if name == "lost" else machine(64)
        check_golden(f"top/processes-{name}-{columns}x{rows}", drawn(screen(columns, rows, sample)).text())

    def test_the_tree(self, columns: int, rows: int) -> None:
        state = screen(columns, rows)
        state.tree, state.relatives, state.selected = True, LAUNCHED, 31872
        check_golden(f"top/processes-tree-{columns}x{rows}", drawn(state).text())
        state.theme = Theme(0, unicode=False)
        assert all(line.isascii() for line in drawn(state).text())

    def test_the_tree_of_a_process_on_many_gpus(self, columns: int, rows: int) -> None:
        state = screen(columns, rows, machine(16))
        state.tree, state.relatives = True, LAUNCHED
        check_golden(f"top/processes-tree-16-{columns}x{rows}", drawn(state).text())

    def test_groups(self, columns: int, rows: int) -> None:
        state = screen(columns, rows)
        state.group = "user"
        check_golden(f"top/processes-groups-{columns}x{rows}", drawn(state).text())

    @pytest.mark.parametrize("text", ["user:ada", "nobody", "mem>much"])
    def test_an_active_filter(self, text: str, columns: int, rows: int) -> None:
        state = screen(columns, rows)
        state.filter = text
        lines = drawn(state).text()
        assert "of 7" in lines[0]
        check_golden(f"top/processes-filter-{text.translate(str.maketrans(':>', '--'))}-{columns}x{rows}", lines)


@pytest.mark.parametrize("name", ["light", "neutral", "dark"])
def test_in_color(name: str) -> None:
    state = screen(120, 12, watched()[1])
    state.selected, state.tagged, state.filter = 31872, {31873}, "mem>2G"
    state.tree, state.relatives = True, LAUNCHED
    check_golden(f"top/processes-120x12-{name}", colored(drawn(state), Theme(256, name=name)))
