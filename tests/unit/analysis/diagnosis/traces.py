"""The labelled recordings: those beside the checkout, and the ways to cut, thin and blind them."""

from __future__ import annotations

from pathlib import Path

from gpulse.model.snapshot import Snapshot
from tests.unit.analysis.diagnosis.machines import COUNTERS

_ROOT = Path(__file__).resolve().parents[4]
_PLACES = [folder / "shared" / "h200" / "traces" for folder in (_ROOT.parent, _ROOT.parent.parent)]
SHARED = next((place for place in _PLACES if place.is_dir()), _PLACES[0])  # beside the checkout
# The verdict a person who knows would give, and the seconds between which the workload runs.
LABELS: dict[str, tuple[str, float, float]] = {
    "matmul_bf16": ("healthy", 7.0, 19.5),
    "matmul_fp32": ("fp32_no_tensor", 5.2, 17.3),
    "lm_train": ("healthy", 20.8, 31.0),
    "lm_tiny_batch": ("launch_bound", 13.5, 24.2),
    "elementwise": ("memory_bandwidth", 5.0, 17.0),
    "launch": ("launch_bound", 4.8, 16.5),
    "input_cpu_0": ("host_bound", 9.0, 22.0),
    "input_cpu_16": ("input_bound_cpu", 9.7, 21.7),
    "h2d": ("transfer_bound", 6.0, 18.0),
    "idle_alloc": ("idle_allocation", 5.6, 17.0),
    "leak": ("memory_leak", 5.4, 17.5),
    "oom": ("out_of_memory", 7.5, 15.7),
    "contention": ("contention", 17.2, 26.2),
}


def thinned(snapshots: list[Snapshot], interval: float) -> list[Snapshot]:
    """Keep one snapshot per interval."""
    kept: list[Snapshot] = []
    for one in snapshots:
        if not kept or one.time - kept[-1].time >= interval - 0.02:
            kept.append(one)
    return kept


def blinded(snapshots: list[Snapshot], *more: str) -> list[Snapshot]:
    """Take the GPM counters out, and further metrics."""
    gone = dict.fromkeys((*COUNTERS, *more))
    return [
        Snapshot(one.time, tuple(gpu.replace(**gone) for gpu in one.gpus), one.host, one.driver, one.problems)
        for one in snapshots
    ]


def cuts(snapshots: list[Snapshot], start: float, end: float, seconds: float = 8.0) -> list[list[Snapshot]]:
    """Return every window of that many seconds between two times of a recording, half a second apart."""
    first = snapshots[0].time
    found = []
    at = start
    while at + seconds <= end + 0.01:
        found.append([one for one in snapshots if at - 0.01 <= one.time - first <= at + seconds + 0.1])
        at += 0.5
    return found
