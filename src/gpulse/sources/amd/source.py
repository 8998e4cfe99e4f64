"""The AMD source: the cards of amdgpu and radeon, with KFD's nodes put to them."""

from __future__ import annotations

import os

from ..drm.cards import Card
from ..drm.source import CardSource
from .device import DRIVERS, KEYS, AmdDevice
from .identity import driver_version
from .kfd import find_nodes

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from ...model.snapshot import Check
    from .kfd import Node

__all__ = ["KEYS", "AmdSource"]


class AmdSource(CardSource):
    """All AMD GPUs of a machine; `root` is prefixed to /proc and /sys: the folder of a recorded machine, or empty."""

    name = "amd"
    devices: list[AmdDevice]
    vendor, vendor_id, drivers = "AMD", 0x1002, DRIVERS
    hidden_remedy = "Compute processes are complete anyway; for graphics of other users, run as root."

    def _found(self, cards: list[Card]) -> list[AmdDevice]:
        nodes = find_nodes(self._root)
        cards = cards or self._without_cards(nodes)
        owned = {card.slot: [node for node in nodes if card.slot.startswith(f"{node.place}.")] for card in cards}
        # HIP counts in KFD's order; cards without compute come last, by slot
        cards.sort(key=lambda card: (owned[card.slot][0].position if owned[card.slot] else 1 << 30, card.slot))
        version = driver_version(self._root, cards[0].driver) if cards else ""
        self.driver = {"amdgpu": version} if version else {}
        return [AmdDevice(card, index, owned[card.slot], self._clients, self._root) for index, card in enumerate(cards)]

    def _without_cards(self, nodes: list[Node]) -> list[Card]:
        """Return a card for each GPU that only the compute driver lists, as in a container or a recording without graphics."""
        cards: dict[str, Card] = {}
        for node in nodes:
            card = Card(f"{self._root}/sys/class/drm/none")
            card.slot, card.driver, card.vendor_id = f"{node.place}.0", DRIVERS[0], self.vendor_id
            card.device_id = node.properties.get("device_id", 0)
            cards.setdefault(card.slot, card)
        return list(cards.values())

    def _checks(self, awake: Sequence[Card]) -> list[Check]:
        from ...model.snapshot import Check

        if os.path.isdir(f"{self._root}/sys/class/kfd"):
            return []
        return [Check("note", "compute", "KFD is not loaded, so ROCm cannot run here.")]
