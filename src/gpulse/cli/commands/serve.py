"""`gpulse serve`: serve a web dashboard, a JSON API and Prometheus metrics."""

from __future__ import annotations

import os

from ...errors import UsageError
from ...plugins import need_extra
from ...settings.table import PORT, SERVE
from ..options import DEMO, GPU, HELP, SOURCE, Arguments, Option, Verb, seconds, whole, words
from ..output import say
from ..session import open_sampler
from ..web_server import (
    Exports,
    check_base_path,
    listen,
    serve_until_stopped,
    share_heaps,
    token_in_force,
)

TYPE_CHECKING = False
if TYPE_CHECKING:
    import socket
    from collections.abc import Mapping
    from typing import Any

    from ...delivery.alerts import Alerts
    from ...live.past import Past
    from ...model.event import Event
    from ...model.snapshot import Snapshot
    from ...store.history import HistoryError
    from ..web_server import Place

# a setting of the file or the environment gives way to any of these options
_GIVES_WAY = {
    "commands": {"no_commands"},
    "history": {"history", "no_history"},
    "token_file": {"token_file", "no_auth"},
    "unix_socket": {"unix_socket", "bind", "port"},
    "bind": {"unix_socket", "bind"},
    "port": {"unix_socket", "port"},
}


def run(arguments: Arguments) -> int:
    """Serve until stopped."""
    need_extra("`gpulse serve`", "serve", "starlette", "uvicorn")
    from ...settings.effective import chosen
    from ...store.config import config_path, read_config
    from ...store.lines import remove

    path = config_path(os.environ)
    tables = read_config(path)
    _fill(arguments, chosen("serve", tables, os.environ, path))
    _check(arguments)
    listening, place = listen(arguments)
    try:
        _serve(arguments, listening, place, tables.get("alerts", {}))
    finally:
        listening.close()
        if arguments.unix_socket:
            remove(arguments.unix_socket)
    return 0


def _fill(arguments: Arguments, settings: Mapping[str, Any]) -> None:
    """Fill in options that are not on the command line from the settings."""
    given = {name for name, value in vars(arguments).items() if value is not None and value is not False}
    if "bind" in given and _names_a_port(arguments.bind):
        given.add("port")
    for name, value in settings.items():
        if given & _GIVES_WAY.get(name, {name}):
            continue
        switch = f"no_{name}"
        if isinstance(value, bool) and hasattr(arguments, switch):
            setattr(arguments, switch, not value)
        else:
            setattr(arguments, name, value)
    arguments.base_path = arguments.base_path or SERVE["base_path"].default
    arguments.interval = arguments.interval or SERVE["interval"].default
    arguments.series_limit = arguments.series_limit or SERVE["series_limit"].default


def _names_a_port(bind: str) -> bool:
    from ...surfaces.web.access import parse_bind

    return parse_bind(bind, -1)[1] != -1


def _check(arguments: Arguments) -> None:
    if arguments.key and not arguments.cert:
        raise UsageError("serve: --key needs a certificate;", "add --cert FILE.")
    if arguments.no_history and arguments.history:
        raise UsageError("serve: --history and --no-history cannot be combined;", "choose one.")
    if arguments.no_auth and arguments.token_file:
        raise UsageError("serve: --token-file and --no-auth cannot be combined;", "choose one.")
    if not 0.1 <= arguments.interval <= 3600:
        raise UsageError(
            f"serve: interval {arguments.interval:g} is not between 0.1 and 3600 seconds;", "try --interval 1."
        )
    arguments.base_path = check_base_path(arguments.base_path)


def _serve(
    arguments: Arguments,
    listening: socket.socket,
    place: Place,
    rules: Any,
) -> None:
    """Start sampler, history, exporter, alerts and server; stop them in reverse order."""
    from contextlib import ExitStack
    from functools import partial

    from ...delivery.alerts import Alerts
    from ...live.hub import Hub, wanted
    from ...live.past import open_history
    from ...monitor.training_rules import WhereStuck
    from ...surfaces.web.server import make_app

    share_heaps()
    token = token_in_force(arguments)
    exports = Exports(arguments, lambda: hub.verdicts.latest, say)
    where_stuck = WhereStuck()
    with ExitStack() as ends:

        def explain(event: Event, snapshot: Snapshot) -> dict[str, float | str]:
            return where_stuck(event, snapshot) if sampler.source.machine.real else {}

        # who hides command lines does not show the names of files and functions either
        alerts = Alerts(rules, say, explain=None if arguments.no_commands else explain, link=place.link)
        asked = wanted(not arguments.no_commands, alerts.wanted | exports.wanted)
        sampler = open_sampler(arguments, asked)
        ends.callback(sampler.close)
        sampler.settle()
        real = sampler.source.machine.real
        recorder, past = (
            (None, None) if arguments.no_history else open_history(arguments.history, real, ends, _unwritten, say)
        )
        _resume(alerts, past, real, ends)
        hub = Hub(
            sampler,
            arguments.interval,
            commands=not arguments.no_commands,
            watchers=exports.start(lambda: hub.took, ends, recorder),
            alerts=alerts,
            recorder=recorder,
            failed=lambda error: say(f"sampling failed: {error!r}."),
            details=exports.details,
        )
        app = partial(make_app, hub, past=past, metrics=exports.scrape)
        serve_until_stopped(arguments, ends, hub, app, listening, place, token)


def _unwritten(error: HistoryError) -> None:
    """Say why this server does not write the history."""
    if holder := getattr(error, "holder", ""):
        say(f"{holder} already records the history; this server only reads it.")
    else:
        say(f"not recording a history: {error}")


def _resume(alerts: Alerts, past: Past | None, real: bool, ends: Any) -> None:
    """Go on with the alerts kept beside the history; those of a machine that is not this computer are in memory without one."""
    from ...store.alert_file import AlertFile, alert_path
    from ...store.place import default_path

    history = default_path() if past is None and real else None if past is None else past.path
    alerts.resume(AlertFile(None if history is None else alert_path(history)))
    ends.callback(alerts.close, 1.0)


def _limit(text: str) -> int:
    taken, wrong = SERVE["series_limit"].parse(text)
    if wrong:
        raise UsageError(f"--series-limit: {wrong[0].removesuffix('.')};", "try --series-limit 1000.")
    return int(taken)


def _option(key: str, *flags: str, value: str = "", **more: Any) -> Option:
    """Return the option of a setting: its help and default are those of the table of settings."""
    setting = SERVE[key]
    default = f" (default: {setting.normally})" if setting.normally and setting.kind != "flag" else ""
    if not value:
        more["default"] = False
    return Option(setting.flag, *flags, value=value, help=f"{setting.help}{default}", **more)


VERB = Verb(
    "serve",
    (
        _option("bind", value="ADDR[:PORT]"),
        _option("port", value="PORT", parse=whole("--port", 0, 65_535, "between 0 and 65535", f"try --port {PORT}.")),
        _option("unix_socket", value="FILE", complete="files"),
        _option("token_file", value="FILE", complete="files"),
        Option("--no-auth", help="Disable authentication (anyone who can connect gets in)"),
        _option("allow_host", value="NAMES", parse=words, many=True),
        _option("base_path", value="PATH"),
        _option("cert", value="FILE", complete="files"),
        _option("key", value="FILE", complete="files"),
        _option("interval", "-n", value="SECONDS", parse=seconds("--interval", 0.1, 3600)),
        Option("--no-commands", help="Do not show or store command lines of processes"),
        Option("--history", value="FILE", complete="files", help="History file to write (default: this machine's)"),
        Option("--no-history", help="Do not record or show a history"),
        _option("metrics", value="NAMES", parse=words, many=True, complete="metrics"),
        _option("processes_metrics"),
        _option("owner_labels"),
        _option("series_limit", value="N", parse=_limit),
        _option("dcgm_names"),
        _option("smi_names"),
        _option("otlp", value="URL"),
        _option("access_log"),
        *(GPU, SOURCE, DEMO, HELP),
    ),
    run,
    (
        ("gpulse serve", "print a link to open in a browser"),
        ("gpulse serve --demo", "serve a simulated machine"),
        ("gpulse serve --bind 0.0.0.0 --cert box.pem --key box.key", "serve the network over HTTPS"),
        ("ssh -tL 9440:localhost:9440 box gpulse serve", "serve a remote machine over SSH"),
    ),
)  # fmt: skip
