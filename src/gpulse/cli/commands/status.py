"""`gpulse status`, also a bare `gpulse`: show every GPU once, or repeatedly with --watch."""

from __future__ import annotations

import gc
import os
import sys

from ..options import COMMON, Option, Verb, seconds, words

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from ...model.process_filter import ProcessFilter
    from ...model.select import Wanted
    from ...model.snapshot import Snapshot
    from ...sampling.sampler import Sampler
    from ..options import Arguments

_WATCHED = 3.0  # seconds for --problems: less cannot tell a GPU at work from one that only holds memory
_INTERVAL = 0.25


def run(arguments: Arguments) -> int:
    """Show one sample, or one per interval."""
    _check(arguments)
    if arguments.problems:
        return _problems(arguments)
    if arguments.watch is None:
        gc.disable()  # a single sample ends before garbage matters; collecting it takes 3 ms with 8 GPUs, 7 ms with 64
    try:
        return _show(arguments)
    finally:
        gc.enable()


def _show(arguments: Arguments) -> int:
    from ..session import open_sampler

    wanted, columns = _wanted(arguments)
    sampler = open_sampler(arguments, wanted, primed=arguments.watch is None)
    try:
        if arguments.watch is None:
            sampler.widen()
        if arguments.json:
            return _json(arguments, sampler)
        # loaded only now, while activity is being measured
        from ...present.theme import size_of
        from ...surfaces.status.view import glance
        from ..session import theme_of

        if not columns:
            from ...surfaces.status import gpus  # noqa: F401  # what `glance` will need

        theme = theme_of(arguments, sys.stdout)

        def draw(snapshot: Snapshot) -> list[str]:
            room = size_of(sys.stdout, os.environ)[0]
            return glance(
                snapshot, theme, room, processes=arguments.processes, chosen=columns, wanted=arguments.filter,
                header=not arguments.no_header, name_width=arguments.name_width,
            )  # fmt: skip

        if arguments.watch is not None:
            from ...present.theme import capable
            from ...surfaces.status.view import watch

            sampler.settle()
            rows = None if not capable(sys.stdout, os.environ) else lambda: size_of(sys.stdout, os.environ)[1]
            watch(sampler.stream(arguments.watch), draw, rows, sys.stdout)
        else:
            _once(sampler, draw, size_of(sys.stdout, os.environ)[1])
        return 0
    finally:
        sampler.close()


def _check(arguments: Arguments) -> None:
    """Let --filter imply --processes, which it filters; raise UsageError for options that exclude each other."""
    from ...errors import UsageError

    others = {
        "--processes": arguments.processes, "--filter": arguments.filter is not None, "--columns": arguments.columns,
        "--watch": arguments.watch is not None, "--json=gpustat": arguments.json == "gpustat",
    }  # fmt: skip
    if arguments.problems and (other := next((name for name, given in others.items() if given), None)):
        raise UsageError(f"status: --problems and {other} cannot be combined;", "choose one.")
    if arguments.filter is None:
        return
    if arguments.json:
        raise UsageError("status: --filter and --json cannot be combined;", "use jq to select from the JSON.")
    arguments.processes = True


def _problems(arguments: Arguments) -> int:
    """Watch for a moment and print only what is wrong, one line each."""
    from ...analysis.concerns import concerns
    from ...analysis.diagnosis.running import RunningDiagnosis
    from ...analysis.diagnosis.window import WANTED
    from ...present.concerns import concern_lines, worded
    from ...present.theme import size_of
    from ..session import open_sampler, theme_of

    running = RunningDiagnosis()
    sampler = open_sampler(arguments, WANTED, slow_every=1.0)
    try:
        sampler.settle()
        end = sampler.clock.monotonic() + _WATCHED  # the time of a sample goes back if the clock is set
        for snapshot in sampler.stream(_INTERVAL):
            running.add(snapshot)
            if sampler.clock.monotonic() >= end:
                break
    finally:
        sampler.close()
    found = concerns(running.diagnosis())
    if arguments.json:
        import json

        sys.stdout.write(json.dumps([one.to_plain() for one in worded(found)], indent=2) + "\n")
        return 0
    theme, room = theme_of(arguments, sys.stdout), size_of(sys.stdout, os.environ)[0]
    lines = [line.render(theme, room) for line in concern_lines(found, theme, room)]
    sys.stdout.write("\n".join(lines or ["Nothing is wrong."]) + "\n")
    return 0


def _cells(text: str) -> int:
    if not (text.isascii() and text.isdecimal() and len(text) <= 3):
        from ...errors import UsageError

        raise UsageError(f"--name-width: {text!r} is not a number of characters;", "try --name-width 12.")
    return int(text)


def _filter(text: str) -> ProcessFilter:
    from ...model.process_filter import parse_filter

    return parse_filter(text)


def _once(sampler: Sampler, draw: Callable[[Snapshot], list[str]], rows: int) -> None:
    """Draw once. Activity metrics take up to 0.1 s: a terminal shows the other values first and is updated in place."""
    from ...present.theme import capable

    if not capable(sys.stdout, os.environ):
        sampler.begin()
        sys.stdout.write("".join(f"{line}\n" for line in draw(sampler.complete())))
        return
    sampler.begin(activity=True)
    first = sampler.begun()
    lines = draw(first)
    updates = len(lines) < rows  # the cursor cannot return to lines that have left the screen
    if updates:
        sys.stdout.write("\n".join(lines) + "\n")
        sys.stdout.flush()
    whole = sampler.complete() if sampler.is_pending(first) else sampler.with_servers(first)
    if whole is first and updates:
        return
    start, end = (f"\x1b[{len(lines)}A", "\x1b[J") if updates else ("", "")
    sys.stdout.write(start + "".join(f"{line}\x1b[K\n" for line in draw(whole)) + end)


def _wanted(arguments: Arguments) -> tuple[Wanted, list[str]]:
    """Return the metrics to read and the keys of --columns."""
    from ...model.catalog import COSTLY
    from ...model.select import EVERYTHING, Wanted, metric_named
    from ...surfaces.status import GLANCE, GPUSTAT, PROCESSES, STAYING

    columns: list[str] = []
    if arguments.json:
        wanted = GPUSTAT if arguments.json == "gpustat" else EVERYTHING
    elif arguments.columns:
        columns = [metric_named(name).key for name in arguments.columns]
        return Wanted(columns, host=("name",)) | (PROCESSES if arguments.processes else Wanted()), columns
    else:
        wanted = GLANCE if arguments.watch is None else GLANCE | STAYING
        wanted = wanted | PROCESSES if arguments.processes else wanted
    return wanted.without(COSTLY) if arguments.no_activity else wanted, columns


def _json(arguments: Arguments, sampler: Sampler) -> int:
    if arguments.json == "gpustat":
        from ...surfaces.status.gpustat import to_gpustat as write
    else:
        from ...model.codec import to_line as write

    if arguments.watch is None:
        sampler.begin(rates=True)
    else:
        sampler.settle()
    for snapshot in [sampler.complete()] if arguments.watch is None else sampler.stream(arguments.watch):
        sys.stdout.write(write(snapshot) + "\n")
        sys.stdout.flush()
    return 0


VERB = Verb(
    "status",
    (
        Option("--processes", "-p", default=False, help="Also list every process with its command line, CPU and host memory"),
        Option("--filter", "-f", value="FILTER", parse=_filter, dashed=True,
               help="List only the processes that match all words of FILTER, for example 'user:ada gpu:0-3 mem>1G' "
                    "(implies --processes)"),
        Option("--columns", "-c", value="METRICS", parse=words, many=True, complete="metrics",
               help="Show a table of these metrics instead, separated by commas; see `gpulse metrics`"),
        Option("--no-activity", default=False,
               help="Leave out activity metrics (SM, tensor, DRAM, links), which take 0.1 s to measure"),
        Option("--no-header", default=False, help="Leave out the first line, about the machine"),
        Option("--name-width", value="N", parse=_cells,
               help="Characters for the names of GPUs in lines; 0 leaves them out (default: as many as fit)"),
        Option("--watch", "-w", value="SECONDS", parse=seconds("--watch", 0.1, 86400), optional=1.0,
               help="Refresh every SECONDS until Ctrl-C (default: 1)"),
        Option("--problems", default=False,
               help="Watch for 3 s and show only what is wrong, one line each; with --json as a list"),
        Option("--json", value="SHAPE", optional="gpulse", complete=("gpulse", "gpustat"),
               help="Print all metrics as one JSON object per sample; =gpustat prints what `gpustat --json` does"),
        *COMMON,
    ),
    run,
    (
        ("gpulse", "show all GPUs"),
        ("gpulse --watch", "refresh every second"),
        ("gpulse -p --gpu 0,2", "show two GPUs and their processes"),
        ("gpulse -p --filter 'user:ada mem>1G'", "show some processes only"),
        ("gpulse -c utilization,sm_active,pcie_rx", "show selected metrics"),
        ("gpulse --no-activity", "print at once, without measuring activity"),
        ("gpulse --problems", "show only what is wrong"),
        ("gpulse --json | jq .gpus[0].memory_used", "read a value in a script"),
    ),
)  # fmt: skip
