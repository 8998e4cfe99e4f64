"""Which GPUs or processes a query shows and in which order: filters such as `utilization<5 and memory_used>1GiB`, and sorting."""

from __future__ import annotations

import re
from operator import eq, ge, gt, le, lt, ne

from ...errors import UsageError
from ...model.catalog import GPU_METRICS, PROCESS_METRICS, Gpu
from ...model.metric import Flag, Number, Numbers, Reading
from ...model.select import Wanted, metric_named
from ...model.snapshot import Snapshot
from ...units import BYTES, BYTES_PER_SECOND, SECOND, parse_duration, parse_size

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from typing import NoReturn, TypeAlias

    from ...model.metric import Metric, Value

    Test: TypeAlias = Callable[[Reading], bool]
    from collections.abc import Iterable
    from typing import TypeVar

    Kind = TypeVar("Kind", bound=Reading)

_TOKEN = re.compile(r"\s*(?:(<=|>=|==|!=|<|>|=|~|\(|\))|\"([^\"]*)\"|'([^']*)'|([^\s<>=!~()\"']+))")
_DEEPEST = 50  # nested parentheses; more would overflow the stack
_ORDER = {"<": lt, "<=": le, ">": gt, ">=": ge, "=": eq, "==": eq, "!=": ne}
_WORDS = ("and", "or", "not")


class Filter:
    """A parsed filter: `keys` are the metrics it needs; call it to test a reading.

    A missing value passes no comparison.
    """

    def __init__(self, text: str, metrics: Mapping[str, Metric]) -> None:
        """Parse a filter; raise UsageError that points at the error."""
        self.keys: set[str] = set()
        self._text = text
        self._metrics = metrics
        self._tokens = self._split(text)
        self._at = self._depth = 0
        self._test = self._either()
        if self._at < len(self._tokens):
            self._fail("expected `and`, `or` or the end")

    def __call__(self, reading: Reading) -> bool:
        return self._test(reading)

    def _split(self, text: str) -> list[tuple[str, bool, int]]:
        """Return each word, whether it was quoted, and its position."""
        tokens, at = [], 0
        while at < len(text.rstrip()):
            found = _TOKEN.match(text, at)
            if found is None:
                self._at, self._tokens = 0, [("", False, at + len(text[at:]) - len(text[at:].lstrip()))]
                self._fail("cannot parse this; is a quote missing?")
            quoted = found[2] if found[2] is not None else found[3]
            word = found[1] or found[4] if quoted is None else quoted
            tokens.append((word, quoted is not None, found.start(found.lastindex or 0)))
            at = found.end()
        return tokens

    def _peek(self) -> str:
        if self._at >= len(self._tokens) or self._tokens[self._at][1]:
            return ""
        return self._tokens[self._at][0]

    def _take(self, what: str) -> str:
        if self._at >= len(self._tokens):
            self._fail(f"expected {what} at the end")
        self._at += 1
        return self._tokens[self._at - 1][0]

    def _fail(self, why: str, back: int = 0) -> NoReturn:
        at = self._at - back
        place = self._tokens[at][2] if at < len(self._tokens) else len(self._text)
        raise UsageError(
            f"--where: {why}:\n  {self._text}\n  {' ' * place}^\n", "Write it as 'utilization<5 and memory_used>1GiB'."
        )

    def _either(self) -> Test:
        tests = self._joined("or", self._both)
        return tests[0] if len(tests) == 1 else lambda reading: any(test(reading) for test in tests)

    def _both(self) -> Test:
        tests = self._joined("and", self._one)
        return tests[0] if len(tests) == 1 else lambda reading: all(test(reading) for test in tests)

    def _joined(self, word: str, part: Callable[[], Test]) -> list[Test]:
        tests = [part()]
        while self._peek().lower() == word:
            self._at += 1
            tests.append(part())
        return tests

    def _one(self) -> Test:
        self._depth += 1
        if self._depth > _DEEPEST:
            self._fail("nested too deeply")
        try:
            return self._single()
        finally:
            self._depth -= 1

    def _single(self) -> Test:
        if self._peek().lower() == "not":
            self._at += 1
            inner = self._one()
            return lambda reading: not inner(reading)
        if self._peek() == "(":
            self._at += 1
            inner = self._either()
            if self._peek() != ")":
                self._fail("expected a closing parenthesis")
            self._at += 1
            return inner
        return self._comparison()

    def _comparison(self) -> Test:
        name = self._take("a metric")
        if name in (*_ORDER, "~", ")") or name.lower() in _WORDS:
            self._fail("expected a metric", 1)
        try:
            metric = metric_named(name, self._metrics)
        except UsageError as error:
            self._fail(error.message, 1)
        operator = self._take("one of < <= > >= = != ~")
        if operator not in (*_ORDER, "~"):
            self._fail("expected one of < <= > >= = != ~", 1)
        value = self._take("a value")
        self.keys.add(metric.key)
        return _compare(metric.key, operator, self._value(metric, operator, value))

    def _value(self, metric: Metric, operator: str, text: str) -> Value:
        if not isinstance(metric, (Number, Numbers)) or operator == "~":
            if operator in ("<", "<=", ">", ">="):
                self._fail(f"{metric.key} is not a number and cannot be ordered", 2)
            if isinstance(metric, Flag) and operator != "~":
                if text.lower() not in _FLAG:
                    self._fail(f"{text!r} is neither yes nor no", 1)
                return _FLAG[text.lower()]
            return text
        try:
            if metric.unit in (BYTES, BYTES_PER_SECOND):
                return parse_size(text.removesuffix("/s"))
            return parse_duration(text) if metric.unit is SECOND else _number(text, metric.unit.symbol)
        except (UsageError, ValueError):
            self._fail(f"{text!r} is not a valid value of {metric.key}", 1)


_FLAG = {
    **dict.fromkeys(("yes", "true", "on", "enabled", "1"), "yes"),
    **dict.fromkeys(("no", "false", "off", "disabled", "0"), "no"),
}
_NUMBER = re.compile(r"([-+]?(?:[0-9]+\.?[0-9]*|\.[0-9]+))\s*(.*)")


def _number(text: str, symbol: str) -> float:
    """Parse a number with or without its unit; raise ValueError for anything else."""
    found = _NUMBER.fullmatch(text)
    if found is None or found[2].lower() not in ("", symbol.lower(), symbol.lower().lstrip("°")):
        raise ValueError(text)
    return float(found[1])


def _compare(key: str, operator: str, wanted: Value) -> Test:
    def test(reading: Reading) -> bool:
        value = reading.get(key)
        if value is None:
            return False
        if isinstance(value, tuple) or operator == "~":
            return _holds(value, operator, str(wanted))
        if isinstance(value, (int, float)) and not isinstance(value, bool) and isinstance(wanted, (int, float)):
            return bool(_ORDER[operator](value, wanted))
        same = _word(value) == str(wanted).lower()
        return same if operator in ("=", "==") else not same

    return test


def _holds(value: Value, operator: str, wanted: str) -> bool:
    parts = [str(part).lower() for part in value] if isinstance(value, tuple) else [_word(value)]
    found = any(wanted.lower() in part if operator == "~" else wanted.lower() == part for part in parts)
    return not found if operator == "!=" else found


def _word(value: Value) -> str:
    return ("yes" if value else "no") if isinstance(value, bool) else str(value).lower()


class Choice:
    """A filter and an order over the GPUs of a snapshot, or with `apps` over the processes of each; either may be absent."""

    def __init__(self, where: str | None, sort: str | None, *, apps: bool = False) -> None:
        """Read both; raise UsageError when one cannot be."""
        metrics = PROCESS_METRICS if apps else GPU_METRICS
        self._apps = apps
        self._filter = Filter(where, metrics) if where else None
        self._falling = bool(sort) and (sort or "").startswith("-")
        self._key = metric_named((sort or "").lstrip("-+"), metrics).key if sort else None
        keys = {*(self._filter.keys if self._filter else ()), *([self._key] if self._key else ())}
        self.wanted = Wanted((), keys) if apps else Wanted(keys)

    def apply(self, snapshot: Snapshot) -> Snapshot:
        """Return the snapshot with what passes, in order; what lacks the value comes last."""
        gpus = tuple(map(self._processes, snapshot.gpus)) if self._apps else tuple(self._chosen(snapshot.gpus))
        return snapshot.with_gpus(gpus)

    def _chosen(self, readings: Iterable[Kind]) -> list[Kind]:
        kept = [reading for reading in readings if self._filter is None or self._filter(reading)]
        if self._key is None:
            return kept
        known = [reading for reading in kept if reading.get(self._key) is not None]
        unknown = [reading for reading in kept if reading.get(self._key) is None]
        return sorted(known, key=self._value, reverse=self._falling) + unknown

    def _processes(self, gpu: Gpu) -> Gpu:
        instances = tuple(map(self._processes, gpu.instances))
        return gpu.replace(processes=tuple(self._chosen(gpu.processes)), instances=instances)

    def _value(self, reading: Reading) -> tuple[float, tuple[str, ...]]:
        value = reading.get(self._key or "")
        words = value if isinstance(value, tuple) else (value,)
        return value if isinstance(value, (int, float)) else 0.0, tuple(map(str, words))
