"""Load: the figures of one GPU over one stretch of samples, all weighted by time, each worked out once when a rule needs it."""

from __future__ import annotations

from itertools import pairwise

from .window import TRACE_STEP
from .workload import BUSY_SM

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from ...model.verdict import Holder
    from .window import GpuWindow, ProcessTrack

_LANE = {
    1: 0.25e9,
    2: 0.5e9,
    3: 0.985e9,
    4: 1.969e9,
    5: 3.938e9,
    6: 7.563e9,
    7: 15.125e9,
}  # bytes/s per lane and direction
# The driver's counters of seconds for throttle reasons that cost 0.04 ms to read; those of the hardware's own cost 1.1 ms each.
_COUNTERS = {"sw_power_cap": "throttle_time_power_cap", "sw_thermal_slowdown": "throttle_time_thermal"}
_COUNTED = 2.0  # seconds between two readings of a counter that make a rate
_TRACED = 0.8  # of a stretch that the driver's own samples must cover to stand for it
_PARTLY, _DEEP, _WHOLE = (
    0.25,
    0.7,
    0.95,
)  # of a sample without work: at the edge of a pause, in its emptiest sample, inside
_COPYING = 1e9  # bytes per second over PCIe from which utilization counts copies rather than kernels


class Load:
    """One GPU from place `first` up to, not including, `end`. Shares are 0–100, CPU figures in cores, rates in bytes per second."""

    def __init__(self, gpu: GpuWindow, first: int, end: int, active: Sequence[bool]) -> None:
        self.gpu = gpu
        self.first = first
        self.end = end
        self.active = active
        self.weights = gpu.weights[first:end]
        self.seconds = sum(self.weights)
        self._means: dict[str, float | None] = {}
        self._chosen: set[int] | None = None
        self._idle: float | None = None
        self._busy: float | None = None
        self._busy_known = False
        self._tracks: list[ProcessTrack] | None = None
        self._main: ProcessTrack | None = None
        self._main_known = False
        self._traced: list[tuple[float, float]] | None = None
        self._parts: tuple[dict[str, float], set[str]] | None = None

    @property
    def parts(self) -> dict[str, float]:
        """Where the time of this stretch goes: shares (0–1) by part of a budget, which sum to 1."""
        return self._split()[0]

    @property
    def estimated(self) -> set[str]:
        """The parts that are estimates."""
        return self._split()[1]

    def _split(self) -> tuple[dict[str, float], set[str]]:
        if self._parts is None:
            from .parts import parts_of

            self._parts = parts_of(self)
        return self._parts

    @property
    def states(self) -> dict[str, float]:
        """How often the main thread was seen in each state, as shares (0–1); empty where that is not known."""
        main = self.main
        known = (
            []
            if main is None
            else [
                state
                for at, state in zip(main.at, main.states, strict=True)
                if state is not None and self.first <= at < self.end
            ]
        )
        return {state: known.count(state) / len(known) for state in dict.fromkeys(known)}

    @property
    def start_time(self) -> float:
        """When the stretch began."""
        return self.gpu.times[self.first] - self.gpu.weights[self.first]

    @property
    def end_time(self) -> float:
        """When the stretch ended."""
        return self.gpu.times[self.end - 1]

    @property
    def interval(self) -> float:
        """The usual time between two samples."""
        return self.gpu.interval

    def values(self, key: str) -> Sequence[float | None]:
        """Return the values of a GPU metric in this stretch."""
        return self.gpu.columns[key][self.first : self.end]

    def mean(self, key: str) -> float | None:
        """Return the mean of a GPU metric, None when it is never there."""
        if key not in self._means:
            self._means[key] = weighted(self.values(key), self.weights)
        return self._means[key]

    def host(self, key: str) -> float | None:
        """Return the mean of a host metric, None when it is never there."""
        name = f"host {key}"
        if name not in self._means:
            self._means[name] = weighted(self.gpu.host[key][self.first : self.end], self.weights)
        return self._means[name]

    def high(self, key: str) -> float | None:
        """Return the highest value of a GPU metric."""
        return max((value for value in self.values(key) if value is not None), default=None)

    def share_of(self, key: str, least: float) -> float:
        """Return the share of the known time (0–1) in which a metric was at least so high."""
        known = [
            (value, weight) for value, weight in zip(self.values(key), self.weights, strict=True) if value is not None
        ]
        total = sum(weight for _, weight in known)
        return sum(weight for value, weight in known if value >= least) / total if total > 0 else 0.0

    @property
    def detailed(self) -> bool:
        """Whether the GPU tells what its parts do (GPM), and not just that it is busy."""
        return self.mean("sm_active") is not None and self.mean("tensor_active") is not None

    @property
    def busy(self) -> float | None:
        """Share of the time in which at least one kernel ran."""
        if not self._busy_known:
            self._busy_known, self._busy = True, self._busy_share()
        return self._busy

    def _busy_share(self) -> float | None:
        engine, sm, utilization = self.mean("graphics_active"), self.mean("sm_active"), self.mean("utilization")
        if engine is not None and utilization is None:
            return max(engine, sm or 0.0)
        if engine is not None and utilization is not None and self._fresh("graphics_active"):
            return max(min(engine, 2 * utilization + 0.5), sm or 0.0)  # what the engine does counts as utilization too
        if utilization is None:
            return sm
        if engine is not None and max(self.mean("pcie_rx") or 0.0, self.mean("pcie_tx") or 0.0) >= _COPYING:
            return max(sm or 0.0, min(utilization, engine))  # copies count as utilization
        return max(utilization, sm or 0.0)

    def _fresh(self, key: str) -> bool:
        """Tell whether a metric is read at every sample, as SM activity is, rather than kept for seconds."""
        return 2 * _changes(self.values(key)) >= _changes(self.values("sm_active"))

    @property
    def fill(self) -> float | None:
        """How much of the chip works while a kernel runs (0–1): SM activity over engine activity; None where it cannot be told."""
        busy, sm = self.busy, self.mean("sm_active")
        return None if busy is None or sm is None or busy < 0.5 else min(1.0, sm / busy)

    @property
    def traced(self) -> list[tuple[float, float]]:
        """The driver's own samples of the utilization with their times; empty where they do not cover the stretch."""
        if self._traced is None:
            found = self.gpu.trace.between(self.start_time, self.end_time)
            self._traced = found if TRACE_STEP * len(found) >= _TRACED * self.seconds else []
        return self._traced

    @property
    def idle_share(self) -> float:
        """Share of the time (0–1) without any kernel: of the driver's own samples where it has them, else of ours."""
        if self._idle is None:
            if self.traced:
                self._idle = sum(value < 1.0 for _, value in self.traced) / len(self.traced)
                return self._idle
            sm, use = self.values("sm_active"), self.values("utilization")
            idle = sum(weight for a, b, weight in zip(sm, use, self.weights, strict=True) if _is_idle(a, b))
            self._idle = idle / self.seconds if self.seconds > 0 else 0.0
        return self._idle

    @property
    def power_share(self) -> float | None:
        """Power draw over the limit in force (0–1)."""
        draw, limit = self.mean("power_draw"), self.mean("power_limit") or self.mean("power_default_limit")
        return None if draw is None or not limit else draw / limit

    @property
    def link(self) -> float | None:
        """What the PCIe link can carry in one direction as it is now, in bytes per second."""
        return link_rate(self.high("pcie_gen"), self.high("pcie_width"))

    @property
    def cores(self) -> float | None:
        """Processors of the machine."""
        return self.host("cpu_count")

    @property
    def places(self) -> set[int]:
        """The places of this stretch."""
        if self._chosen is None:
            self._chosen = set(range(self.first, self.end))
        return self._chosen

    @property
    def tracks(self) -> list[ProcessTrack]:
        """The processes of this stretch, the one that holds the most memory first."""
        if self._tracks is None:
            here = [
                track for track in self.gpu.tracks.values() if track.at[0] < self.end and track.at[-1] >= self.first
            ]
            self._tracks = sorted(here, key=lambda track: -max(track.known("memory_used"), default=0.0))
        return self._tracks

    @property
    def own(self) -> list[ProcessTrack]:
        """The processes that are judged: those of the program whose report it is, else all."""
        chosen = self.gpu.own
        return self.tracks if chosen is None else [track for track in self.tracks if track.pid in chosen] or self.tracks

    @property
    def main(self) -> ProcessTrack | None:
        """The process that the stretch is about: the one that works most, else the one that holds most."""
        if not self._main_known:
            self._main_known = True
            self._main = max(self.own, key=self._importance, default=None)
        return self._main

    def _importance(self, track: ProcessTrack) -> tuple[float, float]:
        work = track.known("sm_utilization")
        return (sum(work) / len(work) if work else 0.0, max(track.known("memory_used"), default=0.0))

    def process_mean(self, key: str) -> float | None:
        """Return the mean of a metric of the main process over the stretch."""
        name = f"process {key}"
        if name not in self._means:
            main = self.main
            self._means[name] = None if main is None else main.mean(key, self.gpu.weights, self.places)
        return self._means[name]

    @property
    def process_age(self) -> float | None:
        """How long the main process has been running at the end of the stretch, in seconds."""
        known = (
            []
            if self.main is None
            else [
                (at, age)
                for at, age in zip(self.main.at, self.main.values["running_time"], strict=True)
                if age is not None
            ]
        )
        here = [age for at, age in known if at < self.end]
        return here[-1] if here else None

    @property
    def cpu_main(self) -> float | None:
        """Cores that the main process itself uses."""
        share = self.process_mean("cpu_percent")
        return None if share is None else share / 100.0

    @property
    def cpu_tree(self) -> float | None:
        """Cores that the main process and all its descendants use."""
        share = self.process_mean("tree_cpu_percent")
        main = self.cpu_main
        return main if share is None else max(share / 100.0, main or 0.0)

    @property
    def workers(self) -> float:
        """Number of descendants of the main process, loader workers for instance."""
        return self.process_mean("children") or 0.0

    @property
    def cpu_workers(self) -> float:
        """Cores that the descendants of the main process use."""
        return max(0.0, (self.cpu_tree or 0.0) - (self.cpu_main or 0.0))

    @property
    def memory_share(self) -> float | None:
        """Highest share of the memory in use, in per cent of what programs can have."""
        used, total = self.high("memory_used"), self.gpu.last("memory_total")
        if used is None or not total:
            return None
        return 100.0 * used / max(1.0, total - (self.gpu.last("memory_reserved") or 0.0))

    def reasons_share(self, words: Sequence[str]) -> float | None:
        """Return the share of the time (0–1) with any of these throttle reasons, None where that is not known.

        The driver's own counters of that time come first: reasons at samples are chance where they flicker.
        """
        counted = {word: self._counted(_COUNTERS[word]) for word in words if word in _COUNTERS}
        known = {word: share for word, share in counted.items() if share is not None}
        sampled = self._sampled(frozenset(words) - known.keys())
        if not known:
            return sampled
        return min(1.0, max(max(known.values()), sampled or 0.0))

    def _sampled(self, wanted: frozenset[str]) -> float | None:
        """Return the share of the samples (0–1) with any of these reasons, None where no sample has them."""
        rows = self.gpu.rows[self.first : self.end]
        told = [
            (weight, row.reasons) for row, weight in zip(rows, self.weights, strict=True) if row.reasons is not None
        ]
        total = sum(weight for weight, _ in told)
        if total <= 0:
            return None
        return sum(weight for weight, reasons in told if not wanted.isdisjoint(reasons)) / total

    def _counted(self, key: str) -> float | None:
        """Return by how much a counter of seconds grew per second; None where it was read less than twice."""
        known = [
            (time, value)
            for time, value in zip(self.gpu.times[self.first : self.end], self.values(key), strict=True)
            if value is not None
        ]
        if len(known) < 2 or known[-1][0] - known[0][0] < _COUNTED:
            return None
        grown = sum(max(0.0, later - earlier) for (_, earlier), (_, later) in pairwise(known))
        return grown / (known[-1][0] - known[0][0])

    def holders(self) -> tuple[Holder, ...]:
        """Return the main process as a value, empty when it is not known."""
        return () if self.main is None else (holder_of(self.main),)


def holder_of(track: ProcessTrack) -> Holder:
    """Return a process as a value."""
    from ...model.verdict import Holder

    process = track.process
    held = track.known("memory_used")
    job = process.job or process.pod or process.container or ""
    texts = (process.name or "", process.user or "", process.command or "")
    return Holder(track.pid, *texts, job=job, memory=held[-1] if held else None)


def weighted(values: Sequence[float | None], weights: Sequence[float]) -> float | None:
    """Return the mean of the values that are there, weighted by time."""
    total = area = 0.0
    seen = False
    for value, weight in zip(values, weights, strict=True):
        if value is not None:
            seen = True
            total += weight
            area += value * weight
    return area / total if total > 0 else (0.0 if seen else None)


def link_rate(generation: float | None, width: float | None) -> float | None:
    """Return the bytes per second of a PCIe link in one direction, None when it is not known."""
    if generation is None or width is None or int(generation) not in _LANE:
        return None
    return _LANE[int(generation)] * width


def _changes(values: Sequence[float | None]) -> int:
    known = [value for value in values if value is not None]
    return sum(1 for one, other in pairwise(known) if one != other)


def _is_idle(sm: float | None, utilization: float | None) -> bool:
    if sm is None and utilization is None:
        return False
    return (sm or 0.0) < BUSY_SM and (utilization or 0.0) < 1.0
