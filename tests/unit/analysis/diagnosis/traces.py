"""The labelled recordings: those beside the checkout, and the ways to cut, thin and blind them."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from gpulse.model.catalog import Gpu
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


def resampled(snapshots: list[Snapshot], interval: float, *, traced: bool = True) -> list[Snapshot]:
    """Return what a sampler with a longer interval would have read: counters as means, the rest as of the last moment.

    With `traced`, each sample has the driver's own samples of the utilization since the one before, as the driver keeps them.
    """
    kept: list[Snapshot] = []
    since: list[Snapshot] = []
    for one in snapshots:
        since.append(one)
        if kept and one.time - kept[-1].time < interval - 0.02:
            continue
        gpus = []
        for at, gpu in enumerate(one.gpus):
            before = [other.gpus[at] for other in since if at < len(other.gpus)]
            changes: dict[str, Any] = {
                key: _mean([other.get(key) for other in before]) for key in (*COUNTERS, "pcie_rx", "pcie_tx")
            }
            if traced:
                changes["utilization_trace"] = _trace(since, [other.utilization for other in before])
            gpus.append(gpu.replace(**changes))
        kept.append(Snapshot(one.time, tuple(gpus), one.host, one.driver, one.problems))
        since = []
    return kept


def _mean(values: Sequence[Any]) -> float | None:
    known = [value for value in values if value is not None]
    return sum(known) / len(known) if known else None


def _trace(since: list[Snapshot], values: list[float | None]) -> tuple[float, ...] | None:
    """Return utilization every 0.2 s; recordings have it every 0.1 or 0.2 s."""
    fast = len(since) > 1 and since[1].time - since[0].time < 0.15
    chosen = values[::-1][::2][::-1] if fast else values
    return None if None in chosen else tuple(value for value in chosen if value is not None)


def unlisted(snapshots: list[Snapshot], every: int = 0) -> list[Snapshot]:
    """Take the lists of processes out, except at every nth sample where `every` is given."""
    found = []
    for place, one in enumerate(snapshots):
        listed = bool(every) and place % every == 0
        gpus = tuple(gpu if listed else _unread(gpu) for gpu in one.gpus)
        found.append(Snapshot(one.time, gpus, one.host, one.driver, one.problems))
    return found


def _unread(gpu: Gpu) -> Gpu:
    return Gpu(dict(gpu.items()), {**gpu.gaps, "processes": "skipped"}, state=gpu.state)


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
