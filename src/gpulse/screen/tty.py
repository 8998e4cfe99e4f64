"""The terminal: in raw mode while the screen is open, and always restored."""

from __future__ import annotations

import os
import select
import signal
import termios
import tty

TYPE_CHECKING = False
if TYPE_CHECKING:
    from types import FrameType
    from typing import Any

_ENTER = "\x1b[?1049h\x1b[?25l\x1b[?7l\x1b[?1000h\x1b[?1002h\x1b[?1006h"  # alternate screen, no cursor, no wrap, mouse
_LEAVE = "\x1b[?1006l\x1b[?1002l\x1b[?1000l\x1b[?7h\x1b[?25h\x1b[0m\x1b[?1049l"


class Tty:
    """A terminal in raw mode; use it in a `with`. Signals become bytes in `wake`, read by `wait`."""

    def __init__(self, source: int, target: int) -> None:
        self._in = source
        self._out = _own(target)
        self._saved: list[Any] = []
        self._handlers: dict[int, Any] = {}
        self._reader, self._writer = os.pipe()
        for end in (self._reader, self._writer):
            os.set_blocking(end, False)
        self._pending = b""
        self.signals: set[int] = set()

    def __enter__(self) -> Tty:
        for number in (signal.SIGWINCH, signal.SIGTERM, signal.SIGINT, signal.SIGTSTP, signal.SIGCONT, signal.SIGHUP):
            self._handlers[number] = signal.signal(number, self._note)
        self._take_over()
        return self

    def __exit__(self, *failure: object) -> None:
        self._give_back()
        for number, handler in self._handlers.items():
            signal.signal(number, handler)
        for end in (self._reader, self._writer, self._out):
            os.close(end)

    def wake(self) -> None:
        """Make `wait` return; may be called from any thread and from signal handlers."""
        try:
            os.write(self._writer, b"w")
        except OSError:
            pass  # the pipe is full, so it will wake up anyway

    def wait(self, timeout: float | None) -> bytes:
        """Wait for input, a signal or a wake-up; return the input, which may be empty."""
        writers = [self._out] if self._pending else []
        ready, free, _ = select.select([self._in, self._reader], writers, [], timeout)
        if free:
            self._drain()
        if self._reader in ready:
            os.read(self._reader, 4096)
        if self._in not in ready:
            return b""
        try:
            data = os.read(self._in, 4096)
        except OSError:  # EIO: the other end was closed
            data = b""
        if not data:
            self.signals.add(signal.SIGHUP)  # the terminal is gone
        return data

    @property
    def busy(self) -> bool:
        """Whether the terminal has not accepted the last frame yet; then the next one is skipped, not queued."""
        return bool(self._pending)

    def write(self, text: str) -> None:
        """Write a frame; what the terminal does not accept now is sent later."""
        self._pending += text.encode("utf-8", "replace")
        self._drain()

    def size(self) -> tuple[int, int]:
        """Return columns and rows, at least one of each."""
        try:
            found = os.get_terminal_size(self._out)
        except OSError:
            return 80, 24
        return max(1, found.columns), max(1, found.lines)

    def suspend(self) -> None:
        """Restore the terminal and stop, for Ctrl-Z; returns when continued, with the terminal in raw mode again."""
        self._give_back()
        signal.signal(signal.SIGTSTP, signal.SIG_DFL)
        os.kill(os.getpid(), signal.SIGTSTP)
        signal.signal(signal.SIGTSTP, self._note)
        self._take_over()

    def _take_over(self) -> None:
        self._saved = termios.tcgetattr(self._in)
        tty.setcbreak(self._in)
        self.write(_ENTER)

    def _give_back(self) -> None:
        self._pending = b""
        try:
            os.set_blocking(self._out, True)
            os.write(self._out, _LEAVE.encode())
            os.set_blocking(self._out, False)
            termios.tcsetattr(self._in, termios.TCSADRAIN, self._saved)
        except (OSError, termios.error):
            pass  # the terminal is gone: nothing to restore

    def _drain(self) -> None:
        while self._pending:
            try:
                self._pending = self._pending[os.write(self._out, self._pending) :]
            except BlockingIOError:
                return
            except OSError:
                self._pending = b""
                self.signals.add(signal.SIGHUP)  # the terminal is gone

    def _note(self, number: int, frame: FrameType | None) -> None:
        self.signals.add(number)
        self.wake()


def _own(target: int) -> int:
    """Reopen the terminal for writing, so that non-blocking mode does not affect the shell's descriptor."""
    try:
        return os.open(os.ttyname(target), os.O_WRONLY | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC)
    except OSError:
        return os.dup(target)
