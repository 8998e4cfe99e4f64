"""Verdicts on the page: the lines of code that a Monitor in the program tells of."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from gpulse.live.hub import Hub, Verdicts, _runs
from gpulse.model.catalog import Gpu, Host, Process
from gpulse.model.select import Wanted
from gpulse.model.snapshot import Snapshot
from gpulse.model.stacks import CodeLine
from gpulse.monitor.presence import PresenceFile
from gpulse.sampling.sampler import Sampler
from gpulse.sources.registry import make_source

LINE = CodeLine("/home/ada/train.py", 84, "compute_f1", 58.0, 1.0, caller="/home/ada/train.py:12")


def test_the_lines_of_the_program_on_a_gpu_stand_under_its_verdict(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(tmp_path))
    own, other = Process({"pid": os.getpid()}), Process({"pid": 1})
    gpus = (
        Gpu({"uuid": "GPU-0", "index": 0}, processes=(own,)),
        Gpu({"uuid": "GPU-1", "index": 1}, processes=(other,)),
    )
    snapshot = Snapshot(0.0, gpus, Host({}))
    assert _runs(snapshot) == {}
    PresenceFile(os.getpid()).write({"run": "r", "step": 7, "code": [LINE._asdict()]})
    found = _runs(snapshot)
    assert [*found] == ["GPU-0"]
    assert found["GPU-0"]["code"][0].startswith("58 s in train.py:84 compute_f1(…): ")
    assert "step 7" in found["GPU-0"]["runs"][0]


def test_runs_are_renewed_between_two_judgements(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(tmp_path))
    hub = Hub(None, 1.0)
    file = PresenceFile(os.getpid())
    for at in range(5):
        file.write({"run": "r", "step": at})
        hub.add(Snapshot(100.0 + at, (Gpu({"uuid": "GPU-0"}, processes=(Process({"pid": os.getpid()}),)),), Host({})))
    told = [entry.data.count(b"event: runs") for entry in hub.after(0)]
    assert told == [1, 0, 1, 0, 1], "once in two seconds"
    assert "step 4" in hub.verdicts.runs["GPU-0"]["runs"][0]


def test_a_machine_that_is_not_this_computer_has_no_programs_of_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(tmp_path))
    PresenceFile(os.getpid()).write({"run": "r"})
    verdicts = Verdicts(programs=False)
    verdicts.add(Snapshot(0.0, (Gpu({"uuid": "GPU-0"}, processes=(Process({"pid": os.getpid()}),)),), Host({})))
    assert verdicts.runs == {}
    assert Sampler(make_source("demo"), Wanted()).source.machine.real is False
    assert not Hub(Sampler(make_source("demo"), Wanted()), 1.0).tells_programs
    assert not Hub(None, 1.0, commands=False).tells_programs, "files and functions say as much as a command line"
