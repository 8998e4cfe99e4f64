"""repr() of values: short, readable, and harmless whatever a process is called."""

from __future__ import annotations

import pytest
from hypothesis import given, settings

from gpulse.analysis.summary import GpuSummary, Summary
from gpulse.model.catalog import Gpu, Host, Process
from gpulse.model.snapshot import Problem, Snapshot
from gpulse.monitor.measurement import Measurement
from gpulse.monitor.monitor import Monitor
from gpulse.sinks import CallableSink
from tests.unit.snapshots import snapshots

GIB = 1 << 30
PROCESS = Process({"pid": 1234, "name": "python", "user": "alice", "memory_used": 12 * GIB})
BUSY = Gpu(
    {"index": 0, "name": "H100", "utilization": 97, "memory_used": 66 * GIB, "memory_total": 80 * GIB, "temperature": 66,
     "power_draw": 690.4},
    processes=(PROCESS,),
)  # fmt: skip
LOST = Gpu({"index": 1, "name": "H100"}, state="lost")


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (BUSY, "<Gpu 0 H100: 97 %, 66.0/80.0 GiB, 66 °C, 690 W, 1 process>"),
        (LOST, "<Gpu 1 H100: lost>"),
        (Gpu({}), "<Gpu ? without a name>"),
        (Gpu({"index": 2, "name": "A100"}, instances=(Gpu({}), Gpu({}))), "<Gpu 2 A100: 2 MIG instances>"),
        (PROCESS, "<Process 1234 python, alice: 12.0 GiB>"),
        (Process({"pid": 7}, {"name": "failed"}), "<Process 7 ?>"),
        (Host({"name": "box", "cpu_percent": 12.3, "memory_used": GIB, "memory_total": 64 * GIB}), "<Host box: CPU 12 %, 1.0/64.0 GiB>"),
        (Host({}), "<Host ?>"),
        (Snapshot(1_700_000_000.5, (BUSY, LOST)), "<Snapshot 2023-11-14 22:13:20 UTC, 2 GPUs: 97 %, lost>"),
        (Snapshot(0.0, (), problems=(Problem("a", "b"),)), "<Snapshot 1970-01-01 00:00:00 UTC, 0 GPUs; 1 problem>"),
        (Snapshot(1e20, (BUSY,)), "<Snapshot 1e+20, 1 GPU: 97 %>"),
        (Problem("nvidia", "it is gone"), "<Problem nvidia: it is gone>"),
    ],
    ids=lambda given: type(given).__name__,
)  # fmt: skip
def test_a_value_describes_itself(value: object, text: str) -> None:
    assert repr(value) == text


def test_a_long_snapshot_stays_short() -> None:
    assert repr(Snapshot(0.0, (BUSY,) * 9)).endswith("9 GPUs: 97 %, 97 %, 97 %, 97 %, 97 %, 97 %, 97 %, 97 %, …>")


@given(snapshots())
@settings(deadline=None)
def test_no_name_can_act_on_a_terminal(snapshot: Snapshot) -> None:
    values: list[object] = [snapshot, snapshot.host, *snapshot.problems, *snapshot.gpus]
    values += [process for gpu in snapshot.gpus for process in gpu.all_processes()]
    for value in values:
        assert repr(value).isprintable()
        assert repr(value).startswith("<")


def test_a_summary_and_a_measurement_describe_themselves() -> None:
    gpu = GpuSummary(index=0, uuid=None, name="H\x1b[31m", memory_total=None, stats={}, energy=None, idle_share=None,
                     throttled_seconds=0.0, throttled={}, power_capped=0.0)  # fmt: skip
    summary = Summary("run\x07", 125.0, samples=3, steps=40, items=0, waited=0, gpus=(gpu,), host={}, program={})
    assert repr(summary) == "<Summary run?: 2m05s, 1 GPU, 40 steps>"
    assert repr(gpu) == "<GpuSummary 0 H?[31m>"
    measurement = Measurement("load\x1b[0m")
    measurement.failed = True
    assert repr(measurement).isprintable()
    assert repr(measurement).endswith("0 µs, failed>")


def test_a_monitor_says_whether_it_runs() -> None:
    monitor = Monitor(CallableSink(print), interval=0.5, source="demo", mode="thread")
    assert repr(monitor) == "<Monitor not running, every 0.5 s, sinks: callable>"
    with monitor:
        assert repr(monitor).startswith("<Monitor running")
    assert "not running" in repr(monitor)
