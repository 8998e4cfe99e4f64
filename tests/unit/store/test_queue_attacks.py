"""What users try on each other in a queue of files: readers decide by what the file system and the kernel say."""

from __future__ import annotations

import fcntl
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from gpulse.analysis.turns import in_order
from gpulse.present.queue import hold_text, queue_lines
from gpulse.store.entry import Entry, holder_now
from gpulse.store.liveness import boot_id, viewpoint
from gpulse.store.queue import AHEAD, LONGEST, Queue, QueuePlace, new_entry

ROOT = Path(__file__).parents[3]
ADA, EVE = 12345, 12346
as_root = pytest.mark.skipif(os.getuid() != 0, reason="only root can be two users")
WAIT = """
import json, os, pwd, sys
import gpulse.store.lines
from gpulse.store.queue import Queue, QueuePlace, new_entry
from gpulse.store.liveness import viewpoint
viewpoint()  # loads what it needs: Python itself may be where only root can read
os.setuid(int(sys.argv[2]))
place = QueuePlace(new_entry(sys.argv[3], gpus=["GPU-1"] if sys.argv[3] == "running" else ()), Queue(sys.argv[1]))
place.write()
print(place.entry.id, flush=True)
sys.stdin.readline()
"""


@pytest.fixture
def folder() -> Iterator[Path]:
    """A folder that all users share, as /var/tmp is."""
    with tempfile.TemporaryDirectory(dir="/tmp") as name:
        os.chmod(name, 0o1777)
        yield Path(name)


@pytest.fixture
def start(folder: Path) -> Iterator[Any]:
    """Starts processes of users that wait in the queue, and returns their entries' files."""
    started: list[subprocess.Popen[str]] = []

    def start(user: int, kind: str = "waiting") -> tuple[Path, int]:
        process = subprocess.Popen(
            [sys.executable, "-S", "-c", WAIT, str(folder), str(user), kind],
            env=os.environ | {"PYTHONPATH": str(ROOT / "src")},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        started.append(process)
        assert process.stdout is not None
        return folder / f"gpulse-queue-{process.stdout.readline().strip()}", process.pid

    yield start
    for process in started:
        process.communicate("\n")


def forge(folder: Path, user: int | None = None, id: str = "000000", **parts: Any) -> Path:
    """Write a file by hand, as any user can."""
    path = folder / f"gpulse-queue-{id}"
    path.write_text(json.dumps({"schema": 1, "id": id, "folder": os.path.realpath(folder), **parts}))
    path.chmod(0o644)
    if user is not None:
        os.chown(path, user, user)
    return path


def reserve(folder: Path, user: int | None = None, **parts: Any) -> Path:
    now = time.time()
    entry = new_entry("reserved", **{"gpus": ["GPU-1"], "begins": now, "until": now + 3600} | parts)
    Queue(str(folder)).reserve(entry)
    path = folder / f"gpulse-queue-{entry.id}"
    if user is not None:
        os.chown(path, user, user)
    return path


def entries(folder: Path) -> list[Entry]:
    return Queue(str(folder)).entries()


@as_root
class TestReservations:
    def holder(self, folder: Path) -> int | None:
        found = holder_now("GPU-1", entries(folder), time.time())
        return None if found is None else found.uid

    def test_a_copy_under_another_name_takes_nothing(self, folder: Path) -> None:
        path = reserve(folder, ADA)
        copy = folder / "gpulse-queue-000000"
        shutil.copy(path, copy)
        os.chown(copy, EVE, EVE)
        assert [entry.uid for entry in entries(folder)] == [ADA]

    def test_of_two_that_overlap_the_first_file_counts_whatever_they_say(self, folder: Path) -> None:
        now = time.time()
        reserve(folder, ADA, until=now + 3600)
        path = forge(folder, EVE, kind="reserved", gpus=["GPU-1", "GPU-2"], begins=1.0, until=now + 9e6, arrived=0)
        os.utime(path, (1.0, 1.0))
        assert self.holder(folder) == ADA
        later: dict[str, Any] = {
            "kind": "reserved",
            "gpus": ["GPU-1", "GPU-2"],
            "begins": now - 10,
            "until": now + 9000,
            "since": 1,
        }
        path = forge(folder, EVE, **later)
        os.utime(path, (1.0, 1.0))
        assert self.holder(folder) == ADA
        assert [(entry.uid, entry.gpus) for entry in entries(folder)] == [(ADA, ("GPU-1",)), (EVE, ("GPU-2",))]

    def test_what_is_touched_or_written_again_is_last(self, folder: Path) -> None:
        """An old file that is filled later must not be older than what came between."""
        early = forge(folder, EVE, kind="reserved")
        reserve(folder, ADA)
        now = time.time()
        plain = json.loads(early.read_text()) | {"gpus": ["GPU-1"], "begins": now, "until": now + 60}
        early.write_text(json.dumps(plain))
        os.utime(early, (1.0, 1.0))
        assert self.holder(folder) == ADA

    def test_a_link_to_a_file_of_another_neither_takes_nor_removes_it(self, folder: Path) -> None:
        path = reserve(folder, ADA)
        os.link(path, folder / "gpulse-queue-000000")
        os.symlink(path, folder / "gpulse-queue-000001")
        assert [(entry.uid, entry.path) for entry in entries(folder)] == [(ADA, str(path))]

    def test_others_of_the_same_user_may_overlap(self, folder: Path) -> None:
        reserve(folder, ADA)
        reserve(folder, ADA)
        assert [entry.gpus for entry in entries(folder)] == [("GPU-1",)] * 2


class TestLengths:
    def test_no_reservation_is_longer_than_allowed(self, folder: Path) -> None:
        now = time.time()
        reserve(folder, until=now + 10 * LONGEST, begins=now)
        assert [entry.until for entry in entries(folder)] == [now + LONGEST]

    def test_a_begin_in_the_past_or_far_future_makes_it_no_longer(self, folder: Path) -> None:
        now = time.time()
        reserve(folder, begins=0.0, until=now + 1e6)
        reserve(folder, begins=None, until=now + 1e6)
        reserve(folder, begins=now + AHEAD + 3600, until=now + AHEAD + 7200)
        forge(folder, kind="reserved", gpus=["GPU-1"], begins=now, until=float("inf"))
        assert entries(folder) == []


@as_root
class TestWaiting:
    def test_a_process_of_another_does_not_count(self, folder: Path, start: Any) -> None:
        path, _ = start(ADA)
        plain = json.loads(path.read_text())
        signed = {key: plain[key] for key in ("kind", "pid", "start", "boot", "space")}
        forged = forge(folder, EVE, **signed, arrived=0)
        with forged.open("r+") as file:
            fcntl.lockf(file, fcntl.LOCK_EX)
            assert [entry.uid for entry in entries(folder)] == [ADA]

    def test_init_does_not_wait_for_gpus(self, folder: Path, start: Any) -> None:
        path, _ = start(ADA)
        began = int(Path("/proc/1/stat").read_text().rpartition(")")[2].split()[19])
        view = viewpoint()
        forge(folder, EVE, kind="waiting", pid=1, start=began, boot=view.boot, space=view.space, arrived=0)
        assert [entry.path for entry in entries(folder)] == [str(path)]

    def test_who_says_to_have_come_first_has_not(self, folder: Path, start: Any) -> None:
        first, _ = start(ADA)
        second, _ = start(EVE)
        plain = json.loads(second.read_text())
        with second.open("r+") as file:  # the same file, which its process has locked
            file.write(json.dumps(plain | {"arrived": 0.0, "since": 0.0}))
            file.truncate()
        os.utime(second, (1.0, 1.0))
        assert [entry.path for entry in in_order(entries(folder))] == [str(first), str(second)]

    def test_a_lock_that_every_reader_can_have_keeps_nobody_in_the_queue(self, folder: Path) -> None:
        """In another container processes cannot be seen, and only the lock tells."""
        path = forge(folder, ADA, kind="waiting", pid=99, start=1, boot=boot_id(), space="pid:[1]")
        with path.open() as file:
            fcntl.flock(file, fcntl.LOCK_EX)
            assert entries(folder) == []
        with path.open("r+") as file:
            fcntl.lockf(file, fcntl.LOCK_EX)
            assert [entry.uid for entry in entries(folder)] == [ADA]

    def test_a_claim_on_a_claimed_gpu_is_none(self, folder: Path, start: Any) -> None:
        first, _ = start(ADA, "running")
        start(EVE, "running")
        assert [(entry.uid, entry.path) for entry in entries(folder)] == [(ADA, str(first))]

    def test_nobody_cancels_a_request_of_another(self, folder: Path) -> None:
        place = QueuePlace(new_entry("waiting"), Queue(str(folder)))
        place.write()
        os.unlink(place.entry.path)
        forge(folder, EVE, id=place.entry.id, cancelled=True)
        assert place.state == "gone"


class TestGarbage:
    @pytest.mark.parametrize(
        "parts",
        [
            {"until": 9e14, "begins": 8e14},
            {"gpus": ["\x1b[31m", "../../etc", 7, None, "x" * 9999] * 2000},
            {"gpus": {"GPU-1": 1}, "among": "GPU-1"},
            {"count": 0.5},
            {"count": 1e14, "memory": -1, "share": "yes"},
            {"longest": 1e14, "shortest": 1e14},
            {"reason": "\ud800\x1b[2J", "program": ["a"]},
            {"reason": 7, "arrived": "soon"},
        ],
    )
    def test_unusual_values_break_no_reader(self, folder: Path, parts: dict[str, Any]) -> None:
        now = time.time()
        plain: dict[str, Any] = {"kind": "reserved", "gpus": ["GPU-1"], "begins": now, "until": now + 60}
        forge(folder, **plain | parts)
        found = entries(folder)
        for entry in found:
            assert entry.count >= 1
            assert len(entry.gpus) <= 1024
            assert all(isinstance(uuid, str) and len(uuid) <= 200 for uuid in entry.gpus)
            json.dumps(entry.reason, ensure_ascii=False).encode()
            assert "\x1b" not in hold_text(entry, now)
            users = {entry.id: entry.user}
            assert "\x1b" not in "".join(queue_lines([entry], [], {}, users, {}, now, 10_000))

    def test_a_huge_file_is_no_entry(self, folder: Path) -> None:
        path = reserve(folder)
        assert len(entries(folder)) == 1
        with path.open("a") as file:
            file.write(" " * (1 << 20))
        assert entries(folder) == []

    @pytest.mark.parametrize("name", ["", "abc", "abcdefg", "ABCDEF", "../abc", "abcde.", "\u0661\u0662\u0663456"])
    def test_other_names_are_no_entries(self, folder: Path, name: str) -> None:
        path = reserve(folder)
        text = path.read_text().replace(path.name[-6:], name)
        path.unlink()
        (folder / f"gpulse-queue-{name.replace('/', '_')}").write_text(text)
        assert entries(folder) == []

    @as_root
    def test_one_user_cannot_crowd_out_the_others(self, folder: Path) -> None:
        for at in range(300):
            forge(folder, EVE, f"{at:06x}", kind="reserved", gpus=["GPU-9"], begins=time.time(), until=time.time() + 60)
        reserve(folder, ADA)
        found = entries(folder)
        assert len([entry for entry in found if entry.uid == EVE]) == 200
        assert [entry.gpus for entry in found if entry.uid == ADA] == [("GPU-1",)]
