"""The Intel source: the cards of i915 and xe."""

from __future__ import annotations

from ..drm.source import CardSource
from .device import DRIVERS, KEYS, IntelDevice, driver_version, is_integrated
from .sensors import may_see_usage, query_memory

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from ...model.snapshot import Check
    from ..drm.cards import Card

__all__ = ["KEYS", "IntelSource"]


class IntelSource(CardSource):
    """All Intel GPUs of a machine; `root` is prefixed to /proc and /sys: the folder of a recorded machine, or empty."""

    name = "intel"
    devices: list[IntelDevice]
    vendor, vendor_id, drivers = "Intel", 0x8086, DRIVERS
    hidden_remedy = "Run as root to see all processes that use the GPU."

    def _found(self, cards: list[Card]) -> list[IntelDevice]:
        version = driver_version(self._root)
        self.driver = {cards[0].driver or "i915": version} if version and cards else {}
        return [IntelDevice(card, index, self._clients, self._root) for index, card in enumerate(cards)]

    def _checks(self, awake: Sequence[Card]) -> list[Check]:
        from ...model.snapshot import Check

        discrete = [card for card in awake if not is_integrated(card)]
        if not discrete or self._root:
            return []
        if query_memory(discrete[0]) is None:
            remedy = "Add this user to the group that owns /dev/dri/renderD*, usually render."
            return [Check("warn", "memory", "the size of the GPU's memory cannot be read.", remedy)]
        if not may_see_usage():
            remedy = "Run gpulse as root, or give it CAP_PERFMON."
            return [Check("note", "memory", "reading the memory in use needs CAP_PERFMON.", remedy)]
        return []
