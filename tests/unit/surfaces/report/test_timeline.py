"""Series in bounded memory."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from gpulse.surfaces.report.charts import POINTS, Timeline


def drawn(values: list[tuple[float, float]]) -> Timeline:
    timeline = Timeline()
    for time, value in values:
        timeline.begin(time)
        timeline.add("gpu 0", "power_draw", value)
    return timeline


def test_few_samples_are_kept_one_by_one() -> None:
    timeline = drawn([(float(at), at * 2.0) for at in range(10)])
    trace = timeline.traces["gpu 0", "power_draw"]
    assert list(trace.means()) == [at * 2.0 for at in range(10)]
    assert [place * timeline.width for place in timeline.at] == [float(at) for at in range(10)]


def test_a_spike_is_still_there_after_a_day() -> None:
    timeline = drawn([(float(at), 700.0 if at == 40_000 else 100.0) for at in range(86_400)])
    trace = timeline.traces["gpu 0", "power_draw"]
    assert len(timeline.at) <= POINTS
    assert max(trace.highs) == 700.0
    assert min(trace.lows) == 100.0
    assert sum(trace.counts) == 86_400


def test_a_series_that_begins_late_and_ends_early_has_nothing_elsewhere() -> None:
    timeline = Timeline()
    for at in range(10):
        timeline.begin(float(at))
        timeline.add("host", "cpu_percent", 1.0)
        if 3 <= at < 6:
            timeline.add("gpu 0", "power_draw", 5.0)
    trace = timeline.traces["gpu 0", "power_draw"]
    trace.reach(len(timeline.at))
    assert list(trace.means()) == [None] * 3 + [5.0] * 3 + [None] * 4


def test_a_break_stays_where_it_was() -> None:
    timeline = Timeline()
    for at in range(3000):
        timeline.begin(at + (0.0 if at < 1500 else 500.0), at == 1500)
        timeline.add("gpu 0", "power_draw", 1.0)
    (point,) = timeline.breaks
    assert abs(timeline.at[point] * timeline.width - 2000.0) <= timeline.width
    assert (timeline.at[point] - timeline.at[point - 1]) * timeline.width >= 490.0


def test_a_clock_that_is_set_back_adds_to_the_last_point() -> None:
    timeline = drawn([(100.0, 1.0), (110.0, 2.0), (50.0, 6.0)])
    assert list(timeline.traces["gpu 0", "power_draw"].means()) == [1.0, 4.0]


@given(st.lists(st.tuples(st.floats(0, 1e6), st.floats(-1e6, 1e6)), min_size=1, max_size=200))
def test_nothing_is_lost(values: list[tuple[float, float]]) -> None:
    timeline = drawn(values)
    trace = timeline.traces["gpu 0", "power_draw"]
    numbers = [value for _, value in values]
    full = [at for at, count in enumerate(trace.counts) if count]
    assert sum(trace.counts) == len(numbers)
    assert min(trace.lows[at] for at in full) == min(numbers)
    assert max(trace.highs[at] for at in full) == max(numbers)
    assert timeline.at == sorted(set(timeline.at))
