"""The Intel source: finds the cards of i915 and xe."""

from __future__ import annotations

from ...errors import SourceUnavailable
from ..card_source import CardSource
from ..drm.cards import find_cards
from .device import DRIVERS, KEYS, IntelDevice
from .identity import driver_version

TYPE_CHECKING = False
if TYPE_CHECKING:
    from ...model.snapshot import Check

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
        from .examine import examine  # only `doctor` needs it

        return examine(self._root)
