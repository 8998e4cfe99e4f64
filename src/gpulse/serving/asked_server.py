"""Servers that are asked again and again, all in one thread: at which address, how often, and what the last answer was."""

from __future__ import annotations

import os
import selectors
import time
from itertools import chain

from ..errors import GpulseError
from ..model.serving import ServerSample
from ..model.snapshot import Problem
from .http import HttpRequest, NoAnswer
from .kind import TextFormat
from .kinds import KINDS, plugin_kinds

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from typing import Any

    from .discovery import FoundServer, ModelFiles
    from .kind import Figures, Kind
    from .settings import Address, ServingSettings

DEADLINE = 1.5  # seconds for a whole answer, however slowly it comes
_RESTS = 300.0  # seconds until a server that does not say anything is asked again
_RETRY, _LONGEST = 5.0, 60.0  # seconds until one that has answered before is, doubled each time
_WHOLE_EVERY = 5.0  # seconds between two looks at the histograms, which are most of an answer
_SECOND_RESTS = 60.0  # seconds until the second page of a server is tried again
_TOKEN = 'Put its token into a file and name it in the settings: [serving] token_files = ["{}=FILE"].'


class AskedServer:
    """A server, found or configured. Used by the thread that asks.

    Before it has answered, each refusal leads to its next address; after the last one it rests for minutes.
    """

    def __init__(self, addresses: Sequence[Address], found: FoundServer | None = None) -> None:
        self.addresses = list(addresses)
        self.found = found
        self.samples: tuple[ServerSample, ...] = ()
        self.problem: Problem | None = None
        self.request: HttpRequest | None = None
        self.deadline = 0.0
        self.due = float("-inf")  # not asked before
        self.immediate = False  # ask again at once, not only when all are asked
        self.files: ModelFiles | None = None
        self._kind: Kind | None = None
        self._prefix = ""
        self._format: TextFormat | None = None
        self._brief: list[str] = []  # gauges and counts that the last whole answer had
        self._whole_at = float("-inf")
        self._at = 0
        self._delay = _RETRY
        self._connection: Any = None
        self._refusals: list[NoAnswer] = []
        self._awaiting: list[Figures] = []  # complete but for the second page, which is being asked
        self._answered_at = 0.0
        self._second_at = float("-inf")

    @property
    def address(self) -> Address:
        """The address that is asked now."""
        return self.addresses[self._at]

    @property
    def settled(self) -> bool:
        """Whether it has answered, or refused at each of its addresses."""
        return bool(self.samples) or self.problem is not None

    def begin(self, now: float, token: str) -> None:
        """Send the next request."""
        connection, self._connection = self._connection, None
        if not self._awaiting:  # both pages have one deadline
            self.deadline = now + DEADLINE
        self.due, self.immediate = float("-inf"), False
        self.request = HttpRequest(self.address, self._path(), token, connection)

    def answered(self, now: float) -> None:
        """Take the answer of a request that is complete; raises NoAnswer if it is not one of a server."""
        request = self.request
        assert request is not None
        assert request.body is not None
        figures = self._awaiting
        if figures:
            self._add_second(figures[0], request.body, now)
        else:
            figures, self._answered_at = self._figures(request.body, now), now
        self._end(keep=request.reusable)
        if not self._awaiting and self._lacks_second(figures, now):
            self._awaiting, self.immediate = figures, True
            return
        self._take(figures)

    def _take(self, figures: list[Figures]) -> None:
        self._awaiting = []
        self.problem, self._delay, self._refusals = None, _RETRY, []
        self.samples = tuple(self._sample(one, self._answered_at) for one in figures)

    def refused(self, now: float, refusal: NoAnswer) -> None:
        """Note why there was no answer, and when to ask again."""
        stale = self.request is not None and self.request.reused and refusal.gap == "failed" and not refusal.status
        self._end(keep=False)
        if stale:  # the server has closed a connection that nobody used for a while, as it may
            self.immediate = True
            return
        if self._awaiting:
            self._second_at = now + _SECOND_RESTS
            self._take(self._awaiting)
            return
        if self.samples or self._kind is not None:
            self.due, self._delay = now + self._delay, min(_LONGEST, 2 * self._delay)
            silent: dict[str, Any] = {"at": now, "gap": refusal.gap, "gauges": {}, "counts": {}, "latencies": {}}
            self.samples = tuple(sample.replace(**silent) for sample in self.samples)
            self.problem = self._problem(refusal)
            return
        self._refusals.append(refusal)
        if self._at + 1 < len(self.addresses):
            self._at += 1
            self.immediate = True
            return
        self.problem = self._problem(self._refusals[0], self.addresses[0])
        self._at, self._refusals = 0, []
        self.due = now + _RESTS

    def close(self) -> None:
        """Give up the connection."""
        self._end(keep=False)
        if self._connection is not None:
            self._connection.close()
        self._connection = None

    def _end(self, keep: bool) -> None:
        if self.request is not None:
            if keep:
                self._connection = self.request.socket
            else:
                self.request.close()
        self.request = None

    def _lacks_second(self, figures: list[Figures], now: float) -> bool:
        second = self._kind.second if self._kind is not None else None
        return (
            second is not None and len(figures) == 1 and second.key not in figures[0].gauges and now >= self._second_at
        )

    def _add_second(self, figures: Figures, body: bytes, now: float) -> None:
        assert self._kind is not None
        assert self._kind.second is not None
        value = self._kind.second.read(body, self.found.command if self.found is not None else "")
        if value is None:
            self._second_at = now + _SECOND_RESTS
        else:
            figures.gauges[self._kind.second.key] = value

    def _path(self) -> str:
        if self._awaiting and self._kind is not None and self._kind.second is not None:
            return self.address.path.rpartition("/")[0] + self._kind.second.path
        if self.address.path:
            return self.address.path
        if self._kind is not None:
            return self._kind.path
        hinted = self.found.kind if self.found is not None else ""
        usual = [kind for kind in KINDS if kind.name == hinted or (not hinted and self.address.port in kind.ports)]
        return usual[0].path if usual else "/metrics"

    def _figures(self, body: bytes, now: float) -> list[Figures]:
        if self._kind is None:
            self._recognize(body)
        assert self._kind is not None
        if self._kind.read is not None:
            return self._kind.read(body)
        assert self._format is not None
        if now - self._whole_at >= _WHOLE_EVERY:
            self._whole_at = now
            samples = self._format.parse(body)
            brief = self._kind.names(self._prefix, whole=False)
            self._brief = [name for name in brief if name in samples]  # looking for others in vain costs most
        else:
            samples = self._format.parse(body, self._brief)
        figures = self._kind.figures(samples, self._prefix)
        if not figures:
            raise NoAnswer("failed", "its answer has none of the figures that it had before")
        return figures

    def _recognize(self, body: bytes) -> None:
        path = self._path()
        for kind in chain(KINDS, plugin_kinds()):  # finding plug-ins costs 10 to 100 ms, and is done last
            if kind.read is not None:
                if kind.path == path and (kind.read(body) or body.lstrip()[:1] == b"{"):
                    self._kind = kind
                    return
            elif (prefix := kind.prefix_in(body)) is not None:
                self._kind, self._prefix = kind, prefix
                self._format = TextFormat(kind.names(prefix))
                return
        raise NoAnswer("unsupported", "its answer has no figures of a known kind of server")

    def _sample(self, figures: Figures, now: float) -> ServerSample:
        assert self._kind is not None
        found = self.found
        gauges = figures.gauges
        if self.files is not None:
            self.files.add_to(gauges)
        gauges.pop("capacity", None)
        return ServerSample(
            figures.server or self._kind.name,
            figures.model or (found.model if found is not None else ""),
            figures.endpoint or self.address.name,
            now,
            gauges=gauges,
            counts=figures.counts,
            latencies=figures.latencies,
            pid=found.pid if found is not None else None,
            pids=found.pids if found is not None else (),
            gap=figures.gap,
        )

    def _problem(self, refusal: NoAnswer, address: Address | None = None) -> Problem:
        where = (address or self.address).name
        kind = next((kind for kind in KINDS if self.found is not None and kind.name == self.found.kind), self._kind)
        who = f"{kind.name if kind is not None else 'a model server'} at {where}"
        remedy = _TOKEN.format(where) if refusal.gap == "denied" else ""
        if not remedy and kind is not None and refusal.status in (404, 501):
            remedy = kind.remedy
        return Problem("serving", f"{who}: {refusal.sentence}.", remedy)


def unreachable(found: FoundServer) -> Problem | None:
    """Return what to say of a server that listens only where it is not asked; None while it listens nowhere."""
    if not found.outward:
        return None
    where = found.outward[0].name
    remedy = f'Name it in the settings to have it asked: [serving] endpoints = ["http://{where}"].'
    return Problem("serving", f"{found.kind} (process {found.pid}) listens only at {where}, not on loopback.", remedy)


class Asking:
    """The requests under way. `waker` is a descriptor that ends a wait when something is written to it."""

    def __init__(self, settings: ServingSettings, waker: int) -> None:
        self._settings = settings
        self._waker = waker
        self._selector = selectors.DefaultSelector()
        self._selector.register(waker, selectors.EVENT_READ)

    def begin(self, target: AskedServer, now: float) -> None:
        """Send a request to a server."""
        try:
            target.begin(now, self._settings.token(target.address))
        except Exception as error:  # noqa: BLE001  # one server must not end the thread that asks all of them
            target.refused(now, _refusal(error))
            return
        self._follow(target, self._selector.register)

    def turn(self, targets: list[AskedServer], pause: float | None) -> bool:
        """Go on with the requests when a server says something or `pause` seconds are over; return whether one has ended."""
        ended = False
        for key, _ in self._selector.select(pause):
            if key.data is None:
                os.read(self._waker, 4096)
            else:
                ended |= self._step(key.data)
        now = time.monotonic()
        for target in targets:
            if target.request is not None and now >= target.deadline:
                self._end(target, NoAnswer("timeout", f"it does not answer within {DEADLINE:g} s"))
                ended = True
        return ended

    def drop(self, target: AskedServer) -> None:
        """Forget a server, in the middle of a request, too."""
        if target.request is not None:
            self._selector.unregister(target.request.socket)
        target.close()

    def close(self) -> None:
        """Release the selector."""
        self._selector.close()

    def _step(self, target: AskedServer) -> bool:
        assert target.request is not None
        try:
            if target.request.step():
                self._end(target)
                return True
        except Exception as error:  # noqa: BLE001
            self._end(target, _refusal(error))
            return True
        self._follow(target, self._selector.modify)
        return False

    def _follow(self, target: AskedServer, register: Callable[..., object]) -> None:
        assert target.request is not None
        events = selectors.EVENT_WRITE if target.request.sending else selectors.EVENT_READ
        register(target.request.socket, events, target)

    def _end(self, target: AskedServer, refusal: NoAnswer | None = None) -> None:
        assert target.request is not None
        self._selector.unregister(target.request.socket)
        now = time.monotonic()
        try:
            if refusal is not None:
                raise refusal
            target.answered(now)
        except Exception as error:  # noqa: BLE001  # what reads an answer may be of a plug-in
            target.refused(now, _refusal(error))


def _refusal(error: Exception) -> NoAnswer:
    """Return why there is no answer; an error that nobody expected is told by its name."""
    if isinstance(error, GpulseError):
        return NoAnswer("failed", str(error).rstrip("."))
    return error if isinstance(error, NoAnswer) else NoAnswer("failed", f"asking it fails ({type(error).__name__})")
