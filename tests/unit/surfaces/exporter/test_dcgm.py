"""DCGM's face: names, units and labels as dcgm-exporter has them."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import pytest

from gpulse.model.catalog import Gpu, Host, Process
from gpulse.model.snapshot import Snapshot
from gpulse.surfaces.exporter.dcgm import FIELDS
from gpulse.surfaces.exporter.exporter import Exporter
from tests.unit.surfaces.exporter.pages import exporter_of, gpu, samples, values, without

if TYPE_CHECKING:
    from gpulse.model.metric import Value

# Of dcgm-exporter's default-counters.csv; those that are made from others are tested on their own below.
DEFAULT = {
    "DCGM_FI_DEV_SM_CLOCK",
    "DCGM_FI_DEV_MEM_CLOCK",
    "DCGM_FI_DEV_MEMORY_TEMP",
    "DCGM_FI_DEV_GPU_TEMP",
    "DCGM_FI_DEV_POWER_USAGE",
    "DCGM_FI_DEV_TOTAL_ENERGY_CONSUMPTION",
    "DCGM_FI_DEV_PCIE_REPLAY_COUNTER",
    "DCGM_FI_DEV_GPU_UTIL",
    "DCGM_FI_DEV_MEM_COPY_UTIL",
    "DCGM_FI_DEV_ENC_UTIL",
    "DCGM_FI_DEV_DEC_UTIL",
    "DCGM_FI_DEV_FB_FREE",
    "DCGM_FI_DEV_FB_USED",
    "DCGM_FI_DEV_FB_RESERVED",
    "DCGM_FI_DEV_UNCORRECTABLE_REMAPPED_ROWS",
    "DCGM_FI_DEV_CORRECTABLE_REMAPPED_ROWS",
    "DCGM_FI_DEV_ROW_REMAP_FAILURE",
    "DCGM_FI_PROF_GR_ENGINE_ACTIVE",
    "DCGM_FI_PROF_PIPE_TENSOR_ACTIVE",
    "DCGM_FI_PROF_DRAM_ACTIVE",
    "DCGM_FI_PROF_PCIE_TX_BYTES",
    "DCGM_FI_PROF_PCIE_RX_BYTES",
}


def test_the_fields_that_dcgm_exporter_has_by_default_are_there_once() -> None:
    assert set(FIELDS.values()) >= DEFAULT
    assert len(set(FIELDS.values())) == len(FIELDS)


@pytest.mark.parametrize(
    ("field", "key", "told", "expected"),
    [
        ("DCGM_FI_DEV_GPU_TEMP", "temperature", 62, 62),
        ("DCGM_FI_DEV_POWER_USAGE", "power_draw", 690.072, 690.072),
        ("DCGM_FI_DEV_SM_CLOCK", "clock_sm", 1980, 1980),
        ("DCGM_FI_DEV_GPU_UTIL", "utilization", 57, 57),
        ("DCGM_FI_DEV_FB_USED", "memory_used", 3 << 20, 3),
        ("DCGM_FI_PROF_PIPE_TENSOR_ACTIVE", "tensor_active", 57, 0.57),
        ("DCGM_FI_PROF_DRAM_ACTIVE", "dram_active", 0, 0),
        ("DCGM_FI_DEV_TOTAL_ENERGY_CONSUMPTION", "energy", 12.5, 12500),
        ("DCGM_FI_PROF_PCIE_RX_BYTES", "pcie_rx", 1000, 1000),
        ("DCGM_FI_DEV_CORRECTABLE_REMAPPED_ROWS", "remapped_rows_corrected", 2, 2),
        ("DCGM_FI_DEV_ROW_REMAP_FAILURE", "remapped_rows_failed", True, 1),
        ("DCGM_FI_DEV_XID_ERRORS", "xid_last", 79, 79),
        ("DCGM_FI_DEV_CLOCK_THROTTLE_REASONS", "throttle_reasons", ("sw_power_cap", "gpu_idle"), 5),
    ],
)
def test_units_are_those_of_dcgm(field: str, key: str, told: Value, expected: float) -> None:
    exporter = exporter_of(
        gpu(**{key: told})
    )  # the client's reader of the classic text adds _total to a counter's name
    assert values(samples(exporter, openmetrics=True, dcgm=True), field, "UUID") == {("GPU-1",): expected}
    assert f"\n{field}{{".encode() in exporter.text(dcgm=True)


def test_no_error_is_nought_only_where_somebody_watched() -> None:
    watched, field = without(xid_last="pending"), "DCGM_FI_DEV_XID_ERRORS"
    assert values(samples(exporter_of(watched), dcgm=True), field, "gpu") == {("0",): 0}
    assert values(samples(exporter_of(gpu()), dcgm=True), field, "gpu") == {}


def test_violations_are_nanoseconds() -> None:
    slow = gpu(throttle_reasons=("sw_power_cap", "hw_thermal_slowdown"))
    found = samples(exporter_of(slow, slow), openmetrics=True, dcgm=True)
    assert values(found, "DCGM_FI_DEV_POWER_VIOLATION", "gpu") == {("0",): 2e9}
    assert values(found, "DCGM_FI_DEV_THERMAL_VIOLATION", "gpu") == {("0",): 2e9}


def test_labels_are_those_of_dcgm_under_the_old_and_the_new_name_of_the_host() -> None:
    part = Gpu({"index": 0, "uuid": "MIG-1", "name": "MIG 1g.10gb", "gpu_instance": 7, "memory_used": 1 << 20})
    whole = Gpu(
        {"index": 3, "uuid": "GPU-1", "name": "NVIDIA H100", "pci_bus_id": "00000000:1B:00.0", "memory_used": 2 << 20},
        instances=(part,),
    )
    exporter = Exporter()
    exporter.add(Snapshot(1.0, (whole,), Host({"name": "box"}), {"version": "580.1"}))
    found = [one.labels for one in samples(exporter, dcgm=True) if one.name == "DCGM_FI_DEV_FB_USED"]
    common = {"gpu": "3", "UUID": "GPU-1", "pci_bus_id": "00000000:1B:00.0", "device": "nvidia3"}
    common |= {"modelName": "NVIDIA H100", "Hostname": "box", "hostname": "box", "DCGM_FI_DRIVER_VERSION": "580.1"}
    assert found == [common | {"GPU_I_PROFILE": "1g.10gb", "GPU_I_ID": "7"}]  # the whole GPU would count it twice


def test_a_host_without_a_name_has_the_kernels() -> None:
    (labels,) = [
        one.labels for one in samples(exporter_of(gpu(temperature=5)), dcgm=True) if one.name.endswith("GPU_TEMP")
    ]
    assert labels["Hostname"] == os.uname().nodename


def test_openmetrics_keeps_the_names() -> None:
    told: dict[str, Value] = dict.fromkeys(FIELDS, 1)
    found = samples(exporter_of(gpu(**told)), openmetrics=True, dcgm=True)
    assert set(FIELDS.values()) <= {sample.name for sample in found}


def test_the_names_are_there_only_when_asked() -> None:
    assert not [sample for sample in samples(exporter_of(gpu(temperature=5))) if sample.name.startswith("DCGM")]


def test_a_divided_gpu_says_only_what_its_instances_do_not() -> None:
    parts = tuple(Gpu({"index": at, "uuid": f"MIG-{at}", "gpu_instance": at, "memory_used": 1 << 20}) for at in (1, 2))
    whole = Gpu({"index": 0, "uuid": "GPU-1", "memory_used": 2 << 20, "temperature": 50}, instances=parts)
    exporter = Exporter()
    exporter.add(Snapshot(1.0, (whole, Gpu({"index": 1, "uuid": "GPU-2", "memory_used": 5 << 20}))))
    found = samples(exporter, dcgm=True)
    assert values(found, "DCGM_FI_DEV_FB_USED", "gpu", "GPU_I_ID") == {("0", "1"): 1, ("0", "2"): 1, ("1", ""): 5}
    assert values(found, "DCGM_FI_DEV_GPU_TEMP", "gpu", "GPU_I_ID") == {("0", ""): 50}


def test_the_last_xid_stays_when_the_gpu_falls_off_the_bus() -> None:
    who: dict[str, Value] = {"index": 0, "uuid": "GPU-1", "name": "NVIDIA H100"}
    exporter = Exporter()
    exporter.add(Snapshot(1.0, (Gpu({**who, "xid_last": 79, "temperature": 50}),)))
    exporter.add(Snapshot(2.0, (Gpu(who, {"xid_last": "lost", "temperature": "lost"}, state="lost"),)))
    found = samples(exporter, dcgm=True)
    assert values(found, "DCGM_FI_DEV_XID_ERRORS", "UUID") == {("GPU-1",): 79}
    assert values(found, "DCGM_EXP_XID_ERRORS_COUNT", "xid") == {("79",): 1}
    assert values(found, "DCGM_EXP_GPU_HEALTH_STATUS", "gpu") == {("0",): 20}
    assert not values(found, "DCGM_FI_DEV_GPU_TEMP", "gpu")


def test_what_grows_is_added_up() -> None:
    moving = gpu(pcie_rx=3000.0, pcie_tx=0.0, nvlink_rx=2e6, nvlink_tx=1e6, throttle_reasons=("sw_power_cap",))
    found = samples(exporter_of(moving, moving), openmetrics=True, dcgm=True)
    seconds = values(found, "DCGM_FI_DEV_POWER_VIOLATION", "gpu")["0",] / 1e9
    assert values(found, "DCGM_FI_DEV_PCIE_RX_THROUGHPUT", "gpu") == {("0",): 3 * seconds}
    assert values(found, "DCGM_FI_DEV_NVLINK_BANDWIDTH_TOTAL", "gpu") == {("0",): 3 * seconds}
    assert values(found, "DCGM_EXP_CLOCK_EVENTS_COUNT", "clock_event") == {("sw_power_cap",): 1}
    assert values(found, "DCGM_FI_DEV_CLOCKS_EVENT_REASONS", "gpu") == {("0",): 4}


@pytest.mark.parametrize(("mode", "told"), [("pass_through", {("0",): 0}), ("vgpu", {})])
def test_only_a_vgpu_can_have_a_license(mode: str, told: dict[tuple[str, ...], float]) -> None:
    found = samples(exporter_of(gpu(virtualization_mode=mode)), dcgm=True)
    assert values(found, "DCGM_FI_DEV_VGPU_LICENSE_STATUS", "gpu") == told


def test_pods_come_from_cgroups_where_there_is_no_kubelet() -> None:
    runs = (Process({"pid": 1, "pod": "trainer-0", "container": "abc", "memory_used": 5}),)
    exporter = Exporter()
    exporter.add(Snapshot(1.0, (Gpu({"index": 0, "uuid": "GPU-1", "temperature": 5}, processes=runs),)))
    assert values(samples(exporter, dcgm=True), "DCGM_FI_DEV_GPU_TEMP", "pod", "container") == {("trainer-0", "abc"): 5}


def test_violations_are_the_drivers_counters_where_there_are_any() -> None:
    whole = gpu(throttle_time_power_cap=7.5, throttle_time_thermal=1.0, throttle_time_thermal_hardware=0.25)
    found = samples(exporter_of(whole), openmetrics=True, dcgm=True)
    assert values(found, "DCGM_FI_DEV_POWER_VIOLATION", "gpu") == {("0",): 7.5e9}
    assert values(found, "DCGM_FI_DEV_THERMAL_VIOLATION", "gpu") == {("0",): 1.25e9}
