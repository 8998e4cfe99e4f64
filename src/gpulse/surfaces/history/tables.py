"""The history as text: each GPU's figures, who used what, and what happened."""

from __future__ import annotations

import time

from ...model.catalog import GPU_METRICS
from ...present.cells import value_text
from ...present.events import event_text, lasted_text
from ...present.text import clean, pad, width
from ...units import duration_text, size_text
from .statistics import over_time

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from ...model.event import Event
    from ...store.history import GpuIdentity, Usage
    from .request import HistoryAnswer

_LAST_EVENTS = 12


def overview(answer: HistoryAnswer) -> list[str]:
    """Return everything in one screen: a line a GPU and metric pair, the users, the last events."""
    asked = answer.asked
    lines = [f"{when(asked.start)} to {when(asked.end)}, {duration_text(asked.end - asked.start)}"]
    if not answer.gpus:
        return [*lines, "nothing was recorded in this time"]
    lines += ["", *_figures(answer)]
    if answer.usage:
        lines += ["", *usage_table(answer.usage, asked.by)]
    if answer.events:
        lines += ["", *events_list(answer.events[-_LAST_EVENTS:], asked.end)]
        if len(answer.events) > _LAST_EVENTS:
            lines.append(f"{len(answer.events) - _LAST_EVENTS} earlier events: --events shows all")
    return lines


def _figures(answer: HistoryAnswer) -> list[str]:
    metrics = [GPU_METRICS[key] for key in answer.asked.metrics]
    rows: list[Sequence[str]] = [("GPU", "NAME", *(f"{metric.short} mean (max)" for metric in metrics))]
    for gpu in answer.gpus:
        cells = []
        for metric in metrics:
            found = over_time(answer.series(gpu, metric.key))
            cells.append(
                "–" if found is None else f"{value_text(metric, found.mean)} ({value_text(metric, found.max)})"
            )
        rows.append((label(gpu), clean(gpu.name or "").removeprefix("NVIDIA "), *cells))
    return table(rows, left=2)


def usage_table(usage: Sequence[Usage], by: str) -> list[str]:
    """Return who used what: hours of GPUs, of memory, energy by estimate."""
    rows: list[Sequence[str]] = [
        (by.upper(), "GPU HOURS", "BUSY HOURS", "GiB HOURS", "LARGEST", "ENERGY (est.)", "PROCESSES")
    ]
    rows += [_used(use) for use in usage]
    return table(rows, left=1)


def _used(use: Usage) -> tuple[str, ...]:
    return (
        clean(use.owner) if use.owner else "(none)",
        f"{use.gpu_hours:.2f}",
        "–" if use.busy_hours is None else f"{use.busy_hours:.2f}",
        "–" if use.memory_hours is None else f"{use.memory_hours:.1f}",
        "–" if use.memory_most is None else size_text(use.memory_most),
        "–" if use.energy is None else f"{use.energy / 3.6e6:.2f} kWh",
        str(use.processes),
    )


def events_list(events: Sequence[Event], now: float) -> list[str]:
    """Return what happened, one line per event."""
    rows: list[Sequence[str]] = [("TIME", "KIND", "LASTED", "WHAT")]
    rows += [(when(event.time), event.category, lasted_text(event, now), event_text(event)) for event in events]
    return table(rows, left=4)


def label(gpu: GpuIdentity) -> str:
    """Return the number of a GPU, or what a MIG instance is called."""
    return str(gpu.index) if gpu.index is not None else clean(gpu.uuid[:12])


def when(moment: float) -> str:
    """Write a time by this machine's clock."""
    return time.strftime("%Y-%m-%d %H:%M:%S", time.localtime(moment))


def table(rows: Iterable[Sequence[str]], left: int) -> list[str]:
    """Return rows as aligned lines, the first `left` columns to the left and the others to the right."""
    rows = [*rows]
    widths = [max(width(row[at]) for row in rows) for at in range(len(rows[0]))]
    return [
        "  ".join(
            pad(cell, wide, right=at >= left) for at, (cell, wide) in enumerate(zip(row, widths, strict=True))
        ).rstrip()
        for row in rows
    ]
