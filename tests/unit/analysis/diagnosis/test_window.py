"""Windows and workloads: what a sample stands for, and which of them are judged."""

from __future__ import annotations

import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gpulse.analysis.diagnosis.judge import Workload, diagnose
from gpulse.analysis.diagnosis.running import LiveDiagnosis
from gpulse.analysis.diagnosis.window import weigh, windows_of
from gpulse.model.snapshot import Snapshot
from gpulse.present.verdicts import worded
from tests.unit.analysis.diagnosis.machines import GIB, QUIET, judged, keys, samples
from tests.unit.snapshots import snapshots


def test_a_sample_stands_for_the_time_since_the_one_before() -> None:
    assert weigh([0.0, 1.0, 2.0, 4.0, 5.0]) == (1.0, [1.0, 1.0, 1.0, 2.0, 1.0])


def test_a_hole_counts_as_one_interval() -> None:
    assert weigh([0.0, 1.0, 2.0, 3.0, 100.0])[1][-1] == 1.0


def test_means_are_weighted_by_time() -> None:
    busy = list(samples({"sm_active": lambda second: 100.0 if second < 10 else 0.0}, seconds=20, interval=0.5))
    uneven = [one for at, one in enumerate(busy) if at < 20 or at % 2]  # every half second first, every second then
    load = Workload(windows_of(uneven).windows()[0]).whole
    assert load.mean("sm_active") == pytest.approx(50.0, abs=4.0)


def test_the_cpu_of_a_process_is_shared_over_the_whole_time() -> None:
    there = lambda second: ({}, {"pid": 9, "cpu_percent": 90.0}) if second < 15 else ({},)  # noqa: E731
    window = windows_of(samples({"processes": there}, seconds=30)).windows()[0]
    whole = Workload(window).whole
    assert window.tracks[9, 0].mean("cpu_percent", window.weights, range(whole.first, whole.end)) == pytest.approx(
        45.0, abs=2.0
    )


def test_start_up_and_end_are_left_out() -> None:
    def level(value: float, calm: float) -> object:
        return lambda second: value if 12 <= second < 40 else calm

    chip = {key: level(95.0 if key != "tensor_active" else 50.0, calm) for key, calm in QUIET.items()}
    chip |= {"fp32_active": 2, "integer_active": 10, "dram_active": level(33.0, 0.0), "power_draw": level(690.0, 120.0)}
    chip["processes"] = lambda second: ({"running_time": second - 4},) if 4 <= second < 44 else ()
    chip["memory_used"] = lambda second: 20 * GIB if 4 <= second < 44 else 0
    verdict = judged(chip, seconds=60)
    assert keys(verdict) == ["healthy"]
    sm = next(one.value for one in verdict.evidence if one.metric == "sm_active")
    assert sm == pytest.approx(95.0, abs=1.0)
    assert verdict.end - verdict.start < 29


def test_phases_are_judged_one_by_one() -> None:
    chip = {
        "tensor_active": lambda second: 50.0 if second < 40 else 0.0,
        "dram_active": lambda second: 33.0 if second < 40 else 88.0,
    }
    verdict = judged(chip, seconds=60)
    assert keys(verdict) == ["healthy", "memory_bandwidth"]
    assert verdict.share == pytest.approx(2 / 3, abs=0.1)


@settings(max_examples=60, deadline=None)
@given(seen=st.lists(snapshots(), max_size=6))
def test_no_snapshot_makes_it_fail(seen: list[Snapshot]) -> None:
    found = worded(diagnose(seen))
    assert json.dumps(found.to_plain(), allow_nan=False)


@settings(max_examples=60, deadline=None)
@given(seen=st.lists(snapshots(believable=True), min_size=2, max_size=4), times=st.integers(2, 8))
def test_no_believable_series_makes_it_fail(seen: list[Snapshot], times: int) -> None:
    series = [Snapshot(1e9 + at, one.gpus, one.host, one.driver, one.problems) for at, one in enumerate(seen * times)]
    assert len(worded(diagnose(series))) >= 0
    live = LiveDiagnosis(every=1.0)
    for one in series:
        live.add(one)
