"""MIG: the instances of a GPU, each with its own memory, activity and processes."""

from __future__ import annotations

from ctypes import byref, c_void_p

from ..base import DeviceSample
from .gpm import KEYS as GPM_KEYS
from .gpm import LINK_KEYS, Gpm
from .nvml import SUCCESS, computed, decoded, number, versioned
from .readers import BAR1, MEMORY
from .structures import MigAttributes, MigProfile

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from ...model.metric import Value
    from ..base import Facts, Key
    from .nvml import Nvml

_SHARED = {
    "mig_multiprocessors": "multiprocessorCount", "mig_copy_engines": "sharedCopyEngineCount",
    "mig_encoders": "sharedEncoderCount", "mig_decoders": "sharedDecoderCount", "mig_jpegs": "sharedJpegCount",
    "mig_ofas": "sharedOfaCount",
}  # fmt: skip


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
        self._shares = _shares(nvml, handle)
        self._memory = MEMORY.bind(nvml, handle)
        self._window = BAR1.bind(nvml, handle)
        self._errors = _ERRORS.bind(nvml, handle)
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
        if keys & set(BAR1.keys):
            self._window(sample)
        if keys & set(_ERRORS.keys):
            self._errors(sample)
        sample.values.update({key: self._shares[key] for key in keys & self._shares.keys()})
        if asked := keys & (GPM_KEYS - LINK_KEYS):
            if self._gpm is None:
                sample.gaps.update(dict.fromkeys(asked, "unsupported"))
            else:
                self._gpm.read(sample, asked)
        return sample


# The only place whose errors the driver counts for each instance: on-chip memory, uncorrected, since the driver was loaded.
_ERRORS = number("ecc_uncorrected", "nvmlDeviceGetMemoryErrorCounter", before=(1, 0, 7), bits=64)


def _shares(nvml: Nvml, handle: c_void_p) -> dict[str, int]:
    attributes = MigAttributes()
    if nvml.call("nvmlDeviceGetAttributes_v2", handle, byref(attributes)) != SUCCESS:
        return {}
    return {key: getattr(attributes, name) for key, name in _SHARED.items()}


_MOST_PROFILES = 32


def _profiles(nvml: Nvml, handle: Any) -> tuple[int, tuple[Any, ...]]:
    words, code = [], SUCCESS
    for profile in range(_MOST_PROFILES):
        out = versioned(MigProfile, 2)
        code = nvml.call("nvmlDeviceGetGpuInstanceProfileInfoV", handle, profile, byref(out))
        if code == SUCCESS:
            words.append(_profile_word(nvml, handle, out))
    return SUCCESS if words else code, (tuple(words),)


def _profile_word(nvml: Nvml, handle: Any, out: Any) -> str:
    code, free = nvml.number("nvmlDeviceGetGpuInstanceRemainingCapacity", handle, out.id)
    name = decoded(out.name).removeprefix("MIG ").replace(":", "_")
    engines = f"{out.copyEngineCount}:{out.decoderCount}:{out.encoderCount}:{out.jpegCount}:{out.ofaCount}"
    size = f"{out.memorySizeMB}:{out.isP2pSupported}:{out.multiprocessorCount}"
    return f"{out.id}:{name}:{'?' if code else free}:{out.instanceCount}:{size}:{engines}"


PROFILES = computed(("mig_profiles",), _profiles)


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
