"""What is asked of the history, the answer, fetched once, and the answer as text: each GPU's figures, who used what, what happened."""

from __future__ import annotations

import os
from math import inf

from ...analysis.energy import usage_cost
from ...analysis.summary import Stats, WeightedSeries
from ...model.catalog import GPU_METRICS, SUMMARY, Gpu
from ...model.select import choose_parts, metric_named
from ...present.cells import (
    DASH,
    clock_text,
    energy_text,
    moment_text,
    period_text,
    quantity_text,
    value_text,
    zone_text,
)
from ...present.cost import cost_cells, cost_heads
from ...present.events import event_text, lasted_text
from ...present.text import aligned, clean
from ...present.words import product_name
from ...store.history import ProcessNames
from ...units import duration_text
from ...value import Value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from typing import Any

    from ...model.event import Event
    from ...model.serving import Tariff
    from ...store.history import GpuIdentity, HistoryReader, HistorySeries, Usage, Verification

_LAST_EVENTS = 12
_MOST_GAPS = 3
_CLOSE = 90.0  # seconds before its last sample from which on what is told of a process is about its end


def overview(answer: HistoryAnswer, tariff: Tariff | None = None, drawn: Sequence[str] = ()) -> list[str]:
    """Return everything on one screen: what is `drawn`, one line per GPU and metric, the users, the last events."""
    asked = answer.asked
    lines = [f"{period_text(asked.start, asked.end)}, {duration_text(asked.end - asked.start)}"]
    if not answer.gpus:
        return [*lines, "nothing was recorded in this time"]
    lines += [*_missing(answer), "", *drawn, *([""] if drawn else ()), *_figures(answer)]
    if answer.usage:
        lines += ["", *usage_table(answer.usage, asked.by, tariff)]
    if answer.events:
        lines += ["", *events_list(answer.events[-_LAST_EVENTS:], answer.now)]
        if len(answer.events) > _LAST_EVENTS:
            lines.append(f"{len(answer.events) - _LAST_EVENTS} earlier events: --events shows all")
    return lines


def _missing(answer: HistoryAnswer) -> list[str]:
    """Return a line about the time in which nothing was recorded, if there is any."""
    if not answer.gaps:
        return []
    total = duration_text(sum(last - first for first, last in answer.gaps))
    named = [period_text(first, last) for first, last in answer.gaps[:_MOST_GAPS]]
    return [f"not recorded: {total} ({', '.join(named)}{', …' if len(answer.gaps) > _MOST_GAPS else ''})"]


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
        costs = [cost_heads(tariff), *(cost_cells(usage_cost(use, tariff), tariff) for use in usage)]
        rows = [(*row, *more) for row, more in zip(rows, costs, strict=True)]
    return aligned(rows, left=1)


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


def processes_table(answer: HistoryAnswer) -> list[str]:
    """Return who ran what: when, on which GPUs, the most memory it held, and how it ended; the first to come at the head."""
    zone = zone_text(answer.asked.end)
    heads = ("USER", "PID", "GPU", f"FROM ({zone})", "TO", "PEAK", "JOB", "ENDED", "COMMAND")
    rows = [_process(answer, row) for row in process_rows(answer)]
    return aligned([heads, *rows], left=9)


def _process(answer: HistoryAnswer, row: Mapping[str, Any]) -> Sequence[str]:
    days = moment_text(answer.asked.start)[:10] != moment_text(answer.asked.end)[:10]
    times = (moment_text(row[key]) if days else clock_text(row[key]) for key in ("first", "last"))
    texts = [clean(row[key] or DASH) for key in ("job", "ended", "command")]
    most = quantity_text("B", row["memory_most"])
    return (clean(row["user"] or DASH), str(row["pid"]), row["gpus"], *times, most, *texts)


def process_rows(answer: HistoryAnswer) -> list[dict[str, Any]]:
    """Return each process once, over all its GPUs."""
    names = ProcessNames()
    found: dict[str, dict[str, Any]] = {}
    labels = {gpu.uuid: label(gpu) for gpu in answer.gpus}
    for use in answer.processes:
        text = use.text
        row = found.setdefault(
            names.name_of(use.pid, use.started),
            {"user": text.get("user"), "pid": use.pid, "gpus": "", "first": use.first, "last": use.last}
            | {"memory_most": None, "job": text.get("job"), "command": text.get("command") or text.get("name")},
        )
        row["gpus"] = ",".join(dict.fromkeys([*filter(None, row["gpus"].split(",")), labels.get(use.uuid, "?")]))
        row["first"], row["last"] = min(row["first"], use.first), max(row["last"], use.last)
        if use.memory_most is not None:
            row["memory_most"] = max(row["memory_most"] or 0.0, use.memory_most)
    rows = sorted(found.values(), key=lambda row: row["first"])
    reused: dict[int, float] = {}  # when the next process with the same PID came
    for row in reversed(rows):
        row["ended"] = _ending(answer, row, reused.get(row["pid"], inf))
        reused[row["pid"]] = row["first"]
    return rows


def _ending(answer: HistoryAnswer, row: Mapping[str, Any], until: float) -> str | None:
    """Return how a process ended: what was told of it at its end, or that it was still there; None if nobody saw that.

    What is told after `until` is about another process.
    """
    told = [
        event
        for event in answer.events
        if event.process is not None and event.process.pid == row["pid"] and row["last"] - _CLOSE < event.time <= until
    ]
    for kind, word in (("out-of-memory", "out of memory"), ("process-end", "ended")):
        if found := [event for event in told if event.kind == kind]:
            return f"{word} {clock_text(found[-1].time)}"
    return "still there" if row["last"] >= answer.now - _CLOSE else None


def events_list(events: Sequence[Event], now: float) -> list[str]:
    """Return what happened, one line per event."""
    rows: list[Sequence[str]] = [(f"TIME ({zone_text(now)})", "KIND", "LASTED", "WHAT")]
    rows += [(moment_text(event.time), event.category, lasted_text(event, now), event_text(event)) for event in events]
    return aligned(rows, left=4)


def label(gpu: GpuIdentity) -> str:
    """Return the number of a GPU, or what a MIG instance is called."""
    return str(gpu.index) if gpu.index is not None else clean(gpu.uuid[:12])


def over_time(series: HistorySeries | None) -> Stats | None:
    """Return the figures of a series; None when it has no value at all."""
    if series is None:
        return None
    weighted = WeightedSeries()
    for mean, seconds in zip(series.mean, series.seconds, strict=True):
        if mean == mean:
            weighted.add(mean, seconds)
    if not weighted.seconds:
        return None
    weighted.lowest = min(value for value in series.min if value == value)
    weighted.highest = max(value for value in series.max if value == value)
    return Stats.from_series(weighted)


def verification_lines(path: str, found: Verification) -> list[str]:
    """Return what was checked, and everything that is damaged."""
    checked = f"{path}: {found.blocks} blocks and {found.ticks} newer samples checked"
    if found.sound:
        return [f"{checked}, no damage found"]
    lines = [f"{checked}, damage found"]
    if found.events:
        lines += events_list(found.events, max(event.until or event.time for event in found.events))
    lines += [f"damaged rows in table {table}: {count}" for table, count in found.rows.items()]
    return lines + [f"SQLite: {message}" for message in found.pages]


class HistoryRequest(Value):
    """A question: from `start` to `end` in seconds since 1970, these metrics, these GPUs (None: all), at most `points` points, by owner."""

    start: float
    end: float
    metrics: Sequence[str]
    gpus: Sequence[str] | None
    points: int
    by: str


class HistoryAnswer:
    """What the history says: GPUs with their series by metric, who used what, events, and `gaps`, in which nothing was recorded."""

    def __init__(self, reader: HistoryReader, asked: HistoryRequest) -> None:
        self.asked = asked
        self.gpus = chosen(reader.gpus(asked.start, asked.end), asked.gpus)
        uuids = [gpu.uuid for gpu in self.gpus]
        found = reader.series(asked.metrics, uuids, asked.start, asked.end, asked.points)
        self._series = {(series.uuid, series.key): series for series in found}
        self.gaps = reader.recorded(asked.start, asked.end).gaps(asked.start, asked.end)
        self.processes = [use for use in reader.processes(asked.start, asked.end) if use.uuid in uuids]
        self.newest = (reader.span() or (0.0, 0.0))[1]
        self.usage: list[Usage] = reader.usage(asked.start, asked.end, asked.by, uuids)
        self.events: list[Event] = [
            event
            for event in reader.events(asked.start, asked.end)
            if not event.uuids or asked.gpus is None or not set(uuids).isdisjoint(event.uuids)
        ]

    def series(self, gpu: GpuIdentity, key: str) -> HistorySeries | None:
        """Return one metric of one GPU; None when it was never recorded."""
        return self._series.get((gpu.uuid, key))

    @property
    def now(self) -> float:
        """The time up to which what still lasts has lasted: nobody knows of later ones."""
        return min(self.asked.end, self.newest)

    @property
    def times(self) -> list[float]:
        """The moments that all series share."""
        return next((series.times for series in self._series.values()), [])


def metrics_named(names: Sequence[str] | None) -> list[str]:
    """Return the keys of metrics by name; raise UnknownMetric for one that is none."""
    return list(SUMMARY) if names is None else [metric_named(name, GPU_METRICS).key for name in names]


def chosen(gpus: Sequence[GpuIdentity], words: Sequence[str] | None) -> list[GpuIdentity]:
    """Return the GPUs that words name as everywhere, with their MIG instances; raise UnknownGpu for one that was not recorded."""
    if words is None:
        return [*gpus]
    wholes = [gpu for gpu in gpus if not gpu.parent]
    known = [
        Gpu(
            {key: gpu.facts[key] for key in ("index", "pci_bus_id") if key in gpu.facts} | {"uuid": gpu.uuid},
            instances=tuple(Gpu({"uuid": part.uuid}) for part in gpus if part.parent == gpu.uuid),
        )
        for gpu in wholes
    ]
    found: list[GpuIdentity] = []
    for at, part in choose_parts(known, words, os.environ):
        names = {part} if part else {wholes[at].uuid}
        found += [gpu for gpu in gpus if gpu not in found and not names.isdisjoint((gpu.uuid, gpu.parent))]
    return found
