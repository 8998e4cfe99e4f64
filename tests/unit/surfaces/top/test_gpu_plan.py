"""GPUs that do not fit: reached by keys, wheel and clicks at any size."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gpulse.screen.tty import KeyEvent
from gpulse.surfaces.top.actions import action_for
from gpulse.surfaces.top.app import paint
from gpulse.surfaces.top.input import move_gpu, next_gpu, point_at_gpus
from gpulse.surfaces.top.layout import Area, GpuPlan, arrange, plan
from gpulse.surfaces.top.state import State
from tests.unit.surfaces.top.screens import machine, screen, troubled

SIZES = ((40, 10), (80, 24), (120, 40), (200, 60))


def _area(state: State) -> Area:
    return arrange(state)["gpus"]


def _visible(state: State) -> set[int]:
    seen = plan(state, _area(state))
    return {gpu for gpu, _ in seen.entries[seen.first : seen.first + len(seen.places)]}


def _scroll(state: State, wheel: str) -> None:
    assert point_at_gpus(state, arrange(state), KeyEvent(mouse=wheel, row=_area(state).row))


@pytest.mark.parametrize(("columns", "rows"), SIZES)
def test_down_reaches_every_gpu_and_each_is_visible_when_it_is_selected(columns: int, rows: int) -> None:
    state = screen(columns, rows, machine(64))
    state.focus = "gpus"
    seen = []
    for _ in range(64):
        move_gpu(state, _area(state), "down")
        seen.append(state.chart_gpu)
        assert state.chart_gpu in _visible(state)
    assert seen == list(range(64))
    move_gpu(state, _area(state), "down")
    assert state.chart_gpu == 63
    move_gpu(state, _area(state), "home")
    assert state.chart_gpu == 0
    assert 0 in _visible(state)


@pytest.mark.parametrize(("columns", "rows"), SIZES)
def test_the_wheel_reaches_the_first_and_the_last(columns: int, rows: int) -> None:
    state = screen(columns, rows, machine(64))
    for _ in range(40):
        _scroll(state, "wheeldown")
    assert 63 in _visible(state)
    assert state.chart_gpu is None
    for _ in range(40):
        _scroll(state, "wheelup")
    assert 0 in _visible(state)


def test_at_80x24_the_last_of_64_is_on_the_screen_after_end() -> None:
    state = screen(80, 24, machine(64))
    state.focus = "gpus"
    move_gpu(state, _area(state), "end")
    text = "\n".join(paint(state).text())
    assert "\n63 " in text or " 63 " in text
    assert "↑" in text


def test_instances_are_passed_over() -> None:
    state = screen(40, 10, troubled())
    state.focus = "gpus"
    seen = []
    for _ in range(12):
        move_gpu(state, _area(state), "down")
        seen.append(state.chart_gpu)
    assert seen[:8] == list(range(8))
    assert seen[-1] == 7


def test_cards_move_by_rows_and_columns() -> None:
    state = screen(120, 40)
    state.focus = "gpus"
    steps = []
    for where in ("right", "right", "down", "left", "up"):
        move_gpu(state, _area(state), where)
        steps.append(state.chart_gpu)
    assert steps == [0, 1, 3, 2, 0]


def test_a_click_selects_a_gpu_and_a_second_one_opens_it() -> None:
    state = screen(120, 40)
    areas = arrange(state)
    place = plan(state, areas["gpus"]).places[5]
    click = KeyEvent(mouse="press", row=place.row + 1, column=place.column + 3)
    assert point_at_gpus(state, areas, click)
    assert (state.chart_gpu, state.focus, state.dialog) == (5, "gpus", "")
    assert point_at_gpus(state, areas, click)
    assert state.dialog == "gpu"


def test_a_click_on_the_host_opens_it_and_one_elsewhere_is_not_taken() -> None:
    state = screen(120, 40)
    areas = arrange(state)
    assert not point_at_gpus(state, areas, KeyEvent(mouse="press", row=areas["processes"].row, column=3))
    assert point_at_gpus(state, areas, KeyEvent(mouse="press", row=areas["host"].row, column=3))
    assert state.dialog == "host"


def test_the_view_goes_round_all_gpus() -> None:
    state = screen(120, 40)
    state.chart_gpu = 0
    next_gpu(state, -1)
    assert state.chart_gpu == 7
    next_gpu(state, 1)
    assert state.chart_gpu == 0


def test_tab_hands_the_keys_to_the_gpus_and_escape_hands_them_back() -> None:
    state = screen(120, 40)

    def press(key: str) -> None:
        action = action_for(state, key)
        assert action is not None
        action.run(state)

    press("tab")
    assert (state.focus, state.chart_gpu) == ("gpus", 0)
    press("enter")
    assert state.dialog == "gpu"
    press("escape")
    press("escape")
    assert (state.focus, state.chart_gpu, state.dialog) == ("processes", None, "")
    press("enter")
    assert state.dialog == "details"


@given(st.integers(0, 240), st.integers(0, 70), st.integers(0, 70), st.integers(0, 200), st.booleans())
@settings(max_examples=80, deadline=None)
def test_places_are_inside_the_area_and_never_overlap(
    columns: int, rows: int, count: int, scrolled: int, grown: bool
) -> None:
    area = Area(2, 0, rows, columns)
    found = GpuPlan(machine(count).gpus, area, scrolled, grown)
    taken: set[tuple[int, int]] = set()
    for place in found.places:
        cells = {(row, column) for row in range(place.row, place.end) for column in range(place.columns)}
        mine = {(row, place.column + column) for row, column in cells}
        assert not mine & taken
        assert all(area.holds(row, column) for row, column in mine)
        taken |= mine
    assert sum(found.hidden) + len(found.places) == len(found.entries)
