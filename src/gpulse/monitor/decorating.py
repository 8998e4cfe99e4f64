"""Decorate a function of any kind, so that each call of it runs inside a section: a measurement or a phase."""

from __future__ import annotations

import functools
import inspect

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Iterator
    from types import TracebackType
    from typing import Any, Protocol

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
                        raise
                    except BaseException as error:  # noqa: BLE001  # passed on to the generator
                        going = inner.athrow(error)
                    section.go_on()
            except StopAsyncIteration:
                pass
            finally:
                await inner.aclose()

    return call
