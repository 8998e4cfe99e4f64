"""Which graphics cards the kernel has, and which driver each one belongs to."""

from __future__ import annotations

import os

from ..files import link, names, read_text

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Collection

    from ..base import DeviceSample, Key

_VITAL = frozenset({"utilization", "temperature", "power_draw", "clock_sm", "memory_used"})


class Card:
    """One card of /sys/class/drm: `path` is its folder, `device` the folder of the device behind it."""

    __slots__ = ("device", "device_id", "driver", "name", "path", "revision", "slot", "vendor_id", "virtual")

    def __init__(self, path: str) -> None:
        self.path = path
        self.name = path.rsplit("/", 1)[-1]
        self.device = f"{path}/device"
        facts = uevent(self.device)
        vendor, _, device = facts.get("PCI_ID", "").partition(":")
        self.driver = facts.get("DRIVER") or os.path.basename(link(f"{self.device}/driver"))
        self.vendor_id = _hexadecimal(vendor) or _hexadecimal(read_text(f"{self.device}/vendor", 64) or "")
        self.device_id = _hexadecimal(device) or _hexadecimal(read_text(f"{self.device}/device", 64) or "")
        self.revision = _hexadecimal(read_text(f"{self.device}/revision", 64) or "")
        self.slot = facts.get("PCI_SLOT_NAME", "").lower() or _slot_of(self.device)
        self.virtual = facts.get("MODALIAS", "").startswith("platform:")

    def lose(self, sample: DeviceSample, keys: Key) -> None:
        """Mark a sample without any sensor value as lost if the device is gone: unplugged, or bound to another driver."""
        if not sample.values.keys().isdisjoint(_VITAL) or keys.isdisjoint(_VITAL):
            return
        if os.path.isdir(self.device) or not self.name.startswith("card"):  # one of KFD's alone never had a folder
            return
        sample.state = "lost"
        sample.values.clear()
        sample.counters.clear()
        sample.gaps = dict.fromkeys(keys, "lost")


def uevent(device: str) -> dict[str, str]:
    """Return the variables of a device's uevent file."""
    lines = (read_text(f"{device}/uevent", 4096) or "").splitlines()
    return {word: rest.strip() for word, equals, rest in (line.partition("=") for line in lines) if equals}


def card_names(root: str) -> list[str]:
    """Return the cards of a machine; connectors (card0-DP-1) and render nodes are none."""
    return [name for name in names(f"{root}/sys/class/drm") if name.startswith("card") and name[4:].isdecimal()]


def find_cards(root: str, drivers: Collection[str], vendor_id: int) -> list[Card]:
    """Return the cards of these drivers in the order of their PCI slots; card numbers change from boot to boot.

    Where a tree does not name the driver, its sensors' name and then the PCI vendor decide. A card that is no PCI device
    is a partition of another.
    """
    cards = [Card(f"{root}/sys/class/drm/{name}") for name in card_names(root)]
    for card in cards:
        card.driver = card.driver or _driver_of_sensors(card.device, drivers)
    ours = [card for card in cards if card.driver in drivers or (not card.driver and card.vendor_id == vendor_id)]
    return sorted((card for card in ours if not card.virtual), key=lambda card: (card.slot, card.name))


def is_slot(name: str) -> bool:
    """Return whether a folder is named like a PCI device: 0000:03:00.0."""
    return name.count(":") == 2 and name[-2:-1] == "."


def _slot_of(device: str) -> str:
    name = os.path.basename(os.path.realpath(device))
    return name if is_slot(name) else ""


def _driver_of_sensors(device: str, drivers: Collection[str]) -> str:
    """Return the driver that a device's sensors are named after; "" where they are named after none of these."""
    found = (read_text(f"{device}/hwmon/{name}/name", 64) or "" for name in names(f"{device}/hwmon"))
    return next((name for name in found if name in drivers), "")


def _hexadecimal(text: str) -> int:
    try:
        return int(text, 16)
    except ValueError:
        return 0
