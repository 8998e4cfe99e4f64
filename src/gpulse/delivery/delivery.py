"""A delivery: sends alerts to people from its own queue and thread, so that it never delays a sample; the terminal bell is one."""

from __future__ import annotations

import os
import time
from collections import deque

from ..queue_worker import QueueWorker

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from ..analysis.alerts import Notice


LIMIT = 30  # messages in an hour
_WAITING = 256  # messages a delivery may be behind
_LAST = 0.2  # seconds it gets to give up: to kill a program it still waits for
_HOUR = 3600.0


class Failed(Exception):
    """A delivery that did not succeed; the text says why, and holds no secrets."""


class Delivery(QueueWorker):
    """One way to deliver messages. Subclasses do the work in `deliver`, which runs in a thread of its own and may take its time.

    `delivered`, `failed` and `dropped` count messages; the first failure is reported to `say`. `rules` names the rules it is
    for, all when empty; without `clears` only the start of an alert is delivered. Of more than `limit` messages in an hour the rest is
    counted, and the next one says how many; 0 is no limit. `stopping` is set when it must give up.
    """

    name = "delivery"
    kinds: tuple[str, ...] = ("fire", "clear", "repeat", "test")
    refresh = 0.0  # seconds after which it is told of all that is active, 0 for never

    def __init__(self, rules: Iterable[str] = (), clears: bool = True, limit: int = 0) -> None:
        super().__init__(self.name, _WAITING)
        self._rules = frozenset(rules)
        self._clears = clears
        self._limit = limit
        self._sent: deque[float] = deque()
        self._held = 0
        self.delivered = 0

    @property
    def place(self) -> str:
        """Where it delivers to, without secrets."""
        return ""

    def deliver(self, notice: Notice) -> None:
        """Deliver one message; raise Failed with the reason when that is not possible."""
        raise NotImplementedError

    def put(self, notice: Notice) -> None:
        """Hand over a message and return at once."""
        if notice.kind not in self.kinds or (notice.ends and not self._clears):
            return
        alerts = [alert for alert in notice.alerts if not self._rules or alert.rule in self._rules]
        if alerts and (passed := self._limited(notice.replace(alerts=alerts))) is not None:
            super().put(passed)

    def _limited(self, notice: Notice) -> Notice | None:
        if not self._limit or notice.kind not in ("fire", "clear", "repeat"):
            return notice
        while self._sent and not 0 <= notice.time - self._sent[0] < _HOUR:
            self._sent.popleft()
        if len(self._sent) >= self._limit:
            self._held += len(notice.alerts)
            return None
        self._sent.append(notice.time)
        held, self._held = self._held, 0
        return notice.replace(held=held, last=len(self._sent) == self._limit)

    def end(self, until: float) -> bool:
        """Wait until all is delivered, at most until this time.monotonic(), then make it give up; return False when it had to."""
        done = self.join(until - time.monotonic())
        self.stopping.set()
        self.join(_LAST)
        return done

    def handle(self, notice: Notice) -> None:
        self.deliver(notice)
        self.delivered += 1

    def complaint(self, error: Exception) -> str:
        return f"alerts: {self.name}: {reason(error)} (reported once; further alerts are still sent)."


def reason(error: Exception) -> str:
    """Return why a delivery failed."""
    return str(error) if isinstance(error, Failed) else f"{type(error).__name__}: {error}"


class Bell(Delivery):
    """Rings a terminal when something begins."""

    name = "bell"

    def __init__(self, terminal: str = "/dev/tty", rules: Iterable[str] = ()) -> None:
        super().__init__(rules, clears=False)
        self._terminal = terminal

    @property
    def place(self) -> str:
        return self._terminal

    def deliver(self, notice: Notice) -> None:
        try:
            handle = os.open(self._terminal, os.O_WRONLY | os.O_NOCTTY | os.O_NONBLOCK | os.O_CLOEXEC)
        except OSError as error:
            raise Failed(f"{self._terminal} cannot be opened: {error.strerror}") from None
        try:
            if not os.isatty(handle):
                raise Failed(f"{self._terminal} is not a terminal")
            os.write(handle, b"\a")
        except OSError as error:
            raise Failed(f"{self._terminal} cannot be written: {error.strerror}") from None
        finally:
            os.close(handle)


class Callback(Delivery):
    """Calls a function with each message, in this delivery's own thread."""

    def __init__(self, function: Callable[[Notice], None], name: str = "page", rules: Iterable[str] = ()) -> None:
        self.name = name
        super().__init__(rules)
        self._function = function

    def deliver(self, notice: Notice) -> None:
        self._function(notice)
