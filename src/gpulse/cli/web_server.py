"""What `serve` and `fleet serve` share (the socket, the token, where the page is), and what `serve` exports to other systems."""

from __future__ import annotations

import os
import re
import sys

from ..errors import GpulseError, UsageError
from ..model.select import Wanted
from ..settings.table import DETAILS, PORT, REMOTE_WRITE, parse_header, parse_label
from ..value import Value
from .output import say

TYPE_CHECKING = False
if TYPE_CHECKING:
    import socket
    from collections.abc import Callable, Iterator, Mapping, Sequence
    from contextlib import ExitStack
    from typing import Any

    from ..live.fleet import FleetHub
    from ..live.hub import Hub
    from ..model.snapshot import Check, Snapshot
    from ..model.verdict import Diagnosis
    from ..store.history import Recorder
    from ..surfaces.exporter.remote_write import Receiver, RemoteWrite
    from .options import Arguments

_ARENA_MAX = -8  # M_ARENA_MAX of glibc's malloc.h


class Place(Value):
    """Where the server listens: its host names, its URL, and whether only this machine can reach it."""

    address: str
    names: list[str]
    private: bool
    unix: bool = False

    @property
    def link(self) -> str:
        """The address of the page."""
        return "" if self.unix else self.address


def listen(arguments: Arguments, usual: int = PORT) -> tuple[socket.socket, Place]:
    """Return the socket that the options name, and where it is; `usual` is the port if none is named."""
    from ..surfaces.web.access import is_loopback, parse_bind, tcp_socket, unix_socket

    if arguments.unix_socket:
        if arguments.bind or arguments.port:
            raise UsageError("serve: --unix-socket cannot be combined with --bind or --port;", "choose one.")
        return unix_socket(arguments.unix_socket), Place(arguments.unix_socket, [], True, True)
    host, port = parse_bind(arguments.bind or "127.0.0.1", usual)
    bound = tcp_socket(host, port if arguments.port is None else arguments.port)
    node = os.uname().nodename
    shown = {"0.0.0.0": node, "::": node}.get(host, f"[{host}]" if ":" in host else host)
    scheme = "https" if arguments.cert else "http"
    address = f"{scheme}://{shown}:{bound.getsockname()[1]}{arguments.base_path}"
    names = ["localhost", "127.0.0.1", "::1", host, node, node.partition(".")[0], *(arguments.allow_host or ())]
    return bound, Place(address, names, is_loopback(host))


def share_heaps() -> None:
    """Let all threads share two heaps of the C library.

    It gives each thread its own, and they rarely shrink: with 50 clients 104 MB and rising after 16 minutes instead of 77, steady.
    """
    import ctypes

    try:
        ctypes.CDLL(None).mallopt(_ARENA_MAX, 2)
    except (OSError, AttributeError):
        pass  # another C library than glibc


def server_settings(arguments: Arguments, place: Place, token: str | None) -> Any:
    """Return who may reach the server, and how."""
    from ..surfaces.web.access import Hosts
    from ..surfaces.web.gate import ServerSettings

    return ServerSettings(
        token,
        None if place.unix else Hosts(place.names, addresses=not place.private),
        server=f"{os.uname().nodename} {place.address}",
        base_path=arguments.base_path,
        open_metrics=place.private,
        access_log=arguments.access_log,
    )


def token_in_force(arguments: Arguments) -> str | None:
    """Return the token: a new one, or that of the file; None with --no-auth."""
    from ..surfaces.web.access import new_token, token_of

    if arguments.no_auth:
        return None
    return token_of(arguments.token_file) if arguments.token_file else new_token()


def serve_until_stopped(
    arguments: Arguments,
    ends: ExitStack,
    hub: Hub | FleetHub,
    make_app: Callable[..., Any],
    listening: socket.socket,
    place: Place,
    token: str | None,
    verb: str = "serve",
) -> None:
    """Serve the app that `make_app` makes until a signal comes; `ends` stops hub and server."""
    from ..surfaces.web.running import Running, reserve_places

    places = reserve_places()
    app = make_app(server_settings(arguments, place, token), streams=places.streams)
    running = Running(app, listening, places, arguments.cert, arguments.key)
    hub.start()
    ends.callback(running.stop)
    ends.callback(hub.close)  # closed first, so that streams end on their own
    running.wait(lambda: announce(arguments, place, token, verb))


def announce(arguments: Arguments, place: Place, token: str | None, verb: str = "serve") -> None:
    """Print the URL; a token from a file is not printed, to keep it out of logs."""
    try:
        for line in _announcement(arguments, place, token, f"gpulse {verb}"):
            sys.stdout.write(f"{line}\n")
        sys.stdout.flush()
    except OSError:
        pass  # stdout is closed; keep serving


def _announcement(arguments: Arguments, place: Place, token: str | None, name: str) -> Iterator[str]:
    if token is None:
        say("authentication is disabled: anyone who can connect sees all processes and their owners.")
    elif not place.private and not arguments.cert:
        say("the token is sent unencrypted; use --cert, or a reverse proxy with TLS.")
    told = token if token is not None and not arguments.token_file else ""
    yield f"{name}: {place.address}{f'?token={told}' if told and not place.unix else ''}"
    if told and place.unix:
        yield f"the token is {told}"
    elif token is not None and not told:
        yield f"the token is in {arguments.token_file}"


def check_base_path(text: str) -> str:
    """Return a path that begins and ends with a slash; raise UsageError if it is none."""
    path = text if text.endswith("/") else f"{text}/"
    if not re.fullmatch(r"/(?:[A-Za-z0-9._~-]+/)*", path):
        raise UsageError(f"--base-path: {text!r} is not a valid path;", "write it as /gpulse/.")
    return path


_LATE = 300.0  # seconds; what waits longer is no hiccup
_PATIENCE = 1.0  # seconds that the end of a server waits for a push; what was not sent waits on disk


class Exports:
    """The exporter of a server with these options and the settings `remote` of remote write.

    `judged` gives the latest diagnosis, `say` is told what fails.
    """

    def __init__(
        self,
        arguments: Arguments,
        remote: Mapping[str, Any],
        judged: Callable[[], Diagnosis],
        say: Callable[[str], None],
    ) -> None:
        from ..surfaces.exporter.exporter import Exporter
        from ..surfaces.exporter.families import Owners
        from ..surfaces.exporter.tenants import Tenants

        self._arguments = arguments
        self._remote = remote
        self._say = say
        self._parts = (arguments.processes_metrics, arguments.dcgm_names, arguments.smi_names)
        self._tenants = Tenants()
        self.details = _details(arguments.metrics or ())
        owners = Owners(self._tenants, arguments.owner_labels, arguments.series_limit)
        self._exporter = Exporter(judged, owners, self.details, say)

    @property
    def wanted(self) -> Wanted:
        """The metrics to sample."""
        from ..surfaces.exporter.exporter import wanted

        return wanted(*self._parts, bool(self._arguments.otlp)) | self._tenants.wanted | Wanted(self.details)

    def start(
        self, took: Callable[[], float | None], ends: Any, recorder: Recorder | None = None
    ) -> list[Callable[[Snapshot], None]]:
        """Start pushing and return the functions that take each sample; `took` tells how long the latest took."""
        from ..surfaces.exporter.exporter import history_families

        if recorder is not None:
            self._exporter.more.append(lambda: history_families(recorder))
        takers: list[Callable[[Snapshot], None]] = [lambda snapshot: self._exporter.add(snapshot, took())]
        if self._arguments.otlp:
            from ..surfaces.exporter.otlp import OtlpPush

            push = OtlpPush(self._arguments.otlp)
            push.start()
            ends.callback(push.stop)
            takers.append(push.add)
        if self._remote.get("url") and (remote := self._remote_write()) is not None:
            remote.start()
            ends.callback(remote.end, _PATIENCE)
            self._exporter.more.append(remote.families)
            takers.append(remote.add)
        return takers

    def _remote_write(self) -> RemoteWrite | None:
        """Return what pushes to the receiver; None if another process does so already. Raises GpulseError for wrong settings."""
        from ..store.place import HistoryBusy, HistoryError
        from ..store.spool import Spool
        from ..surfaces.exporter.remote_write import RemoteWrite

        settings = {key: setting.default for key, setting in REMOTE_WRITE.items()} | dict(self._remote)
        receiver = _receiver(settings)
        if not receiver.private and (settings["user"] or settings["token_file"]):
            self._say(f"the password or token for {receiver.name} is sent unencrypted; use https.")
        folder = _folder(settings, self._arguments.history)
        names = {"job": "gpulse", "instance": os.uname().nodename}
        own = dict(parse_label(word) for word in settings["labels"] or ())
        try:
            spool = Spool(folder, round(1e6 * settings["buffer"]))
        except HistoryBusy as error:
            self._say(f"{error.holder} already pushes to {receiver.name}; this server does not.")
            return None
        except (HistoryError, OSError) as error:
            why = error.strerror if isinstance(error, OSError) else error.message
            raise GpulseError(
                f"remote write: {folder}: {why};", "name a folder in [remote_write] of the settings."
            ) from None
        series = lambda: self._exporter.series(*self._parts)  # noqa: E731
        return RemoteWrite(receiver, spool, series, settings["interval"], names | own, self._say)

    def scrape(self, accept: str) -> tuple[bytes, str]:
        """Return the page and its content type, for an Accept header."""
        from ..surfaces.exporter.exporter import OPENMETRICS, TEXT, prefers_openmetrics

        openmetrics = prefers_openmetrics(accept)
        return self._exporter.text(openmetrics, *self._parts), OPENMETRICS if openmetrics else TEXT


def _details(names: Sequence[str]) -> tuple[str, ...]:
    """Return the keys of the named details; metrics of other groups are sampled in any case."""
    from ..model.select import metric_named

    if "all" in names:
        return DETAILS
    return tuple(key for key in (metric_named(name).key for name in names) if key in DETAILS)


def _receiver(settings: Mapping[str, Any]) -> Receiver:
    """Return where to send; raises GpulseError if an address, a file or a combination is wrong."""
    from ..remote.settings import Url
    from ..store.secret_file import read_secret
    from ..surfaces.exporter.remote_write import Receiver

    Url(settings["url"])
    user, token_file = settings["user"], settings["token_file"]
    if user and token_file:
        raise UsageError("remote write: user and token_file cannot be combined;", "choose one.")
    if bool(user) != bool(settings["password_file"]):
        raise UsageError("remote write: user and password_file belong together;", "set both in [remote_write].")
    extra = dict(parse_header(word) for word in settings["headers"] or ())

    def headers() -> dict[str, str]:
        if token_file:
            return {**extra, "Authorization": f"Bearer {read_secret(token_file, 'remote write: token_file')}"}
        if user:
            from base64 import b64encode

            password = read_secret(settings["password_file"], "remote write: password_file")
            return {**extra, "Authorization": f"Basic {b64encode(f'{user}:{password}'.encode()).decode()}"}
        return extra

    headers()  # a file that is missing now is a mistake, one that goes missing later may come back
    return Receiver(settings["url"], headers, _certificates(settings["ca_file"]))


def _certificates(path: str | None) -> str | None:
    if path is None:
        return None
    import ssl

    path = os.path.expanduser(path)
    try:
        ssl.create_default_context(cafile=path)
    except OSError as error:
        raise UsageError(
            f"remote write: ca_file {path} cannot be read ({error.strerror or error});", "name a PEM file."
        ) from None
    return path


def _folder(settings: Mapping[str, Any], history: str | None = None) -> str:
    """Return where samples for the receiver wait: in the named folder, else beside the history."""
    import hashlib

    from ..store.place import default_path

    if settings["folder"]:
        return os.path.expanduser(str(settings["folder"]))
    beside = os.path.dirname(os.path.abspath(history or default_path()))
    return os.path.join(beside, "remote-write", hashlib.sha256(settings["url"].encode()).hexdigest()[:12])


def remote_write_checks(environ: Mapping[str, str]) -> list[Check]:
    """Return for `gpulse doctor` what waits to be pushed to the receiver of the settings; nothing if they name none."""
    from ..model.snapshot import Check
    from ..present.cells import seconds_text
    from ..settings.effective import effective
    from ..store.config import config_path, read_config
    from ..store.spool import waiting

    try:
        file = read_config(config_path(environ))
    except GpulseError:
        return []  # the check of the settings tells
    settings = {each.setting.key: each.value for each in effective("remote_write", file, environ)}
    if not settings["url"]:
        return []
    if (found := waiting(_folder(settings))) is None:
        return [Check("note", "remote write", "nothing has been pushed yet, or you may not read its buffer.")]
    count, size, oldest = found
    if not count or oldest < _LATE:
        return [Check("ok", "remote write", "the receiver has taken all samples.")]
    late = f"samples have waited for up to {seconds_text(oldest)} ({size / 1e6:.1f} MB)."
    return [Check("warn", "remote write", late, "`gpulse serve` says on standard error why they cannot be sent.")]
