"""The charts: the values of the history, the right GPU, the right moment."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence

import pytest

from gpulse.model.catalog import Gpu
from gpulse.model.snapshot import Snapshot
from gpulse.present.theme import Theme
from gpulse.screen.grid import Grid
from gpulse.surfaces.top.history import History
from gpulse.surfaces.top.layout import Area
from gpulse.surfaces.top.panels.charts import paint
from gpulse.surfaces.top.state import ScreenSettings, State
from tests.unit.surfaces.top.screens import screen

_AREA = Area(0, 0, 10, 65)


@pytest.fixture(autouse=True)
def _utc(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setenv("TZ", "UTC")
    time.tzset()
    yield
    monkeypatch.undo()
    time.tzset()


def _state(values: Sequence[tuple[float | None, ...]], key: str = "utilization", start: float = 1000.0) -> State:
    history = History([key])
    sample = Snapshot(start)
    for at, row in enumerate(values):
        gpus = tuple(
            Gpu({"index": index} if value is None else {"index": index, key: value}) for index, value in enumerate(row)
        )
        sample = Snapshot(start + at, gpus)
        history.add(sample)
    settings = ScreenSettings()
    settings.charts = [key]
    state = State(settings, history, Theme(0))
    state.live = state.shown = sample
    state.now = sample.time
    return state


def _text(state: State, area: Area = _AREA) -> list[str]:
    grid = Grid(area.columns, area.rows)
    paint(grid, area, state)
    return grid.text()


class TestValues:
    def test_the_mean_of_those_that_have_a_value(self) -> None:
        lines = _text(_state([(20.0, 40.0, None)] * 30))
        assert lines[0].startswith("Utilization mean of 2 ")
        assert lines[0].endswith("30 %")

    def test_one_gpu(self) -> None:
        state = _state([(20.0, 40.0)] * 30)
        state.chart_gpu = 1
        assert "GPU 1" in _text(state)[0]
        assert _text(state)[0].endswith("40 %")

    def test_lowest_and_highest(self) -> None:
        assert "3–90" in _text(_state([(50.0,), (90.0,), (3.0,), (50.0,)]))[0]

    def test_a_spike_stays_when_many_samples_share_a_column(self) -> None:
        values: list[tuple[float | None, ...]] = [(10.0,)] * 900
        values[450] = (100.0,)
        state = _state(values)
        state.span = 2
        assert _text(state)[1].replace("100", "").strip()

    def test_no_value_is_a_dash_and_an_empty_plot(self) -> None:
        lines = _text(_state([(None,)] * 30))
        assert lines[0].endswith(" -")
        assert all(len(line) <= 5 for line in lines[1:-1])

    def test_points_are_added_as_they_come(self) -> None:
        state = _state([(10.0,)] * 5)
        _text(state)
        sample = Snapshot(1005.0, (Gpu({"index": 0, "utilization": 77.0}),))
        state.history.add(sample)
        state.live = state.shown = sample
        assert "10–77" in _text(state)[0]

    def test_the_past_is_there_after_the_present_was_drawn(self) -> None:
        state = _state([(10.0,)] * 100 + [(90.0,)] * 100)
        assert " 90 " in _text(state)[0]
        state.back, state.shown = 120.0, state.history.sample_at(1079.0)
        line = _text(state)[0]
        assert line.endswith("10 %")
        assert "10–10" in line


class TestHoles:
    def _samples(self, times: Sequence[float]) -> list[str]:
        history = History(["utilization"])
        sample = Snapshot(0.0)
        for moment in times:
            sample = Snapshot(moment, (Gpu({"index": 0, "utilization": 100.0}),))
            history.add(sample)
        state = State(ScreenSettings(), history, Theme(0))
        state.settings.charts, state.shown, state.now = ["utilization"], sample, sample.time
        return _text(state)

    def test_samples_that_come_unevenly_leave_none(self) -> None:
        times = [1000.0 + at * 1.0 + (0.3 if at % 3 else -0.4) for at in range(80)]
        assert " " not in self._samples(times)[1][6:]

    def test_a_pause_of_the_program_is_one(self) -> None:
        assert " " * 15 in self._samples([*range(1000, 1020), *range(1040, 1060)])[1]

    def test_a_missing_value_is_one(self) -> None:
        assert " " * 5 in _text(_state([(100.0,)] * 30 + [(None,)] * 10 + [(100.0,)] * 20))[1]


class TestScales:
    def test_power_ends_at_its_limit(self) -> None:
        history = History(["power_draw"])
        sample = Snapshot(10.0, (Gpu({"index": 0, "power_draw": 300.0, "power_limit": 700.0}),))
        history.add(sample)
        state = State(ScreenSettings(), history)
        state.settings.charts, state.shown = ["power_draw"], sample
        assert _text(state)[1].startswith(" 700")

    def test_rates_have_a_round_scale(self) -> None:
        assert _text(_state([(3.2 * 2**20,)] * 3, "pcie_rx"))[1].startswith("  5M")

    def test_degrees(self) -> None:
        state = _state([(50.0,)] * 3, "temperature")
        assert _text(state)[0].endswith("50°C")
        state.settings.fahrenheit = True
        assert _text(state)[0].endswith("122°F")


class TestCursor:
    def test_the_value_and_time_under_the_mouse(self) -> None:
        state = _state([(float(at),) for at in range(60)])
        for state.cursor, shown in ((64, "59 %  00:17:39"), (34, "29 %  00:17:09"), (2, "59 %")):
            assert _text(state)[0].endswith(shown)

    def test_a_mouse_outside_changes_nothing(self) -> None:
        state = _state([(5.0,)] * 3)
        before = _text(state)
        state.cursor = 999
        assert _text(state) == before


class TestRoom:
    @pytest.mark.parametrize("columns", range(1, 90, 4))
    @pytest.mark.parametrize("rows", [0, 1, 2, 3, 5, 9, 30])
    def test_any_area(self, columns: int, rows: int) -> None:
        state = screen(columns, rows)
        state.settings.charts = ["utilization", "power_draw", "memory_used", "nothing", "temperature"]
        _text(state, Area(0, 0, rows, columns))

    def test_side_by_side_or_below(self) -> None:
        state = screen(120, 20)
        assert (
            sum(title in _text(state, Area(0, 0, 8, 120))[0] for title in ("Utilization", "SM active", "Memory")) == 3
        )
        tall = _text(state, Area(0, 0, 18, 40))
        assert [at for at, line in enumerate(tall) if "mean of 8" in line] == [0, 6, 12]
