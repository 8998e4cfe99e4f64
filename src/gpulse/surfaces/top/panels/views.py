"""The views on the whole screen, in titled sections: one GPU with everything known about it, and the host."""

from __future__ import annotations

from ....model.catalog import GPU_METRICS, Gpu, Host, Process
from ....present.cells import MISSING, clock_text, severity, value_text
from ....present.events import event_style, event_text, lasted_text
from ....present.explanation import explained_verdict
from ....present.line import Line, gauge, table_lines, wrapped_lines
from ....present.plot import mini
from ....present.text import clean, fit
from ....present.verdicts import gpu_name
from ....present.words import GAPS, has, label, part_of_whole, percent, share_style, short_name, silence
from ....units import CELSIUS, PERCENT, size_text
from ..layout import Area, split
from . import charts
from .charts import metric_style
from .gpus import hidden_text

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from typing import TypeAlias, TypeVar

    from ....model.metric import Metric
    from ....screen.grid import Grid
    from ..state import State

    T = TypeVar("T")
    Cell: TypeAlias = tuple[str, str]
    Entry: TypeAlias = tuple[float, str, float, float, str, str]  # pid, user, CPU, memory, role, command
    Orders: TypeAlias = Mapping[int, Sequence[Sequence[str]]]
    # the title, a note at its end, and the lines; no lines: the section is left out
    Section: TypeAlias = tuple[str, str, Sequence[Line]]

WINDOW = 60.0  # seconds of the minimum and mean beside a value
_NARROWEST = 58  # columns of a section beside others
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
# Which sections are in which column, by number of columns.
_GPU_ORDERS = {
    1: (("verdict", "activity", "memory", "power", "clocks", "instances", "processes", "events", "links", "health",
         "modes", "identity"),),
    2: (("verdict", "activity", "memory", "power", "clocks"),
        ("instances", "processes", "events", "links", "health", "modes", "identity")),
    3: (("verdict", "instances", "processes", "events"), ("activity", "memory", "power", "clocks"),
        ("links", "health", "modes", "identity")),
}  # fmt: skip
_HOST_ORDERS = {
    1: (("cpu", "memory", "top_cpu", "top_memory", "disks", "ports"),),
    2: (("cpu", "memory", "disks", "ports"), ("top_cpu", "top_memory")),
    3: (("cpu", "memory"), ("disks", "ports"), ("top_cpu", "top_memory")),
}
_UNSAID = frozenset({"index", "memory_percent", "xids", "topology"})  # shown elsewhere or in another form
_REASONS = {gap: GAPS[gap] for gap in ("denied", "failed", "timeout")}
_ABSENT = {"pending": "measuring", "unsupported": "not available", "failed": "cannot be read"}
_VALUE, _SMALL = 11, 11  # columns of a value, and of its minimum and mean
_TALL, _CHART = 26, 8  # rows of the screen from which charts are drawn, and their own
_EVENTS = 12
_NAME = 20  # columns of a name in the view of the host
_ROWS, _OTHERS = 12, 3  # top processes by CPU and by memory; minimum number of them without a GPU
_ROLES = {"gpu": ("GPU", "busy"), "worker": ("worker", "good"), "other": ("no GPU", "warn")}
_HUNGRY = 20.0  # percent of a core from which a process without a GPU stands out
_LARGE = 1 << 30  # bytes of memory from which one does
_ALARM = {"swap_in": 1 << 20, "swap_out": 1 << 20, "major_faults": 100.0, "processes_blocked": 4.0}


def view_keys() -> frozenset[str]:
    """Return the metrics that the view of a GPU shows and so needs."""
    groups = {group for _, groups in _GROUPS.values() for group in groups}
    return frozenset(key for key, metric in GPU_METRICS.items() if metric.group in groups)


def viewed(state: State) -> Gpu | None:
    """Return the GPU under the cursor, or the first one."""
    gpus = state.shown.gpus if state.shown else ()
    return next((gpu for gpu in gpus if gpu.index == state.chart_gpu), gpus[0] if gpus else None)


def paint_gpu(grid: Grid, area: Area, state: State) -> None:
    """Draw the GPU; `state.choice` is the first line seen."""
    gpu = viewed(state)
    if area.rows < 2 or gpu is None:
        grid.put(area.row, area.column, "no GPU", "label", area.columns)
        return
    grid.line(area.row, area.column, _title(gpu, state, area.columns), area.columns)
    words, style, used = *silence(gpu, state.shown.time if state.shown else 0.0), 1
    if words:
        grid.put(area.row + used, area.column, words, style, area.columns)
        used += 1
    elif area.rows - used >= _TALL:
        rows = max(_CHART, min(2 * _CHART, (area.rows - used) // 4))
        charts.paint_gpu(grid, Area(area.row + used, area.column, rows, area.columns), state, gpu, more=True)
        used += rows
    body = Area(area.row + used, area.column, area.rows - used, area.columns)
    _paint_columns(grid, body, state, gpu_columns(gpu, state, body.columns))


def paint_host(grid: Grid, area: Area, state: State) -> None:
    """Draw the host; `state.choice` is the first line seen."""
    if area.rows > 0 and state.shown is not None:
        _paint_columns(grid, area, state, host_columns(state.shown.host, state, area.columns))


def gpu_columns(gpu: Gpu, state: State, cells: int) -> list[list[Line]]:
    """Return everything about a GPU as lines, in as many columns as fit."""
    sections = {"verdict": _verdict, "instances": _instances, "processes": _processes, "events": _events}

    def section(name: str, room: int) -> Section:
        return sections[name](gpu, state, room) if name in sections else _metrics(gpu, state, room, name)

    return _laid(cells, state, section, _GPU_ORDERS)


def host_columns(host: Host, state: State, cells: int) -> list[list[Line]]:
    """Return everything about the host as lines, in as many columns as fit."""
    sections = {"cpu": _cpu, "memory": _memory, "disks": _disks, "ports": _ports}

    def section(name: str, room: int) -> Section:
        return sections[name](host, state, room) if name in sections else _top(host, state, name == "top_memory")

    return _laid(cells, state, section, _HOST_ORDERS)


def _laid(columns: int, state: State, section: Callable[[str, int], Section], orders: Orders) -> list[list[Line]]:
    """Return the lines of each column; `section` makes one by its name for a width."""
    count = max(1, min(3, columns // _NARROWEST))
    room = (columns - 2 * (count - 1)) // count
    found = []
    for names in orders[count]:
        lines: list[Line] = []
        for name in names:
            title, note, part = section(name, room)
            if part:
                head, tail = Line().add(title, "title").add(" "), f" {note}" if note else ""
                head.add(state.theme.glyph("─", "-") * max(0, room - head.width - len(tail)), "border")
                lines += [*([Line()] if lines else []), head.add(tail, "label"), *part]
        found.append(lines)
    return found


def _paint_columns(grid: Grid, area: Area, state: State, columns: list[list[Line]]) -> None:
    """Draw the columns from the line `state.choice` on, which is moved back if it is beyond the end; the last row counts the hidden."""
    longest = max((len(lines) for lines in columns), default=0)
    rows = area.rows if longest <= area.rows else area.rows - 1
    state.choice = max(0, min(state.choice, longest - rows))
    for place, lines in zip(split(area, len(columns)), columns, strict=True):
        for row, line in enumerate(lines[state.choice : state.choice + rows]):
            grid.line(area.row + row, place.column, line, place.columns)
    if longest > rows:
        hidden = hidden_text(state.theme, state.choice, longest - state.choice - rows)
        grid.put(area.end - 1, area.column, f"{hidden} lines", "label", area.columns)


def _title(gpu: Gpu, state: State, cells: int) -> Line:
    line = Line().add(f"GPU {label(gpu)}", "selected").add(f" {short_name(gpu)}", "title")
    for text in (gpu.uuid, gpu.pci_bus_id):
        if text and line.width + 3 + len(text) < cells - 24:
            line.add(state.theme.glyph(" · ", " | "), "faint").add(clean(text), "label")
    hint = f"{state.theme.glyph('←→', '<>')} other GPU  Esc close"
    return line.to(cells - len(hint)).add(hint, "label") if line.width + len(hint) < cells else line


def _metrics(gpu: Gpu, state: State, cells: int, name: str) -> Section:
    title, groups = _GROUPS[name]
    metrics = [metric for key, metric in GPU_METRICS.items() if metric.group in groups and key not in _UNSAID]
    rows = [line for metric in metrics if (line := _metric(gpu, metric, state, cells)) is not None]
    timed = any(_past(gpu, metric, state) for metric in metrics) and cells >= 54
    missing: dict[str, list[str]] = {}  # by reason; what is not supported is left out
    for metric in metrics:
        reason = _REASONS.get(gpu.gaps.get(metric.key, ""))
        if reason and gpu.get(metric.key) is None:
            missing.setdefault(reason, []).append(metric.title)
    for reason, titles in missing.items():
        rows += wrapped_lines([(f"{reason}: {', '.join(titles)}", "warn")], cells)
    return title, f"min, mean of {WINDOW:.0f} s" if timed else "", rows


def _metric(gpu: Gpu, metric: Metric, state: State, cells: int) -> Line | None:
    value, level = gpu.get(metric.key), severity(metric, gpu)
    if value is None:
        return None
    style = "" if level == "calm" else level
    line = Line().add(metric.title, "label", min(24, cells // 3)).add(" ")
    text = state.theme.spelled(value_text(metric, value, state.settings.decimal))
    if isinstance(value, (str, tuple)) or len(text) > _VALUE:
        return line.add(fit(text, max(0, cells - line.width), state.theme.more), style)
    line.add(text, style, _VALUE, right=True)
    past = _past(gpu, metric, state)
    if not past or cells < 54:
        return line
    for each in (min(past), sum(past) / len(past)):
        line.add(value_text(metric, round(each, 1), state.settings.decimal), "label", _SMALL, right=True)
    room = min(24, cells - line.width - 2)
    if room < 6:
        return line
    shown = past[-room:]
    most = max(shown) or 1.0
    if metric.unit is PERCENT or metric.unit is CELSIUS:
        most = max(100.0, most)
    bars = "".join(mini(value / most, state.theme.unicode) for value in shown)
    return line.add("  ").add(bars, metric_style(metric))


def _past(gpu: Gpu, metric: Metric, state: State) -> list[float]:
    """Return the values of the last seconds, oldest first; fewer than two say nothing."""
    if gpu.index is None or state.shown is None or metric.kind == "counter":
        return []
    end = state.shown.time
    found = state.history.last(int(gpu.index), metric.key, end - WINDOW, end)
    return found if len(found) > 1 else []


def _verdict(gpu: Gpu, state: State, cells: int) -> Section:
    uuids = {gpu.uuid, *(part.uuid for part in gpu.instances)}
    found = [one for one in state.diagnosis if one.uuid in uuids]
    if state.back or not found:
        why = (
            "the past is not judged; press l for live data"
            if state.back
            else "judging needs about ten seconds of samples"
        )
        return "Why", "", [Line().add(why, "label")]
    lines: list[Line] = []
    for verdict in found:
        lines += [Line().add(gpu_name(verdict), "title")] if verdict.instance else []
        lines += explained_verdict(verdict, state.theme, cells)
    return "Why", f"last {state.diagnosis.end - state.diagnosis.start:.0f} s", lines


def _instances(gpu: Gpu, state: State, cells: int) -> Section:
    rows = []
    for part in gpu.instances:
        busy = value_text(Gpu.sm_active, part.sm_active) if has(part, Gpu.sm_active) else MISSING
        users = " ".join(dict.fromkeys(clean(process.user or MISSING) for process in part.processes))
        memory = part_of_whole(part.memory_used, part.memory_total, state.settings.decimal)
        name = (short_name(part).removeprefix("MIG "), "")
        place = (f"{label(gpu)}:{label(part)}", "accent")
        rows.append([place, name, (memory, "memory"), (busy, "busy"), (users, "user")])
    titles = ("GPU", "PROFILE", "MEMORY", "SM", "USER")
    return "MIG instances", "", table_lines(titles, rows, (False, False, True, True, False)) if rows else ()


def _processes(gpu: Gpu, state: State, cells: int) -> Section:
    rows = [
        [
            ("" if process.pid is None else f"{process.pid:.0f}", ""),
            (clean(process.user or MISSING), "user"),
            (value_text(Process.memory_used, process.memory_used, state.settings.decimal), "memory"),
            (value_text(Process.sm_utilization, process.sm_utilization), "busy"),
            (value_text(Process.cpu_percent, process.cpu_percent), ""),
            (clean(process.command or process.name or MISSING), ""),
        ]
        for process in gpu.all_processes()
    ]
    if not rows:
        return "Processes", "", [Line().add("none", "label")]
    titles = ("PID", "USER", "GPU MEM", "SM", "CPU", "COMMAND")
    return "Processes", f"{len(rows)}", table_lines(titles, rows, (True, False, True, True, True, False))


def _events(gpu: Gpu, state: State, cells: int) -> Section:
    now = state.shown.time if state.shown else state.now
    past = [event for event in state.events if event.time <= now]
    mine = [event for event in past if event.is_about(gpu.uuid, label(gpu))]
    lines = []
    for event in mine[:_EVENTS]:
        lasted = lasted_text(event, now)
        line = Line().add(f"{clock_text(event.time)} ", "faint").add(event_text(event), event_style(event))
        lines.append(line.add(f" ({lasted})", "label") if lasted else line)
    if not lines:
        return "Events", "", [Line().add("none since gpulse was started", "label")]
    return "Events", f"{len(mine)}", lines


def _cpu(host: Host, state: State, cells: int) -> Section:
    lines = [_bar("CPU", host.cpu_percent, state, cells)]
    lines.append(_row(Host.iowait, host, state, "warn" if (host.iowait or 0) >= 20 else ""))
    if host.load:
        loads = "  ".join(f"{load:.1f}" for load in host.load)
        lines.append(Line().add("Load 1, 5, 15 min", "label", _NAME).add(loads))
    keys = (Host.processes_running, Host.processes_blocked, Host.context_switches, Host.interrupts)
    lines += [_row(metric, host, state) for metric in keys]
    cores, room = host.cpu_per_core or (), max(1, cells - _NAME)
    for at in range(0, len(cores), room):  # one bar per CPU, as many rows as that takes
        line = Line().add("Per CPU" if not at else "", "label", _NAME)
        for share in cores[at : at + room]:
            line.add(mini(share / 100, state.theme.unicode), share_style(share))
        lines.append(line)
    return "CPU", "" if host.cpu_count is None else f"{host.cpu_count:.0f} CPUs", lines


def _memory(host: Host, state: State, cells: int) -> Section:
    decimal = state.settings.decimal
    share = None if not host.memory_total or host.memory_used is None else 100 * host.memory_used / host.memory_total
    used = _bar(
        "Memory used", share, state, cells, part_of_whole(host.memory_used, host.memory_total, decimal), "memory"
    )
    words = part_of_whole(host.swap_used, host.swap_total, decimal) if host.swap_total else "no swap space"
    swap = Line().add("Swap used", "label", _NAME).add(words)
    paging = [_row(metric, host, state) for metric in (Host.swap_in, Host.swap_out, Host.major_faults)]
    return "Memory and paging", "", [used, _row(Host.memory_cached, host, state), swap, *paging]


def _disks(host: Host, state: State, cells: int) -> Section:
    if not host.disk_names:
        return "Disks", "", [Line().add(_absent(host, "disk_names"), "label")]
    rows = []
    for at, name in enumerate(host.disk_names):
        busy = _at(host.disk_busy, at)
        used = (percent(busy), "warn" if (busy or 0) >= 80 else share_style(busy))
        rates = [(_rate(_at(rates, at), state), "") for rates in (host.disk_reads, host.disk_writes)]
        rows.append([(clean(name), ""), *rates, used])
    return "Disks", "", table_lines(("DISK", "READ", "WRITE", "BUSY"), rows, (False, True, True, True))


def _ports(host: Host, state: State, cells: int) -> Section:
    total = f"in {_rate(host.net_rx, state)}  out {_rate(host.net_tx, state)}"
    lines = [Line().add("All interfaces", "label", _NAME).add(total)]
    rows: list[list[Cell]] = []
    for at, name in enumerate(host.port_names or ()):
        status, errors = clean(_at(host.port_states, at) or ""), _at(host.port_errors, at) or 0
        speed = _at(host.port_speeds, at)
        reach = (f"{speed * 8 / 1e9:.0f} Gbit/s" if speed else MISSING, "label")
        rates = [(_rate(_at(rates, at), state), "") for rates in (host.port_rx, host.port_tx)]
        broken = (f"{errors:.0f}", "warn" if errors else "label")
        rows.append([(clean(name), ""), (status, "" if status == "active" else "warn"), reach, *rates, broken])
    titles = ("PORT", "STATE", "SPEED", "IN", "OUT", "ERRORS")
    table = table_lines(titles, rows, (False, False, True, True, True, True)) if rows else []
    return "Network", "", [*lines, *table]


def _top(host: Host, state: State, by_memory: bool) -> Section:
    title, note = ("Top processes by memory", "") if by_memory else ("Top processes by CPU", "100% is one CPU")
    if not host.top_pids:
        return title, "", [Line().add(_absent(host, "top_pids"), "label")]
    entries = list(
        zip(host.top_pids, host.top_users or (), host.top_cpu or (), host.top_memory or (), host.top_roles or (),
            host.top_commands or (), strict=False)
    )  # fmt: skip
    entries.sort(key=lambda entry: -entry[3] if by_memory else -entry[2])
    # some without a GPU are always among the first: many loader workers must not hide who starves them
    few = max(0, _OTHERS - sum(entry[4] == "other" for entry in entries[:_ROWS]))
    others = [entry for entry in entries[_ROWS:] if entry[4] == "other"][:few]
    rows = [_process(entry, state, by_memory) for entry in (*entries[: _ROWS - len(others)], *others)]
    titles = ("PID", "USER", "CPU", "MEMORY", "ROLE", "COMMAND")
    return title, note, table_lines(titles, rows, (True, False, True, True, False, False))


def _process(entry: Entry, state: State, by_memory: bool) -> list[Cell]:
    pid, user, cpu, memory, role, command = entry
    word, style = _ROLES.get(role, (role, "label"))
    large = memory >= _LARGE if by_memory else cpu >= _HUNGRY
    return [
        (f"{pid:.0f}", ""),
        (fit(clean(user), 10, state.theme.more), "user"),
        (f"{cpu:.0f}%", share_style(cpu)),
        (size_text(memory, decimal=state.settings.decimal), "memory"),
        (word, "label" if role == "other" and not large else style),
        (state.theme.spelled(clean(command)), ""),
    ]


def _row(metric: Metric, host: Host, state: State, style: str = "") -> Line:
    line, value, limit = Line().add(metric.title, "label", _NAME), host.get(metric.key), _ALARM.get(metric.key)
    if value is None:
        return line.add(_absent(host, metric.key), "label")
    if limit is not None and isinstance(value, (int, float)) and value >= limit:
        style = "warn"
    return line.add(value_text(metric, value, state.settings.decimal), style)


def _bar(name: str, share: float | None, state: State, cells: int, text: str = "", style: str = "") -> Line:
    words = f" {text}" if text else ""
    bar = max(0, min(40, cells - _NAME - 6 - len(words)))
    drawn = gauge(state.theme, None if share is None else share / 100, bar, style or share_style(share))
    return Line().add(name, "label", _NAME).extend(drawn).add(f" {percent(share):>4}").add(words, "label")


def _rate(value: float | None, state: State) -> str:
    return MISSING if value is None else f"{size_text(value, decimal=state.settings.decimal)}/s"


def _absent(host: Host, key: str) -> str:
    return _ABSENT.get(host.gaps.get(key) or "", "measuring")


def _at(values: Sequence[T] | None, at: int) -> T | None:
    return values[at] if values is not None and at < len(values) else None
