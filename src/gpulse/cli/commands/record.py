"""`gpulse record`: write samples to a file, to standard output or to this machine's history."""

from __future__ import annotations

import os
import sys

from ...errors import GpulseError, UsageError
from ...units import duration_text, parse_duration, parse_size, size_text
from ..options import COMMON, Arguments, Option, Verb, seconds, some_words, whole
from ..output import Ending, StatusLine, say
from ..session import open_sampler, source_name

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

    from ...model.catalog import Gpu
    from ...model.select import Wanted
    from ...model.snapshot import Snapshot
    from ...sampling.sampler import Sampler
    from ...store.recorder import Rotation

SCREEN_METRICS = "screen"
_ON_SCREEN = ("pci_bus_id", "vendor", "driver_version", "xid_last", "xids", "job", "job_user")
_PROGRESS = 0.5  # seconds between progress updates
_LISTED = 1.0  # minimum seconds between two lists of processes: at ten samples per second they would cost 1 % of a core


def run(arguments: Arguments) -> int:
    """Write one line per sample until stopped."""
    _check(arguments)
    sampler = open_sampler(arguments, _wanted(arguments))
    if not arguments.processes:
        sampler.lists_every = _LISTED
    try:
        sampler.settle()
        if arguments.history is not None:
            _to_history(sampler, arguments)
        elif arguments.output == "-":
            _to_stdout(sampler, arguments)
        else:
            _to_files(sampler, arguments)
    finally:
        sampler.close()
    return 0


def _check(arguments: Arguments) -> None:
    if arguments.history is not None:
        if arguments.output is not None:
            raise UsageError("record: -o and --history cannot be combined;", "choose one.")
        from ...sources.registry import make_source

        if not arguments.history and not make_source(source_name(arguments)).machine.real:
            raise UsageError(
                f"record: data of {source_name(arguments)} cannot be written to this machine's history;",
                "name another file: --history FILE.",
            )
        return
    if arguments.output is None:
        raise UsageError("record: no output file given;", "try gpulse record -o run.ndjson.gz.")
    if arguments.output.lower().endswith(".csv"):
        raise UsageError(
            "record: samples are written as JSON lines, not as CSV;",
            "record to run.ndjson.gz, then `gpulse history --file run.ndjson.gz --format csv -o run.csv`.",
        )
    if arguments.append and arguments.force:
        raise UsageError("record: --append and --force cannot be combined;", "choose one.")
    if arguments.keep is not None and arguments.rotate is None:
        raise UsageError("record: --keep needs --rotate;", "try --rotate 1h.")
    ways = ("rotate", "keep", "max_size", "append", "force")
    if arguments.output == "-" and any(getattr(arguments, way) not in (None, False) for way in ways):
        raise UsageError(
            "record: --rotate, --keep, --max-size, --append and --force need a file, not -o -;", "name a file."
        )


def _wanted(arguments: Arguments) -> Wanted:
    """Return the metrics to read: those named, else all but the details, with what a diagnosis needs of processes.

    A history has all of processes, to account for usage.
    """
    from ...model.catalog import EVIDENCE, PROCESS_EVIDENCE
    from ...model.condition import CONDITIONS
    from ...model.select import EVERYTHING, Wanted, metric_named

    everything = arguments.processes or arguments.history is not None
    if arguments.metrics == [SCREEN_METRICS]:
        from ...analysis.diagnosis.window import WANTED
        from ...model.catalog import CURVES, GLANCE

        listed = EVERYTHING.process if everything else WANTED.process
        return Wanted(WANTED.gpu.union(GLANCE, CURVES, _ON_SCREEN), listed, EVERYTHING.host, serving=True)
    if arguments.metrics:
        keys = [metric_named(name).key for name in arguments.metrics]
        return Wanted(keys, EVERYTHING.process if everything else None, ("name",))
    process = EVERYTHING.process if everything else PROCESS_EVIDENCE
    gpu = EVERYTHING.gpu.union(EVIDENCE, CONDITIONS["fabric_not_ready"].needs)
    return Wanted(gpu, process, EVERYTHING.host, serving=True)


def _samples(sampler: Sampler, arguments: Arguments) -> Iterator[Snapshot]:
    """Yield samples until --count or --for is reached."""
    count = arguments.count
    if arguments.duration is not None:  # from the first sample to the last: 7 s are 8 samples a second apart
        count = min(count or sys.maxsize, 1 + int(arguments.duration / arguments.interval + 1e-6))
    end = None if arguments.duration is None else sampler.clock.monotonic() + arguments.duration
    unlisted = (
        arguments.metrics not in (None, [SCREEN_METRICS]) and not arguments.processes and arguments.history is None
    )
    for number, snapshot in enumerate(sampler.stream(arguments.interval), 1):
        yield _without_processes(snapshot) if unlisted else snapshot
        now = sampler.clock.monotonic()
        late = end is not None and now > end  # samples were skipped
        if number == count or late:
            return
        if number + 1 == count:
            sampler.hurry()  # the last sample reads all counters, so that no energy is missing


def _without_processes(snapshot: Snapshot) -> Snapshot:
    """Mark processes as skipped, which differs from an empty list."""

    def bare(gpu: Gpu) -> Gpu:
        gaps = {**gpu.gaps, "processes": "skipped"}
        return gpu.replace(gaps=gaps, processes=(), instances=tuple(map(bare, gpu.instances)))

    return snapshot.replace(gpus=tuple(map(bare, snapshot.gpus)))


def _to_history(sampler: Sampler, arguments: Arguments) -> None:
    """Record this machine's history; raise HistoryBusy if another process already does."""
    from ...analysis.alerts import RuleSet, rules_from
    from ...analysis.diagnosis.running import LiveDiagnosis
    from ...analysis.events import ClockWatch
    from ...present.verdicts import verdict_event
    from ...store.config import config_path, read_config
    from ...store.history import Recorder

    rules = RuleSet(rules_from(read_config(config_path(os.environ)).get("alerts", {})), clock=ClockWatch())
    recorder = Recorder(arguments.history or None, told=say)
    sys.stderr.write(f"gpulse: recording the history of this machine to {recorder.path}; press Ctrl-C to stop.\n")
    live = LiveDiagnosis()
    try:
        with Ending() as ending:
            for snapshot in ending.until_told(_samples(sampler, arguments)):
                live.add(snapshot)
                changed = [verdict_event(verdict, snapshot.time) for verdict in live.changes]
                alerts = [transition.event for transition in rules.observe(snapshot)]
                recorder.put(snapshot, [*rules.events, *alerts, *changed])
    finally:
        recorder.close()
    if recorder.unwritten:
        raise GpulseError(
            f"{recorder.unwritten} samples could not be written to {recorder.path} and are lost.",
            "Free some disk space, then record again.",
        )


def _to_stdout(sampler: Sampler, arguments: Arguments) -> None:
    from ...model.codec import to_line

    with Ending() as ending:
        for snapshot in ending.until_told(_samples(sampler, arguments)):
            sys.stdout.write(to_line(snapshot) + "\n")
            sys.stdout.flush()


def _to_files(sampler: Sampler, arguments: Arguments) -> None:
    from ...present.theme import capable
    from ...store.recorder import Rotation

    size, span = arguments.rotate or (None, None)
    files = Rotation(
        arguments.output,
        size=size,
        span=span,
        keep=arguments.keep,
        most=arguments.max_size,
        append=arguments.append,
        force=arguments.force,
        private=bool(arguments.processes),
    )
    begun = sampler.clock.monotonic()
    progress = StatusLine(capable(sys.stderr, os.environ), _PROGRESS)

    def passed() -> float:
        return sampler.clock.monotonic() - begun

    def text() -> str:
        return f"{files.count} samples  {size_text(files.size)}  {duration_text(passed())}  Ctrl-C to stop"

    full = False
    try:
        with Ending() as ending:
            for snapshot in ending.until_told(_samples(sampler, arguments)):
                if full := not files.write(snapshot):
                    break
                progress.show(text)
    finally:
        files.close()
        progress.clear()
    said = [_summary(files, passed())]
    said += [f"{sampler.missed} skipped because sampling took longer than the interval"] if sampler.missed else []
    said += [f"stopped at --max-size {size_text(arguments.max_size)}"] if full else []
    sys.stderr.write(f"gpulse: {'; '.join(said)}.\n")


def _summary(files: Rotation, passed: float) -> str:
    samples = "1 sample" if files.count == 1 else f"{files.count} samples"
    return f"{samples} in {duration_text(round(passed))}, {size_text(files.size)}, {files.path}"


def _turn(text: str) -> tuple[float | None, float | None]:
    """Parse the limit of one file: (bytes, None) or (None, seconds)."""
    for parse, place in ((parse_duration, 1), (parse_size, 0)):
        if text[-1:].isalpha() and not (parse is parse_duration and text.endswith("M")):  # 10m is minutes, 10M is bytes
            try:
                limit = parse(text)
            except UsageError:
                continue
            if limit > 0:
                return (limit, None) if place == 0 else (None, limit)
    raise UsageError(f"--rotate: {text!r} is neither a size nor a duration;", "write it as 100MiB or 1h.")


VERB = Verb(
    "record",
    (
        Option("--output", "-o", value="FILE", complete="files",
               help="File to write, compressed if it ends in .gz; - for standard output"),
        Option("--history", value="FILE", optional="", complete="files",
               help="Write to this machine's history, which `gpulse history` reads; FILE selects another location"),
        Option("--interval", "-n", value="SECONDS", default=1.0, parse=seconds("--interval", 0.01, 86400),
               help="Time between samples, in seconds (default: 1)"),
        Option("--for", value="TIME", name="duration", parse=parse_duration, help="Stop after TIME, for example 10s, 5m or 2h"),
        Option("--count", value="N", parse=whole("--count", 1, 10**15, "a positive integer"), help="Stop after N samples"),
        Option("--processes", "-p", help="Also record the user, the command line and all other metrics of every process"),
        Option("--metrics", "-m", value="METRICS", parse=some_words, many=True, complete="metrics",
               help="Metrics to record, separated by commas, or `screen` for what live screens and a diagnosis need, at less than half the "
                    "cost (default: all but the details, and what a diagnosis needs of processes)"),
        Option("--rotate", value="LIMIT", parse=_turn,
               help="Start a new file (run-0001.ndjson, run-0002.ndjson, ...) at a size (100MiB) or after a time (1h)"),
        Option("--keep", value="N", parse=whole("--keep", 1, 10**15, "a positive integer"),
               help="With --rotate: keep only the newest N files"),
        Option("--max-size", value="SIZE", parse=parse_size,
               help="Total size limit; with --rotate the oldest files are deleted, otherwise recording stops"),
        Option("--append", help="Append to an existing file"),
        Option("--force", help="Overwrite an existing file"),
        *COMMON,
    ),
    run,
    (
        ("gpulse record -o run.ndjson.gz", "record until Ctrl-C"),
        ("gpulse record --history", "record this machine's history"),
        ("gpulse record -o run.ndjson --interval 0.1 --for 10m --processes", "record ten samples per second, with users and command lines"),
        ("gpulse record -o days.ndjson.gz --rotate 1h --keep 48", "keep the last two days, one file per hour"),
        ("gpulse record -o - -m utilization,power_draw | jq .gpus[0].power_draw", "pipe samples to another program"),
    ),
)  # fmt: skip
