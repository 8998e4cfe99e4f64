"""The batches of a loader: measures how long each took to load, and counts steps and items."""

from __future__ import annotations

import time
from contextvars import ContextVar

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator
    from typing import Any, Generic, TypeVar

    from .monitor import Monitor

    T = TypeVar("T")

    class _Loop(Generic[T]): ...

else:

    class _Loop:
        __class_getitem__ = classmethod(type(list[int]))


class BatchInWork:
    """A batch that the program works on; `counted` if the program has counted the step itself."""

    __slots__ = ("counted", "monitor")

    def __init__(self, monitor: Monitor) -> None:
        self.monitor = monitor
        self.counted = False


# the batches that a thread or a task of an event loop works on, the innermost loop last
_in_work: ContextVar[tuple[BatchInWork, ...]] = ContextVar("gpulse_batches", default=())


def counted_by_program(monitor: Monitor) -> None:
    """Record that the program has counted the step of the batch it works on."""
    for work in reversed(_in_work.get()):
        if work.monitor is monitor:
            work.counted = True
            return


class Batches(_Loop["T"]):
    """Iterates over the batches of a loader, as often as the loader can; `len()` is the loader's.

    A batch is counted when the program asks for the next one or leaves the loop.
    """

    def __init__(
        self,
        monitor: Monitor,
        loader: Iterable[T],
        items: float | Callable[[T], float] = 0,
        steps: bool = True,
        tokens: float | Callable[[T], float] = 0,
    ) -> None:
        for name, given in (("items", items), ("tokens", tokens)):
            if not callable(given) and not isinstance(given, (int, float)):
                raise TypeError(f"{name} must be a number or a function of a batch, not {type(given).__name__}")
        self._monitor = monitor
        self._loader = loader
        self._items = items
        self._tokens = tokens
        self._steps = steps

    def __len__(self) -> int:
        return len(self._loader)  # type: ignore[arg-type]  # a TypeError, if the loader has none

    def __iter__(self) -> Iterator[T]:
        batches = iter(self._loader)
        while True:
            began = time.perf_counter()
            try:
                batch = next(batches)
            except StopIteration:
                return
            self._monitor.waited(time.perf_counter() - began)
            items, tokens = self._count("items", self._items, batch), self._count("tokens", self._tokens, batch)
            work = _begin(self._monitor)
            try:
                yield batch
            finally:  # also when the program leaves the loop
                del batch  # while the next one is loaded, nothing keeps this one in memory
                self._end(work, items, tokens)

    def _count(self, name: str, given: float | Callable[[Any], float], batch: Any) -> float:
        if not callable(given):
            return given
        try:
            return float(given(batch))
        except Exception as error:  # noqa: BLE001  # the training goes on without this figure
            self._monitor._say(f"batches: {name} failed ({type(error).__name__}: {error}); they are not counted.")
            return 0.0

    def _end(self, work: BatchInWork, items: float, tokens: float) -> None:
        _in_work.set(tuple(each for each in _in_work.get() if each is not work))
        if self._steps and not work.counted and (ledger := self._monitor.ledger) is not None:
            ledger.step(1, items, tokens)


def _begin(monitor: Monitor) -> BatchInWork:
    work = BatchInWork(monitor)
    _in_work.set((*_in_work.get(), work))
    return work
