"""What only nvidia-smi -q and its lists say of a GPU: board, firmware, thresholds, samples the driver keeps, pages, clients."""

from __future__ import annotations

from ctypes import byref, c_uint, c_ulonglong

from .nvml import SUCCESS, Reader, absent, field, number, numbers, record, settle, text, word_of
from .structures import (
    AccountingStats,
    Capabilities,
    EncoderSession,
    FbcStats,
    FieldValue,
    Pdi,
    RepairStatus,
    SampleValue,
    UnrepairableMemory,
)

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from ..base import Facts
    from .nvml import Bound, Nvml

BRANDS = (
    None, "Quadro", "Tesla", "NVS", "GRID", "GeForce", "Titan", "NVIDIA Virtual Applications", "NVIDIA Virtual PC",
    "NVIDIA Virtual Compute Server", "NVIDIA RTX Virtual Workstation", "NVIDIA Cloud Gaming", "Quadro RTX", "NVIDIA RTX",
    "NVIDIA", "GeForce RTX", "Titan RTX",
)  # fmt: skip
VIRTUALIZATION = ("none", "pass_through", "vgpu", "host_vgpu", "host_vsga")
# What the driver samples by itself, several times a second; the number is NVML's, the scale takes it to the catalog's unit.
SAMPLES = {
    "power_samples": (0, 1000),
    "utilization_samples": (1, 1),
    "memory_utilization_samples": (2, 1),
    "encoder_samples": (3, 1),
    "decoder_samples": (4, 1),
    "clock_sm_samples": (5, 1),
    "clock_memory_samples": (6, 1),
    "jpeg_samples": (8, 1),
    "ofa_samples": (9, 1),
}
CAUSES = ("corrected", "uncorrected")
_MOST_SAMPLES, _MOST_PAGES, _MOST_CLIENTS = 512, 1024, 4096


def _plain(value: int) -> int:
    return value


def _degrees(key: str, identifier: int) -> Reader:
    """A temperature by a field number; it may be below 0, and -1 is one."""

    def bind(nvml: Nvml, handle: Any) -> Bound:
        call = nvml.function("nvmlDeviceGetFieldValues")
        if call is None:
            return absent((key,))
        out = FieldValue()
        out.fieldId = identifier
        reference = byref(out)

        def read(facts: Facts) -> int:
            code = call(handle, 1, reference) or int(out.nvmlReturn)
            settle(facts, key, code, None if code else int(out.value.siVal))
            return code

        return read

    return Reader((key,), bind)


def _samples(key: str, kind: int, over: int) -> Reader:
    """Seconds covered, number, maximum, minimum and mean of the samples that the driver keeps."""

    def bind(nvml: Nvml, handle: Any) -> Bound:
        call = nvml.function("nvmlDeviceGetSamples")
        if call is None:
            return absent((key,))
        found, count, form = (SampleValue * _MOST_SAMPLES)(), c_uint(), c_uint()

        def read(facts: Facts) -> int:
            count.value = _MOST_SAMPLES
            code = call(handle, kind, c_ulonglong(0), byref(form), byref(count), found)
            kept = found[: min(count.value, _MOST_SAMPLES)] if code == SUCCESS else []
            settle(facts, key, code, _summary(kept, over) if kept else None)
            return code

        return read

    return Reader((key,), bind)


def _summary(samples: list[Any], over: int) -> tuple[float, ...]:
    values = [
        sample.sampleValue.uiVal / over for sample in samples
    ]  # the upper half of the 64 bits is not always clean
    covered = (samples[-1].timeStamp - samples[0].timeStamp) / 1e6
    return covered, len(values), max(values), min(values), sum(values) / len(values)


def _bind_pages(nvml: Nvml, handle: Any) -> Bound:
    call = nvml.function("nvmlDeviceGetRetiredPages_v2")
    if call is None:
        return absent(("retired_pages",))
    pages, times, count = (c_ulonglong * _MOST_PAGES)(), (c_ulonglong * _MOST_PAGES)(), c_uint()

    def read(facts: Facts) -> int:
        words: list[str] = []
        failed = SUCCESS
        for cause, word in enumerate(CAUSES):
            count.value = _MOST_PAGES
            code = call(handle, cause, byref(count), pages, times)
            failed = failed or code
            if code == SUCCESS:
                words += [f"{word}:0x{pages[at]:016x}:{times[at]}" for at in range(min(count.value, _MOST_PAGES))]
        settle(facts, "retired_pages", failed, tuple(words))
        return failed

    return read


# Calls about confidential computing of the whole machine: the version to write first, and a word for each number that they fill.
_CONFIDENTIAL = {
    "nvmlSystemGetConfComputeState": (0, ("environment", "feature", "devtools")),
    "nvmlSystemGetConfComputeCapabilities": (0, ("cpu", "gpus")),
    "nvmlSystemGetConfComputeGpusReadyState": (0, ("ready",)),
    "nvmlSystemGetConfComputeSettings": (20 | 1 << 24, ("", "", "", "", "multi_gpu")),
    "nvmlSystemGetConfComputeKeyRotationThresholdInfo": (16 | 1 << 24, ("", "", "key_rotation")),
}


def _bind_confidential(nvml: Nvml, handle: Any) -> Bound:
    out, sizes = (c_uint * 8)(), (c_ulonglong * 2)()

    def read(facts: Facts) -> int:
        words: list[str] = []
        codes = []
        for name, (version, parts) in _CONFIDENTIAL.items():
            out[0] = version
            codes.append(code := nvml.call(name, byref(out)))
            words += [f"{word}:{'?' if code else out[at]}" for at, word in enumerate(parts) if word]
        codes.append(code := nvml.call("nvmlDeviceGetConfComputeMemSizeInfo", handle, byref(sizes)))
        words += [f"{word}:{'?' if code else sizes[at]}" for at, word in enumerate(("protected", "unprotected"))]
        failed = SUCCESS if SUCCESS in codes else codes[0]
        settle(facts, "confidential_compute", failed, tuple(words))
        return failed

    return read


def _bind_sessions(nvml: Nvml, handle: Any) -> Bound:
    call = nvml.function("nvmlDeviceGetEncoderSessions")
    if call is None:
        return absent(("encoder_session_list",))
    found, count = (EncoderSession * _MOST_CLIENTS)(), c_uint()

    def read(facts: Facts) -> int:
        count.value = _MOST_CLIENTS
        code = call(handle, byref(count), found)
        words = [
            f"{one.sessionId}:{one.pid}:{one.codecType}:{one.hResolution}:{one.vResolution}:{one.averageFps}:{one.averageLatency}"
            for one in (found[: min(count.value, _MOST_CLIENTS)] if code == SUCCESS else [])
        ]
        settle(facts, "encoder_session_list", code, tuple(words))
        return code

    return read


def _bind_clients(nvml: Nvml, handle: Any) -> Bound:
    pids, stats = nvml.function("nvmlDeviceGetAccountingPids"), nvml.function("nvmlDeviceGetAccountingStats")
    if pids is None or stats is None:
        return absent(("accounting_apps",))
    found, count, out = (c_uint * _MOST_CLIENTS)(), c_uint(), AccountingStats()

    def read(facts: Facts) -> int:
        count.value = _MOST_CLIENTS
        code = pids(handle, byref(count), found)
        words = []
        for pid in found[: min(count.value, _MOST_CLIENTS)] if code == SUCCESS else []:
            if stats(handle, pid, byref(out)) == SUCCESS:
                shares = f"{out.gpuUtilization}:{out.memoryUtilization}:{out.maxMemoryUsage}"
                words.append(f"{pid}:{shares}:{out.time}:{out.isRunning}")
        settle(facts, "accounting_apps", code, tuple(words))
        return code

    return read


BOARD: tuple[Reader, ...] = (
    number("brand", "nvmlDeviceGetBrand", to=word_of(BRANDS)),
    record(Pdi, "nvmlDeviceGetPdi", {"pdi": lambda out: f"0x{out.value:x}"}, 1),
    number("minor_number", "nvmlDeviceGetMinorNumber"),
    number("multi_gpu_board", "nvmlDeviceGetMultiGpuBoard", to=bool),
    number("board_id", "nvmlDeviceGetBoardId"),
    number("module_id", "nvmlDeviceGetModuleId"),
    text("board_part_number", "nvmlDeviceGetBoardPartNumber"),
    text("gsp_version", "nvmlDeviceGetGspFirmwareVersion"),
    number("virtualization_mode", "nvmlDeviceGetVirtualizationMode", to=word_of(VIRTUALIZATION)),
    field("pcie_replay_rollovers", 95, _plain),
    record(
        FbcStats,
        "nvmlDeviceGetFBCStats",
        {
            "fbc_sessions": "sessionsCount",
            "fbc_frame_rate": "averageFPS",
            "fbc_latency": lambda out: out.averageLatency / 1e6,
        },
    ),
    record(
        RepairStatus,
        "nvmlDeviceGetRepairStatus",
        {
            "repair_channel_pending": lambda out: bool(out.bChannelRepairPending),
            "repair_tpc_pending": lambda out: bool(out.bTpcRepairPending),
        },
        1,
    ),
    record(
        UnrepairableMemory,
        "nvmlDeviceGetUnrepairableMemoryFlag_v1",
        {"memory_unrepairable": lambda out: bool(out.unrepairableMemory)},
        1,
    ),
    record(Capabilities, "nvmlDeviceGetCapabilities", {"egm": lambda out: bool(out.capMask & 1)}, 1),
    numbers("nvmlDeviceGetAutoBoostedClocksEnabled", {"auto_boost": bool, "auto_boost_default": bool}),
    number("clock_graphics_boost", "nvmlDeviceGetMaxCustomerBoostClock", before=(0,)),
    _degrees("temperature_margin_shutdown", 193),
    _degrees("temperature_margin_slowdown", 194),
    _degrees("temperature_margin_memory", 195),
    _degrees("temperature_margin_gpu", 196),
    number("temperature_shutdown", "nvmlDeviceGetTemperatureThreshold", before=(0,)),
    number("memory_temperature_max", "nvmlDeviceGetTemperatureThreshold", before=(2,)),
    number("temperature_max", "nvmlDeviceGetTemperatureThreshold", before=(3,)),
    number("temperature_target_min", "nvmlDeviceGetTemperatureThreshold", before=(4,)),
    number("temperature_target", "nvmlDeviceGetTemperatureThreshold", before=(5,)),
    number("temperature_target_max", "nvmlDeviceGetTemperatureThreshold", before=(6,)),
    *(_samples(key, kind, over) for key, (kind, over) in SAMPLES.items()),
    Reader(("retired_pages",), _bind_pages),
    Reader(("accounting_apps",), _bind_clients),
    Reader(("confidential_compute",), _bind_confidential),
    Reader(("encoder_session_list",), _bind_sessions),
)
