"""Where a job that hangs is: of real processes, and of ranks that a scripted port tells of."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from gpulse.model.catalog import Gpu, Process
from gpulse.model.event import Event
from gpulse.model.snapshot import Snapshot
from gpulse.monitor import training_rules
from gpulse.monitor.training_rules import WhereStuck, behind_text, job_on
from gpulse.sources.collectives import Laggard
from gpulse.sources.py_spy import StacksUnavailable

RANKS = """
import subprocess, sys
code = "import sys\\ndef all_reduce():\\n    print('ready', flush=True)\\n    sys.stdin.readline()\\nall_reduce()"
ranks = [subprocess.Popen([sys.executable, "-c", code], stdin=subprocess.PIPE, stdout=subprocess.PIPE) for _ in range(2)]
for rank in ranks:
    rank.stdout.readline()
print(*(rank.pid for rank in ranks), flush=True)
sys.stdin.readline()
for rank in ranks:
    rank.kill()
"""


@pytest.fixture
def ranks() -> Iterator[list[int]]:
    """Two ranks of one launcher."""
    with subprocess.Popen(
        [sys.executable, "-c", RANKS], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as launcher:
        assert launcher.stdout is not None
        yield [int(word) for word in launcher.stdout.readline().split()]
        launcher.communicate("\n")


@pytest.fixture(autouse=True)
def _no_port(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(training_rules, "laggards", lambda pids: [])


def snapshot(*pids: int, type: str = "C") -> Snapshot:
    """One process on each GPU."""
    gpus = [
        Gpu({"index": at, "uuid": f"GPU-{at}"}, processes=(Process({"pid": pid, "type": type}),))
        for at, pid in enumerate(pids)
    ]
    return Snapshot(1.0, tuple(gpus))


HANG = Event(1.0, "stalled", ("0",), uuids=("GPU-0",))


def test_all_ranks_of_the_job_are_read(ranks: list[int]) -> None:
    values = WhereStuck()(HANG, snapshot(*ranks))
    assert values == {"stacks": f"{ranks[0]}, {ranks[1]}: all_reduce <string>:4 < <module> <string>:5"}


def test_processes_of_other_jobs_are_not_read(ranks: list[int]) -> None:
    with subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE) as other:
        assert job_on(["GPU-0"], snapshot(ranks[0], other.pid)) == [ranks[0]]
        other.communicate()
    assert job_on(["GPU-0"], snapshot(ranks[0], type="G")) == []
    assert job_on(["GPU-9"], snapshot(*ranks)) == []


def test_processes_of_others_are_not_read(ranks: list[int], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "geteuid", lambda: 4711)
    monkeypatch.delenv("SUDO_UID", raising=False)
    assert WhereStuck()(HANG, snapshot(*ranks)) == {}


def test_what_cannot_be_read_is_left_out(ranks: list[int], monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(pid: int, *, patience: float) -> None:
        raise StacksUnavailable("refused", lasting=True)

    monkeypatch.setattr(training_rules, "read_stacks", refuse)
    assert WhereStuck()(HANG, snapshot(*ranks)) == {}


@pytest.mark.parametrize(
    ("laggard", "text"),
    [
        (Laggard(7, "AllReduce", 60, 64, 99, "node1"), "rank 7 (pid 99 on node1) is at AllReduce 60, others at 64"),
        (Laggard(1, "all_reduce", 5, 6), "rank 1 is at all_reduce 5, others at 6"),
        (Laggard(None, "", 0, 0, 99, "node1"), "pid 99 on node1 does not respond"),
    ],
)
def test_which_rank_is_behind(monkeypatch: pytest.MonkeyPatch, laggard: Laggard, text: str) -> None:
    monkeypatch.setattr(training_rules, "laggards", lambda pids: [laggard])
    assert behind_text([1]) == text


def test_both_are_in_the_alert(ranks: list[int], monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(training_rules, "laggards", lambda pids: [Laggard(1, "all_reduce", 5, 6)] * 100)
    values = WhereStuck()(HANG, snapshot(*ranks))
    assert set(values) == {"stacks", "behind"}
    assert len(str(values["behind"])) == 1000


def test_one_reading_serves_the_alerts_of_all_gpus_of_a_job(ranks: list[int], monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[object] = []

    def laggards(pids: object) -> list[Laggard]:
        asked.append(pids)
        return []

    monkeypatch.setattr(training_rules, "laggards", laggards)
    where_stuck = WhereStuck()
    first = where_stuck(HANG, snapshot(*ranks))
    first.clear()
    assert where_stuck(HANG.replace(gpus=("1",), uuids=("GPU-1",)), snapshot(*ranks))
    assert len(asked) == 1
    assert where_stuck(HANG, snapshot()) == {}
