"""What is pushed to a collector over real HTTP, decoded by the protocol's own messages."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import pytest

from gpulse.errors import GpulseError
from gpulse.model.catalog import Gpu
from gpulse.model.snapshot import Snapshot
from gpulse.surfaces.exporter.exporter import Exporter
from gpulse.surfaces.exporter.otlp import Encoder, Instrument
from gpulse.surfaces.exporter.otlp_push import OtlpPush, Receiver
from tests.unit.surfaces.exporter.collector import Collector, decoded

if TYPE_CHECKING:
    from gpulse.model.metric import Value

PART = Gpu({"index": 0, "uuid": "MIG-1", "name": "MIG 1g.10gb", "memory_used": 5, "gpu_instance": 7})
VALUES: dict[str, Value] = {
    "index": 3, "uuid": "GPU-1", "name": "A\udc80", "vendor": "nvidia", "driver_version": "580", "vbios": "96.00.5E", "serial": "1652922",
    "utilization": 57, "encoder_utilization": 0, "memory_percent": 25, "memory_used": 1 << 30, "memory_total": 1 << 32, "energy": 12.5,
    "temperature": 60, "memory_temperature": 70, "power_draw": 300.0, "sm_active": 40, "pcie_rx": 1000,
    "ecc_corrected": 2, "xid_last": 31, "throttle_reasons": ("sw_power_cap",), "clock_sm": 1980,
}  # fmt: skip
WELL = Gpu(
    VALUES,
    {"tensor_active": "unsupported"},
    instances=(PART,),
)
LOST = Gpu({"index": 4, "uuid": "GPU-2", "name": "B", "utilization": 9}, state="lost")


@pytest.fixture
def collector() -> Iterator[Collector]:
    pytest.importorskip("opentelemetry.proto")
    with Collector() as server:
        yield server


def texts(attributes: Any) -> dict[str, str]:
    return {pair.key: pair.value.string_value for pair in attributes}


def points(resource: Any) -> dict[tuple[str, str, str], tuple[float, str]]:
    """Values and units by instrument, hw.id and the attribute that tells points apart."""
    found = {}
    for metric in (metric for scope in resource.scope_metrics for metric in scope.metrics):
        data = metric.gauge if metric.HasField("gauge") else metric.sum
        for point in data.data_points:
            own = texts(point.attributes)
            extra = [value for key, value in own.items() if key in APART]
            value = point.as_double if point.HasField("as_double") else point.as_int
            found[metric.name, own.get("hw.id", own.get("uuid", "")), "".join(extra)] = (value, metric.unit)
    return found


APART = (
    "hw.gpu.task",
    "hw.sensor_location",
    "network.io.direction",
    "error.type",
    "hw.state",
    "reason",
)


def pushed(collector: Collector, *snapshots: Snapshot) -> Any:
    exporter = Exporter()
    push = OtlpPush(Receiver(collector.url, {}), exporter.series, print, interval=3600)
    push.start()
    for snapshot in snapshots:
        exporter.add(snapshot)
        push.add(snapshot)
    push.stop()
    return decoded(collector.bodies[-1])


def test_a_sample_arrives_under_the_names_of_the_conventions(collector: Collector) -> None:
    resource = pushed(collector, Snapshot(100.0, (WELL, LOST)), Snapshot(102.0, (WELL, LOST)))
    who = texts(resource.resource.attributes)
    node = os.uname().nodename
    assert (who["service.name"], who["service.instance.id"], who["host.name"]) == ("gpulse", node, node)
    found = points(resource)
    assert found["hw.gpu.utilization", "GPU-1", "general"] == (0.57, "1")
    assert found["hw.gpu.utilization", "GPU-1", "encoder"] == (0.0, "1")
    assert found["hw.gpu.memory.utilization", "GPU-1", ""] == (0.25, "1")
    assert found["hw.gpu.memory.usage", "GPU-1", ""] == (1 << 30, "By")
    assert found["hw.gpu.memory.usage", "MIG-1", ""] == (5, "By")
    assert found["hw.power", "GPU-1", ""] == (300.0, "W")
    assert found["hw.energy", "GPU-1", ""] == (12.5, "J")
    assert found["hw.temperature", "GPU-1", "memory"] == (70, "Cel")
    assert found["hw.gpu.io", "GPU-1", "receive"] == (2000, "By")
    assert found["hw.errors", "GPU-1", "corrected"] == (2, "{error}")
    assert found["hw.errors", "GPU-1", "xid-31"] == (1, "{error}")
    assert "hw.gpu.sm_active" not in {name for name, *_ in found}


def test_every_series_of_the_page_arrives_under_its_own_name_with_job_and_instance(collector: Collector) -> None:
    resource = pushed(collector, Snapshot(100.0, (WELL, LOST)), Snapshot(102.0, (WELL, LOST)))
    found = points(resource)
    assert found["gpulse_gpu_sm_active_ratio", "GPU-1", ""] == (0.4, "")
    assert found["gpulse_gpu_clock_sm_hertz", "GPU-1", ""] == (1.98e9, "")
    assert found["gpulse_gpu_throttle_seconds_total", "GPU-1", "sw_power_cap"] == (2.0, "")
    metrics = {metric.name: metric for scope in resource.scope_metrics for metric in scope.metrics}
    (energy,) = metrics["gpulse_gpu_energy_joules_total"].sum.data_points
    assert metrics["gpulse_gpu_energy_joules_total"].sum.is_monotonic
    assert energy.time_unix_nano == 102 * 10**9
    own = {"job": "gpulse", "instance": os.uname().nodename, "gpu": "3", "uuid": "GPU-1"}
    assert texts(energy.attributes) == own
    page = Exporter()
    page.add(Snapshot(100.0, (WELL, LOST)))
    page.add(Snapshot(102.0, (WELL, LOST)))
    shown = {family.name for family, _ in page.series()[1]}
    assert shown == {name for name in metrics if not name.startswith("hw.")}
    assert len(shown) > 20


def test_labels_are_unescaped_and_empty_ones_left_out(collector: Collector) -> None:
    odd = Gpu({"index": 0, "uuid": "", "name": 'a "b" \\n', "utilization": 5})
    resource = pushed(collector, Snapshot(100.0, (odd,)))
    metrics = {metric.name: metric for scope in resource.scope_metrics for metric in scope.metrics}
    (info,) = metrics["gpulse_gpu_info"].gauge.data_points
    told = texts(info.attributes)
    assert (told["name"], told["gpu"]) == ('a "b" \\n', "0")
    assert "uuid" not in told


def test_a_counter_without_total_in_its_name_keeps_its_name_as_a_gauge() -> None:
    pytest.importorskip("opentelemetry.proto")
    from gpulse.present.exposition import Family
    from gpulse.surfaces.exporter.otlp import page_instruments, resource_of

    families = [(Family(name, "counter", ""), [("", 1.0)]) for name in ("DCGM_FI_ENERGY", "gpulse_gaps_total")]
    assert [one.kind for one in page_instruments(families, resource_of({}))] == ["gauge", "counter"]


def test_a_series_that_ends_is_marked_once() -> None:
    pytest.importorskip("opentelemetry.proto")
    encoder = Encoder({"service.name": "gpulse"})

    def sent(time: float, **values: float) -> list[tuple[str, str, int]]:
        body, count = encoder.request(
            time, [Instrument("a", "gauge", "", [(value, {"x": key}) for key, value in values.items()])]
        )
        (scope,) = decoded(body).scope_metrics
        found = [
            (texts(point.attributes)["x"], point) for metric in scope.metrics for point in metric.gauge.data_points
        ]
        assert len(found) == count
        return [(key, "value" if point.HasField("as_double") else "none", point.flags) for key, point in found]

    assert sent(1.0, p=0.0, q=2.0) == [("p", "value", 0), ("q", "value", 0)]
    assert sent(2.0, p=0.0) == [("p", "value", 0), ("q", "none", 1)]
    assert sent(3.0, p=0.0) == [("p", "value", 0)]
    assert sent(4.0) == [("p", "none", 1)]
    assert sent(5.0) == []


def test_a_lost_gpu_has_a_status_and_nothing_else_and_what_is_missing_is_absent(collector: Collector) -> None:
    found = points(pushed(collector, Snapshot(100.0, (WELL, LOST))))
    assert {name for name, owner, _ in found if owner == "GPU-2" and name.startswith("hw.")} == {"hw.status"}
    assert ("gpulse_gpu_utilization_ratio", "GPU-2", "") not in found
    states = {state: found["hw.status", "GPU-2", state][0] for state in ("ok", "degraded", "failed")}
    assert states == {"ok": 0, "degraded": 0, "failed": 1}
    assert found["hw.status", "GPU-1", "ok"][0] == 1
    assert not [name for name, *_ in found if name == "gpulse_gpu_tensor_active_ratio"]


def test_a_gpu_that_needs_a_reset_is_degraded(collector: Collector) -> None:
    worn = Gpu({"index": 0, "uuid": "GPU-3", "remapped_rows_pending": True})
    found = points(pushed(collector, Snapshot(100.0, (worn,))))
    assert {state: found["hw.status", "GPU-3", state][0] for state in ("ok", "degraded", "failed")} == {
        "ok": 0,
        "degraded": 1,
        "failed": 0,
    }


def test_the_hardware_conventions_name_what_is_pushed(collector: Collector) -> None:
    conventions = pytest.importorskip("opentelemetry.semconv._incubating.metrics.hw_metrics")
    known = {value for key, value in vars(conventions).items() if key.isupper() and isinstance(value, str)}
    resource = pushed(collector, Snapshot(100.0, (WELL,)), Snapshot(102.0, (WELL,)))
    names = {metric.name for scope in resource.scope_metrics for metric in scope.metrics}
    assert {name for name in names if name.startswith("hw.")} <= known
    assert {name for name in known if name.startswith("hw.gpu.")} <= names


def test_points_say_which_hardware_they_are_of(collector: Collector) -> None:
    resource = pushed(collector, Snapshot(100.0, (WELL,)))
    metrics = {metric.name: metric for scope in resource.scope_metrics for metric in scope.metrics}
    memory = metrics["hw.gpu.memory.usage"].sum
    assert not memory.is_monotonic
    assert metrics["hw.energy"].sum.is_monotonic
    told = {texts(point.attributes)["hw.id"]: texts(point.attributes) for point in memory.data_points}
    common = {"hw.type": "gpu", "hw.name": "gpu3", "hw.vendor": "nvidia", "hw.driver_version": "580"}
    common |= {"hw.firmware_version": "96.00.5E", "hw.serial_number": "1652922"}
    assert told["GPU-1"] == {**common, "hw.id": "GPU-1", "hw.model": "A\\udc80"}
    assert told["MIG-1"] == {**common, "hw.id": "MIG-1", "hw.model": "MIG 1g.10gb", "hw.parent": "GPU-1"}


def test_an_older_gpu_beside_a_newer_one_costs_only_its_own_totals(collector: Collector) -> None:
    old = Gpu({"index": 0, "uuid": "GPU-3", "vendor": "nvidia", "pcie_rx": 1000, "utilization": 5})
    found = points(pushed(collector, Snapshot(100.0, (WELL, old)), Snapshot(102.0, (WELL, old))))
    assert found["hw.gpu.io", "GPU-1", "receive"] == (2000, "By")
    assert ("hw.gpu.io", "GPU-3", "receive") not in found
    assert found["hw.gpu.utilization", "GPU-3", "general"] == (0.05, "1")


def test_an_instrument_that_fails_is_counted_said_once_and_costs_no_other(collector: Collector) -> None:
    said: list[str] = []
    exporter = Exporter()
    push = OtlpPush(Receiver(collector.url, {}), exporter.series, said.append, interval=0.0)
    push.start()
    push._conventions._counters.xids = None  # type: ignore[assignment]  # as a mistake would
    push._conventions._counters.add = lambda _: None  # type: ignore[method-assign,assignment]
    for at in (100.0, 102.0):
        exporter.add(Snapshot(at, (WELL,)))
        push.add(Snapshot(at, (WELL,)))
    push.stop()
    names = {metric.name for scope in decoded(collector.bodies[-1]).scope_metrics for metric in scope.metrics}
    assert "hw.errors" not in names
    assert {"hw.power", "gpulse_gpu_up"} <= names
    (family,) = [one for one in push.families() if one.name == "gpulse_otlp_failed_instruments_total"]
    assert list(family.samples) == [('{instrument="hw.errors"}', 2)]
    assert len([text for text in said if text.startswith("hw.errors is not pushed")]) == len(said) == 1


def test_a_missing_package_is_one_sentence(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in [name for name in sys.modules if name.partition(".")[0] == "opentelemetry"]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "opentelemetry", None)
    with pytest.raises(GpulseError, match="opentelemetry-proto is not installed"):
        Encoder({})
