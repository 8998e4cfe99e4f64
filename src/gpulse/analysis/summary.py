"""A summary: the figures of one window of time as a value, for people and for JSON."""

from __future__ import annotations

from ..units import duration_text
from .own_use import OwnUse

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from typing import Any

    from ..model.stacks import CodeLine, TimedStack
    from ..model.verdict import Diagnosis
    from .mfu import Mfu
    from .ranks import RankSummary, Straggler
    from .series import WeightedSeries


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
