"""Pages read back by Prometheus' own client."""

from __future__ import annotations

from typing import TYPE_CHECKING

from prometheus_client.openmetrics.parser import text_string_to_metric_families as openmetrics_families
from prometheus_client.parser import text_string_to_metric_families

from gpulse.model.catalog import Gpu
from gpulse.model.snapshot import Snapshot
from gpulse.surfaces.exporter.exporter import Exporter

if TYPE_CHECKING:
    from prometheus_client.samples import Sample

    from gpulse.model.metric import Gap, Value

WHO: dict[str, Value] = {"index": 0, "uuid": "GPU-1", "name": "A"}


def gpu(**values: Value) -> Gpu:
    """Return the GPU-1 with these values."""
    return Gpu(WHO | values)


def without(**gaps: Gap) -> Gpu:
    """Return the GPU-1 that lacks something."""
    return Gpu(WHO, gaps)


def exporter_of(*snaps: Gpu | tuple[Gpu, ...], every: float = 2.0) -> Exporter:
    """Return an exporter that has seen these samples, so many seconds apart."""
    made = Exporter()
    for at, snap in enumerate(snaps):
        made.add(Snapshot(1000.0 + at * every, snap if isinstance(snap, tuple) else (snap,)))
    return made


def samples(
    exporter: Exporter, *, openmetrics: bool = False, processes: bool = False, dcgm: bool = False
) -> list[Sample]:
    """Return every sample of a page."""
    return parsed(exporter.text(openmetrics, processes, dcgm).decode(), openmetrics)


def parsed(text: str, openmetrics: bool = False) -> list[Sample]:
    """Return every sample of a text."""
    families = openmetrics_families(text) if openmetrics else text_string_to_metric_families(text)  # type: ignore[no-untyped-call]
    return [sample for family in families for sample in family.samples]


def values(found: list[Sample], name: str, *labels: str) -> dict[tuple[str, ...], float]:
    """Return the values of one series by some of its labels; a label that is not there is empty."""
    return {
        tuple(sample.labels.get(label, "") for label in labels): sample.value for sample in found if sample.name == name
    }
