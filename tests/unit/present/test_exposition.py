"""Prometheus text: every page parses, absent values are absent, and names are what Prometheus expects."""

from __future__ import annotations

import math
import re
from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from prometheus_client.parser import text_string_to_metric_families

from gpulse.model.catalog import GPU_METRICS, HOST_METRICS, Gpu, Host
from gpulse.model.metric import Flag, Number
from gpulse.model.snapshot import Snapshot
from gpulse.present.exposition import exposition, series_name
from tests.unit.snapshots import snapshots

if TYPE_CHECKING:
    from collections.abc import Iterable

    from prometheus_client.samples import Sample

    from gpulse.model.metric import Value


def samples(snapshot: Snapshot, keys: Iterable[str] | None = None) -> list[Sample]:
    text = "".join(f"{line}\n" for line in exposition(snapshot, keys))
    return [sample for family in text_string_to_metric_families(text) for sample in family.samples]


def value(name: str, **values: Value) -> float | None:
    """The one sample of a series, of a GPU with these values."""
    found = [sample.value for sample in samples(Snapshot(0.0, (Gpu(values),))) if sample.name == name]
    return found[0] if found else None


@given(snapshots())
def test_any_snapshot_is_a_page_that_parses_with_each_series_once(snapshot: Snapshot) -> None:
    found = samples(snapshot)
    assert all(math.isfinite(sample.value) for sample in found)
    gpus = [gpu for whole in snapshot.gpus for gpu in (whole, *whole.instances)]
    numbers = [
        key
        for gpu in gpus
        for key, told in gpu.items()
        if isinstance(told, (int, float)) and GPU_METRICS[key].kind != "identity"
    ]
    hosts = [key for key, told in snapshot.host.items() if isinstance(told, (int, float))]
    hosts = [key for key in hosts if HOST_METRICS[key].kind != "identity"]
    assert len(found) == len(numbers) + len(hosts) + len(gpus) + len(snapshot.gpus)


def test_every_series_has_a_name_of_its_own_with_its_unit_and_total_only_for_counters() -> None:
    names = {series_name(metric, "gpu"): metric for metric in GPU_METRICS.values()}
    assert len(names) == len(GPU_METRICS)
    for name, metric in names.items():
        if metric.kind == "identity":
            continue
        assert re.fullmatch(r"gpulse_gpu_[a-z][a-z0-9_]*", name)
        assert name.endswith("_total") is (metric.kind == "counter"), name
        assert not re.search(r"percent|_mhz|_(\w+)_\1(_|$)", name), name
    hosts = [series_name(metric, "host") for metric in HOST_METRICS.values()]
    assert len(set(hosts)) == len(hosts)
    assert all(re.fullmatch(r"gpulse_host_[a-z][a-z0-9_]*", name) for name in hosts)


@pytest.mark.parametrize(
    ("name", "key", "told", "expected"),
    [
        ("gpulse_gpu_utilization_ratio", "utilization", 50, 0.5),
        ("gpulse_gpu_utilization_ratio", "utilization", 0, 0.0),
        ("gpulse_gpu_utilization_ratio", "utilization", 7, 0.07),
        ("gpulse_gpu_memory_used_bytes", "memory_used", 150754820096, 150754820096),
        ("gpulse_gpu_clock_sm_hertz", "clock_sm", 1980, 1.98e9),
        ("gpulse_gpu_energy_joules_total", "energy", 8083.348, 8083.348),
        ("gpulse_gpu_temperature_celsius", "temperature", 62, 62),
        ("gpulse_gpu_power_draw_watts", "power_draw", 690.072, 690.072),
        ("gpulse_gpu_ecc_corrected_total", "ecc_corrected", 3, 3),
        ("gpulse_gpu_throttle_time_thermal_seconds_total", "throttle_time_thermal", 1.5, 1.5),
        ("gpulse_gpu_persistence_mode", "persistence_mode", True, 1),
        ("gpulse_gpu_persistence_mode", "persistence_mode", False, 0),
        ("gpulse_gpu_ecc_corrected_aggregate_dram_total", "ecc_corrected_aggregate_dram", 2**53 - 1, 2**53 - 1),
    ],
)
def test_values_are_in_base_units(name: str, key: str, told: Value, expected: float) -> None:
    assert value(name, **{key: told}) == expected


def test_what_is_missing_is_absent_with_its_help() -> None:
    gpu = Gpu({"index": 0, "uuid": "GPU-1", "name": "A"}, {"utilization": "lost", "power_draw": "denied"}, state="lost")
    page = "\n".join(exposition(Snapshot(0.0, (gpu,))))
    assert "utilization" not in page
    assert "power_draw" not in page
    assert 'gpulse_gpu_up{gpu="0",uuid="GPU-1"} 0' in page


def test_words_are_no_series() -> None:
    assert len(samples(Snapshot(0.0, (Gpu({"compute_mode": "default", "throttle_reasons": ("gpu_idle",)}),)))) == 2


def test_keys_limit_the_page_to_some_metrics_of_gpus() -> None:
    snapshot = Snapshot(0.0, (Gpu({"utilization": 5, "power_draw": 3.0}),), Host({"cpu_percent": 3.0}))
    names = [sample.name for sample in samples(snapshot, ["power_draw", "power_draw"])]
    assert names == ["gpulse_gpu_info", "gpulse_gpu_up", "gpulse_gpu_power_draw_watts"]
    assert "gpulse_host_cpu_ratio" in [sample.name for sample in samples(snapshot)]


def test_an_instance_has_series_of_its_own_and_the_page_says_what_each_gpu_is() -> None:
    identity: dict[str, Value] = {"gpu_instance": 7, "compute_instance": 0}
    part = Gpu({"index": 0, "uuid": "MIG-1", "name": "MIG 1g.10gb", "memory_used": 5, **identity})
    whole = Gpu(
        {"index": 3, "uuid": "GPU-1", "name": "A", "driver_version": "580", "memory_used": 7}, instances=(part,)
    )
    found = samples(Snapshot(0.0, (whole,)))
    used = {sample.labels["uuid"]: sample.value for sample in found if sample.name == "gpulse_gpu_memory_used_bytes"}
    assert used == {"GPU-1": 7, "MIG-1": 5}
    told = [sample.labels for sample in found if sample.name == "gpulse_gpu_info"]
    assert told == [
        {"gpu": "3", "uuid": "GPU-1", "name": "A", "driver_version": "580"},
        {"gpu": "3", "uuid": "MIG-1", "mig": "0", "name": "MIG 1g.10gb", "driver_version": "580"}
        | {"parent": "GPU-1", "gpu_instance": "7", "compute_instance": "0"},
    ]


@pytest.mark.parametrize("name", ['a"b', "a\\b", "a\\", "a\\nb", "名前", "a,b=c}", "# TYPE x"])
def test_a_name_survives_its_quotes(name: str) -> None:
    (info, *_) = samples(Snapshot(0.0, (Gpu({"index": 0, "uuid": "GPU-1", "name": name}),)))
    assert info.labels["name"] == name


def test_a_name_cannot_add_a_series() -> None:
    found = samples(Snapshot(0.0, (Gpu({"index": 0, "uuid": "GPU-1", "name": '"} 1\ngpulse_gpu_up{x="'}),)))
    assert [sample.name for sample in found] == ["gpulse_gpu_info", "gpulse_gpu_up"]


@pytest.mark.parametrize("name", ["\x1b[31m", "a\rb", "\x07", "a\x00b", "\u202egpj.exe", "\x9b2J"])
def test_a_name_cannot_act_on_a_terminal(name: str) -> None:
    lines = exposition(Snapshot(0.0, (Gpu({"index": 0, "uuid": name, "name": name}),)))
    assert all(line.isprintable() for line in lines)


def test_no_gpu_is_an_empty_page() -> None:
    assert exposition(Snapshot(0.0, ())) == []


def test_each_number_and_flag_has_help_and_type() -> None:
    told: dict[str, Value] = {key: 1 for key, metric in GPU_METRICS.items() if isinstance(metric, (Number, Flag))}
    lines = exposition(Snapshot(0.0, (Gpu(told),)))
    for family in text_string_to_metric_families("".join(f"{line}\n" for line in lines)):
        assert family.documentation
        assert family.type in ("gauge", "counter")
        assert (family.type == "counter") is family.samples[0].name.endswith("_total")
