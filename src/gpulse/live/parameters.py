"""Parameters of questions, declared once: they are checked by these lines, and the OpenAPI document is made from them."""

from __future__ import annotations

from math import isfinite

from .refusal import Refusal

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from typing import Any

_LONGEST = 64  # words in a list


class Parameter:
    """One parameter of a query: its name, what it means, its JSON schema, and how its text is read (raising ValueError)."""

    def __init__(
        self, name: str, help: str, schema: Mapping[str, Any], read: Callable[[str], Any], listed: bool = False
    ) -> None:
        self.name = name
        self.help = help
        self.schema = schema
        self.read = read
        self.listed = listed

    def value(self, texts: Mapping[str, str]) -> Any:
        """Return the value that was given, None when none was; raise Refusal when it is none of those allowed."""
        text = texts.get(self.name)
        if text is None:
            return None
        try:
            return self.read(text)
        except ValueError as error:
            raise Refusal(422, f"{self.name}: {error}") from None

    def to_openapi(self) -> dict[str, Any]:
        """Return the entry of the OpenAPI document."""
        plain: dict[str, Any] = {
            "name": self.name,
            "in": "query",
            "required": False,
            "description": self.help,
            "schema": self.schema,
        }
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


def moment(name: str, help: str) -> Parameter:
    """Return a parameter that is a time, in seconds since 1970."""
    low, high = 0.0, 1e11
    schema = {"type": "number", "minimum": low, "maximum": high, "format": "unixtime"}
    return Parameter(name, f"{help} In seconds since 1970, UTC.", schema, lambda text: _number(text, low, high))


def count(name: str, help: str, low: int, high: int) -> Parameter:
    """Return a parameter that is a whole number between two bounds, both allowed."""

    def read(text: str) -> int:
        number = _number(text, low, high)
        if number != int(number):
            raise ValueError(f"{text[:40]!r} is not an integer.")
        return int(number)

    return Parameter(name, help, {"type": "integer", "minimum": low, "maximum": high}, read)


def choice(name: str, help: str, words: Sequence[str]) -> Parameter:
    """Return a parameter that is one of some words."""

    def read(text: str) -> str:
        if text not in words:
            raise ValueError(f"unknown value {text[:60]!r}; choose one of {', '.join(words)}.")
        return text

    return Parameter(name, help, {"enum": list(words)}, read)


def words(name: str, help: str, item: Mapping[str, Any], known: Callable[[str], bool]) -> Parameter:
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
    return Parameter(name, help, schema, read, listed=True)


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
