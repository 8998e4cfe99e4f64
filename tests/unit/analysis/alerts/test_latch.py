"""One fire and one clear, however a value hovers; and seconds that were really watched."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from gpulse.analysis.alerts.latch import Latch
from gpulse.analysis.alerts.rule_set import WatchedTime

_VERDICTS = st.lists(st.tuples(st.sampled_from((True, False, None)), st.sampled_from((True, False, None))), max_size=60)


class TestLatch:
    @given(
        _VERDICTS,
        st.lists(st.floats(0.1, 30), min_size=60, max_size=60),
        st.floats(0, 60),
        st.floats(0, 60),
        st.floats(0, 60),
    )
    def test_fire_and_clear_take_turns(
        self,
        verdicts: list[tuple[bool | None, bool | None]],
        steps: list[float],
        patience: float,
        calm: float,
        slack: float,
    ) -> None:
        latch, now, found = Latch(), 0.0, []
        for (holds, well), step in zip(verdicts, steps, strict=False):
            now += step
            turn = latch.step(now, holds, well, patience, calm, slack)
            assert turn is None or turn is latch.active
            found += [] if turn is None else [turn]
        assert found == [at % 2 == 0 for at in range(len(found))]

    @given(st.lists(st.sampled_from((True, False)), max_size=80), st.integers(1, 20))
    def test_it_fires_exactly_when_the_condition_has_lasted(self, holds: list[bool], patience: int) -> None:
        latch = Latch()
        fired = [at for at, one in enumerate(holds) if latch.step(float(at), one, False, patience, 0.0) is True]
        runs = (at for at in range(len(holds) - patience) if all(holds[at : at + patience + 1]))
        first = next(runs, None)
        assert fired == ([] if first is None else [first + patience])

    @given(st.lists(st.none(), max_size=20), st.booleans())
    def test_what_nobody_knows_turns_nothing(self, unknown: list[None], active: bool) -> None:
        latch = Latch()
        if active:
            assert latch.step(0.0, True, False, 0.0, 0.0) is True
        assert [latch.step(9.0 + at, None, None, 0.0, 0.0) for at in range(len(unknown))] == unknown
        assert latch.active is active

    def test_time_in_which_nobody_knew_does_not_count(self) -> None:
        latch = Latch()
        seen = [(0, True), (1, None), (100, True), (109, True), (110, True)]
        assert [latch.step(now, holds, None, 10.0, 0.0) for now, holds in seen] == [None, None, None, None, True]

    def test_what_comes_and_goes_is_told_ever_less_often(self) -> None:
        latch = Latch()
        turns = [latch.step(float(at), at % 10 < 5, at % 10 >= 5, 0.0, 2.0) for at in range(600)]
        assert turns.count(True) <= 5
        later = [latch.step(600.0 + at, False, True, 0.0, 2.0) for at in range(700)]
        assert later.count(False) <= 1
        assert latch.active is False

    def test_between_two_thresholds_nothing_turns(self) -> None:
        latch = Latch()
        assert latch.step(0.0, True, False, 0.0, 0.0) is True
        assert [latch.step(float(at), at % 2 == 0, False, 0.0, 0.0) for at in range(1, 50)] == [None] * 49
        assert latch.step(50.0, False, True, 0.0, 0.0) is False

    def test_with_slack_short_interruptions_do_not_start_it_anew(self) -> None:
        strict, slack = Latch(), Latch()
        flicker = [at % 3 != 0 for at in range(30)]
        assert [strict.step(float(at), one, not one, 3.0, 9.0) for at, one in enumerate(flicker)] == [None] * 30
        found = [slack.step(float(at), one, not one, 3.0, 9.0, 5.0) for at, one in enumerate(flicker)]
        assert [turn for turn in found if turn is not None] == [True]


class TestWatchedTime:
    def test_seconds_between_samples_add_up(self) -> None:
        clock = WatchedTime()
        assert [clock.advance(1e9 + at * 0.5) for at in range(5)] == [0.0, 0.5, 1.0, 1.5, 2.0]

    def test_a_clock_set_back_counts_nothing_and_goes_on(self) -> None:
        clock = WatchedTime()
        assert [clock.advance(time) for time in (1000.0, 1001.0, 401.0, 402.0)] == [0.0, 1.0, 1.0, 2.0]

    def test_a_hole_counts_as_one_usual_step(self) -> None:
        clock = WatchedTime()
        for at in range(10):
            clock.advance(float(at))
        assert clock.advance(40_000.0) == 10.0
        assert clock.advance(40_001.0) == 11.0

    def test_slow_samples_are_not_holes(self) -> None:
        clock = WatchedTime()
        assert [clock.advance(300.0 * at) for at in range(4)] == [0.0, 0.0, 300.0, 600.0]

    @given(st.lists(st.floats(0, 4e9), max_size=40))
    def test_it_never_goes_back_nor_faster_than_the_clock(self, times: list[float]) -> None:
        clock, before = WatchedTime(), 0.0
        forward = 0.0
        for at, time in enumerate(times):
            now = clock.advance(time)
            assert now >= before
            before = now
            forward += max(0.0, time - times[at - 1]) if at else 0.0
        assert before <= forward * (1 + 1e-9)
