"""`gpulse report`: summarize a recording, compare two, or export the samples, in the terminal or as a file."""

from __future__ import annotations

import os
import sys

from ...errors import UsageError
from ...units import parse_duration
from ..options import COLOR, DEMO_PAST, GPU, HELP, HISTORY, THEME, Arguments, Option, Verb
from ..output import COST, StatusLine, export_samples, say_damaged, tariff_of
from ..session import terminal_of, with_past

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

    from ...model.snapshot import Snapshot
    from ...store.runs import KeptRun
    from ...surfaces.report.recorded_samples import RecordedSample
    from ...surfaces.report.run import JobSpan, Run

TABLE = "csv"
_WONDER = 0.7  # seconds after which progress is shown


def run(arguments: Arguments) -> int:
    """Read the recordings and write the report."""
    from ...store.lines import OPEN, PRIVATE, save
    from ...surfaces.report.writing import report_text

    to_file = arguments.output is not None and arguments.output != "-"
    form = arguments.format or _form_for(arguments.output if to_file else None)
    _check(arguments)
    kept = _kept(arguments)
    if arguments.compare and form == TABLE:
        raise UsageError(f"report: two recordings cannot be compared as {form};", "use html, markdown or json.")
    if form == TABLE:
        return _export(arguments, arguments.output if to_file else None)
    tariff = tariff_of(arguments)
    runs = [_read(arguments, path) for path in arguments.files or [None]]
    for each, known in zip(runs, kept, strict=True):
        each.tariff, each.kept = tariff, known
    title = arguments.title or ""
    if form == "text" and not to_file:
        sys.stdout.write(_laid_out(arguments, runs, title))
        return 0
    text = report_text(form, runs, title)
    if not to_file:
        sys.stdout.write(text)
        return 0
    size = save(arguments.output, [text], OPEN if arguments.share else PRIVATE)
    sys.stderr.write(f"gpulse: wrote {arguments.output} ({size / 1000:,.0f} kB).\n")
    return 0


def _kept(arguments: Arguments) -> list[KeptRun | None]:
    """Replace runs among the files by their recordings, add the earlier run to compare with, and return what is kept of each."""
    from ...store.runs import earlier, run_named, run_recorded

    found: list[KeptRun | None] = []
    for word in arguments.files or [""]:
        if not word or word == "-" or os.path.exists(word):
            found.append(run_recorded(word) if word and arguments.compare else None)
            continue
        try:
            found.append(run_named(word))
        except UsageError:
            found.append(None)  # a file that is not there, which reading it says
    if arguments.compare and len(found) == 1:
        before = next((run for run in earlier(found[0]) if run.text("recording")), None) if found[0] else None
        if before is None:
            message = f"report: there is no earlier recorded run to compare {arguments.files[0]} with;"
            raise UsageError(message, "name two recordings: gpulse report --compare A B.")
        found, arguments.files = [before, *found], [before.text("recording"), *arguments.files]
    for at, run in enumerate(found):
        if run is not None and not os.path.exists(arguments.files[at]):
            if not run.text("recording"):
                raise UsageError(f"report: run {run.short} has no recording;", "use gpulse run -o FILE to record one.")
            arguments.files = [*arguments.files[:at], run.text("recording"), *arguments.files[at + 1 :]]
    return found


def _laid_out(arguments: Arguments, runs: list[Run], title: str) -> str:
    """Return the report for the terminal that standard output is, or for a pipe."""
    from ...surfaces.report.terminal import to_terminal
    from ...surfaces.report.writing import report_document

    return to_terminal(report_document(runs, title), *terminal_of(arguments))


def _form_for(output: str | None) -> str:
    """Return the format that the name of a file asks for, or the one for standard output."""
    from ...surfaces.report.writing import form_of

    if output is None:
        return "text" if sys.stdout.isatty() else "markdown"
    return form_of(output, TABLE)


def _export(arguments: Arguments, output: str | None) -> int:
    """Write the samples themselves, one row per sample and GPU."""
    path = arguments.files[0] if arguments.files else None

    def samples(damaged: list[int]) -> Iterator[Snapshot]:
        return (moment.snapshot for moment in _recorded_samples(arguments, path, damaged))

    return export_samples(path or "the history", samples, output, private=not arguments.share)


def _check(arguments: Arguments) -> None:
    files, since = len(arguments.files), (arguments.since is not None) + (arguments.job is not None)
    since += not files + since and (getattr(arguments, "from") or arguments.to) is not None
    if arguments.compare and (files not in (1, 2) or since):
        raise UsageError("report: --compare needs two recordings;", "write it as gpulse report --compare A B.")
    if not arguments.compare and files + since != 1:
        remedy = "name one, or use --since 2h, --from 02:30 --to 03:30 or --job 12345 for this machine's history."
        raise UsageError("report: exactly one recording is needed;", remedy)


def _read(arguments: Arguments, path: str | None) -> Run:
    from ...store.recording import title_of
    from ...surfaces.report.account import account

    damaged: list[int] = []
    span = _job(arguments)
    moments = _recorded_samples(arguments, path, damaged, span)
    name = os.path.basename(title_of(path)) if path is not None else _period(arguments)[2]
    run = account(moments, name if span is None else span.title)
    run.job = span
    say_damaged(path or "", damaged)
    if arguments.share:
        for use in run.uses:
            use.process = use.process.replace(command=None)
    return run


def _job(arguments: Arguments) -> JobSpan | None:
    from ...surfaces.report.run import job_span

    if not arguments.job:
        return None
    # a job of the simulated machine is none of this cluster
    return job_span(arguments.job, arguments.gpu or (), history=arguments.history, slurm=not arguments.demo)


def _recorded_samples(
    arguments: Arguments, path: str | None, damaged: list[int], span: JobSpan | None = None
) -> Iterator[RecordedSample]:
    """Yield the samples that were asked for; the numbers of damaged lines are added to `damaged`."""
    from ...surfaces.report.recorded_samples import between, of_gpus, recorded, remembered, shareable

    span = span or _job(arguments)
    limits: tuple[str | None, str | None] = (getattr(arguments, "from"), arguments.to)
    if span is not None:
        moments = remembered(span.start, span.end, arguments.history)
    elif path is None:
        start, end, _ = _period(arguments)
        line = StatusLine(sys.stderr.isatty(), 0.2, _WONDER)

        def told(part: float) -> None:
            if part < 1.0:
                line.show(lambda: f"gpulse: reading the history: {100 * part:.0f} %")

        moments = remembered(start, end, arguments.history, told)
        limits = limits if arguments.since is not None else (None, None)
    else:
        moments = recorded(path, damaged)
    chosen = between(moments, *limits)
    gpus = arguments.gpu or (span.gpus if span else ())
    chosen = of_gpus(chosen, gpus, os.environ) if gpus else chosen
    return shareable(chosen) if arguments.share else chosen


def _period(arguments: Arguments) -> tuple[float, float, str]:
    """Return the time of the history that was asked for, and what it is called."""
    import time

    from ...model.when import stretch
    from ...present.cells import period_text

    if arguments.since is not None:
        now = time.time()
        return now - parse_duration(arguments.since), now, f"the last {arguments.since}"
    start, end = stretch(None, getattr(arguments, "from"), arguments.to)
    return start, end, period_text(start, end)


def _with_past(arguments: Arguments) -> int:
    """Run; with --demo, on the history of the simulated machine if a time or a job of it is asked for, else on a recording."""
    asked = (arguments.since, arguments.job, getattr(arguments, "from"), arguments.to)
    past = ("recording", "files") if asked == (None,) * 4 else ("history", "history")
    return with_past(run, *past)(arguments)


def _job_number(text: str) -> str:
    from ...surfaces.report.run import job_number

    return job_number(text)


def _form(word: str) -> str:
    from ...surfaces.report.writing import FORMS

    form = "markdown" if word == "md" else word
    if form not in (*FORMS, TABLE):
        raise UsageError(f"unknown format {word!r};", f"choose one of {', '.join((*FORMS, TABLE))}.")
    return form


VERB = Verb(
    "report",
    (
        Option("files", value="FILE", many=True, default=(), complete="files",
               help="Recording to summarize (.ndjson or .ndjson.gz, or - for standard input), or a run that was recorded, named as in "
                    "`gpulse runs`; two with --compare, where one alone is compared with the last run of the same command before it"),
        Option("--output", "-o", value="FILE", complete="files",
               help="File to write: .html, .md, .json or .csv (default: standard output)"),
        Option("--format", value="FORM", parse=_form, open=True,
               complete=("text", "html", "markdown", "json", "folded", TABLE),
               help="Output format: text (tables and bars for a terminal), html, markdown (or md), json, folded for the stacks at "
                    "which the GPU waited (any flame graph tool reads them), or csv for the samples themselves (default: from the "
                    "name of the output file; on standard output, text on a terminal and markdown otherwise)"),
        Option("--compare", help="Compare two recordings and mark the significant differences"),
        Option("--since", value="TIME", help="Report on the last TIME of this machine's history, for example 2h"),
        Option("--job", value="ID", parse=_job_number,
               help="Report on a Slurm job from this machine's history: its time and its GPUs, as long as Slurm knows it or its "
                    "processes were recorded"),
        Option("--from", value="WHEN", help="Start time: 2026-11-15T06:00:00Z, or 10m for 10 minutes into the recording; without a "
               "recording, a time of this machine's history: 02:30, 'yesterday 3am', '2h ago'"),
        Option("--to", value="WHEN", help="End time, in the same forms"),
        Option("--share",
               help="Leave out users and command lines, so that the file can be given to others; without it, only you can read it"),
        Option("--title", value="TEXT", help="Title of the report (default: the name of the file)"),
        *COST,
        *(HISTORY, GPU, COLOR, THEME, DEMO_PAST, HELP),
    ),
    _with_past,
    (
        ("gpulse report run.ndjson", "print a summary"),
        ("gpulse report run.ndjson.gz -o report.html", "write a self-contained page with charts"),
        ("gpulse report --compare before.ndjson after.ndjson -o diff.html", "compare two runs"),
        ("gpulse report --compare last", "compare the last recorded run with the one before of the same command"),
        ("gpulse report run.ndjson.gz --share -o report.html", "write a page to give to others"),
        ("gpulse report --since 2h -o report.html", "report on the last two hours"),
        ("gpulse report --from 'yesterday 22:00' --to 06:00", "report on last night"),
        ("gpulse report --job 12345", "report on a Slurm job"),
        ("gpulse report run.ndjson.gz --format csv -o run.csv", "export one row per sample and GPU"),
    ),
)  # fmt: skip
