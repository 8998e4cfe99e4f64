"""Counters over all samples: bytes and seconds integrated from rates and throttle reasons, XIDs, and missing values."""

from __future__ import annotations

from ...analysis.readings import XidNews
from ...model.cadence import Cadence
from ...model.catalog import GPU_METRICS, HOST_METRICS
from ...model.metric import Number
from ...units import BYTES_PER_SECOND

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from ...model.catalog import Gpu, Host
    from ...model.metric import Metric, Reading
    from ...model.snapshot import Snapshot

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
                told = prefix + key, reason
                self.gaps[told] = self.gaps.get(told, 0) + 1


def _rate(reading: Reading, key: str) -> float | None:
    """Return a rate that holds for the time since the previous sample."""
    if key in _SPOT_CHECKS and reading.get("vendor") == "nvidia" and reading.get("sm_active") is None:
        return None
    rate = reading.get(key)
    return rate if isinstance(rate, (int, float)) else None
