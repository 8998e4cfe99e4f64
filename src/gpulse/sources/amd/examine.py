"""Checks for AMD: cards, their power state, the compute driver, and permissions for processes."""

from __future__ import annotations

import os

from ...model.snapshot import Check
from ..drm.cards import find_cards
from ..drm.checks import card_checks, process_checks
from .device import DRIVERS


def examine(root: str = "") -> list[Check]:
    """Return what was found of AMD's on this machine, without waking a GPU."""
    cards = find_cards(root, DRIVERS, 0x1002)
    if not cards:
        return [Check("note", "cards", "the kernel has no card of amdgpu or radeon.")]
    found = card_checks(cards, "amdgpu")
    if not os.path.isdir(f"{root}/sys/class/kfd"):
        found.append(Check("note", "compute", "KFD is not loaded, so ROCm cannot run here."))
    remedy = "Compute processes are complete anyway; for graphics of other users, run as root."
    return found + process_checks(root, remedy)
