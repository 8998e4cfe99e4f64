"""MIG: the instances of a GPU, each with its own memory, activity and processes."""

from __future__ import annotations

from ctypes import byref, c_void_p

from ..base import DeviceSample
from .gpm import KEYS as GPM_KEYS
from .gpm import LINK_KEYS, Gpm
from .nvml import SUCCESS
from .readers import MEMORY
from .structures import MigAttributes

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from ...model.metric import Value
    from ..base import Facts, Key
    from .nvml import Nvml

KEYS = frozenset(MEMORY.keys) | (GPM_KEYS - LINK_KEYS)


class MigInstance:
    """One compute instance; power, temperature and clocks belong to the whole GPU and are not available here."""

    def __init__(self, nvml: Nvml, parent: Any, handle: c_void_p, position: int, gpm: bool) -> None:
        _, gpu_instance = nvml.number("nvmlDeviceGetGpuInstanceId", handle)
        _, compute_instance = nvml.number("nvmlDeviceGetComputeInstanceId", handle)
        self.key = (gpu_instance, compute_instance)
        self.identity: dict[str, Value] = {
            "index": position,
            "vendor": "nvidia",
            "name": f"MIG {_profile(nvml, handle)}".strip(),
            "gpu_instance": gpu_instance,
            "compute_instance": compute_instance,
        }
        code, uuid = nvml.text("nvmlDeviceGetUUID", handle)
        if code == SUCCESS:
            self.identity["uuid"] = uuid
        self._memory = MEMORY.bind(nvml, handle)
        self._gpm = Gpm(nvml, parent, gpu_instance) if gpm else None

    def prime(self) -> None:
        """Take the first GPM sample."""
        if self._gpm is not None:
            self._gpm.prime()

    def settled(self) -> bool:
        """Return whether reading GPM now would give a value."""
        return self._gpm is None or self._gpm.settled()

    def read(self, keys: Key, processes: dict[int, Facts]) -> DeviceSample:
        """Read those of these metrics that an instance has."""
        sample = DeviceSample()
        sample.values.update(self.identity)
        sample.processes = processes
        if keys & set(MEMORY.keys):
            self._memory(sample)
        if asked := keys & (GPM_KEYS - LINK_KEYS):
            if self._gpm is None:
                sample.gaps.update(dict.fromkeys(asked, "unsupported"))
            else:
                self._gpm.read(sample, asked)
        return sample


def find_instances(nvml: Nvml, parent: Any, gpm: bool) -> list[MigInstance]:
    """Return the instances of a GPU in MIG mode; positions may have gaps."""
    code, most = nvml.number("nvmlDeviceGetMaxMigDeviceCount", parent)
    found = []
    for position in range(min(most, 64) if code == SUCCESS else 0):
        handle = c_void_p()
        if nvml.call("nvmlDeviceGetMigDeviceHandleByIndex", parent, position, byref(handle)) == SUCCESS:
            found.append(MigInstance(nvml, parent, handle, position, gpm))
    return found


def _profile(nvml: Nvml, handle: c_void_p) -> str:
    """Return the profile as nvidia-smi writes it: 1g.10gb, or 1c.3g.20gb for a part of an instance."""
    code, name = nvml.text("nvmlDeviceGetName", handle)
    if code == SUCCESS and "MIG " in name:
        return name.rsplit("MIG ", 1)[1]
    attributes = MigAttributes()
    if nvml.call("nvmlDeviceGetAttributes_v2", handle, byref(attributes)) != SUCCESS:
        return ""
    whole, part = attributes.gpuInstanceSliceCount, attributes.computeInstanceSliceCount
    size = f"{whole}g.{round(attributes.memorySizeMB / 1024)}gb"
    return size if part == whole else f"{part}c.{size}"
