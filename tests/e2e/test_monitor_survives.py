"""What a monitor shows while its program runs, and leaves behind when the program is killed."""

from __future__ import annotations

import os
import signal
from pathlib import Path

import pytest

from gpulse.monitor.presence import presence_of, presences
from tests.e2e.programs import DEMO, Program, agent, outlived, until

pytestmark = pytest.mark.skipif(not hasattr(os, "pidfd_open"), reason="needs Linux")

TRAINING = """
m = gpulse.Monitor(interval=0.1, run="a-run", initial_step=40).start()
with m.phase("train"):
    for _ in range(3):
        m.step()
        m.waited(0.1)
    print("ready", flush=True)
    sys.stdin.readline()
"""


@pytest.mark.parametrize("mode", ["process", "thread"])
def test_another_program_sees_how_a_run_goes_until_it_ends(tmp_path: Path, mode: str) -> None:
    environ = DEMO | {"XDG_RUNTIME_DIR": str(tmp_path)}
    with Program(TRAINING.replace("interval=0.1", f"interval=0.1, mode={mode!r}"), tmp_path, environ) as program:
        program.line()
        until(lambda: presence_of(program.pid, environ))
        found = presences(environ)[program.pid]
        assert (found.run, found.phase, found.step) == ("a-run", "train", 43)
        program.go()
        assert program.end().code == 0
    assert os.listdir(tmp_path / "gpulse") == []


def test_the_agent_removes_the_file_of_a_killed_program(tmp_path: Path) -> None:
    environ = DEMO | {"XDG_RUNTIME_DIR": str(tmp_path)}
    with Program(TRAINING, tmp_path, environ) as program:
        program.line()
        until(lambda: presence_of(program.pid, environ))
        with outlived(agent(program.pid)) as wait:
            program.signal(signal.SIGKILL)
            wait()
    assert os.listdir(tmp_path / "gpulse") == []
