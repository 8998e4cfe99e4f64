"""XIDs, the error codes of NVIDIA's driver: what each means, what to do about it, and what it affects."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Literal, TypeAlias

    from .condition import Severity

    Affected: TypeAlias = Literal["program", "gpu", "link", "notice"]

_SEVERITY: dict[Affected, Severity] = {"program": "warn", "gpu": "critical", "link": "critical", "notice": "info"}


class Xid:
    """One code. `affects` is what it ends or damages: a program only, the GPU, a link, or nothing (a notice of the driver)."""

    __slots__ = ("affects", "meaning", "remedy")

    def __init__(self, affects: Affected, meaning: str = "", remedy: str = "") -> None:
        self.affects = affects
        self.meaning = meaning
        self.remedy = remedy

    @property
    def severity(self) -> Severity:
        """How bad it is: a code that ends one program leaves the GPU as good as before."""
        return _SEVERITY[self.affects]


_UNKNOWN = Xid("gpu")  # to be taken seriously until somebody has looked it up
_RESTART = "restart the program; usually a bug in it"
_NVLINK = "follow NVIDIA's NVLink workflow"
# After NVIDIA's XID catalog.
XIDS = {
    13: Xid("program", "graphics engine exception", _RESTART),
    31: Xid("program", "memory page fault", _RESTART),
    43: Xid("program", "the program was stopped", "nothing to do for the GPU"),
    45: Xid("program", "the program was terminated", "nothing to do for the GPU"),
    48: Xid("gpu", "uncorrectable memory error", "drain the node and reset the GPU"),
    62: Xid("gpu", "internal microcontroller halt", "reset the GPU"),
    63: Xid("notice", "a memory row was remapped", "nothing to do now; it takes effect at the next reset"),
    64: Xid("gpu", "row remapping failed", "reset the GPU; replace it if this comes back"),
    74: Xid("link", "NVLink error", "check the NVLink bridge and reset the GPU"),
    79: Xid("gpu", "GPU has fallen off the bus", "restart the machine; check power and slot if this comes back"),
    92: Xid("notice", "many corrected memory errors", "nothing to do now; watch the GPU"),
    94: Xid("program", "contained memory error", "restart the program"),
    95: Xid("gpu", "uncontained memory error", "reset the GPU"),
    109: Xid("gpu", "context switch timeout", "reset the GPU"),
    119: Xid("gpu", "GSP firmware timeout", "reset the GPU"),
    120: Xid("gpu", "GSP firmware error", "reset the GPU"),
    140: Xid("gpu", "unrecovered memory error", "reset the GPU"),
    143: Xid("gpu", "GPU initialization error", "reset the GPU"),
    145: Xid("link", "NVLink error", _NVLINK),
    149: Xid("link", "NVLink error", _NVLINK),
}


def xid_of(code: float) -> Xid:
    """Return what is known of a code; of one that is not in the table only that the GPU is suspected."""
    return XIDS.get(int(code), _UNKNOWN)
