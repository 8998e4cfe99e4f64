"""The join of samples and stacks that come at different times; py-spy itself is in tests/unit/sources and tests/e2e."""

from __future__ import annotations

import math
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from gpulse.analysis.own_lines import code_lines
from gpulse.errors import GpulseError
from gpulse.model.catalog import Gpu, Process
from gpulse.model.stacks import Frame, Stack
from gpulse.sources import py_spy
from gpulse.supervision import watch as supervision_watch
from gpulse.supervision.watch import CodeWatch, with_call

TRAIN = Frame("/home/ada/train.py", 12, "train")
METRIC = Frame("/home/ada/train.py", 30, "metric")
LAUNCH = Frame("/venv/lib/python3.11/site-packages/torch/nn/functional.py", 5, "linear")
NEXT = Frame("/venv/lib/python3.11/site-packages/torch/utils/data/dataloader.py", 701, "__next__")
LOOP = Frame("/venv/lib/python3.11/site-packages/torch/utils/data/_utils/worker.py", 334, "_worker_loop")
AUGMENT = Frame("/home/ada/data.py", 7, "augment")
STEP = 0.05


class ScriptedRecorder:
    """Follows nobody; hands on what a test says."""

    def __init__(self, take: object) -> None:
        self.problem = self.worker_problem = ""
        self.followed: dict[int, str] = {}

    def follow(self, pid: int, role: str = "main") -> bool:
        self.followed[pid] = role
        return True

    def stop(self) -> None:
        """Nothing runs."""


@pytest.fixture(autouse=True)
def _scripted(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(supervision_watch, "StackRecorder", ScriptedRecorder)
    monkeypatch.setattr(supervision_watch, "program", lambda: "py-spy")


@pytest.fixture
def pid() -> Iterator[int]:
    """A process with a child."""
    code = "import subprocess; subprocess.run(['sleep', '60'])"
    with subprocess.Popen([sys.executable, "-c", f"print(flush=True); {code}"], stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        process.stdout.readline()
        while not children(process.pid):
            pass
        yield process.pid
        for child in children(process.pid):
            os.kill(child, 9)


def children(pid: int) -> list[int]:
    from gpulse.sources.processes import LinuxMachine

    return LinuxMachine().family(pid)[1:]


def gpu(pid: int, sm_active: float) -> Gpu:
    return Gpu(
        {"index": 0, "uuid": "GPU-0", "sm_active": sm_active, "utilization": 100.0}, processes=(Process({"pid": pid}),)
    )


def moments(start: float, seconds: float, *frames: Frame, pid: int, role: str = "main") -> list[list[Stack]]:
    return [
        [Stack(start + (at + 0.5) * STEP, frames, STEP, role, "MainThread", pid)]  # type: ignore[arg-type]
        for at in range(round(seconds / STEP))
    ]


def recorder(watch: CodeWatch) -> ScriptedRecorder:
    found = watch._recorder
    assert isinstance(found, ScriptedRecorder)
    return found


def test_stacks_that_come_after_the_samples_of_their_time_count(pid: int) -> None:
    watch = CodeWatch(pid)
    for second in range(11):  # the GPU waits in every other second
        watch.add(1000.0 + second, [gpu(pid, 100.0 if second % 2 else 0.0)], {pid})
    seen = []
    for second in range(10):
        frames = (TRAIN, METRIC) if second % 2 else (TRAIN, LAUNCH)
        seen += moments(1000.0 + second, 1.0, *frames, pid=pid)
    watch._take(pid, seen, 1010.0)
    first, *_ = code_lines(watch.stop())
    assert (first.file, first.line, first.function) == METRIC[:3]
    assert first.waited == pytest.approx(4.0, abs=0.5)  # the last wait may be the program's end
    assert first.computed == pytest.approx(0.0, abs=0.1)
    assert watch.problem == ""


def test_workers_are_read_when_the_main_thread_waits_for_them(pid: int) -> None:
    (worker,) = children(pid)
    watch = CodeWatch(pid)
    watch.add(1000.0, [gpu(pid, 50.0)], {pid})
    assert recorder(watch).followed == {pid: "main"}
    watch._take(pid, moments(1000.0, 2.0, TRAIN, LAUNCH, pid=pid), 1002.0)
    assert recorder(watch).followed == {pid: "main"}
    watch._take(pid, moments(1002.0, 2.0, TRAIN, NEXT, pid=pid), 1004.0)
    assert recorder(watch).followed == {pid: "main", worker: "worker"}
    for second in range(4, 9):
        watch.add(1000.0 + second, [gpu(pid, 50.0)], {pid})
    watch._take(pid, moments(1004.0, 4.0, TRAIN, NEXT, pid=pid), 1008.0)
    watch._take(worker, moments(1004.0, 4.0, LOOP, AUGMENT, pid=worker, role="worker"), 1008.0)
    watch._take(worker, [], math.inf)
    first, *_ = code_lines(watch.stop())
    assert (first.file, first.line, first.role) == (AUGMENT.file, 7, "worker")


def test_why_the_workers_cannot_be_read_is_told_where_it_matters(pid: int) -> None:
    for inner, told in ((NEXT, "refused"), (METRIC, "")):
        watch = CodeWatch(pid)
        for second in range(8):
            watch.add(1000.0 + second, [gpu(pid, 50.0)], {pid})
        watch._take(pid, moments(1000.0, 7.0, TRAIN, inner, pid=pid), 1008.0)
        recorder(watch).worker_problem = "refused"
        watch.stop()
        assert watch.problem == told


def test_the_innermost_line_of_the_program_names_its_call(tmp_path: Path) -> None:
    file = tmp_path / "train.py"
    file.write_text("losses.append(loss.item())\nf(g(x))\n")
    outer, own = Frame(str(file), 2, "<module>"), Frame(str(file), 1, "train")
    assert with_call((outer, own, LAUNCH)) == (outer, own._replace(call="loss.item"), LAUNCH)
    assert with_call((outer,)) == (outer,)  # of two calls, nothing tells which one it is
    assert with_call((LAUNCH, Frame("<string>", 1, "x"))) == (LAUNCH, Frame("<string>", 1, "x"))
    assert with_call(()) == ()


def test_the_program_itself_is_read_where_processes_on_gpus_cannot_be_told(pid: int) -> None:
    watch = CodeWatch(pid)
    watch.add(1000.0, [gpu(pid, 50.0)], None)
    assert recorder(watch).followed == {pid: "main"}


def test_no_more_processes_are_read_than_can_be_afforded(pid: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(supervision_watch, "check_own", lambda pid: None)
    watch = CodeWatch(pid)
    watch.add(1000.0, [gpu(pid, 50.0)], range(100, 200))
    assert len(recorder(watch).followed) == 8


def test_processes_of_others_are_not_read(pid: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(py_spy, "owner_of", lambda pid: 4711)
    watch = CodeWatch(pid)
    watch.add(1000.0, [gpu(pid, 50.0)], {pid})
    assert (recorder(watch).followed, watch.stop()) == ({}, [])
    assert "belongs to 4711" in watch.problem


def test_without_py_spy_nothing_is_read_and_a_sentence_says_so(pid: int, monkeypatch: pytest.MonkeyPatch) -> None:
    def missing() -> str:
        raise py_spy.StacksUnavailable("py-spy is not installed.", "Install it.")

    monkeypatch.setattr(supervision_watch, "program", missing)
    watch = CodeWatch(pid)
    watch.add(1000.0, [gpu(pid, 50.0)], {pid})
    assert (recorder(watch).followed, watch.stop()) == ({}, [])
    assert watch.problem == "py-spy is not installed. Install it."
    assert issubclass(py_spy.StacksUnavailable, GpulseError)
