"""The Intel source: finds the cards of i915 and xe, and checks them for `doctor`."""

from __future__ import annotations

from ...errors import SourceUnavailable
from ...model.snapshot import Check
from ..drm.cards import find_cards
from ..drm.source import CardSource, card_checks, process_checks, sleeping
from .device import DRIVERS, KEYS, IntelDevice, driver_version, is_integrated
from .regions import may_see_usage, query_memory

TYPE_CHECKING = False
if TYPE_CHECKING:
    pass

__all__ = ["KEYS", "IntelSource"]
_VENDOR = 0x8086


class IntelSource(CardSource):
    """All Intel GPUs of a machine; `root` is prefixed to /proc and /sys: the folder of a recorded machine, or empty."""

    name = "intel"
    devices: list[IntelDevice]

    def open(self) -> None:
        self.close()
        cards = find_cards(self._root, DRIVERS, _VENDOR)
        if not cards:
            raise SourceUnavailable(
                "Intel: the kernel has no card of i915 or xe.",
                "Check `lspci -k | grep -A3 -i vga`; in a container, /sys must be mounted.",
            )
        self.devices = [IntelDevice(card, index, self._clients, self._root) for index, card in enumerate(cards)]
        version = driver_version(self._root)
        self.driver = {cards[0].driver or "i915": version} if version else {}

    def examine(self) -> list[Check]:

        return examine(self._root)


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
