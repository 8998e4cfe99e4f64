"""`gpulse usage`: account for GPU hours, energy and cost by user, project, job, GPU or calendar."""

from __future__ import annotations

import os

from ...errors import UsageError
from ..options import DEMO_PAST, HELP, Arguments, Option, Verb, some_words
from ..output import COST, tariff_of, write_lines
from ..session import with_past

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from ...analysis.accounting import Accounting
    from ...model.serving import Tariff

FORMATS = ("table", "csv", "json", "html")
_KINDS = ("user", "group", "project", "job", "container", "pod", "name", "host", "gpu", "hour", "day", "week", "month")
_WEEK = 7 * 86_400.0


def run(arguments: Arguments) -> int:
    """Read the histories, add up, and write the answer."""
    from ...analysis.accounting import Accounting, check_kinds
    from ...surfaces.usage import group_of, machines_of

    files = _files(arguments)
    form = arguments.format or _form_for(arguments.output)
    if form not in FORMATS:
        raise UsageError(f"unknown format {form!r};", f"choose one of {', '.join(FORMATS)}.")
    by = arguments.by or ["user"]
    check_kinds(by)
    tariff = tariff_of(arguments)
    start, end = _period(arguments)
    machines = machines_of(files or [None], start, end)
    groups = _groups() if "group" in by else ()
    found = Accounting(machines, start, end, by, group_of(groups))
    parts = [found]
    if form == "html" and "day" not in by and end - start > 86_400:
        parts.append(Accounting(machines, start, end, ["day"]))
    return _write(form, arguments.output, parts, tariff)


def _files(arguments: Arguments) -> list[str]:
    """Return the files to read; one that follows --day, --week or --month is no day, week or month."""
    files = [*arguments.files]
    for word in ("day", "week", "month"):
        if (given := getattr(arguments, word)) and os.path.isfile(given):
            setattr(arguments, word, "this")
            files.insert(0, given)
    return files


def _period(arguments: Arguments) -> tuple[float, float]:
    """Return the time that was asked for, the last seven days by default."""
    import time

    from ...model.when import calendar, stretch

    named = [word for word in ("day", "week", "month") if getattr(arguments, word) is not None]
    times = [word for word in (arguments.since, arguments.start, arguments.end) if word is not None]
    if len(named) > 1 or (named and times):
        raise UsageError(
            "usage: more than one period is named;", "choose one of --day, --week, --month, --since or --from."
        )
    if named:
        return calendar(named[0], getattr(arguments, named[0]), time.time())
    return stretch(arguments.since, arguments.start, arguments.end, default=_WEEK)


def _form_for(output: str | None) -> str:
    ending = os.path.splitext(output or "")[1].lstrip(".").lower()
    return {"htm": "html", "html": "html", "csv": "csv", "json": "json"}.get(ending, "table")


def _groups() -> Sequence[str]:
    from ...settings.effective import chosen
    from ...store.config import config_path, read_config

    path = config_path(os.environ)
    groups: Sequence[str] = chosen("usage", read_config(path), os.environ, path).get("groups") or ()
    return groups


def _write(form: str, output: str | None, parts: list[Accounting], tariff: Tariff) -> int:
    from ...surfaces import usage

    found = parts[0]
    if form == "csv":
        from ...store.lines import csv_rows

        lines = [*csv_rows(usage.plain_rows(found, tariff))]
    elif form == "json":
        import json

        lines = [json.dumps(usage.to_plain(found, tariff), allow_nan=False)]
    elif form == "html":
        lines = [usage.page(parts, tariff, _title(found)).rstrip("\n")]
    else:
        lines = usage.text_lines(found, tariff) if found.entries else ["no GPU was recorded in this period"]
    write_lines(lines, output)
    return 0


def _title(found: Accounting) -> str:
    from ...present.cells import period_text

    return f"GPU usage of {', '.join(found.hosts)}: {period_text(found.start, found.end)}"


VERB = Verb(
    "usage",
    (
        Option("files", value="FILE", many=True, default=(), complete="files",
               help="History files to add up, of one or several machines (default: this machine's history)"),
        Option("--by", value="LIST", parse=some_words, many=True, complete=_KINDS, open=True,
               help="What to divide by, separated by commas: user, group, project, job, container, pod, name, host, gpu, hour, day, "
                    "week or month (default: user)"),
        Option("--day", value="DAY", optional="this", help="Account for a day: this, last or 2026-11-15 (default: this)"),
        Option("--week", value="WEEK", optional="this", help="Account for a week: this, last or 2026-W46 (default: this)"),
        Option("--month", value="MONTH", optional="this", help="Account for a month: this, last or 2026-11 (default: this)"),
        Option("--since", value="TIME", help="How far back to go, for example 2h, 7d or 4w (default: 7d)"),
        Option("--from", name="start", value="WHEN", help="Start time: 2026-11-01, yesterday, 03:00, '2h ago'"),
        Option("--to", name="end", value="WHEN", help="End time, in the same forms (default: now)"),
        Option("--format", value="FORM", complete=FORMATS,
               help="Output format: table, csv, json or html, a page to hand on "
                    "(default: from the name of the output file, else table)"),
        Option("--output", "-o", value="FILE", complete="files", help="Write to FILE instead of standard output"),
        *(*COST, DEMO_PAST, HELP),
    ),
    with_past(run, "history", "files"),
    (
        ("gpulse usage --month", "show who used how much this month"),
        ("gpulse usage --month last --by project,user -o october.csv", "export last month by project and user"),
        ("gpulse usage --since 7d --by day", "show how much of each day's capacity was used"),
        ("gpulse usage --month last gpu1.db gpu2.db --by host,user", "add up the histories of two machines"),
        ("gpulse usage --month last -o october.html", "write a page to hand on, for instance by mail"),
    ),
)  # fmt: skip
