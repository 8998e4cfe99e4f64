"""The catalog holds what the contract promises, each metric whole and once."""

from __future__ import annotations

import re
from collections.abc import Mapping

import pytest

from gpulse.model.catalog import GPU_METRICS, HOST_METRICS, PROCESS_METRICS, Gpu
from gpulse.model.metric import Metric, Number, Numbers
from gpulse.units import BYTES_PER_SECOND, PERCENT, Unit

_GPU_KEYS = """
index uuid name vendor architecture pci_bus_id serial vbios driver_version
utilization memory_utilization memory_used memory_total memory_free memory_reserved
sm_active sm_occupancy tensor_active dram_active fp64_active fp32_active fp16_active integer_active graphics_active
temperature memory_temperature temperature_limit fan_speed
power_draw power_limit power_default_limit energy
clock_sm clock_memory clock_graphics clock_video clock_sm_max clock_memory_max pstate throttle_reasons
pcie_rx pcie_tx pcie_gen pcie_width pcie_gen_max pcie_width_max pcie_replays nvlink_rx nvlink_tx
encoder_utilization decoder_utilization jpeg_utilization ofa_utilization
ecc_corrected ecc_uncorrected remapped_rows xid_last
compute_mode persistence_mode mig_mode display_active bar1_used bar1_total
"""
_PROCESS_KEYS = """
pid name command user type memory_used sm_utilization memory_utilization encoder_utilization decoder_utilization
cpu_percent tree_cpu_percent children host_memory container job running_time
"""
_HOST_KEYS = """
cpu_percent cpu_per_core load memory_used memory_total swap_used disk_read disk_write net_rx net_tx iowait
"""
_ALL = [*GPU_METRICS.values(), *PROCESS_METRICS.values(), *HOST_METRICS.values()]


@pytest.mark.parametrize(
    ("metrics", "promised"), [(GPU_METRICS, _GPU_KEYS), (PROCESS_METRICS, _PROCESS_KEYS), (HOST_METRICS, _HOST_KEYS)]
)
def test_every_promised_key_is_there(metrics: dict[str, Metric], promised: str) -> None:
    assert set(promised.split()) <= set(metrics)


def test_every_metric_says_what_it_is() -> None:
    for metric in _ALL:
        assert metric.title[:1].isupper(), metric.key
        assert metric.short, metric.key
        assert metric.group, metric.key
        assert isinstance(metric.unit, Unit), metric.key
        assert metric.help.endswith("."), metric.key
        assert metric.help[0].isupper(), metric.key


def test_keys_are_plain_words_without_units() -> None:
    units = ("_mb", "_mib", "_bytes", "_watts", "_mhz", "_celsius")
    assert [metric.key for metric in _ALL if not re.fullmatch("[a-z0-9_]+", metric.key)] == []
    assert [metric.key for metric in _ALL if metric.key.endswith(units)] == []


def test_thresholds_lie_inside_the_range_and_in_order() -> None:
    for metric in _ALL:
        levels = [level for level in (metric.warn, metric.critical) if level is not None]
        assert metric.low < metric.high, metric.key
        assert [metric.low, *levels, metric.high] == sorted([metric.low, *levels, metric.high]), metric.key


def test_identity_is_never_asked_again() -> None:
    assert [metric.key for metric in _ALL if metric.kind == "identity" and metric.cost != "static"] == []


@pytest.mark.parametrize("metrics", [GPU_METRICS, PROCESS_METRICS, HOST_METRICS])
@pytest.mark.parametrize("names", ["smi", "dcgm", "otel"])
def test_no_two_metrics_have_the_same_name_elsewhere(metrics: dict[str, Metric], names: str) -> None:
    found = [getattr(metric, names) for metric in metrics.values()]
    flat = [name for entry in found for name in (entry if isinstance(entry, tuple) else (entry,)) if name]
    assert len(flat) == len(set(flat))


@pytest.mark.parametrize("metrics", [GPU_METRICS, PROCESS_METRICS, HOST_METRICS])
def test_no_two_metrics_have_the_same_header(metrics: dict[str, Metric]) -> None:
    headers = [metric.short.upper() for metric in metrics.values()]
    assert len(headers) == len(set(headers))


def test_all_processes_are_those_of_the_gpu_and_of_its_instances() -> None:
    from gpulse.model.catalog import Process

    one, two = Process({"pid": 1}), Process({"pid": 2})
    gpu = Gpu({}, processes=(one,), instances=(Gpu({}, processes=(two,)),))
    assert list(gpu.all_processes()) == [one, two]


@pytest.mark.parametrize("metrics", [GPU_METRICS, PROCESS_METRICS, HOST_METRICS])
def test_every_rate_and_share_of_time_says_which_time_it_covers(metrics: Mapping[str, Metric]) -> None:
    at_one_moment = {"memory_percent", "fan_speed"}
    kept_by_the_driver = {key for key in metrics if key.endswith("_samples")}
    rates = {
        key
        for key, metric in metrics.items()
        if isinstance(metric, (Number, Numbers))
        and metric.kind == "gauge"
        and metric.unit in (PERCENT, BYTES_PER_SECOND)
    }
    assert {key for key in rates if not metrics[key].window} <= at_one_moment | kept_by_the_driver
