"""What happened in periods of the history: who used what, and two periods side by side."""

from __future__ import annotations

from functools import partial
from math import hypot

from ..analysis.accounting import gpu_label
from ..analysis.summary import WeightedSeries
from ..present.cells import DASH, energy_text, quantity_text
from ..present.runs import COMPARED, COUNTED, NOTE, PARTS, Difference, headline, nothing_to_compare, standard_error
from ..present.text import clean
from ..store.history import ProcessNames
from ..units import duration_text, size_text

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Collection
    from typing import Any

    from ..store.history import GpuIdentity, HistoryReader, HistorySeries, Usage, UsageTimes

_POINTS = 600
_KEYS = (*(key for _, key, _, _ in COMPARED), "memory_used")


class PeriodFigures:
    """What the history says of one period; instances are left out, since their GPUs count."""

    def __init__(self, reader: HistoryReader, start: float, end: float, uuids: Collection[str] | None) -> None:
        self.start, self.end = start, end
        self.gpus = [gpu for gpu in reader.gpus(start, end) if not gpu.parent and (uuids is None or gpu.uuid in uuids)]
        names = [gpu.uuid for gpu in self.gpus]
        found = reader.series(_KEYS, names, start, end, _POINTS) if names else []
        self._series = {(one.uuid, one.key): one for one in found}
        self._means = {name: _weighted(one) for name, one in self._series.items()}
        host = reader.host_series(["cpu_percent"], start, end, _POINTS)
        self.host = _weighted(host[0]).mean if host else None
        self._recorded = reader.recorded(start, end).seconds(start, end)
        self.hours = sum(use.gpu_hours for use in reader.usage(start, end, "user", uuids))
        self._kinds = [event.kind for event in reader.events(start, end) if uuids is None or {*event.uuids} & {*uuids}]

    @property
    def recorded(self) -> float:
        """Seconds of which something was recorded, of the GPU with the most."""
        found = max((one.seconds for one in self._means.values()), default=0.0)
        return min(found, self._recorded)  # the first and the last row reach beyond

    @property
    def energy(self) -> float | None:
        """Joules of all GPUs, from the power that was recorded."""
        found = [one for (_, key), one in self._means.items() if key == "power_draw" and one.mean is not None]
        return sum((one.mean or 0.0) * one.seconds for one in found) if found else None

    @property
    def peak(self) -> float | None:
        """The most memory in use on the GPU that came nearest to being full."""
        found = [(self.highest(gpu, "memory_used"), gpu.memory_total or 2.0**60) for gpu in self.gpus]
        known = [(used / total, used) for used, total in found if used is not None]
        return max(known)[1] if known else None

    def mean(self, key: str) -> float | None:
        """Return the mean over all GPUs that have a metric."""
        found = [mean for gpu in self.gpus if (mean := self.mean_of(gpu, key)) is not None]
        return sum(found) / len(found) if found else None

    def mean_of(self, gpu: GpuIdentity, key: str) -> float | None:
        """Return the mean of one GPU."""
        found = self._means.get((gpu.uuid, key))
        return None if found is None else found.mean

    def highest(self, gpu: GpuIdentity, key: str) -> float | None:
        """Return the highest value of one GPU."""
        found = self._series.get((gpu.uuid, key))
        values = [] if found is None else [value for value in found.max if value == value]
        return max(values, default=None)

    def noise(self, key: str) -> float:
        """Return the standard error of a mean over the period and its GPUs."""
        parts = [WeightedSeries() for _ in range(PARTS)]
        for (_, name), series in self._series.items():
            if name != key:
                continue
            for time, mean, seconds in zip(series.times, series.mean, series.seconds, strict=True):
                if mean == mean:
                    at = int((time - self.start) / (self.end - self.start) * PARTS)
                    parts[max(0, min(PARTS - 1, at))].add(mean, seconds)
        return standard_error([part.mean for part in parts if part.mean is not None])

    def count(self, kind: str) -> int:
        """Return how many events of a kind there were."""
        return self._kinds.count(kind)

    def to_plain(self) -> dict[str, Any]:
        """Return when it was and how much of it was recorded."""
        return {"from": round(self.start, 3), "to": round(self.end, 3), "recorded": round(self.recorded, 1)}


def _weighted(series: HistorySeries) -> WeightedSeries:
    weighted = WeightedSeries()
    for mean, seconds in zip(series.mean, series.seconds, strict=True):
        if mean == mean:
            weighted.add(mean, seconds)
    return weighted


def comparison_answer(a: PeriodFigures, b: PeriodFigures) -> dict[str, Any]:
    """Return both periods, what differs, and the GPUs that both have side by side; no difference to a period without records."""
    found = differences(a, b)
    empty = [name for name, period in (("first", a), ("second", b)) if not period.recorded]
    nothing = nothing_to_compare(empty)
    return {
        "a": a.to_plain(),
        "b": b.to_plain(),
        "note": f"{NOTE.replace('run', 'period')} Means over all GPUs; energy is estimated from power.",
        "headline": [nothing]
        if nothing
        else [text.replace("of each run", "of each period") for text in headline(found)],
        "figures": [
            {"title": one.title, "a": one.before, "b": one.after, "a_text": one.before_text, "b_text": one.after_text}
            | {"difference": DASH if nothing else one.change_text, "matters": one.matters and not nothing}
            for one in found
        ],
        "gpus": _pairs(a, b),
    }


def differences(a: PeriodFigures, b: PeriodFigures) -> list[Difference]:
    """Return all figures that at least one of the periods has, and not as zero."""
    found = [
        Difference("Recorded time", a.recorded, b.recorded, duration_text, floor=60.0),
        Difference("GPU hours in use", a.hours, b.hours, "{:.2f} h".format, floor=0.01),
        *(
            Difference(
                title, a.mean(key), b.mean(key), partial(quantity_text, unit), hypot(a.noise(key), b.noise(key)), floor
            )
            for title, key, unit, floor in COMPARED
        ),
        Difference("Peak memory", a.peak, b.peak, size_text, floor=256 << 20),
        Difference("Energy", a.energy, b.energy, energy_text, floor=36.0),
        Difference("Host CPU", a.host, b.host, "{:.0f} %".format, floor=1.0),
    ]
    counts = [
        Difference(title, a.count(kind), b.count(kind), "{:.0f}".format)
        for kind, title in COUNTED.items()
        if a.count(kind) + b.count(kind)
    ]
    return [each for each in found if each.before or each.after] + counts


def _pairs(a: PeriodFigures, b: PeriodFigures) -> list[dict[str, Any]]:
    """Return the GPUs of both periods by UUID, with activity, power and peak memory as text, a dash for what is unknown."""
    there = {gpu.uuid: gpu for gpu in (*a.gpus, *b.gpus)}
    key = "sm_active" if a.mean("sm_active") is not None or b.mean("sm_active") is not None else "utilization"

    def texts(period: PeriodFigures, gpu: GpuIdentity) -> list[str]:
        activity, watts = period.mean_of(gpu, key), period.mean_of(gpu, "power_draw")
        memory = period.highest(gpu, "memory_used")
        return [quantity_text("%", activity), quantity_text("W", watts), quantity_text("B", memory)]

    return [
        {"uuid": uuid, "label": clean(gpu_label(uuid, there)), "activity": key}
        | {"a": texts(a, gpu), "b": texts(b, gpu)}
        for uuid, gpu in there.items()
    ]


_MOST = 200  # owners in one answer
_FIGURES = ("gpu_hours", "instance_hours", "busy_hours", "memory_hours", "memory_most", "energy", "processes")


def usage_answer(
    reader: HistoryReader, start: float, end: float, by: str, points: int, uuids: Collection[str] | None, commands: bool
) -> dict[str, Any]:
    """Return the owners, those with the most GPU hours first; `uuids` name GPUs, whose instances count too."""
    gpus = reader.gpus(start, end)
    chosen = None if uuids is None else {*uuids, *(gpu.uuid for gpu in gpus if gpu.parent in uuids)}
    if by == "process":
        totals = _process_totals(reader, start, end, chosen)
    else:
        totals = {use.owner: _figures(use) for use in reader.usage(start, end, by, chosen)}
    width = (end - start) / points
    rows = [
        _row(one, {"gpu_hours": one.held_seconds / 3600} | totals.get(one.owner, {}), by, gpus, commands)
        for one in reader.usage_times(start, end, by, points, chosen)
    ]
    rows.sort(key=lambda row: -row["gpu_hours"])
    return {
        "from": round(start, 3),
        "to": round(end, 3),
        "by": by,
        "times": [round(start + at * width, 3) for at in range(points)],
        "seconds": width,
        "owners": len(rows),
        "usage": rows[:_MOST],
    }


def _row(times: UsageTimes, total: dict[str, Any], by: str, gpus: list[GpuIdentity], commands: bool) -> dict[str, Any]:
    row: dict[str, Any] = {"owner": times.owner, "label": _label(times, by, gpus), **total, "uuids": times.uuids}
    row["gpus"] = _rounded(times.held, 4)
    if times.watts is not None:
        row["watts"] = _rounded(times.watts, 2)
    if times.pid is not None:
        texts = {name: clean(text) for name, text in times.text.items() if commands or name != "command"}
        row |= {"pid": times.pid, **texts}
    return row


def _rounded(values: list[float | None], digits: int) -> list[float | None]:
    return [None if value is None else round(value, digits) for value in values]


def _label(times: UsageTimes, by: str, gpus: list[GpuIdentity]) -> str:
    """Return what an owner is called: of a process, the PID with its program; of a GPU, its number, of an instance both numbers."""
    if by == "process" and times.pid is not None:
        return f"{times.pid} {clean(times.text.get('name', ''))}".strip()
    if by == "gpu":
        return clean(gpu_label(times.owner or "", {gpu.uuid: gpu for gpu in gpus}))
    return clean(times.owner) if times.owner else f"(no {by})"


def _figures(use: Usage) -> dict[str, Any]:
    return {"memory_gib_hours" if name == "memory_hours" else name: getattr(use, name) for name in _FIGURES}


def _process_totals(
    reader: HistoryReader, start: float, end: float, uuids: Collection[str] | None
) -> dict[str | None, dict[str, Any]]:
    """Return the figures of each process over all its GPUs."""
    found: dict[str | None, dict[str, Any]] = {}
    names = ProcessNames()
    for use in reader.processes(start, end):
        if uuids is not None and use.uuid not in uuids:
            continue
        key = names.name_of(use.pid, use.started)
        total = found.setdefault(key, {"first": use.first, "last": use.last})
        total["first"], total["last"] = min(total["first"], use.first), max(total["last"], use.last)
        sums = (use.busy_seconds, 1 / 3600), (use.memory_seconds, 1 / 3600 / 2**30), (use.energy, 1.0)
        for name, (value, scale) in zip(("busy_hours", "memory_gib_hours", "energy"), sums, strict=True):
            before = total.get(name)
            total[name] = before if value is None else (before or 0.0) + value * scale
        if use.memory_most is not None:
            total["memory_most"] = max(total.get("memory_most") or 0.0, use.memory_most)
    return found
