"""Files that are continued, and disks that are full."""

from __future__ import annotations

import resource
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from gpulse.errors import GpulseError
from gpulse.sinks import CsvSink, JsonlSink, Sink
from gpulse.store.lines import LineFile
from tests.unit.readback import csv_rows, jsonl_rows
from tests.unit.samples import sample

MAKERS = pytest.mark.parametrize(("make", "rows"), [(CsvSink, csv_rows), (JsonlSink, jsonl_rows)], ids=["csv", "jsonl"])


@contextmanager
def full_at(size: int) -> Iterator[None]:
    """Let no file grow beyond `size`: the write that crosses it is cut short and the next one fails."""
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))


def run_of(sink: Sink, *values: float) -> None:
    sink.open()
    for elapsed, value in enumerate(values):
        sink.write(sample(elapsed, {"gpu0/utilization": value}))
    sink.close()


@MAKERS
def test_a_disk_that_is_full_costs_no_line_but_its_own(make: type, rows: object, tmp_path: Path) -> None:
    path = tmp_path / "out"
    sink = make(path)
    sink.open()
    sink.write(sample(0, {"gpu0/utilization": 1.0}))
    with full_at(path.stat().st_size + 10), pytest.raises(GpulseError, match="cannot be written"):
        sink.write(sample(1, {"gpu0/utilization": 2.0}))
    sink.write(sample(2, {"gpu0/utilization": 3.0}))
    sink.close()
    assert callable(rows)
    assert rows(path) == [(0, {"gpu0/utilization": 1.0}), (2, {"gpu0/utilization": 3.0})]


@MAKERS
def test_an_earlier_run_is_continued(make: type, rows: object, tmp_path: Path) -> None:
    path = tmp_path / "logs" / "deep" / "out"
    run_of(make(path), 1.0, 2.0)
    run_of(make(str(path)), 3.0)
    assert callable(rows)
    assert [values["gpu0/utilization"] for _, values in rows(path)] == [1.0, 2.0, 3.0]


@MAKERS
def test_a_line_that_was_cut_short_is_dropped(make: type, rows: object, tmp_path: Path) -> None:
    path = tmp_path / "out"
    run_of(make(path), 1.0, 2.0)
    path.write_bytes(path.read_bytes()[:-3])
    run_of(make(path), 3.0)
    assert callable(rows)
    assert [values["gpu0/utilization"] for _, values in rows(path)] == [1.0, 3.0]


@MAKERS
@pytest.mark.parametrize("found", [b"precious", b"a,b\n1,2\n", b"\n", b'{"a": 1}', b"\x1f\x8b\x00\xff"])
def test_a_file_of_somebody_else_is_refused_and_left_alone(
    make: type, rows: object, found: bytes, tmp_path: Path
) -> None:
    path = tmp_path / "out"
    path.write_bytes(found)
    with pytest.raises(GpulseError, match="Choose another name"):
        make(path).open()
    assert path.read_bytes() == found


@MAKERS
def test_a_place_that_cannot_be_written_is_said_at_once(make: type, rows: object, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    (tmp_path / "link").symlink_to(tmp_path / "file")
    for path in (tmp_path, tmp_path / "file" / "out", tmp_path / "link"):
        with pytest.raises(GpulseError, match=r"cannot be opened|not allowed"):
            make(path).open()


@pytest.mark.parametrize("length", [0, 1, 65535, 65536, 65537, 200_000])
def test_the_last_whole_line_is_found_however_long_the_torn_one_is(length: int, tmp_path: Path) -> None:
    path = tmp_path / "lines"
    path.write_bytes(b"whole\n" + b"x" * length)
    lines = LineFile(str(path), keep=True)
    lines.write("next")
    lines.close()
    assert path.read_bytes() == b"whole\nnext\n"
