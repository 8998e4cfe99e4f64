"""The screen where there is none: a line at each sample, for pipes, logs and dumb terminals."""

from __future__ import annotations

from ...present.quantities import clock_text
from ...present.words import label
from ...units import size_text

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import TextIO

    from ...model.catalog import Gpu
    from ...model.snapshot import Snapshot
    from ...sampling.sampler import Sampler


def stream_lines(sampler: Sampler, interval: float, out: TextIO) -> None:
    """Write a line for every sample until the sampler or the reader ends it."""
    for snapshot in sampler.stream(interval):
        out.write(one_line(snapshot) + "\n")
        out.flush()


def one_line(snapshot: Snapshot) -> str:
    """Return a sample in one line: the time, then each GPU's use, memory, heat and power."""
    return "  ".join([clock_text(snapshot.time), *(_gpu(gpu) for gpu in snapshot.gpus)])


def _gpu(gpu: Gpu) -> str:
    name = label(gpu)
    if gpu.state != "ok":
        return f"{name}: {gpu.state}"
    parts = [
        "-" if gpu.utilization is None else f"{gpu.utilization:.0f}%",
        "-" if gpu.memory_used is None else size_text(gpu.memory_used),
        "-" if gpu.temperature is None else f"{gpu.temperature:.0f}C",
        "-" if gpu.power_draw is None else f"{gpu.power_draw:.0f}W",
    ]
    return f"{name}: {' '.join(parts)}"
