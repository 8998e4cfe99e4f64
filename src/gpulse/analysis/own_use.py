"""Own use: what a program itself used of each GPU in a window of time, and who else was there."""

from __future__ import annotations

from ..value import Value, fresh
from .readings import HIDDEN, is_another

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Collection, Mapping, Sequence
    from typing import Any

    from ..model.catalog import Gpu, Process
    from ..model.verdict import Diagnosis, Verdict

_MOST_OTHERS = 64  # processes of others that are kept by name


class OtherProcess(Value):
    """A process on a GPU that does not belong to the program: its peak memory, and its mean SM share in percent; None if unknown."""

    pid: int
    user: str | None
    name: str | None
    memory: float | None
    sm_utilization: float | None


class OwnUse(Value):
    """What a program, with all its processes (`pids`), used of one GPU in a window of time.

    `used`: whether any of them was on the GPU; None where processes cannot be told apart, for example in a container. Otherwise
    `memory_peak` is in bytes, `sm_utilization` the mean share of time in which its kernels ran, in percent, and `energy` in joules;
    None if unknown. `energy_estimated` if the energy was shared with `others` by SM time. `alone`: no other process ran kernels.
    """

    used: bool | None = None
    pids: Collection[int] = ()
    memory_peak: float | None = None
    sm_utilization: float | None = None
    energy: float | None = None
    energy_estimated: bool = False
    others: Sequence[OtherProcess] = ()

    @property
    def alone(self) -> bool:
        """Whether what the GPU did is what the program did: no other process is known to have run kernels, or may have."""
        return self.used is True and all(other.sm_utilization == 0 for other in self.others)

    def to_plain(self) -> dict[str, Any]:
        """Return everything as plain data."""
        return super().to_plain() | {"pids": sorted(self.pids)}


class OwnTally:
    """The use of one GPU by a program over one window, added up sample by sample."""

    __slots__ = (
        "_charged", "_drawn", "_gone", "_joules", "_others", "_pending", "_since", "_sm", "_weight", "known", "memory", "pids", "share",
    )  # fmt: skip

    def __init__(self) -> None:
        self.known = False  # whether any sample could tell whose processes are on the GPU
        self.pids: set[int] = set()
        self.memory: float | None = None
        self.share = EnergyShare(None, False)  # at the last sample with processes
        self._sm: Mean | None = None
        self._others: dict[int, _Other] = {}
        self._gone: list[_Other] = []  # whose PID was given to another process
        self._charged = False
        self._joules = Charged()  # by the energy counter
        self._drawn = Charged()  # by power, for a GPU without one
        self._pending = 0.0  # joules by power before the first list of processes
        self._weight = 0.0  # what was drawn since the counter was last read, by power or time
        self._since = Charged()  # the program's part of that

    def add(self, gpu: Gpu, own: Collection[int] | None, seconds: float, within: bool) -> None:
        """Add a sample that represents `seconds` of the window; one taken after its end, not `within`, tells nothing of its memory."""
        if own is not None and tells_processes(gpu):
            self.known = True
            self.share = energy_share(gpu, own)
            self._see(gpu, own, within)
        weight = seconds * (1.0 if gpu.power_draw is None else gpu.power_draw)
        if self.share.value is not None and weight > 0:
            self._weight += weight
            self._since.add(weight, self.share)
        if gpu.power_draw is not None:
            joules = gpu.power_draw * seconds
            if self.known:
                self._drawn.add(joules + self._pending, self.share)
                self._pending = 0.0
            else:
                self._pending += joules

    def add_shares(self, gpu: Gpu, own: Collection[int], seconds: float) -> None:
        """Let the SM shares of a sample stand for `seconds` of the window, since they are read less often than the rest."""
        mine, known = 0.0, True
        for process in gpu.all_processes():
            pid, share = int(process.pid or 0), process.sm_utilization
            if pid in own:
                known = known and share is not None
                mine += share or 0.0
            elif pid in self._others:
                self._others[pid].sm.add(share, seconds)
        if self._sm is None:
            self._sm = Mean()
        self._sm.add(min(100.0, mine) if known else None, seconds)

    def charge(self, joules: float, share: EnergyShare) -> None:
        """Add what the GPU used since its counter was last read, every few seconds.

        `share` is the program's at this moment; processes come and go, so its shares at all samples since then count.
        """
        if self._weight > 0 and self._since.joules is not None:
            share = EnergyShare(self._since.joules / self._weight, self._since.estimated)
        self._weight, self._since = 0.0, Charged()
        self._joules.add(joules, share)
        if share.value is not None:  # also tells of a window too short for a list of processes
            self.known = True
            self._charged = self._charged or share.value > 0

    @property
    def used(self) -> bool | None:
        """Whether the program used the GPU; None if its processes are not known."""
        return (bool(self.pids) or self._charged) if self.known else None

    def use(self, counted: bool, telling: bool) -> OwnUse:
        """Return the use as a value; without the energy where the window was too short to be `telling`."""
        used = self.used
        if used is None:
            return OwnUse()
        energy = self._joules if counted else self._drawn
        return OwnUse(
            used,
            pids=frozenset(self.pids),
            memory_peak=self.memory,
            sm_utilization=None if self._sm is None or not used else self._sm.value,
            energy=energy.joules if telling and (energy.any or not used) else None,
            energy_estimated=telling and used and (energy.estimated or not counted),
            others=tuple(
                sorted(map(_Other.value, (*self._gone, *self._others.values())), key=lambda one: -(one.memory or 0.0))
            ),
        )

    def _see(self, gpu: Gpu, own: Collection[int], within: bool) -> None:
        held: float | None = None
        for process in gpu.all_processes():
            pid = int(process.pid or 0)
            if pid in own:
                self.pids.add(pid)
                if process.memory_used is not None:
                    held = (held or 0.0) + process.memory_used
            elif pid in self._others or len(self._others) < _MOST_OTHERS:
                if pid in self._others and is_another(self._others[pid].process, process, 0.0):
                    self._gone.append(self._others.pop(pid))
                self._others.setdefault(pid, _Other(process)).add(process)
        if held is not None and (within or self.memory is None):
            self.memory = held if self.memory is None else max(self.memory, held)


class EnergyShare(Value):
    """The share of a GPU's energy that belongs to a program, 0 to 1; None if unknown. `estimated` if others computed, too."""

    value: float | None
    estimated: bool


class Charged(Value):
    """Energy charged to a program; `joules` is None once the share of any of it was unknown."""

    any: bool = False
    joules: float | None = 0.0
    estimated: bool = False

    def add(self, joules: float, share: EnergyShare) -> None:
        """Add a share of some energy."""
        self.any = True
        self.estimated = self.estimated or share.estimated
        self.joules = None if share.value is None or self.joules is None else self.joules + joules * share.value


class Mean(Value):
    """A mean over time of what is known."""

    total: float = 0.0
    seconds: float = 0.0

    def add(self, value: float | None, seconds: float) -> None:
        """Add a value that stands for `seconds`; None adds nothing."""
        if value is not None:
            self.total += value * seconds
            self.seconds += seconds

    @property
    def value(self) -> float | None:
        """The mean; None if nothing was known."""
        return self.total / self.seconds if self.seconds > 0 else None


class _Other(Value):
    """One process of somebody else, as it was last seen."""

    process: Process
    memory: float | None = None
    sm: Mean = fresh(factory=Mean)

    def add(self, process: Process) -> None:
        self.process = process
        if process.memory_used is not None:
            self.memory = max(self.memory or 0.0, process.memory_used)

    def value(self) -> OtherProcess:
        process, share = self.process, self.sm.value
        share = process.sm_utilization if share is None else share
        return OtherProcess(int(process.pid or 0), process.user, process.name, self.memory, share)


def tells_processes(gpu: Gpu) -> bool:
    """Tell whether a sample shows which processes are on a GPU: they were read, and memory in use is not that of hidden ones."""
    if gpu.state != "ok" or any("processes" in part.gaps for part in (gpu, *gpu.instances)):
        return False
    return any(True for _ in gpu.all_processes()) or (gpu.memory_used or 0.0) < HIDDEN


def own_memory(gpu: Gpu, own: Collection[int] | None) -> float | None:
    """Return the memory that a program holds on a GPU: 0 where it has no process, None where nobody can tell."""
    return _own_sum(gpu, own, "memory_used")


def own_sm(gpu: Gpu, own: Collection[int] | None) -> float | None:
    """Return the share of time in which kernels of a program ran on a GPU, in percent; None where nobody can tell."""
    return _own_sum(gpu, own, "sm_utilization")


def _own_sum(gpu: Gpu, own: Collection[int] | None, key: str) -> float | None:
    if own is None or not tells_processes(gpu):
        return None
    values = [process.get(key) for process in gpu.all_processes() if process.pid in own]
    known = [value for value in values if isinstance(value, (int, float))]
    return sum(known, 0.0) if len(known) == len(values) else None


def energy_share(gpu: Gpu, own: Collection[int]) -> EnergyShare:
    """Return the program's share of what a GPU used since its processes' SM shares were last read: by the time their kernels ran.

    All of it where nobody else computes; in equal parts where several hold the GPU and none computes.
    """
    processes = [*gpu.all_processes()]
    mine = [process.sm_utilization for process in processes if process.pid in own]
    others = [process.sm_utilization for process in processes if process.pid not in own]
    if not mine or not others:
        return EnergyShare(1.0 if mine else 0.0, False)
    known = [share for share in (*mine, *others) if share is not None]
    if len(known) < len(processes):
        return EnergyShare(None, False)
    ours, theirs = sum(known[: len(mine)]), sum(known[len(mine) :])
    if ours > 0 and not theirs:
        return EnergyShare(1.0, False)
    return EnergyShare(ours / (ours + theirs) if theirs else len(mine) / len(known), True)


def own_verdicts(diagnosis: Diagnosis, uses: Mapping[str | None, OwnUse]) -> Diagnosis:
    """Return only what concerns a program: no verdict on a GPU that it did not use, and none that is about others' processes."""
    from ..model.verdict import Diagnosis

    kept = [verdict for one in diagnosis if (verdict := _own(one, uses.get(one.uuid))) is not None]
    return Diagnosis(kept, diagnosis.start, diagnosis.end, diagnosis.samples)


def _own(verdict: Verdict, use: OwnUse | None) -> Verdict | None:
    """Return a verdict without what is about others' processes only; None if nothing is left.

    Where the time went is known only of a GPU that nobody else used.
    """
    if use is None or use.used is None:
        return verdict
    if not use.used:
        return None
    about = [one for one in (verdict, *verdict.also) if _concerns(one, use.pids)]
    if not about:
        return None
    budget = verdict.budget if use.alone else None
    return about[0].replace(also=tuple(one.replace(also=()) for one in about[1:]), budget=budget)


def _concerns(verdict: Verdict, pids: Collection[int]) -> bool:
    holders = [holder.pid for holder in verdict.processes if holder.pid is not None]
    return verdict.key == "not_used" or not holders or any(pid in pids for pid in holders)
