"""`gpulse replay`: a recording, played on the live screen or as glances."""

from __future__ import annotations

import os
import sys

from ...errors import UsageError
from ...units import parse_duration
from ..main import VERBS
from ..options import COLOR, GPU, HELP, THEME, Option, Verb

TYPE_CHECKING = False
if TYPE_CHECKING:
    from ...model.select import Wanted
    from ...model.snapshot import Snapshot
    from ...sampling.sampler import Sampler
    from ..options import Arguments

_EVERY_SAMPLE = 0.0  # what --speed max is until it is given to the source
_GLANCE = 1.0  # seconds between two glances


def run(arguments: Arguments) -> int:
    """Play a file until it is over or the user has seen enough."""
    if arguments.file is None:
        raise UsageError("replay: no file was given;", "try gpulse replay run.ndjson.gz.")
    if arguments.top and arguments.status:
        raise UsageError("replay: --top and --status are two ways to show it;", "choose one.")
    from ...present.terminal import capable

    screen = capable(sys.stdout, os.environ) and sys.stdin.isatty()
    if arguments.top or (screen and not arguments.status):
        from ..screen import show_screen

        show_screen(arguments, lambda wanted: _open(arguments, wanted), None)
    else:
        _glances(arguments)
    return 0


def _open(arguments: Arguments, wanted: Wanted) -> Sampler:
    from ...sampling.sampler import Sampler
    from ...sources.replay.source import ReplaySource

    source = ReplaySource(arguments.file)
    source.start = arguments.start if arguments.start is not None else source.start
    if arguments.speed is not None:
        source.speed = None if arguments.speed == _EVERY_SAMPLE else arguments.speed
    sampler = Sampler(source, wanted).open()
    if source.player is not None:
        source.player.loops = arguments.loop
    if arguments.gpu:
        sampler.choose(arguments.gpu)
    return sampler


def _glances(arguments: Arguments) -> None:
    """Draw glances: in place on a terminal, below each other elsewhere."""
    from ...model.select import EVERYTHING
    from ...present.terminal import capable, size_of, theme_for
    from ...surfaces.status.view import glance
    from ...surfaces.status.watch import watch

    theme = theme_for(sys.stdout, arguments.color, os.environ, arguments.theme or "dark")

    def draw(snapshot: Snapshot) -> list[str]:
        return glance(snapshot, theme, size_of(sys.stdout, os.environ)[0], processes=arguments.processes)

    rows = None if not capable(sys.stdout, os.environ) else lambda: size_of(sys.stdout, os.environ)[1]
    sampler = _open(arguments, EVERYTHING)
    try:
        pause = 0.0 if arguments.speed == _EVERY_SAMPLE else _GLANCE
        watch(sampler.stream(pause), draw, rows, sys.stdout)
    finally:
        sampler.close()


def _speed(text: str) -> float:
    if text == "max":
        return _EVERY_SAMPLE
    try:
        speed = float(text.removesuffix("x"))
    except ValueError:
        speed = 0.0
    if not 0 < speed <= 1e6:
        raise UsageError(f"--speed: {text!r} is not a speed;", "write it as 4, 0.5 or max.")
    return speed


VERB = Verb(
    "replay",
    VERBS["replay"],
    (
        Option("file", value="FILE", complete="files", help="A recording, plain or packed, of `gpulse record` or a sink."),
        Option("--speed", value="SPEED", parse=_speed, complete=("0.5", "2", "4", "16", "max"), open=True,
               help="So many times as fast; max is every sample in turn, as fast as it can be drawn."),
        Option("--start", value="TIME", parse=parse_duration, help="Begin so far into it: 90s, 5m, 1h."),
        Option("--loop", default=False, help="Begin anew when it is over."),
        Option("--top", default=False, help="On the live screen, which is usual on a terminal; ? lists its keys."),
        Option("--status", default=False, help="As glances, which is usual elsewhere."),
        Option("--processes", "-p", default=False, help="Add every process to the glances."),
        *(THEME, GPU, COLOR, HELP),
    ),
    run,
    (
        ("gpulse replay run.ndjson.gz", "space pauses, . steps, [ and ] seek, + and - change the speed"),
        ("gpulse replay run.ndjson --start 5m --speed 4", "from the sixth minute on, four times as fast"),
        ("gpulse replay run.ndjson --status --speed max | tail -12", "the last glance"),
        ("gpulse query --query-gpu=power.draw -l 1 --source replay:run.ndjson*max", "any other verb plays it, too"),
    ),
)  # fmt: skip
