"""Share a sample among the windows of its interval: activity, CPU time and energy are counted since they were last read."""

from __future__ import annotations

from ..analysis.cpu import CpuMeter
from ..analysis.own_use import energy_share, tells_processes
from ..analysis.shares import EnergyShares, Shares

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Collection

    from ..analysis.own_use import EnergyShare
    from ..analysis.shares import Parts
    from ..analysis.tally import Tally
    from ..model.catalog import Gpu
    from .request import AgentSample


class Sharing:
    """The counters of one run; guarded by the ledger's lock."""

    def __init__(self) -> None:
        self._counters: dict[str, EnergyShares] = {}
        self._activity = Shares()
        self._process_shares = Shares()
        self._cpu = CpuMeter()
        self._cpu_shares = {key: Shares() for key in self._cpu.keys}

    def add(self, snap: AgentSample, parts: Parts, seconds: float, fresh: bool) -> float | None:
        """Share a sample; `fresh` if its activity was just read. Returns the program's mean power in watts since it was last known."""
        self._share_activity(snap, parts, seconds, fresh)
        self._share_cpu(snap, parts, seconds)
        self._share_processes(snap, parts, seconds)
        watts = self._share_energy(snap, parts, seconds)
        return _power(snap) if watts is None else watts

    def forget(self, tally: Tally) -> None:
        """Share nothing with a window that is complete."""
        for shares in (self._activity, self._process_shares, *self._cpu_shares.values()):
            shares.forget(tally)
        for counter in self._counters.values():
            counter.forget(tally)

    def energy_known_until(self, at: float) -> bool:
        """Return whether every energy counter has been read since a time."""
        return all(read is None or read >= at for read in (shares.at for shares in self._counters.values()))

    def _share_activity(self, snap: AgentSample, parts: Parts, seconds: float, fresh: bool) -> None:
        """Let activity values stand for the time since they were last read: each has counted for this interval already."""
        if fresh and self._activity.total > 0:
            for tally, unread in self._activity.take():
                tally.add_activity(snap.snapshot, unread)
        elif not fresh:
            self._activity.add(parts, seconds)

    def _share_processes(self, snap: AgentSample, parts: Parts, seconds: float) -> None:
        """Let the SM shares of the processes stand for the time since they were last read."""
        self._process_shares.add(parts, seconds)
        if snap.slow:
            for tally, unread in self._process_shares.take():
                if snap.own is not None:
                    tally.add_shares(snap.snapshot, snap.own, unread)

    def _share_cpu(self, snap: AgentSample, parts: Parts, seconds: float) -> None:
        """Share the growth of the program's CPU time among the windows."""
        for shares in self._cpu_shares.values():
            shares.add(parts, seconds)
        for key, used, since in self._cpu.add(snap.program, snap.at):
            for tally, part in self._cpu_shares[key].take():
                tally.add_cpu(key, used * part / (snap.at - since), part)
        for key, shares in self._cpu_shares.items():
            if shares.total and self._cpu.read_at(key) in (None, snap.at):
                shares.take()  # nothing to compare with before the first reading

    def _share_energy(self, snap: AgentSample, parts: Parts, seconds: float) -> float | None:
        """Share the growth of the energy counters among the windows; return the program's mean power since they were last read."""
        watts: float | None = None
        for gpu in snap.snapshot.gpus:
            if gpu.uuid is None:
                continue
            if gpu.uuid not in self._counters:
                self._counters[gpu.uuid] = EnergyShares(gpu.uuid)
            share = _share(gpu, snap.own)
            mean = self._counters[gpu.uuid].add(gpu, parts, seconds, snap.at, share)
            if mean is not None and (own := _own(mean, share)) is not None:
                watts = (watts or 0.0) + own
        return watts


def _power(snap: AgentSample) -> float | None:
    """Return the program's power on all GPUs in watts where none has an energy counter; None where one has."""
    gpus = snap.snapshot.gpus
    known = [_own(gpu.power_draw, _share(gpu, snap.own)) for gpu in gpus if gpu.power_draw is not None]
    watts = [power for power in known if power is not None]
    return sum(watts) if watts and all(gpu.energy is None for gpu in gpus) else None


def _share(gpu: Gpu, own: Collection[int] | None) -> EnergyShare | None:
    """Return the program's share of a GPU's energy; None where processes cannot be told apart, so that all of it counts."""
    return None if own is None or not tells_processes(gpu) else energy_share(gpu, own)


def _own(watts: float, share: EnergyShare | None) -> float | None:
    return watts if share is None else None if share.value is None else watts * share.value
