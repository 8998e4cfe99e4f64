"""What the kernel knows of NVIDIA's GPUs: those that sleep, those that share the host's memory, and Jetson boards."""

from __future__ import annotations

from ctypes import byref

from ...model.catalog import PCIE_LINK
from ..base import Device, DeviceSample
from ..files import names, read_text
from ..host import memory_info
from .nvml import SUCCESS, versioned
from .structures import AddressingMode

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from ...model.metric import Value
    from ..base import Facts, Key
    from ..jetson import JetsonDevice
    from .nvml import Nvml

_JETSON = ("nvgpu", "orin", "xavier", "thor", "tegra")
_INTEGRATED = ("gb10", *_JETSON)
_ATS = 2
_FROM_KERNEL = frozenset({"utilization", "temperature", "clock_sm"})


def is_integrated(nvml: Nvml, handle: Any, name: str) -> bool:
    """Return whether the GPU has no memory of its own, judging by its name or how it addresses memory."""
    if any(word in name.lower() for word in _INTEGRATED):
        return True
    mode = versioned(AddressingMode, 1)
    return nvml.call("nvmlDeviceGetAddressingMode", handle, byref(mode)) == SUCCESS and mode.value == _ATS


def is_jetson(name: str) -> bool:
    """Return whether the GPU is part of a Jetson board."""
    return any(word in name.lower() for word in _JETSON)


def drop_placeholder_link(sample: DeviceSample) -> None:
    """Drop the PCIe link of a GPU that is on the chip of its CPU: GB10 reports Gen 1 x1, which is not a real link."""
    if (sample.values.get("pcie_gen"), sample.values.get("pcie_width")) == (1, 1):
        for key in PCIE_LINK:
            if sample.values.pop(key, None) is not None:
                sample.gaps[key] = "unsupported"


def share_memory(sample: DeviceSample, processes: dict[int, Facts] | None, root: str = "") -> None:
    """Use the host's memory for a GPU without its own: total is MemTotal, used is the sum over its processes if known."""
    if sample.values.get("memory_total"):
        sample.values["memory_unified"] = True
        return
    info = memory_info(root)
    if "MemTotal" not in info:
        return
    shared = {"memory_unified": True, "memory_total": info["MemTotal"]}
    if "MemAvailable" in info:
        shared["memory_free"] = info["MemAvailable"]
    if processes is not None:
        held = [facts.values.get("memory_used") for facts in processes.values()]
        shared["memory_used"] = sum(amount for amount in held if isinstance(amount, int))
    else:
        sample.values.pop("memory_used", None)
        sample.gaps["memory_used"] = sample.gaps["processes"]
    sample.values.update(shared)
    for key in shared:
        sample.gaps.pop(key, None)


def fill_from_kernel(sample: DeviceSample, board: JetsonDevice) -> None:
    """Fill in what NVML omits or reports as 0 on a Jetson: load, temperature and clock."""
    for key, value in board.read(_FROM_KERNEL, None).values.items():
        if key in sample.gaps or not sample.values.get(key, True):
            sample.values[key] = value
            sample.gaps.pop(key, None)


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
