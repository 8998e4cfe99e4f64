"""Decorate a function of any kind, so that each call of it runs inside a section: a measurement or a phase."""

from __future__ import annotations

import functools
import inspect

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Iterator
    from types import TracebackType
    from typing import Any, Protocol

    from typing_extensions import Self

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
            return (yield from _Paused(function(*arguments, **named), section))

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
                        raise
                    except BaseException as error:  # noqa: BLE001  # passed on to the generator
                        going = inner.athrow(error)
                    section.go_on()
            except StopAsyncIteration:
                pass
            finally:
                await inner.aclose()

    return call


class _Paused:
    """A generator whose section is paused while its consumer runs."""

    def __init__(self, generator: Any, section: Section) -> None:
        self._generator = generator
        self._section = section
        self._paused = False  # a section begins with the first step

    def __iter__(self) -> Self:
        return self

    def __next__(self) -> Any:
        return self.send(None)

    def send(self, value: Any) -> Any:
        """Run until the next yield."""
        self._go_on()
        return self._pause(self._generator.send(value))

    def throw(self, *error: Any) -> Any:
        """Raise inside the generator, and run until the next yield."""
        self._go_on()
        return self._pause(self._generator.throw(*error))

    def close(self) -> None:
        """End it early."""
        self._go_on()
        self._generator.close()

    def _go_on(self) -> None:
        if self._paused:
            self._paused = False
            self._section.go_on()

    def _pause(self, result: Any) -> Any:
        self._paused = True
        self._section.pause()
        return result
