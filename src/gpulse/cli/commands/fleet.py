"""`gpulse fleet`: many machines on one screen."""

from __future__ import annotations

import os
import sys

from ...errors import SourceUnavailable, UsageError
from ...plugins import need_extra
from ...settings.table import PORT
from ...units import parse_size
from ..main import load
from ..options import COLOR, DEMO_FLEET, HELP, THEME, Arguments, Option, Verb, parse, seconds, some_words, whole, words
from ..output import COST, say, tariff_of
from ..session import show_screen, terminal_of, theme_of
from ..web_server import check_base_path, listen, serve_until_stopped, share_heaps, token_in_force

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from ...model.fleet import FleetSnapshot
    from ...model.select import Wanted
    from ...remote.fleet import Feed, Fleet
    from ...sampling.sampler import Sampler

_FIRST = 2.0  # seconds until a screen is drawn; who answers later comes later


def run(arguments: Arguments) -> int:
    """Show the fleet on a live screen; once, if stdout is not a terminal."""
    from ...remote.fleet import Fleet

    if arguments.action == "init":
        return _init(arguments)
    if arguments.action == "serve":
        return _serve(arguments)
    if arguments.action is not None:
        raise UsageError(
            f"fleet: unknown action {arguments.action!r};", "try gpulse fleet serve, or gpulse fleet init FOLDER."
        )
    for other in ("free", "once", "why"):
        if arguments.watch and getattr(arguments, other):
            raise UsageError(f"fleet: --{other} and --watch cannot be combined;", "choose one.")
    feeds = feeds_of(arguments)
    with Fleet(feeds, arguments.interval) as fleet:
        try:
            if arguments.json:
                return _json(fleet, arguments)
            if arguments.why is not None:
                return _why(fleet, arguments)
            return _view(fleet, arguments) if arguments.free is None else _free(fleet, arguments)
        except KeyboardInterrupt:
            if not arguments.watch:
                raise
            return 0  # the usual end


def _serve(arguments: Arguments) -> int:
    """Serve the page of the fleet until stopped."""
    need_extra("`gpulse fleet serve`", "serve", "starlette", "uvicorn")
    from contextlib import ExitStack
    from functools import partial

    from ...live.fleet import FleetHub
    from ...remote.fleet import Fleet, SlurmGrants
    from ...sources.slurm import has_slurm
    from ...surfaces.web.server import make_fleet_app

    if arguments.key and not arguments.cert:
        raise UsageError("fleet: --key needs a certificate;", "add --cert FILE.")
    feeds, tariff = feeds_of(arguments), tariff_of(arguments)
    arguments.unix_socket = arguments.port = None
    arguments.bind, arguments.token_file = arguments.listen, arguments.page_token_file
    arguments.base_path = check_base_path(arguments.base_path or "/")
    share_heaps()
    listening, place = listen(arguments, PORT + 1)
    with ExitStack() as ends:
        ends.callback(listening.close)
        token = token_in_force(arguments)
        fleet = ends.enter_context(Fleet([*feeds, *([SlurmGrants()] if has_slurm() else [])], arguments.interval))
        hub = FleetHub(fleet, tariff or None, lambda error: say(f"reading the fleet failed: {error!r}."))
        app = partial(make_fleet_app, hub)
        serve_until_stopped(arguments, ends, hub, app, listening, place, token, "fleet serve")
    return 0


def _init(arguments: Arguments) -> int:
    """Write files for Prometheus, Grafana, systemd, Kubernetes, Slurm and containers, check them, and say what comes next."""
    from ...remote.settings import fleet_path, parse_hosts, read_hosts
    from ...surfaces.fleet.deploy import FILES, check_files, fleet_files, write_files

    folder = arguments.folder or "gpulse-fleet"
    hosts = parse_hosts(arguments.ssh) if arguments.ssh else read_hosts(arguments.file or fleet_path())
    for name in write_files(folder, fleet_files(hosts), arguments.force):
        sys.stdout.write(f"{os.path.join(folder, name)}{f': {FILES[name]}' if name in FILES else ''}\n")
    wrong = 0
    for name, tool, said in check_files(folder):
        if said:
            wrong += said != "not installed"
            sys.stderr.write(f"gpulse: {name} was not checked: {tool} is not installed.\n" if said == "not installed"
                             else f"gpulse: {name}: {tool} says: {said}\n")  # fmt: skip
    if not hosts:
        sys.stderr.write(
            "gpulse: no machines to scrape were named; name them with --ssh, or edit gpulse-targets.json.\n"
        )
    return int(bool(wrong))


def feeds_of(arguments: Arguments) -> list[Feed]:
    """Return the feeds of the options, or of fleet.toml if there are none; raise UsageError if there are no machines."""
    from ...remote.settings import fleet_path, named_feeds, read_feeds
    from ...store.secret_file import read_secret

    if arguments.demo:
        from ...remote.fleet import DemoFeed

        return [DemoFeed(arguments.interval)]

    named = (arguments.ssh or (), arguments.url or (), arguments.prometheus or ())
    files = {"--token-file": arguments.token_file, "--prometheus-token-file": arguments.prometheus_token_file}
    tokens = [read_secret(path, flag) if path else "" for flag, path in files.items()]
    for flag, given, servers in zip(files, tokens, named[1:], strict=True):
        if given and not servers:
            kind = "--url" if flag == "--token-file" else "--prometheus"
            raise UsageError(f"fleet: {flag} is sent only to {kind}, which is missing;", f"add {kind} URL.")
    feeds = named_feeds(*named, arguments.interval, *tokens)
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
    from ...surfaces.fleet.view import free_lines

    fleet.wait(arguments.timeout)
    theme, room = terminal_of(arguments)
    lines = free_lines(fleet.read(), arguments.free, arguments.free_memory or 0.0, theme)
    if not lines:
        sys.stderr.write("gpulse: fleet: no machine has that many free GPUs.\n")
        return 1
    sys.stdout.write("\n".join(line.render(theme, room) for line in lines) + "\n")
    return 0


def _why(fleet: Fleet, arguments: Arguments) -> int:
    """Watch for a while and list what costs GPU time, and whose."""
    import time

    from ...analysis.fleet import FleetWatch
    from ...surfaces.fleet.view import loss_lines

    (theme, room), judged = terminal_of(arguments), FleetWatch()
    end = time.monotonic() + arguments.why
    for snapshot in fleet.stream(_FIRST):
        found = judged.add(snapshot)
        if time.monotonic() >= end:
            break
    lines = loss_lines(snapshot, found, theme)
    sys.stdout.write("\n".join(line.render(theme, room) for line in lines) + "\n")
    return 0


def _view(fleet: Fleet, arguments: Arguments) -> int:
    from ...analysis.fleet import FleetWatch
    from ...present.theme import capable, size_of
    from ...surfaces.fleet.view import fleet_view

    if not arguments.once and capable(sys.stdout, os.environ) and sys.stdin.isatty():
        return _screen(fleet, arguments)
    theme, judged = theme_of(arguments, sys.stdout), FleetWatch()
    for snapshot in _snapshots(fleet, arguments):
        room = size_of(sys.stdout, os.environ)[0]
        lines = fleet_view(snapshot, theme, room, judged.add(snapshot), arguments.by)
        sys.stdout.write("\n".join(line.render(theme, room) for line in lines) + ("\n\n" if arguments.watch else "\n"))
        sys.stdout.flush()
    return 0


def _screen(fleet: Fleet, arguments: Arguments) -> int:
    """Show the live screen; a machine that is opened is shown as `top` shows this one, until it is left."""
    from ...remote.fleet import HostSource
    from ...sampling.sampler import Sampler
    from ...surfaces.fleet.screen import FleetScreen

    def opened(name: str) -> Callable[[Wanted], Sampler]:
        return lambda wanted: Sampler(HostSource(fleet, name), wanted).open()

    screen = FleetScreen(fleet.read, theme_of(arguments, sys.stdout), arguments.interval, arguments.by)
    while (name := screen.run()) is not None:
        top = parse(load("top"), ["--readonly", "--color", arguments.color])
        top.theme = arguments.theme
        try:
            show_screen(top, opened(name), arguments.interval)
        except SourceUnavailable as error:
            screen.tell(str(error))
    return 0


VERB = Verb(
    "fleet",
    (
        Option("action", value="[serve|init]",
               help="`serve` serves a web page; `init` writes files for Prometheus, Grafana, systemd, Kubernetes, Slurm and containers"),
        Option("folder", value="[FOLDER]", complete="files", help="Folder of `init` (default: gpulse-fleet)"),
        Option("--ssh", value="HOSTS", many=True,
               help="Machines to read over ssh: a,b,gpu[01-16], @FILE with one per line, `config` for ~/.ssh/config, or `slurm` or "
                    "slurm:PARTITION for nodes with GPUs; each runs `gpulse record`, else nvidia-smi, else prints files of AMD GPUs"),
        Option("--url", value="URLS", parse=some_words, many=True,
               help="Machines that run `gpulse serve`: their addresses, separated by commas or each with a --url of its own"),
        Option("--prometheus", value="URLS", parse=some_words, many=True,
               help="Machines whose metrics are in Prometheus or VictoriaMetrics, from gpulse, DCGM exporter, nvidia_gpu_exporter or "
                    "AMD's device-metrics-exporter"),
        Option("--token-file", value="FILE", complete="files",
               help="File with the token that the machines of --url ask for; only its owner may read it"),
        Option("--prometheus-token-file", value="FILE", complete="files", help="File with the token that --prometheus asks for"),
        Option("--file", value="FILE", complete="files",
               help="Machines from a file (default: fleet.toml beside the settings, if no machine is named)"),
        Option("--by", value="WHAT", default="host", complete=("host", "gpu", "user", "job"),
               help="Rows of the table: host, gpu, user or job (default: host)"),
        Option("--free", value="N", optional=1, parse=whole("--free", 1, 1024, "a number of GPUs", "try --free 4."),
               help="List only the machines with N free GPUs (default: 1)"),
        Option("--free-memory", value="SIZE", parse=parse_size, help="Memory that each GPU of --free must have, for example 70GiB"),
        Option("--why", value="SECONDS", parse=seconds("--why", 10, 3600), optional=30.0,
               help="Watch for SECONDS and list what costs GPU time, and whose (default: 30)"),
        Option("--once", "-1", help="Show the fleet once instead of a live screen (default when not on a terminal)"),
        Option("--watch", "-w", help="In a pipe or with --json: repeat every interval until Ctrl-C"),
        Option("--interval", value="SECONDS", parse=seconds("--interval", 1, 3600), default=5.0,
               help="Time between samples, in seconds (default: 5)"),
        Option("--timeout", value="SECONDS", parse=seconds("--timeout", 0.1, 3600), default=5.0,
               help="How long to wait for machines that do not answer, if shown once (default: 5)"),
        Option("--force", help="Let `init` overwrite files that have been changed"),
        Option("--json", help="Print all machines as one JSON object per refresh"),
        Option("--listen", value="ADDR[:PORT]",
               help=f"Address of `serve` (default: 127.0.0.1:{PORT + 1}, reachable only from this machine)"),
        Option("--page-token-file", value="FILE", complete="files",
               help="Access token of `serve`, in a file that is created if missing (default: a new token on every start)"),
        Option("--no-auth", help="Disable authentication of `serve` (anyone who can connect gets in)"),
        Option("--allow-host", value="NAMES", parse=words, many=True,
               help="Additional host names that `serve` accepts, separated by commas"),
        Option("--base-path", value="PATH", help="URL path of `serve` behind a reverse proxy, for example /fleet/ (default: /)"),
        Option("--cert", value="FILE", complete="files", help="TLS certificate of `serve` (PEM); serves HTTPS"),
        Option("--key", value="FILE", complete="files", help="Private key of the certificate (default: in the certificate file)"),
        Option("--access-log", help="Log every request of `serve` to standard error"),
        *(*COST, COLOR, THEME, DEMO_FLEET, HELP),
    ),
    run,
    (
        ("gpulse fleet --ssh gpu[01-16]", "show sixteen machines on a live screen; press ? for the keys"),
        ("gpulse fleet --ssh @hosts.txt --once", "show them once"),
        ("gpulse fleet --free 4 --free-memory 70GiB", "find a machine with four free GPUs"),
        ("gpulse fleet --by user", "show who holds how many GPUs"),
        ("gpulse fleet serve --prometheus http://prometheus:9090", "serve a web page of the fleet and print its link"),
        ("gpulse fleet init deploy --ssh gpu[01-16]", "write files for Prometheus, Grafana, systemd, Kubernetes and Slurm"),
        ("gpulse fleet --why", "watch for 30 seconds, then list what limits the fleet"),
        ("gpulse fleet --prometheus http://prometheus:9090", "read from Prometheus"),
        ("gpulse fleet --ssh gpu1,gpu2 --json | jq '.hosts[].state'", "read a value in a script"),
    ),
)  # fmt: skip
