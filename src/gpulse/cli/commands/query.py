"""`gpulse query`: query metrics with nvidia-smi's fields and formats, and with gpulse's own."""

from __future__ import annotations

import sys

from ...errors import UsageError
from ...units import parse_duration
from ..options import COMMON, Arguments, Option, Verb, seconds, some_words, whole, words
from ..output import Output
from ..session import open_sampler

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Collection, Iterator

    from ...model.snapshot import Snapshot
    from ...sampling.sampler import Sampler
    from ...surfaces.query.views import View

FORMATS = ("csv", "json", "ndjson", "prometheus", "table")
_USUAL = ["index", "name", "utilization.gpu", "memory.used", "memory.total", "temperature.gpu", "power.draw"]


_milliseconds = whole("--loop-ms", 1, 86_400_000, "a positive whole number of milliseconds", "try --loop-ms 500.")


def run(arguments: Arguments) -> int:
    """Print one sample, or one per interval."""
    if arguments.help_query_gpu or arguments.help_query_compute_apps or arguments.unsupported:
        return _list_fields(arguments)
    view = _view(arguments)
    apps = arguments.query_compute_apps is not None
    choice = None
    if arguments.where or arguments.sort:
        from ...surfaces.query.where import Choice

        choice = Choice(arguments.where, arguments.sort, apps=apps)
    wanted = view.wanted if choice is None else view.wanted | choice.wanted
    interval = arguments.loop_ms or arguments.loop
    sampler = open_sampler(arguments, wanted, slow_every=0.0, whole=True)
    output = None
    try:
        output = Output(arguments.filename, private=bool(view.wanted.process))
        sampler.settle()
        output.write(view.head())
        for snapshot in _samples(arguments, sampler, interval):
            output.write(view.lines(snapshot if choice is None else choice.apply(snapshot)))
    except KeyboardInterrupt:
        if not (interval or arguments.count or arguments.duration):
            raise
    finally:
        if output is not None:
            output.close()
        sampler.close()
    if sampler.missed:
        late = "1 sample" if sampler.missed == 1 else f"{sampler.missed} samples"
        sys.stderr.write(f"gpulse: skipped {late}: sampling took longer than the interval.\n")
    return 0


def _samples(arguments: Arguments, sampler: Sampler, interval: float | None) -> Iterator[Snapshot]:
    """Yield one snapshot, or one per interval until --count or --for is reached."""
    if interval is None and arguments.count is None and arguments.duration is None:
        yield sampler.read()
        return
    end = None if arguments.duration is None else sampler.clock.monotonic() + arguments.duration
    for number, snapshot in enumerate(sampler.stream(interval or 1.0), 1):
        yield snapshot
        if number == arguments.count or (end is not None and sampler.clock.monotonic() + (interval or 1.0) > end):
            return


def _view(arguments: Arguments) -> View:
    from ...surfaces.query import views
    from ...surfaces.query.fields import app_field_named, field_named

    form, header, units = _format(arguments.format)
    if arguments.list_gpus:
        return views.ListingView()
    if arguments.q or arguments.display or arguments.x:
        from ...surfaces.query import log

        sections = log.parse_sections(arguments.display) if arguments.display else ()
        return log.Log(sections, xml=arguments.x)
    if arguments.scroll is not None or arguments.scroll_processes is not None:
        from ...surfaces.query import scroll

        if arguments.scroll is not None:
            return scroll.DeviceScroll(_groups(arguments.scroll, scroll.GROUPS, "--scroll"))
        return scroll.ProcessScroll(_groups(arguments.scroll_processes, ("u", "m"), "--scroll-processes"))
    apps = arguments.query_compute_apps is not None
    names = arguments.query_compute_apps or arguments.query_gpu or _USUAL
    asked = [(name, app_field_named(name) if apps else field_named(name)) for name in names]
    if form == "csv":
        return views.Csv(asked, header=header, units=units, apps=apps)
    if form == "prometheus":
        if apps:
            raise UsageError("--format=prometheus does not support processes;", "use csv, json, ndjson or table.")
        return views.Prometheus(asked)
    if form == "table":
        return views.TableView(asked, units=units, apps=apps)
    return views.Json(asked, compact=form == "ndjson", apps=apps)


def _format(text: str | None) -> tuple[str, bool, bool]:
    """Return the format, whether to print a header, and whether to print units."""
    parts = words(text or "csv")
    known = (*FORMATS, "noheader", "nounits")
    for part in parts:
        if part not in known:
            from ...model.select import did_you_mean

            hint = did_you_mean(part, known)
            raise UsageError(f"--format: unknown format {part!r}{hint}", f"use {', '.join(known)}.")
    forms = [part for part in parts if part in FORMATS]
    return (forms[0] if forms else "csv"), "noheader" not in parts, "nounits" not in parts


def _groups(text: str, known: Collection[str], option: str) -> str:
    """Return the letters of groups of columns in their usual order; raise UsageError for an unknown one."""
    for letter in text:
        if letter not in known:
            raise UsageError(f"{option}: unknown column group {letter!r} in {text!r};", f"use {', '.join(known)}.")
    return "".join(letter for letter in known if letter in text)


def _list_fields(arguments: Arguments) -> int:
    from ...surfaces.query import fields

    query = "--query-compute-apps" if arguments.help_query_compute_apps else "--query-gpu"
    lines = fields.unsupported_fields() if arguments.unsupported else fields.help_lines(query)
    sys.stdout.write("\n".join(lines) + "\n")
    return 0


VERB = Verb(
    "query",
    (
        Option("--query-gpu", value="FIELDS", parse=some_words, many=True, complete="metrics",
               help="GPU fields to print, by nvidia-smi name or gpulse key, separated by commas"),
        Option("--query-compute-apps", value="FIELDS", parse=some_words, many=True,
               help="Fields to print for each compute process, separated by commas"),
        Option("--format", value="FORMAT", complete=FORMATS, open=True,
               help="Output format: csv[,noheader][,nounits], json, ndjson, prometheus or table (default: csv)"),
        Option("--loop", "-l", value="SECONDS", parse=seconds("--loop", 0.001, 86400), optional=5.0,
               help="Repeat every SECONDS (default: 5)"),
        Option("--loop-ms", "-lms", value="MS", parse=lambda text: _milliseconds(text) / 1000, help="Repeat every MS milliseconds"),
        Option("--count", value="N", parse=whole("--count", 1, 10**15, "a positive integer"), help="Stop after N samples"),
        Option("--for", value="TIME", name="duration", parse=parse_duration, help="Stop after TIME, for example 10s, 5m or 2h"),
        Option("--filename", "-f", value="FILE", complete="files", help="Write to FILE instead of standard output; SIGHUP reopens it"),
        Option("--where", value="FILTER", help="Print only GPUs or processes that match, for example 'utilization<5 and memory_used>1GiB'"),
        Option("--sort", value="METRIC", complete="metrics", dashed=True, help="Sort by METRIC, ascending; -METRIC sorts descending"),
        Option("--list-gpus", "-L", help="List GPUs with their UUIDs, one per line"),
        Option("-q", help="Print all details in nvidia-smi's -q format"),
        Option("--display", "-d", value="SECTIONS", many=True, help="Print only these sections of -q, for example MEMORY,UTILIZATION"),
        Option("-x", help="Print -q as XML"),
        Option("--scroll", value="GROUPS", optional="puc",
               help="Print scrolling columns like dmon: p=power, u=utilization, c=clocks, m=memory, e=errors, t=PCIe, "
                    "a=activity (default: puc)"),
        Option("--scroll-processes", value="GROUPS", optional="u",
               help="Print scrolling columns like pmon: u=utilization, m=memory (default: u)"),
        Option("--help-query-gpu", help="List all fields of --query-gpu and exit"),
        Option("--help-query-compute-apps", help="List all fields of --query-compute-apps and exit"),
        Option("--unsupported", help="List the nvidia-smi fields for which gpulse always prints [N/A], and exit"),
        *COMMON,
    ),
    run,
    (
        ("gpulse query --query-gpu=name,memory.used --format=csv", "same output as nvidia-smi"),
        ("gpulse query --query-gpu=index,sm_active -lms 100 -f log.csv", "write ten samples per second to a file"),
        ("gpulse query --where 'utilization<5' --format=csv,noheader", "find idle GPUs"),
        ("gpulse query --scroll=pua --count 10", "print ten lines like dmon, with activity"),
    ),
)  # fmt: skip
