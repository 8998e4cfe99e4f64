"""The file of a kernel's cells: what was written is read, and nothing that is in it can break a reader."""

from __future__ import annotations

import os
import time
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gpulse.store import cell_log
from gpulse.store.cell_log import CellLog, CellSpan, first_line, merged, remove_left_behind

_ANYTHING = st.recursive(
    st.none() | st.booleans() | st.floats() | st.integers() | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=5,
)
_NAMES = ("id", "cell", "count", "code", "start", "end", "ok")


def span(id: str, start: float = 1.0, end: float | None = None, ok: bool | None = None) -> CellSpan:
    return CellSpan(id, "cell-1", 3, "x = 1", start, end, ok)


def log_in(folder: Path, kernel: str = "kernel-1") -> CellLog:
    (folder / f"{kernel}.json").touch()
    return CellLog(str(folder / f"{kernel}.json"))


@given(st.fixed_dictionaries({}, optional=dict.fromkeys(_NAMES, _ANYTHING)) | _ANYTHING)
def test_anything_is_a_span_or_none_and_a_span_reads_back_as_itself(plain: object) -> None:
    found = CellSpan.from_plain(plain)
    if found is not None:
        again = CellSpan.from_plain(found.to_plain())
        assert again is not None
        assert again.to_plain() == found.to_plain()
        assert found.end is None or found.end >= found.start


@given(st.text())
def test_the_first_line_is_one_short_line_of_printable_text(code: str) -> None:
    text = first_line(code)
    assert text.isprintable()
    assert len(text) <= 101
    assert first_line(text)[:100] == text[:100].strip()


def test_runs_are_read_as_they_ended_from_a_private_file(tmp_path: Path) -> None:
    log = log_in(tmp_path)
    assert log.read() == []
    log.append(span("a", 1.0))
    log.append(span("b", 5.0))
    log.append(span("a", 1.0, 2.0, False))
    with open(log.path, "ab") as file:
        file.write(b'{"id": "torn\n[]\n\xff\n')
    assert [(one.id, one.end, one.ok) for one in log.read()] == [("a", 2.0, False), ("b", None, None)]
    assert os.stat(log.path).st_mode & 0o777 == 0o600


def test_a_link_in_place_of_the_file_is_not_followed(tmp_path: Path) -> None:
    log = log_in(tmp_path)
    os.symlink(tmp_path / "elsewhere", log.path)
    with pytest.raises(OSError, match="symbolic links"):
        log.append(span("a"))
    assert not (tmp_path / "elsewhere").exists()


def test_the_file_stays_small_and_keeps_the_newest(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cell_log, "_LARGEST", 4000)
    log = log_in(tmp_path)
    for at in range(200):
        log.append(span(f"run-{at}", float(at), at + 0.5, True))
    assert os.stat(log.path).st_size <= 4200
    assert log.read()[-1].id == "run-199"
    assert sorted(os.listdir(tmp_path)) == sorted([os.path.basename(log.path), "kernel-1.json"])


def test_a_run_is_told_once_with_the_end_that_anybody_knows() -> None:
    browser = [span("a", 1.1, 2.1, True), span("b", 3.1, 4.1, True)]
    kernel = [span("a", 1.0, 2.0, True), span("b", 3.0)]
    assert [(one.id, one.start, one.end) for one in merged([browser, kernel])] == [("a", 1.0, 2.0), ("b", 3.1, 4.1)]


def test_files_of_kernels_that_are_gone_are_removed_after_a_while(tmp_path: Path) -> None:
    alive, gone, recent = (log_in(tmp_path, name) for name in ("kernel-1", "kernel-2", "kernel-3"))
    for log in (alive, gone, recent):
        log.append(span("a"))
    for name in ("kernel-2", "kernel-3"):
        (tmp_path / f"{name}.json").unlink()
    old = time.time() - 7200
    for log in (alive, gone):
        os.utime(log.path, (old, old))
    remove_left_behind(str(tmp_path))
    assert [os.path.exists(log.path) for log in (alive, gone, recent)] == [True, False, True]
    remove_left_behind(str(tmp_path / "missing"))
