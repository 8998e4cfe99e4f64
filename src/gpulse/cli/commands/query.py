"""`gpulse query`: nvidia-smi's own words, and more."""

from __future__ import annotations

import sys

from ...errors import UsageError
from ..main import VERBS
from ..options import COMMON, Option, Verb, seconds, some_words, words

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

    from ...model.snapshot import Snapshot
    from ...sampling.sampler import Sampler
    from ...surfaces.query.views import View
    from ..options import Arguments

FORMATS = ("csv", "json", "ndjson", "prometheus", "table")
_USUAL = ["index", "name", "utilization.gpu", "memory.used", "memory.total", "temperature.gpu", "power.draw"]


def milliseconds(text: str) -> float:
    """Read an interval of milliseconds."""
    if not text.isdecimal() or len(text) > 8 or not 1 <= int(text) <= 86_400_000:
        raise UsageError(f"--loop-ms: {text!r} is not a whole number of milliseconds from 1 on;", "try --loop-ms 500.")
    return int(text) / 1000


def count(text: str) -> int:
    """Read how many samples to take."""
    if not text.isdecimal() or len(text) > 15 or int(text) < 1:
        raise UsageError(f"--count: {text!r} is not a whole number from 1 on;", "try --count 10.")
    return int(text)


def duration(text: str) -> float:
    """Read how long to go on."""
    from ...units import parse_duration

    return parse_duration(text)


def run(arguments: Arguments) -> int:
    """Answer one question, or the same again and again."""
    if arguments.help_query_gpu or arguments.help_query_compute_apps or arguments.unsupported:
        return _list_fields(arguments)
    from ...surfaces.query.choice import Choice
    from ..output import Output
    from ..session import open_sampler

    view = _view(arguments)
    apps = arguments.query_compute_apps is not None
    choice = Choice(arguments.where, arguments.sort, apps=apps)
    interval = arguments.loop_ms or arguments.loop
    sampler = open_sampler(arguments, view.wanted | choice.wanted, slow_every=max(1.0, interval or 0.0))
    output = None
    try:
        output = Output(arguments.filename)
        sampler.settle()
        output.write(view.head())
        for snapshot in _samples(arguments, sampler, interval):
            output.write(view.lines(choice.apply(snapshot)))
    except KeyboardInterrupt:
        if not (interval or arguments.count or arguments.duration):
            raise
    finally:
        if output is not None:
            output.close()
        sampler.close()
    if sampler.missed:
        late = "1 sample was" if sampler.missed == 1 else f"{sampler.missed} looks were"
        sys.stderr.write(f"gpulse: {late} left out: the machine could not keep the interval.\n")
    return 0


def _samples(arguments: Arguments, sampler: Sampler, interval: float | None) -> Iterator[Snapshot]:
    """Yield one snapshot, or as many as the options ask for."""
    if interval is None and arguments.count is None and arguments.duration is None:
        yield sampler.read()
        return
    end = None if arguments.duration is None else sampler.clock.monotonic() + arguments.duration
    for number, snapshot in enumerate(sampler.stream(interval or 1.0), 1):
        yield snapshot
        if number == arguments.count or (end is not None and sampler.clock.monotonic() + (interval or 1.0) > end):
            return


def _view(arguments: Arguments) -> View:
    from ...surfaces.query import log, scroll, views
    from ...surfaces.query.fields import app_field_named, field_named

    form, header, units = _format(arguments.format)
    if arguments.list_gpus:
        return views.Listing()
    if arguments.q or arguments.display or arguments.x:
        sections = log.parse_sections(arguments.display) if arguments.display else ()
        return log.Log(sections, xml=arguments.x)
    if arguments.scroll is not None:
        return views.Scroll(_groups(arguments.scroll, scroll.GROUPS, "--scroll"))
    if arguments.scroll_processes is not None:
        return views.ScrollProcesses(_groups(arguments.scroll_processes, {"u": "", "m": ""}, "--scroll-processes"))
    apps = arguments.query_compute_apps is not None
    names = arguments.query_compute_apps or arguments.query_gpu or _USUAL
    asked = [(name, app_field_named(name) if apps else field_named(name)) for name in names]
    if form == "csv":
        return views.Csv(asked, header=header, units=units, apps=apps)
    if form == "prometheus":
        if apps:
            raise UsageError("--format=prometheus has no series for processes;", "use csv, json, ndjson or table.")
        return views.Prometheus(asked)
    return (
        views.TableView(asked, units=units, apps=apps)
        if form == "table"
        else views.Json(asked, compact=form == "ndjson", apps=apps)
    )


def _format(text: str | None) -> tuple[str, bool, bool]:
    """Return the format, and whether header and units are wanted."""
    parts = words(text or "csv")
    known = (*FORMATS, "noheader", "nounits")
    for part in parts:
        if part not in known:
            from ...model.select import nearest

            close = nearest(part, known)
            hint = f"; did you mean {close[0]}?" if close else "."
            raise UsageError(f"--format: {part!r} is not a format{hint}", f"Known are {', '.join(known)}.")
    forms = [part for part in parts if part in FORMATS]
    return (forms[0] if forms else "csv"), "noheader" not in parts, "nounits" not in parts


def _groups(text: str, known: dict[str, str], option: str) -> str:
    for letter in text:
        if letter not in known:
            raise UsageError(
                f"{option}: {letter!r} in {text!r} is no group of columns;", f"known are {', '.join(known)}."
            )
    return text


def _list_fields(arguments: Arguments) -> int:
    from ...surfaces.query import fields

    if arguments.unsupported:
        sys.stdout.write("\n".join(fields.unsupported_fields()) + "\n")
    else:
        sys.stdout.write("\n".join(fields.help_lines(apps=arguments.help_query_compute_apps)) + "\n")
    return 0


VERB = Verb(
    "query",
    VERBS["query"],
    (
        Option("--query-gpu", value="FIELDS", parse=some_words, complete="metrics",
               help="These fields of every GPU, by nvidia-smi's names or gpulse's keys."),
        Option("--query-compute-apps", value="FIELDS", parse=some_words, help="These fields of every compute process."),
        Option("--format", value="FORMAT", complete=FORMATS, open=True,
               help="csv[,noheader][,nounits], json, ndjson, prometheus or table; csv unless given."),
        Option("--loop", "-l", value="SECONDS", parse=seconds("--loop", 0.001, 86400), optional=5.0,
               help="Again every so many seconds, 5 unless given."),
        Option("--loop-ms", "-lms", value="MS", parse=milliseconds, help="Again every so many milliseconds."),
        Option("--count", value="N", parse=count, help="Stop after so many samples."),
        Option("--for", value="TIME", name="duration", parse=duration, help="Stop after this time: 10s, 5m, 2h."),
        Option("--filename", "-f", value="FILE", complete="files", help="Write to a file, line by line; SIGHUP opens it anew."),
        Option("--where", value="FILTER", help="Only GPUs (or processes) for which this holds: 'utilization<5 and memory_used>1GiB'."),
        Option("--sort", value="METRIC", complete="metrics", dashed=True, help="Order by a metric; -METRIC from the greatest down."),
        Option("--list-gpus", "-L", default=False, help="A line a GPU with its UUID."),
        Option("-q", default=False, help="Everything in nvidia-smi's long form."),
        Option("--display", "-d", value="SECTIONS", help="Of the long form, only these sections: MEMORY,UTILIZATION,..."),
        Option("-x", default=False, help="The long form as XML."),
        Option("--scroll", value="GROUPS", optional="puc",
               help="Scrolling columns as of dmon: p power, u use, c clocks, m memory, e errors, t PCIe, a activity."),
        Option("--scroll-processes", value="GROUPS", optional="u", help="Scrolling columns as of pmon: u use, m memory."),
        Option("--help-query-gpu", default=False, help="List every field of --query-gpu."),
        Option("--help-query-compute-apps", default=False, help="List every field of --query-compute-apps."),
        Option("--unsupported", default=False, help="List the fields of nvidia-smi that gpulse always answers with [N/A]."),
        *COMMON,
    ),
    run,
    (
        ("gpulse query --query-gpu=name,memory.used --format=csv", "as nvidia-smi"),
        ("gpulse query --query-gpu=index,sm_active -lms 100 -f log.csv", "ten lines a second into a file"),
        ("gpulse query --where 'utilization<5' --format=csv,noheader", "which are free?"),
        ("gpulse query --scroll=pua --count 10", "scrolling, with activity"),
    ),
)  # fmt: skip
