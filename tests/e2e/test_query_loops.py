"""Loops of `gpulse query`: how they are asked for, how they end, and the files they write."""

from __future__ import annotations

import json
import re
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from gpulse.cli.commands.query import VERB
from gpulse.cli.main import SILENT_PIPE
from gpulse.cli.options import parse
from tests.e2e.lab import Lab, environment
from tests.e2e.test_query import BUSY, EVERY_WAY, PATIENCE, ask, loop, machine
from tests.fake_nvml import Clock, Scenario, calls


@pytest.mark.parametrize(
    ("line", "interval"),
    [
        ("-l 1", 1.0),
        ("-l", 5.0),
        ("--loop=1", 1.0),
        ("--loop 2", 2.0),
        ("--loop", 5.0),
        ("-l 0.5", 0.5),
        ("-l 500ms", 0.5),
        ("-l=1", 1.0),
        ("-lms 100", 0.1),
        ("--loop-ms=100", 0.1),
        ("--loop-ms 100", 0.1),
        ("-lms=100", 0.1),
    ],
)
def test_every_spelling_of_a_loop_is_understood(line: str, interval: float) -> None:
    arguments = parse(VERB, [*line.split(), "--query-gpu=index"])
    assert (arguments.loop_ms or arguments.loop) == interval
    assert arguments.query_gpu == ["index"]


@pytest.mark.parametrize("line", ["-lms 10", "--loop-ms=10", "-l 0.01", "--loop=10ms"])
def test_a_loop_stops_after_its_count_with_one_header(lab: Lab, line: str) -> None:
    answer = loop(lab, machine(2), f"--query-gpu=index,name --count 3 {line}")
    rows = [row.split(", ")[0] for row in answer.out.splitlines()]
    assert rows == ["index", *["0", "1"] * 3]


def test_a_loop_stops_after_its_time(lab: Lab) -> None:
    rows = loop(lab, machine(1), "--query-gpu=index --for 100ms -lms 20").out.split()
    assert rows[0] == "index"
    assert 1 <= rows.count("0") <= 6
    assert loop(lab, machine(1), "--query-gpu=index --for 1ms").out.split() == ["index", "0"]


def test_samples_that_were_left_out_are_said_on_stderr(lab: Lab) -> None:
    slow = machine(1).fault(function="nvmlDeviceGetTemperature*", hang="20ms")
    answer = loop(lab, slow, "--query-gpu=temperature.gpu --count 4 -lms 1")
    assert answer.code == 0
    assert len(answer.out.splitlines()) == 5
    number, words = answer.err.removeprefix("gpulse: skipped ").split(" ", 1)
    assert int(number) >= 3
    assert words.startswith("samples: sampling took longer than the interval")
    assert answer.err.count("\n") == 1


@contextmanager
def running(env: dict[str, str], folder: Path, line: str) -> Iterator[subprocess.Popen[bytes]]:
    """A query whose stdout and stderr are the files `out` and `err` of a folder."""
    with (folder / "out").open("wb") as out, (folder / "err").open("wb") as err:
        process = subprocess.Popen(
            [sys.executable, "-m", "gpulse", "query", *line.split()], env=env, stdout=out, stderr=err
        )
    try:
        yield process
    finally:
        process.kill()
        process.wait(PATIENCE)


def wait_for(path: Path, there: Callable[[str], bool]) -> str:
    """The text of a file as soon as it is as expected."""
    end = time.monotonic() + PATIENCE
    while time.monotonic() < end:
        text = path.read_text() if path.exists() else ""
        if there(text):
            return text
        time.sleep(0.005)
    raise AssertionError(f"{path.name} never came to be as expected")


def lines(count: int) -> Callable[[str], bool]:
    return lambda text: text.count("\n") >= count


@pytest.fixture
def env(tmp_path: Path) -> dict[str, str]:
    return environment(machine(2), tmp_path / "fake")


def test_a_gpu_lost_in_a_loop_says_so_and_the_loop_goes_on(tmp_path: Path) -> None:
    scenario = machine(2).fault(function="*", gpu=1, code="GPU_IS_LOST", since="2s", until="6s")
    env = environment(scenario, tmp_path / "fake")
    clock = Clock(tmp_path)
    line = "--query-gpu=utilization.gpu,power.draw,memory.used -lms 20"
    with running(env | clock.environment, tmp_path, line) as process:
        wait_for(tmp_path / "out", lines(5))
        clock.set(3)
        lost = ", ".join(["[GPU is lost]"] * 3)
        wait_for(tmp_path / "out", lambda text: text.count(f"{lost}\n") >= 3)
        clock.set(7)
        seen = len(wait_for(tmp_path / "out", lines(1)))
        wait_for(tmp_path / "out", lambda text: len(text) > seen and lost not in text[-2 * len(lost) :])
        process.send_signal(signal.SIGINT)
        assert process.wait(PATIENCE) == 0
    header, *rows = (tmp_path / "out").read_text().splitlines()
    assert header not in rows
    assert not any("[" in row for row in rows[::2])  # the other GPU
    assert {row for row in rows[1::2] if "[" in row} == {lost}
    assert "Traceback" not in (tmp_path / "err").read_text()


@pytest.mark.parametrize(
    "line", ["-lms 20", "-l 60", "--count 1000000", "--for 1h", "-lms 20 --format=ndjson", "--scroll -l 60"]
)
def test_control_c_ends_a_loop_with_whole_lines_and_exit_0(env: dict[str, str], tmp_path: Path, line: str) -> None:
    with running(env, tmp_path, line) as process:
        wait_for(tmp_path / "out", lines(1 if "json" in line else 3))
        process.send_signal(signal.SIGINT)
        assert process.wait(PATIENCE) == 0
    text = (tmp_path / "out").read_text()
    assert text.endswith("\n")
    if "json" in line:
        assert all(json.loads(row)["schema"] == 1 for row in text.splitlines())
    else:
        assert len({row.count(",") for row in text.splitlines()}) == 1
    assert "Traceback" not in (tmp_path / "err").read_text()


def test_a_reader_that_leaves_ends_the_loop_without_a_word(env: dict[str, str]) -> None:
    for line in ("-lms 100", "-lms 100 --format=ndjson", "-lms 100 --scroll"):
        command = [sys.executable, "-m", "gpulse", "query", *line.split()]
        process = subprocess.Popen(command, env=env, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        assert process.stdout is not None
        assert process.stderr is not None
        assert process.stdout.readline()
        process.stdout.close()
        assert process.stderr.read() == b""
        process.stderr.close()
        assert process.wait(PATIENCE) in (0, SILENT_PIPE)


# Files


def test_each_line_is_in_the_file_at_once_and_none_on_stdout(env: dict[str, str], tmp_path: Path) -> None:
    log = tmp_path / "log.csv"
    log.write_text("old\n" * 100)
    with running(env, tmp_path, f"--query-gpu=index -l 60 -f {log}") as process:
        assert wait_for(log, lambda text: text.endswith("1\n")) == "index\n0\n1\n"
        assert process.poll() is None  # it waits for the next minute
        process.send_signal(signal.SIGINT)
        assert process.wait(PATIENCE) == 0
    assert log.read_text() == "index\n0\n1\n"
    assert (tmp_path / "out").read_text() == (tmp_path / "err").read_text() == ""


@pytest.mark.parametrize("asked", EVERY_WAY)
def test_a_file_holds_what_stdout_would(lab: Lab, tmp_path: Path, asked: str) -> None:
    log = tmp_path / "log"
    idle = Scenario.load("h200-idle")
    assert ask(lab, idle, f"{asked} --filename {log}").out == ""
    shown, written = (re.sub(r"\d+", "0", text) for text in (ask(lab, idle, asked).out, log.read_text()))
    assert written == shown


def test_a_link_is_refused_in_one_sentence_and_its_target_left_alone(lab: Lab, tmp_path: Path) -> None:
    target, link = tmp_path / "precious", tmp_path / "log"
    target.write_text("keep\n")
    link.symlink_to(target)
    answer = lab.run(BUSY, "query", "-f", str(link))
    assert (answer.code, answer.out) == (1, "")
    assert answer.err == f"gpulse: {link} is a symbolic link, which is not allowed. Name the file itself.\n"
    assert target.read_text() == "keep\n"


def test_a_full_disk_is_said_and_exit_1(lab: Lab) -> None:
    answer = lab.run(BUSY, "query", "-f", "/dev/full")
    assert (answer.code, answer.out) == (1, "")
    assert "No space left on device" in answer.err
    assert answer.err.count("\n") == 1
    assert answer.calls["nvmlShutdown"] == 1


@pytest.mark.parametrize("name", ["no/such/folder/log", "file/log", "."])
def test_a_file_that_cannot_be_made_is_said_and_the_driver_closed(lab: Lab, tmp_path: Path, name: str) -> None:
    (tmp_path / "file").touch()
    answer = lab.run(BUSY, "query", "-f", str(tmp_path / name))
    assert (answer.code, answer.out) == (1, "")
    assert answer.err.startswith(f"gpulse: {tmp_path / name} cannot be opened: ")
    assert answer.err.count("\n") == 1
    assert answer.calls["nvmlInit_v2"] == answer.calls["nvmlShutdown"]


def test_a_question_that_is_wrong_leaves_an_old_file_alone(lab: Lab, tmp_path: Path) -> None:
    log = tmp_path / "log"
    log.write_text("old\n")
    for wrong in ("--query-gpu=nosuch", "-i 9", "--where nosuch<5", "--sort nosuch"):
        assert lab.run(BUSY, "query", "-f", str(log), *wrong.split()).code == 2
    assert lab.run(Scenario.load("not-loaded"), "query", "-f", str(log)).code == 3
    assert log.read_text() == "old\n"


def test_after_a_rotation_no_line_is_lost_or_doubled(tmp_path: Path) -> None:
    env = environment(machine(1), tmp_path / "fake")
    log, old = tmp_path / "log.csv", tmp_path / "log.csv.1"
    with running(env, tmp_path, f"--query-gpu=timestamp,temperature.gpu -lms 20 -f {log}") as process:
        wait_for(log, lines(4))
        log.rename(old)
        seen = old.read_text().count("\n")
        wait_for(old, lines(seen + 2))  # until it is told, it writes on where it wrote
        process.send_signal(signal.SIGHUP)
        wait_for(log, lines(3))
        process.send_signal(signal.SIGINT)
        assert process.wait(PATIENCE) == 0
    before, after = old.read_text(), log.read_text()
    assert before.endswith("\n")
    assert after.endswith("\n")
    header, *rows = (before + after).splitlines()
    assert header == "timestamp, temperature.gpu"
    assert header not in rows
    assert rows == sorted(rows)
    snaps = max(
        count for name, count in calls(tmp_path / "fake").items() if name.startswith("nvmlDeviceGetTemperature")
    )
    assert snaps - len(rows) in (0, 1)  # the last sample may have been interrupted


def test_a_rotation_to_where_nothing_can_be_written_is_said(env: dict[str, str], tmp_path: Path) -> None:
    folder = tmp_path / "folder"
    folder.mkdir()
    with running(env, tmp_path, f"--query-gpu=index -lms 20 -f {folder / 'log'}") as process:
        wait_for(folder / "log", lines(3))
        folder.rename(tmp_path / "moved")
        process.send_signal(signal.SIGHUP)
        assert process.wait(PATIENCE) == 1
    err = (tmp_path / "err").read_text()
    assert f"gpulse: {folder / 'log'} cannot be opened: No such file or directory.\n" in err
    assert "Traceback" not in err


def test_a_kill_leaves_whole_lines(tmp_path: Path) -> None:
    env = environment(machine(8), tmp_path / "fake")
    log = tmp_path / "log.csv"
    with running(env, tmp_path, f"--query-gpu=index,name,uuid,power.draw -lms 1 -f {log}") as process:
        wait_for(log, lines(40))
        process.kill()
        process.wait(PATIENCE)
    text = log.read_text()
    assert text.endswith("\n")
    rows = [row.split(", ") for row in text.splitlines()]
    assert {len(row) for row in rows} == {4}
    assert [row[0] for row in rows[1:]] == [str(at % 8) for at in range(len(rows) - 1)]
    assert all(row[3].endswith(" W") for row in rows[1:])


def test_only_the_owner_may_read_a_log_with_processes(lab: Lab, tmp_path: Path) -> None:
    for words, mode in (("--query-compute-apps=pid,process_name", 0o600), ("--query-gpu=index", 0o644), ("-q", 0o600)):
        log = tmp_path / f"log{len(words)}"
        lab.run(BUSY, "query", words, "-f", str(log))
        assert log.stat().st_mode & 0o777 == mode, words
