"""A phase: a named stretch of the program, as a context manager or a decorator."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any, TypeVar

    from .ledger import Phase, Window
    from .monitor import Monitor

    F = TypeVar("F", bound=Callable[..., Any])


class PhaseContext:
    """A named phase of the program: `with monitor.phase("train"):`, or `@monitor.phase("train")` above a function.

    Each call of a decorated function is one entry of the phase. Of a generator each step is one: the time its consumer takes
    does not belong to the phase.
    """

    __slots__ = ("_entered", "_monitor", "_name")

    def __init__(self, monitor: Monitor, name: str) -> None:
        if callable(name):
            raise TypeError('a phase needs a name: write @monitor.phase("train")')
        self._monitor = monitor
        self._name = str(name)
        self._entered: list[tuple[Phase, Window]] = []

    def __enter__(self) -> None:
        if (ledger := self._monitor.ledger) is not None:
            self._entered.append(ledger.enter(self._name))

    def __exit__(self, *error: object) -> None:
        if self._entered:
            phase, window = self._entered.pop()
            if phase.ledger is self._monitor.ledger:  # not after a stop, and not in a forked child
                phase.ledger.leave(phase, window)

    def __call__(self, function: F) -> F:
        from .decorating import decorated

        # one context per call: calls may overlap
        inside: F = decorated(function, lambda: PhaseContext(self._monitor, self._name))
        return inside

    def pause(self) -> None:
        """Leave the phase: a generator has yielded."""
        self.__exit__()

    def go_on(self) -> None:
        """Enter the phase again."""
        self.__enter__()
