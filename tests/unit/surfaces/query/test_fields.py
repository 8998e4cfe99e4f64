"""Fields by every name they have, what they say where there is no value, and names that are none."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from gpulse.errors import UnknownMetric
from gpulse.model.catalog import GPU_METRICS, PROCESS_METRICS, Gpu, Process
from gpulse.model.snapshot import Snapshot
from gpulse.present.cells import value_text
from gpulse.surfaces.query.field import ProcessField, QueryRow, SnapshotField
from gpulse.surfaces.query.fields import (
    COMPUTE_APP_FIELDS,
    FIELDS,
    app_field_named,
    field_named,
    help_lines,
    unsupported_fields,
)

if TYPE_CHECKING:
    from gpulse.model.metric import Gap

GIB = 1 << 30


def row(gpu: Gpu | None = None, process: Process | None = None) -> QueryRow:
    gpu = gpu or Gpu({})
    return QueryRow(Snapshot(0.0, (gpu,)), gpu, process)


def test_a_field_is_found_by_each_of_its_names() -> None:
    for field in FIELDS.values():
        for name in (field.name, *field.aliases):
            assert field_named(name) is field, name
            assert field_named(f" {name.upper()} ") is field, name


def test_a_field_of_processes_is_found_by_each_of_its_names() -> None:
    for field in COMPUTE_APP_FIELDS.values():
        for name in (field.name, *field.aliases):
            assert app_field_named(name) is field, name
            assert app_field_named(name.upper()) is field, name


def test_no_two_fields_share_a_name() -> None:
    for fields in (FIELDS, COMPUTE_APP_FIELDS):
        names = [name.lower() for field in fields.values() for name in (field.name, *field.aliases)]
        assert len(names) == len(set(names))


def test_every_field_reads_a_metric_of_the_catalog_or_none() -> None:
    for field in FIELDS.values():
        assert set(field.keys) <= GPU_METRICS.keys()
    for field in COMPUTE_APP_FIELDS.values():
        assert set(field.keys) <= (PROCESS_METRICS if isinstance(field, ProcessField) else GPU_METRICS).keys()


def test_the_catalog_and_the_fields_name_the_same_metric() -> None:
    differing = {
        name: (key, field_named(name).key)
        for key, metric in GPU_METRICS.items()
        for name in metric.smi
        if field_named(name).key != key
    }
    assert differing == {}


def test_every_detail_is_behind_a_field_or_has_no_name_in_nvidia_smi() -> None:
    read = {key for field in FIELDS.values() for key in field.keys}
    details = {key for key, metric in GPU_METRICS.items() if metric.group == "details"}
    assert {key for key in details - read if GPU_METRICS[key].smi} == set()


@pytest.mark.parametrize(
    ("name", "header"),
    [
        ("clocks.sm", "clocks.current.sm [MHz]"),
        ("gpu_name", "name"),
        ("clocks_throttle_reasons.active", "clocks_event_reasons.active"),
        ("memory.used", "memory.used [MiB]"),
        ("temperature.gpu", "temperature.gpu"),
    ],
)
def test_a_header_has_the_first_name_whatever_was_asked(name: str, header: str) -> None:
    assert field_named(name).header() == header


@pytest.mark.parametrize(
    ("gap", "text"),
    [
        ("unsupported", "[N/A]"),
        ("skipped", "[N/A]"),
        ("pending", "[N/A]"),
        ("asleep", "[N/A]"),
        ("lost", "[GPU is lost]"),
        ("denied", "[Insufficient Permissions]"),
        ("failed", "[Unknown Error]"),
        ("timeout", "[Unknown Error]"),
    ],
)
def test_a_value_that_is_not_there_says_why(gap: Gap, text: str) -> None:
    lacking = row(Gpu({}, {"power_draw": gap}))
    assert field_named("power.draw").text(lacking) == text
    assert field_named("power.draw").text(lacking, units=False) == text


def test_a_field_of_the_fabric_is_not_available_without_brackets() -> None:
    assert field_named("fabric.state").text(row()) == "N/A"
    assert field_named("fabric.state").text(row(Gpu({}, {"fabric_state": "lost"}))) == "[GPU is lost]"


def test_the_count_is_that_of_the_machine_whichever_gpus_are_shown() -> None:
    assert field_named("count").text(row(Gpu({"system_gpus": 8}))) == "8"
    assert field_named("count").text(row(Gpu({}, {"system_gpus": "unsupported"}))) == "1"


def test_the_latency_of_the_encoder_is_in_microseconds_here_and_readable_elsewhere() -> None:
    gpu = Gpu({"encoder_latency": 0.016667})
    assert field_named("encoder.stats.averageLatency").text(row(gpu)) == "16667"
    assert value_text(GPU_METRICS["encoder_latency"], 0.016667) == "16.7 ms"


def test_zero_is_a_value() -> None:
    gpu = Gpu({"utilization": 0, "power_draw": 0.0, "memory_used": 0, "pstate": 0, "throttle_reasons": ()})
    texts = [field_named(name).text(row(gpu)) for name in ("utilization.gpu", "power.draw", "memory.used", "pstate")]
    assert texts == ["0 %", "0.00 W", "0 MiB", "P0"]
    assert field_named("clocks_event_reasons.active").text(row(gpu)) == "0x0000000000000000"


def test_an_empty_text_is_a_value() -> None:
    assert field_named("platform.chassis_serial_number").text(row(Gpu({"platform_chassis": ""}))) == ""


def test_the_limit_in_force_stands_in_for_the_one_requested() -> None:
    limit = field_named("power.limit")
    assert limit.text(row(Gpu({"power_limit": 650.0, "power_limit_requested": 700.0}))) == "700.00 W"
    assert limit.text(row(Gpu({"power_limit": 650.0}, {"power_limit_requested": "unsupported"}))) == "650.00 W"
    assert limit.text(row(Gpu({}, {"power_limit_requested": "lost", "power_limit": "lost"}))) == "[GPU is lost]"
    assert limit.keys == ("power_limit_requested", "power_limit")


def test_every_key_of_the_catalog_is_a_field() -> None:
    for key in GPU_METRICS:
        field = field_named(key)
        assert field.key == key
        assert field.header().split(" ")[0] in (key, field.name)


def test_every_key_of_a_process_is_a_field() -> None:
    for key in PROCESS_METRICS:
        field = app_field_named(key)
        assert isinstance(field, ProcessField), key
        assert key in field.keys


@pytest.mark.parametrize(
    ("key", "value", "header", "text", "bare"),
    [
        ("sm_active", 82.3211, "sm_active [%]", "82.32 %", "82.32"),
        ("bar1_used", 3 * GIB, "bar1_used [MiB]", "3072 MiB", "3072"),
        ("pcie_rx", GIB, "pcie_rx [MiB/s]", "1024.00 MiB/s", "1024.00"),
        ("power_draw", 77.6, "power_draw [W]", "77.60 W", "77.60"),
        ("temperature", 57, "temperature [C]", "57 C", "57"),
        ("energy", 12345.678, "energy [J]", "12345.68 J", "12345.68"),
        ("clock_sm", 1980, "clock_sm [MHz]", "1980 MHz", "1980"),
        ("memory_unified", False, "memory_unified", "No", "No"),
        ("architecture", "Hopper", "architecture", "Hopper", "Hopper"),
        ("throttle_reasons", ("gpu_idle", "sync_boost"), "throttle_reasons", "gpu_idle sync_boost", "gpu_idle sync_boost"),
        ("pcie_replays", 3, "pcie_replays", "3", "3"),
    ],
)  # fmt: skip
def test_a_metric_of_gpulse_is_written_in_the_same_manner(
    key: str, value: float | str | tuple[str, ...], header: str, text: str, bare: str
) -> None:
    field, gpu = field_named(key), Gpu({key: value})
    assert (field.header(), field.text(row(gpu)), field.text(row(gpu), units=False)) == (header, text, bare)


def test_a_process_is_read_beside_its_gpu() -> None:
    gpu = Gpu({"name": "NVIDIA H200", "memory_used": 7})
    process = Process({"pid": 3202, "command": "python3 train.py", "name": "python", "memory_used": 1130 << 20})
    names = ("gpu_name", "pid", "process_name", "used_memory", "user")
    texts = [app_field_named(name).text(row(gpu, process)) for name in names]
    assert texts == ["NVIDIA H200", "3202", "python3", "1130 MiB", "[N/A]"]
    assert app_field_named("used_memory").text(row(gpu, process), units=False) == "1130"


def test_a_process_that_cannot_be_seen_is_not_found() -> None:
    assert app_field_named("process_name").text(row(process=Process({"pid": 1}))) == "[Not Found]"
    assert app_field_named("process_name").text(row(process=Process({"pid": 1, "name": "python"}))) == "python"


@pytest.mark.parametrize(
    ("name", "meant"),
    [("utilisation.gpu", "utilization.gpu"), ("memory.usd", "memory.used"), ("sm_activ", "sm_active")],
)
def test_a_misspelt_field_is_answered_with_the_right_one(name: str, meant: str) -> None:
    with pytest.raises(UnknownMetric, match=f"did you mean.*{meant}") as caught:
        field_named(name)
    assert repr(name) in caught.value.message
    assert "gpulse query --help-query-gpu" in caught.value.remedy
    assert "gpulse metrics" in caught.value.remedy
    assert caught.value.exit_code == 2


@pytest.mark.parametrize("name", ["", "qqqqqqqqqqqq", "memory.used;reboot"])
def test_a_name_like_no_other_is_answered_with_where_to_look(name: str) -> None:
    with pytest.raises(UnknownMetric, match="help-query-compute-apps"):
        app_field_named(name)


def test_fields_gpulse_cannot_say_are_listed() -> None:
    names = unsupported_fields()
    assert "pcie.link.gen.hostmax" in names
    assert all(not FIELDS[name].keys and not isinstance(FIELDS[name], SnapshotField) for name in names)
    assert {name.split(".")[0] for name in names} == {
        "vgpu_driver_capability", "vgpu_device_capability", "power_smoothing", "pcie", "display_mode",
    }  # fmt: skip


@pytest.mark.parametrize("apps", [False, True])
def test_the_help_has_every_name_with_a_sentence(apps: bool) -> None:
    text = help_lines("--query-compute-apps" if apps else "--query-gpu")
    fields = COMPUTE_APP_FIELDS if apps else FIELDS
    assert len(text) == 1 + 3 * len(fields)
    for field, (blank, names, sentence) in zip(fields.values(), zip(*[iter(text[1:])] * 3, strict=True), strict=True):
        assert blank == ""
        assert all(f'"{name}"' in names for name in (field.name, *field.aliases))
        assert sentence.endswith(".")
