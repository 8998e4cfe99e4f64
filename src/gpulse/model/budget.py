"""Time budgets: where the time of a GPU went, as parts that add up to all of it."""

from __future__ import annotations

from types import MappingProxyType

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from typing import Any

# The parts in the order in which bars and lists show them: the GPU at work, what it waited for, and the rest.
PARTS = (
    "tensor", "compute", "memory", "copy", "launch", "throttled",
    "workers", "thread", "storage", "network", "outside", "checkpoint", "unexplained",
    "starting", "idle", "unread",
)  # fmt: skip
WORK = ("tensor", "compute", "memory")  # the SMs are active
WAITS = ("copy", "launch", "workers", "thread", "storage", "network", "outside", "checkpoint", "unexplained")


_LEAST = 5e-5  # of the time; less is 0 when it is written


class Budget:
    """Where `seconds` of a GPU went: `shares` (0–1) by part, in the order of PARTS, without parts that are 0; they sum to 1.

    `estimated` names the parts that were inferred rather than counted by the hardware. Immutable.
    """

    __slots__ = ("estimated", "seconds", "shares")
    seconds: float
    shares: Mapping[str, float]
    estimated: frozenset[str]

    def __init__(self, seconds: float, shares: Mapping[str, float], estimated: Iterable[str] = ()) -> None:
        present = {part: shares[part] for part in PARTS if shares.get(part, 0.0) >= _LEAST}
        object.__setattr__(self, "seconds", seconds)
        object.__setattr__(self, "shares", MappingProxyType(present))
        object.__setattr__(self, "estimated", frozenset(estimated) & present.keys())

    @property
    def work(self) -> float:
        """The share of the time (0–1) in which the chip worked."""
        return sum(self.shares.get(part, 0.0) for part in WORK)

    def to_plain(self) -> dict[str, Any]:
        """Return the budget as plain data, ready for JSON."""
        return {
            "seconds": round(self.seconds, 3),
            "shares": {part: round(share, 4) for part, share in self.shares.items()},
            "estimated": [part for part in self.shares if part in self.estimated],
        }

    @classmethod
    def from_plain(cls, plain: object) -> Budget | None:
        """Build a budget from plain data; None where there is none. Parts it does not know are left out."""
        if not isinstance(plain, dict) or not isinstance(shares := plain.get("shares"), dict):
            return None
        known = {part: float(share) for part, share in shares.items() if isinstance(share, (int, float))}
        seconds, estimated = plain.get("seconds"), plain.get("estimated")
        guessed = estimated if isinstance(estimated, list) else ()
        return cls(float(seconds) if isinstance(seconds, (int, float)) else 0.0, known, map(str, guessed))

    def __setattr__(self, name: str, value: object) -> None:
        raise AttributeError("a Budget is a value and cannot be changed")

    def __delattr__(self, name: str) -> None:
        raise AttributeError("a Budget is a value and cannot be changed")

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Budget) and self.to_plain() == other.to_plain()

    def __hash__(self) -> int:
        return hash((self.seconds, tuple(self.shares.items())))

    def __repr__(self) -> str:
        parts = ", ".join(f"{part} {100 * share:.0f} %" for part, share in self.shares.items())
        return f"Budget({self.seconds:.0f} s: {parts})"


def total(budgets: Iterable[Budget]) -> Budget | None:
    """Return one budget of several, each counting by its seconds; None where there is none."""
    known = [one for one in budgets if one.seconds > 0]
    seconds = sum(one.seconds for one in known)
    if not known:
        return None
    shares = {part: sum(one.shares.get(part, 0.0) * one.seconds for one in known) / seconds for part in PARTS}
    return Budget(seconds, shares, frozenset().union(*(one.estimated for one in known)))
