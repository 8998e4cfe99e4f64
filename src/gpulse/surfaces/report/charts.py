"""Charts: series over one run in bounded memory, which of them go together, and the small numbers a page draws them from."""

from __future__ import annotations

from ...model.catalog import CURVES, GPU_METRICS, HOST_METRICS
from ...model.condition import LASTING
from ...present.cells import quantity_text
from ...value import Value, fresh
from .run import INSTANCE_CURVES

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence
    from typing import Any

    from ...model.event import Event
    from .run import Run

_STEPS = 1000  # of a chart's height; a pixel is more
_HOST = (
    ("Host CPU", ("cpu_percent", "iowait")),
    ("Host memory", ("memory_used",)),
    ("Disk", ("disk_read", "disk_write")),
    ("Network", ("net_rx", "net_tx")),
)
_TRAINING = {
    "train/steps_per_second": ("Steps per second", ""),
    "train/items_per_second": ("Items per second", ""),
    "train/tokens_per_second": ("Tokens per second", ""),
    "train/mfu": ("Model FLOPs utilization", "%"),
    "train/flops_per_second": ("Floating-point operations per second", ""),
    "train/energy_per_item": ("Energy per item so far", "J"),
    "train/energy_per_token": ("Energy per token so far", "J"),
    "train/data_wait": ("Waiting for data", "%"),
}


class ChartLine(Value):
    """One series of a chart: `color` is its number among the colors, `run` that of its run, `gpu` what it is switched off with."""

    name: str
    trace: TimelineSeries
    color: int
    run: int = 0
    gpu: str = ""


class ReportChart:
    """Lines over one scale, from `low` to `high` in `unit`."""

    def __init__(
        self, title: str, unit: str, lines: Sequence[ChartLine], high: float | None = None, help: str = ""
    ) -> None:
        self.title = title
        self.unit = unit
        self.lines = lines
        self.help = help
        values = [
            value
            for line in lines
            for column in (line.trace.lows, line.trace.highs)
            for value, count in zip(column, line.trace.counts, strict=True)
            if count
        ]
        self.low = min(0.0, *values) if unit != "°C" else min(values) // 10 * 10
        most = max(values)
        self.high = 100.0 if unit == "%" and most <= 100 else max(most * 1.05, high or 0.0)
        if self.high - self.low < 1e-9:
            self.high = self.low + 1.0

    def text(self) -> str:
        """Return the chart as text."""
        return f"{self.title}. " + "; ".join(self._line_text(line) for line in self.lines)

    def _line_text(self, line: ChartLine) -> str:
        words = (quantity_text(self.unit, value) for value in line.trace.figures())
        return "{}: mean {}, from {} to {}".format(line.name, *words)

    def to_plain(self, lengths: Sequence[int]) -> dict[str, Any]:
        """Return what the page draws from; `lengths` are the points of each run."""
        return {
            "unit": self.unit,
            "low": self.low,
            "high": self.high,
            "lines": [
                {"name": line.name, "color": line.color, "run": line.run, "gpu": line.gpu}
                | self._coded(line.trace, lengths[line.run])
                for line in self.lines
            ],
        }

    def _coded(self, trace: TimelineSeries, length: int) -> dict[str, list[int | None]]:
        """Return means as differences, and least and most as distances from them: mostly a digit or two each."""
        trace.reach(length)
        step = (self.high - self.low) / _STEPS
        rows: list[tuple[int | None, int, int]] = []  # mean, below and above of each point
        before = 0
        for low, value, high in zip(trace.lows, trace.means(), trace.highs, strict=True):
            if value is None:
                rows.append((None, 0, 0))
                continue
            bottom, mean, top = (round((one - self.low) / step) for one in (low, value, high))
            rows.append((mean - before, max(0, mean - bottom), max(0, top - mean)))
            before = mean
        means, below, above = map(list, zip(*rows, strict=True)) if rows else ([], [], [])
        return {"mean": means} | ({"below": below, "above": above} if any(below) or any(above) else {})


class Strip(Value):
    """One GPU on one row, the brighter the busier, with what befell it: `spans` are (from, to, severity) in seconds."""

    name: str
    line: tuple[int, int]  # of which chart, and which line of it
    spans: Sequence[tuple[float, float, str]]


def run_charts(run: Run) -> list[ReportChart]:
    """Return the charts of one run, those that have something to show."""
    charts: list[ReportChart] = []
    for key in CURVES:
        lines = _lines(run, key, {f"gpu {label}": f"GPU {label}" for label in run.labels})
        for line in lines:
            line.gpu = line.name.removeprefix("GPU ")
        charts += _gpu_chart(key, lines, [run])
    instances = {f"instance {span.label}": span.label for span in run.instances}
    for key in INSTANCE_CURVES:  # what the driver measures for each MIG instance
        charts += _gpu_chart(key, _lines(run, key, instances), (), ", MIG instances")
    for title, keys in _HOST:
        found = [line for key in keys for line in _lines(run, key, {"host": HOST_METRICS[key].title}, keys.index(key))]
        if found:
            top = run.last.host.memory_total if keys == ("memory_used",) else None
            charts.append(ReportChart(title, HOST_METRICS[keys[0]].unit.symbol, found, top))
    for (where, tag), trace in run.timeline.traces.items():
        if where == "training":
            title, unit = _TRAINING.get(tag, (tag, ""))
            charts.append(ReportChart(title, unit, [ChartLine(title, trace, 0)]))
    return charts


def _lines(run: Run, key: str, names: Mapping[str, str], color: int = 0) -> list[ChartLine]:
    """Return a line for each place that has a metric: `names` are those of the lines by place."""
    found, places = run.timeline.traces, enumerate(names.items(), color)
    return [ChartLine(name, found[place, key], at) for at, (place, name) in places if (place, key) in found]


def _gpu_chart(key: str, lines: Sequence[ChartLine], runs: Sequence[Run], more: str = "") -> list[ReportChart]:
    """Return the chart of a metric; none without lines, or of a link that is not there, which reads 0."""
    if not lines or (key[:4] in ("pcie", "nvli") and not any(any(line.trace.highs) for line in lines)):
        return []
    metric = GPU_METRICS[key]
    end = metric.whole or metric.limit
    tops = [gpu.get(end) for run in runs for gpu in run.last.gpus] if end else []
    top = max((value for value in tops if isinstance(value, (int, float))), default=None)
    return [ReportChart(f"{metric.title}{more}", metric.unit.symbol, lines, top, metric.help)]


def run_strips(run: Run, charts: Sequence[ReportChart]) -> list[Strip]:
    """Return a row for each GPU, bright where it works."""
    title = GPU_METRICS[run.activity].title
    chart = next((at for at, chart in enumerate(charts) if chart.title == title), None)
    if chart is None:
        return []
    strips, uuids = [], {label: gpu.uuid for label, gpu in zip(run.labels, run.summary.gpus, strict=True)}
    for at, line in enumerate(charts[chart].lines):
        spans = [
            (event.time - run.start, _end(event, run.end) - run.start, event.severity)
            for event in run.events
            if event.is_about(uuids.get(line.gpu), line.gpu) and event.severity in ("critical", "warn")
        ]
        strips.append(Strip(line.name, (chart, at), spans))
    return strips


def both_charts(runs: Sequence[Run], names: Sequence[str]) -> list[ReportChart]:
    """Return the charts of two runs over each other: the mean of each run's GPUs, with the least and the most of them."""
    charts: list[ReportChart] = []
    for key in CURVES:
        lines = []
        for at, (run, name) in enumerate(zip(runs, names, strict=True)):
            found = [line.trace for line in _lines(run, key, {f"gpu {label}": "" for label in run.labels})]
            if found:
                lines.append(ChartLine(name, together(found, len(run.timeline.at)), at, run=at))
        charts += _gpu_chart(key, lines, runs)
    for key in ("cpu_percent", "memory_used"):
        traces = [run.timeline.traces.get(("host", key)) for run in runs]
        lines = [ChartLine(names[at], trace, at, run=at) for at, trace in enumerate(traces) if trace is not None]
        if lines:
            charts.append(ReportChart(f"Host {HOST_METRICS[key].title}", HOST_METRICS[key].unit.symbol, lines))
    return charts


def together(traces: Sequence[TimelineSeries], length: int) -> TimelineSeries:
    """Return the mean of several series at each of `length` points, with the least and the most of any."""
    mean = TimelineSeries()
    for trace in traces:
        trace.reach(length)
    for point in range(length):
        full = [trace for trace in traces if trace.counts[point]]
        mean.lows.append(min((trace.lows[point] for trace in full), default=0.0))
        mean.highs.append(max((trace.highs[point] for trace in full), default=0.0))
        mean.sums.append(sum(trace.sums[point] / trace.counts[point] for trace in full))
        mean.counts.append(len(full))
    return mean


def _end(event: Event, end: float) -> float:
    if event.until is not None:
        return event.until
    return end if event.kind in LASTING else event.time


POINTS = 1000  # at most, of each series
_FIRST = 1 / 16  # seconds of a point at the beginning; doubled until all fits, so an hour of seconds has points of 4 s


class TimelineSeries(Value):
    """One series: of each point the least, the sum, the number and the most of its values; where the number is 0, nothing else counts."""

    lows: list[float] = fresh(factory=list)
    sums: list[float] = fresh(factory=list)
    counts: list[int] = fresh(factory=list)
    highs: list[float] = fresh(factory=list)

    def add(self, point: int, value: float) -> None:
        """Add a value to a point, which is the last or a later one."""
        counts = self.counts
        if len(counts) <= point:
            self.reach(point)
            counts.append(1)
            self.sums.append(value)
            self.lows.append(value)
            self.highs.append(value)
            return
        if not counts[point]:
            self.lows[point] = self.highs[point] = value
        elif value < self.lows[point]:
            self.lows[point] = value
        elif value > self.highs[point]:
            self.highs[point] = value
        counts[point] += 1
        self.sums[point] += value

    def reach(self, length: int) -> None:
        """Fill up with points that have no value."""
        missing = length - len(self.counts)
        if missing <= 0:
            return
        for column in (self.lows, self.sums, self.highs):
            column.extend([0.0] * missing)
        self.counts.extend([0] * missing)

    def merge(self, groups: list[tuple[int, int]]) -> None:
        """Make one point of each group, given as first and behind the last."""
        self.reach(groups[-1][1])
        full = [[at for at in range(*group) if self.counts[at]] for group in groups]
        self.lows = [min((self.lows[at] for at in group), default=0.0) for group in full]
        self.highs = [max((self.highs[at] for at in group), default=0.0) for group in full]
        self.sums = [sum(self.sums[at] for at in group) for group in full]
        self.counts = [sum(self.counts[at] for at in group) for group in full]

    def figures(self) -> tuple[float, float, float]:
        """Return mean, least and most over all points; there must be at least one value."""
        full = [at for at, count in enumerate(self.counts) if count]
        mean = sum(self.sums[at] for at in full) / sum(self.counts[at] for at in full)
        return mean, min(self.lows[at] for at in full), max(self.highs[at] for at in full)

    def means(self) -> Iterator[float | None]:
        """Walk the means, None where a point has no value."""
        for total, count in zip(self.sums, self.counts, strict=True):
            yield total / count if count else None


class Timeline:
    """All series of one run by name; they share their points, which begin at `at` times `width` seconds into the run.

    A name is where and what: ("gpu 0", "power_draw"). `breaks` are the points before which nothing was recorded for a while.
    """

    def __init__(self) -> None:
        self.width = _FIRST
        self.at: list[int] = []
        self.breaks: set[int] = set()
        self.traces: dict[tuple[str, str], TimelineSeries] = {}
        self._start: float | None = None

    def begin(self, time: float, after_gap: bool = False) -> None:
        """Go to the point of a moment; the values that follow belong to it."""
        if self._start is None:
            self._start = time
        place = int((time - self._start) / self.width)
        if not self.at or place > self.at[-1]:
            if after_gap:
                self.breaks.add(len(self.at))
            self.at.append(place)
            while len(self.at) > POINTS:
                self._halve()

    def add(self, where: str, key: str, value: float) -> None:
        """Add a value of the moment that was begun."""
        trace = self.traces.get((where, key))
        if trace is None:
            trace = self.traces[where, key] = TimelineSeries()
        trace.add(len(self.at) - 1, value)

    def _halve(self) -> None:
        self.width *= 2
        groups: list[tuple[int, int]] = []
        merged: list[int] = []
        for point, place in enumerate(self.at):
            if merged and merged[-1] == place // 2:
                groups[-1] = (groups[-1][0], point + 1)
            else:
                merged.append(place // 2)
                groups.append((point, point + 1))
        if len(groups) < len(self.at):
            for trace in self.traces.values():
                trace.merge(groups)
            self.breaks = {new for new, group in enumerate(groups) if self.breaks.intersection(range(*group))}
        self.at = merged
