"""Whatever a program passes to a Monitor, nothing is raised into it, its figures stay true, and what is wrong is reported once."""

from __future__ import annotations

import inspect
import io
import json
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gpulse.monitor.monitor import Monitor
from gpulse.sinks import CsvSink, JsonlSink
from gpulse.sinks.base import Sample, Sink

PATIENCE = 20.0


class Mine:
    """An object of the program that answers nothing."""

    def _raise(self, *given: object) -> Any:
        raise RuntimeError("mine")

    __str__ = __repr__ = __float__ = __int__ = __index__ = __bool__ = __len__ = __eq__ = __lt__ = __format__ = _raise
    __hash__ = None  # type: ignore[assignment]


WRONG = [
    *(float("nan"), float("inf"), float("-inf"), -1, -0.5, -(10**400), 10**400, 1e300, 10**5000, None, "a", "5", "\ud800"),
    *(b"b", [], [1, 2], {}, (), {1: 2}, 1j, object(), Mine(), Mine, numpy.array([1.0, 2.0]), numpy.float32("nan")),
    *(numpy.array([]), range(3), ValueError("v"), ...),
]  # fmt: skip
OTHERS = st.text() | st.floats(max_value=-1e-300) | st.binary()


def use_phase(monitor: Monitor, value: Any) -> None:
    phase = monitor.phase(value)
    if hasattr(phase, "__enter__"):  # not what was decorated
        with phase:
            pass


def use_batches(monitor: Monitor, value: Any) -> None:
    assert list(monitor.batches([1], items=value, tokens=value, steps=value)) == [1]
    assert list(monitor.batches([1], items=lambda _: value, tokens=lambda _: value, steps=False)) == [1]


# every public method that takes something; a mark takes any value
USES: dict[str, Callable[[Monitor, Any], object]] = {
    "step": lambda monitor, value: monitor.step(value, items=value, tokens=value),
    "waited": lambda monitor, value: monitor.waited(value),
    "resume": lambda monitor, value: monitor.resume(value),
    "mark": lambda monitor, value: monitor.mark(value, value),
    "phase": use_phase,
    "batches": use_batches,
    "hasten": lambda monitor, value: monitor.hasten(value),
}


def test_every_method_that_takes_an_argument_is_here() -> None:
    members = {name: member for name, member in vars(Monitor).items() if not name.startswith("_") and callable(member)}
    assert {name for name, member in members.items() if len(inspect.signature(member).parameters) > 1} == {*USES}


@pytest.mark.parametrize("name", USES)
@given(of=st.lists(st.integers(0, len(WRONG) - 1), min_size=1, max_size=5), more=st.lists(OTHERS, max_size=3))
def test_nothing_is_raised_and_what_is_wrong_is_reported_once(name: str, of: list[int], more: list[Any]) -> None:
    said, values = io.StringIO(), [*(WRONG[at] for at in of), *more]
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("LOCAL_RANK", "1")  # counts and does not sample
        with Monitor(stderr=said) as monitor:
            for value in values * 2:
                USES[name](monitor, value)
            before = monitor.summary()
            monitor.step(3, items=2, tokens=4)
            after = monitor.summary()
    assert before is not None
    assert after is not None
    assert (after.steps - before.steps, after.items - before.items, after.tokens - before.tokens) == (3, 2, 4)
    assert (before.items, before.tokens) == (0, 0)
    assert before.waited == 0 or (name == "batches" and 0 < before.waited < before.seconds)
    lines = said.getvalue().splitlines()
    assert len(lines) == len({line.partition("=")[0] for line in lines}), "one for each argument"
    assert all(line.startswith("gpulse: ") for line in lines)
    if name in ("step", "waited", "resume"):
        assert lines, "it does not pass in silence"


@pytest.mark.parametrize(
    ("call", "sentence"),
    [
        (lambda monitor: monitor.waited(-2), "waited: seconds=-2 is not a number from 0 to "),
        (lambda monitor: monitor.waited(1e9), "waited: seconds=1000000000.0 is not a number from 0 to "),
        (lambda monitor: monitor.step(items="a"), "step: items='a' is not a number from 0 to 1e+15; it is ignored"),
        (lambda monitor: monitor.step(-1), "step: count=-1 is not a number from 0 to 1e+15; it is ignored"),
        (lambda monitor: monitor.resume("x"), "resume: step='x' is not a number from 0 to 1e+15; it is ignored"),
        (lambda monitor: [*monitor.batches([1], items="a")], "batches: items='a' is not a number from 0 to 1e+15;"),
    ],
)
def test_the_sentence_names_what_was_wrong(
    call: Callable[[Monitor], object], sentence: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("LOCAL_RANK", "1")
    said = io.StringIO()
    with Monitor(stderr=said) as monitor:
        call(monitor)
        call(monitor)
        assert monitor.errors == 2, "each is counted"
    assert said.getvalue().startswith(f"gpulse: {sentence}")
    assert said.getvalue().count("\n") == 1


def test_a_wait_that_began_before_the_run_counts_from_its_start(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LOCAL_RANK", "1")
    with Monitor() as monitor:
        monitor.waited(0.9)
        summary = monitor.summary()
    assert summary is not None
    assert 0 < summary.waited <= summary.seconds


class Arrived(Sink):
    """Says when a sample has come after `wanted` was set."""

    name = "arrived"

    def __init__(self) -> None:
        self.wanted = threading.Event()
        self.came = threading.Event()

    def write(self, sample: Sample) -> None:
        if self.wanted.is_set():
            self.came.set()


def test_sampling_and_its_files_go_on(tmp_path: Path) -> None:
    said, arrived = io.StringIO(), Arrived()
    sinks = [arrived, CsvSink(tmp_path / "a.csv"), JsonlSink(tmp_path / "a.jsonl")]
    with Monitor(sinks, source="demo", mode="thread", interval=0.1, stderr=said, report=True) as monitor:
        for use in USES.values():
            for value in WRONG:
                use(monitor, value)
        arrived.wanted.set()
        assert arrived.came.wait(PATIENCE)
        summary = monitor.stop()
    assert summary is not None
    json.dumps(summary.to_plain(), allow_nan=False)
    assert "without monitoring" not in said.getvalue()
    assert "other samples are still written" not in said.getvalue()
    for line in (tmp_path / "a.jsonl").read_text().splitlines():
        json.loads(line, parse_constant=lambda word: pytest.fail(f"{word} is not JSON"))
