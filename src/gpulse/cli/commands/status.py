"""`gpulse status`, and a bare `gpulse`: one glance."""

from __future__ import annotations

import os
import sys

from ...errors import UsageError
from ..main import VERBS
from ..options import COMMON, Option, Verb, words

TYPE_CHECKING = False
if TYPE_CHECKING:
    from ...model.select import Wanted
    from ...model.snapshot import Snapshot
    from ..options import Arguments


def seconds(text: str) -> float:
    """Read an interval that a watch can keep."""
    from ...units import parse_duration

    interval = parse_duration(text)
    if not 0.1 <= interval <= 86400:
        raise UsageError(f"--watch: {text!r} is not between 0.1 and 86400 seconds;", "try --watch 1.")
    return interval


def run(arguments: Arguments) -> int:
    """Look once, or again and again."""
    from ..session import open_sampler  # before the view is loaded: the driver's start is waited for only once

    wanted, columns = _wanted(arguments)
    sampler = open_sampler(arguments, wanted)
    try:
        if arguments.json:
            return _json(arguments, sampler)
        from ...present.terminal import size_of, theme_for
        from ...surfaces.status.view import glance

        theme = theme_for(sys.stdout, arguments.color, os.environ)

        def draw(snapshot: Snapshot) -> list[str]:
            room = size_of(sys.stdout, os.environ)[0]
            return glance(snapshot, theme, room, processes=arguments.processes, chosen=columns)

        sampler.settle()
        if arguments.watch is None:
            sys.stdout.write("\n".join(draw(sampler.read())) + "\n")
            return 0
        from ...surfaces.status.watch import watch

        watch(sampler.stream(arguments.watch), draw, lambda: size_of(sys.stdout, os.environ), sys.stdout)
        return 0
    finally:
        sampler.close()


def _wanted(arguments: Arguments) -> tuple[Wanted, list[str]]:
    """Return what to ask for, and the keys of --columns."""
    from ...model.select import EVERYTHING, Wanted, metric_named
    from ...surfaces.status.wanted import GLANCE, PROCESSES

    if arguments.json:
        return EVERYTHING, []
    if arguments.columns:
        columns = [metric_named(name).key for name in arguments.columns]
        wanted = Wanted(columns, host=("name",))
    else:
        columns, wanted = [], GLANCE
    return (wanted | PROCESSES if arguments.processes else wanted), columns


def _json(arguments: Arguments, sampler: object) -> int:
    from ...model.codec import to_line
    from ...sampling.sampler import Sampler

    assert isinstance(sampler, Sampler)
    sampler.settle(0.25)
    for snapshot in sampler.stream(arguments.watch or 1.0):
        sys.stdout.write(to_line(snapshot) + "\n")
        sys.stdout.flush()
        if arguments.watch is None:
            break
    return 0


VERB = Verb(
    "status",
    VERBS["status"],
    (
        Option("--processes", "-p", default=False, help="Add every process with its command line, CPU and host memory."),
        Option("--columns", "-c", value="METRICS", parse=words, complete="metrics",
               help="A plain table of these metrics instead, separated by commas; `gpulse metrics` lists them."),
        Option("--watch", "-w", value="SECONDS", parse=seconds, optional=1.0,
               help="Draw again every so many seconds (1 unless given); Ctrl-C ends it."),
        Option("--json", default=False, help="Everything there is as JSON, one line a look; with --watch, a stream of lines."),
        *COMMON,
    ),
    run,
    (
        ("gpulse", "the glance"),
        ("gpulse --watch", "the same, every second"),
        ("gpulse -p --gpu 0,2", "with processes, two GPUs"),
        ("gpulse -c utilization,sm_active,pcie_rx", "chosen metrics"),
        ("gpulse --json | jq .gpus[0].memory_used", "for scripts"),
    ),
)  # fmt: skip
