"""A summary: the figures of one window of time as a value, with step times and model FLOPs utilization."""

from __future__ import annotations

import threading

from ..model.peaks import peak
from ..units import duration_text
from .own_use import OwnUse
from .series import WeightedSeries

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from typing import Any

    from ..model.stacks import CodeLine, TimedStack
    from ..model.verdict import Diagnosis
    from .run_comparison import RankSummary, Straggler


class Stats:
    """Mean, median, 95th percentile and extremes of one metric, weighted by time, in the metric's own unit."""

    __slots__ = ("max", "mean", "min", "p50", "p95")

    def __init__(self, mean: float, p50: float, p95: float, max: float, min: float) -> None:
        self.mean = mean
        self.p50 = p50
        self.p95 = p95
        self.max = max
        self.min = min

    @classmethod
    def of(cls, series: WeightedSeries) -> Stats:
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

    def to_plain(self) -> dict[str, float]:
        """Return the figures by name."""
        return {name: getattr(self, name) for name in ("mean", "p50", "p95", "max", "min")}

    def __repr__(self) -> str:
        return f"Stats(mean={self.mean:.6g}, p50={self.p50:.6g}, p95={self.p95:.6g}, max={self.max:.6g})"


class GpuSummary:
    """One GPU over one window.

    `index` is the driver's number, `ordinal` the one the program knows it by, None where nobody said. `stats` by catalog key.
    `own` is what the program itself used, where its processes are known. `energy` in joules is the program's share, or that of all
    processes (`device_energy`) where they are not; None if the window was too short to tell. `energy_estimated` if it was shared with
    others by SM time, or integrated from power because the GPU has no counter. `idle_energy` is what it drew while idle, from
    power. `idle_share` in per cent of the
    time, None when utilisation was never seen. `throttled_seconds` is the time heat, hardware or a power brake held the clocks
    down, `throttled` the same by reason; `power_capped` stands apart, because a healthy GPU at full load lives at its power cap.
    """

    def __init__(
        self,
        *,
        index: int | None,
        uuid: str | None,
        name: str | None,
        memory_total: float | None,
        stats: Mapping[str, Stats],
        energy: float | None,
        idle_share: float | None,
        throttled_seconds: float,
        throttled: Mapping[str, float],
        power_capped: float,
        state: str = "ok",
        energy_estimated: bool = False,
        idle_energy: float | None = None,
        device_energy: float | None = None,
        own: OwnUse | None = None,
    ) -> None:
        self.index = index
        self.ordinal: int | None = None
        self.uuid = uuid
        self.name = name
        self.memory_total = memory_total
        self.stats = stats
        self.energy = energy
        self.idle_share = idle_share
        self.throttled_seconds = throttled_seconds
        self.throttled = throttled
        self.power_capped = power_capped
        self.state = state
        self.energy_estimated = energy_estimated
        self.idle_energy = idle_energy
        self.device_energy = energy if device_energy is None else device_energy
        self.own = own or OwnUse()

    def __repr__(self) -> str:
        from ..model.brief import printable

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


class Summary:
    """One window: a phase, or the whole of a run.

    `waited` is the time in seconds the program said it waited for data, `steps`, `items` and `tokens` what it counted. `host` and
    `program` have figures by catalog key. `phases` are the windows within, in the order they first began. Known of a whole run
    only: `diagnosis` says what limited each GPU; `step_time` is how long a step took, in seconds, and `step_blocks` the means of
    consecutive steps, whose spread tells how far the run varied; `mfu` is the share of the dense peak, None if not asked for;
    `ranks` are the processes of the job, of `world` in all, and `straggler` the one that the others wait for.
    `code` are the lines of the program's code at which its GPUs waited and computed, the longest wait first, from `stacks`.
    """

    def __init__(
        self,
        name: str,
        seconds: float,
        *,
        samples: int,
        steps: int,
        items: float,
        waited: float,
        tokens: float = 0.0,
        gpus: Sequence[GpuSummary],
        host: Mapping[str, Stats],
        program: Mapping[str, Stats],
        phases: Sequence[Summary] = (),
        calls: int = 1,
        diagnosis: Diagnosis | None = None,
        step_time: Stats | None = None,
        code: Sequence[CodeLine] = (),
        stacks: Sequence[TimedStack] = (),
    ) -> None:
        self.name = name
        self.seconds = seconds
        self.samples = samples
        self.steps = steps
        self.items = items
        self.waited = waited
        self.tokens = tokens
        self.gpus = tuple(gpus)
        self.host = host
        self.program = program
        self.phases = tuple(phases)
        self.calls = calls
        self.diagnosis = diagnosis
        self.step_time = step_time
        self.step_blocks: Sequence[float] = ()
        self.mfu: Mfu | None = None
        self.ranks: Sequence[RankSummary] = ()
        self.straggler: Straggler | None = None
        self.world = 1
        self.code = list(code)
        self.stacks = list(stacks)

    @property
    def steps_per_second(self) -> float | None:
        """Steps against the time of the window; None when none were counted."""
        return self.steps / self.seconds if self.steps and self.seconds > 0 else None

    @property
    def items_per_second(self) -> float | None:
        """Items against the time of the window; None when none were counted."""
        return self.items / self.seconds if self.items and self.seconds > 0 else None

    @property
    def tokens_per_second(self) -> float | None:
        """Tokens against the time of the window; None when none were counted."""
        return self.tokens / self.seconds if self.tokens and self.seconds > 0 else None

    def energy_per(self, count: float) -> float | None:
        """Return the joules for each of `count` steps, items or tokens; None where either is unknown, or the program used no GPU."""
        used = any(gpu.own.used is not False for gpu in self.gpus)
        return None if self.energy is None or not count or not used else self.energy / count

    @property
    def energy(self) -> float | None:
        """Joules of all GPUs together, the program's share where that is known; None where no GPU tells."""
        known = [gpu.energy for gpu in self.gpus if gpu.energy is not None]
        return sum(known) if known else None

    def __repr__(self) -> str:
        from ..model.brief import printable

        name = f"{printable(self.name)}: " if self.name else ""
        gpus = f"{len(self.gpus)} GPU{'' if len(self.gpus) == 1 else 's'}"
        steps = f", {self.steps} step{'' if self.steps == 1 else 's'}" if self.steps else ""
        return f"<Summary {name}{duration_text(self.seconds)}, {gpus}{steps}>"

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
            "step_time": None if self.step_time is None else self.step_time.to_plain(),
            "flops_per_second": None if self.mfu is None else self.mfu.rate,
            "mfu": None if self.mfu is None else self.mfu.percent,
            "mfu_reason": None if self.mfu is None else self.mfu.reason or None,
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
            **(self._ranks_to_plain() if self.ranks else {}),
            **({"code": [line.to_plain() for line in self.code]} if self.code else {}),
        }

    def _ranks_to_plain(self) -> dict[str, Any]:
        ranks = [rank.to_plain() for rank in self.ranks]
        return {"ranks": ranks, "straggler": None if self.straggler is None else self.straggler.to_plain()}


MOST_BLOCKS = 128  # beyond, two neighbors become one: between 64 and 128 blocks for a run of any length


class StepTimes:
    """Counts how long each step took, from the end of one to the end of the next; thread-safe.

    `blocks` are the mean times of equally many consecutive steps. Their spread shows how far a run varies by itself, with pauses and
    slow stretches, which the spread of single steps does not: neighbors are alike.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
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
            return Stats.of(self._series) if self._series.seconds else None

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


class Mfu:
    """`percent` of the dense peak, None with the `reason` where it cannot be told; `rate` in operations per second, None if unknown."""

    __slots__ = ("percent", "rate", "reason")

    def __init__(self, percent: float | None, rate: float | None = None, reason: str = "") -> None:
        self.percent = percent
        self.rate = rate
        self.reason = reason


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
