"""The seam: what every source, device and machine offers to the sampler.

Nothing here keeps time: a count that only grows is handed up as a Counter, and the sampler makes the rate.
Values may be wrong, absent or absurd; the sampler checks them against the catalog.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Collection, Mapping, Sequence
    from typing import TypeAlias

    from ..model.catalog import State
    from ..model.check import Check
    from ..model.metric import Gap, Value
    from ..model.snapshot import Problem, Snapshot

    Key: TypeAlias = "frozenset[str]"


class Counter:
    """A count that only grows: the rate is `scale` times its growth over the growth of `at`, both since the read before.

    `apart` is the growth of `at` below which two reads say nothing: the kernel counts CPU time in hundredths of a second.
    """

    __slots__ = ("apart", "at", "scale", "value")

    def __init__(self, value: float, at: float, scale: float = 1.0, apart: float = 0.0) -> None:
        self.value = value
        self.at = at
        self.scale = scale
        self.apart = apart


class Facts:
    """What was read of one thing in one sample: values, why others are missing, and counters still to become rates."""

    __slots__ = ("counters", "gaps", "values")

    def __init__(self) -> None:
        self.values: dict[str, Value] = {}
        self.gaps: dict[str, Gap] = {}
        self.counters: dict[str, Counter] = {}


class DeviceSample(Facts):
    """What one GPU answered in one sample; `processes` are raw, by pid, without what the machine knows of them."""

    __slots__ = ("instances", "processes", "state")

    def __init__(self) -> None:
        super().__init__()
        self.state: State = "ok"
        self.processes: dict[int, Facts] = {}
        self.instances: list[DeviceSample] = []


class Device:
    """One GPU of a source. `identity` holds what never changes and is known without asking again.

    One device is read by one thread at a time; different devices may be read side by side.
    """

    identity: Mapping[str, Value]
    trouble: str = ""  # what keeps this GPU from being read at all, as a sentence

    def attach(self) -> None:
        """Find out who it is. Called once after the source is open; a device that cannot now must try again when read."""

    def parts(self) -> list[Mapping[str, Value]]:
        """Return the identities of the instances this GPU is divided into, if it is."""
        return []

    def prime(self, keys: Key) -> None:
        """Take the first of the two samples that some of these metrics need, so that a read soon after has them."""

    def settled(self) -> bool:
        """Tell whether a read now would find what `prime` began; a source with nothing to wait for says True."""
        return True

    def read(self, keys: Key, process_keys: Key | None) -> DeviceSample:
        """Read these metrics, and the processes unless `process_keys` is None; never raises for a value that is missing."""
        raise NotImplementedError


class Machine:
    """The computer around the GPUs: its own metrics, and what it knows of a process by pid.

    `real` says that its pids are processes of this computer, which a signal can reach.
    """

    real = False

    def host(self, keys: Key) -> Facts:
        """Read these host metrics."""
        raise NotImplementedError

    def processes(self, pids: Collection[int], keys: Key) -> dict[int, Facts]:
        """Read these metrics of these processes; a pid that is gone or not ours to see is left out."""
        raise NotImplementedError

    def about(self, pid: int) -> dict[str, str]:
        """Return what else is known of one process, by word: its cgroup, its environment with secrets masked."""
        return {}

    def foreign(self, pids: Collection[int]) -> bool:
        """Tell whether these pids, as the driver gives them, belong to a PID namespace other than ours."""
        return False


class Source:
    """A kind of place to read GPUs from. Opened once, closed by whoever opened it; usable again after a fork.

    `open` raises SourceUnavailable with cause and remedy. `driver` and `problems` are filled by `open`.
    """

    name: str
    driver: Mapping[str, str] = {}
    devices: Sequence[Device] = ()
    problems: Sequence[Problem] = ()
    machine: Machine

    def open(self) -> None:
        """Find the GPUs."""
        raise NotImplementedError

    def refresh(self) -> None:
        """Called before each sample: notice a fork, a GPU that woke up, a driver that came back."""

    def stay(self) -> None:
        """Called once by those who will look again and again: begin to note what shows only to them."""

    def close(self) -> None:
        """Let go of everything; safe to call twice and after a failed open."""

    def examine(self) -> list[Check]:
        """Return what a doctor should know before the source is opened; wakes and starts nothing."""
        return []

    def recorded(self) -> Snapshot | None:
        """Return a whole snapshot where the source plays a recording, else None. Raises StopIteration at the end."""
        return None
