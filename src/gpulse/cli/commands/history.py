"""`gpulse history`: what the GPUs did, who used them, what happened; hours and months back."""

from __future__ import annotations

import os
import sys

from ...errors import UsageError
from ..main import VERBS
from ..options import COLOR, GPU, HELP, Option, Verb, some_words

TYPE_CHECKING = False
if TYPE_CHECKING:
    from ...surfaces.history.request import HistoryAnswer
    from ..options import Arguments

FORMATS = ("table", "plot", "csv", "json", "parquet")
OWNERS = ("user", "job", "container", "pod", "name", "gpu")
_POINTS = 600


def run(arguments: Arguments) -> int:
    """Ask the history and write what it says."""
    from ...present.terminal import size_of, theme_for
    from ...store.history import HistoryReader
    from ...surfaces.history import request as questions
    from ...surfaces.history.plots import columns_for

    start, end = questions.stretch(arguments.since, arguments.start, arguments.end)
    theme = theme_for(sys.stdout, arguments.color, os.environ)
    width = size_of(sys.stdout, os.environ)[0]
    points = arguments.points or (columns_for(width, theme) if arguments.format == "plot" else _POINTS)
    question = questions.HistoryRequest(
        start, end, questions.metrics_named(arguments.metrics), arguments.gpu, points, arguments.usage or "user"
    )
    with HistoryReader(arguments.file) as reader:
        answer = questions.HistoryAnswer(reader, question)
    if arguments.format == "parquet":
        return _parquet(answer, arguments.output)
    if arguments.format == "plot":
        from ...surfaces.history.plots import plots

        lines = [line.render(theme, width) for line in plots(answer, width, theme)] or [
            "nothing was recorded in this time"
        ]
    else:
        lines = _text(answer, arguments)
    _write(lines, arguments.output)
    return 0


def _text(answer: HistoryAnswer, arguments: Arguments) -> list[str]:
    if arguments.format == "csv":
        from ...surfaces.history.exports import csv_lines

        return [*csv_lines(answer)]
    if arguments.format == "json":
        import json

        from ...surfaces.history.exports import to_plain

        return [json.dumps(to_plain(answer), allow_nan=False)]
    from ...surfaces.history.tables import events_list, overview, usage_table

    if arguments.events:
        return events_list(answer.events, answer.asked.end) if answer.events else ["nothing happened in this time"]
    if arguments.usage:
        return usage_table(answer.usage, arguments.usage) if answer.usage else ["nobody used a GPU in this time"]
    return overview(answer)


def _parquet(answer: HistoryAnswer, path: str | None) -> int:
    if not path:
        raise UsageError("Parquet is not for a terminal;", "name a file: -o history.parquet.")
    from ...surfaces.history.exports import write_parquet

    write_parquet(answer, path)
    return 0


def _write(lines: list[str], path: str | None) -> None:
    if not path:
        sys.stdout.write("".join(f"{line}\n" for line in lines))
        return
    from ...store.lines import LineFile

    file = LineFile(path)
    try:
        file.write("\n".join(lines))
    finally:
        file.close()


def _points(text: str) -> int:
    if not text.isdecimal() or not 1 <= int(text) <= 1_000_000:
        raise UsageError(f"--points: {text!r} is not between 1 and 1000000;", "try --points 600.")
    return int(text)


VERB = Verb(
    "history",
    VERBS["history"],
    (
        Option("--since", value="TIME", help="So long back: 30m, 2h, 7d. 2h unless given."),
        Option("--from", name="start", value="WHEN", help="From this moment: 03:00, '2026-11-15 03:00', RFC 3339, or 8h (ago)."),
        Option("--to", name="end", value="WHEN", help="Until this moment; now unless given."),
        Option("--metrics", "-m", value="LIST", parse=some_words, complete="metrics", help="These metrics."),
        Option("--format", value="FORM", default="table", complete=FORMATS,
               help="table, plot (in the terminal), csv, json, or parquet (needs pyarrow and -o)."),
        Option("--usage", value="OWNER", optional="user", complete=OWNERS,
               help="Only who used what: by user, job, container, pod, name or gpu."),
        Option("--events", default=False, help="Only what happened: throttling, faults, processes, boots."),
        Option("--points", value="N", parse=_points, help="So many moments; 600 unless given, in a plot as many as fit."),
        Option("--output", "-o", value="FILE", complete="files", help="Write it there instead of on stdout."),
        Option("--file", value="FILE", complete="files", help="Another history than this machine's."),
        *(GPU, COLOR, HELP),
    ),
    run,
    (
        ("gpulse record --history", "keep a history, for months, in the background"),
        ("gpulse history --from 02:30 --to 03:30 --format plot", "what happened at 3 a.m."),
        ("gpulse history --since 7d --usage job", "GPU hours, memory hours and energy of each job"),
        ("gpulse history --since 1d --format csv -m utilization,power_draw -o day.csv", "for a spreadsheet"),
    ),
)  # fmt: skip
