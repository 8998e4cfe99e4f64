"""What only nvidia-smi -q and its lists say of a GPU: board, firmware, thresholds, samples the driver keeps, pages, clients, MIG."""

from __future__ import annotations

from ctypes import byref, c_uint, c_ulonglong, c_void_p

from ...model.catalog import LINK_TRAFFIC
from ..base import DeviceSample
from . import structures
from .gpm import KEYS as GPM_KEYS
from .gpm import Gpm
from .nvml import (
    SUCCESS,
    Reader,
    computed,
    decoded,
    fetched,
    field,
    gap_of,
    number,
    numbers,
    record,
    text,
    versioned,
    word_of,
)
from .readers import BAR1, MEMORY
from .structures import MigAttributes, MigProfile

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from ...model.metric import Value
    from ..base import Facts, Key
    from .nvml import Nvml

BRANDS = (
    None, "Quadro", "Tesla", "NVS", "GRID", "GeForce", "Titan", "NVIDIA Virtual Applications", "NVIDIA Virtual PC",
    "NVIDIA Virtual Compute Server", "NVIDIA RTX Virtual Workstation", "NVIDIA Cloud Gaming", "Quadro RTX", "NVIDIA RTX",
    "NVIDIA", "GeForce RTX", "Titan RTX",
)  # fmt: skip
VIRTUALIZATION = ("none", "pass_through", "vgpu", "host_vgpu", "host_vsga")
# What the driver samples by itself, several times a second; the number is NVML's, the scale takes it to the catalog's unit.
SAMPLES = {
    "power_samples": (0, 1000), "utilization_samples": (1, 1), "memory_utilization_samples": (2, 1), "encoder_samples": (3, 1),
    "decoder_samples": (4, 1), "clock_sm_samples": (5, 1), "clock_memory_samples": (6, 1), "jpeg_samples": (8, 1),
    "ofa_samples": (9, 1),
}  # fmt: skip
CAUSES = ("corrected", "uncorrected")
_MOST_SAMPLES, _MOST_PAGES, _MOST_CLIENTS = 512, 1024, 4096
_THRESHOLDS = {
    "temperature_shutdown": 0, "memory_temperature_max": 2, "temperature_max": 3, "temperature_target_min": 4,
    "temperature_target": 5, "temperature_target_max": 6,
}  # fmt: skip
_MARGINS = {"shutdown": 193, "slowdown": 194, "memory": 195, "gpu": 196}


def _samples(key: str, kind: int, over: int) -> Reader:
    """Seconds covered, number, maximum, minimum and mean of the samples that the driver keeps."""

    def find(nvml: Nvml, handle: Any) -> tuple[int, tuple[Any, ...]]:
        since, form = c_ulonglong(0), c_uint()
        code, kept = fetched(
            nvml, "nvmlDeviceGetSamples", structures.SampleValue, _MOST_SAMPLES, handle, kind, since, byref(form)
        )
        if not kept:
            return code, (None,)
        values = [one.sampleValue.uiVal / over for one in kept]  # the upper half of the 64 bits is not always clean
        covered = (kept[-1].timeStamp - kept[0].timeStamp) / 1e6
        return code, ((covered, len(values), max(values), min(values), sum(values) / len(values)),)

    return computed((key,), find)


def _retired_pages(nvml: Nvml, handle: Any) -> tuple[int, tuple[Any, ...]]:
    times, words, failed = (c_ulonglong * _MOST_PAGES)(), [], SUCCESS
    for cause, word in enumerate(CAUSES):
        code, pages = fetched(
            nvml, "nvmlDeviceGetRetiredPages_v2", c_ulonglong, _MOST_PAGES, handle, cause, after=(times,)
        )
        failed = failed or code
        words += [f"{word}:0x{page:016x}:{times[at]}" for at, page in enumerate(pages)]
    return failed, (tuple(words),)


def _accounted(nvml: Nvml, handle: Any) -> tuple[int, tuple[Any, ...]]:
    code, pids = fetched(nvml, "nvmlDeviceGetAccountingPids", c_uint, _MOST_CLIENTS, handle)
    out, words = structures.AccountingStats(), []
    for pid in pids:
        if nvml.call("nvmlDeviceGetAccountingStats", handle, pid, byref(out)) == SUCCESS:
            shares = f"{out.gpuUtilization}:{out.memoryUtilization}:{out.maxMemoryUsage}"
            words.append(f"{pid}:{shares}:{out.time}:{out.isRunning}")
    return code, (tuple(words),)


BOARD: tuple[Reader, ...] = (
    number("brand", "nvmlDeviceGetBrand", to=word_of(BRANDS)),
    record(structures.Pdi, "nvmlDeviceGetPdi", {"pdi": lambda out: f"0x{out.value:x}"}, 1),
    number("minor_number", "nvmlDeviceGetMinorNumber"),
    number("multi_gpu_board", "nvmlDeviceGetMultiGpuBoard", to=bool),
    number("board_id", "nvmlDeviceGetBoardId"),
    number("module_id", "nvmlDeviceGetModuleId"),
    text("board_part_number", "nvmlDeviceGetBoardPartNumber"),
    text("gsp_version", "nvmlDeviceGetGspFirmwareVersion"),
    number("virtualization_mode", "nvmlDeviceGetVirtualizationMode", to=word_of(VIRTUALIZATION)),
    field("pcie_replay_rollovers", 95),
    record(
        structures.FbcStats,
        "nvmlDeviceGetFBCStats",
        {
            "fbc_sessions": "sessionsCount",
            "fbc_frame_rate": "averageFPS",
            "fbc_latency": lambda out: out.averageLatency / 1e6,
        },
    ),
    record(
        structures.RepairStatus,
        "nvmlDeviceGetRepairStatus",
        {
            "repair_channel_pending": lambda out: bool(out.bChannelRepairPending),
            "repair_tpc_pending": lambda out: bool(out.bTpcRepairPending),
        },
        1,
    ),
    record(
        structures.UnrepairableMemory,
        "nvmlDeviceGetUnrepairableMemoryFlag_v1",
        {"memory_unrepairable": lambda out: bool(out.unrepairableMemory)},
        1,
    ),
    record(structures.Capabilities, "nvmlDeviceGetCapabilities", {"egm": lambda out: bool(out.capMask & 1)}, 1),
    numbers("nvmlDeviceGetAutoBoostedClocksEnabled", {"auto_boost": bool, "auto_boost_default": bool}),
    number("clock_graphics_boost", "nvmlDeviceGetMaxCustomerBoostClock", before=(0,)),
    *(field(f"temperature_margin_{word}", identifier, signed=True) for word, identifier in _MARGINS.items()),
    *(number(key, "nvmlDeviceGetTemperatureThreshold", before=(kind,)) for key, kind in _THRESHOLDS.items()),
    *(_samples(key, kind, over) for key, (kind, over) in SAMPLES.items()),
    computed(("retired_pages",), _retired_pages),
    computed(("accounting_apps",), _accounted),
)


_IDS = {"gpu_instance": "nvmlDeviceGetGpuInstanceId", "compute_instance": "nvmlDeviceGetComputeInstanceId"}
_SHARED = {
    "mig_multiprocessors": "multiprocessorCount", "mig_copy_engines": "sharedCopyEngineCount",
    "mig_encoders": "sharedEncoderCount", "mig_decoders": "sharedDecoderCount", "mig_jpegs": "sharedJpegCount",
    "mig_ofas": "sharedOfaCount",
}  # fmt: skip


class MigInstance:
    """One compute instance; power, temperature and clocks belong to the whole GPU and are not available here."""

    def __init__(self, nvml: Nvml, parent: Any, handle: c_void_p, position: int, uuid: str, gpm: bool) -> None:
        self.identity: dict[str, Value] = {
            "index": position,
            "vendor": "nvidia",
            "name": f"MIG {_profile(nvml, handle)}".strip(),
        }
        for key, function in _IDS.items():
            code, number = nvml.number(function, handle)
            if code == SUCCESS:
                self.identity[key] = number
        self.uuid = uuid
        if uuid:
            self.identity["uuid"] = uuid
        self._shares = _shares(nvml, handle)
        self._memory = MEMORY.bind(nvml, handle)
        self._window = BAR1.bind(nvml, handle)
        self._errors = _ERRORS.bind(nvml, handle)
        place = self.identity.get("gpu_instance")
        self._gpm = Gpm(nvml, parent, place) if gpm and isinstance(place, int) else None

    @property
    def place(self) -> tuple[Value | None, ...]:
        """The GPU instance and the compute instance, by which the driver says where a process runs."""
        return tuple(map(self.identity.get, _IDS))

    def prime(self) -> None:
        """Take the first GPM sample."""
        if self._gpm is not None:
            self._gpm.prime()

    def settled(self) -> bool:
        """Return whether reading GPM now would give a value."""
        return self._gpm is None or self._gpm.settled()

    def close(self) -> None:
        """Free the GPM samples."""
        if self._gpm is not None:
            self._gpm.close()

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
        if asked := keys & GPM_KEYS.difference(LINK_TRAFFIC):
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


def find_instances(nvml: Nvml, parent: Any, gpm: bool, known: list[MigInstance]) -> list[MigInstance]:
    """Return the instances of a GPU in MIG mode; positions may have gaps.

    Those that are `known` stay the same as long as the driver does not say that they are gone.
    """
    code, most = nvml.number("nvmlDeviceGetMaxMigDeviceCount", parent)
    if code and gap_of(code) != "unsupported":
        return known
    before = {one.identity["index"]: one for one in known}
    found = []
    for position in range(min(most, 64) if code == SUCCESS else 0):
        handle, same = c_void_p(), before.get(position)
        code = nvml.call("nvmlDeviceGetMigDeviceHandleByIndex", parent, position, byref(handle))
        if code and (same is None or gap_of(code) == "unsupported"):
            continue
        failed, uuid = (code, "") if code else nvml.text("nvmlDeviceGetUUID", handle)
        if same is not None and (failed or uuid == same.uuid):
            found.append(before.pop(position))
        else:
            found.append(MigInstance(nvml, parent, handle, position, uuid, gpm))
    for gone in before.values():
        gone.close()
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
