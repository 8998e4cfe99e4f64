"""The filter language: words that a process must match, also while the filter is being typed.

python            user, name, command, container or job contains the text
user:ada job=17   one field contains the text, or equals it with =; also name command container pod job
gpu:0,2-3 gpu:1:2 on one of these GPUs, or on an instance of one
pid:12 type:C     this process; this way of using the GPU
mem>1G sm>=50     comparison with a size, duration or percentage; also bw enc dec cpu tree host time children
!word -word       negation; quoted text may contain spaces and is always plain text
"""

from __future__ import annotations

from ...errors import UsageError
from ...model.catalog import Process
from ...units import BYTES, SECOND, parse_duration, parse_size

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator
    from typing import TypeAlias

    from .processes import ProcessRow

    Test: TypeAlias = Callable[[ProcessRow], bool]

_SHORT = {
    "mem": "memory_used",
    "sm": "sm_utilization",
    "bw": "memory_utilization",
    "enc": "encoder_utilization",
    "dec": "decoder_utilization",
    "cpu": "cpu_percent",
    "tree": "tree_cpu_percent",
    "host": "host_memory",
    "ram": "host_memory",
    "time": "running_time",
    "cmd": "command",
}
_TEXTS = ("user", "name", "command", "container", "pod", "job")
_NUMBERS = {metric.key: metric.unit for metric in Process.metrics() if metric.key not in (*_TEXTS, "type")}
_FIELDS = ("gpu", "type", *_TEXTS, *_NUMBERS)
_OPERATORS = (">=", "<=", "!=", "==", ">", "<", "=", ":")  # longer ones first
_QUOTES = "\"'"


class Find:
    """A filter of words that must all match. Any text is valid: an unknown word is searched as plain text.

    `note` describes what was not understood, or is empty. A missing value matches no comparison.
    """

    __slots__ = ("_plain", "_tests", "note", "text")

    def __init__(self, text: str) -> None:
        self.text = text
        notes: list[str] = []
        self._plain: list[tuple[str, bool]] = []  # text to find, and whether it must or must not be found
        self._tests: list[tuple[Test, bool]] = []
        for word, literal, right in _words(text):
            try:
                test = None if literal else _test(word)
            except UsageError as error:
                notes.append(error.message.rstrip(";"))
                test = None
            if test is None:
                self._plain.append((word.lower(), right))
            else:
                self._tests.append((test, right))
        self.note = "; ".join(notes)

    def __bool__(self) -> bool:
        return bool(self._plain or self._tests)

    def fits(self, row: ProcessRow) -> bool:
        """Return whether a process matches every word."""
        for test, right in self._tests:
            if test(row) is not right:
                return False
        if not self._plain:
            return True
        text = _haystack(row)
        for word, right in self._plain:  # noqa: SIM110  # a loop is twice as fast as all() here, 5,000 times a sample
            if (word in text) is not right:
                return False
        return True

    def apply(self, rows: Iterable[ProcessRow]) -> list[ProcessRow]:
        """Return the matching rows, in their order."""
        fits = self.fits
        return [row for row in rows if fits(row)] if self else list(rows)


def _haystack(row: ProcessRow) -> str:
    get = row.process.get
    parts = (get("user"), get("name"), get("command"), get("container"), get("job"))
    return "\n".join(
        [str(part) for part in parts if part]
    ).lower()  # the line feed keeps a word from matching across two


def _words(text: str) -> Iterator[tuple[str, bool, bool]]:
    """Yield the words: the text without quotes, whether it was quoted, and whether it must or must not be found."""
    at, end = 0, len(text)
    while at < end:
        if text[at].isspace():
            at += 1
            continue
        right = not (text[at] in "!-" and at + 1 < end and not text[at + 1].isspace())
        at += not right
        literal = text[at] in _QUOTES
        word, at = _word(text, at)
        if word:
            yield word, literal, right


def _word(text: str, at: int) -> tuple[str, int]:
    """Parse one word from a position; an unclosed quote extends to the end."""
    word, quote = "", ""
    while at < len(text) and (quote or not text[at].isspace()):
        char = text[at]
        at += 1
        if char == quote:
            quote = ""
        elif not quote and char in _QUOTES:
            quote = char
        else:
            word += char
    return word, at


def _test(word: str) -> Test | None:
    """Return the test for a word, None for plain text; raise UsageError for a malformed comparison."""
    name, operator, value = _split(word)
    if not operator or not name.replace("_", "").isalpha():
        return None
    key = _SHORT.get(name, name)
    if key not in _FIELDS:
        raise UsageError(f"unknown field {name!r}")
    if not value:
        raise UsageError(f"{word!r} is incomplete")
    if operator in ("!=", "=="):
        test = _field(key, "=", value)
        return test if operator == "==" else lambda row: not test(row)
    return _field(key, operator, value)


def _split(word: str) -> tuple[str, str, str]:
    places = [at for sign in ":=<>!" if (at := word.find(sign)) > 0]
    if places:
        at = min(places)
        for operator in _OPERATORS:
            if word.startswith(operator, at):
                return word[:at].lower(), operator, word[at + len(operator) :]
    return word, "", ""


def _field(key: str, operator: str, value: str) -> Test:
    if key in _NUMBERS and key != "pid":
        return _compared(key, operator, _number(key, value))
    if operator not in ":=":
        if key != "pid":
            raise UsageError(f"{key!r} cannot be compared with {operator}")
        return _compared(key, operator, _number(key, value))
    if key == "gpu":
        return _placed(value)
    if key == "pid":
        pids = {_whole(part) for part in value.split(",") if part}
        return lambda row: row.pid in pids
    lowered = value.lower()
    if key == "type":
        kinds = frozenset(lowered.replace("+", ",").split(","))
        return lambda row: not kinds.isdisjoint(str(row.process.get("type") or "").lower().split("+"))
    if operator == "=":
        return lambda row: str(row.process.get(key) or "").lower() == lowered
    return lambda row: lowered in str(row.process.get(key) or "").lower()


def _number(key: str, text: str) -> float:
    unit = _NUMBERS[key]
    if unit is BYTES:
        return parse_size(text)
    if unit is SECOND:
        return parse_duration(text)
    try:
        return float(text.removesuffix("%"))
    except ValueError:
        raise UsageError(f"{text!r} is not a number") from None


def _whole(text: str) -> int:
    if text.isascii() and text.isdecimal() and len(text) < 12:
        return int(text)
    raise UsageError(f"{text!r} is not an integer")


def _compared(key: str, operator: str, limit: float) -> Test:
    from operator import eq, ge, gt, le, lt

    compare = {">": gt, ">=": ge, "<": lt, "<=": le}.get(operator, eq)

    def test(row: ProcessRow) -> bool:
        value = row.process.get(key)
        return isinstance(value, (int, float)) and bool(compare(value, limit))

    return test


def _placed(value: str) -> Test:
    """Parse GPUs: 0, 0-3, 1:2 for an instance, and comma-separated lists; a GPU includes its instances."""
    spans: list[tuple[int, int]] = []
    instances: set[tuple[int, int]] = set()
    for part in value.split(","):
        first, colon, second = part.partition(":")
        low, dash, high = part.partition("-")
        if colon and second:
            instances.add((_whole(first), _whole(second)))
        elif part and part != ":":
            start = _whole(first if colon else low)
            spans.append((start, _whole(high) if dash and high else start))

    def test(row: ProcessRow) -> bool:
        gpu = row.place[0]
        return row.place in instances or any(start <= gpu <= end for start, end in spans)

    return test
