"""A monitor when its program, its agent or both come to an end."""

from __future__ import annotations

import os
import signal
from contextlib import ExitStack
from pathlib import Path

import pytest

from tests.e2e.programs import (
    DEMO,
    READY,
    Ended,
    Program,
    agent,
    agents,
    machine,
    on,
    outlived,
    run,
    until,
)

pytestmark = pytest.mark.skipif(not hasattr(os, "pidfd_open"), reason="needs Linux")

# --- the end of the program

ENDS = {
    "falls off the end": "pass",
    "sys.exit": "sys.exit(7)",
    "exception": "raise ValueError('boom')",
    "os._exit": "os._exit(3)",
    "abort": "import resource; resource.setrlimit(resource.RLIMIT_CORE, (0, 0)); os.abort()",
    "exception in a thread": "t = threading.Thread(target=lambda: 1 / 0); t.start(); t.join(); sys.exit('bye')",
    "exit from atexit": "atexit.register(lambda: os._exit(5))",
    "handler of its own": "signal.signal(15, lambda *_: sys.exit(42)); os.kill(os.getpid(), 15); signal.pause()",
    "Ctrl-C inside a with": "import contextlib\nwith m or contextlib.nullcontext():\n    os.kill(os.getpid(), 2); signal.pause()",
    "exec": "os.execv(sys.executable, [sys.executable, '-c', 'print(1 + 1)'])",
}
ENDING = """
signal.signal(signal.SIGINT, signal.default_int_handler)
m = None
if os.environ.get("WATCHED"):
    m = gpulse.Monitor(interval=0.1).start()
    until(lambda: m.latest)
print("ready", flush=True)
sys.stdin.readline()
print("output not yet flushed")
"""


def both_ways(
    code: str, folder: Path, number: signal.Signals | None = None, group: bool = False
) -> tuple[Ended, Ended]:
    """Run a program without and with a monitor; with one, its agent must end soon after."""
    endings = []
    for watched in ("", "1"):
        with Program(ENDING + code, folder, DEMO | {"WATCHED": watched}) as program:
            program.line()
            found = agents(program.pid)
            assert len(found) == len(watched)
            with ExitStack() as stack:
                waits = [stack.enter_context(outlived(pid)) for pid in found]
                if number is None:
                    program.go()
                else:
                    program.signal(number, group)
                endings.append(program.end())
                for wait in waits:
                    wait()
    return endings[0], endings[1]


@pytest.mark.parametrize("how", ENDS)
def test_a_program_ends_as_it_would_without(tmp_path: Path, how: str) -> None:
    without, watched = both_ways(ENDS[how], tmp_path)
    assert watched == without


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGQUIT])
def test_a_signal_does_what_it_would_without(tmp_path: Path, number: signal.Signals) -> None:
    without, watched = both_ways("", tmp_path, number, group=number != signal.SIGKILL)
    assert (watched.code, watched.out) == (without.code, without.out) == (-number, "ready\n")
    # where exactly Ctrl-C meets the program is chance
    assert watched.err.splitlines()[-1:] == without.err.splitlines()[-1:]


def test_an_error_inside_the_with_leaves_it_unchanged(tmp_path: Path) -> None:
    code = """
import contextlib
with gpulse.Monitor(interval=0.1) if os.environ.get("W") else contextlib.nullcontext():
    raise KeyError("boom")
"""
    without, watched = (run(code, tmp_path, DEMO | {"W": watched}) for watched in ("", "1"))
    assert watched == without
    assert watched.code == 1


def test_a_process_that_holds_the_pipe_does_not_hold_the_agent(tmp_path: Path) -> None:
    code = f"""{READY}
import ctypes
child = ctypes.PyDLL(None).fork()  # as C code forks: nobody tells Python, and all pipes stay open
if child == 0:
    while True: signal.pause()
print(child, flush=True)
sys.stdin.readline()
"""
    with Program(code, tmp_path, DEMO) as program:
        program.line()
        child = int(program.line())
        try:
            with outlived(agent(program.pid)) as wait:
                program.signal(signal.SIGKILL)
                wait()
            os.kill(child, 0)  # it is still there
        finally:
            os.kill(child, signal.SIGKILL)


def test_the_agent_ends_also_when_samples_take_longer_than_the_pace(tmp_path: Path) -> None:
    slow = machine(1).latency(nvmlDeviceGetPowerUsage="wait 300000")
    code = f"""{READY}
import ctypes
child = ctypes.PyDLL(None).fork()
if child == 0:
    while True: os.read(m._listener.link._agent._from, 1 << 16)  # so that the agent never has to wait for a reader
print(child, flush=True)
sys.stdin.readline()
"""
    environ = on(slow, tmp_path)
    del environ["FAKE_NVML_LATENCY"]
    with Program(code, tmp_path, environ) as program:
        program.line()
        child = int(program.line())
        try:
            with outlived(agent(program.pid)) as wait:
                program.signal(signal.SIGKILL)
                wait()
        finally:
            os.kill(child, signal.SIGKILL)


# --- the end of the agent

SAMPLING = """
import gpulse.monitor.link as link
link._TRIES = {tries}
link._SILENCE = {silence}
values = Values()
m = gpulse.Monitor(values.sink, interval=0.1).start()
values()
print("ready", flush=True)
sys.stdin.readline()
count = values.count
until(lambda: values.count > count + 2)
print("sampled", flush=True)
sys.stdin.readline()
print(m.summary().steps)
"""


def test_an_agent_that_is_killed_is_replaced(tmp_path: Path) -> None:
    with Program(SAMPLING.format(tries=3, silence=10), tmp_path, DEMO) as program:
        program.line()
        for _ in range(2):
            first = agent(program.pid)
            os.kill(first, signal.SIGKILL)
            until(lambda first=first: first not in agents(program.pid) and agents(program.pid))  # type: ignore[misc]
        program.go()
        assert program.line() == "sampled"
        with outlived(agent(program.pid)) as wait:
            program.go()
            ended = program.end()
            wait()
    assert (ended.code, ended.err) == (0, ""), ended


def test_an_agent_that_hangs_is_replaced(tmp_path: Path) -> None:
    with Program(SAMPLING.format(tries=3, silence=1), tmp_path, DEMO) as program:
        program.line()
        first = agent(program.pid)
        with outlived(first) as wait:
            os.kill(first, signal.SIGSTOP)
            wait()
        program.go()
        assert program.line() == "sampled"
        program.go()
        ended = program.end()
    assert (ended.code, ended.err) == (0, ""), ended


def test_an_agent_killed_again_and_again_is_given_up_with_one_sentence(tmp_path: Path) -> None:
    code = """
import gpulse.monitor.link as link
link._TRIES = 1
m = gpulse.Monitor(interval=0.1).start()
until(lambda: m.latest)
print("ready", flush=True)
sys.stdin.readline()
with m.phase("after"), gpulse.measure("after", show=False) as measured:
    m.step()
    time.sleep(0.15)
print(measured.wait(0), m.stop().phase("after").steps, measured.gpus)
"""
    with Program(code, tmp_path, DEMO) as program:
        program.line()
        killed = set[int]()
        while "died repeatedly" not in program.err:
            for pid in set(agents(program.pid)) - killed:
                killed.add(pid)
                os.kill(pid, signal.SIGKILL)
        program.go()
        ended = program.end()
    assert len(killed) == 2
    assert (ended.code, ended.out) == (0, "ready\nTrue 1 ()\n"), ended
    assert ended.err == "gpulse: the sampling process died repeatedly; this program continues without monitoring.\n"


def test_stopping_does_not_wait_for_an_agent_that_hangs_and_leaves_none_behind(tmp_path: Path) -> None:
    code = f"{READY}sys.stdin.readline()\nassert m.stop() is not None\nos._exit(0)"
    with Program(code, tmp_path, DEMO) as program:
        program.line()
        hung = agent(program.pid)
        with outlived(hung) as wait:
            os.kill(hung, signal.SIGSTOP)
            try:
                program.go()
                assert program.end().code == 0
                wait()
            except AssertionError:
                os.kill(hung, signal.SIGKILL)
                raise


def test_a_program_that_waits_for_all_its_children_finds_only_its_own(tmp_path: Path) -> None:
    code = """
values = Values()
with gpulse.Monitor(values.sink, interval=0.1):
    values()
    own = os.posix_spawnp("true", ["true"], os.environ)
    found = []
    try:
        while True:
            found.append(os.wait()[0])
    except ChildProcessError:
        print(found == [own])
"""
    assert run(code, tmp_path, DEMO).out == "True\n"


def test_signals_for_the_program_do_not_end_the_agent(tmp_path: Path) -> None:
    code = f"""{READY}
sys.stdin.readline()
newest = m.latest
until(lambda: m.latest is not newest)
"""
    with Program(code, tmp_path, DEMO) as program:
        program.line()
        first = agent(program.pid)
        assert os.getsid(first) != os.getsid(program.pid)  # not in the group that a terminal sends Ctrl-C to
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT):
            os.kill(first, number)  # as schedulers do to every process of a job
        assert agent(program.pid) == first
        program.go()
        ended = program.end()
    assert (ended.code, ended.err) == (0, ""), ended
