"""`gpulse report --format csv`: the samples of a recording or of the history, one row per sample and GPU."""

from __future__ import annotations

import csv
from pathlib import Path

import pytest

from gpulse.cli.main import main
from gpulse.model.catalog import Gpu
from gpulse.model.snapshot import Snapshot
from gpulse.store.recorder import RecordingFile
from tests.unit.moments import MOMENTS, begin_at
from tests.unit.store.history.ticks import write as write_history

GIB = 1 << 30


def samples(start: float) -> list[Snapshot]:
    return [
        Snapshot(
            start + at,
            tuple(
                Gpu({"uuid": f"GPU-{n}", "index": n, "utilization": 50.5, "memory_used": at * GIB, "clock_sm": 1980})
                for n in range(2)
            ),
        )
        for at in range(10)
    ]


@pytest.fixture
def recording(tmp_path: Path) -> Path:
    path = tmp_path / "run.ndjson.gz"
    file = RecordingFile(str(path))
    for sample in samples(1_700_000_000.0):
        file.write(sample)
    file.close()
    return path


def rows(path: Path) -> list[dict[str, str]]:
    with path.open(newline="") as file:
        return list(csv.DictReader(file))


def test_a_recording_becomes_csv_with_integers_as_integers(recording: Path, tmp_path: Path) -> None:
    out = tmp_path / "run.csv"
    assert main(["report", str(recording), "--from", "2s", "--gpu", "1", "-o", str(out)]) == 0
    found = rows(out)
    assert [row["memory_used"] for row in found] == [str(at * GIB) for at in range(2, 10)]
    assert {(row["gpu"], row["clock_sm"], row["utilization"]) for row in found} == {("1", "1980", "50.5")}


@pytest.mark.parametrize("moment", MOMENTS.values(), ids=MOMENTS)
def test_the_history_becomes_csv_with_integers_as_integers(
    moment: float, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    begin_at(monkeypatch, moment)
    monkeypatch.setenv("GPULSE_HISTORY", str(tmp_path / "h.db"))
    write_history(str(tmp_path / "h.db"), samples(moment - 60))
    assert main(["report", "--since", "5m", "--format", "csv"]) == 0
    found = list(csv.DictReader(capsys.readouterr().out.splitlines()))
    assert [row["memory_used"] for row in found if row["gpu"] == "0"] == [str(at * GIB) for at in range(10)]
    assert {row["clock_sm"] for row in found} == {"1980"}


@pytest.mark.parametrize(
    ("words", "code", "says"),
    [
        (["--format", "xlsx"], 2, "choose one of html, markdown, json, text, folded, csv."),
        (["-o", "run.parquet"], 2, "has no known extension; use .html, .md, .json or .csv."),
        (["other", "--compare", "--format", "csv"], 2, "cannot be compared as csv"),
    ],
)
def test_what_cannot_be(
    recording: Path, capsys: pytest.CaptureFixture[str], words: list[str], code: int, says: str
) -> None:
    assert main(["report", str(recording), *words]) == code
    assert says in capsys.readouterr().err


def test_damaged_lines_are_named(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "run.ndjson"
    file = RecordingFile(str(path))
    for sample in samples(1_700_000_000.0):
        file.write(sample)
    file.close()
    lines = path.read_text().splitlines(keepends=True)
    lines[3] = lines[3].replace("50.5", "10.5")
    path.write_text("".join(lines))
    for verb in (["report", str(path), "--format", "csv"], ["history", "--file", str(path), "--format", "csv"]):
        assert main(verb) == 0
        out, err = capsys.readouterr()
        assert "10.5" not in out
        assert "1 damaged line was left out" in err
        assert "(line 4)" in err
