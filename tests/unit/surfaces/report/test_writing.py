"""Where a report goes, and in which form."""

from __future__ import annotations

from pathlib import Path

import pytest

from gpulse.errors import GpulseError, RecordingError, UsageError
from gpulse.surfaces.report.writing import form_of, write_report
from tests.unit.surfaces.report.runs import samples, write


def test_the_name_says_the_form() -> None:
    assert [form_of(name) for name in ("a.html", "A.HTM", "x.md", "x.json")] == ["html", "html", "markdown", "json"]
    with pytest.raises(UsageError, match=r"use \.html"):
        form_of("report")


def test_a_recording_becomes_a_page(tmp_path: Path) -> None:
    recording = write(tmp_path / "run.ndjson", samples(5))
    write_report(str(recording), str(tmp_path / "run.html"), "python train.py")
    assert "<h1>" in (tmp_path / "run.html").read_text()
    assert "python train.py" in (tmp_path / "run.html").read_text()


def test_what_was_there_stays_when_nothing_can_be_written(tmp_path: Path) -> None:
    (tmp_path / "run.html").write_text("old")
    (tmp_path / "bad.ndjson").write_text("nonsense\n")
    with pytest.raises(RecordingError):
        write_report(str(tmp_path / "bad.ndjson"), str(tmp_path / "run.html"))
    assert (tmp_path / "run.html").read_text() == "old"
    recording = write(tmp_path / "run.ndjson", samples(5))
    with pytest.raises(GpulseError, match="cannot be written"):
        write_report(str(recording), str(tmp_path / "none" / "run.html"))
