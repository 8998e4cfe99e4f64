"""Keys and mouse: what the user does changes the state of the screen."""

from __future__ import annotations

from ...model.process_filter import ProcessFilter
from ...screen.tty import KeyEvent
from .actions import action_for, hints
from .layout import Area, arrange, plan
from .panels import processes as process_panel
from .panels import rows as single_rows
from .processes import pids, rows
from .state import COLUMNS, PANELS

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from ...sources.base import Machine
    from .signals import Target
    from .state import ScreenSettings, State

# keys that a dialog takes first
_IN_DIALOGS = {"up", "down", "left", "right", "pageup", "pagedown", "home", "end", "enter", "space", "j", "k", "<", ">"}
_STEPS = {"up": -1, "k": -1, "down": 1, "j": 1, "pageup": -10, "pagedown": 10, "home": -9999, "end": 9999}
_WHEEL = 3  # GPUs that one step of the wheel scrolls
MENUS = ("settings", "sort", "signal")
_BOXES = (*MENUS, "help", "details", "why")  # dialogs in a box in front of the panels


class Input:
    """Takes keys and mouse events. `over` is set when the user leaves, `redraw` when the whole screen must be redrawn.

    `save` is called with the settings when the user asks for it and returns what to tell.
    """

    def __init__(self, state: State, machine: Machine, save: Callable[[ScreenSettings], str] | None = None) -> None:
        self.over = self.redraw = False
        self._state = state
        self._machine = machine
        self._save = save
        self._targets: list[Target] = []

    def handle(self, event: KeyEvent) -> None:
        """Take a key, a mouse event or the terminal's answer about its background."""
        state, key = self._state, event.key
        if key.endswith("-background"):
            state.theme = state.theme.on(key.removesuffix("-background"))
            self.redraw = True
            return
        state.message = ""
        if event.mouse:
            self._point(event)
        elif state.dialog == "filter":
            self._type(key)
        elif state.dialog == "signal" and key.isdecimal():
            from .panels.menus import type_signal

            type_signal(state, key)
        elif state.dialog and key in _IN_DIALOGS:
            self._choose(key)
        elif (action := action_for(state, key)) is not None:
            self._do(action.run(state))
            self._aim()

    def _aim(self) -> None:
        """Remember the targets of a signal when the menu opens: the PID may belong to another process later."""
        state = self._state
        if state.dialog != "signal":
            self._targets = []
        elif not self._machine.real:
            state.dialog, state.message = "", "these processes are not on this machine"
        else:
            from .panels.menus import recipients
            from .signals import target

            people = recipients(state)
            if [one.pid for one in self._targets] != people:  # the cursor may have moved below the menu
                self._targets = [target(pid) for pid in people]

    def _do(self, effect: str | None) -> None:
        state = self._state
        if effect == "quit":
            self.over = not state.dialog
            state.dialog = ""
        elif effect == "redraw":
            self.redraw = True
        elif effect == "save" and self._save is not None:
            settings = state.settings
            settings.sort, settings.falling = state.sort, state.falling
            settings.panels = [panel for panel in PANELS if panel not in state.hidden]
            state.message = self._save(settings)
        elif effect in ("left", "right") or (effect in _STEPS and state.focus == "gpus"):
            move_gpu(state, arrange(state)["gpus"], effect)
        elif effect in _STEPS:
            self._move_process(effect)

    def _move_process(self, where: str) -> None:
        state = self._state
        listed = pids(rows(state.shown, state))
        if not listed:
            state.selected = None
            return
        page = process_panel.page(arrange(state)["processes"], state)
        at = listed.index(state.selected) if state.selected in listed else -1
        step = {"pageup": -page, "pagedown": page}.get(where, _STEPS[where])
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
        state.choice = max(0, state.choice + _STEPS.get(key, 0))
        state.digits = ""
        if state.dialog == "gpu" and key in ("left", "right"):
            next_gpu(state, -1 if key == "left" else 1)
        elif state.dialog in MENUS:
            self._choose_in_menu(key)
        elif key == "enter":
            state.dialog = ""

    def _choose_in_menu(self, key: str) -> None:
        from .panels import menus

        state = self._state
        state.choice = menus.menu_of(state).choice
        if state.dialog == "settings":
            if key in ("<", ">"):
                state.message = menus.move_column(state.settings, state.choice, 1 if key == ">" else -1)
            elif key in ("enter", "space", "right", "left"):
                menus.change_setting(state.settings, state.choice, -1 if key == "left" else 1)
                self._apply_settings()
        elif key != "enter":
            return
        elif state.dialog == "sort":
            state.sort_by(COLUMNS[state.choice], state.falling)
            state.dialog, state.settings.sort = "", state.sort
        else:
            from .signals import send

            foreign = self._machine.foreign([one.pid for one in self._targets])
            said = send(self._targets, menus.chosen_signal(state), foreign)
            state.message, state.dialog = "; ".join(said), ""
            state.tagged.clear()
            self._targets = []

    def _apply_settings(self) -> None:
        state, settings = self._state, self._state.settings
        state.theme = state.theme.named(settings.theme)
        state.history.watch(settings.charts)
        state.sort, state.falling = settings.sort, settings.falling
        state.hidden = {panel for panel in PANELS if panel not in settings.panels}
        self.redraw = True

    def _point(self, event: KeyEvent) -> None:
        state, pressed = self._state, event.mouse == "press"
        if pressed and (key := _clicked_key(state, event)) is not None:
            if key:
                self.handle(KeyEvent(key))
            return
        areas = arrange(state)
        table = areas["processes"]
        if not state.dialog and point_at_gpus(state, areas, event):
            return
        if event.mouse in ("wheelup", "wheeldown"):
            (self._choose if state.dialog else self._do)("up" if event.mouse == "wheelup" else "down")
        elif table.holds(event.row, event.column) and pressed and not state.dialog:
            if event.row == table.row and (key := process_panel.column_at(table, state, event.column)):
                state.sort_by(key, not state.falling if key == state.sort else True)
            elif (pid := process_panel.row_at(table, state, event.row)) is not None:
                state.selected, state.focus = pid, "processes"
        elif areas["charts"].holds(event.row, event.column):
            state.cursor = None if event.mouse == "release" else event.column


def _clicked_key(state: State, event: KeyEvent) -> str | None:
    """Return the key that a click stands for, "" for one that only moves the cursor of a menu, and None for any other click.

    The first click on a line of a menu selects it, a second one is Enter; a click outside is Esc.
    """
    if state.dialog in MENUS:
        from .panels.menus import menu_of

        line = menu_of(state).line_at(Area(0, 0, state.rows, state.columns), event.row, event.column)
        if line is None or line == -1:
            return "" if line is None else "escape"
        again, state.choice = line == state.choice, line
        return "enter" if again else ""
    if state.dialog in _BOXES:
        return ""
    area = arrange(state)["footer"]
    if not area.holds(event.row, event.column):
        return None
    found = single_rows.key_at(area, state, hints(state.player is not None), event.column)
    return found.lower() if len(found) > 1 else found


def move_gpu(state: State, area: Area, where: str) -> None:
    """Move the cursor to another GPU, and scroll so that it is visible; the first key only shows the cursor."""
    gpus = state.shown.gpus if state.shown else ()
    if not gpus:
        return
    seen = plan(state, area)
    here = next((at for at, gpu in enumerate(gpus) if gpu.index == state.chart_gpu), None)
    if here is None:
        first = seen.entries[seen.first][0] if seen.first < len(seen.entries) else 0
        target = len(gpus) - 1 if where == "end" else first
    else:
        entry = seen.entries.index((here, None))
        to = max(0, min(len(seen.entries) - 1, entry + seen.step(where)))
        target = seen.entries[to][0]
        if target == here and where in ("down", "right", "pagedown"):  # on an instance of the same GPU: go past it
            target = min(len(gpus) - 1, here + 1)
    _select_gpu(state, target)
    entry, visible = seen.entries.index((target, None)), len(seen.places)
    if visible and not seen.cards:
        state.gpu_scrolled = max(entry - visible + 1, min(seen.first, entry))


def _select_gpu(state: State, position: int) -> None:
    """Put the cursor on a GPU; the charts follow it."""
    gpus = state.shown.gpus if state.shown else ()
    if 0 <= position < len(gpus):
        state.focus = "gpus"
        index = gpus[position].index
        state.chart_gpu = None if index is None else int(index)


def next_gpu(state: State, step: int) -> None:
    """Move the cursor by some GPUs, around the ends."""
    gpus = state.shown.gpus if state.shown else ()
    here = next((at for at, gpu in enumerate(gpus) if gpu.index == state.chart_gpu), 0)
    if gpus:
        _select_gpu(state, (here + step) % len(gpus))


def point_at_gpus(state: State, areas: Mapping[str, Area], event: KeyEvent) -> bool:
    """Take a mouse event on the GPUs or the host and return whether it was there.

    The wheel scrolls the GPUs and leaves the cursor. A click selects a GPU; one on the selected GPU opens its view, one on the host
    that of the host.
    """
    if areas["host"].holds(event.row, event.column) and event.mouse == "press":
        state.focus, state.dialog, state.choice = "host", "host", 0
        return True
    if not areas["gpus"].holds(event.row, event.column):
        return False
    seen = plan(state, areas["gpus"])
    if event.mouse in ("wheelup", "wheeldown"):
        step = -_WHEEL if event.mouse == "wheelup" else _WHEEL
        state.gpu_scrolled = max(0, min(len(seen.entries) - len(seen.places), seen.first + step))
    elif event.mouse == "press" and (found := seen.at(event.row, event.column)) is not None:
        before = state.chart_gpu
        _select_gpu(state, found)
        if state.chart_gpu is not None and state.chart_gpu == before:
            state.dialog, state.choice = "gpu", 0
    return True
