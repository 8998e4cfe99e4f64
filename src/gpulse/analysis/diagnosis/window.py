"""Windows: the samples of one machine in columns, one window per GPU and per MIG instance.

A sample stands for the time since the one before. A value that is missing is None; a list of processes that was not read at a
sample is the one read last before it, for a few seconds, because sampling fast skips most lists.
"""

from __future__ import annotations

from functools import cached_property
from itertools import pairwise

from ...model.catalog import DIAGNOSIS, Process
from ...model.identity import GpuIdentities, rename
from ...model.select import Wanted
from ...model.snapshot import Cadence
from ..readings import HIDDEN, is_another
from .trace import Trace
from .workload import backfilled

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Sequence
    from typing import TypeAlias

    from ...model.catalog import Gpu, Server
    from ...model.metric import Reading
    from ...model.snapshot import Snapshot

    Column: TypeAlias = Sequence[float | None]
    ProcessKey: TypeAlias = tuple[int, int]

PROCESS_KEYS = (
    "memory_used", "sm_utilization", "cpu_percent", "tree_cpu_percent", "children", "tree_read", "tree_write", "running_time",
    "tree_cpu_time", "workers_running", "workers_blocked",
)  # fmt: skip
HOST_KEYS = ("cpu_percent", "iowait", "disk_read", "disk_write", "net_rx", "net_tx", "cpu_count")
_CARRIED = 6.0  # seconds for which a list of processes stands for samples that did not read it


class Listed(list[tuple[Process, "list[float | None]"]]):
    """The processes of one list with their values; `keys` and the `states` of their main threads are in the same order.

    A key is a PID and how often it was given to another process before: a PID alone does not identify a process.

    A display server holds memory and draws; nobody asks what limits it: `drawn` is whether there is one, `drawing` what it holds.
    """

    __slots__ = ("drawing", "drawn", "keys", "states")

    def __init__(self, holders: Iterable[Process]) -> None:
        found = [*holders]
        super().__init__((one, numbers(one, PROCESS_KEYS)) for one in found if one.type != "G")
        self.drawn = len(found) > len(self)
        self.drawing = sum(one.memory_used or 0.0 for one in found if one.type == "G")
        self.keys = [None if one.pid is None else (int(one.pid), 0) for one, _ in self]
        self.states = [one.thread_state for one, _ in self]


class Row:
    """One GPU at one sample, reduced to what rules use. `processes` is None where they were not read."""

    __slots__ = ("processes", "reasons", "server", "since", "state", "time", "trace", "values")

    def __init__(self, time: float, gpu: Gpu, program: Process | None = None, server: Server | None = None) -> None:
        self.server = server
        self.time = time
        self.state, self.since = gpu.state, gpu.since
        self.reasons = gpu.throttle_reasons
        self.values = numbers(gpu, DIAGNOSIS)
        self.trace: Sequence[float] = gpu.utilization_trace or ()
        self.processes: Listed | None = None
        if "processes" not in gpu.gaps and gpu.state == "ok":
            holders: Iterable[Process] = gpu.all_processes() if gpu.instances else gpu.processes
            if program is not None:
                holders = with_program(holders, program, gpu.memory_used)
            self.processes = Listed(holders)


class GpuWindow:
    """One GPU over a window: parallel columns by catalog key, the weight in seconds of each sample, and its processes.

    `index` and `uuid` are those of the last sample that has them. `instance` names a MIG instance of the GPU; `divided` is true for
    a GPU whose MIG instances have windows of their own, `unified` for one that shares the memory of the host. `own` are the
    processes of the program that is judged, None where the GPU is judged with everybody on it. `new_xids` are the codes that came
    while it was watched, not long before the window.
    """

    def __init__(
        self,
        gpu: Gpu,
        rows: Sequence[Row],
        timing: SampleTimes,
        card: Gpu | None = None,
        own: frozenset[int] | None = None,
        new_xids: Collection[float] = (),
    ) -> None:
        self.own = own
        self.new_xids = new_xids
        index = gpu.index if card is None else card.index
        self.index = None if index is None else int(index)
        self.instance = "" if card is None else instance_name(gpu)
        self.divided, self.unified = bool(gpu.instances), bool(gpu.memory_unified)
        self.uuid = gpu.uuid
        self.name = gpu.name or ""
        self.rows = rows
        self.processes = carried(rows)
        self.times, self.interval, self.weights, self.host = timing.times, timing.interval, timing.weights, timing.host
        columns = zip(*(row.values for row in rows), strict=True)
        self.columns: dict[str, Column] = dict(zip(DIAGNOSIS, columns, strict=True))
        self.trace = Trace(rows)
        if self.trace.times:
            self.columns["utilization"] = self.trace.means(self.times, self.weights, self.columns["utilization"])

    def __len__(self) -> int:
        return len(self.times)

    @cached_property
    def tracks(self) -> dict[ProcessKey, ProcessSamples]:
        """The processes seen on this GPU."""
        return _tracks(self.processes, self.times)

    @property
    def lists_processes(self) -> bool:
        """Whether any sample could tell which processes hold the GPU."""
        return any(listed is not None for listed in self.processes)

    def last(self, key: str) -> float | None:
        """Return the last value of a metric, None when it never had one."""
        return next((value for value in reversed(self.columns[key]) if value is not None), None)


class SampleTimes:
    """What the windows of all GPUs of a machine have in common: times of samples, the weight of each, metrics of the host."""

    __slots__ = ("host", "interval", "times", "weights")

    def __init__(self, times: list[float], host: Sequence[list[float | None]]) -> None:
        self.times = times
        self.interval, self.weights = weigh(times)
        self.host: dict[str, Column] = dict(zip(HOST_KEYS, zip(*host, strict=True), strict=True))


class ProcessSamples:
    """One process on one GPU: at which samples it was there, and its values at each of these.

    `states` are the words for what its main thread did at these samples, None where that is not known. `read` are the samples
    that say which processes there were.
    """

    __slots__ = ("at", "pid", "process", "read", "states", "values")

    def __init__(
        self,
        pid: int,
        process: Process,
        seen: Sequence[tuple[int, list[float | None], str | None]],
        times: Sequence[float],
        read: frozenset[int],
    ) -> None:
        self.pid = pid
        self.read = read
        self.process = process
        self.at: Sequence[int]
        self.states: Sequence[str | None]
        self.at, rows, self.states = zip(*seen, strict=True)
        columns = zip(*rows, strict=True)
        self.values: dict[str, Column] = dict(zip(PROCESS_KEYS, columns, strict=True))
        rates = self.values["tree_cpu_percent"]
        self.values["tree_cpu_percent"] = backfilled(self.values["tree_cpu_time"], [times[at] for at in self.at], rates)

    def known(self, key: str) -> list[float]:
        """Return the values that are there, in order."""
        return [value for value in self.values[key] if value is not None]

    def between(self, key: str, first: int, end: int) -> list[tuple[int, float]]:
        """Return the samples from `first` up to, not including, `end` that have a value, with it."""
        pairs = zip(self.at, self.values[key], strict=True)
        return [(at, value) for at, value in pairs if value is not None and first <= at < end]

    def mean(self, key: str, weights: Sequence[float], chosen: range) -> float | None:
        """Return the mean over a range of samples, weighted by time; the time in which the process was absent counts as 0."""
        total = sum(weights[at] for at in chosen if at in self.read)
        known = [(value, weights[at]) for at, value in self.between(key, chosen.start, chosen.stop)]
        seen = sum(weight for _, weight in known)
        if not known or total <= 0 or seen <= 0:
            return None
        present = sum(weights[at] for at in self.at if at in chosen)
        return sum(value * weight for value, weight in known) / seen * min(1.0, present / total)


class WindowBuilder:
    """Collects snapshots and gives the window of each GPU; adding costs the same however many there are."""

    def __init__(self) -> None:
        self.identities = GpuIdentities()
        self._rows: dict[str, list[Row]] = {}
        self._host: dict[str, list[list[float | None]]] = {}
        self._latest: dict[str, Gpu] = {}
        self._cards: dict[str, Gpu] = {}  # the GPU of each MIG instance
        self._codes: dict[str, float | None] = {}  # the last XID of each GPU
        self._came: dict[str, dict[float, float]] = {}  # when XIDs came, by GPU and code
        self._holders: dict[
            tuple[str, int], tuple[Process, float, int]
        ] = {}  # by GPU and PID: the last one, when, which
        self.own: frozenset[int] | None = None
        self.start = self.end = 0.0
        self.samples = 0

    def add(self, snapshot: Snapshot, program: Process | None = None) -> None:
        """Add one snapshot; `program` is what is known of the process that watches its own GPUs."""
        host = numbers(snapshot.host, HOST_KEYS)
        if host[-1] is None and (cores := snapshot.host.cpu_per_core):
            host[-1] = len(cores)
        if not self.samples:
            self.start = snapshot.time
        self.end = max(self.end, snapshot.time)
        self.samples += 1
        servers, keys = _by_gpu(snapshot.serving), self.identities.keys(snapshot.gpus)
        for kept in (self._rows, self._host, self._latest, self._codes, self._came, self._holders):
            rename(kept, self.identities.renamed)
        for key, gpu in zip(keys, snapshot.gpus, strict=True):
            self._add(key, Row(snapshot.time, gpu, program, servers.get(key)), gpu, host)
            for place, instance in enumerate(gpu.instances):
                name = instance.uuid or f"{key}, {place}"
                self._cards[name] = gpu
                self._add(name, Row(snapshot.time, instance, program, servers.get(name)), instance, host)

    def _key(self, name: str, process: Process, time: float) -> ProcessKey | None:
        """Return what tells a process from others that had its PID on the same GPU."""
        if process.pid is None:
            return None
        pid = int(process.pid)
        before, at, turn = self._holders.get((name, pid), (process, time, 0))
        turn += is_another(before, process, time - at)
        self._holders[name, pid] = process, time, turn
        return pid, turn

    def _add(self, name: str, row: Row, gpu: Gpu, host: list[float | None]) -> None:
        if row.processes is not None:
            row.processes.keys = [self._key(name, process, row.time) for process, _ in row.processes]
        self._rows.setdefault(name, []).append(row)
        self._host.setdefault(name, []).append(host)
        self._latest[name] = gpu
        before = self._codes.setdefault(name, gpu.xid_last)
        if gpu.xid_last is not None and gpu.xid_last != before:
            self._codes[name] = gpu.xid_last
            self._came.setdefault(name, {})[gpu.xid_last] = row.time

    def drop_before(self, time: float) -> None:
        """Forget samples taken before a time, and GPUs that have no others."""
        for name in list(self._rows):
            self.cut(name, time)
            self._came[name] = {code: at for code, at in self._came.get(name, {}).items() if at >= time}
            if not self._rows[name]:
                del self._rows[name], self._host[name], self._latest[name], self._codes[name], self._came[name]
                self._cards.pop(name, None)
        self._holders = {key: known for key, known in self._holders.items() if known[1] >= time}
        self.start = min((rows[0].time for rows in self._rows.values()), default=time)

    def cut(self, name: str, time: float) -> None:
        """Forget the samples of one GPU before a time: another program runs on it now."""
        rows, host = self._rows[name], self._host[name]
        old = next((at for at, row in enumerate(rows) if row.time >= time), len(rows))
        del rows[:old], host[:old]

    def changed(self) -> list[str]:
        """Return the GPUs whose programs, as of the last sample, have nothing in common with those of the last list before it."""
        return [name for name, rows in self._rows.items() if _programs_changed(rows)]

    def windows(self) -> list[GpuWindow]:
        """Return one window per GPU and MIG instance, in the order in which they first appeared."""
        found: list[GpuWindow] = []
        timings: dict[tuple[float, ...], SampleTimes] = {}
        for name, rows in self._rows.items():
            times = [row.time for row in rows]
            if (timing := timings.get(tuple(times))) is None:
                timing = timings[tuple(times)] = SampleTimes(times, self._host[name])
            card, came = self._cards.get(name), self._came.get(name, ())
            found.append(GpuWindow(self._latest[name], rows, timing, card, self.own, new_xids=came))
        return found


def _by_gpu(servers: Iterable[Server]) -> dict[str, Server]:
    """Return the server of each GPU by UUID; of several the one that makes most tokens."""
    found: dict[str, Server] = {}
    for server in servers:
        for uuid in server.gpus or ():
            known = found.get(uuid)
            if known is None or (server.generation_rate or 0.0) > (known.generation_rate or 0.0):
                found[uuid] = server
    return found


def _programs_changed(rows: Sequence[Row]) -> bool:
    last = rows[-1].processes if rows else None
    if last is None:
        return False
    for at in range(len(rows) - 2, -1, -1):
        before = rows[at].processes
        if before is not None:
            return bool(before or last) and before.keys != last.keys and {*before.keys}.isdisjoint(last.keys)
    return False


def with_program(holders: Iterable[Process], program: Process, used: float | None) -> list[Process]:
    """Return the processes of a GPU with what the program knows of itself; in a container that hides them, the program alone."""
    found = list(holders)
    for at, process in enumerate(found):
        if process.pid == program.pid:
            found[at] = Process({**dict(program.items()), **dict(process.items())})
            return found
    if not found and used is not None and used >= HIDDEN:
        return [Process({**dict(program.items()), "memory_used": used})]
    return found


def windows_of(snapshots: Iterable[Snapshot]) -> WindowBuilder:
    """Collect snapshots into windows."""
    builder = WindowBuilder()
    for snapshot in snapshots:
        builder.add(snapshot)
    return builder


def weigh(times: Sequence[float]) -> tuple[float, list[float]]:
    """Return the usual interval and how many seconds each sample stands for; the first stands for one interval."""
    positive = sorted(later - earlier for earlier, later in pairwise(times) if later > earlier)
    interval = positive[len(positive) // 2] if positive else 1.0
    cadence = Cadence()
    weights = [cadence.next(time)[0] for time in times]
    return interval, [interval, *weights[1:]] if weights else []


def numbers(reading: Reading, keys: Sequence[str]) -> list[float | None]:
    """Return the values of some keys; what is no finite number is None."""
    get = reading.get
    try:
        # a finite number minus itself is 0; this is three times as fast as asking for its type
        return [value if value is None or value - value == 0.0 else None for value in map(get, keys)]  # type: ignore[operator, misc]
    except TypeError:
        found = (get(key) for key in keys)
        return [value if isinstance(value, (int, float)) and value - value == 0.0 else None for value in found]


def carried(rows: Sequence[Row]) -> list[Listed | None]:
    """Return the processes of each sample; those that were not read are the ones read last, or first where none was before."""
    found: list[Listed | None] = []
    last: tuple[float, Listed] | None = None
    for row in rows:
        if row.processes is not None:
            last = row.time, row.processes
        known = row.state == "ok" and last is not None and row.time - last[0] <= _CARRIED
        found.append(last[1] if known and last is not None else None)
    first = next((at for at, row in enumerate(rows) if row.processes is not None), None)
    for at in range(first or 0):
        if rows[at].state == "ok" and rows[first or 0].time - rows[at].time <= _CARRIED:
            found[at] = rows[first or 0].processes
    return found


def instance_name(gpu: Gpu) -> str:
    """Return what a MIG instance of a GPU is called: "1", or "1/0" with its compute instance."""
    parts = [f"{number:.0f}" for number in (gpu.gpu_instance, gpu.compute_instance) if number is not None]
    return "/".join(parts) or (gpu.uuid or "?")


def _tracks(listed: Sequence[Listed | None], times: Sequence[float]) -> dict[ProcessKey, ProcessSamples]:
    seen: dict[ProcessKey, list[tuple[int, list[float | None], str | None]]] = {}
    latest: dict[ProcessKey, Process] = {}
    for place, processes in enumerate(listed):
        if processes is None:
            continue
        for key, state, (process, values) in zip(processes.keys, processes.states, processes, strict=True):
            if key is not None:
                latest[key] = process
                seen.setdefault(key, []).append((place, values, state))
    read = frozenset(at for at, processes in enumerate(listed) if processes is not None)
    return {key: ProcessSamples(key[0], latest[key], places, times, read) for key, places in seen.items()}


_IDENTITY = ("index", "uuid", "name", "throttle_reasons", "memory_percent", "utilization_trace")
_PROCESS = ("pid", "name", "command", "user", "parent", "type", "container", "pod", "job", "thread_state")
WANTED = Wanted(
    (*DIAGNOSIS, *_IDENTITY), (*PROCESS_KEYS, *_PROCESS), (*HOST_KEYS, "name", "cpu_per_core"), serving=True
)
