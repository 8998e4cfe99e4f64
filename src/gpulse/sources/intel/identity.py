"""Identity of an Intel GPU."""

from __future__ import annotations

from ..drm.names import pci_name
from ..files import read_text

TYPE_CHECKING = False
if TYPE_CHECKING:
    from ...model.metric import Value
    from ..drm.cards import Card

IDENTITY_KEYS = frozenset(
    {"index", "ordinal", "uuid", "name", "vendor", "architecture", "pci_bus_id", "driver_version"}
)
_NAMES = {
    0x5690: "Arc A770M", 0x5691: "Arc A730M", 0x5692: "Arc A550M", 0x5693: "Arc A370M", 0x5694: "Arc A350M", 0x56A0: "Arc A770",
    0x56A1: "Arc A750", 0x56A2: "Arc A580", 0x56A5: "Arc A380", 0x56A6: "Arc A310", 0x56B0: "Arc Pro A30M", 0x56B1: "Arc Pro A40/A50",
    0x56B2: "Arc Pro A60M", 0x56B3: "Arc Pro A60", 0x56C0: "Data Center GPU Flex 170", 0x56C1: "Data Center GPU Flex 140",
    0xE20B: "Arc B580", 0xE20C: "Arc B570", 0xE211: "Arc Pro B60", 0xE212: "Arc Pro B50", 0x4905: "Iris Xe MAX",
    0x0BD5: "Data Center GPU Max 1550", 0x0BDA: "Data Center GPU Max 1100", 0x64A0: "Arc 140V", 0x7D55: "Arc Graphics (Meteor Lake)",
    0x9A49: "Iris Xe", 0x46A6: "Iris Xe", 0xA7A0: "Iris Xe", 0x4680: "UHD Graphics 770", 0xA780: "UHD Graphics 770",
}  # fmt: skip
_ARCHITECTURES = (
    (range(0x4905, 0x490A), "Xe-LP"), (range(0x5690, 0x56C2), "Xe-HPG"), (range(0x0BD0, 0x0BE6), "Xe-HPC"),
    (range(0xE200, 0xE240), "Xe2-HPG"), (range(0x6420, 0x64C0), "Xe2-LPG"), (range(0x7D40, 0x7DE0), "Xe-LPG"),
    (range(0xB080, 0xB0C0), "Xe3-LPG"),
)  # fmt: skip
_INTEGRATED = "0000:00:02.0"  # where every Intel processor has its graphics


def identify(card: Card, index: int, root: str) -> dict[str, Value]:
    """Return the identity of a card; the chips have no unique id, so the UUID is made from the PCI slot."""
    known = _NAMES.get(card.device_id) or pci_name(root, 0x8086, card.device_id)
    name = known or ("Graphics" if is_integrated(card) else f"GPU {card.device_id:04x}")
    values: dict[str, Value] = {
        "index": index,
        "ordinal": index,
        "vendor": "intel",
        "name": name if name.startswith("Intel") else f"Intel {name}",
        "uuid": f"PCI-{card.slot or card.name}",
    }
    if card.slot:
        values["pci_bus_id"] = card.slot
    if family := next((family for ids, family in _ARCHITECTURES if card.device_id in ids), ""):
        values["architecture"] = family
    if version := driver_version(root):
        values["driver_version"] = version
    return values


def driver_version(root: str) -> str:
    """Return the version of the kernel, of which both drivers are a part."""
    return read_text(f"{root}/proc/sys/kernel/osrelease", 256) or ""


def is_integrated(card: Card) -> bool:
    """Return whether the GPU is part of the processor and shares its memory."""
    return card.slot == _INTEGRATED
