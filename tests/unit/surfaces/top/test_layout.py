"""Where panels go: on the screen, never over each other, at any size."""

from __future__ import annotations

import itertools
import time
from collections.abc import Iterator

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gpulse.model.catalog import Gpu
from gpulse.model.snapshot import Snapshot
from gpulse.model.verdict import Concern
from gpulse.present.theme import Theme
from gpulse.surfaces.top.layout import PANELS, Area, arrange, shape_of, split
from tests.golden import check_golden
from tests.unit.surfaces.top.screens import machine, painted, screen, troubled


@pytest.fixture(autouse=True)
def _utc(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setenv("TZ", "UTC")
    time.tzset()
    yield
    monkeypatch.undo()
    time.tzset()


def _gpus(count: int, parts: list[int]) -> tuple[Gpu, ...]:
    return tuple(
        Gpu(
            {"index": at, "name": "NVIDIA H100", "utilization": 5},
            instances=tuple(
                Gpu({"index": part, "name": "MIG 1g.10gb"}) for part in range(parts[at] if at < len(parts) else 0)
            ),
        )
        for at in range(count)
    )


class TestAnySize:
    @given(
        st.integers(0, 400),
        st.integers(0, 120),
        st.integers(0, 64),
        st.lists(st.integers(0, 7), max_size=8),
        st.sets(st.sampled_from(["charts", "host", "processes", "gpus"])),
        st.sampled_from(["", "", "", "gpus", "charts", "processes"]),
        st.integers(0, 100),
        st.booleans(),
    )
    @settings(max_examples=150, deadline=None)
    def test_areas_stay_on_the_screen_and_apart(
        self,
        columns: int,
        rows: int,
        count: int,
        parts: list[int],
        hidden: set[str],
        enlarged: str,
        scrolled: int,
        unicode: bool,
    ) -> None:
        state = screen(columns, rows, Snapshot(1e9, _gpus(count, parts)))
        state.theme = Theme(0, unicode)
        state.hidden, state.enlarged, state.gpu_scrolled = hidden, enlarged, scrolled
        areas = arrange(state)
        assert set(areas) == set(PANELS)
        taken: set[int] = set()
        for area in areas.values():
            mine = set(range(area.row, area.end))
            assert not mine & taken
            assert area.column == 0
            assert area.columns == columns
            taken |= mine
        assert taken <= set(range(rows))
        for name in hidden - {enlarged}:
            assert areas[name].rows == 0
        grid = painted(state)
        assert all(len(row) == columns for row in grid.chars)
        assert all(len(row) == columns for row in grid.styles)

    def test_no_sample_yet(self) -> None:
        state = screen(80, 24)
        state.live = state.shown = None
        assert "waiting for the first sample…" in "\n".join(painted(state).text())


class TestRoom:
    def test_one_row_each_for_header_events_and_footer(self) -> None:
        areas = arrange(screen(80, 24))
        assert (areas["header"].row, areas["header"].rows) == (0, 1)
        assert (areas["footer"].row, areas["footer"].rows) == (23, 1)
        assert (areas["events"].row, areas["events"].rows) == (22, 1)
        assert arrange(screen(80, 15))["events"].rows == 0

    def test_what_is_wrong_takes_the_row_of_the_events_and_none_of_the_gpus(self) -> None:
        state = screen(80, 24, Snapshot(1e9, _gpus(8, [])))
        state.concerns = (Concern("hot", "warn", 1e9),)
        areas = arrange(state)
        assert (areas["problems"].rows, areas["gpus"].rows, areas["events"].rows) == (1, 9, 0)
        state.rows = 30
        assert arrange(state)["events"].rows == 1

    def test_charts_stand_beside_a_table_worth_reading(self) -> None:
        areas = arrange(screen(80, 24))
        assert areas["charts"].rows >= 6
        assert areas["processes"].rows >= 4

    def test_every_row_is_used(self) -> None:
        for size in ((80, 24), (120, 40), (200, 60), (400, 120)):
            assert sum(area.rows for area in arrange(screen(*size)).values()) == size[1]

    def test_an_enlarged_panel_has_all_but_header_and_footer(self) -> None:
        state = screen(80, 24)
        state.enlarged = "processes"
        assert arrange(state)["processes"].rows == 22
        assert arrange(state)["gpus"].rows == 0

    def test_few_gpus_are_cards_and_many_are_lines(self) -> None:
        assert shape_of(machine(8).gpus, 120, 20).cards
        assert not shape_of(machine(8).gpus, 80, 10).cards
        many = shape_of(machine(64).gpus, 200, 30)
        assert not many.cards
        assert many.across > 1

    def test_hidden_panels_leave_their_rows_to_others(self) -> None:
        state = screen(80, 24)
        before = arrange(state)["processes"].rows
        state.hidden = {"charts", "host"}
        assert arrange(state)["processes"].rows > before

    @given(st.integers(0, 200), st.integers(1, 9))
    def test_split_fills_the_width(self, columns: int, count: int) -> None:
        places = split(Area(0, 3, 1, columns), count)
        assert len(places) == count
        if columns >= 3 * count:
            assert places[-1].column + places[-1].columns == 3 + columns
            assert all(one.column + one.columns + 2 == other.column for one, other in itertools.pairwise(places))


class TestScreens:
    @pytest.mark.parametrize(("columns", "rows"), [(40, 10), (80, 24), (120, 40), (200, 60), (400, 120)])
    @pytest.mark.parametrize("unicode", [True, False])
    def test_eight_gpus(self, columns: int, rows: int, unicode: bool) -> None:
        lines = painted(screen(columns, rows, unicode=unicode)).text()
        assert unicode or all(line.isascii() for line in lines)
        check_golden(f"top/demo-{columns}x{rows}{'' if unicode else '-ascii'}", lines)

    @pytest.mark.parametrize(("columns", "rows"), [(40, 20), (80, 24), (120, 40)])
    def test_trouble(self, columns: int, rows: int) -> None:
        check_golden(f"top/troubled-{columns}x{rows}", painted(screen(columns, rows, troubled())).text())

    @pytest.mark.parametrize(("columns", "rows"), [(80, 24), (200, 60)])
    def test_sixty_four_gpus(self, columns: int, rows: int) -> None:
        check_golden(f"top/many-{columns}x{rows}", painted(screen(columns, rows, machine(64))).text())

    def test_one_gpu(self) -> None:
        check_golden("top/one-80x24", painted(screen(80, 24, machine(1))).text())

    def test_a_moment_of_the_past(self) -> None:
        state = screen(120, 40)
        state.back, state.paused, state.span, state.cursor = 125.0, True, 1, 20
        state.shown = state.history.sample_at(state.now - 125)
        check_golden("top/past-120x40", painted(state).text())

    def test_old_data(self) -> None:
        state = screen(120, 40)
        state.now += 12
        check_golden("top/stale-120x40", painted(state).text())
