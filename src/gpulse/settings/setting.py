"""One setting: what it may be, where it comes from, and how it is written in the settings file."""

from __future__ import annotations

from ..errors import UsageError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from typing import Any, Literal, TypeAlias

    Kind: TypeAlias = Literal["text", "flag", "integer", "number", "words", "file or flag"]
    Taken: TypeAlias = "tuple[Any, list[str]]"

_YES = {"1": True, "true": True, "yes": True, "on": True, "0": False, "false": False, "no": False, "off": False}


class Setting:
    """One setting of a table of the file, or with an empty `table` one that only the environment or an option sets.

    `choices` are the words it takes, `what` is what one of them is called. A list may be `empty` or not. `default` is what it is
    when nobody sets it; where that depends on the machine it is None, and `otherwise` says as text what happens then.
    `example` is what the template of the file shows for a setting without a default. `form` raises for a word that is wrong.
    """

    __slots__ = (
        "choices", "default", "empty", "environ", "example", "flag", "form", "help", "high", "key", "kind", "low", "otherwise",
        "table", "what",
    )  # fmt: skip

    def __init__(
        self,
        table: str,
        key: str,
        kind: Kind,
        default: Any,
        help: str,
        *,
        flag: str = "",
        environ: str = "",
        choices: Iterable[str] = (),
        what: str = "value",
        low: float = 0.0,
        high: float = float("inf"),
        empty: bool = False,
        example: Any = None,
        otherwise: str = "",
        form: Callable[[str], object] | None = None,
    ) -> None:
        self.form = form
        self.table = table
        self.key = key
        self.kind = kind
        self.default = default
        self.help = help
        self.flag = flag or f"--{key.replace('_', '-')}"
        self.environ = environ or f"GPULSE_{table}_{key}".upper()
        self.choices = tuple(choices)
        self.what = what
        self.low = low
        self.high = high
        self.empty = empty
        self.example = example
        self.otherwise = otherwise

    @property
    def name(self) -> str:
        """The name as in serve.port."""
        return f"{self.table}.{self.key}" if self.table else self.key

    @property
    def normally(self) -> str:
        """What happens when nobody sets it, as text or as the value; empty where that is nothing."""
        if self.default is None or isinstance(self.default, str):
            return self.otherwise or self.default or ""
        return toml(self.default)

    def check(self, value: Any) -> Taken:
        """Return the value to take, None for the default, and a sentence for everything that is wrong with the one given.

        Of a list, only the words that are wrong are left out.
        """
        if self.kind == "flag":
            return (value, []) if isinstance(value, bool) else (None, [f"{shown(value)} is neither true nor false."])
        if self.kind == "words":
            return self._some_of(value)
        if self.kind in ("integer", "number"):
            return self._number(value)
        if self.kind == "file or flag" and isinstance(value, bool):
            return value, []
        if isinstance(value, str) and (not self.choices or value in self.choices):
            wrong = self._malformed(value)
            return (None, [wrong]) if wrong else (value, [])
        return None, [self._no_such(value) if self.choices else f"{shown(value)} is not a text."]

    def parse(self, text: str) -> Taken:
        """Return what a text of the environment means, and what is wrong with it: lists are separated by commas."""
        if self.kind == "words":
            return self.check([word for word in (part.strip() for part in text.split(",")) if word])
        if self.kind in ("flag", "file or flag") and text.strip().lower() in _YES:
            return _YES[text.strip().lower()], []
        if self.kind in ("integer", "number"):
            try:
                return self.check(int(text) if self.kind == "integer" else float(text))
            except ValueError:
                return None, [f"{shown(text)} is not {self._amount()}."]
        return self.check(text)

    def _number(self, value: Any) -> Taken:
        kinds = (int,) if self.kind == "integer" else (int, float)
        if isinstance(value, bool) or not isinstance(value, kinds):
            return None, [f"{shown(value)} is not {self._amount()}."]
        if not self.low <= value <= self.high:
            unit = " s" if self.what == "seconds" else ""
            return None, [f"{shown(value)}{unit} is not between {self.low:g} and {self.high:g}{unit}."]
        return (value if self.kind == "integer" else float(value)), []

    def _amount(self) -> str:
        return (
            "a number of seconds" if self.what == "seconds" else "an integer" if self.kind == "integer" else "a number"
        )

    def _some_of(self, value: Any) -> Taken:
        if not isinstance(value, list) or not (self.choices or all(isinstance(word, str) for word in value)):
            return None, [f"{shown(value)} is not a list of {self.what}s."]
        wrong = [self._no_such(word) for word in value if self.choices and word not in self.choices]
        wrong += [sentence for word in value if (sentence := self._malformed(word))]
        right = [word for word in value if (not self.choices or word in self.choices) and not self._malformed(word)]
        taken = list(dict.fromkeys(right))
        if not taken and not value and not self.empty:
            wrong.append(f"there must be at least one {self.what}.")
        return (taken if taken or (self.empty and not wrong) else None), wrong

    def _malformed(self, word: str) -> str:
        """Return what is wrong with a word that has to have a form, or an empty text."""
        from ..errors import GpulseError

        try:
            if self.form is not None:
                self.form(word)
        except GpulseError as error:
            return str(error)
        return ""

    def _no_such(self, value: Any) -> str:
        from ..model.select import did_you_mean

        hint = did_you_mean(value, self.choices) if isinstance(value, str) else ""
        return f"unknown {self.what} {shown(value)}{hint}."

    def __repr__(self) -> str:
        return f"<Setting {self.name}>"


def parse_label(word: str) -> tuple[str, str]:
    """Return the name and value of a label of Prometheus; raises UsageError."""
    name, sign, value = word.partition("=")
    plain = name.isascii() and name.replace("_", "a").isalnum() and not name[:1].isdigit() and name[:2] != "__"
    if not sign or not plain or not value.isprintable():
        raise UsageError(f"{shown(word)} is not a label;", "write it as cluster=main.")
    return name, value


def parse_header(word: str) -> tuple[str, str]:
    """Return the name and value of a header; raises UsageError."""
    name, sign, value = word.partition("=")
    if not sign or not name.replace("-", "a").isalnum() or not (word.isascii() and word.isprintable()):
        raise UsageError(f"{shown(word)} is not a header;", "write it as X-Scope-OrgID=lab.")
    return name, value


def shown(value: object) -> str:
    """Return a value as a sentence can hold it."""
    text = repr(value)
    return text if len(text) <= 40 else f"{text[:37]}..."


def toml(value: Any) -> str:
    """Return a value as the settings file holds it."""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, (list, tuple)):
        return f"[{', '.join(map(toml, value))}]"
    if isinstance(value, dict):
        return f"{{ {', '.join(f'{key} = {toml(each)}' for key, each in value.items())} }}"
    if isinstance(value, float):
        return f"{value:g}"
    return _quoted(value) if isinstance(value, str) else str(value)


def _quoted(text: str) -> str:
    chars = [f"\\{char}" if char in '"\\' else char if char.isprintable() else f"\\u{ord(char):04x}" for char in text]
    return f'"{"".join(chars)}"'
