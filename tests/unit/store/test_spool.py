"""Bodies on disk: in order, within a limit, whole or not there, and one process at a time."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from gpulse.store.history import HistoryBusy
from gpulse.store.spool import Spool, waiting


def drained(spool: Spool) -> list[bytes]:
    """Take everything out."""
    found = []
    while (body := spool.first()) is not None:
        found.append(spool.read(body))
        spool.done(body)
    return found


def test_bodies_come_out_in_the_order_they_were_put_also_after_a_restart(tmp_path: Path) -> None:
    spool = Spool(str(tmp_path / "spool"), 1000)
    for text in (b"a", b"bb", b"ccc"):
        assert spool.put(text, len(text)) == 0
    spool.close()
    again = Spool(str(tmp_path / "spool"), 1000)
    assert (again.waiting, again.size) == (3, 6)
    body = again.first()
    assert body is not None
    assert body.samples == 1
    again.done(body)
    again.put(b"dddd", 4)
    assert drained(again) == [b"bb", b"ccc", b"dddd"]
    assert (again.waiting, again.size) == (0, 0)
    assert [path.name for path in (tmp_path / "spool").iterdir()] == ["queue.lock"]


def test_the_oldest_make_room_but_not_the_one_being_sent(tmp_path: Path) -> None:
    spool = Spool(str(tmp_path), 30)
    spool.put(b"0" * 10, 7)
    spool.put(b"1" * 10, 5)
    held = spool.first()
    assert spool.put(b"2" * 10, 1) == 0
    assert spool.put(b"3" * 10, 1) == 5
    assert held is not None
    assert spool.read(held) == b"0" * 10
    assert drained(spool) == [b"0" * 10, b"2" * 10, b"3" * 10]
    assert spool.put(b"x" * 31, 9) == 9
    assert spool.waiting == 0


def test_halves_and_empty_files_of_a_crash_are_removed(tmp_path: Path) -> None:
    spool = Spool(str(tmp_path), 100)
    spool.put(b"whole", 1)
    spool.close()
    (tmp_path / "000000000002-1.body.part").write_bytes(b"hal")
    (tmp_path / "000000000003-1.body").write_bytes(b"")
    (tmp_path / "notes.txt").write_text("somebody's own")
    again = Spool(str(tmp_path), 100)
    assert drained(again) == [b"whole"]
    assert sorted(path.name for path in tmp_path.iterdir()) == ["notes.txt", "queue.lock"]


def test_only_one_process_sends_and_nobody_else_reads(tmp_path: Path) -> None:
    spool = Spool(str(tmp_path / "spool"), 100)
    spool.put(b"secret", 1)
    with pytest.raises(HistoryBusy):
        Spool(str(tmp_path / "spool"), 100)
    assert (tmp_path / "spool").stat().st_mode & 0o777 == 0o700
    assert {os.stat(path).st_mode & 0o077 for path in (tmp_path / "spool").iterdir()} == {0}
    spool.close()
    Spool(str(tmp_path / "spool"), 100).close()


def test_a_body_that_cannot_be_written_leaves_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    spool = Spool(str(tmp_path), 100)

    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "replace", full)
    with pytest.raises(OSError, match="No space"):
        spool.put(b"a", 1)
    assert (spool.waiting, spool.size) == (0, 0)
    assert [path.name for path in tmp_path.iterdir()] == ["queue.lock"]


def test_a_body_that_is_sent_meanwhile_is_not_counted(tmp_path: Path) -> None:
    (tmp_path / "000000000001-5.body").write_bytes(b"abc")
    (tmp_path / "000000000002-5.body").symlink_to(tmp_path / "gone")  # listed, and not there any more
    count, size, _ = waiting(str(tmp_path)) or (0, 0, 0.0)
    assert (count, size) == (1, 3)
    assert waiting(str(tmp_path / "none")) is None
