"""explain_oom and oom_report: they explain, they never raise, and the program's error passes."""

from __future__ import annotations

import io
import os
import sys

import pytest

import gpulse
from gpulse.analysis.out_of_memory import read_message
from gpulse.model.catalog import Gpu, Host, Process
from gpulse.model.snapshot import Snapshot
from gpulse.monitor.messages import MemoryTrail
from gpulse.monitor.out_of_memory import _others
from tests.unit.analysis.test_out_of_memory import GIB, TORCH_211_DEMAND, TORCH_211_OTHERS


def test_the_demo_machine_adds_name_and_owner() -> None:
    report = gpulse.explain_oom(RuntimeError(TORCH_211_DEMAND), source="demo")
    assert report is not None
    assert report.gpu_name == "NVIDIA H100 80GB HBM3"
    assert any(other.user for other in report.others)
    assert report.to_plain()["cause"] == report.cause
    assert str(report) == report.text


def test_an_error_behind_another_is_found() -> None:
    error = ValueError("training failed")
    error.__cause__ = RuntimeError(TORCH_211_OTHERS)
    report = gpulse.explain_oom(error, source="demo")
    assert report is not None
    assert report.cause == "others"


def test_a_request_that_would_fit_is_not_blamed_on_others() -> None:
    gpu = {"memory_total": 140 << 30, "memory_used": 2 << 30, "memory_free": 138 << 30}
    other = {"pid": 1, "memory_used": 1 << 30}
    with gpulse.testing.scripted([{**gpu, "processes": [other]}]):
        report = gpulse.explain_oom(RuntimeError("CUDA out of memory. Tried to allocate 20.00 GiB"))
    assert report is not None
    assert (report.cause, report.free_is_now) == ("unknown", True)
    assert "torch asked for 20.0 GiB, 138 GiB is free now" in str(report)


def test_other_exceptions_are_not_explained() -> None:
    assert gpulse.explain_oom(KeyError("x"), source="demo") is None


def test_an_exception_that_cannot_be_printed_is_left_alone() -> None:
    class Odd(Exception):
        def __str__(self) -> str:
            raise RuntimeError("no")

    assert gpulse.explain_oom(Odd(), source="demo") is None


def test_a_machine_without_gpus_still_gets_the_message_explained() -> None:
    report = gpulse.explain_oom(RuntimeError(TORCH_211_DEMAND), source="replay:/nonexistent")
    assert report is not None
    assert report.gpu_name is None
    assert report.cause == "demand"


def test_the_block_prints_and_lets_the_error_pass() -> None:
    stream = io.StringIO()
    block = gpulse.oom_report(stream, source="demo")
    with pytest.raises(RuntimeError, match="out of memory"), block:
        raise RuntimeError(TORCH_211_DEMAND)
    assert stream.getvalue().startswith("gpulse: out of memory on GPU 0")
    assert block.report is not None


def test_the_decorator_does_the_same() -> None:
    stream = io.StringIO()

    @gpulse.oom_report(stream, source="demo")
    def train() -> None:
        raise RuntimeError(TORCH_211_DEMAND)

    with pytest.raises(RuntimeError, match="out of memory"):
        train()
    assert "Try, in this order" in stream.getvalue()


def test_a_block_that_ends_well_says_nothing() -> None:
    stream = io.StringIO()
    with gpulse.oom_report(stream, source="demo") as block:
        pass
    assert stream.getvalue() == ""
    assert block.report is None


def test_a_closed_stream_hides_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stderr", None)
    closed = io.StringIO()
    closed.close()
    for stream in (None, closed):
        with pytest.raises(RuntimeError, match="out of memory"), gpulse.oom_report(stream, source="demo"):
            raise RuntimeError(TORCH_211_DEMAND)


def trail(*used: float) -> MemoryTrail:
    filled = MemoryTrail()
    for at, held in enumerate(used):
        gpu = Gpu({"index": 0, "uuid": "GPU-1", "memory_used": held * GIB})
        filled.add(Snapshot(1000.0 + at, (gpu,), Host({}), {}, ()))
    return filled


def test_growth_is_steady_only_when_it_keeps_growing() -> None:
    growing = trail(*range(20)).growth("GPU-1")
    assert growing is not None
    assert (growing.steady, growing.rate, growing.seconds) == (True, GIB, 19.0)
    settled = trail(*[1, 5, 9, 10, 10, 10, 10, 10, 10, 10, 10, 10]).growth("GPU-1")
    assert settled is not None
    assert not settled.steady
    assert trail(1, 2, 3).growth("GPU-1") is None
    assert trail(*range(20)).growth("GPU-2") is None


def test_a_running_monitor_tells_the_growth(monkeypatch: pytest.MonkeyPatch) -> None:
    from gpulse.monitor import monitor as monitors

    uuid = gpulse.visible_gpus(source="demo")[0].uuid or ""
    monitor = gpulse.Monitor(source="demo", mode="thread").start()
    try:
        assert monitor.ledger is not None
        for at in range(20):
            gpu = Gpu({"index": 0, "uuid": uuid, "memory_used": at * GIB})
            monitor.ledger.trail.add(Snapshot(1000.0 + at, (gpu,), Host({}), {}, ()))
        report = gpulse.explain_oom(RuntimeError(TORCH_211_DEMAND), source="demo")
    finally:
        monitor.stop()
    assert monitors.running == []
    assert report is not None
    assert report.growth is not None


def test_in_another_namespace_a_process_of_our_number_is_another() -> None:
    gpu = Gpu({"uuid": "GPU-0"}, processes=(Process({"pid": os.getpid(), "memory_used": 5.0}),))
    report = read_message(TORCH_211_DEMAND, "torch.OutOfMemoryError")
    assert report is not None
    report.used = None
    assert [other.bytes for other in _others(report, gpu, set()) if other.pid == os.getpid()] == [5.0]
    assert report.used is None
    assert os.getpid() not in {other.pid for other in _others(report, gpu, {os.getpid()})}
    assert report.used == 5.0
