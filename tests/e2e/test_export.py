"""Recordings as tables: what record refuses, and what history makes of a recording."""

from __future__ import annotations

import csv
import subprocess
import sys
from pathlib import Path

import pytest

from gpulse.store.recording import read_recording


def gpulse(*arguments: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "gpulse", *arguments]
    return subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)


@pytest.fixture(scope="module")
def recording(tmp_path_factory: pytest.TempPathFactory) -> str:
    path = str(tmp_path_factory.mktemp("run") / "run.ndjson.gz")
    done = gpulse("record", "--demo", "-o", path, "--count", "3", "--interval", "0.1")
    assert done.returncode == 0, done.stderr
    return path


@pytest.mark.parametrize("ending", ["csv", "CSV"])
def test_a_format_that_record_does_not_write_is_refused(tmp_path: Path, ending: str) -> None:
    done = gpulse("record", "--demo", "-o", str(tmp_path / f"run.{ending}"), "--count", "1")
    assert (done.returncode, "--format" in done.stderr) == (2, True), done.stderr
    assert not list(tmp_path.iterdir())


def test_a_recording_is_exported_as_csv_with_whole_numbers_whole(recording: str, tmp_path: Path) -> None:
    out = tmp_path / "run.csv"
    done = gpulse("history", "--file", recording, "--format", "csv", "-o", str(out))
    assert done.returncode == 0, done.stderr
    with out.open(encoding="utf-8", newline="") as file:
        rows = [*csv.DictReader(file)]
    snapshots = [*read_recording(recording)]
    assert len(rows) == sum(len(snapshot.gpus) for snapshot in snapshots)
    gpu = snapshots[0].gpus[0]
    assert (rows[0]["uuid"], rows[0]["memory_used"]) == (gpu.uuid, str(gpu.memory_used))
    assert rows[0]["gpu"] == "0"
    assert {len(row["time"]) for row in rows} == {len("2026-11-15T06:00:00.000000Z")}


def test_a_table_of_a_recording_is_a_usage_error(recording: str) -> None:
    done = gpulse("history", "--file", recording)
    assert (done.returncode, "gpulse report" in done.stderr) == (2, True), done.stderr


_FULL = """
import subprocess, sys
subprocess.run(["mount", "-t", "tmpfs", "-o", "size=300k", "tmpfs", sys.argv[1]], check=True)
arguments = ["record", "--demo", "--history", sys.argv[1] + "/h.db", "--count", "60", "--interval", "0.05"]
sys.exit(subprocess.run([sys.executable, "-m", "gpulse", *arguments]).returncode)
"""


@pytest.mark.skipif(
    subprocess.run(["unshare", "-rm", "true"], check=False, capture_output=True).returncode != 0,
    reason="a file system of its own takes a namespace",
)
def test_a_history_that_could_not_be_written_is_an_error(tmp_path: Path) -> None:
    command = ["unshare", "-rm", sys.executable, "-c", _FULL, str(tmp_path)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
    assert (done.returncode, "are lost" in done.stderr) == (1, True), done.stderr
