"""Span: the figures of one GPU over one span of samples, all weighted by time, each worked out once when a rule needs it."""

from __future__ import annotations

from functools import cached_property
from itertools import pairwise

from ..readings import REST_SM
from .parts import parts_of
from .trace import TRACE_STEP
from .workload import BUSY_SM, weighted

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Collection, Sequence

    from ...model.verdict import Holder
    from .window import GpuWindow, ProcessSamples

# Bytes per second, per lane and direction, by generation.
_LANE = {1: 0.25e9, 2: 0.5e9, 3: 0.985e9, 4: 1.969e9, 5: 3.938e9, 6: 7.563e9, 7: 15.125e9}
# The driver's counters of seconds for throttle reasons that cost 0.04 ms to read; those of the hardware's own cost 1.1 ms each.
_COUNTERS = {"sw_power_cap": "throttle_time_power_cap", "sw_thermal_slowdown": "throttle_time_thermal"}
_COUNTED = 2.0  # seconds between two readings of a counter that make a rate
_TRACED = 0.8  # of a span that the driver's own samples must cover to stand for it
# Per cent. Measured on an H200 with a context that rests: 0 of the SMs, 0.01 of the engine, 18 of the power limit, full clocks.
_REST_ENGINE, _REST_USE = 0.1, 0.5
_REST_POWER, _IDLE_POWER = 0.5, 0.3  # of the limit; small cards rest at 0.4 with a context
_MEMORY = ("memory_used", "memory_unattributed")
_COPYING = 1e9  # bytes per second over PCIe from which utilization counts copies rather than kernels


class Span:
    """One GPU from place `first` up to, not including, `end`. Shares are 0–100, CPU figures in cores, rates in bytes per second.

    `worked` says whether a program computes in it, `peers` are the spans of the other GPUs of the same job. `interval` is the usual
    time between two samples.
    """

    def __init__(self, gpu: GpuWindow, first: int, end: int, active: Sequence[bool], worked: bool = True) -> None:
        self.gpu = gpu
        self.first = first
        self.end = end
        self.active = active
        self.worked = worked
        self.peers: Sequence[Span] = ()
        self.start_time = gpu.times[first] - gpu.weights[first]
        self.end_time = gpu.times[end - 1]
        self.interval = gpu.interval
        self.weights = gpu.weights[first:end]
        self.seconds = sum(self.weights)
        self._means: dict[str, float | None] = {}

    @property
    def places(self) -> range:
        """The places of its samples."""
        return range(self.first, self.end)

    @property
    def parts(self) -> dict[str, float]:
        """Where the time goes: shares (0–1) by part of a budget, which sum to 1."""
        return self._split[0]

    @property
    def estimated(self) -> set[str]:
        """The parts that are estimates."""
        return self._split[1]

    @cached_property
    def _split(self) -> tuple[dict[str, float], set[str]]:
        return parts_of(self)

    @property
    def states(self) -> dict[str, float]:
        """How often the main thread was seen in each state, as shares (0–1); empty where that is not known."""
        main = self.main
        seen = () if main is None else zip(main.at, main.states, strict=True)
        known = [state for at, state in seen if state is not None and self.first <= at < self.end]
        return {state: known.count(state) / len(known) for state in dict.fromkeys(known)}

    def values(self, key: str) -> Sequence[float | None]:
        """Return the values of a GPU metric."""
        return self.gpu.columns[key][self.first : self.end]

    def known(self, key: str) -> list[float]:
        """Return the values of a GPU metric that are there."""
        return [value for value in self.values(key) if value is not None]

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
        return max(self.known(key), default=None)

    def share_of(self, key: str, least: float) -> float:
        """Return the share of the known time (0–1) in which a metric was at least this high."""
        pairs = zip(self.values(key), self.weights, strict=True)
        known = [(value, weight) for value, weight in pairs if value is not None]
        total = sum(weight for _, weight in known)
        return sum(weight for value, weight in known if value >= least) / total if total > 0 else 0.0

    @property
    def detailed(self) -> bool:
        """Whether the GPU tells what its parts do (GPM), and not just that it is busy."""
        return self.mean("sm_active") is not None and self.mean("tensor_active") is not None

    @cached_property
    def busy(self) -> float | None:
        """Share of the time in which at least one kernel ran."""
        engine, sm, utilization = self.mean("graphics_active"), self.mean("sm_active"), self.mean("utilization")
        if engine is not None and utilization is None:
            return max(engine, sm or 0.0)
        # read at every sample, as SM activity is, rather than kept for seconds
        fresh = 2 * _changes(self.known("graphics_active")) >= _changes(self.known("sm_active"))
        if engine is not None and utilization is not None and fresh:
            return max(min(engine, 2 * utilization + 0.5), sm or 0.0)  # what the engine does counts as utilization too
        if utilization is None:
            return sm
        if engine is not None and max(self.mean("pcie_rx") or 0.0, self.mean("pcie_tx") or 0.0) >= _COPYING:
            return max(sm or 0.0, min(utilization, engine))  # copies count as utilization
        return max(utilization, sm or 0.0)

    @property
    def fill(self) -> float | None:
        """How much of the chip works while a kernel runs (0–1): SM activity over engine activity; None where it cannot be told."""
        busy, sm = self.busy, self.mean("sm_active")
        return None if busy is None or sm is None or busy < 0.5 else min(1.0, sm / busy)

    @cached_property
    def traced(self) -> list[tuple[float, float]]:
        """The driver's own samples of the utilization with their times; empty where they do not cover the span."""
        found = self.gpu.trace.between(self.start_time, self.end_time)
        return found if TRACE_STEP * len(found) >= _TRACED * self.seconds else []

    @cached_property
    def idle_share(self) -> float:
        """Share of the time (0–1) without any kernel: of the driver's own samples where it has them, else of ours."""
        if self.traced:
            return sum(value < 1.0 for _, value in self.traced) / len(self.traced)
        sm, use = self.values("sm_active"), self.values("utilization")
        idle = sum(weight for a, b, weight in zip(sm, use, self.weights, strict=True) if _is_idle(a, b))
        return idle / self.seconds if self.seconds > 0 else 0.0

    @cached_property
    def quiet(self) -> bool:
        """Whether the readings show that nothing ran: no activity in any sample of any kind, and no power that nothing would draw."""
        sm, use, engine = self.known("sm_active"), self.known("utilization"), sorted(self.known("graphics_active"))
        ran = (
            max(sm, default=0.0) > REST_SM
            or max((*use, *(value for _, value in self.traced)), default=0.0) >= _REST_USE
        )
        # what the engine did is kept for seconds after it was read, so that one value says little
        ran = ran or (bool(engine) and engine[len(engine) // 2] > _REST_ENGINE)
        return bool(sm or use) and not ran and (self.power_share or 0.0) < _REST_POWER

    @property
    def is_resting(self) -> bool:
        """Whether power and clocks are those of a GPU that nobody uses, as far as it tells them."""
        clock, most, power = self.mean("clock_sm"), self.gpu.last("clock_sm_max"), self.power_share
        return (
            power is None or power < _IDLE_POWER or (clock is not None and bool(most) and clock < 0.5 * (most or 0.0))
        )

    @cached_property
    def unlisted(self) -> float | None:
        """The most bytes in use that no listed process accounts for; None where the memory in use is not known."""
        found = []
        for at in self.places:
            listed, used, rest = self.gpu.processes[at], *(self.gpu.columns[key][at] for key in _MEMORY)
            if rest is None and listed is not None and used is not None:
                rest = used - listed.drawing - sum(process.memory_used or 0.0 for process, _ in listed)
            found += [rest] if rest is not None else []
        return max(found, default=None)

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

    @cached_property
    def tracks(self) -> list[ProcessSamples]:
        """The processes of this span, the one that holds the most memory first."""
        here = [track for track in self.gpu.tracks.values() if track.at[0] < self.end and track.at[-1] >= self.first]
        return sorted(here, key=lambda track: -_most_held(track))

    @property
    def own(self) -> list[ProcessSamples]:
        """The processes that are judged: those of the program whose report it is, else all."""
        chosen = self.gpu.own
        return self.tracks if chosen is None else [track for track in self.tracks if track.pid in chosen] or self.tracks

    @cached_property
    def main(self) -> ProcessSamples | None:
        """The process that the span is about: the one that works most, else the one that holds most."""
        return max(self.own, key=lambda track: (sm_share(track) or 0.0, _most_held(track)), default=None)

    def process_mean(self, key: str) -> float | None:
        """Return the mean of a metric of the main process over the span."""
        name = f"process {key}"
        if name not in self._means:
            self._means[name] = None if self.main is None else self.mean_of(self.main, key)
        return self._means[name]

    def mean_of(self, track: ProcessSamples, key: str) -> float | None:
        """Return the mean of a metric of any process over the span."""
        return track.mean(key, self.gpu.weights, self.places)

    @property
    def process_age(self) -> float | None:
        """How long the main process has been running at the end of the span, in seconds."""
        known = [] if self.main is None else self.main.between("running_time", 0, self.end)
        return known[-1][1] if known else None

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
        """Highest share of the memory in use, in percent of what programs can have."""
        used, total = self.high("memory_used"), self.gpu.last("memory_total")
        if used is None or not total:
            return None
        return 100.0 * used / max(1.0, total - (self.gpu.last("memory_reserved") or 0.0))

    def reasons_share(self, words: Collection[str]) -> float | None:
        """Return the share of the time (0–1) with any of these throttle reasons, None where that is not known.

        The driver's own counters of that time come first: reasons at samples are chance where they flicker.
        """
        counted = {word: self._counted(_COUNTERS[word]) for word in words if word in _COUNTERS}
        known = {word: share for word, share in counted.items() if share is not None}
        sampled = self._sampled(frozenset(words) - known.keys())
        return min(1.0, max(*known.values(), sampled or 0.0)) if known else sampled

    def _sampled(self, wanted: frozenset[str]) -> float | None:
        """Return the share of the samples (0–1) with any of these reasons, None where no sample has them."""
        total = sum(self._reasons.values())
        held = sum(weight for reasons, weight in self._reasons.items() if not wanted.isdisjoint(reasons))
        return held / total if total > 0 else None

    @cached_property
    def _reasons(self) -> dict[tuple[str, ...], float]:
        """The seconds in which the samples told each set of throttle reasons."""
        found: dict[tuple[str, ...], float] = {}
        for row, weight in zip(self.gpu.rows[self.first : self.end], self.weights, strict=True):
            if row.reasons is not None:
                found[row.reasons] = found.get(row.reasons, 0.0) + weight
        return found

    def _counted(self, key: str) -> float | None:
        """Return by how much a counter of seconds grew per second; None where it was read less than twice."""
        pairs = zip(self.gpu.times[self.first : self.end], self.values(key), strict=True)
        known = [(time, value) for time, value in pairs if value is not None]
        if len(known) < 2 or known[-1][0] - known[0][0] < _COUNTED:
            return None
        grown = sum(max(0.0, later - earlier) for (_, earlier), (_, later) in pairwise(known))
        return grown / (known[-1][0] - known[0][0])


def holder_of(track: ProcessSamples) -> Holder:
    """Return a process as a value."""
    from ...model.verdict import Holder

    process = track.process
    held = track.known("memory_used")
    job = process.job or process.pod or process.container or ""
    texts = (process.name or "", process.user or "", process.command or "")
    return Holder(track.pid, *texts, job=job, memory=held[-1] if held else None)


def link_rate(generation: float | None, width: float | None) -> float | None:
    """Return the bytes per second of a PCIe link in one direction, None when it is not known."""
    if generation is None or width is None or int(generation) not in _LANE:
        return None
    return _LANE[int(generation)] * width


def sm_share(track: ProcessSamples, span: Span | None = None) -> float | None:
    """Return the mean of the SM shares of a process, which the driver tells for some samples only; of a span, or of all."""
    known = [
        value for at, value in track.between("sm_utilization", 0, track.at[-1] + 1) if span is None or at in span.places
    ]
    return sum(known) / len(known) if known else None


def _most_held(track: ProcessSamples) -> float:
    return max(track.known("memory_used"), default=0.0)


def _changes(known: Sequence[float]) -> int:
    return sum(one != other for one, other in pairwise(known))


def _is_idle(sm: float | None, utilization: float | None) -> bool:
    if sm is None and utilization is None:
        return False
    return (sm or 0.0) < BUSY_SM and (utilization or 0.0) < 1.0
