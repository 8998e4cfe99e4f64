"""`gpulse fleet`: many machines on one screen."""

from __future__ import annotations

import os
import sys

from ...errors import UsageError
from ...units import parse_size
from ..main import VERBS
from ..options import COLOR, HELP, THEME, Option, Verb, seconds, some_words

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

    from ...model.fleet import FleetSnapshot
    from ...remote.fleet import Feed, Fleet
    from ..options import Arguments

_FIRST = 2.0  # seconds until a screen is drawn; who answers later comes later


def run(arguments: Arguments) -> int:
    """Show the fleet once, or repeatedly."""
    from ...remote.fleet import Fleet

    if arguments.free is not None and arguments.watch:
        raise UsageError("fleet: --free and --watch cannot be combined;", "choose one.")
    feeds = feeds_of(arguments)
    with Fleet(feeds, arguments.interval) as fleet:
        if arguments.json:
            return _json(fleet, arguments)
        return _free(fleet, arguments) if arguments.free is not None else _view(fleet, arguments)


def feeds_of(arguments: Arguments) -> list[Feed]:
    """Return the feeds of the options, or of fleet.toml if there are none; raise UsageError if there are no machines."""
    from ...remote.once import named_feeds
    from ...remote.settings import fleet_path, read_feeds, read_secret

    token = "" if arguments.token_file is None else read_secret(arguments.token_file, "--token-file")
    feeds = named_feeds(arguments.ssh or (), arguments.url or (), arguments.prometheus, token, arguments.interval)
    if arguments.file is not None and not os.path.exists(arguments.file):
        raise UsageError(f"fleet: {arguments.file} does not exist;", "name another file.")
    path = arguments.file or fleet_path()
    if arguments.file is not None or not feeds:
        feeds += read_feeds(path, arguments.interval)
    if not feeds:
        raise UsageError(
            "fleet: no machines were named;",
            f"try --ssh gpu1,gpu2, --url http://gpu1:9440 or --prometheus URL, or write them to {path}.",
        )
    return feeds


def _json(fleet: Fleet, arguments: Arguments) -> int:
    import json

    for snapshot in _snapshots(fleet, arguments):
        sys.stdout.write(json.dumps(snapshot.to_plain()) + "\n")
        sys.stdout.flush()
    return 0


def _snapshots(fleet: Fleet, arguments: Arguments) -> Iterator[FleetSnapshot]:
    if arguments.watch:
        yield from fleet.stream(_FIRST)
    else:
        fleet.wait(arguments.timeout)
        yield fleet.read()


def _free(fleet: Fleet, arguments: Arguments) -> int:
    """List the machines that have enough free GPUs; exit code 1 if there is none."""
    from ...present.terminal import size_of
    from ...surfaces.fleet.view import free_lines
    from ..theme import theme_of

    fleet.wait(arguments.timeout)
    theme, room = theme_of(arguments, sys.stdout), size_of(sys.stdout, os.environ)[0]
    lines = free_lines(fleet.read(), arguments.free, arguments.free_memory or 0.0, theme)
    if not lines:
        sys.stderr.write("gpulse: fleet: no machine has that many free GPUs.\n")
        return 1
    sys.stdout.write("\n".join(line.render(theme, room) for line in lines) + "\n")
    return 0


def _view(fleet: Fleet, arguments: Arguments) -> int:
    from ...analysis.fleet import FleetWatch
    from ...present.terminal import capable, size_of
    from ...surfaces.fleet.view import fleet_view
    from ...surfaces.status.watch import watch
    from ..theme import theme_of

    theme, judged = theme_of(arguments, sys.stdout), FleetWatch()

    def draw(snapshot: FleetSnapshot) -> list[str]:
        room = size_of(sys.stdout, os.environ)[0]
        found = judged.add(snapshot)
        return [line.render(theme, room) for line in fleet_view(snapshot, theme, room, found, arguments.by)]

    if not arguments.watch:
        for snapshot in _snapshots(fleet, arguments):
            sys.stdout.write("\n".join(draw(snapshot)) + "\n")
        return 0
    rows = None if not capable(sys.stdout, os.environ) else lambda: size_of(sys.stdout, os.environ)[1]
    watch(_snapshots(fleet, arguments), draw, rows, sys.stdout)
    return 0


def _count(text: str) -> int:
    if not (text.isascii() and text.isdecimal() and 1 <= int(text) <= 1024):
        raise UsageError(f"--free: {text!r} is not a number of GPUs;", "try --free 4.")
    return int(text)


VERB = Verb(
    "fleet",
    VERBS["fleet"],
    (
        Option("--ssh", value="HOSTS",
               help="Machines to read over ssh: a,b,gpu[01-16], @FILE with one per line, or `config` for ~/.ssh/config; each runs "
                    "`gpulse record`, or nvidia-smi if there is no gpulse"),
        Option("--url", value="URLS", parse=some_words,
               help="Machines that run `gpulse serve`: their addresses, separated by commas"),
        Option("--prometheus", value="URL",
               help="Machines whose metrics are in Prometheus or VictoriaMetrics, from gpulse, DCGM exporter, nvidia_gpu_exporter or "
                    "AMD's device-metrics-exporter"),
        Option("--token-file", value="FILE", complete="files", help="File with the token for --url and --prometheus"),
        Option("--file", value="FILE", complete="files",
               help="Machines from a file (default: fleet.toml beside the settings, if no machine is named)"),
        Option("--by", value="WHAT", default="host", complete=("host", "gpu", "user", "job"),
               help="Rows of the table: host, gpu, user or job (default: host)"),
        Option("--free", value="N", parse=_count, optional=1, help="List only the machines with N free GPUs (default: 1)"),
        Option("--free-memory", value="SIZE", parse=parse_size, help="Memory that each GPU of --free must have, for example 70GiB"),
        Option("--watch", "-w", default=False, help="Refresh every interval until Ctrl-C"),
        Option("--interval", value="SECONDS", parse=seconds("--interval", 1, 3600), default=5.0,
               help="Time between samples, in seconds (default: 5)"),
        Option("--timeout", value="SECONDS", parse=seconds("--timeout", 0.1, 3600), default=5.0,
               help="How long to wait for machines that do not answer, without --watch (default: 5)"),
        Option("--json", default=False, help="Print all machines as one JSON object per refresh"),
        COLOR, THEME, HELP,
    ),
    run,
    (
        ("gpulse fleet --ssh gpu[01-16]", "show sixteen machines once"),
        ("gpulse fleet --ssh @hosts.txt --watch", "refresh every 5 seconds"),
        ("gpulse fleet --free 4 --free-memory 70GiB", "find a machine with four free GPUs"),
        ("gpulse fleet --by user", "show who holds how many GPUs"),
        ("gpulse fleet --prometheus http://prometheus:9090", "read from Prometheus"),
        ("gpulse fleet --ssh gpu1,gpu2 --json | jq '.hosts[].state'", "read a value in a script"),
    ),
)  # fmt: skip
