"""A source whose GPUs and machine do what a test tells them."""

from __future__ import annotations

import threading
from collections.abc import Callable, Collection, Iterable, Mapping
from typing import TYPE_CHECKING

from gpulse.model.select import Wanted
from gpulse.model.snapshot import Snapshot
from gpulse.sampling.clock import ManualClock
from gpulse.sampling.sampler import Sampler
from gpulse.sources.base import Counter, Device, DeviceSample, Facts, Machine, Source

if TYPE_CHECKING:
    from gpulse.model.metric import Value

# Of everything a GPU can be asked, a few of each cost.
VALUES: dict[str, Value] = {
    "utilization": 50,
    "memory_used": 10 << 30,
    "memory_total": 80 << 30,
    "memory_reserved": 0,
    "energy": 1000.0,
    "power_default_limit": 700.0,
    "temperature": 0,
}


def sample(values: Mapping[str, Value], counters: Mapping[str, Counter] | None = None) -> DeviceSample:
    """Return the answer of a GPU."""
    answer = DeviceSample()
    answer.values.update(values)
    answer.counters.update(counters or {})
    return answer


def process(**values: Value) -> Facts:
    """Return what a GPU says of a process."""
    facts = Facts()
    facts.values.update(values)
    return facts


class ScriptedDevice(Device):
    """A GPU that answers with VALUES, or with what `script` makes of the number of the sample (from 1) and the keys."""

    def __init__(self, index: int, script: Callable[[int, frozenset[str]], DeviceSample] | None = None) -> None:
        self.identity = {"index": index, "uuid": f"GPU-{index:08d}", "name": "Scripted"}
        self.script = script
        self.asked: list[frozenset[str]] = []
        self.asked_of_processes: list[frozenset[str] | None] = []

    def read(self, keys: frozenset[str], process_keys: frozenset[str] | None) -> DeviceSample:
        self.asked.append(keys)
        self.asked_of_processes.append(process_keys)
        if self.script is not None:
            return self.script(len(self.asked), keys)
        return sample({key: value for key, value in VALUES.items() if key in keys})


def lost(*snaps: int) -> ScriptedDevice:
    """Return a GPU that is lost in these samples."""

    def script(snap: int, keys: frozenset[str]) -> DeviceSample:
        if snap not in snaps:
            return sample({key: value for key, value in VALUES.items() if key in keys})
        answer = sample({"xid_last": 79})
        answer.state = "lost"
        return answer

    return ScriptedDevice(0, script)


class ScriptedMachine(Machine):
    """A machine with the processes it was given."""

    def __init__(self, known: Mapping[int, Mapping[str, Value]] | None = None) -> None:
        self.known = dict(known or {})
        self.host_counters: dict[str, Counter] = {}
        self.asked_host: list[frozenset[str]] = []
        self.asked_processes: list[tuple[frozenset[int], frozenset[str]]] = []
        self.is_foreign = False

    def host(self, keys: frozenset[str]) -> Facts:
        self.asked_host.append(keys)
        facts = Facts()
        facts.values["name"] = "box"
        facts.counters.update(self.host_counters)
        return facts

    def processes(self, pids: Collection[int], keys: frozenset[str]) -> dict[int, Facts]:
        self.asked_processes.append((frozenset(pids), keys))
        return {pid: process(**self.known[pid]) for pid in pids if pid in self.known}

    def foreign(self, pids: Collection[int]) -> bool:
        return self.is_foreign


class ScriptedSource(Source):
    """The devices it was given; `frames` makes it a recording."""

    name = "scripted"

    def __init__(self, devices: Iterable[Device], machine: Machine | None = None) -> None:
        self.driver = {"version": "1.0"}
        self.devices = list(devices)
        self.machine = machine or ScriptedMachine()
        self.frames: list[Snapshot] | None = None
        self.closed = 0

    def open(self) -> None:
        pass

    def close(self) -> None:
        self.closed += 1

    def recorded(self) -> Snapshot | None:
        if self.frames is None:
            return None
        if not self.frames:
            raise StopIteration
        return self.frames.pop(0)


class Hang:
    """A driver call that hangs until it is released, while its clock passes every deadline of those who wait for it.

    Nothing else advances that clock, so a call that answers is in time however busy the machine is. Where another call must
    have answered before, `after` waits for it.
    """

    def __init__(self, clock: ManualClock, seconds: float = 10.0, after: Callable[[], object] = lambda: None) -> None:
        self.clock = clock
        self.calls = 0
        self._released = threading.Event()
        self._seconds = seconds
        self._after = after

    def __call__(self) -> str:
        self.calls += 1
        self._after()
        self.clock.sleep(self._seconds)
        self._released.wait()
        return "released"

    def release(self) -> None:
        """Let the call return."""
        self._released.set()


WANTED = Wanted(gpu=VALUES)


def sampler_of(
    *devices: Device,
    wanted: Wanted = WANTED,
    machine: Machine | None = None,
    clock: ManualClock | None = None,
) -> Sampler:
    """Return an open sampler over these devices, on a clock that stands still."""
    source = ScriptedSource(devices, machine)
    return Sampler(source, wanted, clock=clock or ManualClock()).open()
