"""Run the app: uvicorn in its own thread, until a signal stops it."""

from __future__ import annotations

import asyncio
import os
import signal
import threading

import uvicorn
from uvicorn.protocols.http.h11_impl import H11Protocol

from ...errors import GpulseError
from .crowd import Crowd, Door, give_back_memory
from .notify import notify, watchdog_seconds

TYPE_CHECKING = False
if TYPE_CHECKING:
    import socket
    from collections.abc import Callable
    from typing import Any

    from starlette.types import ASGIApp

    from .crowd import Places

_HEADERS = 10.0  # seconds before an idle connection is closed
_GRACE = 1  # seconds for responses to finish when the server stops
_SLACK = 2.0
_AFTERMATH = 2.0  # seconds between connections that were closed and the return of their memory


class Patient(H11Protocol):
    """HTTP with timeouts and limits: idle connections, very slow requests and connections beyond the limit are closed."""

    crowd: Crowd
    _timer: asyncio.TimerHandle | None = None
    _peer = ""

    def connection_made(self, transport: Any) -> None:
        super().connection_made(transport)
        self._peer = str((transport.get_extra_info("peername") or ("",))[0])
        if self.crowd.enter(self, self._peer):
            self._wait()
        else:
            transport.abort()

    @property
    def idle(self) -> bool:
        """Whether no request is in progress."""
        return self.cycle is None or bool(self.cycle.response_complete)

    def drop(self) -> None:
        """Close the connection at once."""
        self.transport.abort()

    def on_response_complete(self) -> None:
        self._wait()
        super().on_response_complete()

    def connection_lost(self, exc: Exception | None) -> None:
        if self._timer is not None:
            self._timer.cancel()
        self.crowd.leave(self, self._peer)
        super().connection_lost(exc)

    def _wait(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
        self._timer = self.loop.call_later(_HEADERS, self._enough)

    def _enough(self) -> None:
        if self.idle:
            self.drop()


class Quiet:
    """A filter for uvicorn's log: streams that end with the server are not errors."""

    stopping = False

    def filter(self, record: Any) -> bool:
        """Return whether to log a line."""
        return not Quiet.stopping and "without completing response" not in record.getMessage()


_LOG = {
    "version": 1,
    "disable_existing_loggers": False,
    "filters": {"quiet": {"()": Quiet}},
    "formatters": {"plain": {"format": "gpulse: %(message)s"}},
    "handlers": {"stderr": {"class": "logging.StreamHandler", "formatter": "plain", "filters": ["quiet"]}},
    "loggers": {
        name: {"handlers": ["stderr"], "level": "ERROR", "propagate": False}
        for name in ("uvicorn", "uvicorn.error", "uvicorn.access", "asyncio")
    },
}


class Running:
    """An app on a socket. `wait` blocks the main thread until SIGINT, SIGTERM or SIGHUP; `stop` ends within about two seconds."""

    def __init__(
        self, app: ASGIApp, listening: socket.socket, places: Places, cert: str | None = None, key: str | None = None
    ) -> None:
        crowd = Crowd(places.connections, thinned=_clean_up_later)
        self._socket = Door.of(listening, places.descriptors, crowd)
        self._said = False
        self._ready: Callable[[], None] = lambda: None
        self._watched = watchdog_seconds()
        config = uvicorn.Config(
            app,
            http=type("Patient", (Patient,), {"crowd": crowd}),
            loop="asyncio",
            ws="none",
            lifespan="off",
            log_config=_LOG,
            access_log=False,
            proxy_headers=False,
            server_header=False,
            ssl_certfile=cert,
            ssl_keyfile=key,
            backlog=places.backlog,
            timeout_keep_alive=int(_HEADERS),
            timeout_graceful_shutdown=_GRACE,
            callback_notify=self._tick,
            timeout_notify=1,
        )
        try:
            config.load()
        except OSError as error:  # includes errors of TLS
            raise GpulseError(f"the certificate or its key cannot be used: {error.strerror or error};", _PEM) from None
        self._server = uvicorn.Server(config)
        self._thread = threading.Thread(target=self._run, name="gpulse-web", daemon=True)
        # a pipe instead of an event: a signal handler can write to it at any point
        self._told, self._tell = os.pipe()

    def wait(self, ready: Callable[[], None]) -> None:
        """Serve until stopped; `ready` is called in the server's thread once it accepts requests."""
        Quiet.stopping = False
        self._ready = ready
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            if signal.getsignal(number) is not signal.SIG_IGN:  # ignored under nohup and in background jobs of scripts
                signal.signal(number, lambda *_: self._wake())
        self._thread.start()
        os.read(self._told, 1)

    def stop(self) -> None:
        """Stop the server; streams must have ended before."""
        notify("STOPPING=1")
        Quiet.stopping = True
        self._server.should_exit = True
        self._thread.join(_GRACE + _SLACK)

    async def _tick(self) -> None:
        """Called by the event loop about every second, for the watchdog."""
        if not self._said:
            self._said = True
            notify("READY=1")
            self._ready()
        if self._watched is not None:
            notify("WATCHDOG=1")

    def _run(self) -> None:
        try:
            self._server.run(sockets=[self._socket])
        finally:
            self._wake()

    def _wake(self) -> None:
        os.write(self._tell, b".")


def _clean_up_later() -> None:
    """Give memory back when the connections that have just ended are gone; called in the event loop."""
    loop = asyncio.get_running_loop()
    loop.call_later(_AFTERMATH, lambda: loop.run_in_executor(None, give_back_memory))


_PEM = "--cert and --key must be PEM files that this user can read."
