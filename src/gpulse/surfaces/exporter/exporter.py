"""The page that Prometheus scrapes, rendered once per sample for all scrapers."""

from __future__ import annotations

import threading
import time

from ..._version import __version__
from ...model.select import Wanted
from ...present.exposition import Family, labels, readable, render, single_series
from .families import (
    PROCESS_WANTED,
    WANTED,
    Counters,
    Owners,
    diagnosis_families,
    gap_family,
    gpu_families,
    host_families,
    server_families,
)

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Iterator

    from ...model.snapshot import Snapshot
    from ...model.verdict import Diagnosis
    from ...present.exposition import Type
    from ...store.history import Recorder

TEXT = "text/plain; version=0.0.4; charset=utf-8"
OPENMETRICS = "application/openmetrics-text; version=1.0.0; charset=utf-8"


def wanted(processes: bool = False, dcgm: bool = False, smi: bool = False, otlp: bool = False) -> Wanted:
    """Return the metrics to sample for a page with these parts, and for pushing to a collector."""
    asked = WANTED | PROCESS_WANTED if processes else WANTED
    if dcgm or otlp:
        from .dcgm import DCGM_WANTED, HEALTH

        asked |= DCGM_WANTED if dcgm else Wanted(HEALTH)
    if smi:
        from .dcgm import SMI_WANTED

        asked |= SMI_WANTED
    return asked


def prefers_openmetrics(accept: str) -> bool:
    """Return whether an Accept header prefers OpenMetrics to plain text."""
    shares = {"application/openmetrics-text": 0.0, "text/plain": 0.0}
    for part in accept.lower().split(","):
        kind, *parameters = (word.strip() for word in part.split(";"))
        if kind in shares:
            shares[kind] = max(shares[kind], _share(parameters))
    most = shares["application/openmetrics-text"]
    return most > 0.0 and most >= shares["text/plain"]


class Exporter:
    """Series of all samples so far: `add` is called by one thread, `text` by any.

    Snapshots must include `wanted(...)`, otherwise values appear as missing.
    """

    def __init__(
        self,
        judged: Callable[[], Diagnosis] | None = None,
        owners: Owners | None = None,
        details: Collection[str] = (),
        say: Callable[[str], None] | None = None,
        more: Iterable[Callable[[], Iterable[Family]]] = (),
    ) -> None:
        """Start without samples.

        `judged` gives the latest diagnosis, `owners` whose each GPU is, `details` names metrics of that group to export too, `more`
        give families about other parts of the server. `say` is told once of each family that fails; it is left out of the page,
        and counted there.
        """
        self._details = frozenset(details)
        self._judged = judged
        self._lock = threading.Lock()
        self._counters = Counters()
        self._latest: Snapshot | None = None
        self._sampling: float | None = None
        self._made: float | None = None
        self._pages: dict[tuple[bool, bool, bool, bool], bytes] = {}
        self._owners = owners or Owners()
        self._say = say
        self.more = [*more]
        self._failures: dict[str, int] = {}

    def add(self, snapshot: Snapshot, seconds: float | None = None) -> None:
        """Add the next sample; `seconds` is its duration, if known."""
        tenants = self._owners.tenants
        if tenants is not None:
            tenants.refresh()
        with self._lock:
            self._counters.add(snapshot)
            if tenants is not None and tenants.gap:
                self._counters.add_gap("pod", tenants.gap)
            self._latest = snapshot
            self._sampling = seconds
            self._pages.clear()

    def text(self, openmetrics: bool = False, processes: bool = False, dcgm: bool = False, smi: bool = False) -> bytes:
        """Return the page of the last sample as TEXT or OPENMETRICS, optionally with per-process series and other tools' names."""
        asked = openmetrics, processes, dcgm, smi
        with self._lock:
            page = self._pages.get(asked)
            if page is None:
                start = time.perf_counter()
                lines = render(self._families(processes, dcgm, smi), openmetrics, self._failed)
                page = "".join(f"{line}\n" for line in lines).encode()
                self._pages[asked] = page
                self._made = time.perf_counter() - start
        return page

    def series(
        self, processes: bool = False, dcgm: bool = False, smi: bool = False
    ) -> tuple[float, list[tuple[Family, list[tuple[str, float]]]]]:
        """Return the time of the last sample, 0 before the first, and the families of its page: each with texts of labels and values."""
        with self._lock:
            found = list(readable(self._families(processes, dcgm, smi), self._failed))
            return (0.0 if self._latest is None else self._latest.time), found

    def _families(self, processes: bool, dcgm: bool, smi: bool) -> Iterator[Family]:
        yield from self._own()
        snapshot = self._latest
        if snapshot is not None:
            yield from self._part("gpulse_gpu", self._gpus(snapshot, processes))
            yield from self._part("gpulse_host", host_families(snapshot, self._counters))
            yield from self._part("gpulse_serving", server_families(snapshot))
            if self._judged is not None:
                yield from self._part("gpulse_diagnosis", diagnosis_families(snapshot, self._judged))
            if dcgm:
                from .dcgm import dcgm_families

                yield from self._part("DCGM", dcgm_families(snapshot, self._counters, self._owners))
            if smi:
                from .dcgm import smi_families

                yield from self._part("nvidia_smi", smi_families(snapshot))
        yield gap_family(self._counters)
        for more in self.more:
            yield from self._part("gpulse", iter(more()))
        failures = ((labels([("family", name)]), count) for name, count in sorted(self._failures.items()))
        help = "Metric families left out of a page because they failed, by their name or the prefix of several."
        yield Family("gpulse_failed_families_total", "counter", help, failures)

    def _gpus(self, snapshot: Snapshot, processes: bool) -> Iterator[Family]:
        return gpu_families(snapshot, self._counters, processes, self._owners, self._details)

    def _part(self, prefix: str, families: Iterator[Family]) -> Iterator[Family]:
        """Yield families until they fail, so that the parts after these are still there."""
        try:
            yield from families
        except Exception as error:  # noqa: BLE001
            self._failed(prefix, error)

    def _failed(self, name: str, error: Exception) -> None:
        if name not in self._failures and self._say is not None:
            self._say(f"{name} is missing in /metrics: {error!r}.")
        self._failures[name] = self._failures.get(name, 0) + 1

    def _own(self) -> Iterator[Family]:
        """Yield the series about the server itself."""
        at = None if self._latest is None else self._latest.time
        version = labels([("version", __version__)])
        yield Family("gpulse_build_info", "info", "Version of gpulse.", [(version, 1)])
        yield from single_series((
            ("gpulse_up", "gauge", "Whether a sample has been taken.", float(at is not None)),
            ("gpulse_samples_total", "counter", "Number of samples taken.", self._counters.samples),
            ("gpulse_last_sample_timestamp_seconds", "gauge", "Time of the last sample, in seconds since 1970.", at),
            ("gpulse_sample_duration_seconds", "gauge", "Duration of the last sample.", self._sampling),
            ("gpulse_scrape_duration_seconds", "gauge", "Time to render the last page; cached pages do not count.", self._made),
            ("process_cpu_seconds_total", "counter", "CPU time of the server.", time.process_time()),
            ("process_resident_memory_bytes", "gauge", "Resident memory of the server.", _resident()),
        ))  # fmt: skip


def history_families(recorder: Recorder) -> Iterator[Family]:
    """Yield the series about the history that this server writes."""
    rows: Iterable[tuple[str, Type, str, float]] = (
        ("gpulse_history_writable", "gauge", "Whether the last write to the history succeeded.", float(recorder.writable)),
        ("gpulse_history_failed_writes_total", "counter", "Writes to the history that failed.", recorder.failures),
        ("gpulse_history_waiting_samples", "gauge", "Samples in memory that are not written to the history yet.", recorder.waiting),
        ("gpulse_history_lost_samples_total", "counter", "Samples that could not be written to the history and are lost.", recorder.lost),
    )  # fmt: skip
    return single_series(rows)


def _share(parameters: list[str]) -> float:
    for parameter in parameters:
        key, _, value = parameter.partition("=")
        if key.strip() == "q":
            try:
                return float(value)
            except ValueError:
                return 0.0
    return 1.0


def _resident() -> int | None:
    """Return the resident memory of this process in bytes; None if unknown."""
    import os

    try:
        with open("/proc/self/statm", encoding="ascii") as file:
            return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")
    except (OSError, ValueError, IndexError):
        return None
