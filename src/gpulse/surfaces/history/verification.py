"""The result of checking a history, in words."""

from __future__ import annotations

from .tables import events_list

TYPE_CHECKING = False
if TYPE_CHECKING:
    from ...store.history import Verification


def verification_lines(path: str, found: Verification) -> list[str]:
    """Return what was checked, and everything that is damaged."""
    checked = f"{path}: {found.blocks} blocks and {found.ticks} newer samples checked"
    if found.sound:
        return [f"{checked}, no damage found"]
    lines = [f"{checked}, damage found"]
    if found.events:
        lines += events_list(found.events, max(event.until or event.time for event in found.events))
    lines += [f"damaged rows in table {table}: {count}" for table, count in found.rows.items()]
    return lines + [f"SQLite: {message}" for message in found.pages]
