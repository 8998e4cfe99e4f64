"""The Intel source: finds the cards of i915 and xe."""

from __future__ import annotations

from ...errors import SourceUnavailable
from ..base import Source
from ..drm.cards import find_cards
from ..drm.clients import Clients
from ..processes import LinuxMachine
from .device import DRIVERS, KEYS, IntelDevice
from .identity import driver_version

TYPE_CHECKING = False
if TYPE_CHECKING:
    from ...model.check import Check

__all__ = ["KEYS", "IntelSource"]
_VENDOR = 0x8086


class IntelSource(Source):
    """All Intel GPUs of a machine; `root` is prefixed to /proc and /sys: the folder of a recorded machine, or empty."""

    name = "intel"

    def __init__(self, root: str = "") -> None:
        self._root = root
        self._clients = Clients(root)
        self.machine = LinuxMachine(root)
        self.machine.real = not root  # no signal to a pid that another machine had
        self.devices: list[IntelDevice] = []

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

    def refresh(self) -> None:
        self._clients.expire()

    def close(self) -> None:
        for device in self.devices:
            device.close()
        self.devices = []

    def examine(self) -> list[Check]:
        from .examine import examine  # only `doctor` needs it

        return examine(self._root)
