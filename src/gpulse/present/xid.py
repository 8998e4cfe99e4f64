"""XID codes: what NVIDIA's driver means by each, and what to do about it."""

from __future__ import annotations

# Meaning and remedy by code, after NVIDIA's XID catalog; a code that is not here is named by its number only.
_CODES = {
    13: ("graphics engine exception", "restart the program; usually a bug in it"),
    31: ("memory page fault", "restart the program; usually a bug in it"),
    43: ("the program was stopped", "nothing to do for the GPU"),
    45: ("the program was terminated", "nothing to do for the GPU"),
    48: ("uncorrectable memory error", "drain the node and reset the GPU"),
    62: ("internal microcontroller halt", "reset the GPU"),
    63: ("a memory row was remapped", "nothing to do now; it takes effect at the next reset"),
    64: ("row remapping failed", "reset the GPU; replace it if this comes back"),
    74: ("NVLink error", "check the NVLink bridge and reset the GPU"),
    79: ("GPU has fallen off the bus", "restart the machine; check power and slot if this comes back"),
    92: ("many corrected memory errors", "nothing to do now; watch the GPU"),
    94: ("contained memory error", "restart the program"),
    95: ("uncontained memory error", "reset the GPU"),
    109: ("context switch timeout", "reset the GPU"),
    119: ("GSP firmware timeout", "reset the GPU"),
    120: ("GSP firmware error", "reset the GPU"),
    140: ("unrecovered memory error", "reset the GPU"),
    143: ("GPU initialization error", "reset the GPU"),
    145: ("NVLink error", "follow NVIDIA's NVLink workflow"),
    149: ("NVLink error", "follow NVIDIA's NVLink workflow"),
}
PROGRAM_CODES = frozenset({13, 31, 43, 45, 94})  # end a program and leave the GPU as good as before


def xid_text(code: float) -> str:
    """Return a code with its meaning: XID 79 (GPU has fallen off the bus)."""
    meaning = _CODES.get(int(code), ("", ""))[0]
    return f"XID {code:.0f} ({meaning})" if meaning else f"XID {code:.0f}"


def xid_remedy(code: float) -> str:
    """Return what to do about a code; empty for one that is not known."""
    return _CODES.get(int(code), ("", ""))[1]
