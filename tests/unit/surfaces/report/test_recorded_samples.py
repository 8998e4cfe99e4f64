"""What is read, and what is left out."""

from __future__ import annotations

import gzip
from pathlib import Path

import pytest

from gpulse.errors import UnknownGpu, UsageError
from gpulse.model.catalog import Process
from gpulse.surfaces.report.recorded_samples import RecordedSample, between, of_gpus, recorded
from tests.unit.surfaces.report.runs import START, gpu, sample, samples, write


def times(moments: list[RecordedSample]) -> list[float]:
    return [moment.snapshot.time - START for moment in moments]


def some() -> list[RecordedSample]:
    return [RecordedSample(snapshot) for snapshot in samples(10)]


def test_what_a_training_said_is_read(tmp_path: Path) -> None:
    path = write(
        tmp_path / "run.ndjson",
        samples(1),
        phase="train",
        step=12,
        marks=[{"name": "epoch", "value": 3, "time": START}],
        program={"pid": 7, "cpu_percent": 98.5},
        values={"train/loss": 0.5},
    )
    (moment,) = recorded(str(path))
    assert (moment.phase, moment.step, moment.values) == ("train", 12, {"train/loss": 0.5})
    assert [(mark.name, mark.value, mark.time) for mark in moment.marks] == [("epoch", 3, START)]
    assert moment.program is not None
    assert moment.program.cpu_percent == 98.5


def test_what_has_the_wrong_type_is_left_out(tmp_path: Path) -> None:
    wrong = write(
        tmp_path / "run.ndjson",
        samples(1),
        phase=7,
        step="many",
        marks=[1, {"name": 2}, {"name": "x", "time": "now"}, {"name": "ok", "time": 1.0, "value": [1]}],
        program=["x"],
        values={"a": "b", "c": True, "d": 1},
    )
    (moment,) = recorded(str(wrong))
    assert (moment.phase, moment.step, moment.program, moment.values) == ("", None, None, {"d": 1})
    assert [(mark.name, mark.value) for mark in moment.marks] == [("ok", None)]


def test_a_packed_recording_and_a_line_that_was_cut_off(tmp_path: Path) -> None:
    whole = write(tmp_path / "run.ndjson", samples(3)).read_bytes()
    (tmp_path / "run.ndjson.gz").write_bytes(gzip.compress(whole + whole[:40]))
    assert times(list(recorded(str(tmp_path / "run.ndjson.gz")))) == [0, 1, 2]


def test_a_bad_line_is_left_out_and_named(tmp_path: Path) -> None:
    path = write(tmp_path / "run.ndjson", samples(2))
    path.write_text(path.read_text() + "nonsense\n")
    damaged: list[int] = []
    assert len(list(recorded(str(path), damaged))) == 2
    assert damaged == [3]


def test_between_two_times() -> None:
    assert times(list(between(some(), "3s", "5s"))) == [3, 4, 5]
    assert times(list(between(some(), "2023-11-14T22:13:28Z", None))) == [8, 9]
    assert times(list(between(some(), None, None))) == list(range(10))
    with pytest.raises(UsageError, match="--to: 'soon'"):
        list(between(some(), None, "soon"))


def test_only_some_gpus() -> None:
    both = [RecordedSample(sample(at, gpu(0), gpu(1))) for at in range(2)]
    kept = list(of_gpus(both, ["1"], {}))
    assert [[one.index for one in moment.snapshot.gpus] for moment in kept] == [[1], [1]]
    with pytest.raises(UnknownGpu):
        list(of_gpus(some(), ["5"], {}))


def test_peaks_of_a_history_are_peaks_and_not_means(tmp_path: Path) -> None:
    from gpulse.surfaces.report.account import account
    from gpulse.surfaces.report.recorded_samples import remembered
    from tests.unit.store.history.ticks import START, gpu, tick, write

    def held(at: int) -> float:
        return (79 if at % 100 == 50 else 20) * float(1 << 30)

    def ada(at: int) -> Process:
        return Process({"pid": 7, "name": "python", "user": "ada", "memory_used": held(at), "running_time": at + 1.0})

    path = str(tmp_path / "h.db")
    write(path, (tick(at, gpu(memory_used=held(at), processes=(ada(at),))) for at in range(1500)))
    run = account(remembered(START, START + 1500, path), "it")
    assert run.summary.gpus[0].peak_memory == 79 << 30
    assert run.uses[0].peak == 79 << 30
