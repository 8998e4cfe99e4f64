"""Which graphics cards the kernel has: their drivers, their PCIe links, their product names."""

from __future__ import annotations

import os

from ..files import card_names, driver_of, names, read_bytes, read_text, uevent

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
        self.driver = driver_of(self.device)
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


_GENERATIONS = ((2.5, 1), (5.0, 2), (8.0, 3), (16.0, 4), (32.0, 5), (64.0, 6), (128.0, 7))
LANES = (1, 2, 4, 8, 12, 16, 32)


def generation(speed: float) -> int | None:
    """Return the PCIe generation of a speed in GT/s; None for a speed no generation has."""
    return next((number for rate, number in _GENERATIONS if abs(speed - rate) < 0.05 * rate), None)


def bridges_above(device: str) -> list[str]:
    """Return the folders of the PCI bridges above a device, nearest first; none where the tree holds the device alone."""
    found = []
    path = os.path.dirname(os.path.realpath(device))
    while is_slot(os.path.basename(path)):
        found.append(path)
        path = os.path.dirname(path)
    return found


def slot_link(device: str, own_vendor: str) -> str:
    """Return the folder whose link is that of the slot.

    AMD cards since Vega hold a switch whose ports are AMD's: the port nearest to the root has the link of the slot. Intel's
    switch has the vendor of Intel's root ports, so there it is the second bridge, if a third one follows.
    """
    above = bridges_above(device)
    if own_vendor == "0x8086":
        return above[1] if len(above) >= 3 else device
    inside = device
    for bridge in above:
        if read_text(f"{bridge}/vendor", 64) != own_vendor:
            break
        inside = bridge
    return inside


def read_link(folder: str, which: str) -> tuple[int | None, int | None]:
    """Return generation and lanes of a link; `which` is current or max. "Unknown" and 0 lanes are None."""
    words = (read_text(f"{folder}/{which}_link_speed", 256) or "").split()
    width = read_text(f"{folder}/{which}_link_width", 64) or ""
    try:
        speed = generation(float(words[0])) if words else None
    except ValueError:
        speed = None
    lanes = int(width) if width.isdecimal() and width.isascii() else 0
    return speed, lanes if lanes in LANES else None


_AMD_LISTS = ("/usr/share/libdrm/amdgpu.ids", "/opt/amdgpu/share/libdrm/amdgpu.ids")
_PCI_LISTS = ("/usr/share/hwdata/pci.ids", "/usr/share/misc/pci.ids", "/usr/share/pci.ids")
_MOST = 1 << 23


def amd_name(root: str, device: int, revision: int) -> str:
    """Return the name of libdrm's list, whose lines are `73BF,\\tC0,\\tAMD Radeon RX 6900 XT`; nothing where it has none."""
    wanted = f"{device:04X},\t{revision:02X},".encode()
    for place in dict.fromkeys(f"{base}{path}" for path in _AMD_LISTS for base in (root, "")):
        for line in (read_bytes(place, _MOST) or b"").splitlines():
            if line.upper().startswith(wanted):
                return line.split(b",", 2)[2].strip().decode("utf-8", "replace")
    return ""


def pci_name(root: str, vendor: int, device: int) -> str:
    """Return the name of the distribution's list of PCI ids: the text in brackets where there is one; nothing if it is not there."""
    for place in dict.fromkeys(f"{base}{path}" for path in _PCI_LISTS for base in (root, "")):
        content = read_bytes(place, _MOST) or b""
        start = content.find(f"\n{vendor:04x}  ".encode())
        if start < 0:
            continue
        for line in content[start + 1 :].split(b"\n")[1:]:
            if line[:1] not in (b"\t", b"#"):
                break
            if line.startswith(f"\t{device:04x}  ".encode()):
                return _short(line[7:].decode("utf-8", "replace").strip())
    return ""


def _short(name: str) -> str:
    """Return the product name: the text in brackets of `Navi 31 [Radeon RX 7900 XT/7900 XTX]`, if there is one."""
    _, bracket, rest = name.partition("[")
    return rest.rstrip("]").strip() if bracket and rest else name
