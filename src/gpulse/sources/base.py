"""The interface of every source, device and machine towards the sampler.

Sources keep no time: a count that only grows is returned as a Counter, and the sampler computes the rate.
Values may be wrong or missing; the sampler checks them against the catalog.
"""

from __future__ import annotations

from .. import value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Mapping, Sequence
    from typing import TypeAlias

    from ..model.catalog import State
    from ..model.metric import Gap, Value
    from ..model.serving import ServerSample
    from ..model.snapshot import Check, Problem, Snapshot

    Key: TypeAlias = frozenset[str]


class Counter(value.Value):
    """A count that only grows: its rate is `scale` times its growth divided by the growth of `at`, both since the previous read.

    `apart` is the minimum growth of `at` for a meaningful rate: the kernel counts CPU time in hundredths of a second.
    """

    value: float
    at: float
    scale: float = 1.0
    apart: float = 0.0


class Facts:
    """The result of one read: values, the reasons of missing ones, and counters that the sampler turns into rates."""

    __slots__ = ("counters", "gaps", "values")

    def __init__(self) -> None:
        self.values: dict[str, Value] = {}
        self.gaps: dict[str, Gap] = {}
        self.counters: dict[str, Counter] = {}

    def put(self, key: str, value: Value | None, gap: Gap = "unsupported") -> None:
        """Store a value, or the reason why there is none."""
        if value is None:
            self.gaps[key] = gap
        else:
            self.values[key] = value


class DeviceSample(Facts):
    """The result of reading one GPU; `processes` are by PID and do not include the host's details."""

    __slots__ = ("instances", "processes", "state")

    def __init__(self) -> None:
        super().__init__()
        self.state: State = "ok"
        self.processes: dict[int, Facts] = {}
        self.instances: list[DeviceSample] = []


class Listing:
    """The processes of one GPU: those outside MIG instances, those of each by GPU and compute instance, and why the list is missing."""

    __slots__ = ("gap", "of_instances", "processes")

    def __init__(self) -> None:
        self.gap: Gap | None = None
        self.processes: dict[int, Facts] = {}
        self.of_instances: dict[tuple[Value | None, ...], dict[int, Facts]] = {}

    def add_to(self, sample: DeviceSample) -> None:
        """Store the processes in a sample of the same GPU."""
        if self.gap is not None:
            sample.gaps["processes"] = self.gap
        sample.processes = self.processes
        for instance in sample.instances:  # which may be others than when the processes were listed
            place = instance.values.get("gpu_instance"), instance.values.get("compute_instance")
            instance.processes = self.of_instances.get(place, {})


class Device:
    """One GPU of a source. `identity` holds values that never change.

    One device is read by one thread at a time; different devices may be read in parallel. If `lists_apart`, another thread may
    call `list_processes` during a read, so that a process list that hangs does not cost the metrics of its GPU.
    """

    identity: Mapping[str, Value]
    lists_apart: bool = False
    trouble: str = ""  # why this GPU cannot be read at all, as a sentence

    def attach(self) -> None:
        """Read the identity. Called once after the source is open; a device that fails must retry when it is read."""

    def parts(self) -> list[Mapping[str, Value]]:
        """Return the identities of the MIG instances of this GPU, if any."""
        return []

    def prime_early(self, keys: Key) -> None:
        """Do what `prime` will do as far as it takes little time; called before `attach`."""

    def prime(self, keys: Key) -> None:
        """Take the first of the two readings that some of these metrics need, so that a read shortly after has their values."""

    def close(self) -> None:
        """Release what it holds open; safe to call twice."""

    def settled(self) -> bool:
        """Return whether a read now would have the values started by `prime`; True if there is nothing to wait for."""
        return True

    def read(self, keys: Key, process_keys: Key | None) -> DeviceSample:
        """Read these metrics, and the processes unless `process_keys` is None; never raises for a missing value."""
        raise NotImplementedError

    def list_processes(self, process_keys: Key) -> Listing:
        """Read only the processes; called only if `lists_apart`."""
        raise NotImplementedError


class Relative(value.Value):
    """A process on the way from init to a process that uses a GPU; its command line has secrets masked."""

    pid: int
    parent: int
    name: str
    command: str = ""
    user: str = ""


class Machine:
    """The host that the GPUs are in: its own metrics, and details of processes by PID.

    `real`: it is this computer, not a simulation or a recording. Its PIDs can be signaled, and its history is this machine's.
    """

    real = False
    root = ""  # prefixed to /proc and /sys

    def servers(self, at: float) -> Sequence[ServerSample]:
        """Return what model servers of a machine that is not real say at a monotonic time; those of a real one are asked."""
        return ()

    def host(self, keys: Key) -> Facts:
        """Read these host metrics."""
        raise NotImplementedError

    def processes(self, pids: Collection[int], keys: Key) -> dict[int, Facts]:
        """Read these metrics of these processes; PIDs that have ended or are not visible are omitted."""
        raise NotImplementedError

    def allocations(self) -> Mapping[int, tuple[str, str]] | Gap | None:
        """Return the batch job and the user that each GPU was given to, by index; a gap until that is known; None without a scheduler."""
        return None

    def about(self, pid: int) -> dict[str, str]:
        """Return more details of one process: its cgroup, and its environment with secrets masked."""
        return {}

    def lineage(self, pids: Collection[int]) -> dict[int, Relative]:
        """Return these processes and all their ancestors except init by PID; empty if they are not known."""
        return {}

    def foreign(self, pids: Collection[int]) -> bool:
        """Return whether these PIDs, as reported by the driver, belong to another PID namespace than ours."""
        return False


def file_is_late(path: str) -> tuple[str, str]:
    """Return what a source that reads files says when they take too long."""
    return f"reading {path} takes too long.", "Copy it to a local disk if it is on a slow one."


class Source:
    """A provider of GPUs. Opened once and closed by the caller; usable again after a fork.

    `open` raises SourceUnavailable with cause and remedy. `open` sets `driver` and `problems`, but for what `versions` reads.
    """

    name: str
    driver: Mapping[str, str] = {}
    devices: Sequence[Device] = ()
    problems: Sequence[Problem] = ()
    patience: float = 0.0  # seconds that `open` may take, if more than the sampler's own
    # what to say when that was too short, and what to do about it
    late = (
        "the driver does not respond.",
        "It may hang: check `dmesg | tail`; resetting the GPU or rebooting usually helps.",
    )
    machine: Machine = Machine()  # a source of real GPUs sets its own when it is made

    def open(self) -> None:
        """Find the GPUs."""
        raise NotImplementedError

    def versions(self) -> Mapping[str, Callable[[], object]]:
        """Return calls that add their word to `driver`; the sampler makes them after `open`, each with its own deadline."""
        return {}

    def refresh(self) -> None:
        """Called before each sample: detect a fork, a GPU that woke up, or a driver that came back."""

    def stay(self) -> None:
        """Called once by callers that sample repeatedly: start recording what only shows over time."""

    def close(self) -> None:
        """Release everything; safe to call twice and after a failed open."""

    def examine(self) -> list[Check]:
        """Return the checks for `gpulse doctor` that need no open source; wakes and starts nothing."""
        return []

    def recorded(self) -> Snapshot | None:
        """Return a complete snapshot if the source is a recording, else None. Raises StopIteration at the end."""
        return None


if TYPE_CHECKING:
    from functools import cached_property

    cached_attribute = cached_property
else:

    class cached_attribute:  # noqa: N801  # it is used like a keyword
        """An attribute computed at its first use and kept on the instance.

        functools.cached_property uses one lock for all instances before Python 3.12: one hanging GPU would block the others.
        """

        def __init__(self, find):
            self._find = find

        def __set_name__(self, owner, name):
            self._name = name

        def __get__(self, instance, owner):
            value = instance.__dict__[self._name] = self._find(instance)
            return value
