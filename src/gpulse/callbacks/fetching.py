"""How long a framework waits for data: from asking for a batch to getting it, whatever callbacks, logging and validation do around it.

No framework has hooks for that, so a method that it calls for every batch is replaced while a training runs.
"""

from __future__ import annotations

import time

from ..monitor.rhythm import timed_next

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator
    from typing import Any


class Fetches:
    """The fetches of one training run; `waited` is called with the seconds of each."""

    def __init__(self, waited: Callable[[float], None]) -> None:
        self._waited = waited
        self._asked: float | None = None
        self._replaced: list[Replacement] = []
        self.seen = False

    @property
    def followed(self) -> bool:
        """Whether they are to be seen in a method of the framework."""
        return bool(self._replaced)

    def follow(self, owner: Any, name: str, make: Callable[[Any], Any]) -> None:
        """Replace a method by what `make` makes of it; raises if this version of the framework does not have it."""
        self._replaced.append(Replacement(owner, name, make))

    def end(self) -> None:
        """Put all methods back."""
        while self._replaced:
            self._replaced.pop().undo()

    def batches(self, batches: Iterable[Any]) -> Iterator[Any]:
        """Return an iterator over batches that measures how long each takes to come."""
        return TimedBatches(iter(batches), self._add)

    def asked(self) -> None:
        """Record that the framework asks for a batch."""
        self._asked = time.perf_counter()

    def arrived(self) -> None:
        """Record that it has the batch, or knows that there is none."""
        asked, self._asked = self._asked, None
        if asked is not None:
            self._add(time.perf_counter() - asked)

    def _add(self, seconds: float) -> None:
        self.seen = True
        self._waited(seconds)


class TimedBatches:
    """An iterator over the batches of another one; `waited` is called with the seconds that each took."""

    def __init__(self, batches: Iterator[Any], waited: Callable[[float], None]) -> None:
        self._batches = batches
        self._waited = waited

    def __iter__(self) -> TimedBatches:
        return self

    def __next__(self) -> Any:
        return timed_next(self._batches, self._waited)


class Replacement:
    """A method of a class or object, replaced until `undo`; one that somebody else has replaced since then stays as it is."""

    def __init__(self, owner: Any, name: str, make: Callable[[Any], Any]) -> None:
        self._owner = owner
        self._name = name
        self._own = vars(owner).get(name)  # None for an inherited one, and for an object's method of its class
        self._ours = make(getattr(owner, name))
        setattr(owner, name, self._ours)

    def undo(self) -> None:
        """Put the method back."""
        if vars(self._owner).get(self._name) is not self._ours:
            return
        if self._own is None:
            delattr(self._owner, self._name)
        else:
            setattr(self._owner, self._name, self._own)
