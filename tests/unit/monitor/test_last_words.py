"""How an agent finds out how its program ended, and what it says of it."""

from __future__ import annotations

import json
import os
import signal
from pathlib import Path

import pytest

from gpulse.model.stacks import CodeLine
from gpulse.monitor.last_words import LastWords, OomKills, _wait_status
from gpulse.monitor.ledger import Ledger
from gpulse.monitor.link import _TURN
from gpulse.monitor.messages import Request
from gpulse.monitor.presence import _OFTEN, Teller
from gpulse.present.program import OOM, death_text
from gpulse.sinks.base import PhaseProgress
from tests.unit.monitor.agent_samples import START, SetClock, named, sample

PID = 4242


class Kernel:
    """The files of a kernel that counts OOM kills."""

    def __init__(self, root: Path, cgroup: str = "/job_7") -> None:
        self.root = root
        (root / "proc" / str(PID)).mkdir(parents=True)
        (root / "proc" / str(PID) / "cgroup").write_text(f"9:name=systemd:/\n0::{cgroup}\n")
        self._events = root / f"sys/fs/cgroup{cgroup}/memory.events"
        self._events.parent.mkdir(parents=True)
        self.count(0, 3)

    def count(self, cgroup: int, machine: int) -> None:
        self._events.write_text(f"low 0\noom 9\noom_kill {cgroup}\noom_group_kill 0\n")
        (self.root / "proc/vmstat").write_text(f"nr_free_pages 1\noom_kill {machine}\n")


def test_an_oom_kill_in_the_cgroup_is_told_from_one_on_the_machine(tmp_path: Path) -> None:
    kernel = Kernel(tmp_path)
    kills = OomKills(PID, str(tmp_path))
    assert kills.kind() == ""
    kernel.count(0, 4)
    assert kills.kind() == "machine"
    kernel.count(1, 4)
    assert kills.kind() == "cgroup"


def test_an_oom_kill_of_somebody_else_an_hour_ago_does_not_count(tmp_path: Path) -> None:
    kernel = Kernel(tmp_path)
    kills = OomKills(PID, str(tmp_path))
    kernel.count(0, 4)
    kills.look()
    kills.look()
    assert kills.kind() == ""


def test_a_kernel_without_such_files_says_nothing(tmp_path: Path) -> None:
    kills = OomKills(PID, str(tmp_path))
    kills.look()
    assert kills.kind() == ""


@pytest.mark.parametrize(
    ("status", "oom", "terminated", "text"),
    [
        (15, "", True, "ended by SIGTERM"),
        (9, "", False, "ended by SIGKILL"),
        (9, "", True, "ended by SIGKILL, after SIGTERM was sent to the whole job"),
        (9, "cgroup", True, f"ended by SIGKILL; {OOM['cgroup']}"),
        (11, "machine", False, "ended by SIGSEGV"),
        (3 << 8, "machine", True, "exit 3 without stopping the monitor, as os._exit does"),
        (None, "machine", False, OOM["machine"]),
        (None, "", False, "killed or crashed; the kernel does not tell how"),
        (None, "", True, "killed or crashed; the kernel does not tell how, after SIGTERM was sent to the whole job"),
    ],
)
def test_how_a_program_ended(status: int | None, oom: str, terminated: bool, text: str) -> None:
    assert death_text(status, oom, terminated) == text


@pytest.mark.skipif(not hasattr(os, "pidfd_open"), reason="needs Linux")
def test_a_process_that_nobody_has_waited_for_tells_its_status() -> None:
    pid = os.posix_spawn("/bin/sleep", ["sleep", "600"], os.environ, setsigdef=[signal.SIGTERM])
    handle = os.pidfd_open(pid)
    try:
        os.kill(pid, signal.SIGTERM)
        assert _wait_status(pid, handle) == signal.SIGTERM
        os.close(handle)
        handle = os.open("/dev/null", os.O_RDONLY)  # always readable, and no pidfd: as on an older kernel
        assert _wait_status(pid, handle) == signal.SIGTERM
    finally:
        os.waitpid(pid, 0)
        assert _wait_status(pid, handle) == "unknown"
        os.close(handle)


def test_a_replayed_run_has_the_figures_of_the_program() -> None:
    ledger = Ledger(lambda: None)
    ledger.started = START
    ledger.watched = True
    ledger.add(sample(1.0, utilization=10.0))
    run, train, evaluation = PhaseProgress(2.0, 0, 6, 12.0, 0.5), PhaseProgress(1.5, 2, 6), PhaseProgress(0.5, 1)
    ledger.replay(START + 3.0, {"": run, "train": train, "eval": evaluation})
    ledger.add(sample(3.0, utilization=90.0))
    summary = ledger.summary()
    phase = summary.phase("train")
    assert phase is not None
    assert (summary.steps, summary.items, summary.waited) == (6, 12.0, 0.5)
    assert (phase.calls, phase.seconds, phase.steps, phase.gpus[0].stats["utilization"].mean) == (2, 1.5, 6, 90.0)


@pytest.mark.parametrize("waited", [58.0, 0.1])
def test_the_report_of_a_killed_program_has_the_lines_of_code_that_it_told_last(tmp_path: Path, waited: float) -> None:
    pid = os.fork()
    if not pid:
        os._exit(0)
    os.waitpid(pid, 0)
    line = CodeLine("/home/ada/train.py", 84, "compute_f1", waited, 240.0)
    with (tmp_path / "stderr").open("wb") as stderr:
        words = LastWords(Request(pid=pid, report=True, started=START), stderr.fileno())
        words.status(json.loads(json.dumps({"phase": "train", "step": 7, "code": [line._asdict()]})))
        words.sample(sample(1.0, utilization=10.0))
        try:
            words.speak(-1)
        finally:
            signal.alarm(0)
    first, *rest = (tmp_path / "stderr").read_text().splitlines()
    assert first.endswith("in phase train, at about step 7.")
    told = [text for text in rest if "train.py:84" in text]
    assert [text.partition(":84 ")[0] for text in told] == ["    58 s in train.py"] * (waited > 1)
    assert ("up to 15 s before the end:" in "".join(rest)) is bool(told)


def test_the_figures_of_a_killed_program_are_at_most_a_second_old(tmp_path: Path) -> None:
    pid = os.fork()
    if not pid:
        os._exit(0)
    os.waitpid(pid, 0)
    clock = SetClock()
    program = Ledger(clock=clock)
    program.watched = True
    teller, killed = Teller(program, "r1"), 9.4
    turns = sorted({*(_TURN * at for at in range(1, round(killed / _TURN) + 1)), *map(float, range(1, 10))})
    with (tmp_path / "stderr").open("wb") as stderr:
        words = LastWords(Request(pid=pid, report=True, started=START), stderr.fileno())
        phase, window = program.enter("warm")
        for at in turns:
            clock.time = START + at
            if at == 1.0:
                program.leave(phase, window)
                program.enter("train")
            program.step(1, 0)
            if at.is_integer():  # the agent has the sample before the program
                words.sample(sample(at, utilization=90.0))
            if (told := teller.due()) is not None:
                words.status(told)
                for part in teller.progress():
                    words.progress(json.loads(json.dumps(part)))
            if at.is_integer():
                program.add(sample(at, utilization=90.0))
        words.sample(sample(killed, utilization=90.0))
        assert words._ledger is not None
        words._ledger.add(sample(killed, utilization=90.0))
        summary = words._ledger.summary()
    warm, train = named(summary, "warm"), named(summary, "train")
    assert warm.seconds == pytest.approx(1.0)
    assert killed - 1.0 - 1.0 <= train.seconds <= killed - 1.0
    assert train.steps == pytest.approx(train.seconds / _TURN, abs=1), "steps and seconds are of the same time"
    assert _OFTEN + _TURN <= 1.0


def test_nothing_is_said_while_the_program_lives(tmp_path: Path) -> None:
    path = tmp_path / "gpu.csv"
    words = LastWords(Request(pid=os.getpid(), files=[f"csv:{path}"], started=START), -1)
    words.sample(sample(1.0, utilization=10.0))
    try:
        words.speak(-1)
    finally:
        signal.alarm(0)
    assert not path.exists()
