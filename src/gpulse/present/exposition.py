"""Prometheus text: families of series, their names and units derived from the catalog, written as its readers expect them.

A missing value is an absent series; a share becomes a ratio, a clock hertz, a counter ends in _total.
"""

from __future__ import annotations

from ..model.catalog import DOWN, GPU_METRICS, HOST_METRICS
from ..model.metric import Flag, Number
from ..value import Value
from .text import clean

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence
    from typing import Literal, TypeAlias

    from ..model.catalog import Gpu
    from ..model.metric import Metric, Reading
    from ..model.snapshot import Snapshot

    Type: TypeAlias = Literal["gauge", "counter", "info"]

_INHERITED = ("vendor", "architecture", "pci_bus_id", "driver_version")
_TEXT_TYPES = {"gauge": "gauge", "counter": "counter", "info": "gauge"}


class Family(Value):
    """The series of one name: each sample is a text of labels, made by `labels`, and a value; none is no family.

    Samples that are a generator are read when the page is rendered, so that a failure costs this family and no other.
    """

    name: str
    kind: Type
    help: str
    samples: Iterable[tuple[str, float]] = ()


def series_name(metric: Metric, thing: str) -> str:
    """Return the name of a metric's series: gpulse_gpu_memory_used_bytes."""
    suffix = metric.unit.suffix
    base = metric.key if not suffix or metric.key.endswith(suffix) else f"{metric.key}{suffix}"
    base = base.replace("_percent_ratio", "_ratio")
    return f"gpulse_{thing}_{base}{'_total' if metric.kind == 'counter' else ''}"


def labels(pairs: Iterable[tuple[str, object]]) -> str:
    """Return labels as they stand behind a name; those that are None are left out."""
    told = [f"{key}={_quoted(str(value))}" for key, value in pairs if value is not None]
    return f"{{{','.join(told)}}}" if told else ""


def gpu_labels(gpu: Gpu, whole: Gpu | None = None) -> tuple[tuple[str, str | None], ...]:
    """Return the labels that every series of a GPU has; those of a MIG instance begin with the number of its `whole`."""
    if whole is None:
        return (("gpu", _whole_number(gpu.index)), ("uuid", gpu.uuid or ""))
    return (("gpu", _whole_number(whole.index)), ("uuid", gpu.uuid or ""), ("mig", _whole_number(gpu.index)))


def gpu_identity(gpu: Gpu, whole: Gpu | None = None) -> str:
    """Return the labels of a GPU's _info series: those of all its series, and what never changes of it."""
    known = [(key, gpu.get(key) or (whole and whole.get(key)) or None) for key in _INHERITED]
    parts = [(key, _whole_number(gpu.get(key))) for key in ("gpu_instance", "compute_instance")] if whole else []
    parent = whole.uuid if whole else None
    return labels([*gpu_labels(gpu, whole), ("name", gpu.name), *known, ("parent", parent), *parts])


def render(
    families: Iterable[Family], openmetrics: bool = False, failed: Callable[[str, Exception], None] | None = None
) -> Iterator[str]:
    """Yield the lines of a page, in the classic text format or in OpenMetrics.

    `failed` is told the name of a family that could not be made and is left out; without it the exception is raised.
    """
    for family, samples in readable(families, failed):
        yield from _head(family, openmetrics)
        yield from (f"{family.name}{text} {_number(value)}" for text, value in samples)
    if openmetrics:
        yield "# EOF"


def readable(
    families: Iterable[Family], failed: Callable[[str, Exception], None] | None = None
) -> Iterator[tuple[Family, list[tuple[str, float]]]]:
    """Yield each family that has samples, and those; what is infinite or no number is left out. `failed` is that of `render`."""
    for family in families:
        try:
            samples = [(text, value) for text, value in family.samples if value - value == 0]
        except Exception as error:
            if failed is None:
                raise
            failed(family.name, error)
            continue
        if samples:
            yield family, samples


def exposition(snapshot: Snapshot, keys: Iterable[str] | None = None) -> list[str]:
    """Return the lines of a page of one snapshot, rates as they are; `keys` limits it to some GPU metrics."""
    gpus = [(whole, None) for whole in snapshot.gpus]
    parts = [(part, whole) for whole in snapshot.gpus for part in whole.instances]
    named = [(gpu, labels(gpu_labels(gpu, whole))) for gpu, whole in (*gpus, *parts)]
    identities = [(gpu_identity(gpu, whole), 1) for gpu, whole in (*gpus, *parts)]
    up = [(labels(gpu_labels(gpu)), float(gpu.state not in DOWN)) for gpu in snapshot.gpus]
    families = [
        Family("gpulse_gpu_info", "info", "What never changes of a GPU.", identities),
        Family("gpulse_gpu_up", "gauge", "Whether the GPU answers.", up),
    ]
    chosen = GPU_METRICS if keys is None else {key: GPU_METRICS[key] for key in keys}
    families += [of_metric(metric, "gpu", named) for metric in chosen.values() if is_series(metric)]
    if keys is None:
        host = [(snapshot.host, "")]
        families += [of_metric(metric, "host", host) for metric in HOST_METRICS.values() if is_series(metric)]
    return list(render(families))


def single_series(rows: Iterable[tuple[str, Type, str, float | None]]) -> Iterator[Family]:
    """Yield families with one series without labels each, from name, type, help and value; those without a value are left out."""
    return (Family(name, kind, help, [("", value)]) for name, kind, help, value in rows if value is not None)


def is_series(metric: Metric) -> bool:
    """Tell whether a metric is one number that can change."""
    return metric.kind != "identity" and isinstance(metric, (Number, Flag))


def of_metric(metric: Metric, thing: str, readings: Sequence[tuple[Reading, str]]) -> Family:
    """Return the family of one metric, in base units: a sample for each of the readings, with its labels, that has a value."""
    key, base = metric.key, metric.unit.base
    told = ((reading.get(key), text) for reading, text in readings)
    samples = ((text, value * base) for value, text in told if isinstance(value, (int, float)))
    return Family(series_name(metric, thing), "counter" if metric.kind == "counter" else "gauge", metric.help, samples)


def _head(family: Family, openmetrics: bool) -> tuple[str, str]:
    name, kind, help = family.name, _TEXT_TYPES[family.kind], family.help.replace("\\", "\\\\").replace("\n", "\\n")
    if openmetrics:
        kind, help = family.kind, help.replace('"', '\\"')
        if kind == "counter" and not name.endswith("_total"):
            kind = "unknown"  # a counter of that name does not exist there, and the name is not ours to change
        name = name.removesuffix("_total" if kind == "counter" else "_info" if kind == "info" else "")
    return f"# HELP {name} {help}", f"# TYPE {name} {kind}"


def _whole_number(value: object) -> str | None:
    return f"{value:.0f}" if isinstance(value, (int, float)) else None


def _quoted(text: str) -> str:
    escaped = clean(text).replace("\\", "\\\\").replace('"', '\\"')
    return f'"{escaped}"'


def _number(value: float) -> str:
    if isinstance(value, int):
        return str(int(value))  # bool is an int, too
    return f"{value:.0f}" if value % 1 == 0 else f"{value:.15g}"
