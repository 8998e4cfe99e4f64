"""A delivery: a way for alerts to reach somebody, behind a queue and a thread of its own, so that it never holds up a sample."""

from __future__ import annotations

import time

from ..queue_worker import QueueWorker

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable

    from ..analysis.alerts import Transition

_WAITING = 256  # transitions a delivery may be behind
_LAST = 0.2  # seconds it gets to give up: to kill a program it still waits for


class Failed(Exception):
    """A delivery that did not succeed; the text says why, and holds no secrets."""


class Delivery(QueueWorker):
    """One way to deliver alerts. Subclasses do the work in `deliver`, which runs in a thread of its own and may take its time.

    `delivered`, `failed` and `dropped` count transitions; the first failure is reported to `say`. `rules` names the rules it is
    for, all when empty; without `clears` only the start of an alert is delivered. `stopping` is set when it must give up.
    """

    name = "delivery"

    def __init__(self, rules: Iterable[str] = (), clears: bool = True) -> None:
        super().__init__(self.name, _WAITING)
        self._rules = frozenset(rules)
        self._clears = clears
        self.delivered = 0

    def deliver(self, transition: Transition) -> None:
        """Deliver one transition; raise Failed with the reason when that is not possible."""
        raise NotImplementedError

    def put(self, transition: Transition) -> None:
        """Hand over a transition and return at once."""
        if (not self._rules or transition.rule in self._rules) and (transition.state != "clear" or self._clears):
            super().put(transition)

    def end(self, until: float) -> bool:
        """Wait until all is delivered, at most until this time.monotonic(), then make it give up; return False when it had to."""
        done = self.join(until - time.monotonic())
        self.stopping.set()
        self.join(_LAST)
        return done

    def handle(self, transition: Transition) -> None:
        self.deliver(transition)
        self.delivered += 1

    def complaint(self, error: Exception) -> str:
        why = str(error) if isinstance(error, Failed) else f"{type(error).__name__}: {error}"
        return f"alerts: {self.name}: {why} (reported once; further alerts are still sent)."
