"""The app: waits for keys, snapshots and signals, changes the state, and has it painted."""

from __future__ import annotations

import signal
import sys
import time

from ...analysis.concerns import concerns
from ...analysis.diagnosis.running import LiveDiagnosis
from ...analysis.events import ClockWatch, EventDetector
from ...model.process_filter import ProcessFilter
from ...present.terminal import QUERY
from ...screen.diff import difference
from ...screen.keys import Keyboard, KeyEvent
from ...screen.tty import Tty
from . import gpu_plan
from .actions import action_for
from .area import Area
from .feed import LiveFeed
from .layout import arrange
from .live_stack import LiveStack
from .mouse import key_for
from .needs import wanted as wanted
from .painter import paint
from .panels import processes as process_panel
from .past import ProcessPast
from .processes import all_rows, pids, rows
from .recall import Recall
from .settings import PANELS
from .tracing import TraceKey

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable

    from ...model.event import Event
    from ...model.snapshot import Snapshot
    from ...sampling.sampler import Sampler
    from ...screen.grid import Grid
    from .replay import ReplayFeed
    from .signals import Target
    from .state import State

_ANSWERED = 0.05  # seconds to wait for the terminal's answer before the first frame
_ESCAPE = 0.03  # seconds after which an Esc is a key and not the start of a sequence
# keys that a dialog takes first
_IN_DIALOGS = {"up", "down", "left", "right", "pageup", "pagedown", "home", "end", "enter", "space", "j", "k", "<", ">"}
_RELATIVES = 10_000  # processes to remember for the tree of earlier samples
_EVENTS = 500  # how many of the last events are kept, for the view of a GPU and for stepping back


class App:
    """One run of the screen. `save` is called with the settings when the user asks for it and returns what to tell."""

    def __init__(self, sampler: Sampler, state: State, save: object = None) -> None:
        self._sampler = sampler
        self._state = state
        self._save = save
        self._keyboard = Keyboard()
        self._drawn: Grid | None = None
        self._detector = EventDetector()
        self._live = LiveDiagnosis()
        self._past: Recall | None = None
        self._wanted = wanted(state)
        self._over = False
        self._traced: Snapshot | None = None
        self._typed = 0.0
        self._targets: list[Target] = []
        self._about: tuple[int, dict[str, str]] = (0, {})
        self._stack: LiveStack | None = None
        self._tracing = TraceKey()

    def run(self) -> None:
        """Show the screen until the user leaves it or a signal ends it; the terminal is left as it was."""
        state = self._state
        with Tty(sys.stdin.fileno(), sys.stdout.fileno()) as tty:
            state.columns, state.rows = tty.size()
            asked = self._ask_background(tty)
            self._take(self._sampler.read())
            if asked:  # most terminals have answered by now: the first frame has the right colors
                self._heed(tty.wait(_ANSWERED))
            self._draw(tty)
            feed = self._feed(tty)
            while not self._over:
                waits = [feed.patience, _ESCAPE if self._keyboard.waiting else None]
                typed = tty.wait(min((wait for wait in waits if wait is not None), default=None))
                self._heed(typed)
                for fresh in feed.samples():
                    self._take(fresh)
                self._recall()
                self._signals(tty)
                self._ask_for_what_is_shown()
                self._draw(tty)
        feed.close()

    def _ask_background(self, tty: Tty) -> bool:
        """Ask the terminal for its background if the theme depends on it; the answer comes as a key, also a late one."""
        theme = self._state.theme
        asked = bool(theme.colors) and not theme.background and theme.name in ("auto", "contrast", "blind")
        if asked:
            tty.write(QUERY)
        return asked

    def _heed(self, typed: bytes) -> None:
        for event in self._events(typed):
            self._handle(event)

    def _feed(self, tty: Tty) -> LiveFeed | ReplayFeed:
        """Return where samples come from: the driver, or the recording that the source plays."""
        player = getattr(self._sampler.source, "player", None)
        if player is None:
            if self._sampler.source.machine.real:
                self._detector = EventDetector(ClockWatch())
                self._past = Recall(self._state.history.keys, tty.wake)
                self._stack = LiveStack(tty.wake)
            return LiveFeed(self._sampler, self._state, tty.wake)
        from .replay import ReplayFeed

        self._state.player = player
        return ReplayFeed(self._sampler, self._state, player)

    def _events(self, typed: bytes) -> list[KeyEvent]:
        """Return the keys; a new sample that wakes us within a sequence does not end the sequence."""
        now = time.monotonic()
        if typed:
            self._typed = now
            return self._keyboard.feed(typed)
        return self._keyboard.flush() if now - self._typed >= _ESCAPE else []

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
        self._show()
        if self._state.dialog != "details":
            self._about = (0, {})
        self._look_at_stack()
        self._state.message = self._tracing.news() or self._state.message
        before, self._drawn = self._drawn, paint(self._state, self._facts)
        if text := difference(before, self._drawn, self._state.theme):
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

    def _ask_for_what_is_shown(self) -> None:
        if (now := wanted(self._state)) != self._wanted:
            self._wanted = now
            self._sampler.want(now)

    def _signals(self, tty: Tty) -> None:
        raised, tty.signals = tty.signals, set()
        if raised & {signal.SIGTERM, signal.SIGHUP, signal.SIGINT}:
            self._over = True
        if signal.SIGTSTP in raised:
            tty.suspend()
            self._drawn = None
        size = tty.size()
        if raised & {signal.SIGWINCH, signal.SIGCONT} or size != (self._state.columns, self._state.rows):
            self._state.columns, self._state.rows = size
            self._drawn = None

    def _handle(self, event: KeyEvent) -> None:
        if event.key.endswith("-background"):
            self._state.theme = self._state.theme.on(event.key.removesuffix("-background"))
            self._drawn = None
            return
        self._state.message = ""
        if event.mouse:
            self._click(event)
        elif self._state.dialog == "filter":
            self._type(event.key)
        elif self._state.dialog == "signal" and event.key.isdecimal():
            from .panels import signal_menu

            signal_menu.typed(self._state, event.key)
        elif self._state.dialog and (event.key in _IN_DIALOGS or _in_view(self._state, event.key)):
            self._choose(event.key)
        elif (action := action_for(self._state, event.key)) is not None:
            self._do(action.run(self._state))
            self._aim()

    def _aim(self) -> None:
        """Remember the targets of a signal when the menu opens: the PID may belong to another process later."""
        state = self._state
        if state.dialog != "signal":
            self._targets = []
        elif not self._sampler.source.machine.real:
            state.dialog, state.message = "", "these processes are not on this machine"
        else:
            from .panels import signal_menu
            from .signals import target

            people = signal_menu.recipients(state)
            if [one.pid for one in self._targets] != people:  # the cursor may have moved below the menu
                self._targets = [target(pid) for pid in people]

    def _do(self, effect: str | None) -> None:
        state = self._state
        if effect == "quit":
            if state.dialog:
                state.dialog = ""
            else:
                self._over = True
        elif effect == "trace":
            state.message = self._tracing.ask(state.selected, self._sampler.source.machine)
        elif effect == "redraw":
            self._drawn = None
        elif effect == "save" and callable(self._save):
            settings = state.settings
            settings.sort, settings.falling = state.sort, state.falling
            settings.panels = [panel for panel in PANELS if panel not in state.hidden]
            state.message = self._save(settings)
        elif effect in ("up", "down", "pageup", "pagedown", "home", "end", "left", "right"):
            self._move(effect)

    def _move(self, where: str) -> None:
        state = self._state
        if state.focus == "gpus" or where in ("left", "right"):
            gpu_plan.move(state, arrange(state)["gpus"], where)
            return
        listed = pids(rows(state.shown, state))
        if not listed:
            state.selected = None
            return
        area = arrange(state).get("processes", Area(0, 0, 0, 0))
        page = max(1, process_panel.page(area, state))
        at = listed.index(state.selected) if state.selected in listed else -1
        step = {"up": -1, "down": 1, "pageup": -page, "pagedown": page, "home": -len(listed), "end": len(listed)}[where]
        state.selected = listed[min(len(listed) - 1, max(0, at + step))]

    def _type(self, key: str) -> None:
        """Take a key of the filter line."""
        state = self._state
        if key == "enter":
            state.filter, state.dialog = state.editing, ""
            state.message = ProcessFilter(state.filter).note
        elif key == "escape":
            state.dialog = ""
        elif key == "backspace":
            state.editing = state.editing[:-1]
        elif key == "ctrl-u":
            state.editing = ""
        elif key == "space" or len(key) == 1:
            state.editing += " " if key == "space" else key

    def _choose(self, key: str) -> None:
        """Take a key of the dialog in front."""
        state = self._state
        steps = {"up": -1, "k": -1, "down": 1, "j": 1, "pageup": -10, "pagedown": 10, "home": -9999, "end": 9999}
        state.choice = max(0, state.choice + steps.get(key, 0))
        state.digits = ""
        if state.dialog == "gpu" and key in ("left", "right"):
            gpu_plan.next_gpu(state, -1 if key == "left" else 1)
        elif state.dialog == "settings":
            self._choose_setting(key)
        elif state.dialog == "sort":
            self._choose_sort(key)
        elif state.dialog == "signal":
            self._choose_signal(key)
        elif key == "enter":
            state.dialog = ""

    def _choose_setting(self, key: str) -> None:
        from .panels import settings

        state = self._state
        state.choice = min(state.choice, len(settings.lines(state.settings)) - 1)
        if key in ("<", ">"):
            state.message = settings.move(state.settings, state.choice, 1 if key == ">" else -1)
        elif key in ("enter", "space", "right", "left"):
            settings.change(state.settings, state.choice, -1 if key == "left" else 1)
            state.theme = state.theme.named(state.settings.theme)
            state.history.watch(state.settings.charts)
            state.sort, state.falling = state.settings.sort, state.settings.falling
            state.hidden = {panel for panel in PANELS if panel not in state.settings.panels}
            self._drawn = None

    def _choose_sort(self, key: str) -> None:
        from .panels import sort_menu

        state = self._state
        keys = sort_menu.keys(state)
        state.choice = min(state.choice, len(keys) - 1)
        if key == "enter":
            state.sort_by(keys[state.choice], state.falling)
            state.dialog, state.settings.sort = "", state.sort

    def _choose_signal(self, key: str) -> None:
        from .panels import signal_menu
        from .signals import SIGNALS, send

        state = self._state
        state.choice = min(state.choice, len(SIGNALS) - 1)
        if key == "enter":
            foreign = self._sampler.source.machine.foreign([one.pid for one in self._targets])
            said = send(self._targets, signal_menu.chosen(state), foreign)
            state.message, state.dialog = "; ".join(said), ""
            state.tagged.clear()
            self._targets = []

    def _click(self, event: KeyEvent) -> None:
        state = self._state
        if (key := key_for(state, event)) is not None:
            if key:
                self._handle(KeyEvent(key))
            return
        areas = arrange(state)
        table = areas.get("processes")
        if not state.dialog and gpu_plan.pointed(state, areas, event):
            return
        if event.mouse in ("wheelup", "wheeldown"):
            self._do("up" if event.mouse == "wheelup" else "down") if not state.dialog else self._choose(
                "up" if event.mouse == "wheelup" else "down"
            )
        elif table is not None and table.holds(event.row, event.column) and event.mouse == "press" and not state.dialog:
            if event.row == table.row and (key := process_panel.column_at(table, state, event.column)):
                state.sort_by(key, not state.falling if key == state.sort else True)
            elif (pid := process_panel.row_at(table, state, event.row)) is not None:
                state.selected, state.focus = pid, "processes"
        elif (charts := areas.get("charts")) is not None and charts.holds(event.row, event.column):
            state.cursor = None if event.mouse == "release" else event.column


def _in_view(state: State, key: str) -> bool:
    """Return whether a full-screen view takes this key too."""
    return state.dialog in ("gpu", "host") and key in ("home", "end")
