"""The host: processors, memory and traffic in one to three rows."""

from __future__ import annotations

from ....present.cells import MISSING
from ....present.plot import mini
from ....present.words import part_of_whole, share_style
from ....screen.grid import draw
from ....units import size_text

TYPE_CHECKING = False
if TYPE_CHECKING:
    from ....model.catalog import Host
    from ....screen.grid import Grid
    from ..layout import Area
    from ..state import State

    Piece = tuple[str, str]

_NEARLY_FULL, _FULL = 0.9, 0.97
_SEPARATOR = 3  # columns between two facts


def paint(grid: Grid, area: Area, state: State) -> None:
    """Draw as many facts as fit, the most telling first, each in a place of fixed width; the cores on the last row."""
    if area.rows <= 0 or area.columns <= 0 or state.shown is None:
        return
    host = state.shown.host
    cores = host.cpu_per_core or ()
    rows = area.rows - 1 if area.rows >= 2 and cores else area.rows
    row, column = area.row, area.column
    end = area.column + area.columns
    for fact in _facts(host, state, area.columns):
        cells = sum(len(text) for text, _ in fact)
        if column + cells > end:
            if row + 1 >= area.row + rows or cells > area.columns:
                continue  # a shorter one may still fit
            row, column = row + 1, area.column
        for text, style in fact:
            column = draw(grid, row, column, text, style)
        column += _SEPARATOR
    if state.focus == "host":
        grid.restyle(area.row, area.column, len("CPU"), "selected")
    if rows < area.rows:
        _cores(grid, area.row + rows, area.column, area.columns, cores, state)
    elif cores and end - column >= len(cores) + 6:
        _cores(grid, row, column, end - column, cores, state)


def _facts(host: Host, state: State, columns: int) -> list[list[Piece]]:
    decimal = state.settings.decimal
    bar = max(4, min(20, (columns - 40) // 6)) if columns >= 50 else 0
    cpu = host.cpu_percent
    facts = [_gauge("CPU", None if cpu is None else cpu / 100, f"{_percent(cpu):>4}", share_style(cpu), bar, state)]
    share = _share(host.memory_used, host.memory_total)
    memory = part_of_whole(host.memory_used, host.memory_total, decimal)
    facts.append(_gauge("memory" if bar else "mem", share, memory, _pressure(share), bar, state))
    if host.load:
        loads = " ".join(f"{value:5.1f}" for value in host.load[: 3 if columns >= 150 else 1])
        facts.append([("load ", "label"), (loads, "calm")])
    if host.iowait is not None:
        style = "warn" if host.iowait >= 20 else "calm"
        facts.append([("iowait ", "label"), (f"{_percent(host.iowait):>4}", style)])
    facts += _traffic("disk", ("read", host.disk_read), ("write", host.disk_write), decimal)
    facts += _traffic("net", ("in", host.net_rx), ("out", host.net_tx), decimal)
    facts += _traffic("ib", ("in", _infiniband(host, host.port_rx)), ("out", _infiniband(host, host.port_tx)), decimal)
    if host.swap_total:
        share = _share(host.swap_used, host.swap_total)
        style = "warn" if share is not None and share >= 0.5 else "calm"
        facts.append([("swap ", "label"), (part_of_whole(host.swap_used, host.swap_total, decimal), style)])
    return facts


def _infiniband(host: Host, rates: tuple[float, ...] | None) -> float | None:
    """Return the traffic of all InfiniBand and RoCE ports, whose names have a slash; None if there is none."""
    found = [rate for name, rate in zip(host.port_names or (), rates or (), strict=False) if "/" in name]
    return sum(found) if found else None


def _gauge(name: str, share: float | None, text: str, style: str, bar: int, state: State) -> list[Piece]:
    filled, empty = state.theme.bar(share, bar)
    if not bar:
        return [(f"{name} ", "label"), (text, style)]
    return [(f"{name} ", "label"), (filled, style), (empty, "track"), (f" {text}", "calm")]


def _traffic(
    name: str, one: tuple[str, float | None], other: tuple[str, float | None], decimal: bool
) -> list[list[Piece]]:
    if one[1] is None and other[1] is None:
        return []
    fact: list[Piece] = [(name, "label")]
    for word, rate in (one, other):
        text = MISSING if rate is None else f"{size_text(rate, decimal=decimal)}/s"
        fact += [(f" {word} ", "faint"), (f"{text:>10}", "calm")]
    return [fact]


def _cores(grid: Grid, row: int, column: int, cells: int, cores: tuple[float, ...], state: State) -> None:
    """Draw a bar for each core; where they do not fit, one for every few, as high as the busiest of them."""
    if cells < 10:
        return
    each = -(-len(cores) // (cells - 6))
    name = "cores "
    if each > 1:
        each = -(-len(cores) // (cells - 9))
        name = f"cores{state.theme.glyph('÷', '/')}{each:<2} "
    column = draw(grid, row, column, name, "label")
    shares = [max(cores[at : at + each]) for at in range(0, len(cores), each)] if each > 1 else cores
    draw(grid, row, column, "".join([mini(share / 100, state.theme.unicode) for share in shares]))
    shown = min(len(shares), grid.columns - column)
    grid.styles[row][column : column + shown] = [share_style(share) for share in shares[:shown]]


def _share(part: float | None, whole: float | None) -> float | None:
    return None if part is None or not whole else part / whole


def _pressure(share: float | None) -> str:
    if share is None or share < _NEARLY_FULL:
        return "memory"
    return "critical" if share >= _FULL else "warn"


def _percent(value: float | None) -> str:
    return MISSING if value is None else f"{value:.0f}%"
