"""The suite itself: started with signals ignored, tests that hang or leave something, what is private, and the order."""

from __future__ import annotations

import os
import re
import select
import socket
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import pytest

from tests.e2e import programs, trainings
from tests.ports import free_port, is_free
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


def run_suite(
    folder: Path, tests: str, *options: str, before: Sequence[str] = (), **environ: str
) -> subprocess.CompletedProcess[str]:
    """Run tests with what holds for every test."""
    for name in ("conftest.py", "watchdog.py"):
        (folder / name).write_text((_ROOT / "tests" / name).read_text(encoding="utf-8"), encoding="utf-8")
    (folder / "test_some.py").write_text(tests, encoding="utf-8")
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", *options, str(folder)]
    own = {"PYTHONPATH": str(_ROOT), "PYTEST_DEBUG_TEMPROOT": str(folder)}
    return subprocess.run(
        [*before, *command],
        cwd=folder,
        env=os.environ | own | environ,
        capture_output=True,
        text=True,
        timeout=250,
        check=False,
    )


def test_the_suite_sets_signals_limits_tests_and_ends_processes(tmp_path: Path) -> None:
    left = tmp_path / "left"
    ignoring = (
        "import os, signal, sys; signal.signal(signal.SIGINT, signal.SIG_IGN); os.execv(sys.argv[1], sys.argv[1:])"
    )
    before = (sys.executable, "-c", ignoring)
    done = run_suite(tmp_path, _TESTS, "-rA", before=before, GPULSE_TEST_LIMIT="8", LEFT=str(left))
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
    left = tmp_path / "left"
    done = run_suite(tmp_path, _STUCK, GPULSE_TEST_LIMIT="2", LEFT=str(left))
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
    done = run_suite(tmp_path, _NEEDY, "-rA", PATH=str(tmp_path), CC="")
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


_KEEPS = """
import os
def test_that_keeps_something():
    os.makedirs(os.path.expanduser("~/.local/state/gpulse"))
"""


def test_a_test_that_leaves_something_in_its_home_is_named(tmp_path: Path) -> None:
    done = run_suite(tmp_path, _KEEPS)
    assert "files left behind:\nE         home/.local/state/gpulse" in done.stdout, done.stdout
    assert not list(tmp_path.glob("gpulse-tests-*"))  # and nothing is left of that home


_PRIVATE = """
import os, subprocess, sys
def test_of_the_surroundings():
    kept = os.environ["PYTEST_DEBUG_TEMPROOT"]
    for name in ("HOME", "TMPDIR", "XDG_RUNTIME_DIR", "GPULSE_CLAIMS"):
        assert os.environ[name].startswith(kept + "/gpulse-tests-"), name
    assert not {"GPULSE_SOURCE", "XDG_STATE_HOME", "SLURM_JOB_ID"} & set(os.environ)
    code = "import gpulse, tests.ports, tools.programs; print(gpulse.__file__)"
    child = subprocess.run([sys.executable, "-S", "-c", code], cwd="/", capture_output=True, text=True)
    assert child.stdout.startswith(os.environ["SOURCES"]), child.stderr
"""


def test_a_test_and_its_children_have_nothing_of_the_user_and_find_this_tree(tmp_path: Path) -> None:
    theirs = {"GPULSE_SOURCE": "demo", "XDG_STATE_HOME": "/nonexistent", "SLURM_JOB_ID": "1"}
    done = run_suite(tmp_path, _PRIVATE, SOURCES=str(_ROOT / "src"), **theirs)
    assert done.returncode == 0, done.stdout


def test_files_in_random_order_print_the_seed_that_repeats_them(tmp_path: Path) -> None:
    for number in range(6):
        (tmp_path / f"test_{number}.py").write_text("def test_it(): ...", encoding="utf-8")

    def ran(words: str, seed: str) -> tuple[str, list[str]]:
        out = run_suite(tmp_path, "def test_it(): ...", *words.split(), "-vv", GPULSE_ORDER=seed).stdout
        printed = re.search(r"GPULSE_ORDER=(\d+)", out)
        assert printed, out
        return printed[1], re.findall(r"(test_\w+\.py)::test_it PASSED", out)

    seed, first = ran("", "random")
    assert ran("", seed) == (seed, first)
    assert len({tuple(ran("", str(seed))[1]) for seed in range(3)}) > 1
    assert ran("-n 2 --dist loadfile --no-loadscope-reorder", "random")[0].isdecimal()  # all processes have one order


def test_a_port_is_held_for_the_server_that_comes_later() -> None:
    port = free_port()
    assert port != free_port()
    with pytest.raises(ConnectionRefusedError):
        socket.create_connection(("127.0.0.1", port))
    with socket.socket() as other, pytest.raises(OSError, match="in use"):
        other.bind(("127.0.0.1", port))
    for _ in range(2):  # a server may also come back
        with socket.create_server(("127.0.0.1", port)):
            assert not is_free(port)
        assert is_free(port)
