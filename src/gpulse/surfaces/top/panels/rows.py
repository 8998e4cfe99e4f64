"""The single rows of the screen: header, host, model servers, what is wrong now, events, and the bottom line."""

from __future__ import annotations

from ....present.cells import MISSING, clock_text, elapsed_text, number_text
from ....present.events import event_style, event_text
from ....present.plot import mini
from ....present.text import clean, fit, width
from ....present.words import part_of_whole, percent, share_style, short_name
from ....screen.grid import draw
from ....units import duration_text, size_text

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from ....screen.grid import Grid
    from ....sources.replay import Position
    from ..layout import Area
    from ..state import State

    Hints = Sequence[tuple[str, str]]
    from ....model.catalog import Host

    Piece = tuple[str, str]

_LONGEST_LINE = 60
_LONGEST_FILTER = 28


def paint_header(grid: Grid, area: Area, state: State) -> None:
    """Draw the machine at the left and the time at the right; a moment that is not now is said aloud and never left out."""
    if area.rows <= 0 or area.columns <= 0:
        return
    end = area.column + area.columns
    loud, quiet = _moment(state)
    column = end
    if quiet and len(quiet) + (len(loud) + 3 if loud else 0) < area.columns:
        column = end - len(quiet)
        grid.put(area.row, column, quiet, "label")
    if loud:
        column = max(area.column, column - len(loud) - (3 if column < end else 2))
        grid.put(area.row, column, f" {loud} ", "loud", area.columns)
    _machine(grid, area, state, column - 1 - area.column)


def _machine(grid: Grid, area: Area, state: State, room: int) -> None:
    sample = state.shown
    if sample is None or room <= 0:
        return
    dot, names = state.theme.glyph(" · ", " | "), {short_name(gpu) for gpu in sample.gpus}
    gpus = f"{len(sample.gpus)} GPUs" if sample.gpus else "no GPU"
    if len(names) == 1:
        gpus = (
            names.pop() if len(sample.gpus) == 1 else f"{len(sample.gpus)} {state.theme.glyph('×', 'x')} {names.pop()}"
        )
    facts = ["read only", gpus] if state.readonly else [gpus]
    for word, key in (("driver", "version"), ("CUDA", "cuda")):
        facts += [f"{word} {clean(sample.driver[key])}"] if key in sample.driver else []
    column = grid.put(area.row, area.column, clean(sample.host.name or "gpulse"), "title", room)
    for fact in facts:
        if column - area.column + width(dot + fact) <= room:
            column = grid.put(area.row, column, dot, "faint")
            column = grid.put(area.row, column, fact, "label")


def _moment(state: State) -> tuple[str, str]:
    """Return what must be said aloud about the moment shown, and the clock."""
    clock = clock_text(state.shown.time if state.shown else state.now)
    words = _playing(state.position, state.theme.glyph("×", "x")) if state.position else []
    if state.paused:
        words.append("PAUSED")
    if state.back > 0:
        words.append(f"{duration_text(state.back)} ago")
    if not words and (old := state.stale):
        words.append(f"NO NEW DATA: {old}")
    return (f"{'  '.join(words)}  {clock}", "") if words else ("", clock)


def _playing(position: Position, times: str) -> list[str]:
    """Return where a recording is, of how much, and how it goes."""
    total = "..." if position.total is None else elapsed_text(int(position.total + 1e-6))
    speed = "max" if position.speed is None else f"{times}{number_text(position.speed)}"
    # the tenths matter to those who step; while it plays they would only make the line jump
    moment = position.moment if position.paused else int(position.moment + 1e-6)
    words = [f"REPLAY {elapsed_text(moment)}/{total} {speed}"]
    if position.ended:
        return [*words, "end of the recording"]
    return [*words, "PAUSED"] if position.paused else words


def paint_problems(grid: Grid, area: Area, state: State) -> None:
    """Draw what is wrong now."""
    if area.rows:
        from ....present.concerns import headline  # loaded after the first frame

        grid.line(area.row, area.column, headline(state.concerns, state.columns, "(y: why)"))


def paint_serving(grid: Grid, area: Area, state: State) -> None:
    """Draw as many model servers as there are rows, led by the numbers of their GPUs; of each what fits, the most important first."""
    if area.rows > 0 and state.shown is not None:
        from ....present.cost import server_lines  # only where there is a server

        for row, line in enumerate(server_lines(state.shown, state.theme, area.columns)[: area.rows], area.row):
            grid.line(row, area.column, line, area.columns)


def paint_events(grid: Grid, area: Area, state: State) -> None:
    """Draw the events up to the moment on screen, newest first, with their age then."""
    if area.rows <= 0:
        return
    column = area.column
    past = state.back > 0 and state.shown is not None
    now = state.shown.time if past and state.shown is not None else state.now
    for event in state.events:
        if past and event.time > now:
            continue
        age, text = f"{duration_text(now - event.time)} ago ", event_text(event)
        if column > area.column and column + len(age) + width(text) > area.columns:
            break  # an older event is left out rather than cut
        column = grid.put(area.row, column, age, "faint", area.columns - column)
        text = fit(text, area.columns - column, state.theme.more)
        column = grid.put(area.row, column, text, event_style(event)) + 3


def paint_footer(grid: Grid, area: Area, state: State, hints: Hints) -> None:
    """Draw the filter while it is typed, else the message, else the keys that fit, behind the timeline if there is one."""
    if area.rows <= 0 or area.columns <= 0:
        return
    if state.dialog == "filter":
        _filter(grid, area, state)
    elif state.message:
        grid.put(area.row, area.column, fit(state.message, area.columns, state.theme.more), "warn")
    else:
        column = area.column
        for text, style in (pieces := _timeline(area, state)):
            column = draw(grid, area.row, column, text, style)
        for start, key, word, style in _placed(area, state, hints, column + (3 if pieces else 0)):
            grid.put(area.row, grid.put(area.row, start, key, "accent") + 1, word, style)


def key_at(area: Area, state: State, hints: Hints, column: int) -> str:
    """Return the key whose hint is in a column of the screen, or nothing."""
    if state.dialog == "filter" or state.message:
        return ""
    pieces = _timeline(area, state)
    start = min(area.columns, sum(len(text) for text, _ in pieces)) + 3 if pieces else 0
    for at, key, word, _ in _placed(area, state, hints, area.column + start):
        if at <= column < at + width(key) + 1 + width(word):
            return key
    return ""


def _placed(area: Area, state: State, hints: Hints, column: int) -> list[tuple[int, str, str, str]]:
    """Return the hints that fit whole: column, key, label and style. The last one, quit, always has its place.

    The active filter stands instead of its word: it hides processes, so it must be seen.
    """
    found: list[tuple[int, str, str, str]] = []
    end = area.column + area.columns
    for at, (key, word) in enumerate(hints):
        style = "label"
        if word == "filter" and state.filter:
            word, style = fit(state.theme.spelled(clean(state.filter)), _LONGEST_FILTER, state.theme.more), "warn"
        last = at == len(hints) - 1
        rest = 0 if last else width(hints[-1][0]) + 1 + width(hints[-1][1]) + 2
        cells = width(key) + 1 + width(word)
        if column + cells + rest <= end:
            found.append((column, key, word, style))
            column += cells + 2
    return found


def _filter(grid: Grid, area: Area, state: State) -> None:
    """Draw the line being typed with a cursor at its end; of a long one the end is kept, which is where one types."""
    column = grid.put(area.row, area.column, "filter: ", "accent", area.columns)
    room = max(0, area.column + area.columns - column - 1)
    text = state.editing
    while width(text) > room:
        text = text[1:]
    column = grid.put(area.row, column, text, "", room)
    column = draw(grid, area.row, column, state.theme.glyph("█", "_"), "accent") + 2
    hint = "Enter apply  Esc cancel"
    if column + len(hint) <= area.column + area.columns and len(state.editing) < room // 2:
        draw(grid, area.row, area.column + area.columns - len(hint), hint, "label")


def _timeline(area: Area, state: State) -> list[tuple[str, str]]:
    """Return the timeline if the screen is not live: a recording, or from the oldest sample kept to now, with a mark at the one shown."""
    if state.position is not None and state.position.total:  # the header says the times
        share, cells = state.position.moment / state.position.total, max(6, min(_LONGEST_LINE, area.columns // 4))
        before = after = ""
    elif state.back > 0:
        moments = state.history.moments()
        newest = state.live.time if state.live else moments[-1] if moments else state.now
        oldest = min(moments[0] if moments else newest, newest - state.back)
        share = (newest - state.back - oldest) / max(1e-9, newest - oldest)
        cells = max(6, min(_LONGEST_LINE, area.columns // 2) - 15)
        before, after = f"{clock_text(oldest)} ", " now"
    else:
        return []
    rule, knob = state.theme.glyph("─", "-"), state.theme.glyph("●", "O")
    at = min(cells - 1, max(0, round((cells - 1) * share)))
    line = [(before, "label"), (rule * at + knob, "accent"), (rule * (cells - 1 - at), "border"), (after, "label")]
    return [(text, style) for text, style in line if text]


_NEARLY_FULL, _FULL = 0.9, 0.97
_SEPARATOR = 3  # columns between two facts


def paint_host(grid: Grid, area: Area, state: State) -> None:
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
    facts = [_gauge("CPU", None if cpu is None else cpu / 100, f"{percent(cpu):>4}", share_style(cpu), bar, state)]
    share = _share(host.memory_used, host.memory_total)
    memory = part_of_whole(host.memory_used, host.memory_total, decimal)
    facts.append(_gauge("memory" if bar else "mem", share, memory, _pressure(share), bar, state))
    if host.load:
        loads = " ".join(f"{value:5.1f}" for value in host.load[: 3 if columns >= 150 else 1])
        facts.append([("load ", "label"), (loads, "calm")])
    if host.iowait is not None:
        style = "warn" if host.iowait >= 20 else "calm"
        facts.append([("iowait ", "label"), (f"{percent(host.iowait):>4}", style)])
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
