"""The live screen of a fleet: sums and problems on top, a table to walk through below."""

from __future__ import annotations

import signal
import sys
import time

from ...analysis.fleet import FleetWatch, filtered
from ...present.line import Line
from ...present.words import label
from ...screen.grid import Grid, difference, mend
from ...screen.tty import Keyboard, Tty
from .view import TABLES, top_lines

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from ...model.fleet import FleetSnapshot
    from ...model.verdict import Concern
    from ...present.theme import Theme

_ESCAPE = 0.03  # seconds after which an Esc is a key and not the start of a sequence
_KEYS = {"1": "host", "2": "gpu", "3": "user", "4": "job"}
_STEPS = {"up": -1, "k": -1, "down": 1, "j": 1, "wheelup": -3, "wheeldown": 3, "home": -1_000_000, "end": 1_000_000}
_HELP = (
    ("1 2 3 4  Tab", "table of hosts, GPUs, users, jobs"),
    ("Up Down PgUp PgDn", "select a row"),
    ("Enter", "open the machine of the row in top"),
    ("/", "filter: a host name, or words as in top (user:ada mem>1G)"),
    ("p", "fewer or more problems"),
    ("?", "this help"),
    ("q", "leave"),
)


class FleetScreen:
    """One run of the screen. `read` returns the newest snapshot at once; the screen is drawn again every `interval` seconds.

    `run` returns the name of a machine to open, or None to leave; it may be called again and goes on where it was.
    """

    def __init__(self, read: Callable[[], FleetSnapshot], theme: Theme, interval: float, by: str = "host") -> None:
        self._read = read
        self._theme = theme
        self._interval = interval
        self._watch = FleetWatch()
        self._found: Mapping[str, Sequence[Concern]] = {}
        self._keyboard = Keyboard()
        self._typed = 0.0
        self._by = by
        self._row = 0
        self._scrolled = 0
        self._filter = ""
        self._typing: str | None = None
        self._help = False
        self._problems = True
        self._message = ""
        self._hosts: list[str | None] = []

    def run(self) -> str | None:
        """Show the screen until the user leaves it, opens a machine, or a signal ends it; the terminal is left as it was."""
        drawn: Grid | None = None
        due = 0.0
        with Tty(sys.stdin.fileno(), sys.stdout.fileno()) as tty:
            snapshot = self._read()
            while True:
                now = time.monotonic()
                if now >= due:
                    snapshot = self._read()
                    self._found = self._watch.add(snapshot)
                    ready = any(host.state != "connecting" for host in snapshot.hosts)
                    due = now + (min(1.0, self._interval) if ready else 0.1)  # states change between samples, too
                if not tty.busy:
                    grid = self._paint(snapshot, *tty.size())
                    if text := difference(drawn, grid, self._theme):
                        tty.write(text)
                    drawn = grid
                wait = max(0.0, due - time.monotonic())
                typed = tty.wait(min(wait, _ESCAPE) if self._keyboard.waiting else wait)
                for key in self._keys(typed):
                    if key == "quit":
                        return None
                    if key == "open" and (host := self._selected()) is not None:
                        return host
                raised, tty.signals = tty.signals, set()
                if raised & {signal.SIGTERM, signal.SIGHUP, signal.SIGINT}:
                    return None
                if signal.SIGTSTP in raised:
                    tty.suspend()
                if raised & {signal.SIGTSTP, signal.SIGCONT, signal.SIGWINCH}:
                    drawn = None

    def tell(self, message: str) -> None:
        """Show a message in the last line until a key is pressed."""
        self._message = message

    def _keys(self, typed: bytes) -> list[str]:
        """Take what was typed; return what ends the screen."""
        now = time.monotonic()
        if typed:
            self._typed = now
            events = self._keyboard.feed(typed)
        else:
            events = self._keyboard.flush() if now - self._typed >= _ESCAPE else []
        return [done for event in events if (done := self._take(event.mouse or event.key))]

    def _take(self, key: str) -> str:
        self._message = ""
        if self._typing is not None:
            self._edit(key)
        elif self._help:
            self._help = False
        elif key in ("q", "ctrl-c"):
            return "quit"
        elif key == "enter":
            return "open"
        elif key in _KEYS or key == "tab":
            names = list(TABLES)
            self._by = _KEYS.get(key) or names[(names.index(self._by) + 1) % len(names)]
            self._row = self._scrolled = 0
        elif key in _STEPS or key in ("pageup", "pagedown"):
            step = _STEPS.get(key, -10 if key == "pageup" else 10)
            self._row = min(max(0, len(self._hosts) - 1), max(0, self._row + step))
        elif key == "/":
            self._typing = self._filter
        elif key == "escape":
            self._filter = ""
        elif key == "p":
            self._problems = not self._problems
        elif key in ("?", "f1", "h"):
            self._help = True
        return ""

    def _edit(self, key: str) -> None:
        assert self._typing is not None
        if key == "enter":
            self._filter, self._typing, self._row = self._typing, None, 0
        elif key == "escape":
            self._typing = None
        elif key == "backspace":
            self._typing = self._typing[:-1]
        elif key == "ctrl-u":
            self._typing = ""
        elif key == "space" or len(key) == 1:
            self._typing += " " if key == "space" else key

    def _selected(self) -> str | None:
        """Return the machine of the selected row; one that cannot be read stays closed, and the last line says why."""
        host = self._hosts[self._row] if self._row < len(self._hosts) else None
        if host is None:
            self._message = "select a machine or a GPU first (keys 1 and 2)"
            return None
        report = next((one for one in self._read().hosts if one.name == host), None)
        if report is None or report.snapshot is None:
            self._message = f"{host} has no sample to show"
            return None
        return host

    def _paint(self, snapshot: FleetSnapshot, columns: int, rows: int) -> Grid:
        grid = Grid(columns, rows)
        shown = filtered(snapshot, self._filter)
        most = max(2, rows // 3) if self._problems else 0
        lines = top_lines(shown, self._theme, columns, self._concerning(shown), most)
        head, table = TABLES[self._by](shown, self._theme, columns)
        self._hosts = [host for _, host in table]
        self._row = min(self._row, max(0, len(table) - 1))
        for at, line in enumerate([*lines, Line(), head]):
            grid.line(at, 0, self._spelled(line))
        top = len(lines) + 2
        room = max(0, rows - top - 1)
        self._scrolled = max(0, min(self._scrolled, self._row, len(table) - room), self._row - room + 1)
        for at, (line, _) in enumerate(table[self._scrolled : self._scrolled + room]):
            grid.line(top + at, 0, self._spelled(line))
            if at + self._scrolled == self._row:
                grid.restyle(top + at, 0, columns, "selected")
        self._foot(grid, len(table), room)
        if self._help:
            self._explain(grid)
        mend(grid)
        return grid

    def _concerning(self, shown: FleetSnapshot) -> Mapping[str, Sequence[Concern]]:
        """Return what is wrong with the GPUs that are shown."""
        if not self._filter:
            return self._found
        labels = {host.name: {label(gpu) for gpu in host.gpus} for host in shown.hosts}
        return {
            name: [one for one in found if not one.gpus or labels.get(name, set()) & set(one.gpus)]
            for name, found in self._found.items()
        }

    def _spelled(self, line: Line) -> Line:
        line.pieces = [(self._theme.spelled(text), style) for text, style in line.pieces]
        return line

    def _foot(self, grid: Grid, count: int, room: int) -> None:
        row = grid.rows - 1
        if self._typing is not None:
            grid.put(row, 0, f"filter: {self._typing}_", "accent")
            return
        if self._message:
            grid.put(row, 0, self._message, "warn")
            return
        column = 0
        for key, word in (("1", "hosts"), ("2", "GPUs"), ("3", "users"), ("4", "jobs")):
            column = grid.put(row, column, key, "accent")
            column = grid.put(row, column, f" {word}  ", "title" if _KEYS[key] == self._by else "label")
        rest = f"filter: {self._filter} (Esc clears)" if self._filter else "/ filter  Enter open  ? help  q quit"
        column = grid.put(row, column + 1, rest, "label")
        if count > room:
            place = f"{self._row + 1}/{count}"
            grid.put(row, max(column + 2, grid.columns - len(place)), place, "label")

    def _explain(self, grid: Grid) -> None:
        wide = min(grid.columns, 78)
        grid.fill(1, 0, len(_HELP) + 2, wide)
        for at, (keys, text) in enumerate(_HELP):
            grid.put(2 + at, 2, keys, "accent")
            grid.put(2 + at, 22, text, cells=wide - 22)
