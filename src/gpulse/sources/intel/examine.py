"""Checks for Intel: cards, their power state, and missing permissions."""

from __future__ import annotations

from ...model.snapshot import Check
from ..drm.cards import find_cards
from ..drm.checks import card_checks, process_checks, sleeping
from .device import DRIVERS
from .identity import is_integrated
from .regions import may_see_usage, query_memory


def examine(root: str = "") -> list[Check]:
    """Return what was found of Intel's on this machine, without waking a GPU."""
    cards = find_cards(root, DRIVERS, 0x8086)
    if not cards:
        return [Check("note", "cards", "the kernel has no card of i915 or xe.")]
    found, asleep = card_checks(cards, "i915"), sleeping(cards)
    discrete = [card for card in cards if not is_integrated(card) and card.slot not in asleep]
    if discrete and not root:
        if query_memory(discrete[0]) is None:
            remedy = "Add this user to the group that owns /dev/dri/renderD*, usually render."
            found.append(Check("warn", "memory", "the size of the GPU's memory cannot be read.", remedy))
        elif not may_see_usage():
            remedy = "Run gpulse as root, or give it CAP_PERFMON."
            found.append(Check("note", "memory", "reading the memory in use needs CAP_PERFMON.", remedy))
    return found + process_checks(root, "Run as root to see all processes that use the GPU.")
