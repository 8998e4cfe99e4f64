"""What holds for every test: private surroundings, the usual signals, a limit in time, and nothing left behind.

A hung driver is what gpulse is about, so a hung test must fail with its name instead of stopping the suite.
"""

from __future__ import annotations

import ctypes
import faulthandler
import gc
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from types import FrameType

import pytest
from hypothesis import settings
from hypothesis.internal.conjecture import providers

from tests import order
from tests.fake_nvml.build import BuildError
from tests.surroundings import Surroundings
from tests.watchdog import descendants
from tools.programs import ABSENT_WITH, PROGRAMS, present

# No test fails because the machine is busy: speed is measured in bench/, side by side with peers.
# The same 50 examples in every run: a change is judged by what it changed. `make fuzz` looks for new ones, 100 at a time.
settings.register_profile("gpulse", deadline=None, derandomize=True, max_examples=50)
settings.register_profile("fuzz", deadline=None, print_blob=True)
settings.load_profile("fuzz" if os.environ.get("GPULSE_FUZZ") else "gpulse")
if not os.environ.get("GPULSE_FUZZ") and hasattr(providers, "_local_constants"):
    # Hypothesis also draws the constants of all modules loaded so far, which depend on the tests that ran before.
    setattr(providers, "_get_local_constants", lambda: providers._local_constants)  # noqa: B010

LIMIT = float(os.environ.get("GPULSE_TEST_LIMIT", "300"))  # seconds per test, with the fixtures it is the first to use
_GRACE = min(30.0, LIMIT)  # more seconds to end, with its fixtures
_WATCHDOG = pytest.StashKey["subprocess.Popen[bytes]"]()
_SURROUNDINGS = pytest.StashKey[Surroundings]()
_TO_END = min(20.0, LIMIT / 4)  # seconds for what the last test has told to end
_OURS = ("wandb", "multiprocessing.resource_tracker")  # services that end with the process that uses them
_HANDLED = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
_SUBREAPER = 36  # PR_SET_CHILD_SUBREAPER: orphans of our children become ours


@pytest.hookimpl(trylast=True)  # pytest's own output has the user's settings
def pytest_configure(config: pytest.Config) -> None:
    """Undo what the suite was started with: under `nohup` and in background jobs signals are ignored, and children inherit that."""
    ctypes.CDLL(None).prctl(_SUBREAPER, 1, 0, 0, 0)
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)
    for number in (signal.SIGHUP, signal.SIGQUIT, signal.SIGTERM):
        if signal.getsignal(number) is signal.SIG_IGN:
            signal.signal(number, lambda *_: None)  # still ignored here; a program started from here has the default
    config.stash[_SURROUNDINGS] = Surroundings()
    # once imported, it would log the MLflow runs of later tests, into this folder
    os.environ["COMET_DISABLE_AUTO_LOGGING"] = "1"
    # Thousands of children import gpulse; without its compiled files each would compile it, for 0.1 s of CPU time.
    sys.dont_write_bytecode = False
    os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
    config.stash[_WATCHDOG] = _watchdog(config)


def pytest_sessionstart(session: pytest.Session) -> None:
    """Print the seed of a random order at once: a run that is ended early can be repeated, too."""
    reporter = session.config.pluginmanager.getplugin("terminalreporter")
    if order.seed() and reporter is not None:
        reporter.write_line(f"files in random order; to repeat it: GPULSE_ORDER={order.seed()}")


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Arrange the files."""
    order.arrange(items)


@pytest.hookimpl(wrapper=True)
def pytest_collection(session: pytest.Session) -> Iterator[None]:
    """Spare the garbage collector half a million objects that live until the end: each look at them takes 0.3 s."""
    gc.disable()
    try:
        return (yield)
    finally:
        gc.enable()
        gc.freeze()


def _watchdog(config: pytest.Config) -> subprocess.Popen[bytes]:
    """Start the process that ends a run stuck in a C call, where no handler of Python runs; it writes to the real stderr."""
    capture = config.pluginmanager.getplugin("capturemanager")
    command = [sys.executable, str(Path(__file__).with_name("watchdog.py")), str(os.getpid())]
    with capture.global_and_fixture_disabled():
        return subprocess.Popen(command, stdin=subprocess.PIPE, bufsize=0, start_new_session=True)


def _tell(item: pytest.Item, seconds: float) -> None:
    pipe = item.config.stash[_WATCHDOG].stdin
    assert pipe is not None
    try:
        pipe.write(f"{seconds:g} {item.nodeid}\n".encode())
    except BrokenPipeError:
        pass  # it has been ended: tests still have the other limit


@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol(item: pytest.Item) -> Iterator[None]:
    """Fail a test that takes longer than its limit; one that goes on after that ends the suite.

    A timer and no thread: tests fork, and Python 3.12 warns of a fork beside threads.
    """
    times = 0
    handlers = {number: signal.getsignal(number) for number in _HANDLED}

    def too_long(number: int, frame: FrameType | None) -> None:
        nonlocal times
        times += 1
        signal.setitimer(signal.ITIMER_REAL, _GRACE)
        if times > 1:
            _give_up(f"{item.nodeid} took longer than {LIMIT + _GRACE:g} s and goes on")
        pytest.fail(f"{item.nodeid} took longer than {LIMIT:g} s")

    before = signal.signal(signal.SIGALRM, too_long)
    signal.setitimer(signal.ITIMER_REAL, LIMIT)
    _tell(item, LIMIT + 2 * _GRACE)
    try:
        return (yield)
    finally:
        _tell(item, 0)
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
        for number, handler in handlers.items():  # verbs called in this process leave theirs, for the end of a program
            signal.signal(number, handler)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_setup(item: pytest.Item) -> Iterator[None]:
    """Skip a test whose fixtures need a program that is not installed."""
    return (yield from _skip_without_programs())


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call(item: pytest.Item) -> Iterator[None]:
    """Skip a test that starts a program that is not installed."""
    return (yield from _skip_without_programs())


def _skip_without_programs() -> Iterator[None]:
    try:
        return (yield)
    except (FileNotFoundError, BuildError) as error:
        named = Path(str(error.filename)).name if isinstance(error, FileNotFoundError) else "cc"
        program = ABSENT_WITH.get(named, named)
        if program not in PROGRAMS or present(program):
            raise
        pytest.skip(f"{program} is not installed")


@pytest.fixture(scope="session", autouse=True)
def _nothing_left(request: pytest.FixtureRequest) -> Iterator[None]:
    """Fail a run that leaves processes behind, and name them. Set up before all other fixtures, it looks after all of them."""
    yield
    watchdog = request.config.stash[_WATCHDOG].pid
    until = time.monotonic() + _TO_END
    while (left := _left(watchdog)) and time.monotonic() < until:
        time.sleep(0.05)
    assert not left, "processes left behind:\n" + "\n".join(left)


@pytest.fixture(scope="module", autouse=True)
def _no_files_left(request: pytest.FixtureRequest, _nothing_left: None) -> Iterator[None]:
    """Fail a file of tests that leaves files of gpulse in the home or among the claims, and name them."""
    yield
    files = request.config.stash[_SURROUNDINGS].take_left()
    assert not files, "files left behind:\n" + "\n".join(files)


def _left(watchdog: int) -> list[str]:
    """Return the command lines of the processes that were started here and have not ended."""
    found = []
    for pid in descendants(os.getpid()):
        try:
            command = Path(f"/proc/{pid}/cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace").strip()
            state = Path(f"/proc/{pid}/stat").read_bytes().rpartition(b")")[2].split()[0]
        except OSError:
            continue
        # a process that has just been started has no command line yet
        if state != b"Z" and pid != watchdog and not any(name in command for name in _OURS):
            found.append(f"{pid} {command}")
    return found


def _give_up(text: str) -> None:
    """Write a text and all tracebacks, end what was started, and exit."""
    os.write(2, f"\n{text}\n".encode())
    faulthandler.dump_traceback(2)
    _end_children()
    os._exit(3)


def pytest_sessionfinish(session: pytest.Session) -> None:
    """End the processes that failed tests have left."""
    _end_children()


def pytest_unconfigure(config: pytest.Config) -> None:
    """Collect the watchdog, and remove what is private."""
    if (surroundings := config.stash.get(_SURROUNDINGS, None)) is not None:
        surroundings.remove()
    if (watchdog := config.stash.get(_WATCHDOG, None)) is not None:
        watchdog.kill()
        watchdog.communicate()


def _end_children() -> None:
    for pid in descendants(os.getpid()):
        try:
            # the W&B service ends with us, and complains otherwise
            if not Path(f"/proc/{pid}/comm").read_bytes().startswith(b"wandb"):
                os.kill(pid, signal.SIGKILL)
        except (ProcessLookupError, FileNotFoundError):
            pass
