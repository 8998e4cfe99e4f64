"""What must not hurt: other writers, readers, kill -9, full disks, damage, removal, and files of other programs."""

from __future__ import annotations

import gzip
import os
import random
import resource
import signal
import sqlite3
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from gpulse.cli.main import main
from gpulse.model.catalog import Process
from gpulse.model.event import Event
from gpulse.present.events import event_text
from gpulse.store.history import HistoryBusy, HistoryError, HistoryReader, HistoryWriter, Recorder, holder, verify
from tests.unit.store.history.ticks import START, TurnedClock, gpu, series, tick, write

_WRITER = """
import sys, time
from tests.unit.store.history.ticks import gpu, tick
from gpulse.store.history import HistoryWriter
writer = HistoryWriter(sys.argv[1])
for at in range(int(sys.argv[2]), 10**9):
    writer.add(tick(5 * at, gpu(utilization=at % 100)))
    print(at, flush=True)
    time.sleep(0.002)
"""


def children() -> dict[str, str]:
    """The environment in which a child finds what this process found."""
    return {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}


@contextmanager
def other_writer(path: str, first: int = 0) -> Iterator[subprocess.Popen[str]]:
    """A process that writes a tick every few milliseconds and says which."""
    child = subprocess.Popen(
        [sys.executable, "-c", _WRITER, path, str(first)], stdout=subprocess.PIPE, text=True, env=children()
    )
    try:
        assert child.stdout is not None
        child.stdout.readline()  # it has written its first
        yield child
    finally:
        child.kill()
        child.communicate()


def is_whole(path: str) -> bool:
    connection = sqlite3.connect(path)
    try:
        return bool(connection.execute("PRAGMA integrity_check").fetchone() == ("ok",))
    finally:
        connection.close()


def test_a_second_writer_steps_back_and_says_who_writes(tmp_path: Path) -> None:
    path = str(tmp_path / "h.db")
    assert holder(path) is None
    with other_writer(path) as child:
        assert (holder(path) or "").startswith(f"process {child.pid} (python")  # without the text after -c
        assert "import" not in (holder(path) or "")
        with pytest.raises(HistoryBusy, match=f"process {child.pid}.* already writes"):
            HistoryWriter(path)
    assert holder(path) is None
    HistoryWriter(path).close()


def test_readers_read_while_another_process_writes(tmp_path: Path) -> None:
    path = str(tmp_path / "h.db")
    with other_writer(path) as child, HistoryReader(path) as reader:
        assert child.stdout is not None
        lengths = []
        for line in child.stdout:
            found = reader.series(["utilization"], None, START, START + 1e6, 1_000_000)
            values = [value for one in found for value in one.mean if value == value]
            assert values == [float(at % 100) for at in range(len(values))]
            lengths.append(len(values))
            if len(values) > 250:  # two windows have been sealed under its eyes
                break
            assert int(line) < 5000
        assert lengths == sorted(lengths)


def test_kill_9_leaves_a_whole_file_and_takes_less_than_two_seconds(tmp_path: Path) -> None:
    path, chance, first = str(tmp_path / "h.db"), random.Random(3), 0
    for _ in range(10):
        with other_writer(path, first) as child:
            assert child.stdout is not None
            end = time.monotonic() + chance.uniform(0, 0.5)
            seen = [(first, time.monotonic())]
            while time.monotonic() < end:
                seen.append((int(child.stdout.readline()), time.monotonic()))
            os.kill(child.pid, signal.SIGKILL)
            killed = time.monotonic()
        assert is_whole(path)
        with HistoryReader(path) as reader:
            span = reader.span()
        last = (span[1] - START) / 5 if span else -1
        assert [at for at, when in seen if at > last and killed - when > 2] == []
        first = seen[-1][0] + 1000


@contextmanager
def files_no_larger_than(size: int) -> Iterator[None]:
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)


def test_a_disk_that_refuses_is_one_problem_and_nothing_is_lost_when_it_takes_again(tmp_path: Path) -> None:
    path, clock = str(tmp_path / "h.db"), TurnedClock()
    with HistoryWriter(path, clock=clock) as writer:
        with files_no_larger_than(120_000):
            for at in range(1000):
                clock.now = float(at)
                writer.add(tick(at, gpu(utilization=at % 100)))
            (problem,) = writer.problems
            assert "cannot be written" in problem.message
            assert "kept in memory" in problem.message
        for at in range(1000, 1300):
            clock.now = float(at)
            writer.add(tick(at, gpu(utilization=at % 100)))
        assert writer.problems == ()
    assert series(path, "utilization", 0, 1300).mean == [float(at % 100) for at in range(1300)]
    assert is_whole(path)


_FULL = """
import os, subprocess, sys
from tests.unit.store.history.ticks import TurnedClock, gpu, known, series, tick
from gpulse.store.history import HistoryWriter
folder, clock = sys.argv[1], TurnedClock()
subprocess.run(["mount", "-t", "tmpfs", "-o", "size=12m", "tmpfs", folder], check=True)
writer = HistoryWriter(f"{folder}/h.db", clock=clock)
with open(f"{folder}/ballast", "wb", buffering=0) as ballast:
    try:
        while ballast.write(bytes(16384)):
            pass
    except OSError:
        pass
for at in range(1500):
    if at == 1000:
        assert len(writer.problems) == 1 and "full" in writer.problems[0].message, writer.problems
        os.unlink(f"{folder}/ballast")
    clock.now = float(at)
    writer.add(tick(at, gpu(utilization=at % 100)))
assert writer.problems == (), writer.problems
writer.close()
assert known(series(f"{folder}/h.db", "utilization", 0, 1500).mean) == [float(at % 100) for at in range(1500)]
"""


@pytest.mark.skipif(
    subprocess.run(["unshare", "-rm", "true"], check=False, capture_output=True).returncode != 0,
    reason="a file system of its own takes a namespace",
)
def test_a_file_system_without_room_is_waited_for(tmp_path: Path) -> None:
    done = subprocess.run(
        ["unshare", "-rm", sys.executable, "-c", _FULL, str(tmp_path)],
        capture_output=True,
        text=True,
        check=False,
        env=children(),
    )
    assert done.returncode == 0, done.stderr


def test_a_database_that_is_full_is_one_too(tmp_path: Path) -> None:
    path, clock = str(tmp_path / "h.db"), TurnedClock()
    with HistoryWriter(path, clock=clock) as writer:
        connection = writer._connection
        assert connection is not None
        pages = connection.execute("PRAGMA page_count").fetchone()[0]
        connection.execute(f"PRAGMA max_page_count = {pages + 2}")
        for at in range(5000):
            clock.now = float(at)
            writer.add(tick(at, gpu(energy=at * 1e6 + random.Random(at).random() * 1e6)))
        (problem,) = writer.problems
        assert "full" in problem.message
        assert "samples were lost" in problem.message  # memory has an end as well, and says so
        connection.execute("PRAGMA max_page_count = 100000")
        clock.now += 10
        writer.add(tick(5000, gpu(energy=0)))
        assert writer.problems == ()
    assert len(series(path, "energy", 0, 5001).mean) >= 3600
    with HistoryReader(path) as reader:
        (event,) = reader.events(START, START + 6000, {"dropped"})
    assert event_text(event).endswith("samples were lost while the disk was full")
    assert event.value


def test_what_waits_for_a_disk_has_an_end(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("gpulse.store.history.writer._MOST_NEWS", 50)
    path, clock = str(tmp_path / "h.db"), TurnedClock()
    with HistoryWriter(path, clock=clock) as writer:
        connection = writer._connection
        assert connection is not None
        connection.execute("PRAGMA max_page_count = 1")
        for at in range(100):
            clock.now = 10.0 * at
            someone = (Process({"pid": 1000 + at, "user": "ada", "running_time": 1.0}),)
            writer.add(tick(at, gpu(utilization=1, processes=someone)), [Event(START + at, "xid", ("0",), value=31.0)])
        assert "full" in writer.problems[0].message
        assert len(writer._accounts.news) + len(writer._events.news) <= 100
        connection.execute("PRAGMA max_page_count = 100000")
        clock.now += 10
        writer.add(tick(100, gpu(utilization=1)))
        assert writer.problems == ()
    with HistoryReader(path) as reader:
        assert len(reader.events(START, START + 200, {"xid"})) >= 45


@pytest.mark.parametrize(
    "junk",
    [bytes(8192), b"SQLite format 3\0" + b"\xff" * 8000],
)
def test_a_damaged_file_is_set_aside_and_a_new_one_begun(tmp_path: Path, junk: bytes) -> None:
    path = tmp_path / "h.db"
    path.write_bytes(junk)
    with pytest.raises(HistoryError, match="cannot be read"):
        HistoryReader(str(path))
    with HistoryWriter(str(path), clock=TurnedClock()) as writer:
        (problem,) = writer.problems
        writer.add(tick(0, gpu(utilization=1)))
    (aside,) = tmp_path.glob("h.db.damaged-*")
    assert aside.read_bytes() == junk
    assert aside.name in problem.message
    assert series(str(path), "utilization", 0, 1).mean == [1.0]


def test_damage_met_while_writing_is_set_aside_too(tmp_path: Path) -> None:
    path, clock = str(tmp_path / "h.db"), TurnedClock()
    with HistoryWriter(path, clock=clock) as writer:
        writer.add(tick(0, gpu(utilization=1)))
        connection = writer._connection
        assert connection is not None
        connection.execute("PRAGMA writable_schema = ON")
        connection.execute("DROP TABLE main.tick")
        for at in range(1, 5):
            clock.now = float(at)
            writer.add(tick(at, gpu(utilization=at)))
        assert len(writer.problems) == 1
    assert len(list(tmp_path.glob("h.db.damaged-*[0-9]"))) == 1
    assert series(path, "utilization", 0, 10).mean == [2.0, 3.0, 4.0]


def test_what_sqlite_never_takes_does_not_stop_what_follows(tmp_path: Path) -> None:
    path, clock = str(tmp_path / "h.db"), TurnedClock()
    with HistoryWriter(path, clock=clock) as writer:
        for at in range(5):
            clock.now = float(at)
            if at == 2:
                writer._events.news.append(("INSERT INTO meta VALUES(?, 'x')", (1 << 70,)))
            writer.add(tick(at, gpu(utilization=at)))
    assert series(path, "utilization", 0, 5).mean == [0.0, 1.0, 3.0, 4.0]
    with HistoryReader(path) as reader:
        assert [event.time - START for event in reader.events(START, START + 5, {"dropped"})] == [2.0]


def test_a_file_that_is_removed_is_begun_anew_and_readers_follow(tmp_path: Path) -> None:
    path, clock = str(tmp_path / "h.db"), TurnedClock()
    with HistoryWriter(path, clock=clock) as writer:
        writer.add(tick(0, gpu(utilization=0)))
        with HistoryReader(path) as reader:
            assert reader.span() == (START, START)
            for end in ("", "-wal", "-shm"):
                os.unlink(path + end)
            for at in range(1, 5):
                clock.now = float(at)
                writer.add(tick(at, gpu(utilization=at)))
            assert reader.span() == (START + 2, START + 4)


def test_a_newer_file_is_refused_and_left_alone(tmp_path: Path) -> None:
    path = str(tmp_path / "h.db")
    write(path, [tick(0, gpu(utilization=1))])
    connection = sqlite3.connect(path)
    connection.execute("PRAGMA user_version = 99")
    connection.close()
    for open_it in (HistoryWriter, HistoryReader):
        with pytest.raises(HistoryError, match=r"written by a newer gpulse \(format 99"):
            open_it(path)
    assert holder(path) is None
    assert list(tmp_path.glob("*damaged*")) == []


def test_a_database_of_others_is_refused_and_left_alone(tmp_path: Path) -> None:
    path = str(tmp_path / "h.db")
    connection = sqlite3.connect(path)
    connection.execute("CREATE TABLE mine(x)")
    connection.close()
    with pytest.raises(HistoryError, match="not a history of gpulse"):
        HistoryWriter(path)
    assert list(tmp_path.glob("*damaged*")) == []


@pytest.mark.parametrize(
    "content", [b"a text of mine\n" * 500, b'{"schema": 1}\n', gzip.compress(b'{"schema": 1}\n', mtime=0)]
)
def test_a_text_or_recording_is_refused_and_left_alone(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], content: bytes
) -> None:
    path = tmp_path / "h.db"
    path.write_bytes(content)
    for use in (HistoryWriter, HistoryReader, verify):
        with pytest.raises(HistoryError, match="not a history of gpulse"):
            use(str(path))
    assert main(["history", "--file", str(path), "--repair"]) == 1
    assert "not a history of gpulse" in capsys.readouterr().err
    assert path.read_bytes() == content
    assert list(tmp_path.glob("*damaged*")) == []


def test_no_history_and_no_place_are_said_so(tmp_path: Path) -> None:
    with pytest.raises(HistoryError, match="no history"):
        HistoryReader(str(tmp_path / "none.db"))
    closed = tmp_path / "closed"
    closed.mkdir(mode=0o555)
    folder = "/sys" if os.geteuid() == 0 else str(closed)  # root may write anywhere but there
    with pytest.raises(HistoryError, match="cannot be"):
        HistoryWriter(f"{folder}/h.db")


def test_a_link_is_not_followed(tmp_path: Path) -> None:
    (tmp_path / "h.db").symlink_to(tmp_path / "elsewhere.db")
    with pytest.raises(HistoryError, match="cannot be opened"):
        HistoryWriter(str(tmp_path / "h.db"))
    assert not (tmp_path / "elsewhere.db").exists()


def test_a_finished_history_is_read_where_nothing_can_be_written(tmp_path: Path) -> None:
    path = tmp_path / "h.db"
    write(str(path), (tick(at, gpu(utilization=at)) for at in range(5)))
    assert sorted(entry.name for entry in tmp_path.iterdir()) == ["h.db", "h.db.lock"]
    assert path.stat().st_mode & 0o777 == 0o600
    path.chmod(0o400)
    tmp_path.chmod(0o500)
    try:
        assert series(str(path), "utilization", 0, 5).mean == [0.0, 1.0, 2.0, 3.0, 4.0]
    finally:
        tmp_path.chmod(0o700)


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can become somebody else")
def test_another_user_reads_a_history_only_if_its_mode_allows_it(tmp_path: Path) -> None:
    import tempfile

    from gpulse.store.history.database import open_to_read, open_to_write

    with tempfile.TemporaryDirectory(dir="/var/tmp") as folder:
        os.chmod(folder, 0o755)
        for mode, expected in ((0o644, 0), (0o640, 1), (0o600, 1)):
            path = f"{folder}/{mode}.db"
            connection = open_to_write(path, mode)
            connection.execute("INSERT INTO meta VALUES('a', 'b')")
            child = os.fork()
            if child == 0:
                os.setgroups([])
                os.setgid(65534)
                os.setuid(65534)
                try:
                    row = open_to_read(path).execute("SELECT value FROM meta").fetchone()
                    os._exit(0 if row == ("b",) else 2)
                except HistoryError:
                    os._exit(1)
            assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == expected
            connection.close()


def test_a_recorder_writes_in_its_own_thread(tmp_path: Path) -> None:
    path = str(tmp_path / "h.db")
    recorder = Recorder(path)
    for at in range(50):
        recorder.put(tick(at, gpu(utilization=at)))
    recorder.close()
    recorder.close()
    assert (recorder.problems, recorder.dropped) == ((), 0)
    assert series(path, "utilization", 0, 50).mean == [float(at) for at in range(50)]
    with pytest.raises(HistoryError):
        Recorder("/sys/nowhere/h.db")


def test_a_recorder_says_once_that_the_disk_refuses_and_once_that_it_takes_again(tmp_path: Path) -> None:
    said: list[str] = []
    recorder = Recorder(str(tmp_path / "h.db"), told=said.append)
    put = iter(range(100_000))

    def until(happens: Callable[[], bool]) -> None:
        for at in put:
            if happens():
                return
            recorder.put(tick(at, gpu(energy=random.Random(at).random() * 1e9)))
            time.sleep(0.002)

    with files_no_larger_than(120_000):
        until(lambda: not recorder.writable and recorder.waiting > 150)
        assert recorder.failures > 0
    recorder._writer._retry = -1e9
    until(lambda: recorder.writable)
    recorder.close()
    assert recorder.unwritten == recorder.dropped
    refused, again = said
    assert "cannot be written" in refused
    assert "samples are kept in memory" in refused
    assert again.endswith("is written again; no sample was lost.")
