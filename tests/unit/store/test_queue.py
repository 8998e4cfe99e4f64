"""The queue on disk: who it is from is the file's owner, who is dead is gone, and a reservation outlives a reboot."""

from __future__ import annotations

import fcntl
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from gpulse.store import liveness
from gpulse.store.claims import user_name
from gpulse.store.entry import Entry
from gpulse.store.liveness import uptime
from gpulse.store.queue import LONGEST, Queue, QueuePlace, longest_reservation, new_entry, queue_folder

ROOT = Path(__file__).parents[3]
WAIT = """
import sys
from gpulse.store.queue import Queue, QueuePlace, new_entry
place = QueuePlace(new_entry("waiting", count=2, program="train"), Queue(sys.argv[1]))
place.write()
print(place.entry.id, flush=True)
sys.stdin.readline()
"""


@pytest.fixture
def waiter(tmp_path: Path) -> Iterator[subprocess.Popen[str]]:
    with subprocess.Popen(
        [sys.executable, "-S", "-c", WAIT, str(tmp_path)],
        env=os.environ | {"PYTHONPATH": str(ROOT / "src")},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    ) as process:
        assert process.stdout is not None
        assert process.stdout.readline()
        yield process
        process.kill()


def entries(folder: Path, now: float | None = None) -> list[Entry]:
    return Queue(str(folder)).entries(now)


def files(folder: Path) -> list[Path]:
    return sorted(folder.glob("gpulse-queue-*"))


def rewrite(where: Path, **parts: Any) -> None:
    (path,) = files(where)
    path.write_text(json.dumps(json.loads(path.read_text()) | parts))


def test_a_waiting_program_is_there_until_it_dies(tmp_path: Path, waiter: subprocess.Popen[str]) -> None:
    (entry,) = entries(tmp_path)
    assert (entry.kind, entry.count, entry.program, entry.pid) == ("waiting", 2, "train", waiter.pid)
    assert (entry.user, entry.stopped) == (user_name(os.getuid()), False)
    assert entry.arrived <= uptime()
    waiter.kill()
    waiter.wait()
    assert entries(tmp_path) == []
    os.utime(files(tmp_path)[0])
    Queue(str(tmp_path)).tidy()
    assert files(tmp_path)  # it may be one that is being written
    past = time.time() + 120
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(time, "time", lambda: past)
        Queue(str(tmp_path)).tidy()
    assert files(tmp_path) == []


def test_a_stopped_program_is_known_as_such(tmp_path: Path, waiter: subprocess.Popen[str]) -> None:
    waiter.send_signal(signal.SIGSTOP)
    os.waitid(os.P_PID, waiter.pid, os.WSTOPPED | os.WNOWAIT)
    assert [entry.stopped for entry in entries(tmp_path)] == [True]


@pytest.mark.parametrize(
    "parts",
    [{"start": 1}, {"pid": 1}, {"id": "000000"}, {"boot": "another"}, {"pid": "x"}, {"kind": "king"}, {"folder": "/"}],
)
def test_what_is_not_as_it_says_is_not_there(
    tmp_path: Path, waiter: subprocess.Popen[str], parts: dict[str, Any]
) -> None:
    assert len(entries(tmp_path)) == 1
    rewrite(tmp_path, **parts)
    assert entries(tmp_path) == []


def test_nobody_has_waited_longer_than_their_file_is_there(tmp_path: Path, waiter: subprocess.Popen[str]) -> None:
    (before,) = entries(tmp_path)
    rewrite(tmp_path, arrived=1.0)
    os.utime(files(tmp_path)[0], (1.0, 1.0))
    (after,) = entries(tmp_path)
    assert before.arrived <= after.arrived <= uptime()


def test_a_lock_of_somebody_else_does_not_bring_the_dead_back(tmp_path: Path, waiter: subprocess.Popen[str]) -> None:
    waiter.kill()
    waiter.wait()
    with files(tmp_path)[0].open() as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        assert entries(tmp_path) == []


def test_where_processes_are_hidden_the_lock_tells(
    tmp_path: Path, waiter: subprocess.Popen[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(liveness, "_pid_space", lambda: "another container")
    assert len(entries(tmp_path)) == 1
    waiter.kill()
    waiter.wait()
    assert entries(tmp_path) == []


class TestOwner:
    """The owner of a file is whose entry it is; nothing in it can say otherwise."""

    def reserved(self, folder: Path, **parts: Any) -> Path:
        now = time.time()
        entry = new_entry("reserved", gpus=["GPU-1"], begins=now, until=now + 100, **parts)
        Queue(str(folder)).reserve(entry)
        return folder / f"gpulse-queue-{entry.id}"

    def test_what_a_file_says_of_its_user_does_not_count(self, tmp_path: Path) -> None:
        path = self.reserved(tmp_path)
        path.write_text(json.dumps(json.loads(path.read_text()) | {"user": "ada", "uid": 1234}))
        (entry,) = entries(tmp_path)
        assert (entry.uid, entry.user) == (os.getuid(), user_name(os.getuid()))

    @pytest.mark.skipif(os.getuid() != 0, reason="only root can give a file away")
    def test_the_owner_is_whose_it_is(self, tmp_path: Path) -> None:
        os.chown(self.reserved(tmp_path), 4321, 4321)
        (entry,) = entries(tmp_path)
        assert (entry.uid, entry.user) == (4321, "4321")
        assert Queue(str(tmp_path)).reservations() == []

    def test_a_file_that_others_can_write_proves_nothing(self, tmp_path: Path) -> None:
        path = self.reserved(tmp_path)
        assert path.stat().st_mode & 0o777 == 0o644
        path.chmod(0o666)
        assert entries(tmp_path) == []

    def test_neither_does_one_from_another_folder_or_a_link(self, tmp_path: Path) -> None:
        here, there = tmp_path / "here", tmp_path / "there"
        here.mkdir()
        there.mkdir()
        path = self.reserved(there)
        (here / path.name).symlink_to(path)
        assert entries(here) == []
        (here / path.name).unlink()
        path.rename(here / path.name)
        assert entries(here) == []

    @pytest.mark.parametrize("text", ["", "{", "[]", '{"schema": 1}', '{"schema": 2, "kind": "reserved"}', "[" * 9000])
    def test_rubbish_is_ignored(self, tmp_path: Path, text: str) -> None:
        (tmp_path / "gpulse-queue-abcdef").write_text(text)
        (tmp_path / "gpulse-queue-000001").mkdir()
        os.mkfifo(tmp_path / "gpulse-queue-000002")
        assert entries(tmp_path) == []


def test_a_reservation_outlives_a_reboot_but_not_its_time(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    now = time.time()
    entry = new_entry("reserved", gpus=["GPU-1"], begins=now, until=now + 100, reason="a talk")
    queue = Queue(str(tmp_path))
    queue.reserve(entry)
    monkeypatch.setattr(liveness, "boot_id", lambda: "another")
    (found,) = queue.reservations()
    assert (found.gpus, found.until, found.reason) == (("GPU-1",), now + 100, "a talk")
    assert entries(tmp_path, now + 101) == []
    queue.reserve(found.replace(until=now + 200))
    assert [one.id for one in entries(tmp_path, now + 101)] == [entry.id]
    queue.cancel(found)
    assert files(tmp_path) == []


def test_a_place_is_taken_changed_cancelled_and_left(tmp_path: Path) -> None:
    place = QueuePlace(new_entry("waiting"), Queue(str(tmp_path)))
    states = [place.state]
    place.write()
    states.append(place.state)
    files(tmp_path)[0].unlink()
    states.append(place.state)
    assert states == ["gone", "there", "gone"]
    place.write(kind="running", gpus=["GPU-1"])
    assert [(entry.kind, entry.gpus) for entry in entries(tmp_path)] == [("running", ("GPU-1",))]
    place.write(kind="waiting", gpus=())
    Queue(str(tmp_path)).cancel(entries(tmp_path)[0])
    assert (place.state, entries(tmp_path)) == ("cancelled", [])
    place.leave()
    place.leave()
    assert files(tmp_path) == []


def test_what_somebody_put_in_its_place_is_replaced_and_not_written_to(tmp_path: Path) -> None:
    place = QueuePlace(new_entry("waiting"), Queue(str(tmp_path)))
    place.write()
    os.unlink(place.entry.path)
    os.mkfifo(place.entry.path)  # whoever opens it waits for a reader that never comes
    place.write()
    assert [entry.id for entry in entries(tmp_path)] == [place.entry.id]
    os.unlink(place.entry.path)
    os.symlink("/dev/null", place.entry.path)
    place.write()
    assert os.path.isfile(place.entry.path)
    assert not os.path.islink(place.entry.path)
    assert place.state == "there"
    place.leave()


def test_where_the_queue_is(tmp_path: Path) -> None:
    assert queue_folder({"GPULSE_CLAIMS": "/somewhere"}) == "/somewhere"
    assert queue_folder({}) in ("/var/tmp", "/run/lock", "/tmp")
    assert entries(tmp_path / "nowhere") == []


class TestLongestReservation:
    @pytest.fixture
    def place(self, tmp_path: Path) -> dict[str, str]:
        return {"GPULSE_MACHINE_CONFIG": str(tmp_path / "config.toml")}

    def write(self, place: dict[str, str], text: str, mode: int = 0o644) -> Path:
        path = Path(place["GPULSE_MACHINE_CONFIG"])
        path.write_text(f"[queue]\n{text}\n")
        path.chmod(mode)
        return path

    def test_without_settings_it_is_a_week(self, place: dict[str, str]) -> None:
        assert longest_reservation(place) == (LONGEST, "") == (7 * 86400.0, "")

    @pytest.mark.skipif(os.getuid() != 0, reason="only root's file counts")
    def test_it_comes_from_a_file_of_roots(self, place: dict[str, str]) -> None:
        path = self.write(place, 'longest_reservation = "8h"')
        assert longest_reservation(place) == (8 * 3600.0, "")
        os.chown(path, 4321, 4321)
        length, ignored = longest_reservation(place)
        assert length == LONGEST
        assert ignored.startswith(f"the [queue] settings of this machine are ignored: {path} is not used: ")

    @pytest.mark.skipif(os.getuid() != 0, reason="only root's file counts")
    def test_readers_apply_it_and_notice_a_change(
        self, place: dict[str, str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setenv("GPULSE_MACHINE_CONFIG", place["GPULSE_MACHINE_CONFIG"])
        queue, now = Queue(str(tmp_path)), time.time()
        queue.reserve(new_entry("reserved", gpus=["GPU-1"], begins=now, until=now + 9e6))
        assert [entry.until for entry in queue.entries()] == [now + LONGEST]
        self.write(place, 'longest_reservation = "8h"')
        assert [entry.until for entry in queue.entries()] == [now + 8 * 3600]

    @pytest.mark.skipif(os.getuid() != 0, reason="only root's file counts")
    @pytest.mark.parametrize(("text", "why"), [('longest_reservation = "ada"', "'ada'"), ("x = [", "line")])
    def test_a_mistake_is_one_sentence(self, place: dict[str, str], text: str, why: str) -> None:
        path = self.write(place, text)
        assert why in longest_reservation(place)[1]
        path.chmod(0o666)
        assert "can be changed by others than root" in longest_reservation(place)[1]
