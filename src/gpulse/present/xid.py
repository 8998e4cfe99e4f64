"""XID codes in words."""

from __future__ import annotations

from ..model.xid import xid_of


def xid_text(code: float) -> str:
    """Return a code with its meaning: XID 79 (GPU has fallen off the bus)."""
    meaning = xid_of(code).meaning
    return f"XID {code:.0f} ({meaning})" if meaning else f"XID {code:.0f}"


def xid_remedy(code: float) -> str:
    """Return what to do about a code; empty for one that is not known."""
    return xid_of(code).remedy
