"""Keyboard and mouse input: parse a terminal's bytes into events, also if a sequence arrives in two reads."""

from __future__ import annotations

import re

from ..present.terminal import answered_background

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


class KeyEvent:
    """A key by name (`up`, `f5`, `ctrl-l`, `a`), or with `mouse` press, release, drag, wheelup or wheeldown at a cell.

    The key `dark-background` or `light-background` is the terminal's answer to the query for its background.
    """

    __slots__ = ("column", "key", "mouse", "row")

    def __init__(self, key: str = "", mouse: str = "", column: int = 0, row: int = 0) -> None:
        self.key = key
        self.mouse = mouse
        self.column = column
        self.row = row

    def __eq__(self, other: object) -> bool:
        return isinstance(other, KeyEvent) and all(
            getattr(self, name) == getattr(other, name) for name in self.__slots__
        )

    def __hash__(self) -> int:
        return hash((self.key, self.mouse, self.column, self.row))

    def __repr__(self) -> str:
        return f"KeyEvent({self.key or self.mouse}@{self.column},{self.row})" if self.mouse else f"KeyEvent({self.key})"


class Keyboard:
    """Parses bytes into events; an incomplete sequence is kept until the rest arrives or `flush` is called."""

    def __init__(self) -> None:
        self._bytes = b""
        self._text = ""

    @property
    def waiting(self) -> bool:
        """Whether an incomplete sequence is kept; flush it after about 25 ms without input."""
        return bool(self._text)

    def feed(self, data: bytes) -> list[KeyEvent]:
        """Add bytes and return the complete events."""
        self._bytes += data
        whole = self._bytes.decode("utf-8", "ignore")
        tail = len(self._bytes) - _complete(self._bytes)
        whole = self._bytes[: len(self._bytes) - tail].decode("utf-8", "replace")
        self._bytes = self._bytes[len(self._bytes) - tail :]
        self._text += whole
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


def _complete(data: bytes) -> int:
    """Return how many bytes form complete characters: a UTF-8 character may be split between two reads."""
    for back in range(1, min(4, len(data)) + 1):
        byte = data[-back]
        if byte >= 0xC0:
            needed = 2 if byte < 0xE0 else 3 if byte < 0xF0 else 4
            return len(data) - back if needed > back else len(data)
        if byte < 0x80:
            break
    return len(data)


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
