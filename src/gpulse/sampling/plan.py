"""What one sample reads: which keys, from what and how often, and the jobs that read them in threads of their own."""

from __future__ import annotations

import os

from .. import value
from ..model.catalog import COSTLY, EVIDENCE, GPU_METRICS, PROCESS_METRICS, TIMED_POWER, TRACES, Gpu
from ..model.select import choose_parts
from ..model.snapshot import Problem
from ..store.queue import Queue
from ..value import fresh

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Hashable, Iterable, Mapping, Sequence
    from typing import Any

    from ..model.metric import Gap, Metric, Value
    from ..model.select import Wanted
    from ..sources.base import Device, DeviceSample, Facts, Listing, Machine


ALLOCATION = ("job", "job_user")  # who was given a GPU, which the machine knows
HELD = ("held_for", "held_until")  # who has claimed or reserved a GPU, which the queue knows
# Values that the sampler derives, and the keys it needs for them.
_DERIVED = {
    "memory_percent": ("memory_used", "memory_total", "memory_reserved"),
    "memory_unattributed": ("memory_used", "memory_total"),
    **dict.fromkeys((*ALLOCATION, *HELD), ()),
}


class Plan:
    """Keys to read, by cost. `costly` are those of `fast` that may be read less often; `activity` takes time to measure.

    `traced` are the keys to read of each trace, by its name, which have a pace of their own; other slow and static values are
    `lasting`: they stand until read again.

    `lists`: read the process list of each GPU; `describes`: read the details of processes from the host; `tells`: what is told
    of a process, None for all that the list has; `allocates`: ask the machine which batch job was given each GPU; `queue`: where
    to ask who has claimed or reserved it, None if that is not asked.
    """

    def __init__(self, wanted: Wanted) -> None:
        self.asked = wanted.gpu.difference(HELD)  # a GPU that does not respond tells nothing about the queue
        self.derives = not wanted.gpu.isdisjoint(_DERIVED.keys() - {*ALLOCATION, *HELD})
        self.queue = None if wanted.gpu.isdisjoint(HELD) else Queue()
        self.allocates = not wanted.gpu.isdisjoint(ALLOCATION)
        needed = wanted.gpu.union(*(_DERIVED[key] for key in wanted.gpu & _DERIVED.keys())) - _DERIVED.keys()
        self.traced = {keys[0]: asked for keys in (TIMED_POWER, EVIDENCE) if (asked := needed.intersection(keys))}
        needed -= TRACES
        self.fast = _of_cost(needed, GPU_METRICS, "fast")
        self.costly = self.fast & COSTLY
        self.slow = _of_cost(needed, GPU_METRICS, "slow")
        self.static = _of_cost(needed, GPU_METRICS, "static")
        self.activity = (self.fast | self.slow) & COSTLY
        self.lasting = self.slow | self.static
        self.host = wanted.host
        self.serving = wanted.serving
        self.describes = wanted.process is not None
        self.lists = self.describes or wanted.serving or "memory_unattributed" in wanted.gpu
        self.process_slow = _of_cost(wanted.process or (), PROCESS_METRICS, "slow")
        self._process = wanted.process or frozenset()
        self.tells = None if wanted.process is None else wanted.process | {"pid"}

    def process(self, slow: bool) -> frozenset[str]:
        """Return the process keys due now."""
        return self._process if slow else self._process - self.process_slow


class ChosenGpus:
    """The GPUs and MIG instances that these names mean, by UUID: the driver may list its GPUs in another order when it is reopened."""

    def __init__(self, gpus: Sequence[Gpu], words: Sequence[str], environ: Mapping[str, str]) -> None:
        """Choose among the GPUs at these positions; raise UnknownGpu if a name matches none."""
        self._parts = choose_parts(gpus, words, environ)
        self._named = [(at, part, gpus[at].uuid) for at, part in self._parts]
        # no program can use others besides: all are chosen, or those that Slurm gave to this job
        self.whole = [word.lower() for word in words] == ["job"] or {(at, "") for at in range(len(gpus))} <= {
            *self._parts
        }

    @property
    def positions(self) -> Iterable[int]:
        """Where the chosen GPUs are, each once."""
        return dict.fromkeys(at for at, _ in self._parts)

    def find(self, devices: Sequence[Device]) -> None:
        """Look them up in another list; a GPU that is not in it is left out until it is back."""
        places = {device.identity.get("uuid"): at for at, device in enumerate(devices)}
        found = [(places.get(uuid) if uuid else at, part) for at, part, uuid in self._named]
        self._parts = [(at, part) for at, part in found if at is not None]

    def of(self, gpus: Mapping[int, Gpu]) -> tuple[Gpu, ...]:
        """Return the chosen ones of GPUs by position, in the order chosen: of a MIG instance the instance instead of its GPU."""
        return tuple(_part_of(gpus[at], uuid) if uuid else gpus[at] for at, uuid in self._parts if at in gpus)


def _part_of(gpu: Gpu, uuid: str) -> Gpu:
    """Return a MIG instance of a GPU; if the GPU does not respond, only the UUID of the instance and the GPU's state."""
    for instance in gpu.instances:
        if instance.uuid == uuid:
            return instance
    gaps = {key: gap for key, gap in gpu.gaps.items() if key != "uuid"}
    return Gpu({"uuid": uuid, "vendor": "nvidia"}, gaps, state=gpu.state, since=gpu.since)


def _of_cost(keys: Collection[str], metrics: Mapping[str, Metric], cost: str) -> frozenset[str]:
    return frozenset(key for key in keys if metrics[key].cost == cost and metrics[key].kind != "identity")


FOREIGN = Problem(
    "processes",
    "names and users of processes cannot be shown: the driver reports ids of the host, not of this container.",
    "Start the container with --pid=host (hostPID: true in Kubernetes).",
)


class SourceAnswer(value.Value):
    """The host's part of one sample: processes, the host itself, and whether the driver reports PIDs of another namespace.

    `allocations` says who was given which GPU, as `Machine.allocations` does; `holds` who has claimed or reserved it, by UUID.
    """

    processes: dict[int, Facts] = fresh(factory=dict)
    host: Facts | None = None
    foreign: bool = False
    allocations: Mapping[int, tuple[str, str]] | Gap | None = None
    holds: Mapping[str, tuple[str, float | None]] = fresh(factory=dict)

    def add_owners(self, sample: DeviceSample, identity: Mapping[str, Value]) -> None:
        """Add to the sample of a GPU who was given it, and for whom it is held."""
        self.allocate(sample, identity.get("index"))
        self._hold(sample, identity.get("uuid"))

    def _hold(self, sample: DeviceSample, uuid: object) -> None:
        """Add to the sample of a GPU, and to those of its MIG instances, for whom it is held; nothing if for no one."""
        for part, key in ((sample, uuid), *((part, part.values.get("uuid")) for part in sample.instances)):
            if (held := self.holds.get(str(key))) is not None:
                part.values.update({name: value for name, value in zip(HELD, held, strict=True) if value is not None})

    def allocate(self, sample: DeviceSample, index: object) -> None:
        """Add to the sample of a GPU who was given it. Slurm numbers MIG instances and GPUs together, so it is not known of these."""
        if self.allocations is None or sample.state != "ok" or sample.instances:
            return
        if isinstance(self.allocations, str):
            sample.gaps.update(dict.fromkeys(ALLOCATION, self.allocations))
        elif isinstance(index, int):
            sample.values.update(zip(ALLOCATION, self.allocations.get(index, ("", "")), strict=True))


def machine_job(machine: Machine, plan: Plan, reading: StartedSample) -> Callable[[], SourceAnswer]:
    """Return the job that reads the host. It runs in a thread like the GPUs: reading a stuck process can hang, too."""

    def ask() -> SourceAnswer:
        answer, pids = SourceAnswer(), reading.pids
        if pids and plan.describes:
            answer.foreign = machine.foreign(pids)
            answer.processes = {} if answer.foreign else machine.processes(pids, plan.process(reading.slow))
        if plan.host is not None:
            answer.host = machine.host(plan.host)
        if plan.allocates:
            answer.allocations = machine.allocations()
        if plan.queue is not None and machine.real:  # the queue of this computer is not that of another machine
            answer.holds = plan.queue.holders(_told)
        return answer

    return ask


def _told(user: str, number: int) -> str:
    from ..sources.privacy import privacy_in_force

    return privacy_in_force(os.environ).user(user, number)


def prime_job(device: Device, keys: frozenset[str], early: bool = False) -> Callable[[], None]:
    """Return the job that takes the first of two readings, or with `early` as much of it as takes little time."""

    def prime() -> None:
        if early:
            device.prime_early(keys)
            return
        device.lists_apart  # noqa: B018  # found out here: a call that hangs must not hang first for the list and then again
        device.prime(keys)

    return prime


def read_job(
    device: Device,
    keys: frozenset[str],
    process_keys: frozenset[str] | None,
    seen: dict[Hashable, Collection[int]],
    position: Hashable,
) -> Callable[[], DeviceSample]:
    """Return the job that reads a GPU, and its processes if they are not read apart."""

    def read() -> DeviceSample:
        device.prime(keys)
        sample = device.read(keys, None if device.lists_apart else process_keys)
        seen[position] = [pid for each in (sample, *sample.instances) for pid in each.processes]
        return sample

    return read


def list_job(
    device: Device, process_keys: frozenset[str], seen: dict[Hashable, Collection[int]], owner: Hashable
) -> Callable[[], Listing | None]:
    """Return the job that reads the processes; it has an owner of its own, so that the metrics outlast a list that hangs."""

    def read() -> Listing | None:
        if not device.lists_apart:
            return None
        listing = device.list_processes(process_keys)
        seen[owner] = [pid for each in (listing.processes, *listing.of_instances.values()) for pid in each]
        return listing

    return read


class StartedSample(value.Value):
    """One sample while it is being read: what is due, and in `results` what each owner of a job has returned so far.

    `seen` are the processes of each GPU; `counts`: processes and the host are read a second time, for their rates.
    """

    now: float
    slow: bool
    costly: bool
    lists: bool
    process_keys: frozenset[str] | None
    counts: bool = False
    results: dict[Hashable, Any] = fresh(factory=dict)
    seen: dict[Hashable, Collection[int]] = fresh(factory=dict)

    @property
    def pids(self) -> set[int]:
        """All processes that GPUs have listed so far; a list that hangs may still come."""
        return {pid for listed in [*self.seen.values()] for pid in listed}

    def add(self, position: int, more: Any, keys: frozenset[str]) -> None:
        """Add these values, which were read later, to the sample of a GPU; None: it has not responded."""
        sample = self.results.get(position)
        if more is None or isinstance(more, Exception):
            self.results[position] = more
        elif sample is None or isinstance(sample, Exception):
            return
        elif sample.state == "ok":
            for part, later in ((sample, more), *zip(sample.instances, more.instances, strict=False)):
                part.values.update({key: later.values[key] for key in keys & later.values.keys()})
                part.counters.update(later.counters)
                part.gaps.update({key: later.gaps[key] for key in keys & later.gaps.keys()})
        else:
            sample.gaps.update({key: "lost" if sample.state == "lost" else later for key, later in more.gaps.items()})
