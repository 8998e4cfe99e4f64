"""The CSV file as others read it."""

from __future__ import annotations

import csv
import math
import tempfile
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gpulse.errors import GpulseError
from gpulse.model.codec import parse_time
from gpulse.model.snapshot import Snapshot
from gpulse.sinks import CsvSink
from gpulse.sinks.base import Sample
from tests.unit.samples import START, sample
from tests.unit.snapshots import TIMES

FORMULAS = ("=1+1", "+1", "-1", "@SUM(A1)", "'quoted")


def written(path: Path, *samples: Sample) -> list[list[str]]:
    sink = CsvSink(path)
    sink.open()
    for each in samples:
        sink.write(each)
    sink.close()
    assert path.exists() == bool(samples)  # no empty file is left behind
    if not samples:
        return []
    with path.open(newline="", encoding="utf-8") as lines:
        return list(csv.reader(lines, strict=True))


def test_the_columns_are_those_of_the_first_sample_in_order(tmp_path: Path) -> None:
    rows = written(tmp_path / "a", sample(1.5, {"host/b": 2, "gpu0/a": 0.1}, step=3, phase="train"))
    assert rows == [
        ["time", "elapsed", "step", "phase", "gpu0/a", "host/b"],
        ["2023-11-14T22:13:21.750000Z", "1.5", "3", "train", "0.1", "2"],
    ]


def test_a_later_tag_gets_a_column_behind_and_moves_none(tmp_path: Path) -> None:
    rows = written(tmp_path / "a", sample(0, {"m": 1}), sample(1, {"a": 2, "m": 3}), sample(2, {"z": 4}))
    assert [row[4:] for row in rows] == [["m", "a", "z"], ["1", "", ""], ["3", "2", ""], ["", "", "4"]]
    assert list(tmp_path.iterdir()) == [tmp_path / "a"]


def test_another_run_with_other_tags_widens_the_same_file(tmp_path: Path) -> None:
    written(tmp_path / "a", sample(0, {"m": 1}))
    rows = written(tmp_path / "a", sample(0, {"b": 2}))
    assert [row[4:] for row in rows] == [["m", "b"], ["1", ""], ["", "2"]]


def test_a_continued_file_says_which_run_a_row_is_of(tmp_path: Path) -> None:
    written(tmp_path / "a", sample(0, {"m": 1}, run="first"))
    rows = written(tmp_path / "a", sample(0, {"m": 2}, run='second, "again"'))
    assert [row[4:] for row in rows] == [["run", "m"], ["first", "1"], ['second, "again"', "2"]]


def test_a_file_without_runs_gets_them_as_its_last_column(tmp_path: Path) -> None:
    written(tmp_path / "a", sample(0, {"m": 1}))
    rows = written(tmp_path / "a", sample(0, {"m": 2}, run="second"))
    assert [row[4:] for row in rows] == [["m", "run"], ["1", ""], ["2", "second"]]


def test_a_time_has_its_fraction_always(tmp_path: Path) -> None:
    rows = written(tmp_path / "a", sample(-0.25, {}))
    assert rows[1][0] == "2023-11-14T22:13:20.000000Z"


def test_a_tag_may_be_called_like_a_column(tmp_path: Path) -> None:
    rows = written(tmp_path / "a", sample(0, {"time": 5, "phase": 6}, phase="x"))
    assert [row[3:] for row in rows] == [["phase", "phase", "time"], ["x", "6", "5"]]


@pytest.mark.parametrize("text", FORMULAS)
def test_no_text_is_a_formula(text: str, tmp_path: Path) -> None:
    rows = written(tmp_path / "a", sample(0, {text: -1.0}, phase=text))
    assert rows[0][4] == rows[1][3] == f"'{text}"
    assert rows[1][4] == "-1.0"
    assert len(written(tmp_path / "a", sample(1, {text: 2.0}))[0]) == 5  # the same column in the next run


def test_a_folder_where_no_draft_can_be_made_costs_the_sample_only(tmp_path: Path) -> None:
    sink = CsvSink(tmp_path / "a")
    sink.open()
    sink.write(sample(0, {"m": 1}))
    (tmp_path / "a").rename(tmp_path / "moved")
    with pytest.raises(GpulseError, match="cannot be extended by a column"):
        sink.write(sample(1, {"n": 1}))
    sink.write(sample(2, {"m": 3}))
    sink.close()
    assert [line.rpartition(",")[2] for line in (tmp_path / "moved").read_text().splitlines()] == ["m", "1", "3"]


NUMBERS = st.integers(-(2**64), 2**64) | st.floats(allow_nan=False, allow_infinity=False)
TEXTS = st.text(max_size=8) | st.sampled_from((*FORMULAS, 'a,"b"\r\n', "\ud800", "time"))
SAMPLES = st.builds(
    lambda time, elapsed, values, step, phase: Sample(time, elapsed, values, Snapshot(time), step=step, phase=phase),
    TIMES,
    st.floats(0, 1e9),
    st.dictionaries(TEXTS.filter(str.isprintable), NUMBERS, max_size=5),
    st.none() | st.integers(0, 2**63),
    TEXTS.filter(lambda text: "\\" not in text),
)


def text_of(cell: str) -> str:
    return cell.removeprefix("'")


@given(st.lists(SAMPLES, max_size=6))
def test_what_is_written_is_read_back(samples: list[Sample]) -> None:
    with tempfile.TemporaryDirectory() as folder:
        rows = written(Path(folder) / "a", *samples)
    header = [text_of(cell) for cell in rows[0]] if rows else []
    assert len(rows) == (len(samples) + 1 if samples else 0)
    for each, row in zip(samples, rows[1:], strict=True):
        assert len(row) == len(header)
        assert math.isclose(parse_time(row[0]), each.time, abs_tol=1e-6)
        assert float(row[1]) == each.elapsed
        assert row[2] == ("" if each.step is None else str(each.step))
        assert row[3].isprintable()
        assert text_of(row[3]).encode("latin-1", "backslashreplace").decode("unicode_escape") == each.phase
        cells = zip(header[4:], row[4:], strict=True)
        assert {tag: float(cell) if "." in cell or "e" in cell else int(cell) for tag, cell in cells if cell} == dict(
            each.values
        )


def test_the_time_of_a_sample_is_read_back(tmp_path: Path) -> None:
    assert parse_time(written(tmp_path / "a", sample(0, {}))[1][0]) == START
