"""Checks for AMD: cards, their power state, the compute driver, and permissions for processes."""

from __future__ import annotations

import os

from ...model.check import Check
from ..drm.cards import find_cards
from ..drm.clients import Clients
from ..files import read_text
from .device import DRIVERS


def examine(root: str = "") -> list[Check]:
    """Return what was found of AMD's on this machine, without waking a GPU."""
    cards = find_cards(root, DRIVERS, 0x1002)
    if not cards:
        return [Check("note", "cards", "the kernel has no card of amdgpu or radeon.")]
    found = [Check("ok", "cards", f"{len(cards)} of {', '.join(sorted({card.driver or 'amdgpu' for card in cards}))}.")]
    asleep = [card.slot for card in cards if read_text(f"{card.device}/power/runtime_status", 64) == "suspended"]
    if asleep:
        found.append(Check("note", "asleep", f"{', '.join(asleep)} sleeps and is not woken by gpulse."))
    if not os.path.isdir(f"{root}/sys/class/kfd"):
        found.append(Check("note", "compute", "KFD is not loaded, so ROCm cannot run here."))
    clients = Clients(root)
    clients.of("")
    if clients.hidden:
        remedy = "Compute processes are complete anyway; for graphics of other users, run as root."
        found.append(
            Check(
                "note",
                "processes",
                f"{clients.hidden} processes belong to other users, so their GPU use is not visible.",
                remedy,
            )
        )
    return found
