"""The history as text: each GPU's figures, who used what, and what happened."""

from __future__ import annotations

from ...analysis.cost import usage_cost
from ...model.catalog import GPU_METRICS
from ...present.cells import value_text
from ...present.cost import carbon_text, money_text
from ...present.events import event_text, lasted_text
from ...present.quantities import DASH, energy_text, moment_text, period_text, quantity_text, zone_text
from ...present.text import aligned, clean
from ...present.words import product_name
from ...units import duration_text
from .statistics import over_time

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from ...model.event import Event
    from ...model.tariff import Tariff
    from ...store.history import GpuIdentity, Usage
    from .request import HistoryAnswer

_LAST_EVENTS = 12


def overview(answer: HistoryAnswer, tariff: Tariff | None = None) -> list[str]:
    """Return everything on one screen: one line per GPU and metric, the users, the last events."""
    asked = answer.asked
    lines = [f"{period_text(asked.start, asked.end)}, {duration_text(asked.end - asked.start)}"]
    if not answer.gpus:
        return [*lines, "nothing was recorded in this time"]
    lines += ["", *_figures(answer)]
    if answer.usage:
        lines += ["", *usage_table(answer.usage, asked.by, tariff)]
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
            text = DASH if found is None else f"{value_text(metric, found.mean)} ({value_text(metric, found.max)})"
            cells.append(text)
        rows.append((label(gpu), product_name(gpu.name or ""), *cells))
    return aligned(rows, left=2)


def usage_table(usage: Sequence[Usage], by: str, tariff: Tariff | None = None) -> list[str]:
    """Return who used what: hours of GPUs and of memory, and energy; hours of MIG instances only if there were any."""
    parted = any(use.instance_hours is not None for use in usage)
    instances = ("INSTANCE HOURS",) if parted else ()
    rows: list[Sequence[str]] = [
        (by.upper(), "GPU HOURS", *instances, "BUSY HOURS", "GiB HOURS", "LARGEST", "ENERGY (est.)", "PROCESSES")
    ]
    rows += [_used(use, parted) for use in usage]
    if tariff:
        rows = [(*row, *more) for row, more in zip(rows, _costs(usage, tariff), strict=True)]
    return aligned(rows, left=1)


def _costs(usage: Sequence[Usage], tariff: Tariff) -> list[tuple[str, ...]]:
    """Return the columns of cost that the prices allow, the header first; idle GPU time stands apart."""
    unit = f" ({clean(tariff.currency)})" if tariff.currency else ""
    priced = tariff.price is not None or tariff.gpu_price is not None
    header = (f"COST{unit}", f"IDLE COST{unit}") if priced else ()
    rows = [(*header, "CO2e") if tariff.carbon is not None else header]
    for use in usage:
        cost = usage_cost(use, tariff)
        assert cost is not None
        cells = (money_text(cost.total), money_text(cost.idle)) if priced else ()
        rows.append((*cells, carbon_text(cost.carbon)) if tariff.carbon is not None else cells)
    return rows


def _used(use: Usage, parted: bool) -> tuple[str, ...]:
    instances = DASH if use.instance_hours is None else f"{use.instance_hours:.2f}"
    return (
        clean(use.owner) if use.owner else "(none)",
        f"{use.gpu_hours:.2f}",
        *((instances,) if parted else ()),
        DASH if use.busy_hours is None else f"{use.busy_hours:.2f}",
        DASH if use.memory_hours is None else f"{use.memory_hours:.1f}",
        quantity_text("B", use.memory_most),
        energy_text(use.energy),
        str(use.processes),
    )


def events_list(events: Sequence[Event], now: float) -> list[str]:
    """Return what happened, one line per event."""
    rows: list[Sequence[str]] = [(f"TIME ({zone_text(now)})", "KIND", "LASTED", "WHAT")]
    rows += [(moment_text(event.time), event.category, lasted_text(event, now), event_text(event)) for event in events]
    return aligned(rows, left=4)


def label(gpu: GpuIdentity) -> str:
    """Return the number of a GPU, or what a MIG instance is called."""
    return str(gpu.index) if gpu.index is not None else clean(gpu.uuid[:12])
