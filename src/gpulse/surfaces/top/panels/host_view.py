"""The host on the whole screen: CPUs, memory and paging, disks, ports, and the processes that use most CPU and memory."""

from __future__ import annotations

from ....model.catalog import Host
from ....present.cells import MISSING, value_text
from ....present.line import Line, gauge, table_lines
from ....present.plot import mini
from ....present.text import clean, fit
from ....present.words import part_of_whole, share_style
from ....units import size_text
from .sections import heading, laid, paint_columns

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import TypeVar

    from ....model.metric import Metric
    from ....screen.grid import Grid
    from ..area import Area
    from ..state import State

    T = TypeVar("T")
    Cell = tuple[str, str]
    Entry = tuple[float, str, float, float, str, str]  # pid, user, CPU, memory, role, command

_ORDERS = {
    1: (("cpu", "memory", "top_cpu", "top_memory", "disks", "ports"),),
    2: (("cpu", "memory", "disks", "ports"), ("top_cpu", "top_memory")),
    3: (("cpu", "memory"), ("disks", "ports"), ("top_cpu", "top_memory")),
}
_NAME = 20
_ROWS, _OTHERS = 12, 3  # top processes by CPU and by memory; minimum number of them without a GPU
_ROLES = {"gpu": ("GPU", "busy"), "worker": ("worker", "good"), "other": ("no GPU", "warn")}
_HUNGRY = 20.0  # percent of a core from which a process without a GPU stands out
_LARGE = 1 << 30  # bytes of memory from which one does
_ALARM = {"swap_in": 1 << 20, "swap_out": 1 << 20, "major_faults": 100.0, "processes_blocked": 4.0}


def paint(grid: Grid, area: Area, state: State) -> None:
    """Draw the host; `state.choice` is the first line seen."""
    if area.rows <= 0 or state.shown is None:
        return
    paint_columns(grid, area, state, columns(state.shown.host, state, area.columns))


def columns(host: Host, state: State, cells: int) -> list[list[Line]]:
    """Return everything about the host as lines, in as many columns as fit."""
    sections = {
        "cpu": lambda cells: _cpu(host, state, cells),
        "memory": lambda cells: _memory(host, state, cells),
        "disks": lambda cells: _disks(host, state, cells),
        "ports": lambda cells: _ports(host, state, cells),
        "top_cpu": lambda cells: _top(host, state, cells, by_memory=False),
        "top_memory": lambda cells: _top(host, state, cells, by_memory=True),
    }
    return laid(cells, sections, _ORDERS)


def _cpu(host: Host, state: State, cells: int) -> list[Line]:
    count = "" if host.cpu_count is None else f"{host.cpu_count:.0f} CPUs"
    lines = [heading("CPU", cells, state, count), _bar("CPU", host.cpu_percent, state, cells)]
    lines.append(_row(Host.iowait, host, state, "warn" if (host.iowait or 0) >= 20 else ""))
    if host.load:
        loads = "  ".join(f"{load:.1f}" for load in host.load)
        lines.append(Line().add("Load 1, 5, 15 min", "label", _NAME).add(loads))
    keys = (Host.processes_running, Host.processes_blocked, Host.context_switches, Host.interrupts)
    lines += [_row(metric, host, state) for metric in keys]
    return [*lines, *_cores(host.cpu_per_core or (), state, cells)]


def _cores(cores: Sequence[float], state: State, cells: int) -> list[Line]:
    """Return one bar per CPU, as many rows as that takes."""
    lines = []
    for at in range(0, len(cores), max(1, cells - _NAME)):
        line = Line().add("Per CPU" if not at else "", "label", _NAME)
        for share in cores[at : at + max(1, cells - _NAME)]:
            line.add(mini(share / 100, state.theme.unicode), share_style(share))
        lines.append(line)
    return lines


def _memory(host: Host, state: State, cells: int) -> list[Line]:
    decimal = state.settings.decimal
    share = None if not host.memory_total or host.memory_used is None else 100 * host.memory_used / host.memory_total
    lines = [heading("Memory and paging", cells, state)]
    lines.append(
        _bar("Memory used", share, state, cells, part_of_whole(host.memory_used, host.memory_total, decimal), "memory")
    )
    lines.append(_row(Host.memory_cached, host, state))
    swap = part_of_whole(host.swap_used, host.swap_total, decimal) if host.swap_total else "no swap space"
    lines.append(Line().add("Swap used", "label", _NAME).add(swap))
    return [*lines, *(_row(metric, host, state) for metric in (Host.swap_in, Host.swap_out, Host.major_faults))]


def _disks(host: Host, state: State, cells: int) -> list[Line]:
    names = host.disk_names or ()
    if not names:
        return [heading("Disks", cells, state), Line().add(_absent(host, "disk_names"), "label")]
    rows = []
    for at, name in enumerate(names):
        busy = _at(host.disk_busy, at)
        rows.append(
            [
                (clean(name), ""),
                (_rate(_at(host.disk_reads, at), state), ""),
                (_rate(_at(host.disk_writes, at), state), ""),
                (MISSING if busy is None else f"{busy:.0f}%", "warn" if (busy or 0) >= 80 else share_style(busy)),
            ]
        )
    return [
        heading("Disks", cells, state),
        *table_lines(("DISK", "READ", "WRITE", "BUSY"), rows, (False, True, True, True)),
    ]


def _ports(host: Host, state: State, cells: int) -> list[Line]:
    names = host.port_names or ()
    total = f"in {_rate(host.net_rx, state)}  out {_rate(host.net_tx, state)}"
    lines = [heading("Network", cells, state), Line().add("All interfaces", "label", _NAME).add(total)]
    rows: list[list[Cell]] = []
    for at, name in enumerate(names):
        status = _at(host.port_states, at) or ""
        errors = _at(host.port_errors, at) or 0
        speed = _at(host.port_speeds, at)
        rows.append(
            [
                (clean(name), ""),
                (clean(status), "" if status == "active" else "warn"),
                (f"{speed * 8 / 1e9:.0f} Gbit/s" if speed else MISSING, "label"),
                (_rate(_at(host.port_rx, at), state), ""),
                (_rate(_at(host.port_tx, at), state), ""),
                (f"{errors:.0f}", "warn" if errors else "label"),
            ]
        )
    titles = ("PORT", "STATE", "SPEED", "IN", "OUT", "ERRORS")
    return [*lines, *(table_lines(titles, rows, (False, False, True, True, True, True)) if rows else [])]


def _top(host: Host, state: State, cells: int, by_memory: bool) -> list[Line]:
    title = "Top processes by memory" if by_memory else "Top processes by CPU"
    if not host.top_pids:
        return [heading(title, cells, state), Line().add(_absent(host, "top_pids"), "label")]
    entries = list(
        zip(host.top_pids, host.top_users or (), host.top_cpu or (), host.top_memory or (), host.top_roles or (),
            host.top_commands or (), strict=False)
    )  # fmt: skip
    entries.sort(key=lambda entry: -entry[3] if by_memory else -entry[2])
    rows = [_process(entry, state, by_memory) for entry in _told(entries)]
    titles = ("PID", "USER", "CPU", "MEMORY", "ROLE", "COMMAND")
    note = "" if by_memory else "100% is one CPU"
    lines = table_lines(titles, rows, (True, False, True, True, False, False))
    return [heading(title, cells, state, note), *lines]


def _told(entries: list[Entry]) -> list[Entry]:
    """Return the first ones, and among them some without a GPU: many loader workers must not hide who starves them."""
    others = [entry for entry in entries[_ROWS:] if entry[4] == "other"]
    few = max(0, _OTHERS - sum(entry[4] == "other" for entry in entries[:_ROWS]))
    return [*entries[: _ROWS - len(others[:few])], *others[:few]]


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
    value = host.get(metric.key)
    limit = _ALARM.get(metric.key)
    if limit is not None and isinstance(value, (int, float)) and value >= limit:
        style = "warn"
    text = value_text(metric, value, state.settings.decimal) if value is not None else _absent(host, metric.key)
    return Line().add(metric.title, "label", _NAME).add(text, style if value is not None else "label")


def _bar(name: str, share: float | None, state: State, cells: int, text: str = "", style: str = "") -> Line:
    line = Line().add(name, "label", _NAME)
    words = f" {text}" if text else ""
    number = MISSING if share is None else f"{share:.0f}%"
    bar = max(0, min(40, cells - _NAME - 6 - len(words)))
    line.extend(gauge(state.theme, None if share is None else share / 100, bar, style or share_style(share)))
    return line.add(f" {number:>4}").add(words, "label")


def _rate(value: float | None, state: State) -> str:
    return MISSING if value is None else f"{size_text(value, decimal=state.settings.decimal)}/s"


def _absent(host: Host, key: str) -> str:
    """Return why there is no value, in words."""
    gap = host.gaps.get(key)
    return {"pending": "measuring", "unsupported": "not available", "failed": "cannot be read"}.get(
        gap or "", "measuring"
    )


def _at(values: Sequence[T] | None, at: int) -> T | None:
    return values[at] if values is not None and at < len(values) else None
