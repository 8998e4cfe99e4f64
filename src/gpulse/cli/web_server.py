"""What `serve` and `fleet serve` share (the socket, the token, where the page is), and what `serve` exports to other systems."""

from __future__ import annotations

import os
import re
import sys

from ..errors import UsageError
from ..model.select import Wanted
from ..settings.table import DETAILS, PORT
from ..value import Value
from .output import say

TYPE_CHECKING = False
if TYPE_CHECKING:
    import socket
    from collections.abc import Callable, Iterator, Sequence
    from contextlib import ExitStack
    from typing import Any

    from ..live.fleet import FleetHub
    from ..live.hub import Hub
    from ..model.snapshot import Snapshot
    from ..model.verdict import Diagnosis
    from ..store.history import Recorder
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


class Exports:
    """The exporter of a server with these options; `judged` gives the latest diagnosis, `say` receives what fails."""

    def __init__(
        self,
        arguments: Arguments,
        judged: Callable[[], Diagnosis],
        say: Callable[[str], None],
    ) -> None:
        from ..surfaces.exporter.exporter import Exporter
        from ..surfaces.exporter.families import Owners
        from ..surfaces.exporter.tenants import Tenants

        self._arguments = arguments
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
            from ..surfaces.exporter.otlp_push import start_push

            push = start_push(self._arguments.otlp, lambda: self._exporter.series(*self._parts), self._say)
            ends.callback(push.stop)
            self._exporter.more.append(push.families)
            takers.append(push.add)
        return takers

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
