"""A room: one machine watched for whoever is in it. Sampler, hub and history open with the first question and follow who is there."""

from __future__ import annotations

import os
import threading

from ..errors import GpulseError
from ..sampling.sampler import Sampler
from ..sources.registry import make_source
from ..store.history import HistoryBusy, HistoryError, Recorder
from . import wire
from .api import ApiRequest
from .hub import Hub, wanted
from .past import Past
from .refusal import Refusal

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

SHORTEST = 0.25  # seconds between two samples, however short a client asks for
_FIRST = 3.0  # seconds to wait for the first sample
_REAL = ("auto", "nvidia", "amd", "intel", "jetson")


class RoomSettings:
    """How a room is watched.

    `source` as on the command line; `interval` in seconds where no visitor asks for another. `idle_interval` is how often the
    history gets a sample while nobody is there; None pauses. `history` is a file, "" the machine's own, None none. `user` is
    whose command lines may be shown; None shows everybody's.
    """

    def __init__(
        self,
        source: str,
        *,
        interval: float = 1.0,
        idle_interval: float | None = 10.0,
        history: str | None = "",
        user: str | None = None,
        failed: Callable[[str], None] = lambda text: None,
    ) -> None:
        self.source = source
        self.interval = interval
        self.idle_interval = idle_interval
        self.history = history
        self.user = user
        self.failed = failed

    @property
    def real(self) -> bool:
        """Whether the source is this machine, and not a simulation or a recording."""
        return self.source.partition(":")[0] in _REAL


class Room:
    """A machine that is sampled while somebody is there, and a little for its history while nobody is.

    `open` and questions block and belong into worker threads; `enter` and `leave` return at once.
    """

    def __init__(self, settings: RoomSettings) -> None:
        self.settings = settings
        self._lock = threading.Lock()
        self._asked: ApiRequest | None = None
        self._visitors: dict[object, float] = {}
        self._sampler: Sampler | None = None
        self._recorder: Recorder | None = None
        self._temporary: str | None = None
        self._closed = False

    @property
    def hub(self) -> Hub | None:
        """The hub; None before the room has been opened."""
        return None if self._asked is None else self._asked.hub

    def open(self) -> ApiRequest:
        """Return what answers questions, opened where it is not yet; raise Refusal where there is no GPU to watch."""
        with self._lock:
            if self._closed:
                raise Refusal(503, "the server is stopping.")
            if self._asked is None:
                try:
                    self._asked = self._opened()
                except GpulseError as error:
                    raise Refusal(503, str(error), {"retry-after": "10"}) from None
            return self._asked

    def ask(self) -> ApiRequest:
        """Return what answers questions, with a sample that is not older than a visitor would see."""
        asked = self.open()
        if not asked.hub.ready or asked.hub.latest is None:
            asked.hub.refresh(_FIRST)
        return asked

    def enter(self, visitor: object, interval: float | None = None) -> None:
        """Have the machine sampled for a visitor, at the shortest interval that any of them asks for."""
        self._visitors[visitor] = max(SHORTEST, interval or self.settings.interval)
        self._pace()

    def leave(self, visitor: object) -> None:
        """Stop sampling for a visitor."""
        if self._visitors.pop(visitor, None) is not None:
            self._pace()

    def close(self) -> None:
        """End everything; returns soon even when the driver hangs. Safe to call twice."""
        with self._lock:
            self._closed = True
            asked, self._asked = self._asked, None
        if asked is None:
            return
        asked.hub.close()
        if self._recorder is not None:
            self._recorder.close(1.0)
        if asked.past is not None:
            asked.past.close()
        if self._sampler is not None:
            self._sampler.close()
        if self._temporary is not None:
            import shutil

            shutil.rmtree(self._temporary, ignore_errors=True)

    def _pace(self) -> None:
        if (hub := self.hub) is not None:
            if self._visitors:
                hub.interval = min(self._visitors.values())
            hub.pace(self._interval())

    def _interval(self) -> float | None:
        if self._visitors:
            return min(self._visitors.values())
        return self.settings.idle_interval if self._recorder is not None else None

    def _opened(self) -> ApiRequest:
        settings = self.settings
        sampler = Sampler(make_source(settings.source), wanted()).open()
        self._sampler = sampler
        past = self._history()
        user = settings.user
        hub = Hub(
            sampler,
            settings.interval,
            commands=user is None,
            conceal=None if user is None else lambda snapshot: wire.without_commands(snapshot, user),
            keep=self._recorder.put if self._recorder else None,
            failed=lambda error: settings.failed(f"a sample failed: {error!r}"),
        )
        hub.idle_interval = settings.idle_interval if self._recorder else None
        sampler.settle()
        hub.start()
        hub.pace(self._interval())
        return ApiRequest(hub, past)

    def _history(self) -> Past | None:
        """Open the history; a machine that is not real gets one that is gone with the room."""
        settings = self.settings
        if settings.history is None:
            return None
        path = settings.history or None
        if path is None and not settings.real:
            import tempfile

            self._temporary = tempfile.mkdtemp(prefix="gpulse-")
            path = os.path.join(self._temporary, "history.db")
        try:
            self._recorder = Recorder(path)
            path = self._recorder.path
        except HistoryBusy:
            pass  # another program writes it, and it is only read here
        except HistoryError as error:
            settings.failed(f"no history is kept: {error}")
            return None
        return Past(path)
