"""`gpulse history`: query recorded metrics, usage and events."""

from __future__ import annotations

import os
import sys

from ...errors import UsageError
from ...model.catalog import OWNERS
from ..options import COLOR, DEMO_PAST, GPU, HELP, THEME, Arguments, Option, Verb, some_words, whole
from ..output import COST, export_samples, tariff_of, write_lines
from ..session import terminal_of, with_past

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from ...model.serving import Tariff
    from ...model.snapshot import Snapshot
    from ...present.theme import Theme
    from ...surfaces.history.tables import HistoryAnswer

FORMATS = ("table", "plot", "csv", "json")
_BY = (*OWNERS, "project", "name", "gpu")
_POINTS = 600


def run(arguments: Arguments) -> int:
    """Query the history and write the answer."""
    from ...model.when import stretch
    from ...store.history import HistoryReader
    from ...surfaces.history import tables as questions
    from ...surfaces.history.exports import columns_for, is_recording

    if arguments.verify or arguments.repair:
        return _verify(arguments)
    if arguments.file and is_recording(arguments.file):
        return _export(arguments)
    tariff = tariff_of(arguments)
    start, end = stretch(arguments.since, arguments.start, arguments.end)
    theme, width = terminal_of(arguments)
    points = arguments.points or (columns_for(width, theme) if arguments.format == "plot" else _POINTS)
    question = questions.HistoryRequest(
        start, end, questions.metrics_named(arguments.metrics), arguments.gpu, points, arguments.usage or "user"
    )
    with HistoryReader(arguments.file) as reader:
        answer = questions.HistoryAnswer(reader, question)
    if not arguments.file:
        _say_which(reader.path)
    table = next((name for name in ("processes", "events", "usage") if getattr(arguments, name)), "")
    write_lines(_lines(answer, arguments.format, table, tariff, theme, width), arguments.output)
    return 0


def _verify(arguments: Arguments) -> int:
    """Check the history, repair it if asked to; return 1 if damage remains."""
    from ...store.history import path_to_read, repair, verify
    from ...surfaces.history.tables import verification_lines

    path = path_to_read(arguments.file)
    found = verify(path)
    write_lines(verification_lines(path, found), arguments.output)
    if found.sound or not arguments.repair:
        return 0 if found.sound else 1
    sys.stdout.write(f"repaired: {repair(path, found)}\n")
    return 0


def _export(arguments: Arguments) -> int:
    """Write the samples of a recording as a table."""
    from ...model.when import stretch
    from ...surfaces.history.exports import samples_of

    if arguments.format != "csv":
        raise UsageError(
            f"history: {arguments.file} is a recording, which can be exported with --format csv;",
            f"for a summary, try gpulse report {arguments.file}.",
        )
    start = end = None
    if arguments.since or arguments.start or arguments.end:
        start, end = stretch(arguments.since, arguments.start, arguments.end)

    def samples(damaged: list[int]) -> Iterator[Snapshot]:
        return samples_of(arguments.file, start, end, arguments.gpu or (), os.environ, damaged)

    return export_samples(arguments.file, samples, arguments.output, arguments.metrics or ())


def _say_which(path: str) -> None:
    """Name the file that was read, and the other one if there are two: of the machine and of this user."""
    from ...store.history import other_path

    other = other_path(path)
    sys.stderr.write(f"gpulse: read from {path}{f' (there is also {other}: --file {other})' if other else ''}.\n")


def _lines(answer: HistoryAnswer, form: str, table: str, tariff: Tariff, theme: Theme, width: int) -> Iterable[str]:
    """Return the answer, or one `table` of it, as lines of text."""
    from ...surfaces.history import exports, tables

    if form == "csv":
        from ...store.lines import csv_rows

        return csv_rows(exports.table_rows(answer, table, tariff)) if table else exports.csv_lines(answer)
    if form == "json":
        import json

        return [json.dumps(exports.to_plain(answer, tariff), allow_nan=False)]
    if form == "plot":
        drawn = [line.render(theme, width) for line in exports.plots(answer, width, theme)]
        return drawn or ["nothing was recorded in this period"]
    if table == "processes":
        return tables.processes_table(answer) if answer.processes else ["no process used a GPU in this period"]
    if table == "events":
        return tables.events_list(answer.events, answer.now) if answer.events else ["no events in this period"]
    if table == "usage":
        found = answer.usage
        return tables.usage_table(found, answer.asked.by, tariff) if found else ["no GPU usage in this period"]
    return tables.overview(answer, tariff, [line.render(theme, width) for line in exports.strips(answer, width, theme)])


VERB = Verb(
    "history",
    (
        Option("--since", value="TIME", help="How far back to go, for example 30m, 2h, 7d or 1w (default: 2h)"),
        Option("--from", name="start", value="WHEN",
               help="Start time: 03:00, 3am, yesterday, 'monday 14:30', '2026-11-15 03:00', RFC 3339, '2h ago'"),
        Option("--to", name="end", value="WHEN", help="End time, in the same forms (default: now)"),
        Option("--metrics", "-m", value="LIST", parse=some_words, many=True, complete="metrics",
               help="Metrics to show, separated by commas"),
        Option("--format", value="FORM", default="table", complete=FORMATS,
               help="Output format: table, plot (in the terminal), csv or json (default: table)"),
        Option("--usage", value="OWNER", optional="user", complete=_BY,
               help="Show only usage, by user, job, container, pod, project, name or gpu (default: user)"),
        Option("--processes", help="Show only processes: who, when, command, job, peak memory and how each ended"),
        Option("--events", help="Show only events: throttling, faults, processes, reboots"),
        Option("--points", value="N", help="Number of points (default: 600; plot: as many as fit)",
               parse=whole("--points", 1, 1_000_000, "between 1 and 1000000", "try --points 600.")),
        Option("--verify", help="Check the whole file and list what is damaged; exit with 1 if anything is"),
        Option("--repair", help="Check the file and delete what is damaged; everything else is kept"),
        Option("--output", "-o", value="FILE", complete="files", help="Write to FILE instead of standard output"),
        Option("--file", value="FILE", complete="files",
               help="History file, or a recording to export as csv (default: this machine's history)"),
        *COST,
        *(GPU, COLOR, THEME, DEMO_PAST, HELP),
    ),
    with_past(run, "history", "file"),
    (
        ("gpulse record --history", "record a history first"),
        ("gpulse history --from 02:30 --to 03:30", "show what happened around 3 a.m."),
        ("gpulse history --from 'yesterday 22:00' --to 06:00 --processes", "list who ran what last night, and how it ended"),
        ("gpulse history --since 7d --usage job", "show GPU hours, memory hours and energy per job"),
        ("gpulse history --since 1d --format csv -m utilization,power_draw -o day.csv", "export to a spreadsheet"),
    ),
)  # fmt: skip
