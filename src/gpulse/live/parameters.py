"""Parameters of questions, declared once: these lines check them, and the OpenAPI document is made from them; and refusals of questions."""

from __future__ import annotations

import re
import time
from http import HTTPStatus
from math import isfinite

from ..errors import RecordingError, UsageError
from ..model.codec import parse_time
from ..units import parse_duration
from ..value import Value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from typing import Any

TIME_FORMS = "Seconds since 1970 (UTC), a duration before now (-1h), `now`, or RFC 3339."
_LONGEST = 64  # words in a list
_LATEST = 1e11  # seconds since 1970
_DATE = re.compile(r"\d{4}-\d\d-\d\d[Tt][0-9:.]{5,25}([Zz]|[+ -]\d\d:\d\d)$", re.ASCII)
_SPACE = re.compile(r" (\d\d:\d\d)$", re.ASCII)


class Refusal(Exception):
    """A question that gets an error for an answer: `status` of HTTP, `detail` in a sentence."""

    def __init__(self, status: int, detail: str, headers: Mapping[str, str] | None = None) -> None:
        super().__init__(detail)
        self.status = status
        self.detail = detail
        self.headers = headers

    def to_plain(self) -> dict[str, Any]:
        """Return the error as RFC 9457 has it."""
        title = HTTPStatus(self.status).phrase
        return {"type": "about:blank", "title": title, "status": self.status, "detail": self.detail}


class Parameter(Value):
    """One parameter of a query: its name, what it means, its JSON schema, how its text is read (raising ValueError), and its default."""

    name: str
    help: str
    schema: Mapping[str, Any]
    read: Callable[[str], Any]
    default: Any = None
    listed: bool = False

    def value(self, texts: Mapping[str, str]) -> Any:
        """Return the value that was given, else the default; raise Refusal when it is none of those allowed."""
        text = texts.get(self.name)
        if text is None:
            return self.default
        try:
            return self.read(text)
        except ValueError as error:
            raise Refusal(422, f"{self.name}: {error}") from None

    def to_openapi(self) -> dict[str, Any]:
        """Return the entry of the OpenAPI document."""
        plain = {"name": self.name, "in": "query", "required": False, "description": self.help, "schema": self.schema}
        return plain | ({"style": "form", "explode": False} if self.listed else {})


def read(parameters: Sequence[Parameter], texts: Mapping[str, str]) -> dict[str, Any]:
    """Return the value of every parameter by name; raise Refusal for a value that is not allowed and for a name nobody knows.

    A name that is ignored is a question that was misread: `form=` for `from=`.
    """
    names = [parameter.name for parameter in parameters]
    for name in texts:
        if name not in names:
            known = f"this path takes {', '.join(names)}." if names else "this path has no parameters."
            raise Refusal(422, f"unknown parameter {name[:40]!r}; {known}")
    return {parameter.name: parameter.value(texts) for parameter in parameters}


def timestamp(name: str, help: str) -> Parameter:
    """Return a parameter that is a time: seconds since 1970, a duration before now, or RFC 3339."""
    schema = {
        "anyOf": [
            {"type": "number", "minimum": 0, "maximum": _LATEST, "format": "unixtime"},
            {"type": "string", "pattern": "^-[0-9]{1,9}(ms|s|m|h|d)$"},
            {"const": "now"},
            {"type": "string", "format": "date-time"},
        ]
    }
    return Parameter(name, f"{help} {TIME_FORMS}", schema, _timestamp)


def _timestamp(text: str) -> float:
    if text == "now":
        return time.time()
    if text.startswith("-"):
        try:
            if text[-1].isdigit():
                raise UsageError("a number alone could be meant as seconds since 1970")
            return max(0.0, time.time() - parse_duration(text[1:64]))
        except UsageError:
            raise ValueError(f"{text[:40]!r} is not a duration; write it as -30m, -1h or -7d.") from None
    if _DATE.match(text):
        try:
            # a plus sign that was not encoded arrives as a space
            return min(_LATEST, max(0.0, parse_time(_SPACE.sub(r"+\1", text))))
        except RecordingError:
            raise ValueError(f"{text[:40]!r} is not a time; write it as 2026-11-15T06:00:00Z.") from None
    return _number(text, 0.0, _LATEST)


def count(name: str, help: str, low: int, high: int, default: int | None = None) -> Parameter:
    """Return a parameter that is a whole number between two bounds, both allowed."""

    def read(text: str) -> int:
        number = _number(text, low, high)
        if number != int(number):
            raise ValueError(f"{text[:40]!r} is not an integer.")
        return int(number)

    return Parameter(name, help, {"type": "integer", "minimum": low, "maximum": high}, read, default)


def choice(name: str, help: str, words: Sequence[str], default: str = "") -> Parameter:
    """Return a parameter that is one of some words."""

    def read(text: str) -> str:
        if text not in words:
            raise ValueError(f"unknown value {text[:60]!r}; choose one of {', '.join(words)}.")
        return text

    return Parameter(name, help, {"enum": list(words)}, read, default)


def text(name: str, help: str, longest: int) -> Parameter:
    """Return a parameter that is any text of limited length."""

    def read(given: str) -> str:
        if len(given) > longest:
            raise ValueError(f"at most {longest} characters are allowed.")
        return given

    return Parameter(name, help, {"type": "string", "maxLength": longest}, read, "")


def words(
    name: str,
    help: str,
    item: Mapping[str, Any],
    known: Callable[[str], bool] = lambda word: True,
    default: Sequence[str] | None = None,
) -> Parameter:
    """Return a parameter that is a list of words with commas between; `item` is the schema of one, `known` tells what is one."""

    def read(text: str) -> list[str]:
        found = text.split(",")
        if len(found) > _LONGEST:
            raise ValueError(f"at most {_LONGEST} values are allowed.")
        for word in found:
            if not known(word):
                raise ValueError(f"unknown value {word[:60]!r}.")
        return list(dict.fromkeys(found))

    schema = {"type": "array", "items": item, "minItems": 1, "maxItems": _LONGEST}
    return Parameter(name, help, schema, read, default, listed=True)


def _number(text: str, low: float, high: float) -> float:
    try:
        number = float(text) if len(text) < 64 and text.isascii() and "_" not in text else float("nan")
    except ValueError:
        number = float("nan")
    if not isfinite(number):
        raise ValueError(f"{text[:40]!r} is not a number.")
    if not low <= number <= high:
        raise ValueError(f"{text[:40]!r} is not between {low:g} and {high:g}.")
    return number
