"""Cells over time: memory, SM share and power of each kernel, and what each of its cells took, still holds and waited."""

from __future__ import annotations

import os
import threading
import time
from bisect import bisect_left, bisect_right
from operator import attrgetter

from ...analysis.own_use import energy_share, tells_processes
from ...store.cell_log import CellLog, CellSpan, merged, remove_left_behind
from ...value import Value
from .kernels import KernelProcesses, kernel_table

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Mapping, Sequence
    from typing import Any

    from ...live.hub import Hub
    from ...model.catalog import Gpu
    from ...model.snapshot import Snapshot
    from .kernels import Kernel

_MOST_POINTS = 4000  # of one kernel; then the older half keeps every second one
_MOST_CELLS = 500  # of one kernel
_IDLE = 1.0  # per cent of SM share below which a cell waited
_TOLD_AGAIN = 60.0  # seconds; browsers tell of a running cell every 20
_NEAR = 2.0  # seconds before the end of a cell in which a sample tells what it left
_LAG = 5.0  # seconds that a reading of SM shares reaches back, and stands until the next one
_FEWEST = 3  # samples that tell whether a cell waited
_time = attrgetter("time")


class CurvePoint(Value):
    """A kernel at one sample: memory in bytes and power in watts over all its GPUs, mean SM share of them in percent; None if unknown."""

    time: float
    memory: float | None
    sm: float | None
    power: float | None


class KernelRecord:
    """What is known of one kernel over time: its curve, and the cells that browsers and the kernel itself have reported."""

    def __init__(self) -> None:
        self.curve: list[CurvePoint] = []
        self.log: CellLog | None = None
        self._gpus: frozenset[str] = frozenset()
        self._told: dict[str, CellSpan] = {}
        self._told_at = float("-inf")

    def add(self, time: float, used: Mapping[str, Gpu], own: frozenset[int], hidden: Collection[str] = ()) -> None:
        """Add a sample with the GPUs that the kernel's PIDs are on; memory is unknown while one it was on is among the `hidden`."""
        lost = self._gpus.intersection(hidden)
        self._gpus = lost | used.keys()
        self.curve.append(CurvePoint(time, None, None, None) if lost else _point(time, used.values(), own))
        if len(self.curve) > _MOST_POINTS:
            half = len(self.curve) // 2
            self.curve[:half] = thinned(self.curve[:half], half // 2)

    def tell(self, spans: Sequence[CellSpan]) -> None:
        """Take what a browser has seen of the kernel's cells."""
        self._told = {span.id: span for span in merged([self._told.values(), spans])[-_MOST_CELLS:]}
        self._told_at = time.monotonic()

    def is_running(self, since: float) -> bool:
        """Return whether a cell runs in the process that was started then, by the kernel's own record or a browser that still tells.

        Jupyter takes a kernel for idle when a message to a subshell has been answered, while its main shell runs a cell.
        """
        told = self._told.values() if time.monotonic() - self._told_at < _TOLD_AGAIN else ()
        found = merged([told, [] if self.log is None else self.log.read()])
        return bool(found) and found[-1].end is None and found[-1].start >= since - 1.0

    def spans(self, idle_since: float | None) -> list[CellSpan]:
        """Return the cells, the earliest first. One whose end nobody saw ended with the next one, or when the kernel became idle."""
        found = merged([self._told.values(), [] if self.log is None else self.log.read()])[-_MOST_CELLS:]
        for at, span in enumerate(found):
            end = found[at + 1].start if at + 1 < len(found) else idle_since
            if span.end is None and end is not None and end >= span.start:
                found[at] = CellSpan(span.id, span.cell, span.count, span.code, span.start, end)
        return found


class KernelWatch:
    """Follows the kernels of a server: `pids` returns those of all by kernel ID, `file` the connection file of one, or "".

    Both may be called by any thread.
    """

    def __init__(
        self, pids: Callable[[], Mapping[str, int | None]], file: Callable[[str], str] = lambda kernel: ""
    ) -> None:
        self._pids = pids
        self._file = file
        self._records: dict[str, KernelRecord] = {}
        self._processes = KernelProcesses()
        self._lock = threading.Lock()
        self._hub: Hub | None = None

    def follow(self, hub: Hub) -> None:
        """Add each sample of a hub to the curves from now on."""
        with self._lock:
            if self._hub is hub:
                return
            self._hub = hub

        def told() -> None:
            if hub.latest is not None:
                self.add(hub.latest)

        told()
        hub.listen(told)

    def add(self, snapshot: Snapshot) -> None:
        """Add a sample to the curves, and forget kernels that are gone."""
        pids = self._pids()
        with self._lock:
            owners = self._processes.owners(pids, snapshot)
            for id in self._records.keys() - pids.keys():
                del self._records[id]
            hidden = [gpu.uuid or "" for gpu in snapshot.gpus if not tells_processes(gpu)]
            if len(hidden) == len(snapshot.gpus):
                return
            used: dict[str, dict[str, Gpu]] = {}
            for gpu in snapshot.gpus:
                for process in gpu.all_processes():
                    if (owner := owners.get(int(process.pid or 0))) is not None:
                        used.setdefault(owner, {})[gpu.uuid or ""] = gpu
            for id in (id for id, pid in pids.items() if id in used or not (pid is None or self._processes.blind)):
                own = frozenset(pid for pid, owner in owners.items() if owner == id)
                self._record(id).add(snapshot.time, used.get(id, {}), own, hidden)

    def table(self, kernels: Sequence[Kernel], snapshot: Snapshot, real: bool) -> dict[str, Any]:
        """Return the kernels with what they use now."""
        with self._lock:
            for kernel in kernels:
                self._correct(kernel)
            return kernel_table(kernels, snapshot, self._processes, real)

    def _record(self, id: str) -> KernelRecord:
        if (record := self._records.get(id)) is None:
            record = self._records[id] = KernelRecord()
        if record.log is None and (path := self._file(id)):
            record.log = CellLog(path)
            remove_left_behind(os.path.dirname(path))
        return record

    def _correct(self, kernel: Kernel) -> None:
        """Take a kernel for busy while a cell is known to run in it."""
        record = self._record(kernel.id)
        if kernel.state == "idle" and record.is_running(self._processes.started(kernel.pid)):
            kernel.state, kernel.idle_since = "busy", None

    def tell(self, kernel: str, spans: Sequence[CellSpan]) -> None:
        """Take what a browser has seen of a kernel's cells."""
        with self._lock:
            self._record(kernel).tell(spans)

    def answer(self, kernel: Kernel, start: float, end: float, points: int) -> dict[str, Any]:
        """Return the curve of a kernel between two times, and its cells with what each took."""
        with self._lock:
            record = self._record(kernel.id)
            self._correct(kernel)
            spans, curve = record.spans(kernel.idle_since), list(record.curve)
        cells = [span.to_plain() | figures for span, figures in zip(spans, cell_figures(spans, curve), strict=True)]
        shown = thinned([point for point in curve if start <= point.time <= end], points)
        return {
            "kernel": kernel.id,
            "since": curve[0].time if curve else None,
            "times": [round(point.time, 3) for point in shown],
            "memory": [point.memory for point in shown],
            "sm": [point.sm for point in shown],
            "power": [None if point.power is None else round(point.power, 1) for point in shown],
            "cells": [cell for cell in cells if cell["start"] <= end and (cell["end"] is None or cell["end"] >= start)],
        }


def thinned(points: Sequence[CurvePoint], most: int) -> list[CurvePoint]:
    """Return about `most` of some points; of each group those with the least and the most memory, so that peaks and dips stay."""
    if len(points) <= most:
        return list(points)
    width = -(-2 * len(points) // max(2, most))
    found: list[CurvePoint] = []
    for at in range(0, len(points), width):
        group = [point for point in points[at : at + width] if point.memory is not None] or points[at : at + 1]
        low, high = (choose(group, key=lambda point: point.memory or 0.0) for choose in (min, max))
        found += sorted({id(point): point for point in (low, high)}.values(), key=_time)
    return found


def cell_figures(spans: Sequence[CellSpan], curve: Sequence[CurvePoint]) -> list[dict[str, Any]]:
    """Return what each cell did with the kernel's memory, in bytes, and how long it ran without the GPU, in seconds; None if unknown.

    `before` and `after` are samples between which no other cell ran. Of cells that no sample tells apart, the longest has the figures
    of all, and `beside` is how many others there are. `peak` is the most of the samples within. `held` is what it took and the memory
    has not fallen below since. `waited` is told of a kernel that holds GPU memory while its SM share is zero.
    """
    known = [point for point in curve if point.memory is not None]
    times = [point.time for point in known]
    least, waits = _least_from(known), _Waits(known)
    edges = [*(_edge(spans, at, known, times) for at in range(len(spans) + 1))]
    found: list[dict[str, Any]] = []
    first = 0
    for last, span in enumerate(spans):
        inside = slice(
            bisect_right(times, span.start), len(times) if span.end is None else bisect_left(times, span.end)
        )
        within = known[inside]
        peak = max((point.memory or 0.0 for point in within), default=None)
        unknown = {"before": None, "after": None, "held": None}
        found.append({**unknown, "beside": 0, "peak": peak, "waited": waits.within(span)})
        if edges[last + 1] is None and last + 1 < len(spans):
            continue
        before, after = (edge and edge[side] for edge, side in ((edges[first], 1), (edges[last + 1], 0)))
        longest = max(range(first, last + 1), key=lambda at: (spans[at].end or float("inf")) - spans[at].start)
        found[longest] |= {"before": before, "after": after, "beside": last - first}
        if before is not None and after is not None:
            later = least[inside.stop] if inside.stop < len(least) else after
            found[longest]["held"] = max(0.0, min(after, later) - before)
        first = last + 1
    return found


def _edge(
    spans: Sequence[CellSpan], at: int, known: Sequence[CurvePoint], times: Sequence[float]
) -> tuple[float | None, float | None] | None:
    """Return the memory that the cell before an edge left, and that the cell after it found; None if no sample tells them apart.

    Where one cell follows the other at once, that is the last sample within the first.
    """
    end = spans[at - 1].end if at else 0.0
    start = spans[at].start if at < len(spans) else float("inf")
    end = float("inf") if end is None else end
    after, before = bisect_left(times, end), bisect_right(times, start)
    if after < before:
        return known[after].memory, known[before - 1].memory
    if not at or not before:
        return (None, None) if not at or at == len(spans) else None
    last = known[before - 1]
    flat = before < len(known) and known[before].memory == last.memory
    near = last.time > spans[at - 1].start and min(end, start) - last.time <= max(
        _NEAR, (end - spans[at - 1].start) / 10
    )
    if at == len(spans):
        return (last.memory, None) if end == float("inf") and last.time > spans[at - 1].start else (None, None)
    return (last.memory, last.memory) if flat or near else None


def _least_from(points: Sequence[CurvePoint]) -> list[float]:
    """Return the least memory from each point on."""
    found, least = [0.0] * len(points), float("inf")
    for at in range(len(points) - 1, -1, -1):
        found[at] = least = min(least, points[at].memory or 0.0)
    return found


class _Waits:
    """Tells how long no kernel ran within a cell, by the SM shares of a curve."""

    def __init__(self, known: Sequence[CurvePoint]) -> None:
        shares = [(point.time, point.sm) for point in known if point.sm is not None and point.memory]
        self._times = [time for time, _ in shares]
        self._busy = [time for time, share in shares if share >= _IDLE]

    def within(self, span: CellSpan) -> float | None:
        """Return seconds; None if too few samples tell. A share of zero counts if the next reading, which reaches back, is zero, too."""
        end = float("inf") if span.end is None else span.end
        within = self._times[bisect_right(self._times, span.start) : bisect_left(self._times, end)]
        if len(within) < _FEWEST:
            return None
        idle = sum(bisect_left(self._busy, time) == bisect_right(self._busy, time + _LAG) for time in within)
        return ((within[-1] if span.end is None else end) - span.start) * idle / len(within)


def _point(time: float, gpus: Collection[Gpu], own: frozenset[int]) -> CurvePoint:
    """Return what some processes use of the GPUs they are on: memory, SM share as a mean, and power by their share of the energy."""
    memory, shares, watts = [], [], []
    for gpu in gpus:
        mine = [process for process in gpu.all_processes() if process.pid in own]
        memory += [process.memory_used for process in mine]
        share = _sum([process.sm_utilization for process in mine])
        shares.append(None if share is None else min(100.0, share))
        part = energy_share(gpu, own).value
        watts.append(None if part is None or gpu.power_draw is None else part * gpu.power_draw)
    total = _sum(shares)
    return CurvePoint(time, _sum(memory), None if total is None else total / max(1, len(shares)), _sum(watts))


def _sum(values: Sequence[float | None]) -> float | None:
    """Return a sum; None if a part is unknown."""
    return None if None in values else sum(value for value in values if value is not None)
