"""The ranks of one job beside each other: the figures of each, and which one the others wait for."""

from __future__ import annotations

from statistics import median

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from typing import Any

    from .summary import GpuSummary, Summary

_APART = 1.05  # times the median step time above which a rank steps on its own, not in step with the others
_TELLING = 0.05  # share of a step below which a difference is chance
_FLOOR = 0.002  # seconds per step below which nobody cares
_SLOW_CLOCK = 0.95  # times the others' SM clock
_NUMBERS = ("pid", "seconds", "steps", "step_p50", "step_p95", "step_max", "waited", "memory", "energy")


class RankSummary:
    """What one rank did. `waited` is its time spent waiting for data, `memory` the peak of its tensors in bytes, `gpu` the UUID of its GPU.

    `energy` is that of its GPU, if no other rank uses it. `done`: it has ended. None where unknown.
    """

    def __init__(self, rank: int, host: str = "", **told: Any) -> None:
        self.rank = rank
        self.host = host
        self.pid: int | None = told.get("pid")
        self.gpu: str | None = told.get("gpu")
        self.seconds: float = told.get("seconds") or 0.0
        self.steps: int = told.get("steps") or 0
        self.step_p50: float | None = told.get("step_p50")
        self.step_p95: float | None = told.get("step_p95")
        self.step_max: float | None = told.get("step_max")
        self.waited: float = told.get("waited") or 0.0
        self.memory: float | None = told.get("memory")
        self.energy: float | None = told.get("energy")
        self.done = bool(told.get("done"))
        self.device: GpuSummary | None = None

    @classmethod
    def from_plain(cls, plain: Mapping[str, Any]) -> RankSummary:
        """Return the figures in a file; raise ValueError or TypeError if it has none."""
        told: dict[str, Any] = {key: plain[key] for key in _NUMBERS if isinstance(plain.get(key), (int, float))}
        gpu = plain.get("gpu")
        host = str(plain.get("host") or "")[:64]
        return cls(int(plain["rank"]), host, **told, gpu=gpu if isinstance(gpu, str) else None, done=plain.get("done"))

    def to_plain(self) -> dict[str, Any]:
        """Return everything as plain data."""
        return {key: value for key, value in vars(self).items() if key not in ("device", "done")}

    @property
    def wait_per_step(self) -> float:
        """Seconds per step that it waited for data."""
        return self.waited / self.steps if self.steps else 0.0

    @property
    def busy(self) -> float | None:
        """The share of time in which its GPU computed, in percent; a GPU that waits in a collective hardly does."""
        active = None if self.device is None else self.device.stats.get("sm_active")
        return None if active is None else active.mean


class Straggler:
    """The rank that the others wait for: `excess` seconds per step, out of steps of `step` seconds.

    `together` if all step at the same pace, so that the others really wait. `reason` is data, throttled, clock, compute or nothing.
    `own` and `others` are the figures of the reason: seconds per step, MHz or percent.
    """

    def __init__(self, rank: RankSummary, excess: float, step: float, together: bool) -> None:
        self.rank = rank
        self.excess = excess
        self.step = step
        self.together = together
        self.reason = ""
        self.own: float | None = None
        self.others: float | None = None

    @property
    def percent(self) -> float:
        """How much longer than the others it needs for a step."""
        return 100.0 * self.excess / max(self.step - self.excess, 1e-9)

    def to_plain(self) -> dict[str, Any]:
        """Return everything as plain data."""
        plain = {key: value for key, value in vars(self).items() if key != "rank"}
        return {"rank": self.rank.rank, "percent": self.percent, **plain}


def with_devices(ranks: Sequence[RankSummary], summary: Summary, places: Mapping[int, str]) -> None:
    """Add what the summary of the machine says of each rank's GPU; `places` are the GPUs by PID, as the driver lists them."""
    gpus = {_bare(gpu.uuid): gpu for gpu in summary.gpus}
    for rank in ranks:
        rank.gpu = rank.gpu or places.get(rank.pid or 0)
    for rank in ranks:
        alone = sum(_bare(other.gpu) == _bare(rank.gpu) for other in ranks) == 1
        if rank.gpu is not None and alone and (gpu := gpus.get(_bare(rank.gpu))) is not None:
            rank.device = gpu
            rank.energy = gpu.energy if rank.energy is None else rank.energy
            rank.memory = gpu.peak_memory if rank.memory is None else rank.memory


def _bare(uuid: str | None) -> str:
    """Return a UUID without the first letters, which torch leaves out."""
    return (uuid or "").lower().removeprefix("gpu-")


def straggler(ranks: Sequence[RankSummary]) -> Straggler | None:
    """Return the rank that the others wait for, or that is slower than they are; None if they are alike or cannot be compared."""
    known = [rank for rank in ranks if rank.steps and rank.step_p50]
    if len(known) < 2:
        return None
    slowest = max(known, key=lambda rank: rank.step_p50 or 0.0)
    step, usual = slowest.step_p50 or 0.0, median(rank.step_p50 or 0.0 for rank in known if rank is not slowest)
    if step > _APART * usual:
        return _with_reason(Straggler(slowest, step - usual, step, together=False), known)
    # in step: all need the time of the slowest, and what tells them apart is how much of it each one works itself
    own = {rank.rank: _own_seconds(rank, step, all(one.busy is not None for one in known)) for rank in known}
    slowest = max(known, key=lambda rank: own[rank.rank])
    excess = own[slowest.rank] - median(own[rank.rank] for rank in known if rank is not slowest)
    if excess < max(_TELLING * step, _FLOOR):
        return None
    return _with_reason(Straggler(slowest, min(excess, step), step, together=True), known)


def _own_seconds(rank: RankSummary, step: float, with_gpu: bool) -> float:
    return rank.wait_per_step + (step * (rank.busy or 0.0) / 100.0 if with_gpu else 0.0)


def _with_reason(found: Straggler, ranks: Sequence[RankSummary]) -> Straggler:
    """Say what the rank has that the others have not: waits, a throttled or slower GPU, or more to compute."""
    rank, others = found.rank, [one for one in ranks if one is not found.rank]
    waits = median(one.wait_per_step for one in others)
    if rank.wait_per_step - waits >= found.excess / 2:
        found.reason, found.own, found.others = "data", rank.wait_per_step, waits
        return found
    gpu = rank.device
    if gpu is not None and gpu.throttled_seconds >= 0.1 * rank.seconds > 0:
        found.reason = "throttled"
        return found
    clocks = [one.device.stats["clock_sm"].mean for one in others if one.device and "clock_sm" in one.device.stats]
    if (
        gpu is not None
        and clocks
        and "clock_sm" in gpu.stats
        and gpu.stats["clock_sm"].mean < _SLOW_CLOCK * median(clocks)
    ):
        found.reason, found.own, found.others = "clock", gpu.stats["clock_sm"].mean, median(clocks)
        return found
    shares = [one.busy for one in others if one.busy is not None]
    if rank.busy is not None and shares and rank.busy > median(shares):
        found.reason, found.own, found.others = "compute", rank.busy, median(shares)
    return found
