"""Values derived from other values, in the same way for every source and for recordings."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

    from .metric import Value

_OF_FOUR = ("1g.6gb", "2g.12gb", "4g.24gb")  # the profiles of an A30, the only GPU with four slices


def memory_percent(values: Mapping[str, Value]) -> float | None:
    """Return used memory relative to the memory available to programs, in percent; None if either is unknown."""
    used, total, reserved = (_number(values.get(key)) for key in ("memory_used", "memory_total", "memory_reserved"))
    if used is None or total is None:
        return None
    usable = total - (reserved or 0)
    return round(min(100.0, 100.0 * used / usable), 1) if usable > 0 else None


def memory_unattributed(used: Value | None, held: list[Value | None]) -> float | None:
    """Return used memory that no process accounts for; None if the memory of any process is unknown."""
    known = [amount for amount in map(_number, held) if amount is not None]
    total = _number(used)
    return None if total is None or len(known) < len(held) else max(0, total - sum(known))


def slice_share(facts: Mapping[str, Value] | None) -> float:
    """Return the part of a GPU that a MIG instance is, by its compute slices; 1 without one or if its profile is unknown.

    The name of an instance holds its profile: "MIG 1g.10gb" is one slice of seven (of four on an A30), "MIG 1c.3g.20gb" too.
    """
    if facts is None:
        return 1.0
    profile = str(facts.get("name", "")).rpartition("MIG ")[2]
    count = profile.partition("g")[0].partition("c")[0]
    whole = 4 if profile.partition("+")[0] in _OF_FOUR else 7
    return min(1.0, int(count) / whole) if count.isdecimal() and "g." in profile else 1.0


def _number(value: Value | None) -> float | None:
    return value if isinstance(value, (int, float)) else None
