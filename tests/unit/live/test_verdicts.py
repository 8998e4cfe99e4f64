"""Verdicts on the page: the lines of code that a Monitor in the program tells of."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from gpulse.live.verdicts import _code, _runs
from gpulse.model.catalog import Gpu, Host, Process
from gpulse.model.snapshot import Snapshot
from gpulse.model.stacks import CodeLine
from gpulse.monitor.presence import PresenceFile

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
    assert _code(_runs(snapshot, "GPU-0")) == []
    PresenceFile(os.getpid()).write({"run": "r", "code": [LINE._asdict()]})
    assert _code(_runs(snapshot, "GPU-0"))[0].startswith("58 s in train.py:84 compute_f1(…): ")
    assert _code(_runs(snapshot, "GPU-1")) == []
