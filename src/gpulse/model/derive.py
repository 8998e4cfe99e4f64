"""Values derived from other values, in the same way for every source and for recordings."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

    from .metric import Value


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


def _number(value: Value | None) -> float | None:
    return value if isinstance(value, (int, float)) else None
