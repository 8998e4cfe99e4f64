"""What `gpulse serve` hands to other systems: the page that Prometheus scrapes, and pushes to a collector."""

from __future__ import annotations

from ..model.select import Wanted
from ..settings.table import DETAILS

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from typing import Any

    from ..model.snapshot import Snapshot
    from ..model.verdict import Diagnosis
    from .options import Arguments


class Exports:
    """The exporter of a server with these options; `judged` gives the latest diagnosis, `say` is told what fails."""

    def __init__(self, arguments: Arguments, judged: Callable[[], Diagnosis], say: Callable[[str], None]) -> None:
        from ..surfaces.exporter.exporter import Exporter
        from ..surfaces.exporter.families import Owners
        from ..surfaces.exporter.tenants import Tenants

        self._arguments = arguments
        self._parts = (arguments.processes_metrics, arguments.dcgm_names, arguments.smi_names)
        self._tenants = Tenants()
        self.details = _details(arguments.metrics or ())
        owners = Owners(self._tenants, arguments.owner_labels, arguments.series_limit)
        self._exporter = Exporter(judged, owners, self.details, say)

    @property
    def wanted(self) -> Wanted:
        """The metrics to sample."""
        from ..surfaces.exporter.exporter import wanted

        return wanted(*self._parts, bool(self._arguments.otlp)) | self._tenants.wanted | Wanted(self.details)

    def start(self, took: Callable[[], float | None], ends: Any) -> list[Callable[[Snapshot], None]]:
        """Start pushing and return the functions that take each sample; `took` tells how long the latest took."""
        takers: list[Callable[[Snapshot], None]] = [lambda snapshot: self._exporter.add(snapshot, took())]
        if self._arguments.otlp:
            from ..surfaces.exporter.otlp import OtlpPush

            push = OtlpPush(self._arguments.otlp)
            push.start()
            ends.callback(push.stop)
            takers.append(push.add)
        return takers

    def scrape(self, accept: str) -> tuple[bytes, str]:
        """Return the page and its content type, for an Accept header."""
        from ..surfaces.exporter.exporter import OPENMETRICS, TEXT, prefers_openmetrics

        openmetrics = prefers_openmetrics(accept)
        return self._exporter.text(openmetrics, *self._parts), OPENMETRICS if openmetrics else TEXT


def _details(names: Sequence[str]) -> tuple[str, ...]:
    """Return the keys of the named details; metrics of other groups are sampled in any case."""
    from ..model.select import metric_named

    if "all" in names:
        return DETAILS
    return tuple(key for key in (metric_named(name).key for name in names) if key in DETAILS)
