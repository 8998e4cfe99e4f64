"""Series of a sample in gpulse's own names, and the counters behind them: integrated rates, seconds throttled, XIDs, gaps."""

from __future__ import annotations

from ...analysis.readings import XidNews
from ...model.catalog import DOWN, GPU_METRICS, HOST_METRICS, OWNERS, PROCESS_METRICS, SERVER_METRICS
from ...model.metric import Number
from ...model.select import Wanted
from ...model.snapshot import Cadence
from ...present.exposition import (
    Family,
    gpu_identity,
    gpu_labels,
    is_series,
    labels,
    of_metric,
    series_name,
)
from ...units import BYTES_PER_SECOND
from .tenants import LIMIT, LONGEST_LABEL, OTHER, Bound, owner_of_gpu, owner_of_process

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence

    from ...model.catalog import Gpu, Host, Process, Server
    from ...model.metric import Metric, Reading
    from ...model.snapshot import Snapshot
    from ...model.verdict import Diagnosis
    from ...sources.kubelet import Assignment
    from .tenants import Pairs, Tenants

HOST = "host"


def _rates(metrics: Mapping[str, Metric]) -> Iterator[Metric]:
    return (each for each in metrics.values() if each.unit is BYTES_PER_SECOND and isinstance(each, Number))


GPU_RATES = tuple(_rates(GPU_METRICS))
HOST_RATES = tuple(metric for metric in _rates(HOST_METRICS) if metric.group != "details")
# On NVIDIA GPUs without GPM these are rates of the millisecond before the sample, which say nothing about the time since the last.
_SPOT_CHECKS = ("pcie_rx", "pcie_tx")
_NOT_MISSING = "xid_last"  # a GPU without errors has no XID


def owners(snapshot: Snapshot) -> Iterator[tuple[str, Gpu, Gpu | None]]:
    """Yield GPUs and MIG instances with a unique name, and the GPU of each instance; duplicates are skipped."""
    seen = set()
    for at, whole in enumerate(snapshot.gpus):
        parts = [(part.uuid or f"at {at}.{place}", part, whole) for place, part in enumerate(whole.instances)]
        for name, gpu, of in ((whole.uuid or f"at {at}", whole, None), *parts):
            if name not in seen:
                seen.add(name)
                yield name, gpu, of


class Counters:
    """Totals over all samples of one server, by owner (a GPU's UUID, or HOST); updated by one thread.

    A rate applies to the interval since the previous sample, so that the total divided by time is the rate again.
    """

    def __init__(self) -> None:
        self.samples = 0
        self.bytes: dict[tuple[str, str], float] = {}
        self.throttled: dict[str, dict[str, float]] = {}
        self.xids: dict[str, dict[int, int]] = {}
        self.gaps: dict[tuple[str, str], int] = {}
        self.throttlings: dict[str, dict[str, int]] = {}  # how often each reason began
        self._reasons: dict[str, frozenset[str]] = {}
        self._cadence = Cadence(first=60.0)
        self._xid_watches: dict[str, XidNews] = {}
        self._last_xid: dict[str, float] = {}

    def add(self, snapshot: Snapshot) -> None:
        """Add the next sample."""
        seconds, _ = self._cadence.next(snapshot.time)
        self.samples += 1
        for name, gpu, _ in owners(snapshot):
            self._add_rates(name, gpu, GPU_RATES, seconds)
            self._add_reasons(name, gpu, seconds)
            self._add_xid(name, gpu)
            self._add_gaps(gpu, "")
        self._add_rates(HOST, snapshot.host, HOST_RATES, seconds)
        self._add_ports(snapshot.host, seconds)
        self._add_gaps(snapshot.host, "host.")

    def moved(self, name: str, reading: Reading, key: str) -> int | None:
        """Return the bytes that a rate of the latest sample has added up to; None if it is missing or cannot be added up."""
        return None if _rate(reading, key) is None else round(self.bytes.get((name, key), 0.0))

    def _add_rates(self, name: str, reading: Reading, rates: Iterable[Metric], seconds: float) -> None:
        for metric in rates:
            if (rate := _rate(reading, metric.key)) is not None:
                self.bytes[name, metric.key] = self.bytes.get((name, metric.key), 0.0) + rate * seconds

    def _add_ports(self, host: Host, seconds: float) -> None:
        for key, rates in (("port_rx", host.port_rx), ("port_tx", host.port_tx)):
            for port, rate in zip(host.port_names or (), rates or (), strict=False):
                self.bytes[port, key] = self.bytes.get((port, key), 0.0) + rate * seconds

    def _add_reasons(self, name: str, gpu: Gpu, seconds: float) -> None:
        if (reasons := gpu.throttle_reasons) is None:
            return
        sums = self.throttled.get(name)
        if sums is None:  # start at 0, otherwise the first occurrence of a reason would not be an increase
            sums = self.throttled[name] = dict.fromkeys(gpu.throttle_reasons_supported or (), 0.0)
        for reason in reasons:
            sums[reason] = sums.get(reason, 0.0) + seconds
        before, self._reasons[name] = self._reasons.get(name, frozenset()), frozenset(reasons)
        begun = self.throttlings.setdefault(name, dict.fromkeys(sums, 0))
        for reason in self._reasons[name] - before:
            begun[reason] = begun.get(reason, 0) + 1

    def last_xid(self, name: str) -> float | None:
        """Return the last XID of a GPU, also of one that is gone."""
        return self._last_xid.get(name)

    def _add_xid(self, name: str, gpu: Gpu) -> None:
        if gpu.xid_last is not None:
            self._last_xid[name] = gpu.xid_last
        for code in self._xid_watches.setdefault(name, XidNews()).codes(gpu):
            counts = self.xids.setdefault(name, {})
            counts[code] = counts.get(code, 0) + 1

    def _add_gaps(self, reading: Reading, prefix: str) -> None:
        for key, reason in reading.gaps.items():
            if reason != "skipped" and key != _NOT_MISSING:
                self.add_gap(prefix + key, reason)

    def add_gap(self, key: str, reason: str) -> None:
        """Count a value that is missing in the latest sample."""
        self.gaps[key, reason] = self.gaps.get((key, reason), 0) + 1


def _rate(reading: Reading, key: str) -> float | None:
    """Return a rate that holds for the time since the previous sample."""
    if key in _SPOT_CHECKS and reading.get("vendor") == "nvidia" and reading.get("sm_active") is None:
        return None
    rate = reading.get(key)
    return rate if isinstance(rate, (int, float)) else None


def _levels(metrics: Mapping[str, Metric]) -> Iterator[Metric]:
    """Yield the numbers that are no rates: rates are exported as what they add up to."""
    return (each for each in metrics.values() if is_series(each) and each.unit is not BYTES_PER_SECOND)


_OF_GPUS = tuple(metric for metric in _levels(GPU_METRICS) if metric.key != "xid_last")
# Details are exported only by name: all of them would add 130 series per GPU.
GPU_SERIES = tuple(metric for metric in _OF_GPUS if metric.group != "details")
DETAIL_SERIES = tuple(metric for metric in _OF_GPUS if metric.group == "details")
HOST_SERIES = tuple(metric for metric in _levels(HOST_METRICS) if metric.group != "details")
PROCESS_SERIES = {
    "gpulse_process_memory_bytes": PROCESS_METRICS["memory_used"],
    **{
        series_name(PROCESS_METRICS[key], "process"): PROCESS_METRICS[key]
        for key in ("sm_utilization", "cpu_percent", "host_memory")
    },
}
# Counters are left out: whoever wants these scrapes the server itself.
SERVER_SERIES = tuple(metric for metric in SERVER_METRICS.values() if is_series(metric) and metric.kind == "gauge")
_MOST_SERVERS = 64  # so that models that come and go cannot flood a database
_LOADS = ("1", "5", "15")
PORTS = tuple(key for key in HOST_METRICS if key.startswith("port_"))
WANTED = Wanted(
    gpu=(
        *(key for key, metric in GPU_METRICS.items() if metric.group == "identity"),
        *(metric.key for metric in (*GPU_SERIES, *GPU_RATES)),
        *("throttle_reasons", "throttle_reasons_supported", "xid_last", "xids"),
    ),
    process=("pid", *OWNERS, "memory_used"),
    host=("name", "load", *PORTS, *(metric.key for metric in (*HOST_SERIES, *HOST_RATES))),
    serving=True,
)
PROCESS_WANTED = Wanted(process=("pid", "name", *(metric.key for metric in PROCESS_SERIES.values())))


def total_name(metric: Metric, thing: str) -> str:
    """Return the name of the counter for a rate: gpulse_gpu_pcie_rx_bytes_total."""
    return f"{series_name(metric, thing).removesuffix('_per_second')}_total"


class Owners:
    """Whose GPUs and processes are, in a limited number of labels: `labelled` puts them on every series of a GPU."""

    def __init__(self, tenants: Tenants | None = None, labelled: bool = False, most: int = LIMIT) -> None:
        self.tenants = tenants
        self.labelled = labelled
        self._owners = Bound(most)
        self._processes = Bound(most)

    def of_gpu(self, gpu: Gpu, processes: Iterable[Process]) -> Pairs:
        """Return the labels of a GPU's owner; nothing if unknown."""
        pairs = owner_of_gpu(processes, self._given(gpu))
        return pairs if not pairs or self._owners.admits(tuple(pairs)) else OTHER

    def of_process(self, gpu: Gpu, process: Process) -> Pairs | None:
        """Return the labels of a process on a GPU; None if it is beyond the limit."""
        pid = None if process.pid is None else f"{process.pid:.0f}"
        pairs = [("pid", pid), ("name", process.name), *owner_of_process(process, self._given(gpu))]
        return pairs if self._processes.admits((gpu.uuid, *pairs)) else None

    def _given(self, gpu: Gpu) -> Sequence[Assignment]:
        return () if self.tenants is None else self.tenants.assigned(gpu)


class Member:
    """A responding GPU or MIG instance: the name of its counters, and its labels as pairs and as text.

    `plain` are the labels that stay the same when the owner changes.
    """

    __slots__ = ("gpu", "name", "owner", "pairs", "plain", "text", "whole")

    def __init__(self, name: str, gpu: Gpu, whole: Gpu | None, owners: Owners) -> None:
        self.name = name
        self.gpu = gpu
        self.whole = whole
        self.plain = gpu_labels(gpu, whole)
        self.owner = owners.of_gpu(gpu, self.processes()) if "processes" not in (whole or gpu).gaps else []
        self.pairs = (*self.plain, *(self.owner if owners.labelled else ()))
        self.text = labels(self.pairs)

    def processes(self) -> Iterable[Process]:
        """Return its processes; for a whole GPU, including those of its instances."""
        return self.gpu.processes if self.whole is not None else self.gpu.all_processes()


def gpu_families(
    snapshot: Snapshot, counters: Counters, processes: bool, owned: Owners, details: Collection[str] = ()
) -> Iterator[Family]:
    """Yield the families of GPUs, with these details. A lost or silent GPU only has `up` and its XIDs, which may tell why."""
    known = (Member(*owner, owned) for owner in owners(snapshot))
    there = list({labels(member.plain): member for member in known}.values())  # duplicate series would be rejected
    members = [member for member in there if (member.whole or member.gpu).state not in DOWN]
    named = [(member.gpu, member.text) for member in members]
    identities = ((gpu_identity(member.gpu, member.whole), 1) for member in members)
    yield Family("gpulse_gpu_info", "info", "Identity of the GPU.", identities)
    up = ((labels(member.plain), float(member.gpu.state not in DOWN)) for member in there if member.whole is None)
    yield Family("gpulse_gpu_up", "gauge", "Whether the GPU responds.", up)
    chosen = (metric for metric in DETAIL_SERIES if metric.key in details)
    yield from (of_metric(metric, "gpu", named) for metric in (*GPU_SERIES, *chosen))
    yield from _grown(members, counters)
    yield _xids(there, counters)
    yield from _use(members)
    if processes:
        yield from _processes(members, owned)


def host_families(snapshot: Snapshot, counters: Counters) -> Iterator[Family]:
    """Yield the families of the host."""
    host = [(snapshot.host, "")]
    yield from (of_metric(metric, "host", host) for metric in HOST_SERIES)
    yield from (_total(metric, "host", [(HOST, snapshot.host, "")], counters) for metric in HOST_RATES)
    known = zip(_LOADS, snapshot.host.load or (), strict=False)
    loads = ((labels([("minutes", minutes)]), load) for minutes, load in known)
    yield Family("gpulse_host_load", "gauge", HOST_METRICS["load"].help, loads)
    yield from _ports(snapshot, counters)


def server_families(snapshot: Snapshot) -> Iterator[Family]:
    """Yield the families of model servers; which GPUs each has is a family of its own, to join by uuid."""
    servers = {server_labels(server): server for server in snapshot.serving[:_MOST_SERVERS]}
    named = [(server, labels(pairs)) for pairs, server in servers.items()]
    yield from (of_metric(metric, "serving", named) for metric in SERVER_SERIES)
    numbers = {part.uuid: gpu.index for gpu in snapshot.gpus for part in (gpu, *gpu.instances)}
    placed = (
        (labels([*pairs, ("gpu", None if (at := numbers.get(uuid)) is None else f"{at:.0f}"), ("uuid", uuid)]), 1)
        for pairs, server in servers.items()
        for uuid in server.gpus or ()
    )
    yield Family("gpulse_serving_info", "info", "GPUs of the model server.", placed)


def server_labels(server: Server) -> tuple[tuple[str, str], ...]:
    """Return the labels that every series of a server has."""
    told = (("server", server.server), ("model", server.model), ("endpoint", server.endpoint))
    return tuple((name, (text or "")[:LONGEST_LABEL]) for name, text in told)


def _ports(snapshot: Snapshot, counters: Counters) -> Iterator[Family]:
    """Yield the InfiniBand, RoCE and Ethernet ports."""
    host = snapshot.host
    names = host.port_names or ()
    ports = [(names.index(name), name, labels([("port", name)])) for name in dict.fromkeys(names)]
    for key, word in (("port_rx", "receive"), ("port_tx", "transmit")):
        moved = [(text, round(counters.bytes[port, key])) for _, port, text in ports if (port, key) in counters.bytes]
        yield Family(f"gpulse_host_port_{word}_bytes_total", "counter", HOST_METRICS[key].help, moved)
    for name, kind, help, values in (
        ("up", "gauge", "Whether the port is active.", [float(state == "active") for state in host.port_states or ()]),
        ("speed_bytes_per_second", "gauge", HOST_METRICS["port_speeds"].help, host.port_speeds or ()),
        ("link_losses_total", "counter", HOST_METRICS["port_downs"].help, host.port_downs or ()),
        ("errors_total", "counter", HOST_METRICS["port_errors"].help, host.port_errors or ()),
    ):
        samples = [(text, values[at]) for at, _, text in ports if at < len(values)]
        yield Family(f"gpulse_host_port_{name}", kind, help, samples)  # type: ignore[arg-type]


def diagnosis_families(snapshot: Snapshot, judged: Callable[[], Diagnosis]) -> Iterator[Family]:
    """Yield the verdict of each GPU and MIG instance over the last minute, as a label of a series that is always 1."""
    help = "What limits the GPU, judged over the last minute: the verdict is a label, the value always 1."
    verdicts = {verdict.uuid: verdict for verdict in judged()}
    samples = (
        (labels([*gpu_labels(gpu, whole), ("verdict", verdict.key), ("confidence", verdict.confidence)]), 1)
        for _, gpu, whole in owners(snapshot)
        if gpu.uuid is not None and (verdict := verdicts.get(gpu.uuid)) is not None
    )
    yield Family("gpulse_diagnosis", "gauge", help, samples)


def gap_family(counters: Counters) -> Family:
    """Return how often each metric was missing, by reason."""
    help = "Requested values that are missing in the sample, by reason."
    samples = [(labels([("metric", key), ("reason", gap)]), n) for (key, gap), n in sorted(counters.gaps.items())]
    return Family("gpulse_gaps_total", "counter", help, samples)


def _grown(members: list[Member], counters: Counters) -> Iterator[Family]:
    named = [(member.name, member.gpu, member.text) for member in members]
    yield from (_total(metric, "gpu", named, counters) for metric in GPU_RATES)
    reasons = (
        (labels([*member.pairs, ("reason", reason)]), seconds)
        for member in members
        if member.gpu.throttle_reasons is not None
        for reason, seconds in counters.throttled[member.name].items()
    )
    help = "Time in which clocks were below their maximum, by reason, based on samples."
    yield Family("gpulse_gpu_throttle_seconds_total", "counter", help, reasons)


def _total(metric: Metric, thing: str, named: Iterable[tuple[str, Reading, str]], counters: Counters) -> Family:
    """Return the bytes that a rate adds up to, for each of the owners of counters with its reading and labels."""
    moved = ((text, counters.moved(owner, reading, metric.key)) for owner, reading, text in named)
    samples = ((text, total) for text, total in moved if total is not None)
    return Family(total_name(metric, thing), "counter", metric.help, samples)


def _xids(members: list[Member], counters: Counters) -> Family:
    samples = (
        (labels([*member.plain, ("xid", code)]), count)
        for member in members
        for code, count in counters.xids.get(member.name, {}).items()
    )
    help = "XID errors reported by the driver while gpulse was running."
    return Family("gpulse_gpu_xid_errors_total", "counter", help, samples)


def _use(members: list[Member]) -> Iterator[Family]:
    listed = [member for member in members if "processes" not in (member.whole or member.gpu).gaps]
    counts = ((member.text, sum(1 for _ in member.processes())) for member in listed if member.gpu.state == "ok")
    yield Family("gpulse_gpu_processes", "gauge", "Number of processes on the GPU.", counts)
    help = "Owner of the process with the most memory on the GPU; one series per GPU, to join by uuid."
    owned = ((labels([*member.plain, *member.owner]), 1) for member in members if member.owner)
    yield Family("gpulse_gpu_job_info", "info", help, owned)


def _processes(members: list[Member], owned: Owners) -> Iterator[Family]:
    """Yield the processes that hold most memory first, so that those beyond the limit are small."""
    named: dict[tuple[str, float | None], tuple[Process, str]] = {}
    beyond = 0
    found = [(member, process) for member in members for process in member.gpu.processes]
    for member, process in sorted(found, key=lambda pair: -(pair[1].memory_used or 0)):
        if (pairs := owned.of_process(member.gpu, process)) is None:
            beyond += 1
        else:
            named[member.name, process.pid] = process, labels([*member.plain, *pairs])
    told = list(named.values())
    for name, metric in PROCESS_SERIES.items():
        yield Family(name, "gauge", metric.help, of_metric(metric, "process", told).samples)
    help = "Processes without series of their own, because there were more than the limit in two hours."
    yield Family("gpulse_processes_left_out", "gauge", help, [("", beyond)])
