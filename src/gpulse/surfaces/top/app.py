"""The app: waits for keys, snapshots and signals, changes the state, and paints it; the painter asks each panel for its part."""

from __future__ import annotations

import signal
import sys
import time

from ...analysis.concerns import concerns
from ...analysis.diagnosis.running import LiveDiagnosis
from ...analysis.events import ClockWatch, EventDetector
from ...present.text import ascii_text
from ...present.theme import QUERY
from ...screen.grid import WIDE_REST, Grid, difference, mend
from ...screen.tty import Keyboard, Tty
from .actions import help_lines, hints
from .feeds import LiveFeed, LiveStack, Recall
from .history import ProcessPast
from .input import Input
from .layout import Area, arrange
from .panels import charts, gpus, processes, rows
from .processes import all_rows, pids
from .state import wanted

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from ...model.event import Event
    from ...model.select import Wanted
    from ...model.snapshot import Snapshot
    from ...sampling.sampler import Sampler
    from .feeds import ReplayFeed
    from .state import ScreenSettings, State

    Facts = Callable[[int], dict[str, str]]

_ANSWERED = 0.05  # seconds that a terminal has to answer before the first frame, in which the first sample is taken
_ESCAPE = 0.03  # seconds after which an Esc is a key and not the start of a sequence
_RELATIVES = 10_000  # processes to remember for the tree of earlier samples
_EVENTS = 500  # how many of the last events are kept, for the view of a GPU and for stepping back


class App:
    """One run of the screen. `save` is called with the settings when the user asks for it and returns what to tell."""

    def __init__(self, sampler: Sampler, state: State, save: Callable[[ScreenSettings], str] | None = None) -> None:
        self._sampler = sampler
        self._state = state
        self._keyboard = Keyboard()
        self._input = Input(state, sampler.source.machine, save)
        self._drawn: Grid | None = None
        self._detector = EventDetector()
        self._live = LiveDiagnosis()
        self._past: Recall | None = None
        self._wanted: Wanted | None = None
        self._traced: Snapshot | None = None
        self._typed = 0.0
        self._about: tuple[int, dict[str, str]] = (0, {})
        self._stack: LiveStack | None = None

    def run(self) -> None:
        """Show the screen until the user leaves it or a signal ends it; the terminal is left as it was."""
        state = self._state
        with Tty(sys.stdin.fileno(), sys.stdout.fileno()) as tty:
            state.columns, state.rows = tty.size()
            asked = self._ask_background(tty)
            until = time.monotonic() + _ANSWERED
            self._take(self._sampler.read())
            if asked:  # most terminals have answered by now: the first frame has the right colors
                self._heed(tty.wait(max(0.0, until - time.monotonic())))
            self._draw(tty)
            self._want()
            feed = self._feed(tty)
            while not self._input.over:
                waits = [feed.patience, _ESCAPE if self._keyboard.waiting else None]
                if self._heed(tty.wait(min((wait for wait in waits if wait is not None), default=None))):
                    self._want()
                for fresh in feed.samples():
                    self._take(fresh)
                self._recall()
                self._signals(tty)
                self._draw(tty)
        feed.close()

    def _want(self) -> None:
        """Have read what the screen needs now, if that has changed; the sample of the first frame has only what it shows."""
        if (now := wanted(self._state)) != self._wanted:
            self._wanted = now
            self._sampler.want(now)

    def _ask_background(self, tty: Tty) -> bool:
        """Ask the terminal for its background if the theme depends on it; the answer comes as a key, also a late one."""
        theme = self._state.theme
        asked = bool(theme.colors) and not theme.background and theme.name in ("auto", "contrast", "blind")
        if asked:
            tty.write(QUERY)
        return asked

    def _heed(self, typed: bytes) -> bool:
        """Handle keys and return whether there were any; a new sample that wakes us within a sequence does not end the sequence."""
        now = time.monotonic()
        if typed:
            self._typed = now
            events = self._keyboard.feed(typed)
        else:
            events = self._keyboard.flush() if now - self._typed >= _ESCAPE else []
        for event in events:
            self._input.handle(event)
        return bool(events)

    def _feed(self, tty: Tty) -> LiveFeed | ReplayFeed:
        """Return where samples come from: the driver, or the recording that the source plays."""
        player = getattr(self._sampler.source, "player", None)
        if player is None:
            if self._sampler.source.machine.real:
                self._detector = EventDetector(ClockWatch())
                self._past = Recall(self._state.history.keys, tty.wake)
                self._stack = LiveStack(tty.wake)
            return LiveFeed(self._sampler, self._state, tty.wake)
        from .feeds import ReplayFeed

        self._state.player = player
        return ReplayFeed(self._sampler, self._state, player)

    def _take(self, snapshot: Snapshot) -> None:
        state = self._state
        if state.live is not None and snapshot.time < state.live.time:
            state.past = ProcessPast()
            self._live = LiveDiagnosis()
            if state.player is not None:  # a recording that was moved back; else the clock was, which is an event
                state.events = []
                self._detector = EventDetector()
        elif state.live is not None and state.back:
            state.back += snapshot.time - state.live.time  # the moment on screen stays the same one
        self._note(self._detector.observe(snapshot))
        if self._live.add(snapshot):
            state.diagnosis = self._live.latest
        state.concerns = concerns(state.diagnosis, now=snapshot.time)
        state.live = snapshot
        state.history.add(snapshot)
        state.past.add(snapshot)

    def _note(self, events: Iterable[Event]) -> None:
        """Keep the last events, newest first; one that comes again with its end replaces itself."""
        if not (events := list(events)):
            return
        found = {event.key: event for event in (*reversed(self._state.events), *events)}
        self._state.events = sorted(found.values(), key=lambda event: -event.time)[:_EVENTS]

    def _recall(self) -> None:
        """Put the past of the history before what was seen, once it has been read."""
        recall, live = self._past, self._state.live
        if recall is None or not recall.ready or live is None:
            return
        self._past = None
        numbers = {gpu.uuid: int(gpu.index) for gpu in live.gpus if gpu.uuid and gpu.index is not None}
        for times, series in reversed(recall.series):
            known = {(numbers[uuid], key): values for (uuid, key), values in series.items() if uuid in numbers}
            self._state.history.prepend(times, known)
        seen = {event.key for event in self._state.events}
        self._note(event for event in recall.events if event.key not in seen and event.severity != "info")

    def _trace(self) -> None:
        """Read the ancestors of the processes of a new sample, for the tree; those of earlier samples are kept."""
        state, live = self._state, self._state.live
        if not state.tree or live is None or live is self._traced:
            return
        self._traced = live
        machine, found = self._sampler.source.machine, pids(all_rows(live))
        fresh = {} if machine.foreign(found) else machine.lineage(found)
        state.relatives = {**(state.relatives if len(state.relatives) < _RELATIVES else {}), **fresh}

    def _show(self) -> None:
        """Choose the sample on screen: the newest, or an earlier one."""
        state = self._state
        self._trace()
        stands = state.paused or state.player is not None
        state.now = state.live.time if stands and state.live is not None else time.time()
        if state.back > 0 and state.live is not None:
            state.shown = state.history.sample_at(state.live.time - state.back)
        elif not state.paused or state.shown is None:
            state.shown = state.live

    def _draw(self, tty: Tty) -> None:
        if tty.busy:
            return  # a slow line: this frame is left out, the next one is drawn over the last that arrived
        state = self._state
        self._show()
        if state.dialog != "details":
            self._about = (0, {})
        self._look_at_stack()
        before = None if self._input.redraw else self._drawn
        self._input.redraw, self._drawn = False, paint(state, self._facts)
        if text := difference(before, self._drawn, state.theme):
            tty.write(text)

    def _look_at_stack(self) -> None:
        """Have the stack of a process read while its details are open and show the present."""
        state, stack = self._state, self._stack
        if stack is None:
            return
        open_now = state.dialog == "details" and not state.paused and not state.back
        foreign = state.selected is None or self._sampler.source.machine.foreign([state.selected])
        stack.watch(state.selected if open_now and not foreign else None)
        state.stacks, state.stack_problem, state.run = stack.stacks, stack.problem, stack.run

    def _facts(self, pid: int) -> dict[str, str]:
        """Return what else is known of a process, read once while its details are open."""
        if self._about[0] != pid:
            machine = self._sampler.source.machine
            self._about = (pid, {} if machine.foreign([pid]) else machine.about(pid))
        return self._about[1]

    def _signals(self, tty: Tty) -> None:
        raised, tty.signals = tty.signals, set()
        if raised & {signal.SIGTERM, signal.SIGHUP, signal.SIGINT}:
            self._input.over = True
        if signal.SIGTSTP in raised:
            tty.suspend()
            self._input.redraw = True
        size = tty.size()
        if raised & {signal.SIGWINCH, signal.SIGCONT} or size != (self._state.columns, self._state.rows):
            self._state.columns, self._state.rows = size
            self._input.redraw = True


_PANELS = {
    "header": rows.paint_header, "gpus": gpus.paint, "serving": rows.paint_serving, "charts": charts.paint,
    "host": rows.paint_host, "processes": processes.paint, "problems": rows.paint_problems, "events": rows.paint_events,
}  # fmt: skip


def paint(state: State, facts: Facts = lambda pid: {}) -> Grid:
    """Return the screen of a state; `facts` returns more about a process, for the details."""
    grid = Grid(state.columns, state.rows)
    areas = arrange(state)
    if state.dialog in ("gpu", "host"):
        header, footer = areas["header"], areas["footer"]
        rows.paint_header(grid, header, state)
        _view(grid, Area(header.end, 0, footer.row - header.end, state.columns), state)
    else:
        for name, panel in _PANELS.items():
            panel(grid, areas[name], state)
    rows.paint_footer(grid, areas["footer"], state, hints(state.player is not None))
    if state.dialog and state.dialog != "filter":
        _dialog(grid, Area(0, 0, state.rows, state.columns), state, facts)
    if not state.theme.unicode:
        _spell(grid)
    mend(grid)
    return grid


def _view(grid: Grid, area: Area, state: State) -> None:
    """Draw a full-screen view; they are loaded when first used."""
    from .panels import views

    (views.paint_gpu if state.dialog == "gpu" else views.paint_host)(grid, area, state)


def _dialog(grid: Grid, area: Area, state: State, facts: Facts) -> None:
    """Draw the open dialog; they are loaded when first used."""
    if state.dialog == "details":
        from .panels import details

        details.paint(grid, area, state, facts)
    elif state.dialog in ("help", "why"):
        from .panels import details

        if state.dialog == "help":
            details.paint_help(grid, area, state, help_lines(state.player is not None))
        else:
            details.paint_why(grid, area, state)
    elif state.dialog in ("settings", "sort", "signal"):
        from .panels.menus import menu_of

        menu_of(state).paint(grid, area, state.theme)


def _spell(grid: Grid) -> None:
    """Replace characters that an ASCII terminal cannot show, cell by cell, so that nothing moves."""
    for chars in grid.chars:
        for at, char in enumerate(chars):
            if char == WIDE_REST:
                chars[at] = "?"
            elif not char.isascii():
                chars[at] = ascii_text(char)[:1] or " "
