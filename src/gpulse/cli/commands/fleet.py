"""`gpulse fleet`: many machines on one screen."""

from __future__ import annotations

import os
import sys

from ...errors import UsageError
from ..main import VERBS
from ..options import COLOR, HELP, THEME, Option, Verb, seconds, some_words

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

    from ...model.fleet import FleetSnapshot
    from ...remote.fleet import Feed, Fleet
    from ..options import Arguments

_FIRST = 2.0  # seconds until a screen is drawn; who answers later comes later
_MOST_TOKEN = 4096


def run(arguments: Arguments) -> int:
    """Show the fleet once, or repeatedly."""
    from ...remote.fleet import Fleet

    feeds = _feeds(arguments)
    if not feeds:
        raise UsageError(
            "fleet: no machines were named;",
            "try gpulse fleet --ssh gpu1,gpu2, --url http://gpu1:9440 or --prometheus URL.",
        )
    with Fleet(feeds, arguments.interval) as fleet:
        if arguments.json:
            return _json(fleet, arguments)
        return _view(fleet, arguments)


def _feeds(arguments: Arguments) -> list[Feed]:
    from ...remote.hosts import parse_hosts
    from ...remote.prometheus import PrometheusFeed
    from ...remote.ssh import SshFeed
    from ...remote.urls import Url, UrlFeed

    token = _token(arguments.token_file)
    feeds: list[Feed] = []
    if arguments.ssh:
        feeds.append(SshFeed(parse_hosts(arguments.ssh), arguments.interval))
    if arguments.url:
        feeds.append(UrlFeed([Url(one, token) for one in arguments.url], arguments.interval))
    if arguments.prometheus:
        feeds.append(PrometheusFeed(Url(arguments.prometheus, token), arguments.interval))
    return feeds


def _token(path: str | None) -> str:
    if path is None:
        return ""
    try:
        with open(path, encoding="utf-8", errors="replace") as file:
            return file.read(_MOST_TOKEN).strip()
    except OSError as error:
        raise UsageError(
            f"fleet: --token-file {path} cannot be read ({error.strerror});", "name another file."
        ) from None


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


def _view(fleet: Fleet, arguments: Arguments) -> int:
    from ...present.terminal import capable, size_of
    from ...surfaces.fleet.view import fleet_view
    from ...surfaces.status.watch import watch
    from ..theme import theme_of

    theme = theme_of(arguments, sys.stdout)

    def draw(snapshot: FleetSnapshot) -> list[str]:
        room = size_of(sys.stdout, os.environ)[0]
        return [line.render(theme, room) for line in fleet_view(snapshot, theme, room)]

    if not arguments.watch:
        for snapshot in _snapshots(fleet, arguments):
            sys.stdout.write("\n".join(draw(snapshot)) + "\n")
        return 0
    rows = None if not capable(sys.stdout, os.environ) else lambda: size_of(sys.stdout, os.environ)[1]
    watch(_snapshots(fleet, arguments), draw, rows, sys.stdout)
    return 0


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
        ("gpulse fleet --prometheus http://prometheus:9090", "read from Prometheus"),
        ("gpulse fleet --ssh gpu1,gpu2 --json | jq '.hosts[].state'", "read a value in a script"),
    ),
)  # fmt: skip
