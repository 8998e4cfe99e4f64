"""Values that follow from other values, the same for every source and for recordings."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

    from .metric import Value


def memory_percent(values: Mapping[str, Value]) -> float | None:
    """Return used memory against what programs can have, in per cent; None where either is not known."""
    used, total, reserved = (_number(values.get(key)) for key in ("memory_used", "memory_total", "memory_reserved"))
    if used is None or total is None:
        return None
    usable = total - (reserved or 0)
    return round(min(100.0, 100.0 * used / usable), 1) if usable > 0 else None


def memory_unattributed(used: Value | None, held: list[Value | None]) -> float | None:
    """Return used memory that no process accounts for; None unless every process says what it holds."""
    known = [amount for amount in map(_number, held) if amount is not None]
    total = _number(used)
    return None if total is None or len(known) < len(held) else max(0, total - sum(known))


def _number(value: Value | None) -> float | None:
    return value if isinstance(value, (int, float)) else None
