"""The jobs of one sample: what is asked of each GPU and of the machine, ready to run in a lane."""

from __future__ import annotations

from .plan import ALLOCATION

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Hashable, Mapping

    from ..model.metric import Gap
    from ..sources.base import Device, DeviceSample, Facts, Listing, Machine
    from .plan import Plan


class SourceAnswer:
    """The host's part of one sample: processes, the host itself, and whether the driver reports PIDs of another namespace.

    `allocations` says who was given which GPU, as `Machine.allocations` does.
    """

    __slots__ = ("allocations", "foreign", "host", "processes")

    def __init__(self) -> None:
        self.processes: dict[int, Facts] = {}
        self.host: Facts | None = None
        self.foreign = False
        self.allocations: Mapping[int, tuple[str, str]] | Gap | None = None

    def allocate(self, sample: DeviceSample, index: object) -> None:
        """Add to the sample of a GPU who was given it. Slurm numbers MIG instances and GPUs together, so it is not known of these."""
        if self.allocations is None or sample.state != "ok" or sample.instances:
            return
        if isinstance(self.allocations, str):
            sample.gaps.update(dict.fromkeys(ALLOCATION, self.allocations))
        elif isinstance(index, int):
            sample.values.update(zip(ALLOCATION, self.allocations.get(index, ("", "")), strict=True))


def asking(
    machine: Machine, plan: Plan, slow: bool, seen: dict[Hashable, Collection[int]]
) -> Callable[[], SourceAnswer]:
    """Return the job that reads the host. It runs in a lane like the GPUs: reading a stuck process can hang, too."""

    def ask() -> SourceAnswer:
        answer = SourceAnswer()
        pids = {pid for listed in [*seen.values()] for pid in listed}
        if pids and plan.describes:
            answer.foreign = machine.foreign(pids)
            answer.processes = {} if answer.foreign else machine.processes(pids, plan.process(slow))
        if plan.host is not None:
            answer.host = machine.host(plan.host)
        if plan.allocates:
            answer.allocations = machine.allocations()
        return answer

    return ask


def ahead_job(device: Device, keys: frozenset[str]) -> Callable[[], DeviceSample]:
    """Return the job that reads some metrics of a GPU without its processes."""
    return lambda: device.read(keys, None)


def priming(device: Device, keys: frozenset[str]) -> Callable[[], None]:
    """Return the job that takes the first of two readings."""

    def prime() -> None:
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
        seen[owner] = [pid for each in (listing.processes, *listing.of_instances) for pid in each]
        return listing

    return read
