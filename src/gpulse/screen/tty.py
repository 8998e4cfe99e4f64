"""The terminal: in raw mode while the screen is open and always restored; its bytes as keys and mouse events."""

from __future__ import annotations

import os
import re
import select
import signal
import termios
import tty
from codecs import getincrementaldecoder

from ..present.theme import answered_background
from ..value import Value

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


_NAMED = {
    "\x1b[A": "up", "\x1b[B": "down", "\x1b[C": "right", "\x1b[D": "left",
    "\x1bOA": "up", "\x1bOB": "down", "\x1bOC": "right", "\x1bOD": "left",
    "\x1b[H": "home", "\x1b[F": "end", "\x1bOH": "home", "\x1bOF": "end",
    "\x1b[1~": "home", "\x1b[4~": "end", "\x1b[7~": "home", "\x1b[8~": "end",
    "\x1b[5~": "pageup", "\x1b[6~": "pagedown", "\x1b[2~": "insert", "\x1b[3~": "delete", "\x1b[Z": "backtab",
    "\x1bOP": "f1", "\x1bOQ": "f2", "\x1bOR": "f3", "\x1bOS": "f4",
    "\x1b[[A": "f1", "\x1b[[B": "f2", "\x1b[[C": "f3", "\x1b[[D": "f4", "\x1b[[E": "f5",
    "\x1b[11~": "f1", "\x1b[12~": "f2", "\x1b[13~": "f3", "\x1b[14~": "f4", "\x1b[15~": "f5",
    "\x1b[17~": "f6", "\x1b[18~": "f7", "\x1b[19~": "f8", "\x1b[20~": "f9", "\x1b[21~": "f10", "\x1b[24~": "f12",
    "\r": "enter", "\n": "enter", "\t": "tab", "\x7f": "backspace", "\x08": "backspace", "\x1b": "escape", " ": "space",
}  # fmt: skip
_MOUSE = re.compile(r"\x1b\[<([0-9]{1,5});([0-9]{1,5});([0-9]{1,5})([Mm])")
_ANSWER = re.compile(r"\x1b\]([^\x07\x1b]{0,99})(?:\x07|\x1b\\)")  # of the terminal to a query
_SEQUENCE = re.compile(
    _ANSWER.pattern + r"|\x1b(?:\[<[0-9;]*[Mm]|\[\[[A-E]|\[[0-9;?]*[ -/]*[@-Z\\-~]|O[ -~]|[^\[\]O\x1b])"
)
_UNFINISHED = re.compile(r"\x1b(?:\[<[0-9;]*|\[\[?|\[[0-9;?]*[ -/]*|O|\][^\x07\x1b]{0,99}\x1b?)?$")


class KeyEvent(Value, frozen=True):
    """A key by name (`up`, `f5`, `ctrl-l`, `a`), or with `mouse` press, release, drag, wheelup or wheeldown at a cell.

    The key `dark-background` or `light-background` is the terminal's answer to the query for its background.
    """

    key: str = ""
    mouse: str = ""
    column: int = 0
    row: int = 0

    def __repr__(self) -> str:
        return f"KeyEvent({self.mouse}@{self.column},{self.row})" if self.mouse else f"KeyEvent({self.key})"


class Keyboard:
    """Parses bytes into events; an incomplete sequence is kept until the rest arrives or `flush` is called."""

    def __init__(self) -> None:
        self._decoder = getincrementaldecoder("utf-8")("replace")  # a character may be split between two reads
        self._text = ""

    @property
    def waiting(self) -> bool:
        """Whether an incomplete sequence is kept; flush it after about 25 ms without input."""
        return bool(self._text)

    def feed(self, data: bytes) -> list[KeyEvent]:
        """Add bytes and return the complete events."""
        self._text += self._decoder.decode(data)
        return self._take(False)

    def flush(self) -> list[KeyEvent]:
        """Return the kept bytes as single keys: a lone Esc."""
        return self._take(True)

    def _take(self, final: bool) -> list[KeyEvent]:
        events: list[KeyEvent] = []
        while self._text:
            if self._text[0] != "\x1b":
                events.append(KeyEvent(_key(self._text[0])))
                self._text = self._text[1:]
            elif found := _SEQUENCE.match(self._text):
                events += _sequence(found[0])
                self._text = self._text[found.end() :]
            elif _UNFINISHED.match(self._text) and not final:
                break
            elif self._text.startswith("\x1b]11;"):
                self._text = ""  # half an answer of the terminal, never typed by a person
            else:
                events.append(KeyEvent("escape"))
                self._text = self._text[1:]
        return events


def _key(char: str) -> str:
    if char in _NAMED:
        return _NAMED[char]
    return f"ctrl-{chr(ord(char) + 96)}" if ord(char) < 27 else char


def _sequence(text: str) -> list[KeyEvent]:
    if found := _ANSWER.fullmatch(text):
        background = answered_background(found[1])
        return [KeyEvent(f"{background}-background")] if background else []
    if found := _MOUSE.fullmatch(text):
        return _mouse(int(found[1]), int(found[2]) - 1, int(found[3]) - 1, found[4] == "M")
    if text in _NAMED:
        return [KeyEvent(_NAMED[text])]
    if len(text) == 2:
        return [KeyEvent("escape"), KeyEvent(_key(text[1]))]  # Alt and a letter, or Esc typed just before it
    return []  # an unknown sequence is ignored


def _mouse(button: int, column: int, row: int, pressed: bool) -> list[KeyEvent]:
    if button & 64:
        return [KeyEvent(mouse="wheeldown" if button & 1 else "wheelup", column=column, row=row)] if pressed else []
    if button & 3 == 3 and not button & 32:
        return []
    kind = "drag" if button & 32 else "press" if pressed else "release"
    return [KeyEvent(mouse=kind, column=column, row=row)] if button & 3 == 0 else []
