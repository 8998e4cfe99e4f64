"""Looking from Python: once, or again and again."""

from __future__ import annotations

import os

from .model.select import EVERYTHING, Wanted, metric_named
from .sampling.sampler import Sampler
from .sources.registry import make_source

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from .model.catalog import Gpu
    from .model.snapshot import Snapshot


def snapshot(
    metrics: Sequence[str] | None = None, *, gpus: Sequence[str | int] | None = None, source: str | None = None
) -> Snapshot:
    """Return one look at this machine: all metrics, or only those named; all GPUs, or only those named.

    Raises SourceUnavailable when there is no GPU to read. Takes about 0.1 s where activity (SM, tensor, DRAM) is asked.
    """
    sampler = _open(metrics, gpus, source)
    try:
        sampler.settle()
        return sampler.read()
    finally:
        sampler.close()


def gpus(metrics: Sequence[str] | None = None, *, source: str | None = None) -> tuple[Gpu, ...]:
    """Return the GPUs of this machine as they are now."""
    return snapshot(metrics, source=source).gpus


def stream(
    interval: float = 1.0,
    metrics: Sequence[str] | None = None,
    *,
    gpus: Sequence[str | int] | None = None,
    source: str | None = None,
) -> Iterator[Snapshot]:
    """Yield a snapshot every `interval` seconds until the caller stops; the driver is let go when the iterator is closed."""
    sampler = _open(metrics, gpus, source)
    try:
        sampler.settle()
        yield from sampler.stream(interval)
    finally:
        sampler.close()


def _open(metrics: Sequence[str] | None, gpus: Sequence[str | int] | None, source: str | None) -> Sampler:
    wanted = EVERYTHING if metrics is None else Wanted([metric_named(name).key for name in metrics], host=("name",))
    sampler = Sampler(make_source(source or os.environ.get("GPULSE_SOURCE") or "auto"), wanted).open()
    if gpus is not None:
        sampler.choose([str(gpu) for gpu in gpus])
    return sampler
