"""A phase: a named stretch of the program, as a context manager."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from .ledger import Phase, Window
    from .monitor import Monitor


class PhaseContext:
    """A named phase of the program."""

    __slots__ = ("_entered", "_monitor", "_name")

    def __init__(self, monitor: Monitor, name: str) -> None:
        self._monitor = monitor
        self._name = name
        self._entered: list[tuple[Phase, Window]] = []

    def __enter__(self) -> None:
        if (ledger := self._monitor.ledger) is not None:
            self._entered.append(ledger.enter(self._name))

    def __exit__(self, *error: object) -> None:
        if self._entered:
            phase, window = self._entered.pop()
            if phase.ledger is self._monitor.ledger:  # not after a stop, and not in a forked child
                phase.ledger.leave(phase, window)
