"""Samples written by hand, whose snapshot says what their values say."""

from __future__ import annotations

from collections.abc import Mapping

from gpulse.model.catalog import Gpu, Host
from gpulse.model.snapshot import Snapshot
from gpulse.sinks.base import Mark, Sample

START = 1_700_000_000.25
TEXTS = {"gpu0/utilization": "Utilization, % (GPU-00000000)", "gpu0/power": "Power, W (GPU-00000000)"}


def sample(
    elapsed: float,
    values: Mapping[str, float],
    *,
    step: int | None = None,
    phase: str = "",
    run: str = "",
    marks: tuple[Mark, ...] = (),
) -> Sample:
    """Return a sample `elapsed` seconds after START."""
    of_gpu = {tag.partition("/")[2]: value for tag, value in values.items() if tag.startswith("gpu0/")}
    of_host = {tag.partition("/")[2]: value for tag, value in values.items() if tag.startswith("host/")}
    snapshot = Snapshot(START + elapsed, (Gpu({"index": 0, **of_gpu}),), Host(of_host))
    return Sample(START + elapsed, elapsed, values, snapshot, step=step, phase=phase, run=run, marks=marks, texts=TEXTS)
