"""measure: measure a piece of code, as a context manager or as a decorator of any kind of function."""

from __future__ import annotations

import functools
import inspect
import os
import sys
import threading
import time
from contextvars import ContextVar

from ..sources.registry import changed
from ..torch import allocated, cuda
from . import monitor as monitors
from .measurement import SEEN, CallTally, Measurement
from .measurements import Measurements

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Iterator
    from types import TracebackType
    from typing import Any, TypeVar, overload

    from typing_extensions import Self

    from .ledger import Ledger, Window
    from .monitor import Monitor

    F = TypeVar("F", bound=Callable[..., Any])

_EVERY = Measurements()
_lock = threading.Lock()
# the current `with` blocks of a thread or of a task of an event loop
_inside: ContextVar[tuple[tuple[Measure, Timing], ...]] = ContextVar("gpulse_measures", default=())


os.register_at_fork(after_in_child=_EVERY.unlock)
_quiet: list[Monitor] = []  # the one started here because no other ran


def measurements() -> Measurements:
    """Return the totals of all measurements so far by name; printing them gives a table."""
    return _EVERY


class Measure:
    """Measures the code inside a `with`, and may be used repeatedly; see `measure`. Nested and concurrent uses are independent."""

    def __init__(self, name: str, sync: bool, show: bool, reset_peak: bool, tally: type[CallTally] = CallTally) -> None:
        self.name = name
        self._sync = sync
        self._show = show
        self._reset_peak = reset_peak
        self._tally = tally

    def __enter__(self) -> Measurement:
        timing = self.timing().__enter__()
        _inside.set((*_inside.get(), (self, timing)))
        return timing.measurement

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        inside = [*_inside.get()]
        at = max((at for at, (measure, _) in enumerate(inside) if measure is self), default=None)
        if at is not None:
            _, timing = inside.pop(at)
            _inside.set(tuple(inside))
            timing.__exit__(kind, error, trace)

    def __call__(self, function: F) -> F:
        return _wrapped(function, self)

    def timing(self) -> Timing:
        """Return a new measurement to start, for wrappers whose calls overlap."""
        return Timing(self.name, self._sync, self._show, self._reset_peak, self._tally)


class Timing:
    """A measurement in progress; a context manager. A generator that is closed early has not failed."""

    def __init__(self, name: str, sync: bool, show: bool, reset_peak: bool, tally: type[CallTally] = CallTally) -> None:
        self.measurement = Measurement(name)
        self._tally = tally
        self._sync = sync
        self._show = show
        self._reset = reset_peak
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
        self._monitor, self._ledger = _background()
        if self._ledger is not None and self._monitor is not None:
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
        # GPU values are added when the last sample has arrived
        if self._cuda is not None and self._sync:
            self._cuda.synchronize()
        self.pause()
        measurement = self.measurement
        measurement.elapsed = time.perf_counter() - self._start
        measurement.seconds = self._inside
        measurement.cpu_seconds = time.process_time() - self._cpu
        measurement.failed = kind is not None and kind is not GeneratorExit
        if self._cuda is not None and self._memory is not None and (after := allocated(self._cuda)) is not None:
            measurement.torch_net = after[0] - self._memory[0]
            measurement.torch_held_net = after[2] - self._memory[2]
            if self._reset or after[1] > self._memory[1]:
                measurement.torch_peak = after[1]
            measurement.torch_peak_limit = after[1]
        _EVERY.add(measurement)
        measurement.then(_EVERY.complete)
        if self._show:
            measurement.then(_print)
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


def measure(
    name: str | Callable[..., Any] | None = None, *, sync: bool = False, show: bool = True, reset_peak: bool = False
) -> Any:
    """Measure a piece of code: `with measure("load") as m:`, `@measure`, or `@measure("load", sync=True)`.

    Measures time, CPU, memory of the device, of this process and of torch's allocator, utilization, SM activity and energy of the
    GPUs this process uses. A line is printed to stderr shortly after the end, unless `show=False`. The measurement is an object
    whose GPU values are available about 0.1 s after the end; reading one waits for it. `sync=True` synchronizes with the GPU before
    and after. torch's peak is known only if the call set a new one, unless `reset_peak=True` resets torch's statistics first.
    Works with functions, coroutines and generators; the seconds of a generator are those spent inside it.
    """
    if callable(name):
        return _wrapped(name, Measure(_name_of(name), sync, show, reset_peak))
    if name is None:
        return _Unnamed(sync, show, reset_peak)
    return Measure(str(name), sync, show, reset_peak)


class _Unnamed(Measure):
    """A measure with the name of the function it decorates."""

    def __init__(self, sync: bool, show: bool, reset_peak: bool) -> None:
        super().__init__("measure", sync, show, reset_peak)

    def __call__(self, function: F) -> F:
        self.name = _name_of(function)
        return super().__call__(function)


def _name_of(function: Callable[..., Any]) -> str:
    return getattr(function, "__qualname__", None) or type(function).__name__


def _wrapped(function: F, measure: Measure) -> F:
    """Return the measured function, of the same kind: plain, async, generator or async generator."""
    if inspect.isasyncgenfunction(function):
        wrapper: Any = _async_generator(function, measure)
    elif inspect.iscoroutinefunction(function):
        wrapper = _coroutine(function, measure)
    elif inspect.isgeneratorfunction(function):
        wrapper = _generator(function, measure)
    else:
        wrapper = _plain(function, measure)
    return functools.wraps(function)(wrapper)  # type: ignore[return-value]


def _plain(function: Callable[..., Any], measure: Measure) -> Callable[..., Any]:
    def call(*arguments: Any, **named: Any) -> Any:
        with measure.timing():
            return function(*arguments, **named)

    return call


def _coroutine(function: Callable[..., Any], measure: Measure) -> Callable[..., Any]:
    async def call(*arguments: Any, **named: Any) -> Any:
        with measure.timing():
            return await function(*arguments, **named)

    return call


def _generator(function: Callable[..., Any], measure: Measure) -> Callable[..., Iterator[Any]]:
    def call(*arguments: Any, **named: Any) -> Any:
        with measure.timing() as timing:
            return (yield from _Paused(function(*arguments, **named), timing))

    return call


def _async_generator(function: Callable[..., Any], measure: Measure) -> Callable[..., AsyncIterator[Any]]:
    async def call(*arguments: Any, **named: Any) -> AsyncIterator[Any]:
        with measure.timing() as timing:
            inner = function(*arguments, **named)
            going = inner.asend(None)
            try:
                while True:
                    value = await going
                    timing.pause()
                    try:
                        sent = yield value
                        going = inner.asend(sent)
                    except GeneratorExit:
                        raise
                    except BaseException as error:  # noqa: BLE001  # passed on to the generator
                        going = inner.athrow(error)
                    timing.go_on()
            except StopAsyncIteration:
                pass
            finally:
                await inner.aclose()

    return call


class _Paused:
    """A generator whose time counts only while it runs itself, not while its consumer runs."""

    def __init__(self, generator: Any, timing: Timing) -> None:
        self._generator = generator
        self._timing = timing

    def __iter__(self) -> Self:
        return self

    def __next__(self) -> Any:
        return self.send(None)

    def send(self, value: Any) -> Any:
        """Run until the next yield."""
        self._timing.go_on()
        result = self._generator.send(value)
        self._timing.pause()
        return result

    def throw(self, *error: Any) -> Any:
        """Raise inside the generator, and run until the next yield."""
        self._timing.go_on()
        result = self._generator.throw(*error)
        self._timing.pause()
        return result

    def close(self) -> None:
        """End it early."""
        self._timing.go_on()
        self._generator.close()


def _background() -> tuple[Monitor | None, Ledger | None]:
    """Return the monitor to sample with: the running one, else a silent one that is started once."""
    if not monitors.running and not _is_worker():
        with _lock:
            if not monitors.running:
                _quiet[:] = [monitors.Monitor(alerts=False).start()]
    for found in monitors.running[-1:]:  # another thread may have stopped it in the meantime
        if found.samples and (ledger := found.ledger) is not None:
            ledger.charge = _EVERY.charge
            return found, ledger
    return None, None


def _forget_background() -> None:
    """Stop the quiet monitor: it samples a source that is no longer the default."""
    while _quiet:
        _quiet.pop().stop()


changed.append(_forget_background)


def _is_worker() -> bool:
    """Return whether this process is a worker of another, such as a data loader: then only time is measured, not GPUs."""
    processes = sys.modules.get("multiprocessing.process")
    return monitors.forked or (processes is not None and processes.current_process().daemon)


def _print(measurement: Measurement) -> None:
    try:
        sys.stderr.write(f"{measurement}\n")
    except (OSError, ValueError, AttributeError):
        pass
