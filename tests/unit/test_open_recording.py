"""Recordings from Python, on real files: plain, packed, cut off, long, and written by a monitor."""

from __future__ import annotations

import json
import tracemalloc
from datetime import datetime, timezone
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import gpulse
from gpulse.errors import RecordingError, UsageError
from gpulse.model.catalog import Gpu, Process
from gpulse.model.codec import to_line
from gpulse.model.snapshot import Snapshot
from gpulse.sinks import JsonlSink
from tests.unit.recordings import START, frames, numbers, text_of, write
from tests.unit.samples import sample


@pytest.fixture(params=[False, True], ids=["plain", "packed"])
def path(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    return write(tmp_path / "run.ndjson", text_of(frames(20)), request.param)


def shares(recording: gpulse.Recording) -> list[float | None]:
    return [snapshot.gpus[0].utilization for snapshot in recording]


def test_it_is_a_sequence_of_snapshots(path: str) -> None:
    with gpulse.open_recording(path) as recording:
        assert list(recording) == frames(20)
        assert list(recording) == frames(20)
        assert len(recording) == 20
        assert recording[3] == frames(20)[3]
        assert recording[-1] == frames(20)[-1]
        assert (recording.start, recording.end, recording.duration) == (START, START + 19, 19.0)
        with pytest.raises(IndexError, match="no sample 20"):
            recording[20]


def test_slices_are_recordings(path: str) -> None:
    with gpulse.open_recording(path) as recording:
        part = recording[5:15]
        assert shares(part) == [*range(5, 15)]
        assert (len(part), part.duration, part[0].time) == (10, 9.0, START + 5)
        assert shares(part[2:4]) == [7, 8]
        assert shares(part[-2:]) == [13, 14]
        assert shares(recording[:3]) == [0, 1, 2]
        assert shares(recording[18:100]) == [18, 19]
        assert shares(recording[::-5]) == [19, 14, 9, 4]
        assert shares(recording[10:7:-1]) == [10, 9, 8]
        assert shares(recording[7:3]) == []


@given(st.slices(20))
@settings(deadline=None)
def test_any_slice_is_that_of_a_list(tmp_path_factory: pytest.TempPathFactory, at: slice) -> None:
    path = tmp_path_factory.getbasetemp() / "slices.ndjson"
    if not path.exists():
        path.write_text(text_of(frames(20)))
    with gpulse.open_recording(path) as recording:
        assert shares(recording[at]) == numbers(frames(20)[at])


def test_a_stretch_of_time(path: str) -> None:
    noon = datetime.fromtimestamp(START + 15, timezone.utc)
    with gpulse.open_recording(path) as recording:
        assert shares(recording.between(START + 5, START + 8)) == [5, 6, 7]
        assert shares(recording.between("2023-11-14T22:13:30Z", noon)) == [10, 11, 12, 13, 14]
        assert shares(recording.between(end=START + 2)) == [0, 1]
        assert shares(recording.between(START + 17.5)) == [18, 19]
        assert shares(recording.between(START - 100, START - 50)) == []
        assert shares(recording.between(START + 100)) == []
        assert shares(recording[::3].between(START + 5, START + 14)) == [6, 9, 12]
        with pytest.raises(RecordingError, match="is not a time"):
            recording.between("noon")
        with pytest.raises(UsageError, match="is not a time"):
            recording.between(True)


def test_times_between_microseconds_do_not_lose_a_sample(tmp_path: Path) -> None:
    snapshots = [Snapshot(round(START + at / 7, 6), (Gpu({"index": 0}),)) for at in range(2_000)]
    path = write(tmp_path / "run.ndjson", text_of(snapshots))
    with gpulse.open_recording(path) as recording:
        for one, other in pairwise(snapshots):
            assert [found.time for found in recording.between(one.time, other.time)] == [one.time]


def test_it_describes_itself_without_reading_all_of_it(path: str) -> None:
    recording = gpulse.open_recording(path)
    assert repr(recording) == "<Recording run.ndjson>"
    assert repr(recording[2:4]) == "<Recording run.ndjson: 2 samples over 1s, 1 GPU, from 2023-11-14 22:13:22 UTC>"
    assert len(recording) == 20
    assert repr(recording) == "<Recording run.ndjson: 20 samples over 19s, 1 GPU, from 2023-11-14 22:13:20 UTC>"
    recording.close()
    recording.close()
    assert repr(recording).endswith("closed>")
    with pytest.raises(RecordingError, match="it has been closed"):
        recording[0]


def test_an_empty_file_has_no_samples(tmp_path: Path) -> None:
    with gpulse.open_recording(write(tmp_path / "empty", "")) as recording:
        assert (len(recording), recording.duration, list(recording), bool(recording)) == (0, 0.0, [], False)
        assert recording.events == ()
        assert recording.to_records() == []
        assert list(recording.between(0, 1)) == []
        assert repr(recording) == "<Recording empty: no samples>"


def test_what_is_no_recording_is_refused_at_once(tmp_path: Path) -> None:
    with pytest.raises(RecordingError, match="No such file"):
        gpulse.open_recording(tmp_path / "nowhere")
    with pytest.raises(RecordingError, match="line 1: this line is not JSON"):
        gpulse.open_recording(write(tmp_path / "other", "a,b\n1,2\n"))


def test_a_bad_line_is_named_and_a_last_one_that_was_cut_off_is_left_out(tmp_path: Path) -> None:
    lines = text_of(frames(3))
    with gpulse.open_recording(write(tmp_path / "cut", lines[:-20])) as recording:
        assert shares(recording) == [0, 1]
    with gpulse.open_recording(write(tmp_path / "bad", lines + "{}\n" + lines)) as recording:
        walk = iter(recording)
        assert [next(walk).gpus[0].utilization for _ in range(3)] == [0, 1, 2]
        with pytest.raises(RecordingError, match="line 4"):
            next(walk)


def test_a_long_recording_is_never_all_in_memory(tmp_path: Path) -> None:
    filler = "x" * 20_000
    one = to_line(Snapshot(START, (Gpu({"index": 0, "name": filler}),)))
    path = tmp_path / "long.ndjson.gz"
    write(path, f"{one}\n" * 2_000, packed=True)  # 40 MB of text
    tracemalloc.start()
    with gpulse.open_recording(path) as recording:
        assert sum(1 for _ in recording) == 2_000
        assert len(recording[500:1500]) == 1_000
        assert recording[1_999].gpus[0].name == filler
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 8 << 20


def test_events_are_those_of_the_samples(tmp_path: Path) -> None:
    process = Process({"pid": 7, "name": "train"})
    states = [
        Gpu({"index": 0, "uuid": "a"}),
        Gpu({"index": 0, "uuid": "a"}, processes=(process,)),
        Gpu({"index": 0, "uuid": "a"}, state="lost"),
    ]
    snapshots = [Snapshot(START + at, (gpu,)) for at, gpu in enumerate(states)]
    with gpulse.open_recording(write(tmp_path / "run", text_of(snapshots))) as recording:
        assert [event.kind for event in recording.events] == ["process-start", "lost"]
        assert recording.events is recording.events
        assert [event.time for event in recording[1:].events] == [START + 2]


def test_an_event_that_ends_is_listed_once_with_its_end(tmp_path: Path) -> None:
    slowed = [("hw_thermal_slowdown",)] * 3 + [()] * 15
    snapshots = [
        Snapshot(START + at, (Gpu({"index": 0, "uuid": "a", "throttle_reasons": reasons}),))
        for at, reasons in enumerate(slowed)
    ]
    with gpulse.open_recording(write(tmp_path / "run", text_of(snapshots))) as recording:
        (event,) = recording.events
        assert isinstance(event, gpulse.Event)
        assert (event.kind, event.time, event.until is not None) == ("throttled", START, True)
        (short,) = recording[:5].events
        assert (short.key, short.until is not None) == (event.key, True)


def monitored(tmp_path: Path) -> Path:
    path = tmp_path / "train.jsonl"
    sink = JsonlSink(path)
    sink.open()
    for at in range(4):
        sink.write(sample(at, {"gpu0/utilization": 10.0 * at}, step=at * 5, phase="train" if at else ""))
    sink.close()
    return path


def test_a_monitor_s_file_is_a_recording_with_steps_and_phases(tmp_path: Path) -> None:
    with gpulse.open_recording(monitored(tmp_path)) as recording:
        assert shares(recording) == [0.0, 10.0, 20.0, 30.0]
        rows = recording.to_records()
    assert [(row["elapsed"], row["step"], row["phase"]) for row in rows] == [
        (0, 0, ""),
        (1, 5, "train"),
        (2, 10, "train"),
        (3, 15, "train"),
    ]


def mixed(tmp_path: Path) -> str:
    """Two GPUs, one of them lost later on; a metric that comes late, one that is never there, and a list."""
    one: dict[str, Any] = {"index": 0, "uuid": "GPU-a", "name": "H100", "memory_used": (1 << 40) + 1}
    one |= {"power_draw": 70.5, "throttle_reasons": ("sw_power_cap",)}
    two: dict[str, Any] = {"index": 1, "uuid": "GPU-b", "name": "H100", "memory_used": 0, "persistence_mode": True}
    gone = Gpu({"index": 1, "uuid": "GPU-b"}, {"memory_used": "lost"}, state="lost")
    snapshots = [
        Snapshot(START + 0.25, (Gpu(one, {"fan_speed": "unsupported"}), Gpu(two))),
        Snapshot(START + 1.25, (Gpu({**one, "utilization": 5}, {"fan_speed": "unsupported"}), gone)),
    ]
    return write(tmp_path / "mixed.ndjson", text_of(snapshots))


def test_records_are_tidy(tmp_path: Path) -> None:
    with gpulse.open_recording(mixed(tmp_path)) as recording:
        rows = recording.to_records()
        chosen = recording.to_records(["memory.used", "power_draw"])
    assert len(rows) == 4
    assert len({tuple(row) for row in rows}) == 1
    assert list(rows[0])[:5] == ["time", "index", "uuid", "name", "state"]
    assert rows[0]["time"] == datetime(2023, 11, 14, 22, 13, 20, 250_000, tzinfo=timezone.utc)
    assert [row["memory_used"] for row in rows] == [(1 << 40) + 1, 0, (1 << 40) + 1, None]
    assert [row["utilization"] for row in rows] == [None, None, 5, None]
    assert [row["state"] for row in rows] == ["ok", "ok", "ok", "lost"]
    assert [row["fan_speed"] for row in rows] == [None] * 4
    assert rows[0]["throttle_reasons"] == ["sw_power_cap"]
    assert list(chosen[0]) == ["time", "index", "uuid", "name", "state", "memory_used", "power_draw"]
    with gpulse.open_recording(mixed(tmp_path)) as recording, pytest.raises(gpulse.UnknownMetric):
        recording.to_records(["memory_usde"])


def test_pandas_keeps_integers_and_nulls(tmp_path: Path) -> None:
    pd = pytest.importorskip("pandas")
    with gpulse.open_recording(mixed(tmp_path)) as recording:
        frame = recording.to_pandas()
    assert str(frame["time"].dtype) in ("datetime64[ns, UTC]", "datetime64[us, UTC]")
    assert frame["time"].iloc[0] == pd.Timestamp("2023-11-14T22:13:20.25Z")
    assert (str(frame["memory_used"].dtype), str(frame["power_draw"].dtype)) == ("Int64", "float64")
    assert (str(frame["persistence_mode"].dtype), str(frame["name"].dtype)) == ("boolean", "string")
    assert int(frame["memory_used"].iloc[0]) == (1 << 40) + 1
    assert frame["memory_used"].isna().tolist() == [False, False, False, True]
    assert frame["power_draw"].isna().tolist() == [False, True, False, True]
    assert frame["fan_speed"].isna().all()
    assert frame.groupby("uuid")["memory_used"].max().to_dict() == {"GPU-a": (1 << 40) + 1, "GPU-b": 0}


def test_polars_keeps_integers_and_nulls(tmp_path: Path) -> None:
    pl = pytest.importorskip("polars")
    with gpulse.open_recording(mixed(tmp_path)) as recording:
        frame = recording.to_polars()
        assert recording[:0].to_polars().height == 0
    assert frame.schema["time"] == pl.Datetime("us", "UTC")
    assert (frame.schema["memory_used"], frame.schema["power_draw"]) == (pl.Int64, pl.Float64)
    assert (frame.schema["persistence_mode"], frame.schema["name"]) == (pl.Boolean, pl.String)
    assert frame.schema["throttle_reasons"] == pl.List(pl.String)
    assert frame["memory_used"].to_list() == [(1 << 40) + 1, 0, (1 << 40) + 1, None]
    assert frame["time"][0] == datetime(2023, 11, 14, 22, 13, 20, 250_000, tzinfo=timezone.utc)
    assert frame["fan_speed"].null_count() == 4


def test_an_integer_that_no_column_can_hold_is_missing(tmp_path: Path) -> None:
    pytest.importorskip("pandas")
    snapshot = Snapshot(START, (Gpu({"index": 0, "ecc_corrected": 2**64}),))
    with gpulse.open_recording(write(tmp_path / "run", text_of([snapshot]))) as recording:
        assert recording.to_pandas()["ecc_corrected"].isna().tolist() == [True]
        assert recording.to_polars()["ecc_corrected"].to_list() == [None]


def test_a_frame_library_that_is_missing_is_named(path: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(__import__("sys").modules, "pandas", None)
    with gpulse.open_recording(path) as recording, pytest.raises(gpulse.GpulseError, match="pip install pandas"):
        recording.to_pandas()


def test_a_demo_recording_becomes_a_frame(tmp_path: Path) -> None:
    pytest.importorskip("pandas")
    stream = gpulse.stream(0.001, source="demo")
    write(tmp_path / "demo.ndjson", text_of([next(stream) for _ in range(5)]))
    stream.close()
    with gpulse.open_recording(tmp_path / "demo.ndjson") as recording:
        frame = recording.to_pandas()
        assert len(frame) == 40
        assert json.loads(to_line(recording[0]))["gpus"][0]["uuid"] == frame["uuid"].iloc[0]
