"""The menus: settings, sort column and signals, each a list in a box that scrolls and can be clicked."""

from __future__ import annotations

from ....model.catalog import GPU_METRICS, PROCESS_METRICS
from ....present.line import wrapped_lines
from ....present.text import clean, fit, width
from ....present.theme import THEMES
from ....settings.table import TERMINAL, TOP
from ..layout import Area
from ..processes import all_rows
from ..signals import SIGNALS, signal_number
from ..state import CHARTS, COLUMNS, INTERVALS, PANELS, column_title
from .details import box, placed

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from ....model.snapshot import Snapshot
    from ....present.theme import Theme
    from ....screen.grid import Grid
    from ..processes import ProcessRow
    from ..state import ScreenSettings, State

_NARROW = 24  # columns below which labels need the place of the mark
_HINT, _HINTED = 2, 64  # rows and columns of a hint: the longest help of a metric fits
_WIDE = 44  # minimum columns for full titles of metrics
_FLAGS = {"fahrenheit": "Fahrenheit", "decimal": "Sizes in MB, not MiB", "falling": "Largest first"}
# Settings by group, one line each: the attribute and, for a list, the word that the line toggles.
_GROUPS = (
    ("Screen", (("interval", ""), ("theme", ""), ("fahrenheit", ""), ("decimal", ""), *(("panels", panel) for panel in PANELS))),
    ("Processes", (("sort", ""), ("falling", ""))),
    ("Process columns", tuple(("columns", column) for column in COLUMNS)),
    ("Charts", tuple(("charts", chart) for chart in CHARTS)),
)  # fmt: skip
SETTINGS = tuple(line for _, group in _GROUPS for line in group)
_PANEL_HINTS = {
    "host": "CPU, memory, disks and network of the machine.",
    "charts": "Charts of the metrics chosen below.",
    "processes": "The processes that use a GPU.",
}
_SLACK = 1.0  # tolerance of running times in seconds
_NAMED = 4  # maximum number of processes to name in the signal menu; the rest is counted
_COMMAND = 60  # cells of a command


class Menu:
    """Labels on the left, values on the right, the line `choice` highlighted. The list scrolls with the choice.

    `above` are lines of text over the list, `headings` are drawn before the lines with these numbers, and `hint` explains the
    selected line below the list. What does not fit on a small screen is left out: first the hint, then the lines above.
    """

    def __init__(
        self,
        title: str,
        lines: Sequence[tuple[str, str]],
        choice: int,
        *,
        above: Sequence[tuple[str, str]] = (),
        headings: Mapping[int, str] | None = None,
        hint: str = "",
    ) -> None:
        self.title = title
        self.lines = lines
        self.choice = max(0, min(choice, len(lines) - 1))
        self.above = above
        self.hint = hint
        headings = headings or {}
        self._rows: list[int | str] = []  # the number of a line, or a heading
        for at in range(len(lines)):
            self._rows += [headings[at], at] if at in headings else [at]

    def paint(self, grid: Grid, area: Area, theme: Theme) -> None:
        """Draw the menu in the middle of an area."""
        above, room, hinted = self._shares(area)
        foot = f"{self.choice + 1}/{len(self.lines)}" if room < len(self._rows) else ""
        inside = box(grid, area, theme, self.title, above + len(self._rows) + hinted, self._width(), foot)
        for row, (text, style) in enumerate(self.above[:above], inside.row):
            grid.put(row, inside.column, fit(theme.spelled(text), inside.columns, theme.more), style)
        for at, line in enumerate(self._seen(room)[: inside.rows - above], inside.row + above):
            self._line(grid, Area(at, inside.column, 1, inside.columns), theme, line)
        if hinted and inside.rows >= above + room + hinted:
            hint = theme.spelled(self.hint)
            first = sum(len(text) for text, _ in wrapped_lines([(hint, "")], inside.columns)[0].pieces)
            for row, text in enumerate((hint[:first], hint[first:].lstrip()), inside.end - hinted):
                grid.put(row, inside.column, fit(text, inside.columns, theme.more), "label")

    def line_at(self, area: Area, row: int, column: int) -> int | None:
        """Return the number of the line in a cell of the screen; None for a heading, a hint or the edge, -1 outside the box."""
        above, room, hinted = self._shares(area)
        frame, inside = placed(area, above + len(self._rows) + hinted, self._width())
        if not frame.holds(row, column):
            return -1
        at, seen = row - inside.row - above, self._seen(room)
        found = seen[at] if 0 <= at < len(seen) else None
        return None if isinstance(found, str) else found

    def _shares(self, area: Area) -> tuple[int, int, int]:
        """Return the number of rows above the list, of the list, and of the hint."""
        rows = max(1, area.rows - 2)
        above = min(len(self.above), max(0, rows - min(3, len(self._rows))))
        hinted = _HINT if self.hint and rows - above >= min(8, len(self._rows) + _HINT) else 0
        return above, max(1, min(len(self._rows), rows - above - hinted)), hinted

    def _width(self) -> int:
        headings = [row for row in self._rows if isinstance(row, str)]
        texts = [f" {self.title} ", *(text for text, _ in self.above), *headings]
        pairs = [width(label) + width(value) + 4 for label, value in self.lines]
        return max(_HINTED if self.hint else 0, *pairs, *map(width, texts))  # the same for every hint

    def _seen(self, room: int) -> list[int | str]:
        at = self._rows.index(self.choice) if self.lines else 0
        first = shown_from(at, len(self._rows), room)
        return self._rows[first : first + room]

    def _line(self, grid: Grid, place: Area, theme: Theme, row: int | str) -> None:
        if isinstance(row, str):
            grid.put(place.row, place.column, fit(theme.spelled(row), place.columns, theme.more), "title")
            return
        label, value = self.lines[row]
        chosen = row == self.choice
        mark = theme.glyph("▸ ", "> ") if chosen else "  "  # visible without colors, too
        mark = mark if place.columns >= _NARROW else ""
        value = fit(theme.spelled(value), max(0, place.columns - 6), theme.more)
        room = place.columns - width(value) - len(mark) - 1
        grid.put(place.row, place.column, mark + _ending(theme.spelled(label), room, theme.more), "calm", place.columns)
        grid.put(place.row, place.column + place.columns - width(value), value, "accent")
        if chosen:
            grid.restyle(place.row, place.column, place.columns, "selected")


def shown_from(choice: int, count: int, rows: int) -> int:
    """Return the first line to show so that the selected one is in the middle, or as close as possible."""
    return max(0, min(choice - rows // 2, count - rows))


def _ending(text: str, cells: int, more: str) -> str:
    """Return text shortened to at most `cells` by removing its beginning, as similar labels differ at the end."""
    if width(text) <= cells:
        return text
    while text and width(text) + width(more) > cells:
        text = text[1:]
    return (more + text)[: max(0, cells)]


def menu_of(state: State) -> Menu:
    """Return the menu that is open: settings, sort or signal."""
    return {"settings": _settings_menu, "sort": _sort_menu, "signal": _signal_menu}[state.dialog](state)


def _sort_menu(state: State) -> Menu:
    """Return all columns to sort processes by; the current one has an arrow for its direction."""
    arrow = state.theme.glyph("▼", "v") if state.falling else state.theme.glyph("▲", "^")
    lines = [(column_title(column), arrow if column == state.sort else " ") for column in COLUMNS]
    return Menu("Sort by", lines, state.choice, hint=_column_hint(COLUMNS[max(0, min(state.choice, len(COLUMNS) - 1))]))


def _column_hint(column: str) -> str:
    return "The GPU or MIG instance." if column == "gpu" else PROCESS_METRICS[column].help


def _settings_menu(state: State) -> Menu:
    headings = {SETTINGS.index(group[0]): title for title, group in _GROUPS}
    above = [(state.theme.glyph("Enter, ← → change · w save", "Enter, arrows: change; w: save"), "label")]
    lines = setting_lines(state.settings, state.columns < _WIDE)
    return Menu("Settings", lines, state.choice, above=above, headings=headings, hint=setting_hint(state.choice))


def setting_hint(choice: int) -> str:
    """Return what the setting of a line does."""
    name, word = SETTINGS[max(0, min(choice, len(SETTINGS) - 1))]
    if name == "panels":
        return _PANEL_HINTS[word]
    if name == "columns":
        return _column_hint(word)
    return GPU_METRICS[word].help if name == "charts" else f"{(TERMINAL if name == 'theme' else TOP)[name].help}."


def setting_lines(settings: ScreenSettings, short: bool = False) -> list[tuple[str, str]]:
    """Return the label and the value of every line of SETTINGS; `short` uses the short names of metrics."""
    return [(_label(name, word, short), _value(settings, name, word)) for name, word in SETTINGS]


def _label(name: str, word: str, short: bool) -> str:
    if name == "panels":
        return f"{word.capitalize()} panel"
    if name == "columns":
        return column_title(word, short)
    if name == "charts":  # columns have some of the short names, too
        return f"Chart {GPU_METRICS[word].short}" if short else GPU_METRICS[word].title
    return _FLAGS.get(name, name.capitalize())


def _value(settings: ScreenSettings, name: str, word: str) -> str:
    value = getattr(settings, name)
    if name == "interval":
        return f"{value:g} s"
    if name in ("theme", "sort"):
        return column_title(value) if name == "sort" else str(value)
    return "on" if (word in value if word else value) else "off"


def change_setting(settings: ScreenSettings, choice: int, step: int) -> None:
    """Change the setting of a line to the next value, or with a negative step to the previous one, cyclically.

    A step of 0 and an unknown line change nothing; the last column and the last chart cannot be removed.
    """
    if step == 0 or not 0 <= choice < len(SETTINGS):
        return
    name, word = SETTINGS[choice]
    if name == "interval":  # the next longer or shorter of the predefined ones
        usual = INTERVALS if step > 0 else INTERVALS[::-1]
        now = settings.interval
        settings.interval = next((one for one in usual if (one > now if step > 0 else one < now)), usual[0])
    elif name in ("theme", "sort"):
        words, word = (THEMES, settings.theme) if name == "theme" else (COLUMNS, settings.sort)
        setattr(settings, name, words[(words.index(word) + step) % len(words)] if word in words else words[0])
    elif name in _FLAGS:
        setattr(settings, name, not getattr(settings, name))
    else:
        _toggle(settings, name, word)


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


def move_column(settings: ScreenSettings, choice: int, step: int) -> str:
    """Move the column of a line to the left or right; return a message, or nothing if it is not a visible column."""
    name, word = SETTINGS[choice] if 0 <= choice < len(SETTINGS) else ("", "")
    if name != "columns" or word not in settings.columns:
        return ""
    at = settings.columns.index(word)
    to = min(len(settings.columns) - 1, max(0, at + step))
    settings.columns.insert(to, settings.columns.pop(at))
    return f"{column_title(word)} is column {to + 1} of {len(settings.columns)}"


def recipients(state: State) -> list[int]:
    """Return the processes to signal: the tagged ones, else the selected one, if they still run.

    In an earlier sample, a PID may belong to a process that has ended: a process counts only if it started before the sample.
    """
    now, then = _ages(state.live), _ages(state.shown)
    wanted = sorted(state.tagged) if state.tagged else [] if state.selected is None else [state.selected]
    return [pid for pid in wanted if pid in now and now[pid] >= then.get(pid, 0.0) - _SLACK]


def _ages(snapshot: Snapshot | None) -> dict[int | None, float]:
    return {row.pid: row.process.running_time or 0.0 for row in all_rows(snapshot)} if snapshot else {}


def chosen_signal(state: State) -> str:
    """Return the name of the signal under the cursor."""
    return SIGNALS[max(0, min(state.choice, len(SIGNALS) - 1))][0]


def type_signal(state: State, digit: str) -> None:
    """Select a signal by its number, typed digit by digit: 9 is KILL, 1 and 5 are TERM."""
    numbers = [str(signal_number(name)) for name, _ in SIGNALS]
    text = state.digits + digit
    state.digits = text if any(number.startswith(text) for number in numbers) else digit
    matching = [number for number in numbers if number.startswith(state.digits)]
    if matching:
        state.choice = numbers.index(state.digits if state.digits in numbers else matching[0])
    else:
        state.digits, state.message = "", f"no signal has the number {digit}"


def _signal_menu(state: State) -> Menu:
    """Return the menu: the processes to signal above the signals."""
    count, name = len(recipients(state)), chosen_signal(state)
    title, hint = "No process to signal", "Esc closes."
    if count:
        title = "Send a signal" if count == 1 else f"Send a signal to {count} processes"
        whom = "this process" if count == 1 else f"these {count} processes"
        hint = f"Enter sends {name} ({signal_number(name)}) to {whom}, Esc cancels."
    lines = [(f"{signal_number(name):>2} {name:<6} {meaning}", "") for name, meaning in SIGNALS]
    return Menu(title, lines, state.choice, above=[*signal_targets(state), ("", "")], hint=hint)


def signal_targets(state: State) -> list[tuple[str, str]]:
    """Return PID, user and command of the processes to signal, each with a style; the others are counted."""
    pids = recipients(state)
    rows = {row.pid: row for row in all_rows(state.live)} if state.live else {}
    users = max((len(rows[pid].process.user or "?") for pid in pids[:_NAMED]), default=0)
    lines = [(_target(rows[pid], users), "calm") for pid in pids[:_NAMED]]
    return [*lines, (f"and {len(pids) - _NAMED} more", "label")] if len(pids) > _NAMED else lines


def _target(row: ProcessRow, users: int) -> str:
    process = row.process
    command = fit(clean(process.command or process.name or "?"), _COMMAND)
    return f"{row.pid:>7}  {clean(process.user or '?'):<{users}}  {command}"
