"""What every callback does, told by hand: a clock that stands still makes every wait exact."""

from __future__ import annotations

import copy
import pickle
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from types import SimpleNamespace

import pytest

from gpulse.analysis.summary import Summary
from gpulse.callbacks import training as module
from gpulse.callbacks.training import Arrivals, Course, MonitorOptions, harmless
from gpulse.errors import UsageError
from gpulse.sinks import CsvSink
from tests.unit.samples import sample

OPTIONS: MonitorOptions = {"mode": "thread", "source": "demo"}


class Clock:
    def __init__(self) -> None:
        self.now = 100.0

    def perf_counter(self) -> float:
        return self.now


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    clock = Clock()
    monkeypatch.setattr(module, "time", SimpleNamespace(perf_counter=clock.perf_counter))
    return clock


@pytest.fixture
def course() -> Iterator[Course]:
    course = Course((), OPTIONS)
    yield course
    course.end()


def summary(course: Course) -> Summary:
    found = course.monitor.summary()
    assert found is not None
    return found


def elsewhere(act: Callable[[], None]) -> None:
    thread = threading.Thread(target=act)
    thread.start()
    thread.join()


def batch(course: Course, clock: Clock, wait: float, reached: int | None = None) -> None:
    clock.now += wait
    course.batch_begin()
    clock.now += 10.0
    course.batch_end(reached)


def test_waiting_is_from_the_end_of_a_batch_to_the_next(course: Course, clock: Clock) -> None:
    course.begin("fit")
    batch(course, clock, 1.0, 1)
    batch(course, clock, 2.0, 2)
    clock.now += 50.0
    course.end()
    assert summary(course).waited == 3.0
    assert summary(course).steps == 2


def test_what_is_not_waiting_is_left_out(course: Course, clock: Clock) -> None:
    course.begin("fit")
    batch(course, clock, 1.0)
    course.pause()
    batch(course, clock, 40.0)
    clock.now += 40.0
    course.resume()
    batch(course, clock, 2.0)
    course.end()
    assert summary(course).waited == 3.0


def test_a_phase_within_has_its_own_waits_and_none_of_the_steps(course: Course, clock: Clock) -> None:
    course.begin("fit")
    batch(course, clock, 1.0, 1)
    clock.now += 40.0
    course.enter("validate")
    batch(course, clock, 2.0)
    course.leave()
    course.end()
    fit, validate = summary(course).phases
    assert (fit.name, fit.steps, fit.waited) == ("fit", 1, 3.0)
    assert (validate.name, validate.steps, validate.waited) == ("fit/validate", 0, 2.0)


@pytest.mark.parametrize(("error", "mark"), [(ValueError(), "failed"), (KeyboardInterrupt(), "interrupted")])
def test_how_a_training_failed_is_kept(course: Course, error: BaseException, mark: str) -> None:
    course.begin("fit")
    keeper, ledger = course.monitor._keeper, course.monitor.ledger
    course.end(error)
    assert keeper is not None
    assert keeper.failure == type(error).__name__
    assert ledger is not None
    assert [(one.name, one.value) for one in ledger.marks.new()] == [(mark, type(error).__name__)]


def test_nothing_waits_while_another_batch_is_under_way(course: Course, clock: Clock) -> None:
    course.begin("fit")
    course.batch_begin()
    clock.now += 1.0
    course.batch_begin()
    elsewhere(lambda: course.batch_end(1))
    clock.now += 1.0
    course.batch_begin()
    elsewhere(lambda: course.batch_end(2))
    elsewhere(lambda: course.batch_end(3))
    clock.now += 5.0
    course.batch_begin()
    course.end()
    assert summary(course).waited == 5.0
    assert summary(course).phases[0].steps == 3


def test_a_step_that_is_told_late_belongs_to_the_training(course: Course) -> None:
    course.begin("fit")
    course.batch_begin()
    course.enter("evaluate")
    elsewhere(lambda: course.batch_end(1))
    course.batch_begin()
    course.batch_end()
    course.leave()
    course.end()
    assert [phase.steps for phase in summary(course).phases] == [1, 0]


def test_steps_may_come_several_at_once_in_any_order_and_from_a_checkpoint(course: Course) -> None:
    course.begin("fit")
    course.at(1000)
    for reached in (1004, 1010, 1008, None, 1010):
        course.batch_end(reached)
    course.end()
    assert summary(course).steps == 10


def test_the_outermost_phase_begins_and_ends_the_whole(course: Course) -> None:
    course.enter("evaluate")
    assert course.monitor.samples
    course.leave()
    assert not course.monitor.samples
    assert [phase.name for phase in summary(course).phases] == ["evaluate"]


def test_beginning_again_stops_what_an_error_left_running(course: Course) -> None:
    course.begin("fit")
    course.enter("validate")
    course.batch_begin()
    lost = course.monitor
    course.begin("fit")
    assert not lost.samples
    assert course.depth == 1
    assert summary(course).steps == 0


def test_it_may_end_in_another_thread(course: Course, capsys: pytest.CaptureFixture[str]) -> None:
    course.begin("fit")
    elsewhere(course.end)
    assert not course.monitor.samples
    assert capsys.readouterr().err == ""


def test_hooks_without_a_training_do_nothing(course: Course) -> None:
    course.batch_begin()
    course.batch_end(1)
    course.mark("epoch", 1)
    course.end()
    assert course.monitor.summary() is None


def test_a_wrong_option_is_heard_at_once() -> None:
    with pytest.raises(UsageError, match="interval"):
        Course((), {"interval": 0.0})


@pytest.mark.parametrize("copied", [copy.deepcopy, lambda course: pickle.loads(pickle.dumps(course))])
def test_a_copy_has_the_recipe_and_runs_nothing(copied: Callable[[Course], Course], tmp_path: Path) -> None:
    course = Course(CsvSink(tmp_path / "a.csv"), OPTIONS)
    course.begin("fit")
    try:
        other = copied(course)
    finally:
        course.end()
    assert not other.monitor.samples
    other.begin("fit")
    other.end()
    assert [phase.name for phase in summary(other).phases] == ["fit"]


def test_an_error_in_a_hook_is_said_once(capsys: pytest.CaptureFixture[str]) -> None:
    @harmless
    def hook(at: int) -> int:
        raise ValueError(f"step {at}")

    assert [hook(at) for at in range(3)] == [None] * 3
    assert capsys.readouterr().err == "gpulse: ValueError: step 0 (reported once; training continues).\n"


def test_arrivals_are_means_since_the_last_time() -> None:
    arrivals = Arrivals()
    assert arrivals.take() == {}
    for value in (1.0, 3.0):
        arrivals.write(sample(value, {"gpu0/power": value}))
    assert arrivals.take() == {"gpu0/power": 2.0}
    assert arrivals.take() == {}
