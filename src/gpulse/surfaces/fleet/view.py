"""The fleet in lines of text: the sum, what is wrong, and one row per machine."""

from __future__ import annotations

from types import MappingProxyType

from ...analysis.fleet import Funnel, free_gpus, held_by, job_of, losses, sm_share, user_of
from ...model.catalog import DOWN
from ...model.condition import CONDITIONS
from ...present.cells import MISSING, clock_text, quantity_text
from ...present.concerns import STATES, concern_line, product, visible_trouble
from ...present.line import Line, table_lines
from ...present.text import clean, fit, width
from ...present.words import gpus_text, label, owners, part_of_whole, share_style, short_name, silence

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence
    from typing import TypeAlias

    from ...model.catalog import Gpu, Process
    from ...model.fleet import FleetSnapshot, HostReport
    from ...model.verdict import Concern
    from ...present.theme import Theme

    Table: TypeAlias = tuple[Line, list[tuple[Line, str | None]]]  # the titles, and rows with the machine of each

_LEVELS = "▁▂▃▄▅▆▇█"
_ASCII = "_.-:=+*#"
_MOST_PROBLEMS = 10
_WIDEST_NAME, _WIDEST_PRODUCT = 28, 22
_NUMBERS = 38  # cells of the columns after the strip, without users
_SHORTEST_STRIP = 8


def fleet_view(
    snapshot: FleetSnapshot,
    theme: Theme,
    columns: int,
    found: Mapping[str, Sequence[Concern]] = MappingProxyType({}),
    by: str = "host",
) -> list[Line]:
    """Return all lines: the header, the sums, the problems, and the table by host, gpu, user or job.

    `found` is what is wrong on each machine; of one that has not been judged yet, its values tell.
    """
    head, rows = TABLES[by](snapshot, theme, columns)
    return [*top_lines(snapshot, theme, columns, found), Line(), head, *(line for line, _ in rows)]


def top_lines(
    snapshot: FleetSnapshot,
    theme: Theme,
    columns: int,
    found: Mapping[str, Sequence[Concern]] = MappingProxyType({}),
    most: int = _MOST_PROBLEMS,
) -> list[Line]:
    """Return what stands above the table: the header, the sums and at most this many lines of problems."""
    lines = [_header(snapshot, theme, columns), _sums(snapshot, theme, columns)]
    if (problems := _problems(snapshot, theme, columns, found)) and most > 0:
        shown = problems if len(problems) <= most else problems[: most - 1]
        lines += [Line(), *shown]
        if len(shown) < len(problems):
            lines.append(Line().add(f"  +{len(problems) - len(shown)} more problems", "label"))
    return lines


def _header(snapshot: FleetSnapshot, theme: Theme, columns: int) -> Line:
    ok = sum(host.state == "ok" for host in snapshot.hosts)
    count = len(snapshot.hosts)
    line = Line().add("fleet", "title").add(theme.glyph(" · ", " | "), "label")
    line.add(f"{count} host{'s' if count != 1 else ''}" if ok == count else f"{ok} of {count} hosts", "label")
    clock = clock_text(snapshot.time)
    return line.to(columns - len(clock)).add(clock, "label") if line.width + len(clock) < columns else line


def _sums(snapshot: FleetSnapshot, theme: Theme, columns: int) -> Line:
    """Return how many GPUs there are, are held, are active and do useful work, and their power; a number is whole or left out."""
    sums = Funnel(gpu for _, gpu in snapshot.gpus())
    arrow = theme.glyph(" → ", " > ")

    def share(part: float, whole: int) -> str:
        return f" ({100 * part / whole:.0f} %)" if whole else ""

    line = Line().add(f"{sums.total} GPU{'s' if sums.total != 1 else ''}", "title")
    parts = [(arrow, f"{sums.allocated} allocated{share(sums.allocated, sums.total)}", "")]
    parts.append((arrow, f"{sums.active:.1f} active{share(sums.active, sums.total)}", ""))
    if sums.effective is not None:
        measured = "" if sums.judged == sums.total else f" of {sums.judged} that measure it"
        parts.append((arrow, f"{sums.effective:.1f} effective{share(sums.effective, sums.judged)}{measured}", ""))
    if sums.power is not None:
        parts.append(("   ", quantity_text("W", sums.power), "label"))
    for before, told, style in parts:
        if line.width + len(before) + len(told) > columns:
            break
        line.add(before, "faint").add(told, style)
    return line


def _problems(
    snapshot: FleetSnapshot, theme: Theme, columns: int, found: Mapping[str, Sequence[Concern]]
) -> list[Line]:
    """Return one line per machine, GPU or job that is in trouble, the worst first."""
    lines: list[tuple[bool, Line]] = []
    for host in snapshot.hosts:
        name = clean(host.name)
        lines += [
            _problem(theme, kind, f"{name} {place}".strip(), text)
            for kind, place, text in visible_trouble(host, snapshot.time, host.name in found)
        ]
        for one in found.get(host.name, ()):
            lines.append((one.severity != "critical", concern_line(one, theme, columns, name)))
    return [line for _, line in sorted(lines, key=lambda entry: entry[0])]


def _problem(theme: Theme, style: str, where: str, text: str) -> tuple[bool, Line]:
    mark = theme.glyph("■", "X") if style == "critical" else theme.glyph("▲", "!")
    return style != "critical", Line().add(f"{mark} ", style).add(where, "title").add(f"  {text}", style)


def _by_host(snapshot: FleetSnapshot, theme: Theme, columns: int) -> Table:
    names = min(_WIDEST_NAME, max((width(clean(host.name)) for host in snapshot.hosts), default=4))
    products = {host.name: theme.spelled(product(host.gpus)) for host in snapshot.hosts}
    kinds = min(_WIDEST_PRODUCT, max((width(text) for text in products.values()), default=0)) if columns >= 80 else 0
    room = columns - names - (kinds + 2 if kinds else 0) - _NUMBERS
    strip = min(64, max(_SHORTEST_STRIP, room), max((len(host.gpus) for host in snapshot.hosts), default=0))
    head = Line().add("HOST", "label", names).add("  ")
    if kinds:
        head.add("GPUS", "label", kinds).add("  ")
    head.add("NOW", "label", max(3, strip)).add("   SM  UTIL  ", "label").add("MEMORY", "label", 14, True)
    head.add("POWER", "label", 9, True).add("  USERS", "label")
    rows: list[tuple[Line, str | None]] = []
    for host in snapshot.hosts:
        line = Line().add(clean(host.name), "accent", names).add("  ")
        if host.state != "ok":
            text, style = STATES[host.state]
            line.add(text, style).add(f": {clean(host.reason)}" if host.reason else "", "label")
            rows.append((line, host.name))
            continue
        if kinds:
            line.add(products[host.name], "calm", kinds).add("  ")
        _strip(line, host.gpus, theme, strip)
        numbers = _numbers(line.to(names + 2 + (kinds + 2 if kinds else 0) + max(3, strip)), host, columns)
        rows.append((numbers, host.name))
    return head, rows


def _strip(line: Line, gpus: Sequence[Gpu], theme: Theme, cells: int) -> None:
    """Add one cell per GPU: how much of it works, or what is wrong with it; with more GPUs than cells, one for several."""
    levels = theme.glyph(_LEVELS, _ASCII)
    several = max(1, -(-len(gpus) // max(1, cells)))
    for at in range(0, len(gpus), several):
        some = gpus[at : at + several]
        shares = [share for gpu in some if (share := _working(gpu)) is not None]
        if any(gpu.state in DOWN for gpu in some):
            line.add(theme.glyph("×", "X"), "critical")
        elif not shares:
            line.add(theme.glyph("·", "?"), "faint")
        else:
            mean = sum(shares) / len(shares)
            line.add(levels[min(7, int(mean / 12.5))], share_style(mean))


def _working(gpu: Gpu) -> float | None:
    share = sm_share(gpu)
    return gpu.utilization if share is None else share


def _numbers(line: Line, host: HostReport, columns: int) -> Line:
    sums = Funnel(host.gpus)
    for cells, (text, style) in zip((5, 6), _shares(sums), strict=True):
        line.add(text, style, cells, True)
    memory = part_of_whole(sums.memory_used, sums.memory_total) if sums.memory_total else MISSING
    line.add("  ").add(memory, "calm", 14, True)
    line.add(*_power(sums.power), 9, True)
    room = columns - line.width - 2
    people = ", ".join(f"{user} {count}" for user, count in _users(host.gpus) if user)
    return line.add("  ").add(fit(people, room), "user") if room >= 4 else line


def _users(gpus: Iterable[Gpu]) -> list[tuple[str, int]]:
    """Return who holds how many GPUs, most first."""
    counts: dict[str, int] = {}
    for gpu in gpus:
        for user, *_ in owners(gpu.all_processes()):
            counts[user] = counts.get(user, 0) + 1
    return sorted(counts.items(), key=lambda entry: (-entry[1], entry[0]))


def _by_gpu(snapshot: FleetSnapshot, theme: Theme, columns: int) -> Table:
    """Return one row per GPU, the busiest first."""
    rows = []
    found = sorted(snapshot.gpus(), key=lambda entry: -(_working(entry[1]) or 0.0))
    for host, gpu in found:
        words, style = silence(gpu, host.snapshot.time if host.snapshot else snapshot.time)
        people = ", ".join(user for user, *_ in owners(gpu.all_processes()))
        row = [(clean(host.name), "accent"), (label(gpu), ""), (short_name(gpu), "calm")]
        row += [
            _share(sm_share(gpu)),
            _share(gpu.utilization),
            (part_of_whole(gpu.memory_used, gpu.memory_total), "calm"),
        ]
        rows.append([*row, _power(gpu.power_draw), (words, style) if words else (people, "user")])
    heads = ["HOST", "GPU", "NAME", "SM", "UTIL", "MEMORY", "POWER", "USERS"]
    head, *lines = table_lines(heads, rows, [False, True, False, True, True, True, True, False])
    return head, [(line, host.name) for line, (host, _) in zip(lines, found, strict=True)]


def _holders(snapshot: FleetSnapshot, title: str, name: Callable[[Process], str | None]) -> Table:
    """Return one row per holder: its GPUs, how much of them works, memory, power and machines. A shared GPU counts for each."""
    rows = []
    for who, theirs in held_by(snapshot, name):
        sums = Funnel(gpu for _, gpu in theirs)
        machines = ", ".join(dict.fromkeys(clean(host.name) for host, _ in theirs))
        rows.append(
            [(clean(who), "user"), (str(sums.total), ""), *_shares(sums), _power(sums.power), (machines, "label")]
        )
    if not rows:
        return Line().add(f"no {title.lower()} holds a GPU", "label"), []
    heads = [title, "GPUS", "SM", "UTIL", "POWER", "HOSTS"]
    head, *lines = table_lines(heads, rows, [False, True, True, True, True, False])
    return head, [(line, None) for line in lines]


def _shares(sums: Funnel) -> list[tuple[str, str]]:
    """Return how much of some GPUs computes, and how much is active."""
    return [_share(sums.sm_active), _share(sums.utilization)]


def _share(share: float | None) -> tuple[str, str]:
    return (MISSING if share is None else f"{share:.0f}%", share_style(share))


def _power(watts: float | None) -> tuple[str, str]:
    return (MISSING if watts is None else quantity_text("W", watts), "calm")


TABLES: dict[str, Callable[[FleetSnapshot, Theme, int], Table]] = {
    "host": _by_host,
    "gpu": _by_gpu,
    "user": lambda snapshot, theme, columns: _holders(snapshot, "USER", user_of),
    "job": lambda snapshot, theme, columns: _holders(snapshot, "JOB", job_of),
}


def free_lines(snapshot: FleetSnapshot, count: int, memory: float, theme: Theme) -> list[Line]:
    """Return the machines that have this many free GPUs with this much memory, most free ones first."""
    rows = []
    for host in snapshot.hosts:
        free = free_gpus(host, memory)
        if len(free) >= count:
            kind = theme.spelled(product(free))
            rows.append([(clean(host.name), "accent"), (gpus_text([label(gpu) for gpu in free]), ""), (kind, "calm")])
    rows.sort(key=lambda row: -int(row[2][0].partition(" ")[0]))
    return table_lines(["HOST", "FREE", "GPUS"], rows, [False, False, False]) if rows else []


def loss_lines(snapshot: FleetSnapshot, found: Mapping[str, Sequence[Concern]], theme: Theme) -> list[Line]:
    """Return what limits the fleet: how many GPUs are lost to what, and to whom."""
    sums, lost = Funnel(gpu for _, gpu in snapshot.gpus()), losses(found)
    whole = sum(loss.lost for loss in lost)
    count = f"{len(found)} host{'s' if len(found) != 1 else ''}"
    if not lost:
        return [Line().add(f"Nothing limits the {sums.total} GPUs of {count}.")]
    head = Line().add(f"{whole:.1f} of {sums.total} GPUs are lost on {count}", "title")
    head.add(f": {24 * whole:.0f} GPU hours per day", "label")
    rows = []
    for loss in lost:
        what = CONDITIONS[loss.key].title if loss.key in CONDITIONS else clean(loss.key)
        counts = [(f"{loss.lost:.1f}", "warn" if loss.lost >= 1 else ""), (str(loss.gpus), "")]
        hosts = ", ".join(clean(host) for host in loss.hosts)
        rows.append([*counts, (what, ""), (clean(loss.owner) or MISSING, "user"), (hosts, "label")])
    heads = ["LOST", "GPUS", "WHAT", "OWNER", "HOSTS"]
    return [head, Line(), *table_lines(heads, rows, [True, True, False, False, False])]
