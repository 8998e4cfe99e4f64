"""Settings of the screen: what a user chose, with the defaults."""

from __future__ import annotations

from ...model.catalog import GPU_METRICS, PROCESS_METRICS
from ...model.metric import Number
from ...present.theme import THEMES

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from typing import Any

# What each setting may be, in the order in which menus show it.
COLUMNS = ("gpu", *PROCESS_METRICS)
PANELS = ("host", "charts", "processes")
CHARTS = tuple(
    key
    for key, metric in GPU_METRICS.items()
    if isinstance(metric, Number) and metric.kind == "gauge" and metric.cost != "static" and metric.group != "details"
)
INTERVALS = (0.2, 0.5, 1.0, 2.0, 5.0, 10.0)
_SHORTEST, _LONGEST = 0.1, 3600.0


class ScreenSettings:
    """What is kept between runs; every attribute but `unknown` is one key of the [top] table of the configuration file."""

    def __init__(self) -> None:
        self.interval = 1.0
        self.columns = [
            "gpu",
            "pid",
            "user",
            "type",
            "memory_used",
            "sm_utilization",
            "cpu_percent",
            "host_memory",
            "running_time",
            "command",
        ]
        self.charts = ["utilization", "sm_active", "memory_percent"]
        self.sort = "memory_used"
        self.falling = True
        self.theme = "dark"
        self.fahrenheit = False
        self.decimal = False  # MB instead of MiB
        self.panels = list(PANELS)
        self.unknown: dict[str, Any] = {}  # keys of another version, which stay in the file

    @classmethod
    def load(cls, values: Any) -> tuple[ScreenSettings, list[str]]:
        """Return the settings a [top] table makes, and a sentence for everything in it that cannot be.

        What cannot be is replaced by its default; of a list, only the words that cannot be are left out.
        """
        settings, wrong = cls(), []
        if not isinstance(values, dict):  # the file may hold `top = 3`
            return settings, [f"top: {_shown(values)} is not a table."]
        for key, value in values.items():
            if key not in _CHECKS:
                settings.unknown[key] = value
                continue
            taken, sentences = _CHECKS[key](value)
            wrong += [f"{key}: {sentence}" for sentence in sentences]
            if taken is not None:
                setattr(settings, key, taken)
        return settings, wrong

    def values(self) -> dict[str, Any]:
        """Return the settings as a [top] table; lists are copies."""
        found = {key: getattr(self, key) for key in _CHECKS}
        return {key: list(value) if isinstance(value, list) else value for key, value in found.items()}


def column_title(column: str, short: bool = False) -> str:
    """Return what a process column is called in a menu, or with `short` at its head."""
    if column == "gpu":
        return "GPU"
    return PROCESS_METRICS[column].short if short else PROCESS_METRICS[column].title


# Each check returns the value to take, None for the default, and what is wrong with the one given.


def _interval(value: object) -> tuple[float | None, list[str]]:
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        return None, [f"{_shown(value)} is not a number of seconds."]
    if not _SHORTEST <= value <= _LONGEST:
        return None, [f"{_shown(value)} s is not between {_SHORTEST:g} and {_LONGEST:g} s."]
    return float(value), []


def _flag(value: object) -> tuple[bool | None, list[str]]:
    return (value, []) if isinstance(value, bool) else (None, [f"{_shown(value)} is neither true nor false."])


def _one_of(words: Iterable[str], what: str) -> Callable[[object], tuple[str | None, list[str]]]:
    known = tuple(words)

    def check(value: object) -> tuple[str | None, list[str]]:
        if isinstance(value, str) and value in known:
            return value, []
        return None, [_no_such(value, known, what)]

    return check


def _some_of(
    words: Iterable[str], what: str, empty: bool = False
) -> Callable[[object], tuple[list[str] | None, list[str]]]:
    known = tuple(words)

    def check(value: object) -> tuple[list[str] | None, list[str]]:
        if not isinstance(value, list):
            return None, [f"{_shown(value)} is not a list of {what}s."]
        wrong = [_no_such(word, known, what) for word in value if word not in known]
        taken = list(dict.fromkeys(word for word in value if word in known))
        if not taken and not value and not empty:
            wrong.append(f"at least one {what} is required.")
        return (taken if taken or (empty and not wrong) else None), wrong

    return check


def _no_such(value: object, known: tuple[str, ...], what: str) -> str:
    from ...model.select import did_you_mean

    hint = did_you_mean(value, known) if isinstance(value, str) else ""
    return f"unknown {what} {_shown(value)}{hint}."


def _shown(value: object) -> str:
    """Return a value as a sentence can hold it."""
    text = repr(value)
    return text if len(text) <= 40 else f"{text[:37]}..."


_CHECKS: dict[str, Callable[[object], tuple[Any, list[str]]]] = {
    "interval": _interval,
    "columns": _some_of(COLUMNS, "column"),
    "charts": _some_of(CHARTS, "chart metric"),
    "sort": _one_of(COLUMNS, "column"),
    "falling": _flag,
    "theme": _one_of(THEMES, "theme"),
    "fahrenheit": _flag,
    "decimal": _flag,
    "panels": _some_of(PANELS, "panel", empty=True),
}
