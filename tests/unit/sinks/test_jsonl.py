"""JSON lines that are a recording too."""

from __future__ import annotations

import json
import tempfile
from pathlib import Path

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from gpulse.model.catalog import Process
from gpulse.model.select import EVERYTHING
from gpulse.model.snapshot import Snapshot
from gpulse.sampling.sampler import Sampler
from gpulse.sinks import JsonlSink
from gpulse.sinks.base import Mark, Sample
from gpulse.sources.registry import make_source
from gpulse.store.recording import read_recording
from tests.unit.samples import sample
from tests.unit.snapshots import snapshots


def written(path: Path, *samples: Sample) -> list[dict[str, object]]:
    sink = JsonlSink(path)
    sink.open()
    for each in samples:
        sink.write(each)
        assert path.read_bytes().endswith(b"\n")  # nothing is held back
    sink.close()
    return [json.loads(line) for line in path.read_text().splitlines()] if samples else []


def test_a_continued_file_says_which_run_a_line_is_of(tmp_path: Path) -> None:
    path = tmp_path / "a.jsonl"
    written(path, sample(0, {}, run="first"))
    assert [line["run"] for line in written(path, sample(0, {}, run="second"))] == ["first", "second"]
    assert len([*read_recording(str(path))]) == 2


def test_what_the_snapshot_does_not_say_stands_beside_it(tmp_path: Path) -> None:
    marks = (Mark("loss", float("nan"), 5.0), Mark("epoch", 1, 6.0), Mark("saved", "a.pt", 7.0), Mark("end", None, 8.0))
    given_values = {
        "gpu0/utilization": 50.0,
        "gpu0/of_mine": 1.0,
        "train/steps_per_second": 0.0,
        "process/threads": 4.0,
    }
    (line,) = written(tmp_path / "a", sample(1.5, given_values, step=3, phase="train", marks=marks))
    assert (line["elapsed"], line["step"], line["phase"]) == (1.5, 3, "train")
    assert line["values"] == {"gpu0/of_mine": 1.0, "train/steps_per_second": 0.0, "process/threads": 4.0}
    assert line["marks"] == [
        {"name": "loss", "value": "nan", "time": 5.0},
        {"name": "epoch", "value": 1, "time": 6.0},
        {"name": "saved", "value": "a.pt", "time": 7.0},
        {"name": "end", "value": None, "time": 8.0},
    ]


def test_what_it_does_say_is_not_said_twice(tmp_path: Path) -> None:
    each = sample(0, {"gpu0/utilization": 0.0, "host/cpu_percent": 0.0, "process/cpu_percent": 7.0})
    each.program = Process({"pid": 4, "cpu_percent": 7.0})
    (line,) = written(tmp_path / "a", each)
    assert not {"values", "marks"} & line.keys()
    assert line["program"] == {"pid": 4, "cpu_percent": 7.0}
    assert line["step"] is None


def test_it_is_played_as_a_source(tmp_path: Path) -> None:
    written(tmp_path / "a", *(sample(at, {"gpu0/utilization": float(at)}, phase="\x1b") for at in range(3)))
    sampler = Sampler(make_source(f"replay:{tmp_path / 'a'}*max"), EVERYTHING).open()
    assert [sampler.read().gpus[0].utilization for _ in range(3)] == [0.0, 1.0, 2.0]
    sampler.close()


@settings(suppress_health_check=[HealthCheck.too_slow], max_examples=50)
@given(st.lists(st.tuples(snapshots(believable=True), st.text(max_size=5), st.none() | st.integers(0)), max_size=3))
def test_what_is_written_is_read_back(parts: list[tuple[Snapshot, str, int | None]]) -> None:
    samples = [Sample(shot.time, 1.0, {}, shot, step=step, phase=phase) for shot, phase, step in parts]
    with tempfile.TemporaryDirectory() as folder:
        lines = written(Path(folder) / "a", *samples)
        if not samples:
            assert not (Path(folder) / "a").exists()
            return
        assert list(read_recording(str(Path(folder) / "a"))) == [shot for shot, _, _ in parts]
    assert [(line["phase"], line["step"]) for line in lines] == [(phase, step) for _, phase, step in parts]
