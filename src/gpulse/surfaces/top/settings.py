"""Settings of the screen: what a user chose, with the defaults."""

from __future__ import annotations

from ...model.catalog import PROCESS_METRICS
from ...settings.setting import shown
from ...settings.table import CHARTS as CHARTS
from ...settings.table import COLUMNS as COLUMNS
from ...settings.table import PANELS as PANELS
from ...settings.table import TERMINAL, TOP

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

INTERVALS = (0.2, 0.5, 1.0, 2.0, 5.0, 10.0)


class ScreenSettings:
    """What is kept between runs; every attribute except `theme` and `unknown` is a key of the [top] table of the settings file."""

    def __init__(self) -> None:
        self.interval: float = TOP["interval"].default
        self.columns: list[str] = list(TOP["columns"].default)
        self.charts: list[str] = list(TOP["charts"].default)
        self.sort: str = TOP["sort"].default
        self.falling: bool = TOP["falling"].default
        self.theme: str = TERMINAL["theme"].default  # of all commands, so kept in [terminal]
        self.fahrenheit: bool = TOP["fahrenheit"].default
        self.decimal: bool = TOP["decimal"].default  # MB instead of MiB
        self.panels: list[str] = list(TOP["panels"].default)
        self.unknown: dict[str, Any] = {}  # keys of another version, which stay in the file

    @classmethod
    def load(cls, values: Any) -> tuple[ScreenSettings, list[str]]:
        """Return the settings a [top] table makes, and a sentence for everything in it that cannot be.

        What cannot be is replaced by its default; of a list, only the words that cannot be are left out.
        """
        settings, wrong = cls(), []
        if not isinstance(values, dict):  # the file may hold `top = 3`
            return settings, [f"top: {shown(values)} is not a table."]
        for key, value in values.items():
            if key not in TOP:
                settings.unknown[key] = value
                continue
            taken, sentences = TOP[key].check(value)
            wrong += [f"{key}: {sentence}" for sentence in sentences]
            if taken is not None:
                setattr(settings, key, taken)
        return settings, wrong

    def values(self) -> dict[str, Any]:
        """Return the settings as a [top] table; lists are copies."""
        found = {key: getattr(self, key) for key in TOP}
        return {key: list(value) if isinstance(value, list) else value for key, value in found.items()}


def column_title(column: str, short: bool = False) -> str:
    """Return what a process column is called in a menu, or with `short` at its head."""
    if column == "gpu":
        return "GPU"
    return PROCESS_METRICS[column].short if short else PROCESS_METRICS[column].title
