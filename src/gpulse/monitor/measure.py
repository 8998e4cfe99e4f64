"""measure: measure a piece of code, as a context manager or as a decorator of any kind of function (plain, async, generator)."""

from __future__ import annotations

import functools
import inspect
import os
import time
from contextvars import ContextVar

from ..torch import allocated, cuda
from .measurement import SEEN, CallTally, Measurement
from .measurements import Measurements
from .process import tell
from .quiet import QUIET_MONITOR

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Iterator
    from functools import cached_property
    from types import TracebackType
    from typing import Any, Protocol, TypeVar, overload

    from typing_extensions import Self

    from .ledger import Ledger, Window
    from .monitor import Monitor

    F = TypeVar("F", bound="Callable[..., Any] | classmethod[Any, Any, Any] | property | cached_property[Any]")

    class Section(Protocol):
        """A context manager that can be paused, which a generator does while its consumer runs."""

        def __enter__(self) -> object: ...

        def __exit__(
            self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None, /
        ) -> None: ...

        def pause(self) -> None:
            """Pause: a generator has yielded."""

        def go_on(self) -> None:
            """Resume."""

    Start = Callable[[], Section]


_EVERY = Measurements()
# the current `with` blocks of a thread or of a task of an event loop
_inside: ContextVar[tuple[Timing, ...]] = ContextVar("gpulse_measures", default=())
os.register_at_fork(after_in_child=_EVERY.start_over)


def measurements() -> Measurements:
    """Return the totals of all measurements of this process so far by name; printing them gives a table."""
    return _EVERY


class Measure:
    """Measures the code inside a `with`, and may be used repeatedly; see `measure`. Nested and concurrent uses are independent.

    Without a name, each function it decorates is measured under its own.
    """

    def __init__(self, name: str | None, sync: bool, show: bool, reset_peak: bool) -> None:
        self._named = name is not None
        self.name = "measure" if name is None else name
        self._sync = sync
        self._show = show
        self._reset_peak = reset_peak
        self._open: dict[Timing, None] = {}  # the last one last

    def __enter__(self) -> Measurement:
        timing = self.timing().__enter__()
        self._open[timing] = None
        _inside.set((*_inside.get(), timing))
        return timing.measurement

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        # a block may end in another thread or task than it began, as in web frameworks: then it is the last one
        here = [timing for timing in _inside.get() if timing in self._open]
        timing = here[-1] if here else next(reversed(self._open), None)
        if timing is not None:
            del self._open[timing]
            _inside.set(tuple(one for one in _inside.get() if one is not timing))
            timing.__exit__(kind, error, trace)

    def __call__(self, function: F) -> F:
        named = self if self._named else Measure(name_of(function), self._sync, self._show, self._reset_peak)
        measured: F = decorated(function, named.timing)
        return measured

    def timing(self) -> Timing:
        """Return a new measurement to start, for wrappers whose calls overlap."""
        return Timing(self.name, self._sync, self._show, self._reset_peak)


class Timing:
    """A measurement in progress; a context manager. A generator that is closed early has not failed.

    One `in_background` changes nothing for anybody else: the monitor keeps its interval, and the totals do not count it.
    """

    def __init__(
        self,
        name: str,
        sync: bool,
        show: bool,
        reset_peak: bool,
        tally: type[CallTally] = CallTally,
        in_background: bool = False,
    ) -> None:
        self.measurement = Measurement(name)
        self._tally = tally
        self._sync = sync
        self._show = show
        self._reset = reset_peak
        self._in_background = in_background
        self._monitor: Monitor | None = None
        self._ledger: Ledger | None = None
        self._window: Window | None = None
        self._memory: tuple[int, int, int] | None = None
        self._cuda: Any = None
        self._inside = 0.0
        self._entered: float | None = None

    def __enter__(self) -> Self:
        self._cuda = cuda()
        if self._cuda is not None:
            if self._sync:
                self._cuda.synchronize()
            if self._reset:
                self._cuda.reset_peak_memory_stats()
            self._memory = allocated(self._cuda)
        self._monitor, self._ledger = _ledger()
        if self._ledger is not None and self._monitor is not None:
            if not self._in_background:
                self._monitor.hasten(self.measurement.name)
            self._window = self._ledger.open(self._tally, self.measurement.complete, self.measurement.name)
        self._cpu = time.process_time()
        self._start = time.perf_counter()
        self._entered = self._start
        return self

    def pause(self) -> None:
        """Pause the time spent inside: a generator has yielded."""
        if self._entered is not None:
            self._inside += time.perf_counter() - self._entered
            self._entered = None

    def go_on(self) -> None:
        """Resume the time spent inside."""
        self._entered = time.perf_counter()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        try:
            if self._cuda is not None and self._sync:
                self._cuda.synchronize()
        except Exception as late:  # an error of the program's own kernels, which is told only now
            self._end(type(late))
            if kind is None:
                raise
        else:
            self._end(kind)

    def _end(self, kind: type[BaseException] | None) -> None:
        """Note what is known now; GPU values are added when the last sample has arrived."""
        self.pause()
        measurement = self.measurement
        measurement.elapsed = time.perf_counter() - self._start
        measurement.seconds = self._inside
        measurement.cpu_seconds = time.process_time() - self._cpu
        measurement.failed = kind is not None and kind is not GeneratorExit
        measurement.interrupted = kind is not None and issubclass(kind, KeyboardInterrupt)
        if self._cuda is not None and self._memory is not None and (after := allocated(self._cuda)) is not None:
            measurement.torch_net = after[0] - self._memory[0]
            measurement.torch_held_net = after[2] - self._memory[2]
            if self._reset or after[1] > self._memory[1]:
                measurement.torch_peak = after[1]
            measurement.torch_peak_limit = after[1]
        if not self._in_background:
            _EVERY.add(measurement)
            measurement.then(_EVERY.complete)
        if self._show:
            measurement.then(tell)
        # not after the monitor has stopped, and not in a forked child
        if self._window is not None and self._ledger is not None and self._monitor_is_at_work():
            if measurement.elapsed >= SEEN:
                self._ledger.close(self._window)
                return
            self._ledger.drop(self._window)
        measurement.complete()

    def _monitor_is_at_work(self) -> bool:
        return self._monitor is not None and self._monitor.ledger is self._ledger


if TYPE_CHECKING:

    @overload
    def measure(name: F, *, sync: bool = ..., show: bool = ..., reset_peak: bool = ...) -> F: ...
    @overload
    def measure(name: str | None = ..., *, sync: bool = ..., show: bool = ..., reset_peak: bool = ...) -> Measure: ...


def measure(name: Any = None, *, sync: bool = False, show: bool = True, reset_peak: bool = False) -> Any:
    """Measure a piece of code: `with measure("load") as m:`, `@measure`, or `@measure("load", sync=True)`.

    Measures time, CPU, memory of this program and of torch's allocator, utilization, SM activity and energy of the GPUs this program
    uses. A line is printed to stderr shortly after the end, unless `show=False`. The measurement is an object whose GPU values are
    available about 0.1 s after the end, energy after at most 1 s; reading one waits for it. `sync=True` synchronizes with the GPU
    before and after. torch's peak is known only if the call set a new one, unless `reset_peak=True` resets torch's statistics first.
    Works with functions, methods of every kind, coroutines and generators; the seconds of a generator are those spent inside it.
    Works in every process, whatever its rank, for the GPUs that process can see.
    """
    if name is None or isinstance(name, str):
        return Measure(name, sync, show, reset_peak)
    if can_decorate(name):
        return Measure(None, sync, show, reset_peak)(name)
    raise TypeError(f"measure takes a name or a function, not {type(name).__name__}")


def _ledger() -> tuple[Monitor | None, Ledger | None]:
    """Return the monitor to sample with and its ledger."""
    found = QUIET_MONITOR.sampling()
    if found is None or (ledger := found.ledger) is None:  # another thread may have stopped it in the meantime
        return None, None
    ledger.charge = _EVERY.charge
    return found, ledger


def name_of(function: Any) -> str:
    """Return the name of what is decorated, as the program calls it: `Model.forward`."""
    inner = getattr(function, "__func__", None) or getattr(function, "fget", None) or getattr(function, "func", None)
    found = getattr(function, "__qualname__", None) or getattr(inner, "__qualname__", None)
    return str(found or type(function).__name__)


def can_decorate(function: Any) -> bool:
    """Return whether `decorated` takes this: a callable, or what the decorators of methods return."""
    return callable(function) or isinstance(function, (classmethod, property, functools.cached_property))


def decorated(function: Any, start: Start) -> Any:
    """Return the function inside sections, of the same kind: plain, async, generator, async generator, or a kind of method.

    `start` makes the section of one call. Of a property, only reading it is decorated.
    """
    if isinstance(function, (staticmethod, classmethod)):
        return type(function)(decorated(function.__func__, start))
    if isinstance(function, property):
        return function if function.fget is None else function.getter(decorated(function.fget, start))
    if isinstance(function, functools.cached_property):
        return type(function)(decorated(function.func, start))
    if inspect.isasyncgenfunction(function):
        wrapper: Any = _async_generator(function, start)
    elif inspect.iscoroutinefunction(function):
        wrapper = _coroutine(function, start)
    elif inspect.isgeneratorfunction(function):
        wrapper = _generator(function, start)
    else:
        wrapper = _plain(function, start)
    return functools.wraps(function)(wrapper)


def _plain(function: Callable[..., Any], start: Start) -> Callable[..., Any]:
    def call(*arguments: Any, **named: Any) -> Any:
        with start():
            return function(*arguments, **named)

    return call


def _coroutine(function: Callable[..., Any], start: Start) -> Callable[..., Any]:
    async def call(*arguments: Any, **named: Any) -> Any:
        with start():
            return await function(*arguments, **named)

    return call


def _generator(function: Callable[..., Any], start: Start) -> Callable[..., Iterator[Any]]:
    def call(*arguments: Any, **named: Any) -> Any:
        with (section := start()):
            inner = function(*arguments, **named)
            go_on = functools.partial(inner.send, None)
            try:
                while True:
                    value = go_on()
                    section.pause()
                    try:
                        go_on = functools.partial(inner.send, (yield value))
                    except GeneratorExit:
                        section.go_on()
                        inner.close()
                        raise
                    except BaseException as error:  # noqa: BLE001  # passed on to the generator
                        go_on = functools.partial(inner.throw, error)
                    section.go_on()
            except StopIteration as end:
                return end.value

    return call


def _async_generator(function: Callable[..., Any], start: Start) -> Callable[..., AsyncIterator[Any]]:
    async def call(*arguments: Any, **named: Any) -> AsyncIterator[Any]:
        with (section := start()):
            inner = function(*arguments, **named)
            going = inner.asend(None)
            try:
                while True:
                    value = await going
                    section.pause()
                    try:
                        sent = yield value
                        going = inner.asend(sent)
                    except GeneratorExit:
                        section.go_on()  # closing it takes time inside of it
                        raise
                    except BaseException as error:  # noqa: BLE001  # passed on to the generator
                        going = inner.athrow(error)
                    section.go_on()
            except StopAsyncIteration:
                pass
            finally:
                await inner.aclose()

    return call
