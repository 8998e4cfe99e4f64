"""The AMD source: finds the cards of amdgpu and radeon, puts KFD's nodes to them, and checks them for `doctor`."""

from __future__ import annotations

import os

from ...errors import SourceUnavailable
from ...model.snapshot import Check
from ..drm.cards import Card, find_cards
from ..drm.source import CardSource, card_checks, process_checks
from .device import DRIVERS, KEYS, AmdDevice
from .identity import driver_version
from .kfd import find_nodes

TYPE_CHECKING = False
if TYPE_CHECKING:
    from .kfd import Node

__all__ = ["KEYS", "AmdSource"]
_VENDOR = 0x1002


class AmdSource(CardSource):
    """All AMD GPUs of a machine; `root` is prefixed to /proc and /sys: the folder of a recorded machine, or empty."""

    name = "amd"
    devices: list[AmdDevice]

    def open(self) -> None:
        self.close()
        nodes = find_nodes(self._root)
        cards = find_cards(self._root, DRIVERS, _VENDOR) or _without_cards(nodes, self._root)
        if not cards:
            raise SourceUnavailable(
                "AMD: the kernel has no card of amdgpu or radeon.",
                "Check `lspci -k | grep -A3 -i vga`; in a container, /sys must be mounted.",
            )
        owned = {card.slot: [node for node in nodes if card.slot.startswith(f"{node.place}.")] for card in cards}
        cards.sort(key=lambda card: _order(card, owned[card.slot]))
        self.devices = [
            AmdDevice(card, index, owned[card.slot], self._clients, self._root) for index, card in enumerate(cards)
        ]
        version = driver_version(self._root, cards[0].driver)
        self.driver = {"amdgpu": version} if version else {}

    def examine(self) -> list[Check]:

        return examine(self._root)


def _without_cards(nodes: list[Node], root: str) -> list[Card]:
    """Return a card for each GPU that only the compute driver lists, as in a container or a recording without graphics."""
    cards: dict[str, Card] = {}
    for node in nodes:
        card = Card(f"{root}/sys/class/drm/none")
        card.slot, card.driver, card.vendor_id = f"{node.place}.0", DRIVERS[0], _VENDOR
        card.device_id = node.properties.get("device_id", 0)
        cards.setdefault(card.slot, card)
    return list(cards.values())


def _order(card: Card, nodes: list[Node]) -> tuple[int, str]:
    """Return what to sort a card by: HIP counts in KFD's order; cards without compute come last, by slot."""
    return (nodes[0].position if nodes else 1 << 30, card.slot)


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
