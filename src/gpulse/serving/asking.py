"""Requests to several servers at once, in one thread: a selector, and a deadline for each."""

from __future__ import annotations

import os
import selectors
import time

from .asked_server import DEADLINE
from .http import NoAnswer

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from .asked_server import AskedServer
    from .settings import ServingSettings


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
        except NoAnswer as refusal:
            target.refused(now, refusal)
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
        except NoAnswer as refusal:
            self._end(target, refusal)
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
        except NoAnswer as why:
            target.refused(now, why)
