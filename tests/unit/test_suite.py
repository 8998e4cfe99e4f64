"""The suite itself: started with signals ignored, with a test that hangs, with a test that leaves a process."""

from __future__ import annotations

import os
import select
import subprocess
import sys
from pathlib import Path

import pytest

from tests.e2e import programs, trainings
from tools import programs as needed

_ROOT = Path(__file__).resolve().parents[2]
_TESTS = """
import os, signal, subprocess, sys, time
import pytest

def test_an_interrupt_ends_a_child():
    waiting = "import time; print('ready', flush=True); time.sleep(60)"
    child = subprocess.Popen([sys.executable, "-c", waiting], stdout=subprocess.PIPE)
    child.stdout.readline()
    child.send_signal(signal.SIGINT)
    assert child.wait(20) != 0

def test_that_hangs():
    time.sleep(600)

def test_that_leaves_a_process():
    left = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"], start_new_session=True)
    with open(os.environ["LEFT"], "w") as file:
        file.write(str(left.pid))
    assert False
"""


def copy_suite(folder: Path) -> None:
    """Copy what holds for every test."""
    for name in ("conftest.py", "watchdog.py"):
        (folder / name).write_text((_ROOT / "tests" / name).read_text(encoding="utf-8"), encoding="utf-8")


def test_the_suite_sets_signals_limits_tests_and_ends_processes(tmp_path: Path) -> None:
    copy_suite(tmp_path)
    (tmp_path / "test_some.py").write_text(_TESTS, encoding="utf-8")
    left = tmp_path / "left"
    ignoring = (
        "import os, signal, sys; signal.signal(signal.SIGINT, signal.SIG_IGN); os.execv(sys.argv[1], sys.argv[1:])"
    )
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-rA", str(tmp_path)]
    done = subprocess.run(
        [sys.executable, "-c", ignoring, *command],
        cwd=tmp_path,
        env={
            **os.environ,
            "PYTHONPATH": str(_ROOT),
            "PYTEST_DEBUG_TEMPROOT": str(tmp_path),
            "GPULSE_TEST_LIMIT": "8",
            "LEFT": str(left),
        },
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert "PASSED test_some.py::test_an_interrupt_ends_a_child" in done.stdout, done.stdout
    assert "test_some.py::test_that_hangs took longer than 8 s" in done.stdout
    assert f"processes left behind:\nE         {left.read_text()} {sys.executable} -c" in done.stdout, done.stdout
    assert ends(int(left.read_text()))


def ends(pid: int) -> bool:
    """Return whether a process has ended; one that has been killed gets the seconds that a busy machine takes to end it."""
    try:
        process = os.pidfd_open(pid)
    except ProcessLookupError:
        return True
    try:
        return bool(select.select([process], [], [], 20)[0])
    finally:
        os.close(process)


_STUCK = """
import ctypes, os, subprocess, sys

def test_that_never_returns_to_python():
    left = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"])
    with open(os.environ["LEFT"], "w") as file:
        file.write(str(left.pid))
    mutex = ctypes.create_string_buffer(64)
    while True:  # the second lock waits for the first, whatever signals arrive
        ctypes.CDLL(None).pthread_mutex_lock(mutex)
"""


def test_a_test_stuck_in_a_c_call_ends_the_suite_with_its_name(tmp_path: Path) -> None:
    copy_suite(tmp_path)
    (tmp_path / "test_some.py").write_text(_STUCK, encoding="utf-8")
    left = tmp_path / "left"
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", str(tmp_path)],
        cwd=tmp_path,
        env={
            **os.environ,
            "PYTHONPATH": str(_ROOT),
            "PYTEST_DEBUG_TEMPROOT": str(tmp_path),
            "GPULSE_TEST_LIMIT": "2",
            "LEFT": str(left),
        },
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert done.returncode != 0
    assert "test_some.py::test_that_never_returns_to_python is stuck and cannot be interrupted" in done.stderr
    assert "in test_that_never_returns_to_python" in done.stderr  # where it is stuck
    assert ends(int(left.read_text()))


def test_a_process_whose_name_is_not_text_disturbs_no_search_of_processes() -> None:
    code = r"open('/proc/self/comm', 'wb').write(b'\xff(\n) x'); print('ready', flush=True); input()"
    with subprocess.Popen([sys.executable, "-c", code], stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        process.stdout.readline()
        assert trainings.agents() >= 0  # neither fails
        assert programs.agents(os.getpid()) == []
        process.kill()


_NEEDY = """
import subprocess
import pytest
from tests.fake_nvml import library

@pytest.fixture
def server():
    return subprocess.Popen(["prometheus-alertmanager"])

def test_a_fixture_that_starts_a_program(server): ...
def test_that_starts_a_program(): subprocess.run(["promtool"])
def test_that_compiles(monkeypatch, tmp_path):
    monkeypatch.setattr("tests.fake_nvml.build.BUILDS", tmp_path)
    library()
def test_that_starts_a_program_of_its_own(): subprocess.run(["no-such-program"])
"""


def test_tests_that_need_a_program_are_skipped_without_it_and_others_are_not(tmp_path: Path) -> None:
    copy_suite(tmp_path)
    (tmp_path / "test_some.py").write_text(_NEEDY, encoding="utf-8")
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-rA", str(tmp_path)],
        cwd=tmp_path,
        env={
            **os.environ,
            "PYTHONPATH": str(_ROOT),
            "PYTEST_DEBUG_TEMPROOT": str(tmp_path),
            "PATH": str(tmp_path),
            "CC": "",
        },
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    for name in ("amtool", "promtool", "cc"):
        assert f"{name} is not installed" in done.stdout, done.stdout
    assert "1 failed, 3 skipped" in done.stdout
    assert "FAILED test_some.py::test_that_starts_a_program_of_its_own" in done.stdout


def test_without_root_the_check_says_what_is_missing_and_how_to_install_it(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def no_command(*words: object, **options: object) -> None:
        raise AssertionError(words)

    monkeypatch.setattr(subprocess, "run", no_command)
    monkeypatch.setattr(os, "geteuid", lambda: 1000)
    monkeypatch.setattr(needed, "present", lambda program: program != "chromium")
    assert needed.main([]) == 0
    said = capsys.readouterr().out
    assert "into .venv" in said
    assert "chromium is not installed, which shows the pages: tests that need it are skipped" in said
    assert said.endswith("To install it: sudo apt-get install chromium\n")


def test_as_root_the_check_installs_what_is_missing(monkeypatch: pytest.MonkeyPatch) -> None:
    ran: list[str] = []
    monkeypatch.setattr(subprocess, "run", lambda words, **options: ran.append(" ".join(words)))
    monkeypatch.setattr(os, "geteuid", lambda: 0)
    monkeypatch.setattr(needed, "present", lambda program: program not in ("cc", "slurmctld"))
    assert needed.main([]) == 0
    assert ran[0] == "apt-get update -qq"
    assert [line.partition("recommends ")[2] for line in ran[1:]] == ["gcc libc6-dev", "slurm-wlm munge"]
