"""Runs made by hand, for tests of what is said of them."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

from gpulse.model.catalog import Gpu, Host, Process
from gpulse.model.codec import to_plain
from gpulse.model.snapshot import Snapshot
from gpulse.surfaces.report.account import account
from gpulse.surfaces.report.recorded_samples import RecordedSample
from gpulse.surfaces.report.run import Run

if TYPE_CHECKING:
    from gpulse.model.metric import Value

START = 1_700_000_000.0
GIB = 1 << 30
HOSTILE = ("<script>alert(1)</script>", "</script><img src=x onerror=alert(1)>", "a\x1b[31mb\u202ec", '"><b>', "`x`|y")


def gpu(index: int = 0, *processes: Process, **values: Value) -> Gpu:
    there: dict[str, Value] = {
        "index": index, "uuid": f"GPU-{index}", "name": "NVIDIA H200", "memory_total": 140 * GIB, "memory_used": 70 * GIB,
        "utilization": 90.0, "sm_active": 80.0, "power_draw": 500.0, "power_limit": 700.0, "temperature": 60.0,
    }  # fmt: skip
    return Gpu(there | values, processes=processes)


def process(pid: int = 7, **values: Value) -> Process:
    return Process({"pid": pid, "name": "python", "user": "ada", "memory_used": 60 * GIB, **values})


def sample(at: float, *gpus: Gpu, **host: Value) -> Snapshot:
    return Snapshot(START + at, gpus or (gpu(),), Host({"name": "box", **host}), {"version": "580.1", "cuda": "13.0"})


def samples(seconds: int, **values: Value) -> Iterator[Snapshot]:
    return (sample(at, gpu(0, **values), cpu_percent=10.0) for at in range(seconds))


def run_of(snapshots: Iterable[Snapshot], name: str = "run.ndjson") -> Run:
    return account((RecordedSample(snapshot) for snapshot in snapshots), name)


def write(path: Path, snapshots: Iterable[Snapshot], **extras: Any) -> Path:
    """Write a recording; what is said beside the snapshots is the same on every line."""
    path.write_text("".join(f"{json.dumps(to_plain(snapshot) | extras)}\n" for snapshot in snapshots))
    return path
