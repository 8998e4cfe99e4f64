"""A delivery: a way for alerts to reach somebody, behind a queue and a thread of its own, so that it never holds up a sample."""

from __future__ import annotations

import threading
import time
from collections import deque

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from ..analysis.alerts import Transition

_WAITING = 256  # transitions a delivery may be behind
_LAST = 0.2  # seconds it gets to give up: to kill a program it still waits for


class Failed(Exception):
    """A delivery that did not succeed; the text says why, and holds no secrets."""


class Delivery:
    """One way. Subclasses do the work in `deliver`, which runs in one thread of its own and may take its time.

    `delivered`, `failed` and `dropped` count transitions; the first failure is told to `say`. `rules` are the names of those it is
    for, all when empty; without `clears` it is told only of what begins.
    """

    name = "delivery"

    def __init__(self, rules: Iterable[str] = (), clears: bool = True) -> None:
        self._rules = frozenset(rules)
        self._clears = clears
        self.delivered = 0
        self.failed = 0
        self.dropped = 0
        self.stopping = threading.Event()  # set when the time to deliver is over: stop waiting, give up
        self._say: Callable[[str], None] = lambda _: None
        self._waiting: deque[Transition] = deque(maxlen=_WAITING)
        self._changed = threading.Condition()
        self._closing = False
        self._thread: threading.Thread | None = None

    def deliver(self, transition: Transition) -> None:
        """Deliver one transition; raise Failed saying why it could not be."""
        raise NotImplementedError

    def start(self, say: Callable[[str], None]) -> None:
        """Begin to deliver."""
        self._say = say
        self._thread = threading.Thread(target=self._run, name=f"gpulse-{self.name}", daemon=True)
        self._thread.start()

    def put(self, transition: Transition) -> None:
        """Hand over a transition without waiting; the oldest goes when too many wait."""
        if (self._rules and transition.rule not in self._rules) or (transition.state == "clear" and not self._clears):
            return
        with self._changed:
            if len(self._waiting) == _WAITING:
                self.dropped += 1
            self._waiting.append(transition)
            self._changed.notify()

    def close(self) -> None:
        """Tell it that no more will come; returns at once."""
        with self._changed:
            self._closing = True
            self._changed.notify()

    def join(self, until: float) -> bool:
        """Wait until all is delivered, at most until this moment of time.monotonic(), then make it give up; False when it had to."""
        if self._thread is None:
            return True
        self._thread.join(max(0.0, until - time.monotonic()))
        done = not self._thread.is_alive()
        self.stopping.set()
        self._thread.join(_LAST)
        return done

    def _run(self) -> None:
        while (transition := self._next()) is not None:
            try:
                self.deliver(transition)
                self.delivered += 1
            except Exception as error:  # noqa: BLE001  # whatever is wrong out there, the next alert must be tried
                self._fail(str(error) if isinstance(error, Failed) else f"{type(error).__name__}: {error}")

    def _next(self) -> Transition | None:
        with self._changed:
            self._changed.wait_for(lambda: self._waiting or self._closing)
            return self._waiting.popleft() if self._waiting and not self.stopping.is_set() else None

    def _fail(self, why: str) -> None:
        self.failed += 1
        if self.failed == 1:
            self._say(f"alerts: {self.name}: {why} (reported once; further alerts are still sent).")
