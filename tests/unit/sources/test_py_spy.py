"""The stacks of a process as py-spy tells them, and in words why it cannot."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gpulse.model.stacks import Frame
from gpulse.sources import py_spy
from gpulse.sources.py_spy import StacksUnavailable, is_own, read_stacks, refusal, stacks_of
from tests.unit.sources.programs import ended, in_place_of_py_spy, started

DENIED = "Permission Denied: Try running again with elevated permissions by going 'sudo env \"PATH=$PATH\" !!'"


@pytest.fixture
def program(tmp_path: Path) -> Iterator[subprocess.Popen[str]]:
    process = started(tmp_path)
    yield process
    ended(process)


def test_the_main_thread_outermost_frame_first(program: subprocess.Popen[str], tmp_path: Path) -> None:
    main, *others = read_stacks(program.pid)
    file = str(tmp_path / "program.py")
    assert [frame[:3] for frame in main.frames] == [(file, 9, "<module>"), (file, 8, "run_loop"), (file, 5, "deep")]
    assert (main.role, main.pid, others) == ("main", program.pid, [])


def test_a_process_that_is_not_python() -> None:
    process = subprocess.Popen(["sleep", "60"])
    try:
        with pytest.raises(StacksUnavailable, match=f"process {process.pid} is not a Python program"):
            read_stacks(process.pid)
    finally:
        process.kill()
        process.wait()


def test_a_process_that_has_ended(program: subprocess.Popen[str]) -> None:
    program.kill()
    program.wait()
    with pytest.raises(StacksUnavailable, match="has ended"):
        read_stacks(program.pid)


NO_NAME = "Error: Failed to get process executable name. Check that the process is running.\n\nCaused by:\n    0: {}"


def test_a_zombie_has_ended() -> None:
    with subprocess.Popen([sys.executable, "-c", ""]) as process:
        os.waitid(os.P_PID, process.pid, os.WEXITED | os.WNOWAIT)  # it stays a zombie until its exit code is read
        with pytest.raises(StacksUnavailable, match=f"process {process.pid} has ended"):
            read_stacks(process.pid)


def test_a_process_without_a_readable_executable_is_not_said_to_have_ended() -> None:
    told = refusal(os.getpid(), 1, NO_NAME.format("Permission denied (os error 13)"))
    assert told.message == f"the kernel does not permit this user to read process {os.getpid()}."
    assert not told.lasting  # others of this user may be readable
    kernel_thread = refusal(os.getpid(), 1, NO_NAME.format("No such file or directory (os error 2)"))
    assert kernel_thread.message == f"process {os.getpid()} is not a Python program."


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can become another user")
def test_another_user_is_refused_by_the_kernel(program: subprocess.Popen[str]) -> None:
    code = f"from gpulse.sources.py_spy import read_stacks; read_stacks({program.pid})"
    # of a folder that everybody may read, since the checkout may be in one of root's
    path = [py_spy.program(), "dump", "--json", "--nonblocking", "--pid", str(program.pid)]
    done = subprocess.run(
        ["setpriv", "--reuid", "65534", "--clear-groups", *path], capture_output=True, text=True, check=False
    )
    assert done.returncode != 0, code
    assert "cannot be read" in str(refusal(program.pid, done.returncode, done.stderr))


@pytest.mark.parametrize(
    ("scope", "why", "remedy"),
    [
        ("0", "a container without the capability SYS_PTRACE", "--cap-add SYS_PTRACE"),
        ("1", "kernel.yama.ptrace_scope is 1", "Start the program with `gpulse run`"),
        ("2", "kernel.yama.ptrace_scope is 2", "Use sudo"),
        ("3", "kernel.yama.ptrace_scope is 3", "reboot"),
        ("", "a container without the capability SYS_PTRACE", "--cap-add SYS_PTRACE"),
        ("x", "a container without the capability SYS_PTRACE", "--cap-add SYS_PTRACE"),
    ],
)
def test_what_stands_in_the_way(tmp_path: Path, scope: str, why: str, remedy: str) -> None:
    file = tmp_path / "proc/sys/kernel/yama/ptrace_scope"
    file.parent.mkdir(parents=True)
    if scope:
        file.write_text(f"{scope}\n")
    told = refusal(os.getpid(), 1, DENIED, str(tmp_path))
    assert why in told.message
    assert remedy in told.remedy
    assert told.lasting


def test_without_py_spy_a_sentence_says_what_it_would_add(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(sys, "executable", str(tmp_path / "python"))
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(StacksUnavailable) as told:
        read_stacks(os.getpid())
    assert "lines of code that keep a GPU waiting" in told.value.message
    assert "pip install 'py-spy" in told.value.remedy


@pytest.mark.parametrize(
    ("script", "words"),
    [
        ("exec sleep 60", "did not answer within"),
        ("kill -9 $$", "ended by signal 9"),
        ("echo nonsense", "something else than stacks"),
        ("echo '{}'", "something else than stacks"),
        ("echo 'Error: it is raining' >&2; exit 1", "it is raining"),
        ("exit 5", "exit code 5"),
    ],
)
def test_a_py_spy_that_fails(monkeypatch: pytest.MonkeyPatch, tmp_path: Path, script: str, words: str) -> None:
    in_place_of_py_spy(monkeypatch, tmp_path, script)
    with pytest.raises(StacksUnavailable, match=words):
        read_stacks(os.getpid(), patience=1.0)


def test_py_spy_takes_signals_that_we_block(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    in_place_of_py_spy(monkeypatch, tmp_path, "exec sleep 60")
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        running = py_spy.PySpy(["record"])
        running.stop()
        assert running.finish(30.0)[0] == -signal.SIGINT
        running.stop()  # it has ended, and its number may be somebody else's
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def test_root_owns_its_own_processes_and_those_of_who_called_sudo(monkeypatch: pytest.MonkeyPatch) -> None:
    owners = {1: 0, 2: 1000, 3: 1001}
    monkeypatch.setattr(py_spy, "owner_of", owners.get)
    monkeypatch.setattr(os, "geteuid", lambda: 0)
    assert [is_own(pid, {}) for pid in owners] == [True, False, False]
    assert [is_own(pid, {"SUDO_UID": "1000"}) for pid in owners] == [True, True, False]
    monkeypatch.setattr(os, "geteuid", lambda: 1001)
    assert [is_own(pid, {"SUDO_UID": "1000"}) for pid in owners] == [False, False, True]


def test_names_of_methods_are_those_of_python() -> None:
    thread = {
        "thread_name": None,
        "os_thread_id": 7,
        "frames": [
            {"name": "_BaseDataLoaderIter.__next__", "filename": "/x/dataloader.py", "line": 701},
            {"name": "<module>", "filename": "/x/train.py", "line": 3},
        ],
    }
    (stack,) = stacks_of([thread], 7, 1.0)
    assert stack.frames == (Frame("/x/train.py", 3, "<module>"), Frame("/x/dataloader.py", 701, "__next__"))
    assert stack.role == "main"


def test_the_thread_that_runs_a_module_is_the_main_one_where_nothing_else_tells() -> None:
    frames = {"main": "<module>", "other": "_bootstrap"}
    threads = [{"frames": [{"name": name, "filename": "x", "line": 1}]} for name in frames.values()]
    assert [stack.role for stack in stacks_of(threads, 7, 1.0)] == ["main", "thread"]


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=20),
    lambda inner: (
        st.lists(inner, max_size=4)
        | st.dictionaries(st.sampled_from(["frames", "name", "filename", "line", "thread_name"]), inner, max_size=5)
    ),
    max_leaves=20,
)


@given(st.lists(JSON, max_size=5))
def test_whatever_py_spy_prints_is_read(threads: list[object]) -> None:
    for stack in stacks_of(threads, 1, 0.0):
        for frame in stack.frames:
            assert isinstance(frame.file, str)
            assert isinstance(frame.function, str)
            assert frame.line >= 0


@pytest.mark.parametrize(
    ("user", "scope", "level", "words"),
    [
        (1000, "0", "ok", "can read"),
        (1000, "1", "note", "ptrace_scope is 1"),
        (0, "2", "ok", "can read"),
        (1000, "3", "note", "is 3"),
    ],
)
def test_the_doctor_knows(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, user: int, scope: str, level: str, words: str
) -> None:
    file = tmp_path / "proc/sys/kernel/yama/ptrace_scope"
    file.parent.mkdir(parents=True)
    file.write_text(scope)
    monkeypatch.setattr(os, "geteuid", lambda: user)
    check = py_spy.examine(str(tmp_path))
    assert (check.level, words in check.found) == (level, True)


def test_the_doctor_says_what_is_missing(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(sys, "executable", str(tmp_path / "python"))
    monkeypatch.setenv("PATH", str(tmp_path))
    assert (py_spy.examine().level, "pip install 'py-spy" in py_spy.examine().remedy) == ("note", True)
