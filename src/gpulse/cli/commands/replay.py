"""`gpulse replay`: play back a recording on the live screen or as status output."""

from __future__ import annotations

import os
import sys

from ...errors import UsageError
from ...units import parse_duration
from ..options import COLOR, DEMO_PAST, GPU, HELP, THEME, Arguments, Option, Verb
from ..output import say_damaged
from ..session import show_screen, theme_of, with_past

TYPE_CHECKING = False
if TYPE_CHECKING:
    from ...model.select import Wanted
    from ...model.snapshot import Snapshot
    from ...sampling.sampler import Sampler

_EVERY_SAMPLE = 0.0  # stands for --speed max until it is passed to the source
_GLANCE = 1.0  # seconds between two status views


def run(arguments: Arguments) -> int:
    """Play a file until it ends or the user quits."""
    if arguments.file is None:
        raise UsageError("replay: no recording given;", "try gpulse replay run.ndjson.gz.")
    if arguments.top and arguments.status:
        raise UsageError("replay: --top and --status cannot be combined;", "choose one.")
    from ...present.theme import capable

    screen = capable(sys.stdout, os.environ) and sys.stdin.isatty()
    if arguments.top or (screen and not arguments.status):
        show_screen(arguments, lambda wanted: _open(arguments, wanted), None)
    else:
        _glances(arguments)
    return 0


def _open(arguments: Arguments, wanted: Wanted) -> Sampler:
    from ...sampling.sampler import Sampler
    from ...sources.replay import ReplaySource

    source = ReplaySource(arguments.file)
    source.start = source.start if arguments.start is None else _start(arguments.start, arguments.file)
    if arguments.speed is not None:
        source.speed = None if arguments.speed == _EVERY_SAMPLE else arguments.speed
    sampler = Sampler(source, wanted).open()
    if source.player is not None:
        source.player.loops = arguments.loop
    if arguments.gpu:
        sampler.choose(arguments.gpu)
    return sampler


def _start(text: str, path: str) -> float:
    """Return how many seconds into a recording a duration or a time is."""
    from ...model.when import moment_in
    from ...surfaces.report.recorded_samples import recorded

    try:
        return parse_duration(text)
    except UsageError:
        if path == "-":
            raise
    sample = next(recorded(path, []), None)
    first = 0.0 if sample is None else sample.snapshot.time
    return max(0.0, moment_in(text, first) - first)


def _glances(arguments: Arguments) -> None:
    """Print status views: in place on a terminal, one after the other elsewhere."""
    from ...model.select import EVERYTHING
    from ...present.theme import capable, size_of
    from ...sources.replay import ReplaySource
    from ...surfaces.status.view import glance, watch

    theme = theme_of(arguments, sys.stdout)

    def draw(snapshot: Snapshot) -> list[str]:
        return glance(snapshot, theme, size_of(sys.stdout, os.environ)[0], processes=arguments.processes)

    rows = None if not capable(sys.stdout, os.environ) else lambda: size_of(sys.stdout, os.environ)[1]
    sampler = _open(arguments, EVERYTHING)
    try:
        pause = 0.0 if arguments.speed == _EVERY_SAMPLE else _GLANCE
        watch(sampler.stream(pause), draw, rows, sys.stdout)
    finally:
        sampler.close()
    if isinstance(source := sampler.source, ReplaySource) and source.player is not None:
        say_damaged(source.path, source.player.damaged)


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
    (
        Option("file", value="FILE", complete="files", help="Recording to play (.ndjson or .ndjson.gz)"),
        Option("--speed", value="SPEED", parse=_speed, complete=("0.5", "2", "4", "16", "max"), open=True,
               help="Playback speed as a factor; `max` plays every sample as fast as possible (default: 1)"),
        Option("--start", value="TIME",
               help="Where to start: a time into the recording (90s, 5m), a time of day (the first 03:00 in it) or a date with a time"),
        Option("--loop", help="Start over at the end"),
        Option("--top", help="Play on the live screen (default on a terminal)"),
        Option("--status", help="Print one status view per sample (default when not on a terminal)"),
        Option("--processes", "-p", help="With --status: also list every process"),
        *(GPU, COLOR, THEME, DEMO_PAST, HELP),
    ),
    with_past(run, "recording", "file"),
    (
        ("gpulse replay run.ndjson.gz", "space pauses, . steps, [ ] seek, + - speed"),
        ("gpulse replay run.ndjson --start 5m --speed 4", "start at minute 5, at 4x speed"),
        ("gpulse replay run.ndjson --status --speed max | tail -12", "print the last status view"),
        ("gpulse query --query-gpu=power.draw -l 1 --source replay:run.ndjson*max", "use a recording with another verb"),
    ),
)  # fmt: skip
