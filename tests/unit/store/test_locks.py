"""Who has a GPU locked: the process that took the lock, a child that outlived it, and nothing that only a file says."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from gpulse.store.claims import claim, lock_path
from gpulse.store.entry import Entry
from gpulse.store.locks import Lock, locked_entries, locks

ROOT = Path(__file__).parents[3]
HOLD = """
import subprocess, sys
from gpulse.store.claims import claim
held = [claim(uuid) for uuid in sys.argv[1:]]
left = [one.pass_on() for one in held]
with subprocess.Popen(["cat"], stdin=sys.stdin, close_fds=False) as child:
    print(child.pid, flush=True)
"""


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("GPULSE_CLAIMS", str(tmp_path))
    return tmp_path


@pytest.fixture
def job() -> Iterator[tuple[subprocess.Popen[str], int]]:
    """A program with two GPUs, and its child, which ends when standard input does."""
    with subprocess.Popen(
        [sys.executable, "-c", HOLD, "GPU-1", "GPU-2"],
        env=os.environ | {"PYTHONPATH": str(ROOT / "src")},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    ) as process:
        assert process.stdout is not None
        yield process, int(process.stdout.readline())
        process.kill()


def test_the_process_that_took_a_lock_has_it(job: tuple[subprocess.Popen[str], int]) -> None:
    me, pid = os.getuid(), job[0].pid
    assert [(lock.uuid, lock.pid, lock.uid) for lock in locks()] == [("GPU-1", pid, me), ("GPU-2", pid, me)]
    assert [lock.uuid for lock in locks(["GPU-2", "GPU-3"])] == ["GPU-2"]


def test_a_child_that_outlives_it_has_it_then(job: tuple[subprocess.Popen[str], int]) -> None:
    program, child = job
    program.send_signal(signal.SIGKILL)
    program.wait()
    assert [(lock.uuid, lock.pid, lock.uid) for lock in locks()] == [
        (uuid, child, os.getuid()) for uuid in ("GPU-1", "GPU-2")
    ]
    (entry,) = locked_entries(None, [])
    assert (entry.kind, entry.pid, entry.uid, entry.gpus) == ("locked", child, os.getuid(), ("GPU-1", "GPU-2"))
    claimed = Entry("abcdef", "running", "ada", gpus=["GPU-1"])
    assert [entry.gpus for entry in locked_entries(None, [claimed])] == [("GPU-2",)]


def test_what_a_lock_file_says_is_no_more_than_a_note(monkeypatch: pytest.MonkeyPatch) -> None:
    with claim("GPU-1") or pytest.fail("nobody has it"):
        Path(lock_path("GPU-1")).write_text("root, pid 1\n")
        assert [(lock.pid, lock.note) for lock in locks()] == [(os.getpid(), "root, pid 1")]
        monkeypatch.setattr("gpulse.store.locks._takers", dict)
        monkeypatch.setattr("gpulse.store.locks._inheritors", lambda _: ())
        assert locks() == [Lock("GPU-1", note="root, pid 1")]  # as where processes of others are hidden


def test_a_process_that_began_after_the_lock_was_taken_has_only_its_number(folder: Path) -> None:
    with claim("GPU-1") or pytest.fail("nobody has it"):
        os.utime(lock_path("GPU-1"), (1.0, 1.0))
        assert [lock.pid for lock in locks()] == [os.getpid()]  # found by its descriptor
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr("gpulse.store.locks._inheritors", lambda _: ())
            assert [lock.pid for lock in locks()] == [None]


def test_without_a_lock_there_is_none(folder: Path) -> None:
    (folder / "gpulse-GPU-1.lock").touch()
    (folder / "gpulse-queue.lock").touch()
    assert locks() == []
    assert locks(folder=str(folder / "nowhere")) == []
