"""Sinks behind outlets: one that fails or hangs costs only its own samples."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from gpulse.model.stacks import CodeLine
from gpulse.monitor import listener
from gpulse.monitor.ledger import Ledger
from gpulse.monitor.listener import Outlet, close_all, opened
from gpulse.present.code import code_markdown
from gpulse.sinks import HistorySink
from gpulse.sinks.base import Sample, Sink
from tests.unit.samples import sample

if TYPE_CHECKING:
    from collections.abc import Iterator

PATIENCE = 20.0


class Recorder(Sink):
    """Keeps the step of each sample, after doing with it what a test tells."""

    name = "recorder"

    def __init__(self, act: Callable[[Sample], object] = lambda sample: None) -> None:
        self.act = act
        self.steps: list[int | None] = []
        self.closed = 0
        self.threads: set[int] = set()

    def write(self, sample: Sample) -> None:
        self.threads.add(threading.get_ident())
        self.act(sample)
        self.steps.append(sample.step)

    def close(self) -> None:
        self.threads.add(threading.get_ident())
        self.closed += 1


class Bench:
    """Outlets at work, and what they said."""

    def __init__(self) -> None:
        self.said: list[str] = []
        self.release = threading.Event()

    def outlet(self, sink: Sink) -> Outlet:
        outlet = Outlet(sink, self.said.append)
        outlet.start()
        return outlet


@pytest.fixture
def bench() -> Iterator[Bench]:
    bench = Bench()
    yield bench
    bench.release.set()


def numbered(step: int) -> Sample:
    return sample(float(step), {"gpu0/utilization": 1.0}, step=step)


def test_everything_is_written_in_order_by_one_thread_and_then_closed(bench: Bench) -> None:
    sink = Recorder()
    outlet = bench.outlet(sink)
    for step in range(50):
        outlet.put(numbered(step))
    outlet.close()
    assert outlet.join(PATIENCE)
    assert (sink.steps, sink.closed) == (list(range(50)), 1)
    assert len(sink.threads) == 1
    assert threading.get_ident() not in sink.threads
    assert (outlet.dropped, outlet.failed, bench.said) == (0, 0, [])


def test_a_sink_that_fails_loses_only_those_samples_and_says_so_once(bench: Bench) -> None:
    def picky(sample: Sample) -> None:
        if (sample.step or 0) % 2:
            raise ValueError("odd")

    failing, other = Recorder(picky), Recorder()
    pair = [bench.outlet(failing), bench.outlet(other)]
    for step in range(6):
        for outlet in pair:
            outlet.put(numbered(step))
    for outlet in pair:
        outlet.close()
    assert all(outlet.join(PATIENCE) for outlet in pair)
    assert (failing.steps, failing.closed, other.steps) == ([0, 2, 4], 1, [0, 1, 2, 3, 4, 5])
    assert [outlet.failed for outlet in pair] == [3, 0]
    assert len(bench.said) == 1
    assert "recorder: odd" in bench.said[0]


def test_an_error_without_words_is_named(bench: Bench) -> None:
    def refuse(sample: Sample) -> None:
        raise KeyError

    outlet = bench.outlet(Recorder(refuse))
    outlet.put(numbered(1))
    outlet.close()
    assert outlet.join(PATIENCE)
    assert "KeyError" in bench.said[0]


def test_a_sink_that_fails_to_close_or_flush_is_done_all_the_same(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Broken(Recorder):
        def flush(self) -> None:
            raise OSError("disk full")

        def close(self) -> None:
            raise OSError("disk full")

    monkeypatch.setattr(listener, "_FLUSH", -1.0)
    sink = Broken()
    outlet = bench.outlet(sink)
    outlet.put(numbered(1))
    outlet.close()
    assert outlet.join(PATIENCE)
    assert (sink.steps, outlet.failed, len(bench.said)) == ([1], 2, 1)


def test_a_summary_is_handed_over_once_after_the_samples_and_one_that_fails_costs_nothing_else(bench: Bench) -> None:
    class Summarized(Recorder):
        def summarize(self, text: str) -> None:
            self.told = (text, [*self.steps], self.closed, threading.get_ident() in self.threads)
            self.act(numbered(2))

    def refuse(sample: Sample) -> None:
        if sample.step == 2:
            raise OSError("disk full")

    failing, other, without = Summarized(refuse), Summarized(), Recorder()
    outlets = [bench.outlet(sink) for sink in (failing, other, without)]
    for outlet in outlets:
        outlet.put(numbered(1))
    lines = [CodeLine("train.py", 84, "compute_f1", 58.0, 1.0)]
    summary = Ledger(lambda: None).summary()
    summary.code = lines
    summary.seconds = 60.0
    close_all(outlets, time.monotonic() + PATIENCE, bench.said.append, summary)
    assert failing.told == other.told == (code_markdown(lines), [1], 0, True)
    assert [sink.closed for sink in (failing, other, without)] == [1, 1, 1]
    assert [outlet.failed for outlet in outlets] == [1, 0, 0]
    assert len(bench.said) == 1
    assert "disk full" in bench.said[0]


def test_a_sink_that_hangs_blocks_neither_the_others_nor_the_end(bench: Bench) -> None:
    entered = threading.Event()

    def hang(sample: Sample) -> None:
        entered.set()
        bench.release.wait()

    hanging, other = bench.outlet(Recorder(hang)), bench.outlet(sink := Recorder())
    for outlet in (hanging, other):
        outlet.put(numbered(1))
        outlet.close()
    assert entered.wait(PATIENCE)
    assert other.join(PATIENCE)
    assert sink.steps == [1]
    assert not hanging.join(0.0)
    assert not hanging.join(-5.0)
    bench.release.set()
    assert hanging.join(PATIENCE)


def test_a_slow_sink_loses_the_oldest_and_they_are_counted(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(listener, "_WAITING", 5)
    entered = threading.Event()

    def hang_at_first(sample: Sample) -> None:
        entered.set()
        if sample.step == 0:
            bench.release.wait()

    sink = Recorder(hang_at_first)
    outlet = bench.outlet(sink)
    outlet.put(numbered(0))
    assert entered.wait(PATIENCE)
    for step in range(1, 9):
        outlet.put(numbered(step))
    assert outlet.dropped == 3
    bench.release.set()
    outlet.close()
    assert outlet.join(PATIENCE)
    assert sink.steps == [0, 4, 5, 6, 7, 8]


def test_what_waits_is_written_after_closing(bench: Bench) -> None:
    sink = Recorder(lambda sample: bench.release.wait())
    outlet = bench.outlet(sink)
    for step in range(3):
        outlet.put(numbered(step))
    outlet.close()
    bench.release.set()
    assert outlet.join(PATIENCE)
    assert sink.steps == [0, 1, 2]


def test_a_simulated_machine_does_not_get_into_the_history_of_this_one(tmp_path: Path) -> None:
    said: list[str] = []
    assert opened([HistorySink()], said.append, "demo") == []
    assert "name another file: history:FILE" in said[0]
    (outlet,) = opened([HistorySink(str(tmp_path / "history.db"))], said.append, "demo")
    outlet.close()
    assert outlet.join(PATIENCE)
    assert len(said) == 1
