"""The ledger: which window gets what was seen, and how much of the energy."""

from __future__ import annotations

import asyncio
import contextvars
import io
import threading
from collections.abc import Callable

import pytest

from gpulse.analysis.tally import Tally
from gpulse.model.snapshot import Snapshot
from gpulse.monitor.flops import StepFlops
from gpulse.monitor.ledger import Ledger
from gpulse.monitor.monitor import Monitor
from gpulse.monitor.rhythm import RhythmRates
from tests.unit.monitor.agent_samples import START, Diary, mean, named, sample


@pytest.fixture
def diary() -> Diary:
    return contextvars.Context().run(Diary)


# --- phases


def test_phases_nest_and_repeat(diary: Diary) -> None:
    for begin in (0.0, 10.0):
        end_train = diary.phase("train", begin)
        end_eval = diary.phase("eval", begin + 2)
        assert diary.ledger.phase() == "train/eval"
        end_eval(begin + 3)
        assert diary.ledger.phase() == "train"
        end_train(begin + 5)
    assert diary.ledger.phase() == ""
    summary = diary.at(20.0).summary()
    assert [(phase.name, phase.calls, phase.seconds) for phase in summary.phases] == [
        ("train", 2, 10.0),
        ("train/eval", 2, 2.0),
    ]
    assert summary.seconds == 20.0


def test_an_open_phase_lasts_until_now_and_not_beyond_the_end(diary: Diary) -> None:
    diary.phase("train", 1.0)
    assert named(diary.at(4.0).summary(), "train").seconds == 3.0
    diary.at(5.0).end()
    assert named(diary.at(99.0).summary(), "train").seconds == 4.0
    assert diary.ledger.summary().seconds == 5.0


def test_phases_of_threads_stand_beside_each_other(diary: Diary) -> None:
    end = diary.phase("train", 0.0)
    thread = threading.Thread(target=lambda: diary.phase("save", 0.5)(0.75))
    thread.start()
    thread.join()
    end(1.0)
    assert [phase.name for phase in diary.ledger.summary().phases] == ["train", "save"]


def test_phases_of_tasks_that_take_turns_stand_beside_each_other(diary: Diary) -> None:
    async def task(name: str) -> None:
        phase, window = diary.ledger.enter(name)
        await asyncio.sleep(0)
        diary.ledger.step(1, 0)
        await asyncio.sleep(0)
        diary.ledger.leave(phase, window)

    async def both() -> None:
        await asyncio.gather(task("a"), task("b"))

    asyncio.run(both())
    summary = diary.ledger.summary()
    assert [(phase.name, phase.steps) for phase in summary.phases] == [("a", 1), ("b", 1)]
    assert summary.steps == 2


def test_phases_that_end_out_of_order_end_each_its_own(diary: Diary) -> None:
    end_a, end_b = diary.phase("a", 0.0), diary.phase("b", 1.0)
    end_a(3.0)
    end_b(4.0)
    assert [(p.name, p.seconds) for p in diary.ledger.summary().phases] == [("a", 3.0), ("a/b", 3.0)]
    assert diary.ledger.phase() == ""


def test_a_phase_may_end_in_another_thread(diary: Diary) -> None:
    end = diary.phase("a", 0.0)
    thread = threading.Thread(target=end, args=(2.0,))
    thread.start()
    thread.join()
    assert named(diary.ledger.summary(), "a").seconds == 2.0


def test_two_ledgers_do_not_nest_in_each_other(diary: Diary) -> None:
    other = Diary()
    diary.phase("train", 0.0)
    other.phase("eval", 0.0)
    assert [phase.name for phase in other.ledger.summary().phases] == ["eval"]


# --- looks


def test_a_sample_stands_for_the_time_since_the_one_before_shared_by_overlap(diary: Diary) -> None:
    diary.sample(0.0, utilization=0)
    end = diary.phase("train", 1.0)
    diary.sample(2.0, utilization=10)  # one of its two seconds lies in the phase
    diary.sample(5.0, utilization=50)  # all three
    end(6.0)
    diary.sample(9.0, utilization=90)  # one of four
    summary = diary.ledger.summary()
    assert mean(named(summary, "train")) == pytest.approx((10 * 1 + 50 * 3 + 90 * 1) / 5)
    assert mean(summary) == pytest.approx((10 * 2 + 50 * 3 + 90 * 4) / 9, rel=1e-5)  # the first stood for an instant


def test_what_comes_after_a_phase_is_not_its_own(diary: Diary) -> None:
    diary.sample(0.0, utilization=0)
    diary.phase("train", 0.0)(1.0)
    diary.sample(1.0, utilization=20)
    diary.sample(2.0, utilization=100)
    train = named(diary.ledger.summary(), "train")
    assert (mean(train), train.samples, train.gpus[0].stats["utilization"].max) == (20.0, 1, 20.0)


def test_the_first_sample_ever_counts_in_an_open_phase(diary: Diary) -> None:
    diary.phase("train", 0.0)
    diary.sample(0.1, utilization=30)
    assert mean(named(diary.ledger.summary(), "train")) == 30.0


def test_a_window_begins_with_a_fresh_sample_and_with_no_old_one(diary: Diary) -> None:
    class Begun(Tally):
        def begin(self, snapshot: Snapshot, own: object = None) -> None:
            begun.append(snapshot.time)

    begun: list[float] = []
    diary.at(0.0).open(Begun)
    diary.sample(1.0, utilization=0)
    diary.at(2.9).open(Begun)
    diary.at(3.1).open(Begun)
    diary.sample(3.2, utilization=0)
    assert begun == [1.0]


def test_begin_and_end_ask_for_a_sample(diary: Diary) -> None:
    end = diary.phase("train", 0.0)
    assert diary.edges == 1
    end(1.0)
    assert diary.edges == 2


# --- windows that somebody waits for


def test_a_short_window_is_finished_by_the_first_sample_after_it(diary: Diary) -> None:
    finished: list[float] = []
    diary.sample(0.0, energy=0.0)
    window = diary.at(0.1).open(Tally, lambda _: finished.append(diary.clock.time - START))
    assert diary.ledger.measuring
    diary.sample(0.2, energy=0.0)
    diary.at(0.3).close(window)
    assert not diary.ledger.measuring
    assert not finished
    diary.sample(0.4, energy=0.0)
    diary.sample(0.5, energy=0.0)
    assert finished == [pytest.approx(0.4)]


def test_a_long_window_waits_for_the_counter_to_pass_its_end(diary: Diary) -> None:
    finished: list[float] = []
    diary.sample(0.0, energy=100.0)
    window = diary.at(0.0).open(Tally, lambda _: finished.append(diary.clock.time - START))
    diary.at(2.0).close(window)
    diary.sample(2.1, energy=100.0)  # an old value
    assert finished == []
    diary.sample(2.5, energy=400.0)
    assert finished == [2.5]


def test_a_counter_that_never_moves_is_not_waited_for_long(diary: Diary) -> None:
    finished: list[float] = []
    diary.sample(0.0, energy=100.0)
    window = diary.at(0.0).open(Tally, lambda _: finished.append(diary.clock.time - START))
    diary.at(2.0).close(window)
    for at in (10.0, 31.0, 33.0, 40.0):
        diary.sample(at, energy=100.0)
    assert finished == [33.0]


def test_without_samples_a_window_is_finished_when_it_is_closed_and_not_kept(diary: Diary) -> None:
    finished: list[float] = []
    waiting = diary.at(0.0).open(Tally, lambda _: finished.append(diary.clock.time - START))
    still_open = diary.ledger.open(Tally, lambda _: finished.append(diary.clock.time - START))
    diary.at(1.0).close(waiting)
    assert finished == []
    diary.at(3.0).unwatched()
    assert finished == [3.0]
    diary.at(4.0).close(still_open)
    assert finished == [3.0, 4.0]
    for _ in range(3):
        diary.phase("train", 5.0)(6.0)
    assert diary.ledger._windows == {}
    assert named(diary.ledger.summary(), "train").calls == 3


def test_dropping_a_window_after_the_end_is_no_error(diary: Diary) -> None:
    window = diary.at(0.0).open(Tally)
    diary.ledger.end()
    diary.ledger.drop(window)
    diary.ledger.close(window)


# --- what the program says


def test_steps_and_waiting_count_in_every_phase_around(diary: Diary) -> None:
    ledger = diary.ledger
    ledger.step(1, 0)
    end_train = diary.phase("train", 0.0)
    ledger.step(2, 64)
    ledger.waited(0.5)
    end_eval = diary.phase("eval", 1.0)
    ledger.step(3, 0)
    end_eval(2.0)
    end_train(4.0)
    summary = ledger.summary()
    assert (summary.steps, summary.items, summary.waited) == (6, 64, 0.5)
    train, inner = named(summary, "train"), named(summary, "train/eval")
    assert (train.steps, train.items, train.waited) == (5, 64, 0.5)
    assert (inner.steps, inner.items, inner.waited) == (3, 0, 0.0)
    assert train.steps_per_second == 5 / 4.0


def test_rhythm_is_the_rate_since_the_sample_before_and_leaves_out_what_is_not_counted(diary: Diary) -> None:
    ledger = diary.ledger
    rates = RhythmRates(ledger.rhythm)
    assert rates.since(1.0) == {}
    ledger.step(4, 0)
    assert rates.since(2.0) == {"train/steps_per_second": 2.0}
    ledger.step(1, 32)
    ledger.waited(1.0)
    assert rates.since(2.0) == {
        "train/steps_per_second": 0.5,
        "train/items_per_second": 16.0,
        "train/data_wait": 50.0,
    }
    assert rates.since(2.0)["train/steps_per_second"] == 0.0
    ledger.waited(9.0)
    assert rates.since(2.0)["train/data_wait"] == 100.0  # two threads may wait at once
    assert rates.since(0.0) == {}


def test_step_times_leave_out_what_happens_between_the_entries_of_a_phase(diary: Diary) -> None:
    end = diary.phase("train", 0.0)
    for at in (1.0, 2.0, 3.0):
        diary.at(at).step(1, 0)
    end(3.0)
    diary.phase("eval", 3.0)(100.0)
    end = diary.phase("train", 100.0)
    diary.at(104.0).step(1, 0)
    end(104.0)
    whole = diary.ledger.summary()
    for summary in (whole, named(whole, "train")):
        assert summary.step_time is not None
        assert (summary.step_time.p50, summary.step_time.max, summary.step_time.mean) == (1.0, 4.0, 1.75)
    assert named(whole, "eval").step_time is None


def test_several_steps_at_once_share_their_time(diary: Diary) -> None:
    diary.at(1.0).step(1, 0)
    diary.at(9.0).step(4, 0)
    found = diary.ledger.summary().step_time
    assert found is not None
    assert (found.p50, found.max) == (2.0, 2.0)


def test_marks_are_told_once(diary: Diary) -> None:
    diary.at(1.0).marks.add("epoch", 0)
    assert [(mark.name, mark.value, mark.time) for mark in diary.ledger.marks.new()] == [("epoch", 0, START + 1)]
    assert diary.ledger.marks.new() == ()
    for value in range(5):
        diary.ledger.marks.add("more", value)
    assert [mark.value for mark in diary.ledger.marks.new()] == [0, 1, 2, 3, 4]
    assert diary.ledger.marks.new() == ()


def test_threads_may_do_all_at_once(diary: Diary) -> None:
    def work(name: str) -> None:
        for _ in range(200):
            phase, window = diary.ledger.enter(name)
            diary.ledger.step(1, 1)
            diary.ledger.leave(phase, window)

    def watch() -> None:
        for at in range(200):
            diary.sample(at / 100, utilization=1, energy=float(at))

    jobs: list[Callable[[], None]] = [lambda: work("a"), lambda: work("b"), watch]
    threads = [threading.Thread(target=job) for job in jobs]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert [phase.calls for phase in diary.ledger.summary().phases] == [200, 200]


def test_the_peak_of_a_phase_is_not_that_of_the_sample_after_its_end(diary: Diary) -> None:
    end = diary.phase("train", 0.0)
    diary.sample(0.5, memory_used=10, utilization=20)
    end(1.0)
    diary.sample(1.1, memory_used=90, utilization=80)
    end = diary.phase("train", 2.0)
    end(2.5)  # this window is known from the sample after it only
    diary.sample(2.6, memory_used=70)
    train = named(diary.ledger.summary(), "train").gpus[0]
    assert train.peak_memory == 10
    assert train.stats["memory_used"].p95 <= 10
    assert train.stats["utilization"].max == 80  # covers the time before it, which is of the phase


def test_a_sample_within_a_window_that_has_closed_since_is_within(diary: Diary) -> None:
    end = diary.phase("train", 0.0)
    late = sample(0.9, memory_used=50)
    end(1.0)
    diary.at(1.2).add(late)
    diary.sample(1.3, memory_used=90)
    assert named(diary.ledger.summary(), "train").gpus[0].peak_memory == 50


def test_a_phase_that_only_later_samples_tell_of_has_their_peak(diary: Diary) -> None:
    end = diary.phase("brief", 0.5)
    end(0.6)
    diary.sample(1.0, memory_used=70)
    assert named(diary.ledger.summary(), "brief").gpus[0].peak_memory == 70


# --- throughput


def test_steps_have_times_and_tokens(diary: Diary) -> None:
    for at in (1.0, 2.0, 3.0, 5.0):
        diary.at(at).step(1, 2, 100)
    summary = diary.at(10.0).summary()
    assert (summary.steps, summary.items, summary.tokens) == (4, 8, 400)
    assert summary.tokens_per_second == 40.0
    assert summary.step_time is not None
    assert (summary.step_time.p50, summary.step_time.max) == (1.0, 2.0)
    assert summary.step_blocks == [1.0, 1.0, 2.0]


def test_the_energy_of_each_token_is_in_the_log(diary: Diary) -> None:
    diary.at(1.0).step(1, 0, 100)
    diary.sample(1.0, energy=1000.0)
    diary.sample(3.0, energy=1500.0)
    rates = RhythmRates(diary.ledger.rhythm).since(2.0) | diary.at(4.0).energy_rates()
    assert rates["train/tokens_per_second"] == 50.0
    assert rates["train/energy_per_token"] == pytest.approx(5.0)
    assert "train/energy_per_item" not in rates


def test_a_known_step_gives_a_utilization(diary: Diary) -> None:
    diary.ledger.flops = StepFlops(98.95e12, "bfloat16")
    diary.sample(1.0, name="NVIDIA H100 80GB HBM3")
    for _ in range(10):
        diary.at(2.0).step(1, 0)
    assert RhythmRates(diary.at(3.0).rhythm).since(2.0)["train/mfu"] == pytest.approx(50.0)
    whole = diary.at(2.0).summary()
    assert whole.mfu is not None
    assert whole.mfu.percent == pytest.approx(50.0)


def test_a_summary_that_fails_does_not_reach_the_program(monkeypatch: pytest.MonkeyPatch) -> None:
    told = io.StringIO()
    monkeypatch.setattr(Ledger, "summary", lambda self: 1 / 0)
    with Monitor(source="demo", mode="thread", stacks=False, stderr=told) as monitor:
        assert monitor.samples
    assert (monitor.errors, monitor.samples) == (1, False)
    assert told.getvalue() == "gpulse: no summary: ZeroDivisionError: division by zero.\n"


# --- more than anybody reads


def test_a_phase_for_every_step_is_one_phase_in_the_end(diary: Diary) -> None:
    for step in range(1000):
        diary.phase(f"step {step}", step)(step + 0.5)
    inner = diary.phase("step 1000", 1000.0)
    diary.phase("within", 1000.1)(1000.2)
    inner(1001.0)
    phases = diary.ledger.summary().phases
    assert len(phases) == 201
    assert (phases[-1].name, phases[-1].calls, phases[0].calls) == ("(others)", 802, 1)


def test_figures_of_gpus_are_for_a_few_measured_calls_at_once(diary: Diary) -> None:
    told: list[Tally | None] = []
    windows = [diary.at(0.0).open(Tally, told.append, f"call {at}") for at in range(20)]
    diary.sample(1.0, utilization=50.0)
    for window in reversed(windows):
        diary.at(2.0).close(window)
    assert told == [None] * 4  # at once: no sample is waited for
    diary.sample(3.0, utilization=50.0)
    assert [tally.samples for tally in told if tally is not None] == [2] * 16
    again = diary.at(4.0).open(Tally, told.append, "again")
    diary.sample(5.0, utilization=50.0)
    diary.at(6.0).close(again)
    diary.sample(7.0, utilization=50.0)
    assert told[-1] is not None
