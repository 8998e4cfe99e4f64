"""`gpulse record`: what the GPUs do, kept in a file, a line a sample."""

from __future__ import annotations

import sys

from ...errors import UsageError
from ...units import duration_text, parse_duration, parse_size, size_text
from ..main import VERBS
from ..options import COMMON, Option, Verb, seconds, some_words
from ..session import open_sampler, source_name
from ..stop_signals import Ending

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from ...model.metric import Gap
    from ...model.select import Wanted
    from ...model.snapshot import Snapshot
    from ...sampling.sampler import Sampler
    from ...store.rotation import Rotation
    from ..options import Arguments

_PROGRESS = 0.5  # seconds between two progress lines


def run(arguments: Arguments) -> int:
    """Write a line at each sample until told to stop."""
    _check(arguments)
    sampler = open_sampler(arguments, _wanted(arguments))
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
            raise UsageError("record: -o is for a file of its own and --history for this machine's;", "choose one.")
        if not arguments.history and source_name(arguments) not in ("auto", "nvidia"):
            raise UsageError(
                "record: this machine's history is not for another machine's samples;",
                "name a file for them: --history FILE.",
            )
        return
    if arguments.output is None:
        raise UsageError("record: no file to write to was given;", "try gpulse record -o run.ndjson.gz.")
    if arguments.append and arguments.force:
        raise UsageError("record: --append keeps what is there and --force replaces it;", "choose one.")
    if arguments.keep is not None and arguments.rotate is None:
        raise UsageError("record: --keep says how many files stay, and there is only one;", "add --rotate 1h.")
    ways = ("rotate", "keep", "max_size", "append", "force")
    if arguments.output == "-" and any(getattr(arguments, way) not in (None, False) for way in ways):
        raise UsageError("record: -o - writes to standard output, which is no file;", "name a file for that.")


def _with_processes(arguments: Arguments) -> bool:
    """Tell whether processes are recorded: who used what is half of a history."""
    return bool(arguments.processes) or arguments.history is not None


def _wanted(arguments: Arguments) -> Wanted:
    """Return what is asked for: all but the details unless named, and nothing about processes unless wanted."""
    from ...model.select import EVERYTHING, Wanted, metric_named

    process = EVERYTHING.process if _with_processes(arguments) else None
    if arguments.metrics:
        return Wanted([metric_named(name).key for name in arguments.metrics], process, ("name",))
    # this one is told from the lists of processes, which the driver need not be asked for otherwise
    return Wanted(
        EVERYTHING.gpu - (set() if _with_processes(arguments) else {"memory_unattributed"}), process, EVERYTHING.host
    )


def _samples(sampler: Sampler, arguments: Arguments) -> Iterator[Snapshot]:
    """Yield as many looks as the options ask for."""
    end = None if arguments.duration is None else sampler.clock.monotonic() + arguments.duration
    for number, snapshot in enumerate(sampler.stream(arguments.interval), 1):
        yield snapshot if _with_processes(arguments) else _without_processes(snapshot)
        if number == arguments.count or (end is not None and sampler.clock.monotonic() + arguments.interval > end):
            return


def _without_processes(snapshot: Snapshot) -> Snapshot:
    """Say of the processes that they were not recorded, which is not the same as that there were none."""
    from ...model.catalog import Gpu
    from ...model.snapshot import Snapshot

    def bare(gpu: Gpu) -> Gpu:
        gaps: dict[str, Gap] = {**gpu.gaps, "processes": "skipped"}
        parts = tuple(bare(part) for part in gpu.instances)
        return Gpu(dict(gpu.items()), gaps, state=gpu.state, since=gpu.since, instances=parts)

    gpus = tuple(bare(gpu) for gpu in snapshot.gpus)
    return Snapshot(snapshot.time, gpus, snapshot.host, snapshot.driver, snapshot.problems)


def _to_history(sampler: Sampler, arguments: Arguments) -> None:
    """Keep the history of this machine; raise HistoryBusy, with who it is, while another does."""
    import os

    from ...analysis.watch import MachineWatch
    from ...store.config import config_path, read_config
    from ...store.history import Recorder

    watch = MachineWatch(read_config(config_path(os.environ)).get("alerts", {}))
    recorder = Recorder(arguments.history or None)
    sys.stderr.write(f"gpulse: keeping the history of this machine in {recorder.path}; Ctrl-C ends it.\n")
    told: set[str] = set()
    try:
        with Ending() as ending:
            for snapshot in ending.until_told(_samples(sampler, arguments)):
                recorder.put(snapshot, watch.observe(snapshot))
                for problem in recorder.problems:
                    if problem.message not in told:
                        told.add(problem.message)
                        sys.stderr.write(f"gpulse: {problem.message} {problem.remedy}\n")
    finally:
        recorder.close()


def _to_stdout(sampler: Sampler, arguments: Arguments) -> None:
    from ...model.codec import to_line

    with Ending() as ending:
        for snapshot in ending.until_told(_samples(sampler, arguments)):
            sys.stdout.write(to_line(snapshot) + "\n")
            sys.stdout.flush()


def _to_files(sampler: Sampler, arguments: Arguments) -> None:
    from ...store.rotation import Rotation

    size, span = arguments.rotate or (None, None)
    files = Rotation(
        arguments.output,
        size=size,
        span=span,
        keep=arguments.keep,
        most=arguments.max_size,
        append=arguments.append,
        force=arguments.force,
    )
    begun = sampler.clock.monotonic()
    progress = _Progress(begun)
    full = False
    try:
        with Ending() as ending:
            for snapshot in ending.until_told(_samples(sampler, arguments)):
                if full := not files.write(snapshot):
                    break
                progress.show(files, sampler.clock.monotonic())
    finally:
        files.close()
        progress.clear()
    said = [_summary(files, sampler.clock.monotonic() - begun)]
    said += [f"{sampler.missed} left out: the machine could not keep the interval"] if sampler.missed else []
    said += [f"--max-size {size_text(arguments.max_size)} is reached"] if full else []
    sys.stderr.write(f"gpulse: {'; '.join(said)}.\n")


def _summary(files: Rotation, passed: float) -> str:
    samples = "1 sample" if files.count == 1 else f"{files.count} samples"
    return f"{samples} in {duration_text(round(passed))}, {size_text(files.size)}, {files.path}"


class _Progress:
    """One quiet line on a terminal, drawn in place; nothing anywhere else."""

    def __init__(self, begun: float) -> None:
        import os

        from ...present.terminal import capable

        self._begun = begun
        self._due = 0.0 if capable(sys.stderr, os.environ) else float("inf")
        self._drawn = False

    def show(self, files: Rotation, now: float) -> None:
        """Draw how far it is, now and then."""
        if now >= self._due:
            self._due, self._drawn = now + _PROGRESS, True
            text = f"{files.count} samples  {size_text(files.size)}  {duration_text(now - self._begun)}  Ctrl-C ends it"
            sys.stderr.write(f"\r{text}\x1b[K")
            sys.stderr.flush()

    def clear(self) -> None:
        """Take the line away."""
        if self._drawn:
            sys.stderr.write("\r\x1b[K")


def _count(option: str) -> Callable[[str], int]:
    def parse(text: str) -> int:
        if not (text.isascii() and text.isdecimal() and len(text) < 16 and int(text) > 0):
            raise UsageError(f"{option}: {text!r} is not a whole number from 1 on;", f"try {option} 10.")
        return int(text)

    return parse


def _turn(text: str) -> tuple[float | None, float | None]:
    """Read when the next file begins: bytes, or seconds."""
    for parse, place in ((parse_duration, 1), (parse_size, 0)):
        if text[-1:].isalpha() and not (parse is parse_duration and text.endswith("M")):  # 10m are minutes, 10M bytes
            try:
                limit = parse(text)
            except UsageError:
                continue
            if limit > 0:
                return (limit, None) if place == 0 else (None, limit)
    raise UsageError(f"--rotate: {text!r} is neither a size nor a time;", "write it as 100MiB or 1h.")


VERB = Verb(
    "record",
    VERBS["record"],
    (
        Option("--output", "-o", value="FILE", complete="files",
               help="The file to write, packed when it ends in .gz; - is standard output."),
        Option("--history", value="FILE", optional="", complete="files",
               help="Keep the history of this machine, for months: `gpulse history` reads it."),
        Option("--interval", "-n", value="SECONDS", default=1.0, parse=seconds("--interval", 0.01, 86400),
               help="Look every so many seconds; 1 unless given."),
        Option("--for", value="TIME", name="duration", parse=parse_duration, help="Stop after this time: 10s, 5m, 2h."),
        Option("--count", value="N", parse=_count("--count"), help="Stop after so many samples."),
        Option("--processes", "-p", default=False, help="Record every process, too, with its command line."),
        Option("--metrics", "-m", value="METRICS", parse=some_words, complete="metrics",
               help="Only these metrics, separated by commas; all but the details unless given."),
        Option("--rotate", value="LIMIT", parse=_turn,
               help="A new file (run-0001.ndjson, run-0002.ndjson, ...) after a size (100MiB) or a time (1h)."),
        Option("--keep", value="N", parse=_count("--keep"), help="With --rotate, keep only so many files: the oldest go."),
        Option("--max-size", value="SIZE", parse=parse_size,
               help="At most so much in all: with --rotate the oldest files go, else it stops."),
        Option("--append", default=False, help="Go on with a file that is there."),
        Option("--force", default=False, help="Replace a file that is there."),
        *COMMON,
    ),
    run,
    (
        ("gpulse record -o run.ndjson.gz", "until Ctrl-C; `gpulse replay` plays it"),
        ("gpulse record -o run.ndjson --interval 0.1 --for 10m --processes", "ten times a second, with processes"),
        ("gpulse record -o days.ndjson.gz --rotate 1h --keep 48", "the last two days, an hour a file"),
        ("gpulse record --history", "the history of this machine, for `gpulse history`"),
        ("gpulse record -o - -m utilization,power_draw | jq .gpus[0].power_draw", "to another program"),
    ),
)  # fmt: skip
