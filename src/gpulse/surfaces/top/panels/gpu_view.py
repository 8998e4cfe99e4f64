"""One GPU on the whole screen: charts, every metric by group, what limits it, its instances, processes and events."""

from __future__ import annotations

from ....model.catalog import GPU_METRICS, Gpu
from ....present.cells import MISSING, severity, value_text
from ....present.events import event_style, event_text, lasted_text
from ....present.explanation import explained_verdict
from ....present.line import Line, table_lines, wrapped_lines
from ....present.plot import mini
from ....present.quantities import clock_text
from ....present.text import clean, fit
from ....present.verdicts import gpu_name
from ....present.words import GAPS, has, label, part_of_whole, short_name, silence
from ....units import CELSIUS, PERCENT
from ..area import Area
from ..chart_choice import metric_style
from . import charts
from .sections import heading, laid, paint_columns

TYPE_CHECKING = False
if TYPE_CHECKING:
    from ....model.metric import Metric
    from ....screen.grid import Grid
    from ..state import State
    from .sections import Section

WINDOW = 60.0  # seconds of the minimum and mean beside a value
_GROUPS = {
    "activity": ("Utilization", ("utilization", "activity", "engines")),
    "memory": ("Memory", ("memory",)),
    "power": ("Power and temperature", ("power", "thermal")),
    "clocks": ("Clocks", ("clocks",)),
    "links": ("Links", ("links",)),
    "health": ("Health", ("health",)),
    "modes": ("Modes", ("modes",)),
    "identity": ("Identity", ("identity",)),
}
_ORDERS = {
    1: (("verdict", "activity", "memory", "power", "clocks", "instances", "processes", "events", "links", "health",
         "modes", "identity"),),
    2: (("verdict", "activity", "memory", "power", "clocks"),
        ("instances", "processes", "events", "links", "health", "modes", "identity")),
    3: (("verdict", "instances", "processes", "events"), ("activity", "memory", "power", "clocks"),
        ("links", "health", "modes", "identity")),
}  # fmt: skip
_UNSAID = frozenset({"index", "memory_percent", "xids", "topology"})  # shown elsewhere or in another form
_REASONS = {gap: GAPS[gap] for gap in ("denied", "failed", "timeout")}
_VALUE, _SMALL = 11, 11  # columns of a value, and of its minimum and mean
_TALL, _CHART = 26, 8  # rows of the screen from which charts are drawn, and their own
_EVENTS = 12


def view_keys() -> frozenset[str]:
    """Return the metrics that the view shows and so needs."""
    groups = {group for _, groups in _GROUPS.values() for group in groups}
    return frozenset(key for key, metric in GPU_METRICS.items() if metric.group in groups)


def viewed(state: State) -> Gpu | None:
    """Return the GPU under the cursor, or the first one."""
    gpus = state.shown.gpus if state.shown else ()
    return next((gpu for gpu in gpus if gpu.index == state.chart_gpu), gpus[0] if gpus else None)


def paint(grid: Grid, area: Area, state: State) -> None:
    """Draw the GPU; `state.choice` is the first line seen."""
    gpu = viewed(state)
    if area.rows < 2 or gpu is None:
        grid.put(area.row, area.column, "no GPU", "label", area.columns)
        return
    grid.line(area.row, area.column, _title(gpu, state, area.columns), area.columns)
    body = Area(area.row + 1, area.column, area.rows - 1, area.columns)
    words, style = silence(gpu, state.shown.time if state.shown else 0.0)
    if words:
        grid.put(body.row, body.column, words, style, body.columns)
        body = Area(body.row + 1, body.column, body.rows - 1, body.columns)
    elif body.rows >= _TALL:
        rows = max(_CHART, min(2 * _CHART, body.rows // 4))
        charts.paint_gpu(grid, Area(body.row, body.column, rows, body.columns), state, gpu, more=True)
        body = Area(body.row + rows, body.column, body.rows - rows, body.columns)
    paint_columns(grid, body, state, columns(gpu, state, body.columns))


def columns(gpu: Gpu, state: State, cells: int) -> list[list[Line]]:
    """Return everything about a GPU as lines, in as many columns as fit."""
    found = {name: _metrics(gpu, state, name) for name in _GROUPS}
    found["verdict"] = lambda cells: _verdict(gpu, state, cells)
    found["instances"] = lambda cells: _instances(gpu, state, cells)
    found["processes"] = lambda cells: _processes(gpu, state, cells)
    found["events"] = lambda cells: _events(gpu, state, cells)
    return laid(cells, found, _ORDERS)


def _title(gpu: Gpu, state: State, cells: int) -> Line:
    line = Line().add(f"GPU {label(gpu)}", "selected").add(f" {short_name(gpu)}", "title")
    for text in (gpu.uuid, gpu.pci_bus_id):
        if text and line.width + 3 + len(text) < cells - 24:
            line.add(state.theme.glyph(" · ", " | "), "faint").add(clean(text), "label")
    hint = f"{state.theme.glyph('←→', '<>')} other GPU  Esc close"
    return line.to(cells - len(hint)).add(hint, "label") if line.width + len(hint) < cells else line


def _metrics(gpu: Gpu, state: State, name: str) -> Section:
    title, groups = _GROUPS[name]

    def lines(cells: int) -> list[Line]:
        metrics = [metric for key, metric in GPU_METRICS.items() if metric.group in groups and key not in _UNSAID]
        rows = [line for metric in metrics if (line := _row(gpu, metric, state, cells)) is not None]
        rows += _missing(gpu, metrics, cells)
        timed = any(_past(gpu, metric, state) for metric in metrics) and cells >= 54
        note = f"min, mean of {WINDOW:.0f} s" if timed else ""
        return [heading(title, cells, state, note), *rows] if rows else []

    return lines


def _row(gpu: Gpu, metric: Metric, state: State, cells: int) -> Line | None:
    value = gpu.get(metric.key)
    if value is None:
        return None
    line = Line().add(metric.title, "label", min(24, cells // 3)).add(" ")
    text = state.theme.spelled(value_text(metric, value, state.settings.decimal))
    if isinstance(value, (str, tuple)) or len(text) > _VALUE:
        return line.add(fit(text, max(0, cells - line.width), state.theme.more), _style(gpu, metric))
    line.add(text, _style(gpu, metric), _VALUE, right=True)
    past = _past(gpu, metric, state)
    if not past or cells < 54:
        return line
    for each in (min(past), sum(past) / len(past)):
        line.add(value_text(metric, round(each, 1), state.settings.decimal), "label", _SMALL, right=True)
    room = min(24, cells - line.width - 2)
    return line.add("  ").add(_sparkline(past[-room:], metric, state), metric_style(metric)) if room >= 6 else line


def _style(gpu: Gpu, metric: Metric) -> str:
    level = severity(metric, gpu)
    return "" if level == "calm" else level


def _past(gpu: Gpu, metric: Metric, state: State) -> list[float]:
    """Return the values of the last seconds, oldest first; fewer than two say nothing."""
    if gpu.index is None or state.shown is None or metric.kind == "counter":
        return []
    end = state.shown.time
    found = state.history.last(int(gpu.index), metric.key, end - WINDOW, end)
    return found if len(found) > 1 else []


def _sparkline(values: list[float], metric: Metric, state: State) -> str:
    most = max(values) or 1.0
    if metric.unit is PERCENT or metric.unit is CELSIUS:
        most = max(100.0, most)
    return "".join(mini(value / most, state.theme.unicode) for value in values)


def _missing(gpu: Gpu, metrics: list[Metric], cells: int) -> list[Line]:
    """Return one line per reason with the metrics that have no value; those not supported are left out."""
    by_reason: dict[str, list[str]] = {}
    for metric in metrics:
        reason = _REASONS.get(gpu.gaps.get(metric.key, ""))
        if reason and gpu.get(metric.key) is None:
            by_reason.setdefault(reason, []).append(metric.title)
    told = [f"{reason}: {', '.join(titles)}" for reason, titles in by_reason.items()]
    return [line for text in told for line in wrapped_lines([(text, "warn")], cells)]


def _verdict(gpu: Gpu, state: State, cells: int) -> list[Line]:
    if state.back:
        return [heading("Why", cells, state), Line().add("the past is not judged; press l for live data", "label")]
    uuids = {gpu.uuid, *(part.uuid for part in gpu.instances)}
    found = [one for one in state.diagnosis if one.uuid in uuids]
    if not found:
        return [heading("Why", cells, state), Line().add("judging needs about ten seconds of samples", "label")]
    seconds = f"{state.diagnosis.end - state.diagnosis.start:.0f} s"
    lines = [heading("Why", cells, state, f"last {seconds}")]
    for verdict in found:
        lines += [Line().add(gpu_name(verdict), "title")] if verdict.instance else []
        lines += explained_verdict(verdict, state.theme, cells)
    return lines


def _instances(gpu: Gpu, state: State, cells: int) -> list[Line]:
    if not gpu.instances:
        return []
    rows = []
    for part in gpu.instances:
        busy = value_text(Gpu.sm_active, part.sm_active) if has(part, Gpu.sm_active) else MISSING
        users = " ".join(dict.fromkeys(clean(process.user or MISSING) for process in part.processes))
        memory = part_of_whole(part.memory_used, part.memory_total, state.settings.decimal)
        name = short_name(part).removeprefix("MIG ")
        rows.append(
            [(f"{label(gpu)}:{label(part)}", "accent"), (name, ""), (memory, "memory"), (busy, "busy"), (users, "user")]
        )
    titles = ("GPU", "PROFILE", "MEMORY", "SM", "USER")
    return [heading("MIG instances", cells, state), *table_lines(titles, rows, (False, False, True, True, False))]


def _processes(gpu: Gpu, state: State, cells: int) -> list[Line]:
    rows = []
    for process in gpu.all_processes():
        values = [
            ("" if process.pid is None else f"{process.pid:.0f}", ""),
            (clean(process.user or MISSING), "user"),
            (value_text(type(process).memory_used, process.memory_used, state.settings.decimal), "memory"),
            (value_text(type(process).sm_utilization, process.sm_utilization), "busy"),
            (value_text(type(process).cpu_percent, process.cpu_percent), ""),
            (clean(process.command or process.name or MISSING), ""),
        ]
        rows.append(values)
    if not rows:
        return [heading("Processes", cells, state), Line().add("none", "label")]
    titles = ("PID", "USER", "GPU MEM", "SM", "CPU", "COMMAND")
    return [
        heading("Processes", cells, state, f"{len(rows)}"),
        *table_lines(titles, rows, (True, False, True, True, True, False)),
    ]


def _events(gpu: Gpu, state: State, cells: int) -> list[Line]:
    now = state.shown.time if state.shown else state.now
    mine = [event for event in state.events if event.time <= now and _concerns(event.gpus, event.uuids, gpu)]
    lines = [heading("Events", cells, state, f"{len(mine)}" if mine else "")]
    for event in mine[:_EVENTS]:
        lasted = lasted_text(event, now)
        line = Line().add(f"{clock_text(event.time)} ", "faint").add(event_text(event), event_style(event))
        lines.append(line.add(f" ({lasted})", "label") if lasted else line)
    return lines if mine else [*lines, Line().add("none since gpulse was started", "label")]


def _concerns(names: tuple[str, ...], uuids: tuple[str, ...], gpu: Gpu) -> bool:
    return gpu.uuid in uuids if uuids else label(gpu) in names
