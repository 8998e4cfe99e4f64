"""What every callback does, called by hand, with a clock that the test moves."""

from __future__ import annotations

import copy
import pickle
import threading
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from types import SimpleNamespace

import pytest

from gpulse.analysis.summary import Summary
from gpulse.callbacks import fetching, training
from gpulse.callbacks.fetching import Replacement
from gpulse.callbacks.training import Arrivals, Course, MonitorOptions, harmless
from gpulse.errors import UsageError
from gpulse.monitor import rhythm
from gpulse.monitor.ledger import Ledger
from gpulse.sinks import CsvSink
from tests.unit.monitor.agent_samples import SetClock
from tests.unit.samples import sample

OPTIONS: MonitorOptions = {"mode": "thread", "source": "demo"}


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


class Loader:
    """Part of a framework: its trainer calls `fetch` for each batch, and something else takes time around it."""

    def fetch(self, batches: Iterator[float]) -> float:
        return next(batches)


def follow(course: Course) -> None:
    fetches = course.fetches
    course.follow(
        lambda: Loader, "fetch", lambda fetch: lambda loader, batches: fetch(loader, fetches.batches(batches))
    )


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> SetClock:
    """A clock for what takes time, which a test moves."""
    clock = SetClock()
    for module in (rhythm, fetching):
        monkeypatch.setattr(module, "time", SimpleNamespace(perf_counter=clock.monotonic))
    monkeypatch.setattr(
        Ledger, "seconds", property(lambda ledger: 1000.0)
    )  # of the runs, in which much has been waited
    return clock


def loaded(clock: SetClock, *seconds: float) -> Iterator[float]:
    """Yield batches that take this long to load."""
    for each in seconds:
        clock.time += each
        yield each


def test_waiting_is_from_asking_for_a_batch_to_getting_it(course: Course, clock: SetClock) -> None:
    original = Loader.fetch
    course.begin("fit")
    follow(course)
    batches = loaded(clock, 1.0, 2.0)
    for step in (1, 2):
        Loader().fetch(batches)
        clock.time += 50.0  # the step, and callbacks
        course.reach(step)
    with pytest.raises(StopIteration):
        Loader().fetch(batches)
    course.end()
    assert summary(course).waited == 3.0
    assert summary(course).steps == 2
    assert Loader.fetch is original


def test_a_profiler_may_tell_of_it(course: Course, clock: SetClock) -> None:
    course.begin("fit")
    course.fetches.arrived()  # nothing was asked for
    course.fetches.asked()
    clock.time += 4.0
    course.fetches.arrived()
    clock.time += 40.0
    course.end()
    assert summary(course).waited == 4.0


def test_a_phase_within_has_its_own_waits_and_none_of_the_steps(course: Course, clock: SetClock) -> None:
    course.begin("fit")
    follow(course)
    Loader().fetch(loaded(clock, 1.0))
    course.reach(1)
    course.enter("validate")
    Loader().fetch(loaded(clock, 2.0))
    course.reach(None)
    course.leave()
    course.end()
    fit, validate = summary(course).phases
    assert (fit.name, fit.steps, fit.waited) == ("fit", 1, 3.0)
    assert (validate.name, validate.steps, validate.waited) == ("fit/validate", 0, 2.0)


def test_what_another_thread_fetches_is_not_waited_for_here(course: Course, clock: SetClock) -> None:
    course.begin("fit")
    follow(course)
    elsewhere(lambda: assert_fetched(loaded(clock, 5.0)))
    course.end()
    assert summary(course).waited == 0.0


def assert_fetched(batches: Iterator[float]) -> None:
    assert Loader().fetch(batches) == 5.0


@pytest.mark.parametrize("found", [Loader, object()])
def test_a_framework_that_does_not_fetch_as_expected_is_said_once(
    course: Course, found: object, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(training, "_told", set())
    for _ in range(2):
        course.begin("fit")
        course.follow(lambda: found, "fetch", lambda fetch: fetch)
        course.reach(1)
        course.end()
    assert capsys.readouterr().err == f"gpulse: {training._UNKNOWN}\n"
    assert summary(course).waited == 0.0


def test_what_somebody_else_has_replaced_since_then_stays() -> None:
    class Owner:
        def fetch(self) -> int:
            return 1

    one = Replacement(Owner, "fetch", lambda fetch: lambda owner: fetch(owner) + 1)
    two = Replacement(Owner, "fetch", lambda fetch: lambda owner: fetch(owner) + 10)
    one.undo()
    assert Owner().fetch() == 12
    two.undo()
    assert Owner().fetch() == 2
    of_an_object = Owner()
    three = Replacement(of_an_object, "fetch", lambda fetch: lambda: fetch() + 100)
    assert of_an_object.fetch() == 102
    three.undo()
    assert vars(of_an_object) == {}


@pytest.mark.parametrize(("error", "mark"), [(ValueError(), "failed"), (KeyboardInterrupt(), "interrupted")])
def test_how_a_training_failed_is_kept(course: Course, error: BaseException, mark: str) -> None:
    course.begin("fit")
    keeper, ledger = course.monitor._keeper, course.monitor.ledger
    course.end(error)
    assert keeper is not None
    assert keeper.failure == type(error).__name__
    assert ledger is not None
    assert [(one.name, one.value) for one in ledger.marks.new()] == [(mark, type(error).__name__)]


def test_steps_that_other_threads_report_are_counted_by_the_thread_that_trains(course: Course) -> None:
    course.begin("fit")
    for step in (1, 2, 3):
        elsewhere(partial(course.reach, step))
    assert summary(course).steps == 0
    course.count()
    assert summary(course).phases[0].steps == 3


def test_a_step_that_is_told_late_belongs_to_the_training(course: Course) -> None:
    course.begin("fit")
    course.enter("evaluate")
    elsewhere(lambda: course.reach(1))
    course.reach(None)
    course.leave()
    course.end()
    assert [phase.steps for phase in summary(course).phases] == [1, 0]


def test_steps_may_come_several_at_once_in_any_order_and_from_a_checkpoint(course: Course) -> None:
    course.begin("fit")
    course.at(1000)
    for reached in (1004, 1010, 1008, None, 1010):
        course.reach(reached)
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
    course.reach(1)
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
