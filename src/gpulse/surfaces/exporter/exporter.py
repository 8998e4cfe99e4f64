"""The page that Prometheus scrapes, rendered once per sample for all scrapers."""

from __future__ import annotations

import threading
import time

from ..._version import __version__
from ...present.exposition import Family, labels, render
from .counters import Counters
from .families import PROCESS_WANTED, WANTED, diagnosis_family, gap_family, gpu_families, host_families

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterator

    from ...model.select import Wanted
    from ...model.snapshot import Snapshot
    from ...model.verdict import Diagnosis
    from .tenants import Tenants

TEXT = "text/plain; version=0.0.4; charset=utf-8"
OPENMETRICS = "application/openmetrics-text; version=1.0.0; charset=utf-8"


def wanted(processes: bool = False, dcgm: bool = False, smi: bool = False) -> Wanted:
    """Return the metrics to sample for a page with these parts."""
    asked = WANTED | PROCESS_WANTED if processes else WANTED
    if dcgm:
        from .dcgm import DCGM_WANTED

        asked |= DCGM_WANTED
    if smi:
        from .smi_names import SMI_WANTED

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
        tenants: Tenants | None = None,
        details: Collection[str] = (),
    ) -> None:
        """Start without samples.

        `judged` gives the latest diagnosis, `tenants` which Kubernetes pod has which GPU, `details` names metrics of that
        group to export too.
        """
        self._details = frozenset(details)
        self._judged = judged
        self._lock = threading.Lock()
        self._counters = Counters()
        self._latest: Snapshot | None = None
        self._sampling: float | None = None
        self._made: float | None = None
        self._pages: dict[tuple[bool, bool, bool, bool], bytes] = {}
        self._tenants = tenants

    def add(self, snapshot: Snapshot, seconds: float | None = None) -> None:
        """Add the next sample; `seconds` is its duration, if known."""
        if self._tenants is not None:
            self._tenants.refresh()
        with self._lock:
            self._counters.add(snapshot)
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
                page = "".join(
                    f"{line}\n" for line in render(self._families(processes, dcgm, smi), openmetrics)
                ).encode()
                self._pages[asked] = page
                self._made = time.perf_counter() - start
        return page

    def _families(self, processes: bool, dcgm: bool, smi: bool) -> Iterator[Family]:
        yield from self._own()
        snapshot = self._latest
        if snapshot is not None:
            yield from gpu_families(snapshot, self._counters, processes, self._details)
            yield from host_families(snapshot, self._counters)
            if self._judged is not None:
                yield diagnosis_family(snapshot, self._judged())
            if dcgm:
                from .dcgm import dcgm_families

                yield from dcgm_families(snapshot, self._counters, self._tenants)
            if smi:
                from .smi_names import smi_families

                yield from smi_families(snapshot)
        yield gap_family(self._counters)

    def _own(self) -> Iterator[Family]:
        """Yield the series about the server itself."""
        latest, cpu = self._latest, time.process_time()
        version = labels([("version", __version__)])
        yield Family("gpulse_build_info", "info", "Version of gpulse.", [(version, 1)])
        yield Family("gpulse_up", "gauge", "Whether a sample has been taken.", [("", float(latest is not None))])
        yield Family("gpulse_samples_total", "counter", "Number of samples taken.", [("", self._counters.samples)])
        if latest is not None:
            when = "Time of the last sample, in seconds since 1970."
            yield Family("gpulse_last_sample_timestamp_seconds", "gauge", when, [("", latest.time)])
        if self._sampling is not None:
            took = "Duration of the last sample."
            yield Family("gpulse_sample_duration_seconds", "gauge", took, [("", self._sampling)])
        if self._made is not None:
            took = "Time to render the last page; cached pages do not count."
            yield Family("gpulse_scrape_duration_seconds", "gauge", took, [("", self._made)])
        yield Family("process_cpu_seconds_total", "counter", "CPU time of the server.", [("", cpu)])
        if (memory := _resident()) is not None:
            yield Family("process_resident_memory_bytes", "gauge", "Resident memory of the server.", [("", memory)])


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
