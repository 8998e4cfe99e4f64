"""Bell and log: a sound from a terminal, and a line on stderr."""

from __future__ import annotations

import os

from .delivery import Delivery, Failed

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from ..analysis.alerts import Notice


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
