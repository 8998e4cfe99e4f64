"""A command as our child; what takes terminals and shells is in tests/e2e/test_run.py."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from gpulse.supervision.child import BlockedSignals, Child, NotStarted, started_with

SOURCES = str(Path(__file__).parents[3] / "src")


@pytest.fixture
def held() -> Iterator[BlockedSignals]:
    """Signals held for one test."""
    held = BlockedSignals()
    yield held
    signal.pthread_sigmask(signal.SIG_SETMASK, held.before)


@pytest.fixture(params=[False, True], ids=["", "readable"])
def readable(request: pytest.FixtureRequest) -> bool:
    """Whether the command allows us to read it, for which it is started in another way."""
    return bool(request.param)


def test_the_status_and_the_time_are_the_commands(held: BlockedSignals, readable: bool) -> None:
    child = Child(["sh", "-c", "kill -STOP $$; exit 7"], {"PATH": os.environ["PATH"]}, held, readable)
    os.waitid(os.P_PID, child.pid, os.WSTOPPED | os.WNOWAIT)  # stopped by hand: no reason for us to stop as well
    os.kill(child.pid, signal.SIGCONT)
    assert child.wait() == 7 << 8
    assert child.seconds > 0


# in a program of their own: a signal to this one would be taken by any thread that an earlier test has left
LET_IN = """
import os, signal
from gpulse.supervision.child import BlockedSignals
held = BlockedSignals()
came = []
signal.signal(signal.SIGUSR1, lambda number, _: came.append(number))
os.kill(os.getpid(), signal.SIGUSR1)
assert not came
held.sleep(0.0)
assert came == [signal.SIGUSR1]
assert signal.pthread_sigmask(signal.SIG_BLOCK, ()) >= {signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGUSR1, signal.SIGCHLD}
"""
HANDED_ON = """
import os, signal
from gpulse.supervision.child import Child, BlockedSignals
held = BlockedSignals()
os.kill(os.getpid(), signal.SIGUSR1)
child = Child(["sleep", "60"], os.environ, held)
assert os.WTERMSIG(child.wait()) == signal.SIGUSR1
"""


@pytest.mark.parametrize("code", [LET_IN, HANDED_ON], ids=["let in while we sleep", "handed on to the command"])
def test_signals_wait_for_the_command(code: str) -> None:
    subprocess.run([sys.executable, "-c", code], env=os.environ | {"PYTHONPATH": SOURCES}, check=True, timeout=30)


@pytest.mark.parametrize(("program", "code"), [("", 127), ("/no/such", 127), ("/", 126), ("/etc/passwd", 126)])
def test_a_command_that_cannot_be_started(held: BlockedSignals, program: str, code: int, readable: bool) -> None:
    with pytest.raises(NotStarted) as caught:
        Child([program, "x"], {}, held, readable)
    assert caught.value.exit_code == code
    assert caught.value.message.startswith(f"'{program}' cannot be started: ")


SURROUNDINGS = """
import os, signal
print(sorted(os.listdir("/proc/self/fd"))[:4], os.environ.get("GPULSE_TEST"), os.getcwd())
print(signal.pthread_sigmask(signal.SIG_BLOCK, ()), signal.getsignal(signal.SIGPIPE), os.getpgid(0) == os.getpgid(os.getppid()))
"""


def test_a_readable_command_sees_no_difference(held: BlockedSignals, tmp_path: Path) -> None:
    seen = set()
    for readable in (False, True):
        output = tmp_path / "output"
        script = f"exec {sys.executable} -S -c '{SURROUNDINGS}' > {output}"
        child = Child(["sh", "-c", script], {**os.environ, "GPULSE_TEST": "x"}, held, readable)
        assert child.wait() == 0
        seen.add(output.read_text())
    assert len(seen) == 1
    assert "x" in seen.pop()


@pytest.mark.parametrize("readable", [False, True])
def test_a_script_without_an_interpreter_runs_in_a_shell(held: BlockedSignals, tmp_path: Path, readable: bool) -> None:
    script = tmp_path / "script"
    script.write_text("exit $1\n")
    script.chmod(0o755)
    assert Child([str(script), "5"], {**os.environ}, held, readable).wait() == 5 << 8


def test_the_environment_is_what_it_was(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GPULSE_TEST", "\udcff")
    assert started_with()["GPULSE_TEST"] == "\udcff"
    monkeypatch.delenv("LC_CTYPE", raising=False)
    assert "LC_CTYPE" not in started_with()


# a library that is taken down at an exit while a thread of ours is in it takes us with it, now and then
ENDING = """
import atexit, sys
from gpulse.supervision.child import end_like
atexit.register(print, "taken down")
end_like(int(sys.argv[1]))
"""


@pytest.mark.parametrize(("status", "code"), [(0, 0), (7 << 8, 7), (signal.SIGTERM, -15), (signal.SIGKILL, -9)])
def test_we_end_at_once(status: int, code: int) -> None:
    words = [sys.executable, "-c", ENDING, str(int(status))]
    done = subprocess.run(words, env={**os.environ, "PYTHONPATH": SOURCES}, capture_output=True, check=False)
    assert (done.returncode, done.stdout, done.stderr) == (code, b"", b"")


def test_the_cpu_time_of_the_command_and_its_descendants_is_known_at_the_end(held: BlockedSignals) -> None:
    busy = "import time\nwhile time.process_time() < 0.3: pass"
    command = [sys.executable, "-c", f"import subprocess, sys; subprocess.run([sys.executable, '-c', {busy!r}])"]
    child = Child(command, {**os.environ}, held)
    assert child.wait() == 0
    assert child.cpu >= 0.3
