"""Every labelled recording at every interval, with and without processes, counters and the driver's own samples: right or honest."""

from __future__ import annotations

import functools
import json
import tempfile
from collections.abc import Callable
from pathlib import Path

import pytest

from gpulse.analysis.diagnosis.judge import diagnose
from gpulse.analysis.diagnosis.window import weigh
from gpulse.model.snapshot import Snapshot
from gpulse.model.verdict import Verdict
from gpulse.store.history import HistoryReader, HistoryWriter
from gpulse.store.recording import read_recording
from tests.unit.analysis.diagnosis.traces import LABELS, SHARED, blinded, resampled, unlisted

FOLDER = Path(__file__).resolve().parents[3] / "captures" / "diagnosis"
EXPECTED = {name: label["verdicts"] for name, label in json.loads((FOLDER / "labels.json").read_text()).items()}
FILES = {name: FOLDER / f"{name}.ndjson.gz" for name in EXPECTED}
if SHARED.is_dir():
    EXPECTED |= {name: [label] for name, (label, _, _) in LABELS.items()}
    FILES |= {name: SHARED / f"{name}.ndjson.gz" for name in LABELS}
# Without counters nobody sees what a kernel does, and without processes nobody sees who waits: what is as true then.
BLIND = {
    "launch_bound": {"host_bound", "busy"},
    "healthy": {"busy"},
    "fp32_no_tensor": {"busy"},
    "memory_bandwidth": {"busy"},
    "memory_latency": {"busy"},
    "small_batch": {"busy"},
}
UNLISTED = {"out_of_memory": {"memory_pressure"}, "contention": {"healthy", "busy"}, "starting": {"idle_allocation"}}
# A process that ends between two samples, and pauses of which only the thread that runs in them is seen.
RARE = {"out_of_memory": {"memory_pressure"}, "stalls": {"host_bound"}}


def from_history(seen: list[Snapshot]) -> list[Snapshot]:
    """Return snapshots as a history gives them back."""
    with tempfile.TemporaryDirectory() as folder:
        path = str(Path(folder) / "history.db")
        with HistoryWriter(path) as writer:
            for one in seen:
                writer.add(one)
        with HistoryReader(path) as reader:
            return list(reader.snapshots(seen[0].time - 1.0, seen[-1].time + 1.0))


Change = Callable[[list[Snapshot]], list[Snapshot]]
WAYS: dict[str, Change] = {
    "as recorded": lambda seen: seen,
    "0.25 s": lambda seen: resampled(seen, 0.25),
    "1 s": lambda seen: resampled(seen, 1.0),
    "3 s": lambda seen: resampled(seen, 3.0),
    "0.25 s untraced": lambda seen: resampled(seen, 0.25, traced=False),
    "1 s untraced": lambda seen: resampled(seen, 1.0, traced=False),
    "3 s untraced": lambda seen: resampled(seen, 3.0, traced=False),
    "processes in every fifth sample": lambda seen: unlisted(resampled(seen, 0.2), 5),
    "1 s without processes": lambda seen: unlisted(resampled(seen, 1.0)),
    "0.25 s without processes": lambda seen: unlisted(resampled(seen, 0.25)),
    "3 s without processes": lambda seen: unlisted(resampled(seen, 3.0)),
    "0.25 s without counters": lambda seen: blinded(resampled(seen, 0.25)),
    "1 s without counters": lambda seen: blinded(resampled(seen, 1.0)),
    "3 s without counters": lambda seen: blinded(resampled(seen, 3.0)),
    "1 s with neither": lambda seen: unlisted(blinded(resampled(seen, 1.0))),
    "1 s from the history": lambda seen: from_history(resampled(seen, 1.0)),
}


@functools.cache
def recording(name: str) -> tuple[Snapshot, ...]:
    return tuple(read_recording(str(FILES[name])))


@functools.cache
def verdicts(way: str) -> dict[str, Verdict]:
    return {name: diagnose(WAYS[way](list(recording(name))))[0] for name in FILES}


def allowed(name: str, way: str) -> set[str]:
    found = set(EXPECTED[name])
    for known in EXPECTED[name]:
        found |= BLIND.get(known, set()) if "counters" in way or "neither" in way else set()
        found |= UNLISTED.get(known, set()) if "processes" in way or "neither" in way else set()
        found |= RARE.get(known, set()) if "3 s" in way else set()
    return found


@pytest.mark.parametrize("way", WAYS)
def test_no_verdict_is_wrong_and_sure(way: str) -> None:
    wrong = {name: one for name, one in verdicts(way).items() if one.key not in {*allowed(name, way), "unknown"}}
    assert {name: one.key for name, one in wrong.items() if one.confidence == "high"} == {}


def test_nearly_all_are_right_or_say_that_they_cannot_tell() -> None:
    wrong = [
        (way, name, one.key)
        for way in WAYS
        for name, one in verdicts(way).items()
        if one.key not in {*allowed(name, way), "unknown"}
    ]
    assert len(wrong) <= 0.025 * len(WAYS) * len(FILES), wrong


@pytest.mark.parametrize("way", ["as recorded", "0.25 s", "1 s", "processes in every fifth sample"])
def test_what_is_measured_is_told(way: str) -> None:
    silent = [name for name, one in verdicts(way).items() if one.key == "unknown" and "unknown" not in EXPECTED[name]]
    assert len(silent) <= 0.06 * len(FILES), silent


@pytest.mark.parametrize("way", WAYS)
def test_budgets_add_up_to_all_the_time(way: str) -> None:
    for name, one in verdicts(way).items():
        assert one.budget is not None
        assert sum(one.budget.shares.values()) == pytest.approx(1.0, abs=0.001), name


@pytest.mark.parametrize("way", ["as recorded", "1 s", "3 s"])
def test_the_work_of_a_budget_is_what_the_counters_counted(way: str) -> None:
    for name, one in verdicts(way).items():
        if one.budget is None or "throttled" in one.budget.shares:
            continue
        seen = WAYS[way](list(recording(name)))
        _, weights = weigh([snapshot.time for snapshot in seen])
        counted = sum(
            (snapshot.gpus[0].sm_active or 0.0) * weight for snapshot, weight in zip(seen, weights, strict=True)
        )
        assert 100 * one.budget.work == pytest.approx(counted / sum(weights), abs=1.0), name
