"""The last minutes: values where there were some, holes where there were none, and looks to step back to."""

from __future__ import annotations

import math
from collections.abc import Sequence
from contextlib import closing

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gpulse.model.catalog import Gpu, Process
from gpulse.model.select import EVERYTHING
from gpulse.model.snapshot import Snapshot
from gpulse.sampling.sampler import Sampler
from gpulse.sources.registry import make_source
from gpulse.surfaces.top import history as history_module
from gpulse.surfaces.top.history import History


def sample(time: float, *values: float | None) -> Snapshot:
    """A look at GPUs with these utilizations; None is a GPU that did not say."""
    return Snapshot(
        time, tuple(Gpu({"index": at} | ({} if v is None else {"utilization": v})) for at, v in enumerate(values))
    )


def shown(values: Sequence[float]) -> list[float | None]:
    return [None if math.isnan(value) else value for value in values]


def filled(*samples: Snapshot, keys: tuple[str, ...] = ("utilization",)) -> History:
    history = History(keys)
    for one in samples:
        history.add(one)
    return history


class TestSeries:
    def test_values_of_each_gpu_with_their_times(self) -> None:
        history = filled(sample(1, 10, 20), sample(2, 11, 21))
        times, values = history.series(1, "utilization", 0)
        assert (list(times), shown(values)) == ([1, 2], [20, 21])

    def test_only_from_a_moment_on(self) -> None:
        history = filled(sample(1, 10), sample(2, 11), sample(3, 12))
        assert [shown(history.series(0, "utilization", since)[1]) for since in (2, 2.5, 9)] == [[11, 12], [12], []]

    def test_a_value_that_is_missing_is_a_hole(self) -> None:
        history = filled(sample(1, 10), sample(2, None), sample(3, 12))
        assert shown(history.series(0, "utilization", 0)[1]) == [10, None, 12]

    def test_a_gpu_that_comes_later_and_one_that_goes_leave_holes(self) -> None:
        history = filled(sample(1, 10), sample(2, 11, 21), sample(3, 12))
        assert shown(history.series(1, "utilization", 0)[1]) == [None, 21, None]
        assert shown(history.series(0, "utilization", 0)[1]) == [10, 11, 12]

    def test_a_metric_nobody_watched_is_all_holes(self) -> None:
        times, values = filled(sample(1, 10), sample(2, 11)).series(0, "power_draw", 0)
        assert (len(times), shown(values)) == (2, [None, None])

    def test_a_metric_watched_from_now_on_has_holes_before(self) -> None:
        history = filled(sample(1, 10))
        history.watch(["temperature"])
        history.add(Snapshot(2, (Gpu({"index": 0, "temperature": 50, "utilization": 11}),)))
        assert shown(history.series(0, "temperature", 0)[1]) == [None, 50]
        assert shown(history.series(0, "utilization", 0)[1]) == [10, 11]

    def test_watching_twice_keeps_one_series(self) -> None:
        history = History(["utilization"])
        history.watch(["utilization", "temperature", "temperature"])
        assert history.keys == ("utilization", "temperature")

    def test_two_gpus_without_an_index_do_not_mix_up_the_times(self) -> None:
        history = History(["utilization"])
        for time in (1.0, 2.0):
            history.add(Snapshot(time, (Gpu({"utilization": 5}), Gpu({"utilization": 6}))))
        times, values = history.series(0, "utilization", 0)
        assert len(times) == len(values) == 2

    @given(st.lists(st.lists(st.none() | st.integers(0, 100), max_size=3), max_size=12))
    def test_times_and_values_are_always_as_many(self, samples: list[list[float | None]]) -> None:
        history = filled(*(sample(float(at), *values) for at, values in enumerate(samples)))
        for gpu in range(3):
            times, values = history.series(gpu, "utilization", 0)
            assert len(times) == len(values) == len(samples)
            assert shown(values) == [row[gpu] if gpu < len(row) else None for row in samples]


class TestSteppingBack:
    def test_the_newest_sample_not_later_than_a_moment(self) -> None:
        history = filled(sample(1, 10), sample(2, 11), sample(3, 12))
        times = {moment: (found := history.sample_at(moment)) and found.time for moment in (1, 1.9, 2, 2.5, 3, 99)}
        assert times == {1: 1, 1.9: 1, 2: 2, 2.5: 2, 3: 3, 99: 3}

    def test_before_all_the_oldest(self) -> None:
        found = filled(sample(5, 10), sample(6, 11)).sample_at(1)
        assert found is not None
        assert found.time == 5

    def test_without_any_nothing(self) -> None:
        assert History([]).sample_at(5) is None
        assert History([]).moments() == []

    def test_a_sample_comes_back_whole(self) -> None:
        gpu = Gpu(
            {"index": 0, "uuid": "GPU-1", "utilization": 5},
            {"power_draw": "denied"},
            processes=(Process({"pid": 7, "name": "träin\x1b", "memory_used": 1 << 30}),),
        )
        one = Snapshot(4.25, (gpu, Gpu({"index": 1}, state="lost", since=2.0)), driver={"version": "580"})
        assert filled(one).sample_at(4.25) == one

    def test_samples_of_simulated_machines_come_back_whole(self) -> None:
        for name in ("demo", "demo:mixed"):
            with closing(Sampler(make_source(name), EVERYTHING).open()) as sampler:
                one = sampler.read()
            assert one.gpus[0].processes
            assert filled(one).sample_at(one.time) == one

    def test_every_sample_of_many_comes_back_also_after_the_clock_was_set_back(self) -> None:
        history = filled(*(sample(float(at), at) for at in range(35)))
        assert [history.sample_at(float(at)) for at in range(35)] == [sample(float(at), at) for at in range(35)]
        history.add(sample(16.5, 99))
        assert history.moments() == [*range(17), 16.5]
        assert [history.sample_at(at) for at in (9.0, 16.0, 40.0)] == [
            sample(9.0, 9),
            sample(16.0, 16),
            sample(16.5, 99),
        ]

    def test_moments_are_in_order(self) -> None:
        assert filled(sample(1, 1), sample(2, 1), sample(3.5, 1)).moments() == [1, 2, 3.5]


class TestTrimming:
    def test_old_points_and_samples_go_and_the_rest_stays_aligned(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(history_module, "_POINTS", 100)
        history = History(["utilization"])
        for at in range(100 + 3601):
            history.add(Snapshot(float(at), (Gpu({"index": 0, "utilization": at % 101}),) if at < 3650 else ()))
        times, values = history.series(0, "utilization", 0)
        assert len(times) == len(values) == 100
        assert list(times) == [float(at) for at in range(3601, 3701)]
        assert shown(values) == [at % 101 if at < 3650 else None for at in range(3601, 3701)]
        assert len(history.moments()) == 900
        assert history.moments()[-1] == 3700.0


class TestOtherCurves:
    def test_the_last_hour_of_every_curve_is_kept(self) -> None:
        history = History(["utilization"])
        for at in range(3):
            history.add(Snapshot(float(at), (Gpu({"index": 0, "utilization": 1, "power_draw": 100.0 + at}),)))
        assert history.last(0, "power_draw", 1.0, 9.0) == [101.0, 102.0]
        assert history.last(0, "power_draw", 0.0, 1.0) == [100.0, 101.0]
        assert history.last(0, "fp64_active", 0.0, 9.0) == []

    def test_a_chart_that_is_added_later_starts_with_them(self) -> None:
        history = History(["utilization"])
        for at in range(3):
            history.add(Snapshot(float(at), (Gpu({"index": 0, "utilization": 1, "power_draw": 100.0 + at}),)))
        history.watch(["power_draw"])
        history.add(Snapshot(3.0, (Gpu({"index": 0, "power_draw": 103.0}),)))
        assert history.last(0, "power_draw", 0.0, 9.0) == [100.0, 101.0, 102.0, 103.0]

    def test_the_past_of_all_of_them_can_be_put_before(self) -> None:
        history = History(["utilization"])
        history.add(Snapshot(10.0, (Gpu({"index": 0, "utilization": 5, "temperature": 50}),)))
        history.prepend([8.0, 9.0], {(0, "utilization"): [1.0, 2.0], (0, "temperature"): [40.0, 41.0]})
        assert history.last(0, "utilization", 0.0, 99.0) == [1.0, 2.0, 5.0]
        assert history.last(0, "temperature", 0.0, 99.0) == [40.0, 41.0, 50.0]
