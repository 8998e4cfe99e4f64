"""The labelled traces of an H200: whole, cut to 8 s, thinned to 1 Hz, and without GPM."""

from __future__ import annotations

import functools

import pytest

from gpulse.analysis.diagnosis.judge import diagnose
from gpulse.model.snapshot import Snapshot
from gpulse.model.verdict import Verdict
from gpulse.store.recording import read_recording
from tests.unit.analysis.diagnosis.traces import LABELS, SHARED, blinded, cuts, resampled

pytestmark = pytest.mark.skipif(not SHARED.is_dir(), reason="the traces are not beside this checkout")
EVERY = sorted(LABELS)


@functools.cache
def trace(name: str) -> tuple[Snapshot, ...]:
    return tuple(read_recording(str(SHARED / f"{name}.ndjson.gz")))


def verdict(snapshots: list[Snapshot]) -> Verdict:
    return diagnose(snapshots)[0]


@pytest.mark.parametrize("name", EVERY)
def test_whole(name: str) -> None:
    assert verdict(list(trace(name))).key == LABELS[name][0]


@pytest.mark.parametrize("interval", [0.0, 0.2, 1.0])
@pytest.mark.parametrize("name", sorted(set(EVERY) - {"oom", "leak"}))
def test_any_eight_seconds_of_the_workload(name: str, interval: float) -> None:
    label, start, end = LABELS[name]
    windows = cuts(list(trace(name)), start, end)
    assert windows
    assert {verdict(resampled(window, interval)).key for window in windows} == {label}


@pytest.mark.parametrize("name", ["oom", "leak"])
def test_eight_seconds_of_growth_are_never_judged_wrongly_and_surely(name: str) -> None:
    label, start, end = LABELS[name]
    for window in cuts(list(trace(name)), start, end):
        one = verdict(window)
        assert one.key == label or one.confidence != "high"  # growth at the start of a program may be its start


@pytest.mark.parametrize("name", EVERY)
def test_without_counters_no_window_is_wrong_with_high_confidence(name: str) -> None:
    label, start, end = LABELS[name]
    for window in cuts(list(trace(name)), start, end):
        one = verdict(blinded(window))
        assert one.key in (label, "unknown") or one.confidence != "high"


def test_contention_names_both_processes() -> None:
    assert {one.pid for one in verdict(list(trace("contention"))).processes} == {2517, 2547}


def test_the_leak_has_a_time() -> None:
    eta = verdict(list(trace("leak"))).values["eta"]
    assert isinstance(eta, tuple)
    assert 5 < float(eta[0]) < float(eta[1]) < 15  # 56 GiB left at 7 GiB/s


def test_out_of_memory_names_the_process() -> None:
    assert verdict(list(trace("oom"))).processes[0].pid == 1224


def test_the_cpu_share_is_cpu_time_over_elapsed_time() -> None:
    found = verdict(list(trace("idle_alloc")))
    cpu = next(one.value for one in found.evidence if one.metric == "cpu_tree")
    assert isinstance(cpu, float)
    assert cpu < 0.1
