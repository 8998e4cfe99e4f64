"""Samples as a trace: counters, phases and marks on the clock of torch's profiler."""

from __future__ import annotations

import gzip
import json
import time
from pathlib import Path
from typing import Any

import pytest

from gpulse.errors import GpulseError
from gpulse.model.catalog import GPU_METRICS, Gpu, Host
from gpulse.model.snapshot import Snapshot
from gpulse.sinks.base import Mark
from gpulse.surfaces.report.perfetto import perfetto
from gpulse.surfaces.report.recorded_samples import RecordedSample

START = 1_794_813_567.5


def moment(at: float, phase: str = "", marks: tuple[Mark, ...] = (), **gpu: Any) -> RecordedSample:
    values = {"index": 0, "uuid": "GPU-0", "name": "NVIDIA H200", **gpu}
    snapshot = Snapshot(START + at, (Gpu(values),), Host({"cpu_percent": 50.0}))
    return RecordedSample(snapshot, phase=phase, marks=marks, values={"train/steps_per_second": 3.0})


def trace(*moments: RecordedSample, traces: tuple[str, ...] = ()) -> dict[str, Any]:
    plain: dict[str, Any] = json.loads("".join(perfetto(moments, traces)))
    return plain


def seconds(plain: dict[str, Any], event: dict[str, Any]) -> float:
    """When an event was, in seconds after START."""
    return float(plain["baseTimeNanoseconds"] / 1e9 - START + event["ts"] / 1e6)


def named(plain: dict[str, Any], name: str) -> list[dict[str, Any]]:
    return [event for event in plain["traceEvents"] if event["name"] == name]


def test_counters_have_units_and_a_share_stands_for_the_time_before_it() -> None:
    plain = trace(moment(0, utilization=10, memory_used=4096), moment(1, utilization=90, memory_used=8192))
    use, memory = named(plain, GPU_METRICS["utilization"].title), named(plain, GPU_METRICS["memory_used"].title)
    assert [(round(seconds(plain, one), 3), one["args"]) for one in use] == [(0.0, {"%": 10}), (0.0, {"%": 90})]
    assert [(round(seconds(plain, one), 3), one["args"]) for one in memory] == [(0.0, {"B": 4096}), (1.0, {"B": 8192})]
    assert [event["args"]["name"] for event in named(plain, "process_name")] == [
        "GPU 0 H200",
        "gpulse: host and program",
    ]
    assert len(named(plain, "train/steps_per_second")) == 2


def test_phases_and_marks_are_tracks() -> None:
    plain = trace(
        moment(0),
        moment(1, "train"),
        moment(3, "train", (Mark("epoch", 2, START + 2.5),)),
        moment(4, "eval"),
        moment(5, "eval"),
    )
    phases = [event for event in plain["traceEvents"] if event["ph"] == "X"]
    assert [(one["name"], round(seconds(plain, one), 3), round(one["dur"] / 1e6, 3)) for one in phases] == [
        ("train", 1.0, 3.0),
        ("eval", 4.0, 1.0),
    ]
    (mark,) = named(plain, "epoch 2")
    assert (mark["ph"], round(seconds(plain, mark), 3)) == ("i", 2.5)


def test_nothing_is_an_empty_trace() -> None:
    assert trace()["traceEvents"] == []


def test_the_base_is_that_of_torch(tmp_path: Path) -> None:
    assert trace(moment(0))["baseTimeNanoseconds"] == 1_790_857_026_000_000_000


def test_traces_with_another_base_are_moved(tmp_path: Path) -> None:
    old = tmp_path / "old.json.gz"
    old.write_bytes(
        gzip.compress(
            json.dumps(
                {"traceEvents": [{"ph": "X", "name": "mm", "pid": 1, "tid": 1, "ts": (START + 2) * 1e6, "dur": 5}]}
            ).encode()
        )
    )
    new = tmp_path / "new.json"
    new.write_text(
        json.dumps(
            {
                "baseTimeNanoseconds": 1_790_857_026_000_000_000,
                "traceEvents": [{"ph": "X", "name": "add", "ts": (START + 3 - 1_790_857_026) * 1e6}],
            }
        )
    )
    plain = trace(moment(0), traces=(str(old), str(new)))
    assert seconds(plain, named(plain, "mm")[0]) == pytest.approx(2.0, abs=1e-3)
    assert seconds(plain, named(plain, "add")[0]) == pytest.approx(3.0, abs=1e-3)


@pytest.mark.parametrize("content", [b"", b"no json", b"[]", b'{"a": 1}', b"\x1f\x8b broken"])
def test_what_is_no_trace_is_an_error(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "trace.json"
    path.write_bytes(content)
    with pytest.raises(GpulseError, match=r"trace\.json (is not a trace|cannot be read)"):
        trace(moment(0), traces=(str(path),))


def test_the_clock_of_the_real_profiler(tmp_path: Path) -> None:
    torch = pytest.importorskip("torch")
    path = str(tmp_path / "torch.json")
    profiler = torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CPU])
    profiler.start()
    before = time.time()
    with torch.profiler.record_function("between"):
        torch.ones(8, 8) @ torch.ones(8, 8)
    after = time.time()
    profiler.stop()
    profiler.export_chrome_trace(path)
    now = RecordedSample(
        Snapshot(before, (), Host({})), marks=(Mark("before", None, before), Mark("after", None, after))
    )
    plain = trace(now, traces=(path,))
    times = {name: named(plain, name)[0]["ts"] for name in ("before", "between", "after")}
    assert times["before"] - 1000 <= times["between"] <= times["after"] + 1000  # microseconds
