"""A summary: the figures of one window of time as a value, with the series of values, step times and FLOPs behind it."""

from __future__ import annotations

import threading
from array import array

from ..model.peaks import peak
from ..units import count_text, duration_text
from ..value import Value, fresh
from .energy import sum_known
from .own_use import OwnUse

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from typing import Any

    from ..model.stacks import CodeLine, TimedStack
    from ..model.verdict import Diagnosis
    from .run_comparison import RankSummary, Straggler

_MOST = 4096  # values kept; beyond, one of two neighbours stands for both, which moves a percentile by far less than it varies


class WeightedSeries:
    """Values with the seconds each stood for. Mean, lowest and highest are exact for any length, percentiles nearly so."""

    __slots__ = (
        "_dice", "_pending", "_seconds", "_stride", "_sum", "_values", "_within", "highest", "lowest", "seconds",
    )  # fmt: skip

    def __init__(self) -> None:
        self.seconds = 0.0
        self.lowest = float("inf")
        self.highest = float("-inf")
        self._sum = 0.0
        self._values = array("d")
        self._seconds = array("d")
        self._stride = 1
        self._pending = (0, 0.0, 0.0)
        self._dice = 1
        self._within = False

    def add(self, value: float, seconds: float, within: bool = True) -> None:
        """Add a value that held for `seconds`; durations of 0 or less are ignored.

        One that was read outside, not `within`, is no extreme while there are others.
        """
        if seconds <= 0:
            return
        if within and not self._within:
            self.lowest, self.highest = float("inf"), float("-inf")
        if within or not self._within:
            self.lowest = min(self.lowest, value)
            self.highest = max(self.highest, value)
        self._within = self._within or within
        self.seconds += seconds
        self._sum += value * seconds
        count, kept, gathered = self._pending
        count, kept, gathered = count + 1, self._one_of(kept, gathered, value, seconds), gathered + seconds
        if count < self._stride:
            self._pending = (count, kept, gathered)
            return
        self._pending = (0, 0.0, 0.0)
        self._values.append(kept)
        self._seconds.append(gathered)
        if len(self._values) > _MOST:
            self._thin()

    @property
    def mean(self) -> float | None:
        """The mean over time; None when nothing was added."""
        return self._sum / self.seconds if self.seconds else None

    def percentile(self, percent: float) -> float | None:
        """Return the value that the series stays at or below for this share of its time; None when nothing was added."""
        return self.percentiles(percent)[0]

    def percentiles(self, *percents: float) -> list[float | None]:
        """Return several percentiles, each larger than the one before: the values are sorted once."""
        if not self.seconds or not self._values:
            return [self.highest if self.seconds else None for _ in percents]
        total, spent, found = sum(self._seconds), 0.0, []
        pairs = iter(sorted(zip(self._values, self._seconds, strict=True)))
        value = self.lowest
        for percent in percents:
            while spent < total * percent / 100.0 - 1e-9 or not spent:
                value, seconds = next(pairs, (value, total))
                spent += seconds
            found.append(value)
        return [*found]

    def _thin(self) -> None:
        self._stride *= 2
        values, seconds = self._values, self._seconds
        pairs = [(at, at + 1) for at in range(0, len(values) - 1, 2)]
        self._values = array("d", (self._one_of(values[a], seconds[a], values[b], seconds[b]) for a, b in pairs))
        self._seconds = array("d", (seconds[a] + seconds[b] for a, b in pairs))
        if len(values) % 2:
            self._values.append(values[-1])
            self._seconds.append(seconds[-1])

    def _one_of(self, first: float, seconds: float, second: float, others: float) -> float:
        """Choose by lot, each by its time: always the same place would show only half of what comes and goes in turn."""
        if not seconds:
            return second
        self._dice = (self._dice * 1103515245 + 12345) & 0x7FFFFFFF
        return first if self._dice < 0x80000000 * seconds / (seconds + others) else second


class Stats(Value):
    """Mean, median, 95th percentile and extremes of one metric, weighted by time, in the metric's own unit."""

    mean: float
    p50: float
    p95: float
    max: float
    min: float

    @classmethod
    def from_series(cls, series: WeightedSeries) -> Stats:
        """Return the figures of a series that has at least one value."""
        mean, (p50, p95) = series.mean, series.percentiles(50, 95)
        assert mean is not None
        assert p50 is not None
        assert p95 is not None
        # what was read just outside a window is in its mean, but is no extreme
        mean, p50, p95 = (min(max(value, series.lowest), series.highest) for value in (mean, p50, p95))
        return cls(mean, p50, p95, series.highest, series.lowest)

    def with_mean(self, mean: float) -> Stats:
        """Return these figures with a mean that is known better."""
        return Stats(mean, self.p50, self.p95, max(self.max, mean), min(self.min, mean))

    def __repr__(self) -> str:
        return f"Stats(mean={self.mean:.6g}, p50={self.p50:.6g}, p95={self.p95:.6g}, max={self.max:.6g})"


class GpuSummary(Value):
    """One GPU over one window.

    `index` is the driver's number, `ordinal` the one the program knows it by, None where nobody said. `stats` by catalog key. `own` is
    what the program itself used, where its processes are known. `energy` in joules is the program's share, or that of all processes
    (`device_energy`) where they are not; None if the window was too short to tell. `energy_estimated` if it was shared with others by
    SM time, or integrated from power because the GPU has no counter. `idle_energy` is what it drew while idle, from power. `idle_share`
    in percent of the time, None when utilization was never seen. `throttled_seconds` is the time heat, hardware or a power brake held
    the clocks down, `throttled` the same by reason; `power_capped` stands apart, because a healthy GPU at full load lives at its power
    cap.
    """

    index: int | None
    uuid: str | None
    name: str | None
    memory_total: float | None
    stats: Mapping[str, Stats]
    energy: float | None
    idle_share: float | None
    throttled_seconds: float
    throttled: Mapping[str, float]
    power_capped: float
    state: str = "ok"
    energy_estimated: bool = False
    idle_energy: float | None = None
    device_energy: float | None = None
    own: OwnUse = fresh(factory=OwnUse)
    ordinal: int | None = None

    def __repr__(self) -> str:
        from ..model.codec import printable

        busy = self.stats.get("utilization")
        share = "" if busy is None else f": {busy.mean:.0f} %"
        return f"<GpuSummary {'?' if self.index is None else self.index} {printable(self.name or '?')}{share}>"

    @property
    def peak_memory(self) -> float | None:
        """The most memory the program was seen to hold, or all processes where its own are not known; spikes between samples are missed."""
        if self.own.used is not None:
            return self.own.memory_peak if self.own.used else 0.0
        used = self.stats.get("memory_used")
        return None if used is None else used.max

    def to_plain(self) -> dict[str, Any]:
        """Return everything as plain data."""
        names = ("index", "ordinal", "uuid", "name", "state", "memory_total", "peak_memory", "energy", "energy_estimated",
                 "device_energy", "idle_energy", "idle_share", "throttled_seconds")  # fmt: skip
        return {name: getattr(self, name) for name in names} | {
            "throttled": dict(self.throttled),
            "power_capped_seconds": self.power_capped,
            "own": self.own.to_plain(),
            "stats": {key: stats.to_plain() for key, stats in self.stats.items()},
        }


class Summary(Value):
    """One window: a phase, or the whole of a run.

    `waited` is the time in seconds the program said it waited for data, `steps`, `items` and `tokens` what it counted. `host` and
    `program` have figures by catalog key. `phases` are the windows within, in the order they first began. Known of a whole run
    only: `diagnosis` says what limited each GPU; `step_time` is how long a step took, in seconds, and `step_blocks` the means of
    consecutive steps, whose spread tells how far the run varied; `mfu` is the share of the dense peak, None if not asked for;
    `ranks` are the processes of the job, of `world` in all, and `straggler` the one that the others wait for.
    `code` are the lines of the program's code at which its GPUs waited and computed, the longest wait first, from `stacks`.
    """

    name: str
    seconds: float
    samples: int
    steps: int
    items: float
    waited: float
    gpus: tuple[GpuSummary, ...]
    host: Mapping[str, Stats]
    program: Mapping[str, Stats]
    tokens: float = 0.0
    phases: Sequence[Summary] = ()
    calls: int = 1
    diagnosis: Diagnosis | None = None
    step_time: Stats | None = None
    step_blocks: Sequence[float] = ()
    mfu: Mfu | None = None
    ranks: Sequence[RankSummary] = ()
    straggler: Straggler | None = None
    world: int = 1
    code: Sequence[CodeLine] = ()
    stacks: Sequence[TimedStack] = ()

    @property
    def steps_per_second(self) -> float | None:
        """Steps against the time of the window; None when none were counted."""
        return self._rate(self.steps)

    @property
    def items_per_second(self) -> float | None:
        """Items against the time of the window; None when none were counted."""
        return self._rate(self.items)

    @property
    def tokens_per_second(self) -> float | None:
        """Tokens against the time of the window; None when none were counted."""
        return self._rate(self.tokens)

    def _rate(self, count: float) -> float | None:
        return count / self.seconds if count and self.seconds > 0 else None

    def energy_per(self, count: float) -> float | None:
        """Return the joules for each of `count` steps, items or tokens; None where either is unknown, or the program used no GPU."""
        used = any(gpu.own.used is not False for gpu in self.gpus)
        return None if self.energy is None or not count or not used else self.energy / count

    @property
    def energy(self) -> float | None:
        """Joules of all GPUs together, the program's share where that is known; None where no GPU tells."""
        return sum_known(gpu.energy for gpu in self.gpus)

    def __repr__(self) -> str:
        from ..model.codec import printable

        name = f"{printable(self.name)}: " if self.name else ""
        steps = f", {count_text(self.steps, 'step')}" if self.steps else ""
        return f"<Summary {name}{duration_text(self.seconds)}, {count_text(len(self.gpus), 'GPU')}{steps}>"

    def _repr_html_(self) -> str:
        """Return an HTML table for notebooks; the renderer is in a higher layer, so it is looked up through the package."""
        import gpulse

        return gpulse.summary_html(self)

    def phase(self, name: str) -> Summary | None:
        """Return the phase of this name, None when there was none."""
        return next((phase for phase in self.phases if phase.name == name), None)

    def to_plain(self) -> dict[str, Any]:
        """Return everything as plain data, ready for JSON."""
        names = ("name", "calls", "seconds", "samples", "steps", "steps_per_second", "items", "items_per_second", "tokens",
                 "tokens_per_second")  # fmt: skip
        return {name: getattr(self, name) for name in names} | {
            "step_time": self.step_time and self.step_time.to_plain(),
            "flops_per_second": self.mfu and self.mfu.rate,
            "mfu": self.mfu and self.mfu.percent,
            "mfu_reason": (self.mfu and self.mfu.reason) or None,
            "energy_per_step": self.energy_per(self.steps),
            "energy_per_item": self.energy_per(self.items),
            "energy_per_token": self.energy_per(self.tokens),
            "data_wait_seconds": self.waited,
            "energy": self.energy,
            "gpus": [gpu.to_plain() for gpu in self.gpus],
            "host": {key: stats.to_plain() for key, stats in self.host.items()},
            "process": {key: stats.to_plain() for key, stats in self.program.items()},
            "phases": [phase.to_plain() for phase in self.phases],
            **({} if self.diagnosis is None else {"diagnosis": self.diagnosis.to_plain()}),
            **({"ranks": [rank.to_plain() for rank in self.ranks]} if self.ranks else {}),
            **({"straggler": self.straggler and self.straggler.to_plain()} if self.ranks else {}),
            **({"code": [line.to_plain() for line in self.code]} if self.code else {}),
        }


MOST_BLOCKS = 128  # beyond, two neighbors become one: between 64 and 128 blocks for a run of any length


class StepTimes:
    """Counts how long each step took, from the end of one to the end of the next; thread-safe.

    `blocks` are the mean times of equally many consecutive steps. Their spread shows how far a run varies by itself, with pauses and
    slow stretches, which the spread of single steps does not: neighbors are alike.
    """

    def __init__(self) -> None:
        self._lock = threading.RLock()
        self._series = WeightedSeries()
        self._blocks: list[float] = []  # mean seconds of a step
        self._size = 1  # steps in a block
        self._open = [0.0, 0.0]  # seconds and steps of the block that is not full yet
        self._told: tuple[float, Stats | None] = (0.0, None)

    def add(self, seconds: float, steps: int = 1) -> None:
        """Add the time that this number of steps took together."""
        if seconds < 0 or steps < 1:
            return
        with self._lock:
            self._series.add(seconds / steps, steps)
            self._open[0] += seconds
            self._open[1] += steps
            if self._open[1] >= self._size:
                self._blocks.append(self._open[0] / self._open[1])
                self._open = [0.0, 0.0]
                if len(self._blocks) > MOST_BLOCKS:
                    self._merge()

    @property
    def stats(self) -> Stats | None:
        """Mean, percentiles and extremes in seconds; None before the second step."""
        with self._lock:
            return Stats.from_series(self._series) if self._series.seconds else None

    @property
    def recent(self) -> Stats | None:
        """The same for who asks every second: percentiles may be those of up to 3 % fewer steps, since sorting takes milliseconds."""
        steps, stats = self._told
        series = self._series
        if stats is None or series.seconds > 1.03 * steps:
            stats = self.stats
            self._told = series.seconds, stats
        elif series.seconds > steps and (mean := series.mean) is not None:
            stats = Stats(mean, stats.p50, stats.p95, series.highest, series.lowest)
        return stats

    @property
    def blocks(self) -> list[float]:
        """The mean time of a step in each full block, in seconds and in order."""
        with self._lock:
            return [*self._blocks]

    def _merge(self) -> None:
        pairs = zip(self._blocks[::2], self._blocks[1::2], strict=False)
        odd = self._blocks[-1] if len(self._blocks) % 2 else None
        self._blocks = [(one + other) / 2 for one, other in pairs]
        self._size *= 2
        if odd is not None:  # the last block has no partner yet: it is the first half of the next one
            self._open = [odd * self._size / 2, self._size / 2]


class Mfu(Value):
    """`percent` of the dense peak, None with the `reason` where it cannot be told; `rate` in operations per second, None if unknown."""

    percent: float | None
    rate: float | None = None
    reason: str = ""


def mfu(per_second: Mapping[str, float], models: Sequence[str], reason: str = "") -> Mfu:
    """Return the utilization of GPUs of these models; `per_second` are operations per second by data type, "" for an unknown one.

    Several types share the time: each needs its part at its own peak.
    """
    rate = sum(per_second.values())
    if not rate:
        return Mfu(None, None, reason or "no step was counted")
    if "" in per_second:
        return Mfu(None, rate, 'the data type is not known: pass dtype="bfloat16" or whichever your model computes in')
    if not models:
        return Mfu(None, rate, "the program used no GPU that was sampled")
    share = 0.0
    for dtype, flops in per_second.items():
        peaks = []
        for model in models:
            if (most := peak(model, dtype)) is None:
                return Mfu(None, rate, f"the dense {dtype} peak of {model} is not known")
            peaks.append(most)
        share += flops / sum(peaks)
    return Mfu(100.0 * share, rate)
