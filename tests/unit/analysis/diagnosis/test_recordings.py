"""Our own labelled recordings: 40 workloads on an H200, recorded at 0.2 s; most were never used to choose a threshold."""

from __future__ import annotations

import functools
import json
from pathlib import Path
from typing import Any

import pytest

from gpulse.analysis.diagnosis.judge import diagnose
from gpulse.model.snapshot import Snapshot
from gpulse.model.verdict import Verdict
from gpulse.store.recording import read_recording
from tests.unit.analysis.diagnosis.traces import cuts, resampled

FOLDER = Path(__file__).resolve().parents[3] / "captures" / "diagnosis"
LABELS: dict[str, dict[str, Any]] = json.loads((FOLDER / "labels.json").read_text())
EVERY = sorted(LABELS)
# Eight seconds do not show them: an end that comes later, or a step of growth every five seconds.
LONGER = {"out_of_memory", "slow_leak", "slow_epoch_leak"}
# Pauses of two seconds every seven: some windows hold none, some only a part of one.
PARTLY = {"checkpoint", "evaluation", "notebook", "save_torch"}


@functools.cache
def recording(name: str) -> tuple[Snapshot, ...]:
    return tuple(read_recording(str(FOLDER / f"{name}.ndjson.gz")))


def verdict(snapshots: list[Snapshot]) -> Verdict:
    return diagnose(snapshots)[0]


def right(name: str, found: Verdict) -> bool:
    # a window with a single pause shows the thread that runs in it, and one of a server that never runs alone its own thread
    also = {"host_bound", "waiting"} if name in PARTLY or found.confidence == "low" else set()
    return found.key in {*LABELS[name]["verdicts"], *also}


@pytest.mark.parametrize("name", EVERY)
def test_whole(name: str) -> None:
    found = verdict(list(recording(name)))
    assert right(name, found), found


@pytest.mark.parametrize("name", sorted(set(EVERY) - LONGER - PARTLY))
def test_any_eight_seconds_of_the_workload(name: str) -> None:
    label = LABELS[name]
    found = [verdict(window) for window in cuts(list(recording(name)), label["from"], label["to"])]
    assert found
    assert [one.key for one in found if not right(name, one)] == []


@pytest.mark.parametrize("name", sorted(PARTLY))
def test_windows_with_one_pause_show_the_thread_that_runs_in_it(name: str) -> None:
    label = LABELS[name]
    found = [right(name, verdict(window)) for window in cuts(list(recording(name)), label["from"], label["to"])]
    assert sum(found) >= 0.8 * len(found)


def test_windows_thinned_to_a_second_are_rarely_wrong() -> None:
    found = [
        right(name, verdict(resampled(window, 1.0)))
        for name in EVERY
        if name not in LONGER
        for window in cuts(list(recording(name)), LABELS[name]["from"], LABELS[name]["to"])[::3]
    ]
    assert sum(found) >= 0.93 * len(found)


def test_the_period_of_checkpoints_is_told() -> None:
    found = verdict(list(recording("checkpoint")))
    assert found.values["period"] == pytest.approx(6.2, abs=0.5)
    assert found.values["kind"] == "checkpoint"


def test_the_leak_is_full_in_time() -> None:
    eta = verdict(list(recording("slow_leak"))).values["eta"]
    assert isinstance(eta, tuple)
    assert float(eta[0]) < 295 - 24 < float(eta[1]) * 1.1


def test_two_jobs_are_both_named() -> None:
    assert len(verdict(list(recording("two_jobs"))).processes) == 2
