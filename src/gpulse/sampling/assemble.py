"""From the answers of a device to a Gpu: values checked against the catalog, rates, what is kept between samples.

The program that a monitor belongs to is read here, too, with all its descendants.
"""

from __future__ import annotations

from ..model.catalog import (
    GPU_METRICS,
    PROCESS_METRICS,
    Gpu,
    Process,
    memory_percent,
    memory_unattributed,
)
from ..model.plausible import drop_implausible
from ..model.snapshot import Problem

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Hashable, Iterable, Mapping
    from typing import Any

    from ..model.catalog import State
    from ..model.metric import Gap, Metric, Value
    from ..model.snapshot import Snapshot
    from ..sources.base import Counter, Device, DeviceSample, Facts, Source
    from ..sources.processes import LinuxMachine
    from .plan import Plan


def check(facts: Facts, metrics: Mapping[str, Metric], dropped: dict[str, int]) -> None:
    """Drop implausible values and count them: drivers do answer 808334905 % occasionally."""
    for key in drop_implausible(facts.values, facts.gaps, metrics):
        dropped[key] = dropped.get(key, 0) + 1


def settle_rates(owner: Hashable, facts: Facts, rates: Rates) -> None:
    """Turn counters into rates, or into gaps if there is no previous count; cpu_per_core.N become one list."""
    lists: dict[str, list[float]] = {}
    for key, counter in facts.counters.items():
        rate = rates.rate((owner, key), counter)
        name, dot, _ = key.partition(".")
        if rate is None:
            facts.gaps[name] = "pending"
        elif dot:
            lists.setdefault(name, []).append(round(rate, 1))
        else:
            facts.values[key] = round(rate, 1) if rate < 1e6 else round(rate)
    for name, entries in lists.items():
        if name not in facts.gaps:
            facts.values[name] = tuple(entries)
    facts.counters.clear()


def derive_memory(sample: DeviceSample, listed: bool = True) -> None:
    """Add the percentage of memory in use and, if all processes were `listed`, the memory that none of them accounts for."""
    values, gaps = sample.values, sample.gaps
    unknown = gaps.get("memory_used") or gaps.get("memory_total") or "unsupported"
    if (share := memory_percent(values)) is not None:
        values["memory_percent"] = share
    else:
        gaps["memory_percent"] = unknown
    if not listed:
        return  # without the list, all memory would appear unattributed
    held = [facts.values.get("memory_used") for facts in sample.processes.values()]
    if sample.instances or "processes" in gaps or values.get("memory_unified"):
        gaps["memory_unattributed"] = gaps.get("processes", "unsupported")
    elif (rest := memory_unattributed(values.get("memory_used"), held)) is not None:
        values["memory_unattributed"] = rest
    else:
        gaps["memory_unattributed"] = unknown


# samples, and seconds, after which a counter that no longer appears is forgotten: slow ones appear every few seconds,
# which is hundreds of samples later where there are a hundred per second
_KEEP, _KEEP_SECONDS = 120, 60.0


class Rates:
    """The last value of every counter of one sampler, by name."""

    def __init__(self) -> None:
        self._last: dict[Hashable, tuple[float, float, int, float | None]] = {}
        self._sample = 0
        self._cleared = (0, 0.0)  # the sample, and when, after which counters were last forgotten

    def rate(self, name: Hashable, counter: Counter) -> float | None:
        """Return the rate since the previous count; None for the first count and for one that decreased.

        If two counts are too close in time, the previous rate is returned.
        """
        before = self._last.get(name)
        if before is None:
            self._last[name] = (counter.value, counter.at, self._sample, None)
            return None
        grown, elapsed = counter.value - before[0], counter.at - before[1]
        if grown >= 0 and 0 <= elapsed < counter.apart:
            self._last[name] = (before[0], before[1], self._sample, before[3])
            return before[3]
        rate = None if elapsed <= 0 or grown < 0 else counter.scale * grown / elapsed
        self._last[name] = (counter.value, counter.at, self._sample, rate)
        return rate

    def next_sample(self, now: float) -> None:
        """Mark the end of a sample, at a monotonic time; from time to time, forget counters that no longer appear."""
        self._sample += 1
        sample, at = self._cleared
        if self._sample - sample >= _KEEP and now - at >= _KEEP_SECONDS:
            self._last = {name: entry for name, entry in self._last.items() if entry[2] >= sample}
            self._cleared = self._sample, now

    def restart(self) -> None:
        """Forget every count: after a suspend, counts cannot be compared with earlier ones."""
        self._last.clear()


_OUTLASTING = ("xid_last", "xids")  # what is still shown of a lost GPU: why it was lost


class SampledGpu:
    """One GPU over time: static and slow values are kept until read again; a lost or silent GPU keeps only its identity."""

    def __init__(self, position: int, plan: Plan, rates: Rates, dropped: dict[str, int]) -> None:
        self._position = position
        self._plan = plan
        self._rates = rates
        self._dropped = dropped
        self._kept: dict[str, Value] = {}
        self._kept_gaps: dict[str, Gap] = {}
        self._kept_of: dict[
            int, tuple[dict[str, Value], dict[str, Gap], float | None]
        ] = {}  # with the age at that time
        self._empty = True
        self._state: State = "ok"
        self._since: float | None = None

    def adopt(self, plan: Plan) -> None:
        """Switch to another plan; values that it does not read are forgotten."""
        self._plan = plan
        self._kept = {key: value for key, value in self._kept.items() if key in plan.lasting}
        self._kept_gaps = {key: gap for key, gap in self._kept_gaps.items() if key in plan.lasting}

    def due(self, slow: bool) -> frozenset[str]:
        """Return the keys to read now; `slow`: the slow ones are due."""
        keys = self._plan.fast | self._plan.slow if slow or self._empty else self._plan.fast
        missing = [
            key for key in self._plan.static if key not in self._kept and self._kept_gaps.get(key) != "unsupported"
        ]
        return keys.union(missing) if missing else keys

    def answered(
        self, device: Device, sample: DeviceSample, now: float, known: dict[int, Facts], listed: bool = True
    ) -> Gpu:
        """Build the values of a GPU that responded; `known` holds the host's details of processes.

        `listed` is false if the processes were not read this time, although they are wanted.
        """
        self._prepare(sample, self._position, listed)
        if not listed and self._plan.lists and sample.state == "ok":
            sample.gaps.setdefault("processes", "skipped")
        if sample.state == "ok":
            self._remember(sample)
            values = {**device.identity, **self._kept, **sample.values}
        else:
            self.forget()
            values = {**device.identity, **{key: sample.values[key] for key in _OUTLASTING if key in sample.values}}
        gaps = {**self._kept_gaps, **sample.gaps}
        gpu = Gpu(
            values,
            {key: gap for key, gap in gaps.items() if key not in values},
            state=sample.state,
            since=self._since_when(sample.state, now),
            processes=self._processes(sample, known),
            instances=tuple(self._instance(part, known, at) for at, part in enumerate(sample.instances)),
        )
        if listed:
            present = {process.pid for process in gpu.all_processes()}
            self._kept_of = {pid: kept for pid, kept in self._kept_of.items() if pid in present}
        return gpu

    def silent(self, device: Device, now: float, gap: Gap) -> Gpu:
        """Build the values of a GPU that did not respond: its identity, and none of its earlier values."""
        self.forget()
        state: State = "timeout" if gap == "timeout" else "ok"
        gaps: dict[str, Gap] = dict.fromkeys(self._plan.asked - device.identity.keys(), gap)
        return Gpu(device.identity, gaps, state=state, since=self._since_when(state, now))

    def _prepare(self, sample: DeviceSample, owner: int | tuple[int, int], listed: bool = True) -> None:
        settle_rates(owner, sample, self._rates)
        check(sample, GPU_METRICS, self._dropped)
        for facts in sample.processes.values():
            check(facts, PROCESS_METRICS, self._dropped)
        if self._plan.derives:
            derive_memory(sample, self._plan.lists and listed)

    def _remember(self, sample: DeviceSample) -> None:
        self._empty = False
        for key in self._plan.lasting:
            if key in sample.values:
                self._kept[key] = sample.values[key]
                self._kept_gaps.pop(key, None)
            elif key in sample.gaps:
                self._kept.pop(key, None)
                self._kept_gaps[key] = sample.gaps[key]

    def forget(self) -> None:
        """Keep none of the earlier values: all are read again."""
        self._empty = True
        self._kept.clear()
        self._kept_gaps.clear()
        self._kept_of.clear()

    def _since_when(self, state: State, now: float) -> float | None:
        if state != self._state:
            self._state, self._since = state, now
        return None if state == "ok" else self._since

    def _instance(self, sample: DeviceSample, known: dict[int, Facts], at: int) -> Gpu:
        self._prepare(sample, (self._position, at))
        return Gpu(sample.values, sample.gaps, processes=self._processes(sample, known))

    def _processes(self, sample: DeviceSample, known: dict[int, Facts]) -> tuple[Process, ...]:
        rows = [self._process(pid, facts, known.get(pid)) for pid, facts in sample.processes.items()]
        return tuple(sorted(rows, key=lambda process: (-(process.memory_used or 0), process.pid or 0)))

    def _process(self, pid: int, facts: Facts, machine: Facts | None) -> Process:
        fresh, gaps = {**facts.values, "pid": pid}, facts.gaps
        if machine is not None:
            if machine.gaps:
                # what is denied stays hidden, also if the driver would tell it
                hidden = {key for key, gap in machine.gaps.items() if gap == "denied"}
                fresh = {key: value for key, value in fresh.items() if key not in hidden}
                gaps = {**machine.gaps, **gaps}
            fresh = {**machine.values, **fresh}
        elif self._plan.describes:
            gaps = {**gaps, "name": "failed"}
        if (tells := self._plan.tells) is not None:
            fresh = {key: value for key, value in fresh.items() if key in tells}
        slow = self._plan.process_slow
        kept, kept_gaps, before = self._kept_of.get(pid) or ({}, {}, None)
        age = fresh.get("running_time")
        if isinstance(age, (int, float)) and before is not None and age < before:
            kept, kept_gaps = {}, {}  # another process has the PID now
        unread = slow.isdisjoint(fresh) and slow.isdisjoint(gaps)
        if not kept and not kept_gaps and unread:
            kept_gaps = dict.fromkeys(slow, "pending")  # it has come since the slow metrics were last read
            unread = False
        values = (
            {**{key: value for key, value in kept.items() if key not in gaps}, **fresh} if gaps else {**kept, **fresh}
        )
        gaps = {**kept_gaps, **gaps}
        if slow and not unread:
            kept = {key: value for key, value in values.items() if key in slow}
            missing = {key: gap for key, gap in gaps.items() if key in slow and key not in kept}
            self._kept_of[pid] = (kept, missing, age if isinstance(age, (int, float)) else None)
        return Process(values, {key: gap for key, gap in gaps.items() if key not in values})


_VERSIONS = {"version": "its version", "cuda": "the CUDA version", "nvml": "the NVML version"}
_NO_VERSION = "the driver does not respond when asked for {}."
NOT_LISTED = object()  # the process list did not respond


def add_processes(sample: DeviceSample, listing: Any, process_keys: frozenset[str] | None) -> None:
    """Add the processes of a GPU that were read apart, or why there are none."""
    if process_keys is None or listing is None or sample.state != "ok":
        return  # not asked for, or read together with the metrics
    if isinstance(listing, Exception):
        sample.gaps["processes"] = "failed"
    elif listing is NOT_LISTED:
        sample.gaps["processes"] = "timeout"
    else:
        listing.add_to(sample)


def troubles(source: Source, devices: Iterable[tuple[int, Device]], silent: Iterable[str]) -> list[Problem]:
    """Return what is wrong with a source and with each of its GPUs; `silent` are the versions that it does not tell."""
    return [
        *source.problems,
        *(Problem(source.name, device.trouble) for _, device in devices if device.trouble),
        *(Problem(source.name, _NO_VERSION.format(_VERSIONS.get(word, word)), source.late[1]) for word in silent),
    ]


def raised(answers: Iterable[object]) -> list[Problem]:
    """Describe an unexpected exception of a source: a bug of ours, reported instead of hidden."""
    return [Problem("gpulse", f"{type(error).__name__}: {error}") for error in answers if isinstance(error, Exception)]


_YOUNG = 5.0  # seconds in which a program grows so fast that its tree is walked for every sample
_DEEPEST = 64  # generations to follow before assuming a cycle
FAST = frozenset({"cpu_percent", "cpu_time", "host_memory", "running_time", "thread_state"})
_READ_NOW = frozenset({"tree_cpu_time"})  # never repeated: a counter in a sample was read for this sample
KEYS = (
    FAST
    | _READ_NOW
    | {"tree_cpu_percent", "children", "workers_running", "workers_blocked", "tree_memory", "tree_read", "tree_write"}
)


def _this_machine() -> LinuxMachine:
    from ..sources.processes import LinuxMachine  # a simulation does without

    return LinuxMachine()


class Program:
    """Reads one process repeatedly; used by one thread. The process tree is walked with `slow` and in the first seconds of the process."""

    def __init__(self, pid: int, machine: LinuxMachine | None = None) -> None:
        self.pid = pid
        self._machine = machine or _this_machine()
        self._rates = Rates()
        self._kept = Process({})

    def read(self, slow: bool) -> Process | None:
        """Return the current values; None if the process has ended or is not visible."""
        slow = slow or (self._kept.running_time or 0.0) < _YOUNG
        facts = self._machine.processes([self.pid], KEYS if slow else FAST).get(self.pid)
        if facts is None:
            return None
        settle_rates(self.pid, facts, self._rates)
        check(facts, PROCESS_METRICS, {})
        if not slow:
            kept = KEYS - FAST - _READ_NOW
            facts.values = {**{key: value for key, value in self._kept.items() if key in kept}, **facts.values}
            facts.gaps = {**{key: gap for key, gap in self._kept.gaps.items() if key in kept}, **facts.gaps}
        values = {key: value for key, value in facts.values.items() if key in KEYS}
        self._kept = Process({"pid": self.pid, **values}, facts.gaps)
        return self._kept


class ProcessFamily:
    """A process and its descendants, told apart from the other processes on the GPUs; used by one thread.

    A process that was seen to belong to it stays, even if its parent ends.
    """

    def __init__(self, root: int, machine: LinuxMachine | None = None) -> None:
        self._root = root
        self._machine = machine or _this_machine()
        self._known: dict[int, bool] = {}

    def members(self, snapshot: Snapshot) -> frozenset[int] | None:
        """Return the PIDs on the GPUs that belong to it; None if the driver reports those of another namespace."""
        if any(problem.source == "processes" for problem in snapshot.problems):
            return None
        pids = {int(process.pid) for gpu in snapshot.gpus for process in gpu.all_processes() if process.pid}
        if pids:  # else the lists may only have been skipped
            self._known = {pid: self._known[pid] if pid in self._known else self.owns(pid) for pid in pids}
        return frozenset(pid for pid, own in self._known.items() if own)

    def owns(self, pid: int) -> bool:
        """Return whether a process is the root or one of its descendants."""
        for _ in range(_DEEPEST):
            if pid == self._root:
                return True
            pid = self._machine.parent(pid) or 0
            if pid <= 1:
                return False
        return False
