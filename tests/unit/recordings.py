"""Recordings written by hand, for tests of those who read them."""

from __future__ import annotations

import gzip
from pathlib import Path

from gpulse.model.catalog import Gpu
from gpulse.model.codec import to_line
from gpulse.model.snapshot import Snapshot
from gpulse.store.lines import with_check

START = 1_700_000_000.0


def frames(count: int) -> list[Snapshot]:
    """Return snapshots a second apart, each with its number as utilization, up to 100, and as clock."""
    memory = {"memory_used": 30, "memory_total": 100}
    gpus = [Gpu({"index": 0, "utilization": min(at, 100), "clock_sm": at, **memory}) for at in range(count)]
    return [Snapshot(START + at, (gpu,)) for at, gpu in enumerate(gpus)]


def text_of(snapshots: list[Snapshot]) -> str:
    """Return the lines of a recording."""
    return "".join(f"{to_line(snapshot)}\n" for snapshot in snapshots)


def recorded(snapshots: list[Snapshot]) -> str:
    """Return the lines as they are recorded, with their checksums."""
    return "".join(f"{with_check(to_line(snapshot).encode()).decode()}\n" for snapshot in snapshots)


def write(path: Path, content: str | bytes, packed: bool = False) -> str:
    """Write a recording and return its path as text."""
    raw = content if isinstance(content, bytes) else content.encode()
    path.write_bytes(gzip.compress(raw) if packed else raw)
    return str(path)


def numbers(snapshots: list[Snapshot]) -> list[float | None]:
    """Return the numbers of such snapshots."""
    return [snapshot.gpus[0].clock_sm for snapshot in snapshots]
