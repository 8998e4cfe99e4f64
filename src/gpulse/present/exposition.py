"""Prometheus text: a snapshot as series, names and units derived from the catalog.

A missing value is an absent series; a share becomes a ratio, a clock hertz, a counter ends in _total.
"""

from __future__ import annotations

from ..model.catalog import GPU_METRICS, HOST_METRICS
from ..model.metric import Flag, Number
from .text import clean

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from ..model.catalog import Gpu
    from ..model.metric import Metric, Reading
    from ..model.snapshot import Snapshot

_IDENTITY = ("index", "name", "pci_bus_id", "vendor", "driver_version")


def series_name(metric: Metric, thing: str) -> str:
    """Return the name of a metric's series: gpulse_gpu_memory_used_bytes."""
    suffix = metric.unit.suffix
    base = metric.key if not suffix or metric.key.endswith(suffix) else f"{metric.key}{suffix}"
    base = base.replace("_percent_ratio", "_ratio")
    return f"gpulse_{thing}_{base}{'_total' if metric.kind == 'counter' else ''}"


def exposition(snapshot: Snapshot, keys: Iterable[str] | None = None) -> list[str]:
    """Return the lines of a page: help, type and one sample a GPU for each metric; `keys` limits it to some GPU metrics."""
    gpus = [(gpu, _labels(gpu)) for whole in snapshot.gpus for gpu in (whole, *whole.instances)]
    lines = list(_info(gpus))
    lines += _family(
        "gpulse_gpu_up",
        "gauge",
        "Whether the GPU answers.",
        [(_labels(gpu), float(gpu.state == "ok")) for gpu in snapshot.gpus],
    )
    chosen = GPU_METRICS if keys is None else {key: GPU_METRICS[key] for key in keys}
    for metric in chosen.values():
        lines += _metric(metric, "gpu", gpus)
    if keys is None:
        for metric in HOST_METRICS.values():
            lines += _metric(metric, "host", [(snapshot.host, "")])
    return lines


def _metric(metric: Metric, thing: str, readings: Sequence[tuple[Reading, str]]) -> list[str]:
    if metric.kind == "identity" or not isinstance(metric, (Number, Flag)):
        return []
    samples = []
    for reading, labels in readings:
        value = reading.get(metric.key)
        if isinstance(value, (int, float)):
            samples.append((labels, float(value) * metric.unit.base))
    kind = "counter" if metric.kind == "counter" else "gauge"
    return list(_family(series_name(metric, thing), kind, metric.help, samples))


def _family(name: str, kind: str, help: str, samples: list[tuple[str, float]]) -> Iterator[str]:
    if samples:
        yield f"# HELP {name} {_escaped_help(help)}"
        yield f"# TYPE {name} {kind}"
        for labels, value in samples:
            yield f"{name}{labels} {_number(value)}"


def _info(gpus: list[tuple[Gpu, str]]) -> Iterator[str]:
    if gpus:
        yield "# HELP gpulse_gpu_info What never changes of a GPU."
        yield "# TYPE gpulse_gpu_info gauge"
    for gpu, _ in gpus:
        pairs = [("uuid", gpu.uuid or "")] + [(key, gpu.get(key)) for key in _IDENTITY if gpu.get(key) is not None]
        yield f"gpulse_gpu_info{{{','.join(f'{key}={_quoted(str(value))}' for key, value in pairs)}}} 1"


def _labels(gpu: Gpu) -> str:
    return (
        f'{{gpu="{gpu.index:.0f}",uuid={_quoted(gpu.uuid or "")}}}'
        if gpu.index is not None
        else f"{{uuid={_quoted(gpu.uuid or '')}}}"
    )


def _quoted(text: str) -> str:
    escaped = "\n".join(map(clean, text.split("\n"))).replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
    return f'"{escaped}"'


def _escaped_help(text: str) -> str:
    return text.replace("\\", "\\\\").replace("\n", "\\n")


def _number(value: float) -> str:
    return f"{value:.0f}" if value == int(value) and abs(value) < 2**53 else f"{value:.12g}"
