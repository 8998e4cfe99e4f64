"""Sums over many machines, what is wrong on each, and where GPUs are free."""

from __future__ import annotations

from ..model.catalog import DOWN, Gpu, slice_share
from ..model.fleet import FleetSnapshot, HostReport
from ..model.plausible import plausible
from ..model.process_filter import ProcessFilter
from ..value import Value, fresh
from .concerns import concerns, cost
from .diagnosis.running import EVERY, LiveDiagnosis
from .readings import UNLISTED

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping

    from ..model.catalog import Process
    from ..model.verdict import Concern

_JUDGED = 25.0  # machines judged per second, at most: one costs 2 ms, so that 1,000 cost 5 % of a core


class Funnel:
    """GPUs from all to those at work. Each step is in whole GPUs: two at 50 % are one active GPU.

    `allocated` counts GPUs that a program holds; `active` is the sum of utilization, `effective` that of SM activity.
    `known` is the number of GPUs that have a utilization, `judged` of those that measure SM activity; without any, `effective` is None.
    `memory_used` and `memory_total` are those of the GPUs that tell both: of one that tells only its size, use is not 0 but unknown.
    """

    __slots__ = (
        "active", "allocated", "down", "effective", "judged", "known", "memory_total", "memory_used", "power", "total",
    )  # fmt: skip

    def __init__(self, gpus: Iterable[Gpu]) -> None:
        self.total = self.allocated = self.down = self.known = self.judged = 0
        self.active = self.memory_used = self.memory_total = 0.0
        self.effective: float | None = None
        self.power: float | None = None
        for gpu in gpus:
            self.total += 1
            self.down += gpu.state in DOWN
            self.allocated += is_allocated(gpu)
            self.known += gpu.utilization is not None
            self.active += (gpu.utilization or 0.0) / 100
            if gpu.memory_used is not None and gpu.memory_total is not None:
                self.memory_used += gpu.memory_used
                self.memory_total += gpu.memory_total
            if (working := sm_share(gpu)) is not None:
                self.judged += 1
                self.effective = (self.effective or 0.0) + working / 100
            if gpu.power_draw is not None:
                self.power = (self.power or 0.0) + gpu.power_draw

    @property
    def utilization(self) -> float | None:
        """Mean utilization in percent, of the GPUs that have one."""
        return 100 * self.active / self.known if self.known else None

    @property
    def sm_active(self) -> float | None:
        """Mean SM activity in percent, of the GPUs that measure it."""
        return None if self.effective is None else 100 * self.effective / self.judged


def sm_share(gpu: Gpu) -> float | None:
    """Return the SM activity of a GPU in percent; of one with MIG instances, what they do by their slices.

    None if the instances add up to more than a GPU: a machine may say anything about them.
    """
    if gpu.sm_active is not None or not gpu.instances:
        return gpu.sm_active
    known = [part.sm_active * slice_share(dict(part.items())) for part in gpu.instances if part.sm_active is not None]
    total = plausible(Gpu.sm_active, sum(known)) if known else None
    return total if isinstance(total, (int, float)) else None


def is_allocated(gpu: Gpu) -> bool:
    """Return whether a GPU is held: by a batch job or a process, or memory is in use where processes are not listed."""
    if gpu.job or any(process.type != "G" for process in gpu.all_processes()):  # one that only draws holds nothing
        return True
    return "processes" in gpu.gaps and (gpu.memory_used or 0.0) > UNLISTED


def free_gpus(host: HostReport, memory: float = 0.0) -> list[Gpu]:
    """Return the GPUs of a machine that nobody holds, with at least this much memory in bytes; whole GPUs only."""
    return [
        gpu
        for gpu in host.gpus
        if gpu.state == "ok" and not is_allocated(gpu) and not gpu.instances and (gpu.memory_total or 0.0) >= memory
    ]


def filtered(snapshot: FleetSnapshot, text: str) -> FleetSnapshot:
    """Return only the machines whose name has the text, and of the others the GPUs with a process that fits the filter."""
    if not text.strip():
        return snapshot
    wanted = ProcessFilter(text)
    hosts = []
    for host in snapshot.hosts:
        if text.strip().lower() in host.name.lower():
            hosts.append(host)
            continue
        gpus = tuple(gpu for gpu in host.gpus if _has(gpu, wanted))
        if gpus and host.snapshot is not None:
            hosts.append(host.replace(snapshot=host.snapshot.with_gpus(gpus)))
    return FleetSnapshot(snapshot.time, tuple(hosts), snapshot.grants)


def _has(gpu: Gpu, wanted: ProcessFilter) -> bool:
    index = -1 if gpu.index is None else int(gpu.index)
    return any(wanted.fits(process, (index, -1)) for process in gpu.all_processes())


def held_by(
    snapshot: FleetSnapshot, name: Callable[[Process], str | None]
) -> list[tuple[str, list[tuple[HostReport, Gpu]]]]:
    """Return who holds which GPUs, most first; a GPU that several hold counts for each. `name` tells the holder of a process."""
    held: dict[str, dict[tuple[str, str | None], tuple[HostReport, Gpu]]] = {}
    for host, gpu in snapshot.gpus():
        for process in gpu.all_processes():
            if who := name(process):
                held.setdefault(who, {})[host.name, gpu.uuid] = (host, gpu)
    ordered = sorted(held.items(), key=lambda entry: (-len(entry[1]), entry[0]))
    return [(who, list(theirs.values())) for who, theirs in ordered]


def user_of(process: Process) -> str | None:
    """Return the user of a process."""
    return process.user


def job_of(process: Process) -> str | None:
    """Return the job of a process, or else its pod or container."""
    return process.job or process.pod or process.container


def unused_grants(snapshot: FleetSnapshot) -> Iterator[tuple[HostReport, Gpu, Mapping[str, str]]]:
    """Yield the GPUs that a scheduler has allocated and that no program holds, with the owner: user, job or pod.

    A scheduler may call a machine by the first part of its name.
    """
    for host in snapshot.hosts:
        names = (host.name, host.name.rpartition("@")[2].partition(".")[0])
        given = {
            number: who for grants in snapshot.grants for name in names for number, who in grants.get(name, {}).items()
        }
        for gpu in host.gpus if given else ():
            if gpu.index is not None and int(gpu.index) in given and gpu.state == "ok" and not is_allocated(gpu):
                yield host, gpu, given[int(gpu.index)]


class Loss(Value):
    """What one condition of one owner costs the fleet now: `lost` is in whole GPUs, of the `gpus` that it concerns."""

    key: str
    owner: str
    gpus: int = 0
    lost: float = 0.0
    hosts: dict[str, None] = fresh(factory=dict)  # in order, each once


def losses(found: Mapping[str, Iterable[Concern]]) -> list[Loss]:
    """Return what costs GPU time on all machines, by condition and owner, the costliest first."""
    added: dict[tuple[str, str], Loss] = {}
    for host, wrong in found.items():
        for concern in wrong:
            share = 1.0 if concern.verdict is None else cost(concern.verdict.key, concern.verdict.budget)
            if share <= 0 or not concern.gpus:
                continue
            loss = added.setdefault((concern.key, concern.owner), Loss(concern.key, concern.owner))
            loss.gpus += len(concern.gpus)
            loss.lost += share * len(concern.gpus)
            loss.hosts[host] = None
    return sorted(added.values(), key=lambda loss: -loss.lost)


class FleetWatch:
    """Judges every machine as it would judge itself, from the samples of the last minute. For one thread.

    When a problem began is what the machine says, or what was seen here; of one that is older than our first sample, nothing.
    """

    def __init__(self) -> None:
        self._live: dict[str, tuple[float, LiveDiagnosis]] = {}
        self._first: dict[str, float] = {}  # the time of the first sample of each machine, on its clock

    def add(self, snapshot: FleetSnapshot) -> Mapping[str, tuple[Concern, ...]]:
        """Take a snapshot; return what is wrong on each machine that has been judged, the worst first."""
        found: dict[str, tuple[Concern, ...]] = {}
        every = max(EVERY, len(snapshot.hosts) / _JUDGED)
        for host in snapshot.hosts:
            if host.snapshot is None:
                self._live.pop(host.name, None)
                self._first.pop(host.name, None)
                continue
            time, live = self._live.get(host.name, (0.0, None))
            live = live or LiveDiagnosis(every=every)
            if time != host.snapshot.time:
                live.add(host.snapshot)
                self._live[host.name] = (host.snapshot.time, live)
            first = self._first.setdefault(host.name, host.snapshot.time)
            if len(live.latest):
                found[host.name] = tuple(_dated(one, host, first) for one in concerns(live.latest))
        return found


def _dated(concern: Concern, host: HostReport, first: float) -> Concern:
    """Return a concern with when it began: as the machine says, else as was seen here; None for one that `first` found already."""
    told = [host.began[concern.key, uuid] for uuid in concern.uuids if (concern.key, uuid) in host.began]
    if told:
        return concern.replace(since=min(since for since, _ in told), lost=sum(lost for _, lost in told))
    outages = [gpu.since for gpu in host.gpus if gpu.uuid in concern.uuids and gpu.since is not None]
    if concern.key in _OUTAGES and outages and max(outages) <= concern.time:
        return concern.replace(since=min(outages))
    seen = concern.since is not None and concern.since > first + _EDGE
    return concern if seen else concern.replace(since=None)


_OUTAGES = ("lost", "driver_unresponsive")
_EDGE = 1.0  # seconds after our first sample in which what begins may as well have begun before it
