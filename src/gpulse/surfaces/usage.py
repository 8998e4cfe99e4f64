"""Accounting as a table, CSV, JSON or a page."""

from __future__ import annotations

import os

from ..analysis.accounting import Accounting, RecordedMachine
from ..analysis.energy import usage_cost
from ..errors import UsageError
from ..model.codec import time_text
from ..present.cells import DASH, energy_text, period_text, quantity_text
from ..present.cost import cost_cells, cost_heads
from ..present.html import cell, escape, table
from ..present.text import aligned, clean
from ..store.history import HistoryReader
from ..units import duration_text

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any

    from ..analysis.accounting import AccountEntry
    from ..analysis.energy import Cost
    from ..model.serving import Tariff

_NOBODY = {"unused": "(not used)", "unknown": "(unknown)"}
_BAR = "#2f7fe044"
_PAGE = "font:14px/1.5 system-ui,sans-serif;color:#1c2733;background:#ffffff;margin:24px"


def machines_of(paths: Sequence[str | None], start: float, end: float) -> list[RecordedMachine]:
    """Read histories; raise UsageError if two of them recorded the same GPU at the same time, whose hours would count twice."""
    found: list[RecordedMachine] = []
    spans: dict[str, list[tuple[float, float, str]]] = {}
    for path in paths:
        with HistoryReader(path) as reader:
            name = reader.host_name() or os.path.basename(reader.path)
            machine = RecordedMachine(reader, name, start, end)
        for uuid in {use.uuid for use in machine.rows}:
            times = [(use.first, use.last) for use in machine.rows if use.uuid == uuid]
            first, last = min(time for time, _ in times), max(time for _, time in times)
            for other_first, other_last, other in spans.setdefault(uuid, []):
                if first < other_last and other_first < last:
                    message = f"{other} and {reader.path} both recorded GPU {clean(uuid)} at the same time;"
                    raise UsageError(message, "name only one of them.")
            spans[uuid].append((first, last, reader.path))
        found.append(machine)
    return found


def group_of(groups: Sequence[str] = ()) -> Any:
    """Return what tells a user's group: the first of `groups` that the user is a member of, else the primary group."""
    import grp
    import pwd

    known: dict[str | None, str | None] = {None: None}

    def find(user: str | None) -> str | None:
        if user not in known:
            known[user] = None
            try:
                account = pwd.getpwuid(int(user)) if user and user.isdecimal() else pwd.getpwnam(user or "")
                mine = [grp.getgrgid(number).gr_name for number in os.getgrouplist(account.pw_name, account.pw_gid)]
                known[user] = next((group for group in groups if group in mine), mine[0] if not groups else None)
            except (KeyError, OSError):
                pass  # a user of another machine, or one that was deleted
        return known[user]

    return find


def plain_rows(found: Accounting, tariff: Tariff) -> list[dict[str, Any]]:
    """Return the entries as plain data, all with the same keys; the energy is an estimate."""
    return [
        {
            "kind": entry.kind,
            **dict(zip(found.by, entry.keys, strict=True)),
            "gpu_hours": entry.gpu_hours,
            "share": entry.share,
            "busy_hours": entry.busy_hours,
            "idle_hours": entry.idle_hours,
            **({} if found.owned else {key: getattr(entry, key) for key in ("capacity_hours", "unused_hours")}),
            "memory_gib_hours": entry.memory_hours,
            "memory_most": entry.memory_most,
            "energy": entry.energy,
            **_plain_cost(entry, tariff),
            "processes": entry.processes,
        }
        for entry in found.entries
    ]


def _cost(entry: AccountEntry, tariff: Tariff) -> Cost | None:
    return usage_cost(entry, tariff) if entry.kind == "used" else None


def _plain_cost(entry: AccountEntry, tariff: Tariff) -> dict[str, float | None]:
    names = (("cost", "total"), ("idle_cost", "idle"), ("carbon", "carbon")) if tariff else ()
    cost = _cost(entry, tariff)
    return {key: None if cost is None else getattr(cost, name) for key, name in names}


def to_plain(found: Accounting, tariff: Tariff) -> dict[str, Any]:
    """Return everything as plain data."""
    return {
        "schema": 1,
        "from": time_text(found.start),
        "to": time_text(found.end),
        "by": list(found.by),
        "hosts": found.hosts,
        "gpus": found.gpus,
        "capacity_hours": found.capacity_hours,
        "used_hours": found.used_hours,
        "unused_hours": found.unused_hours,
        "unknown_hours": found.unknown_hours,
        "unrecorded_hours": found.unrecorded_hours,
        "energy": found.total.energy,
        "currency": tariff.currency or None,
        "usage": plain_rows(found, tariff),
    }


def text_lines(found: Accounting, tariff: Tariff) -> list[str]:
    """Return the table with what it covers and what is missing."""
    return [headline(found), "", *aligned(_table(found, tariff), left=len(found.by)), *notes(found)]


def headline(found: Accounting) -> str:
    """Return the period, the machines and the number of GPUs."""
    hosts = ", ".join(map(clean, found.hosts[:5])) + (", …" if len(found.hosts) > 5 else "")
    count = f"{found.gpus} GPU{'' if found.gpus == 1 else 's'}"
    return f"{period_text(found.start, found.end)}, {duration_text(found.end - found.start)} · {hosts} · {count}"


def notes(found: Accounting) -> list[str]:
    """Return what the reader has to know of the figures: hours without records, and what is not known."""
    said = []
    if found.capacity_hours is None:
        said.append("Shares are missing: part of this time was recorded by a version that did not count unused hours.")
    elif (lost := found.unrecorded_hours or 0.0) > 0.005 * (found.capacity_hours + lost):
        said.append(f"Not recorded, and not counted: {lost:,.1f} GPU hours in which nothing was recording.")
    if (found.unknown_hours or 0.0) > 0.005 * (found.capacity_hours or 0.0):
        said.append("Unknown: the GPU was lost or hung, or its processes could not be read.")
    return ["", *said] if said else []


def _table(found: Accounting, tariff: Tariff) -> list[Sequence[str]]:
    whole = () if found.owned else ("UNUSED", "CAPACITY")
    heads = (*map(str.upper, found.by), "GPU HOURS", "SHARE", "BUSY HOURS", "IDLE HOURS", *whole)
    rows: list[Sequence[str]] = [(*heads, "GiB HOURS", "LARGEST", "ENERGY (est.)", *cost_heads(tariff), "PROCESSES")]
    total = found.total
    total.capacity_hours, total.unused_hours = found.capacity_hours, found.unused_hours
    names = ("total", *("" for _ in found.by[1:]))
    hours = found.capacity_hours if found.owned else found.used_hours
    share = 100.0 if found.owned else 100 * found.used_hours / found.capacity_hours if found.capacity_hours else 0.0
    figures = (_hours(hours), _percent(None if found.capacity_hours is None else share))
    for entry in found.entries:
        own = (_hours(entry.gpu_hours), _percent(entry.share))
        rows.append((*_names(entry), *own, *_figures(found, entry, tariff)))
    return [*rows, (*names, *figures, *_figures(found, total, tariff))] if found.entries else [rows[0]]


def _names(entry: AccountEntry) -> list[str]:
    nobody = _NOBODY.get(entry.kind)
    return [nobody or "(none)" if key is None else clean(key) for key in entry.keys]


def _figures(found: Accounting, entry: AccountEntry, tariff: Tariff) -> list[str]:
    cells = [_hours(entry.busy_hours), _hours(entry.idle_hours)]
    cells += [] if found.owned else [_hours(entry.unused_hours), _hours(entry.capacity_hours)]
    memory = DASH if entry.memory_hours is None else f"{entry.memory_hours:,.1f}"
    cells += [memory, quantity_text("B", entry.memory_most), energy_text(entry.energy)]
    return [*cells, *cost_cells(_cost(entry, tariff), tariff), str(entry.processes) if entry.kind == "used" else DASH]


def _hours(hours: float | None) -> str:
    return DASH if hours is None else f"{hours:,.2f}"


def _percent(share: float | None) -> str:
    return DASH if share is None else f"{share:.1f} %"


def page(parts: Sequence[Accounting], tariff: Tariff, title: str) -> str:
    """Return one HTML page: a table for each accounting, styles inside, nothing to fetch."""
    body = [f'<h1 style="font-size:20px">{escape(title)}</h1><p>{escape(headline(parts[0]))}</p>']
    for found in parts:
        heads, *rows = _table(found, tariff)
        shares = [*(entry.share for entry in found.entries), None]
        at = len(found.by) + 1
        cells = [
            "".join(
                cell(escape(text), share if place == at else None, _BAR, bold=row is rows[-1])
                for place, text in enumerate(row)
            )
            for row, share in zip(rows, shares, strict=False)
        ]
        body.append(f'<h2 style="font-size:16px">By {escape(", ".join(found.by))}</h2>{table(heads, cells)}')
    body += [f"<p>{escape(note)}</p>" for note in notes(parts[0]) if note]
    head = f'<meta charset="utf-8"><title>{escape(title)}</title>'
    return (
        f'<!DOCTYPE html>\n<html lang="en"><head>{head}</head><body style="{_PAGE}">\n{"".join(body)}\n</body></html>\n'
    )
