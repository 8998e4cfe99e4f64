"""Sleeping GPUs: show a suspended laptop GPU from the kernel's information, without waking it."""

from __future__ import annotations

from ..base import Device, DeviceSample
from ..files import names, read_text

TYPE_CHECKING = False
if TYPE_CHECKING:
    from ...model.metric import Value
    from ..base import Key

_WORDS = {"Model": "name", "GPU UUID": "uuid", "Video BIOS": "vbios"}


def power_states(root: str = "") -> dict[str, bool]:
    """Return, by PCI slot, whether each NVIDIA GPU is asleep, without waking it."""
    folder = f"{root}/sys/bus/pci/drivers/nvidia"
    return {
        slot: read_text(f"{folder}/{slot}/power/runtime_status") == "suspended"
        for slot in names(folder)
        if slot.count(":") == 2 and (read_text(f"{folder}/{slot}/class") or "0x03").startswith("0x03")
    }


class SleepingDevice(Device):
    """A sleeping GPU: its identity from /proc/driver, and a gap for every metric."""

    def __init__(self, slot: str, index: int, root: str = "") -> None:
        self.slot = slot
        identity: dict[str, Value] = {"index": index, "vendor": "nvidia", "pci_bus_id": slot.rjust(16, "0").upper()}
        for line in (read_text(f"{root}/proc/driver/nvidia/gpus/{slot}/information") or "").splitlines():
            word, _, rest = line.partition(":")
            if word.strip() in _WORDS and "?" not in rest:
                identity[_WORDS[word.strip()]] = rest.strip()
        identity.setdefault("name", "NVIDIA GPU")
        self.identity = identity

    def read(self, keys: Key, process_keys: Key | None) -> DeviceSample:
        sample = DeviceSample()
        sample.state = "asleep"
        sample.gaps.update(dict.fromkeys(keys - self.identity.keys(), "asleep"))
        return sample
