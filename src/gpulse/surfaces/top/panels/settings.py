"""The settings dialog: one line per setting, changed in place."""

from __future__ import annotations

from ....model.catalog import GPU_METRICS, PROCESS_METRICS
from ....present.theme import THEMES
from ....settings.table import TERMINAL, TOP
from ..settings import CHARTS, COLUMNS, INTERVALS, PANELS, column_title
from .menu import Menu

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from ....screen.grid import Grid
    from ..area import Area
    from ..settings import ScreenSettings
    from ..state import State

_TITLE = "Settings"
_WIDE = 44  # minimum columns for full titles
_FLAGS = {
    "fahrenheit": "Fahrenheit",
    "decimal": "Sizes in MB, not MiB",
    "falling": "Largest first",
}
# Each line: the attribute and, for a list, the word that the line toggles.
_GROUPS = (
    ("Screen", (("interval", ""), ("theme", ""), ("fahrenheit", ""), ("decimal", ""), *(("panels", panel) for panel in PANELS))),
    ("Processes", (("sort", ""), ("falling", ""))),
    ("Process columns", tuple(("columns", column) for column in COLUMNS)),
    ("Charts", tuple(("charts", chart) for chart in CHARTS)),
)  # fmt: skip
_LINES = tuple(line for _, group in _GROUPS for line in group)
_KEYS = "Enter, ← → change · w save"
_PANEL_HINTS = {
    "host": "CPU, memory, disks and network of the machine.",
    "charts": "Charts of the metrics chosen below.",
    "processes": "The processes that use a GPU.",
}


def paint(grid: Grid, area: Area, state: State) -> None:
    """Draw the settings with the line `state.choice` highlighted."""
    menu(state, area.columns < _WIDE).paint(grid, area, state.theme)


def menu(state: State, short: bool = False) -> Menu:
    """Return the menu of all settings, in groups, with a hint for the selected one."""
    headings, at = {}, 0
    for title, group in _GROUPS:
        headings[at] = title
        at += len(group)
    keys = _KEYS if state.theme.unicode else "Enter, arrows: change; w: save"
    above = [(keys, "label")]
    return Menu(
        _TITLE, lines(state.settings, short), state.choice, above=above, headings=headings, hint=hint(state.choice)
    )


def hint(choice: int) -> str:
    """Return what the setting of a line does."""
    name, word = _LINES[max(0, min(choice, len(_LINES) - 1))]
    if name == "panels":
        return _PANEL_HINTS[word]
    if name == "columns":
        return "The GPU or MIG instance." if word == "gpu" else PROCESS_METRICS[word].help
    if name == "charts":
        return GPU_METRICS[word].help
    return f"{(TERMINAL if name == 'theme' else TOP)[name].help}."


def lines(settings: ScreenSettings, short: bool = False) -> list[tuple[str, str]]:
    """Return the label and the value of every line, in order; their number never changes.

    `short` uses the short names of metrics, for narrow screens.
    """
    return [_line(settings, name, word, short) for name, word in _LINES]


def change(settings: ScreenSettings, choice: int, step: int) -> None:
    """Change the setting of a line to the next value, or with a negative step to the previous one, cyclically.

    A step of 0 and an unknown line change nothing; the last column and the last chart cannot be removed.
    """
    if step == 0 or not 0 <= choice < len(_LINES):
        return
    name, word = _LINES[choice]
    if name == "interval":
        settings.interval = _next_interval(settings.interval, step)
    elif name == "theme":
        settings.theme = _next(THEMES, settings.theme, step)
    elif name == "sort":
        settings.sort = _next(COLUMNS, settings.sort, step)
    elif name in _FLAGS:
        setattr(settings, name, not getattr(settings, name))
    else:
        _toggle(settings, name, word)


def move(settings: ScreenSettings, choice: int, step: int) -> str:
    """Move the column of a line to the left or right; return a message, or nothing if it is not a visible column."""
    name, word = _LINES[choice] if 0 <= choice < len(_LINES) else ("", "")
    if name != "columns" or word not in settings.columns:
        return ""
    at = settings.columns.index(word)
    to = min(len(settings.columns) - 1, max(0, at + step))
    settings.columns.insert(to, settings.columns.pop(at))
    return f"{column_title(word)} is column {to + 1} of {len(settings.columns)}"


def _line(settings: ScreenSettings, name: str, word: str, short: bool) -> tuple[str, str]:
    if name == "interval":
        return "Interval", f"{settings.interval:g} s"
    if name == "theme":
        return "Theme", settings.theme
    if name == "sort":
        return "Sort", column_title(settings.sort)
    if name in _FLAGS:
        return _FLAGS[name], _on(getattr(settings, name))
    value = _on(word in getattr(settings, name))
    if name == "panels":
        return f"{word.capitalize()} panel", value
    if name == "columns":
        return column_title(word, short), value
    metric = GPU_METRICS[word]
    return f"Chart {metric.short}" if short else metric.title, value  # columns have some of the short names, too


def _on(value: bool) -> str:
    return "on" if value else "off"


def _next(words: Sequence[str], word: str, step: int) -> str:
    return words[(words.index(word) + step) % len(words)] if word in words else words[0]


def _next_interval(interval: float, step: int) -> float:
    """Return the next longer or shorter of the predefined intervals."""
    if step > 0:
        return next((usual for usual in INTERVALS if usual > interval), INTERVALS[0])
    return next((usual for usual in reversed(INTERVALS) if usual < interval), INTERVALS[-1])


def _toggle(settings: ScreenSettings, name: str, word: str) -> None:
    listed: list[str] = getattr(settings, name)
    if word in listed:
        if len(listed) > 1 or name == "panels":
            setattr(settings, name, [other for other in listed if other != word])
    elif name == "columns" and listed[-1:] == ["command"]:
        settings.columns = [*listed[:-1], word, "command"]  # a command takes the rest of the line
    elif name == "panels":
        settings.panels = [panel for panel in PANELS if panel in listed or panel == word]
    else:
        setattr(settings, name, [*listed, word])
