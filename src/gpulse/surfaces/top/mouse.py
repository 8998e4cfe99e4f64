"""Mouse clicks on the bottom line and on menus, as the keys that they stand for."""

from __future__ import annotations

from .actions import hints
from .area import Area
from .layout import arrange
from .panels import footer

TYPE_CHECKING = False
if TYPE_CHECKING:
    from ...screen.keys import KeyEvent
    from .panels.menu import Menu
    from .state import State

_MENUS = ("settings", "sort", "signal")
_BOXES = (*_MENUS, "help", "details", "why")  # dialogs in a box in front of the panels


def key_for(state: State, event: KeyEvent) -> str | None:
    """Return the key that a click stands for, "" for one that only moves the cursor of a menu, and None for any other event.

    The first click on a line selects it, a second one is Enter; a click outside a menu is Esc.
    """
    if event.mouse != "press":
        return None
    if state.dialog in _MENUS:
        return _in_menu(state, event)
    if state.dialog in _BOXES:
        return ""
    area = arrange(state)["footer"]
    if not area.holds(event.row, event.column):
        return None
    found = footer.key_at(area, state, hints(state.player is not None), event.column)
    return found.lower() if len(found) > 1 else found


def menu_of(state: State) -> Menu:
    """Return the menu that is open."""
    if state.dialog == "settings":
        from .panels import settings

        return settings.menu(state)
    if state.dialog == "sort":
        from .panels import sort_menu

        return sort_menu.menu(state)
    from .panels import signal_menu

    return signal_menu.menu(state)


def _in_menu(state: State, event: KeyEvent) -> str:
    line = menu_of(state).line_at(Area(0, 0, state.rows, state.columns), event.row, event.column)
    if line == -1:
        return "escape"
    if line is None:
        return ""
    again, state.choice = line == state.choice, line
    return "enter" if again else ""
