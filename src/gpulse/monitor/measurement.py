"""A measurement: the values of one call, complete once its last sample has arrived."""

from __future__ import annotations

import threading

from ..analysis.energy import TELLING, sum_known
from ..analysis.own_use import own_memory
from ..analysis.tally import Tally
from ..present.cells import DASH, quantity_text, seconds_text
from ..present.program import is_shared, own_energy_text
from ..present.text import clean
from ..units import size_text
from ..value import Value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable
    from typing import Any

    from ..analysis.summary import GpuSummary, Stats
    from ..model.catalog import Process
    from ..model.snapshot import Snapshot

SEEN = 0.1  # seconds a call must last for memory and activity to be seen in it: the counters latch no faster
_PATIENCE = 2.0  # seconds to wait for the last sample: the slow counters are read at most once per second
_NAME = 24
_LONGEST = 40  # characters of a name in repr()


class MemoryUse(Value):
    """Memory of one GPU at one time, in bytes: used by all processes, and by this program; None if unknown."""

    all: float | None
    own: float | None


class CallTally(Tally):
    """The tally of a call, with the memory before, at its peak and after, by UUID.

    The sample after the end is slightly late, so it includes memory changes that the program made since then.
    """

    def __init__(self) -> None:
        super().__init__()
        self.before: dict[str, MemoryUse] = {}
        self.most: dict[str, MemoryUse] = {}
        self.after: dict[str, MemoryUse] = {}

    def begin(self, snapshot: Snapshot, own: Collection[int] | None = None) -> None:
        """Add a sample from just before the call."""
        self.before = dict(_memory_by_uuid(snapshot, own))

    def added(self, snapshot: Snapshot, program: Process | None, own: Collection[int] | None, within: bool) -> None:
        before, self.after = self.after, dict(_memory_by_uuid(snapshot, own))
        for uuid, now in self.after.items():
            if now.own is None and uuid in before:
                now.own = before[uuid].own  # the processes were not read this time
            if within:
                most = self.most.get(uuid, now)
                self.most[uuid] = MemoryUse(_most(most.all, now.all), _most(most.own, now.own))


def _memory_by_uuid(snapshot: Snapshot, own: Collection[int] | None) -> Iterable[tuple[str, MemoryUse]]:
    """Yield the memory in use by UUID."""
    for gpu in snapshot.gpus:
        yield gpu.uuid or "", MemoryUse(gpu.memory_used, own_memory(gpu, own))


class Measurement:
    """The values of one call.

    `seconds`: time inside it; `elapsed`: time from start to end (longer only for generators); `cpu_seconds` of this process;
    `failed`: it raised, `interrupted`: by Ctrl-C. `torch_net` and `torch_peak`: bytes of torch's allocator on its current device;
    None if torch is not in use or, for the peak, if an earlier peak was higher: then `torch_peak_limit` is that one. GPU values
    cover the GPUs that this program used with all its processes (all it can see, where processes cannot be told apart), and are
    None if it used none, if 16 other calls were being measured, or if the call was too short: below 0.1 s for memory and activity,
    below 1 s for energy. Reading them waits for the last sample, at most two seconds.
    """

    def __init__(self, name: str) -> None:
        self.name = name
        self.seconds = 0.0
        self.elapsed = 0.0
        self.cpu_seconds = 0.0
        self.failed = False
        self.interrupted = False
        self.torch_net: int | None = None
        self.torch_peak: int | None = None
        self.torch_peak_limit: int | None = None
        self.torch_held_net: int | None = None
        self.tally: CallTally | None = None
        self._lock = threading.RLock()
        self._then: list[Callable[[Measurement], None]] | None = []
        self._gpus: tuple[GpuSummary, ...] | None = None

    @property
    def gpus(self) -> tuple[GpuSummary, ...]:
        """The statistics of each GPU that this program used; of all it can see, where processes cannot be told apart."""
        there = self.visible_gpus
        return tuple(gpu for gpu in there if gpu.own.used) or tuple(gpu for gpu in there if gpu.own.used is None)

    @property
    def visible_gpus(self) -> tuple[GpuSummary, ...]:
        """The statistics of each GPU that this program can see, used by it or not; empty for a call shorter than 0.1 s."""
        if self._gpus is not None or self.elapsed < SEEN:  # while it lasts, there is nothing to wait for, either
            return self._gpus or ()
        complete, tally = self.wait(), self.tally
        found = () if tally is None else tally.summary(self.name, self.elapsed).gpus
        if complete:
            self._gpus = found
        return found

    @property
    def used_gpu(self) -> bool | None:
        """Whether this program used a GPU; None if the call was too short to see, or processes cannot be told apart."""
        told = [gpu.own.used for gpu in self.visible_gpus]
        return True if True in told else False if told and None not in told else None

    @property
    def memory_peak(self) -> float | None:
        """Peak memory that this program used on the devices, in bytes; that of all processes, where they cannot be told apart."""
        return self._peak("own" if self._is_told_apart else "all")

    @property
    def memory_net(self) -> float | None:
        """Change of the memory that this program used on the devices, in bytes; of all processes, where they cannot be told apart."""
        return self._change("own" if self._is_told_apart else "all")

    @property
    def device_memory_peak(self) -> float | None:
        """Peak memory used on the devices by all processes, in bytes."""
        return self._peak("all")

    @property
    def device_memory_net(self) -> float | None:
        """Change of the memory used on the devices by all processes, in bytes."""
        return self._change("all")

    @property
    def utilization(self) -> Stats | None:
        """Utilization in percent, of the most used GPU."""
        return self._most_used("utilization")

    @property
    def sm_active(self) -> Stats | None:
        """SM activity in percent, of the most used GPU."""
        return self._most_used("sm_active")

    @property
    def energy(self) -> float | None:
        """Energy of the devices during the call in joules: the share of this program, if its processes are known."""
        return sum_known(gpu.energy for gpu in self.gpus) if self.elapsed >= TELLING else None

    @property
    def energy_estimated(self) -> bool:
        """Whether the energy was shared with others by SM time, or integrated from power because a GPU has no energy counter."""
        return self.energy is not None and any(gpu.energy_estimated for gpu in self.gpus)

    @property
    def sm_utilization(self) -> float | None:
        """Mean share of time in which kernels of this program ran, in percent, of the GPU it used most; None below one second."""
        return max((gpu.own.sm_utilization for gpu in self.gpus if gpu.own.sm_utilization is not None), default=None)

    def wait(self, seconds: float = _PATIENCE) -> bool:
        """Wait for the last sample; return False if it has not arrived."""
        if self._then is None:
            return True
        done = threading.Event()
        self.then(lambda _: done.set())
        return done.wait(seconds)

    def then(self, action: Callable[[Measurement], None]) -> None:
        """Call this function once all values are known, immediately if they are."""
        with self._lock:
            if self._then is not None:
                self._then.append(action)
                return
        action(self)

    def complete(self, tally: Tally | None = None) -> None:
        """Set the statistics and mark the measurement as complete."""
        if isinstance(tally, CallTally):
            self.tally = tally
        with self._lock:
            then, self._then = self._then or [], None
        for action in then:
            action(self)

    def to_plain(self) -> dict[str, Any]:
        """Return everything as plain data, ready for JSON."""
        names = ("name", "seconds", "elapsed", "cpu_seconds", "failed", "interrupted", "torch_net", "torch_peak",
                 "memory_peak", "memory_net", "device_memory_peak", "device_memory_net", "used_gpu", "sm_utilization", "energy",
                 "energy_estimated")  # fmt: skip
        plain = {name: getattr(self, name) for name in names}
        return plain | {"gpus": [gpu.to_plain() for gpu in self.gpus]}

    def __str__(self) -> str:
        cpu = 100.0 * self.cpu_seconds / self.elapsed if self.elapsed > 0 else 0.0
        parts = [f"{clean(self.name)[:_NAME]:<{_NAME}} {seconds_text(self.seconds):>9}", f"CPU {cpu:4.0f} %"]
        if self.used_gpu is False:
            parts.append("used no GPU")
        else:
            parts.append(f"GPU memory {_memory_text(self.memory_peak, self.memory_net)}")
            if self.torch_peak_limit is not None:
                parts.append(f"torch {_memory_text(self.torch_peak, self.torch_net, self.torch_peak_limit)}")
            if any(map(is_shared, self.gpus)):
                parts += [f"SM share {quantity_text('%', self.sm_utilization)}"]
            else:
                parts += [f"util {_share(self.utilization)}", f"SM {_share(self.sm_active)}"]
            parts.append(own_energy_text(self.energy, self.gpus))
        return "  ".join([*parts, *([self.result] if self.failed else [])])

    def __repr__(self) -> str:
        failed = f", {self.result}" if self.failed else ""
        return f"<Measurement {clean(self.name)[:_LONGEST]}: {seconds_text(self.seconds)}{failed}>"

    def _repr_html_(self) -> str:
        """Return the table that notebooks show."""
        from ..present.html import measurement_html

        return measurement_html(self.facts(), self.gpus)

    def facts(self) -> list[tuple[str, str]]:
        """Return what a person wants to know first, as title and text; what is not known is left out."""
        facts = [("Time", seconds_text(self.seconds)), ("CPU time", seconds_text(self.cpu_seconds))]
        if self.used_gpu is False:
            facts.append(("GPU", "not used"))
        memory = "Peak GPU memory" if self._is_told_apart else "Peak GPU memory of all processes"
        for title, size in ((memory, self.memory_peak), ("Peak of torch's tensors", self.torch_peak)):
            if size is not None:
                facts.append((title, size_text(size)))
        if any(map(is_shared, self.gpus)):
            if self.sm_utilization is not None:
                facts.append(("SM share", quantity_text("%", self.sm_utilization)))
        else:
            for title, share in (("Utilization", self.utilization), ("SM activity", self.sm_active)):
                if share is not None:
                    facts.append((title, f"{share.mean:.0f} % (p95 {share.p95:.0f})"))
        if self.energy is not None:
            facts.append(("Energy", own_energy_text(self.energy, self.gpus)))
        return facts + ([("Result", self.result)] if self.failed else [])

    @property
    def result(self) -> str:
        """How it ended, in a word; empty if it raised nothing."""
        return "interrupted" if self.interrupted else "failed" if self.failed else ""

    @property
    def _is_told_apart(self) -> bool:
        return all(gpu.own.used for gpu in self.gpus)

    def _after(self, uuid: str, which: str) -> float | None:
        """Return the memory at the end: as sampled just after it, corrected by torch's own numbers if available."""
        assert self.tally is not None
        before, after = self.tally.before.get(uuid), self.tally.after.get(uuid)
        if after is None:
            return None
        held = None if before is None else before.own
        if self.torch_held_net is None or len(self.gpus) > 1 or held is None or after.own is None:
            return after.all if which == "all" else after.own
        own = held + self.torch_held_net
        return own if which == "own" else None if after.all is None else after.all - after.own + own

    def _peak(self, which: str) -> float | None:
        uuids = [gpu.uuid or "" for gpu in self.gpus]
        tally = self.tally
        if tally is None:
            return None
        none = MemoryUse(None, None)
        return sum_known(_most(getattr(tally.most.get(uuid, none), which), self._after(uuid, which)) for uuid in uuids)

    def _change(self, which: str) -> float | None:
        changes: list[float | None] = []
        for uuid in [gpu.uuid or "" for gpu in self.gpus]:
            assert self.tally is not None
            was, now = self.tally.before.get(uuid), self._after(uuid, which)
            if was is None or now is None:
                return None
            first = was.all if which == "all" else was.own
            changes.append(None if first is None else now - first)
        return sum_known(changes)

    def _most_used(self, key: str) -> Stats | None:
        found = [gpu.stats[key] for gpu in self.gpus if key in gpu.stats]
        return max(found, key=lambda stats: stats.mean) if found else None


def _memory_text(peak: float | None, net: float | None, limit: float | None = None) -> str:
    most = size_text(peak) if peak is not None else f"≤{size_text(limit)}" if limit is not None else DASH
    change = "" if net is None else f"{'-' if net < 0 else '+'}{size_text(abs(net))}"
    return f"{most:>9} {change:>10}"


def _share(stats: Stats | None) -> str:
    return f"{DASH:>4}          " if stats is None else f"{stats.mean:3.0f} % (p95 {stats.p95:3.0f})"


def _most(one: float | None, other: float | None) -> float | None:
    return other if one is None else one if other is None else max(one, other)
