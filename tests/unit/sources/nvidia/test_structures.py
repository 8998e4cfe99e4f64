"""Our table of NVML, held against NVIDIA's own binding."""

from __future__ import annotations

import ctypes
from typing import Any

import pytest

from gpulse.model.catalog import THROTTLE_BITS
from gpulse.sources.nvidia import gpm, nvml, readers, source, structures, unified

pynvml = pytest.importorskip("pynvml")

TWINS: dict[type[ctypes.Structure] | type[ctypes.Union], str] = {
    structures.Pdi: "c_nvmlPdi_t",
    structures.RepairStatus: "c_nvmlRepairStatus_t",
    structures.UnrepairableMemory: "c_nvmlUnrepairableMemory_v1_t",
    structures.Capabilities: "c_nvmlDeviceCapabilities_v1_t",
    structures.FbcStats: "c_nvmlFBCStats_t",
    structures.SampleValue: "c_nvmlSample_t",
    structures.AccountingStats: "c_nvmlAccountingStats_t",
    structures.MigProfile: "c_nvmlGpuInstanceProfileInfo_v2_t",
    structures.Utilization: "c_nvmlUtilization_t",
    structures.MemoryInfo: "c_nvmlMemory_t",
    structures.MemoryV2: "c_nvmlMemory_v2_t",
    structures.Bar1Memory: "c_nvmlBAR1Memory_t",
    structures.PciInfo: "nvmlPciInfo_t",
    structures.TemperatureV1: "c_nvmlTemperature_v1_t",
    structures.ProcessV2: "c_nvmlProcessInfo_v2_t",
    structures.ProcessV3Early: "c_nvmlProcessDetail_v1_t",
    structures.ProcessUtilization: "c_nvmlProcessUtilizationSample_t",
    structures.FieldUnion: "c_nvmlValue_t",
    structures.FieldValue: "c_nvmlFieldValue_t",
    structures.GpmMetricInfo: "c_metricInfo_t",
    structures.GpmMetric: "c_nvmlGpmMetric_t",
    structures.GpmMetricsGet: "c_nvmlGpmMetricsGet_t",
    structures.GpmSupport: "c_nvmlGpmSupport_t",
    structures.MigAttributes: "c_nvmlDeviceAttributes",
    structures.EventData: "c_nvmlEventData_t",
    structures.PciInfoExtended: "nvmlPciInfoExt_v1_t",
    structures.MarginTemperature: "c_nvmlMarginTemperature_v1_t",
    structures.C2cMode: "c_nvmlC2cModeInfo_v1_t",
    structures.DramEncryption: "c_nvmlDramEncryptionInfo_t",
    structures.Hostname: "c_nvmlHostname_v1_t",
    structures.Platform: "c_nvmlPlatformInfo_v2_t",
    structures.Fabric: "c_nvmlGpuFabricInfo_v3_t",
    structures.SramErrors: "c_nvmlEccSramErrorStatus_v1_t",
    structures.RemappedRows: "c_nvmlRemappedRowsInfo_v2_t",
    structures.RemapHistogram: "c_nvmlRowRemapperHistogramValues",
    structures.AddressingMode: "c_nvmlDeviceAddressingMode_t",
}
NOT_IN_THE_BINDING = {structures.ProcessV1}  # it has dropped the records of drivers before 450
SHORTER = {structures.GpmMetricsGet}  # its array holds what we ask, which is less than there is


def layout(kind: Any) -> list[tuple[int, int]]:
    return [(getattr(kind, name).offset, getattr(kind, name).size) for name, *_ in kind._fields_]


def twin(kind: Any) -> Any:
    found = getattr(pynvml, TWINS[kind], None)
    if found is None:
        pytest.skip(f"this nvidia-ml-py has no {TWINS[kind]}")
    return found


def test_every_structure_has_a_twin_or_a_reason() -> None:
    kinds = {
        kind
        for kind in vars(structures).values()
        if isinstance(kind, type) and issubclass(kind, (ctypes.Structure, ctypes.Union))
    } - {ctypes.Structure, ctypes.Union}
    assert kinds == TWINS.keys() | NOT_IN_THE_BINDING


@pytest.mark.parametrize("kind", TWINS, ids=lambda kind: kind.__name__)
def test_a_structure_is_laid_out_as_nvidias_own(kind: Any) -> None:
    theirs = twin(kind)
    assert layout(kind)[:-1] == layout(theirs)[:-1]
    assert layout(kind)[-1][0] == layout(theirs)[-1][0]
    if kind in SHORTER:
        assert ctypes.sizeof(kind) < ctypes.sizeof(theirs)
    else:
        assert ctypes.sizeof(kind) == ctypes.sizeof(theirs)
        assert layout(kind) == layout(theirs)


@pytest.mark.parametrize(
    "kind", [kind for kind in TWINS if kind is not structures.GpmMetric], ids=lambda kind: kind.__name__
)
def test_fields_that_share_a_name_share_a_place(kind: Any) -> None:
    ours = {name: getattr(kind, name).offset for name, *_ in kind._fields_}
    theirs = {name: getattr(twin(kind), name).offset for name, *_ in twin(kind)._fields_}
    for name in ours.keys() & theirs.keys():
        assert ours[name] == theirs[name], name


def test_the_first_process_record_is_the_beginning_of_the_second() -> None:
    assert layout(structures.ProcessV1) == layout(structures.ProcessV2)[:2]
    assert ctypes.sizeof(structures.ProcessV1) == 16


def test_the_memory_version_is_the_one_nvidia_sends() -> None:
    assert ctypes.sizeof(structures.MemoryV2) | 2 << 24 == pynvml.nvmlMemory_v2
    assert ctypes.sizeof(structures.TemperatureV1) | 1 << 24 == getattr(pynvml, "nvmlTemperature_v1", 0x100000C)


def test_return_codes_have_their_names_and_numbers() -> None:
    for number, word in nvml.NAMES.items():
        if hasattr(pynvml, f"NVML_ERROR_{word}"):
            assert getattr(pynvml, f"NVML_ERROR_{word}") == number, word
    missing = {word for word in nvml.NAMES.values() if not hasattr(pynvml, f"NVML_ERROR_{word}")}
    assert missing <= {"INVALID_STATE", "GPU_NOT_FOUND", "NOT_READY"}
    for number, word in nvml.NAMES.items():
        assert getattr(nvml, word, number) == number


def test_every_gap_is_given_for_a_code_that_exists() -> None:
    assert nvml._GAPS.keys() <= nvml.NAMES.keys()
    assert nvml.gap_of(123456) == "failed"


GPM_IDS = {
    "graphics_active": "GRAPHICS_UTIL", "sm_active": "SM_UTIL", "sm_occupancy": "SM_OCCUPANCY",
    "integer_active": "INTEGER_UTIL", "tensor_active": "ANY_TENSOR_UTIL", "dram_active": "DRAM_BW_UTIL",
    "fp64_active": "FP64_UTIL", "fp32_active": "FP32_UTIL", "fp16_active": "FP16_UTIL",
    "pcie_tx": "PCIE_TX_PER_SEC", "pcie_rx": "PCIE_RX_PER_SEC",
    "nvlink_rx": "NVLINK_TOTAL_RX_PER_SEC", "nvlink_tx": "NVLINK_TOTAL_TX_PER_SEC",
}  # fmt: skip


def test_gpm_metrics_have_their_numbers() -> None:
    assert {key: number for key, (number, _) in gpm.METRICS.items()} == {
        key: getattr(pynvml, f"NVML_GPM_METRIC_{name}") for key, name in GPM_IDS.items()
    }
    assert len(gpm.METRICS) + 1 <= structures.GpmMetricsGet.metrics.size // ctypes.sizeof(structures.GpmMetric)


def test_throttle_bits_have_their_words() -> None:
    names = {
        "gpu_idle": "GpuIdle", "applications_clocks_setting": "ApplicationsClocksSetting", "sw_power_cap": "SwPowerCap",
        "hw_slowdown": "HwSlowdown", "sync_boost": "SyncBoost", "sw_thermal_slowdown": "SwThermalSlowdown",
        "hw_thermal_slowdown": "HwThermalSlowdown", "hw_power_brake_slowdown": "HwPowerBrakeSlowdown",
        "display_clock_setting": "DisplayClockSetting",
    }  # fmt: skip
    theirs = {
        word: getattr(pynvml, f"nvmlClocksEventReason{name}", None)
        or getattr(pynvml, f"nvmlClocksThrottleReason{name}")
        for word, name in names.items()
    }
    assert theirs == THROTTLE_BITS


def test_fields_have_their_numbers() -> None:
    assert gpm._PCIE == {
        "pcie_tx": pynvml.NVML_FI_DEV_PCIE_COUNT_TX_BYTES,
        "pcie_rx": pynvml.NVML_FI_DEV_PCIE_COUNT_RX_BYTES,
    }
    assert gpm._NVLINK == {
        "nvlink_tx": pynvml.NVML_FI_DEV_NVLINK_THROUGHPUT_DATA_TX,
        "nvlink_rx": pynvml.NVML_FI_DEV_NVLINK_THROUGHPUT_DATA_RX,
    }
    assert pynvml.NVML_FI_DEV_MEMORY_TEMP == 82
    assert gpm._MOST_LINKS <= pynvml.NVML_NVLINK_MAX_LINKS


def test_the_types_of_a_field_value_are_those_we_read_as_64_bits() -> None:
    assert (pynvml.NVML_VALUE_TYPE_UNSIGNED_LONG, pynvml.NVML_VALUE_TYPE_UNSIGNED_LONG_LONG) == (2, 3)


def test_the_numbers_in_the_readers_mean_what_their_keys_say() -> None:
    clocks = [pynvml.NVML_CLOCK_GRAPHICS, pynvml.NVML_CLOCK_SM, pynvml.NVML_CLOCK_MEM, pynvml.NVML_CLOCK_VIDEO]
    assert clocks == [0, 1, 2, 3]
    assert pynvml.NVML_TEMPERATURE_GPU == 0
    assert pynvml.NVML_TEMPERATURE_THRESHOLD_SLOWDOWN == 1
    assert (pynvml.NVML_MEMORY_ERROR_TYPE_CORRECTED, pynvml.NVML_MEMORY_ERROR_TYPE_UNCORRECTED) == (0, 1)
    assert pynvml.NVML_VOLATILE_ECC == 0
    assert pynvml.NVML_PSTATE_UNKNOWN == 32
    assert pynvml.nvmlEventTypeXidCriticalError == source._XID
    modes = ("DEFAULT", "EXCLUSIVE_THREAD", "PROHIBITED", "EXCLUSIVE_PROCESS")
    assert [getattr(pynvml, f"NVML_COMPUTEMODE_{mode}") for mode in modes] == [0, 1, 2, 3]
    assert tuple(mode.lower() for mode in modes) == readers.COMPUTE_MODES


def test_architectures_have_their_names() -> None:
    for number, name in readers._ARCHITECTURES.items():
        assert getattr(pynvml, f"NVML_DEVICE_ARCH_{name.upper()}") == number


def test_addressing_by_the_cpus_tables_is_what_marks_a_shared_memory() -> None:
    assert getattr(pynvml, "NVML_DEVICE_ADDRESSING_MODE_ATS", 2) == unified._ATS
