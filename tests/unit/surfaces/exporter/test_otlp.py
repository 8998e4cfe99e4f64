"""Pushing to a collector: what a real SDK sends over real HTTP, decoded by the protocol's own messages."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import pytest

from gpulse.errors import GpulseError
from gpulse.model.catalog import Gpu
from gpulse.model.snapshot import Snapshot
from gpulse.surfaces.exporter.otlp import OtlpPush
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
    pytest.importorskip("opentelemetry.exporter.otlp.proto.http.metric_exporter")
    server = Collector()
    yield server
    server.shutdown()
    server.server_close()


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
            found[metric.name, own["hw.id"], "".join(extra)] = (value, metric.unit)
    return found


APART = (
    "hw.gpu.task",
    "hw.sensor_location",
    "network.io.direction",
    "error.type",
    "hw.state",
    "gpulse.throttle.reason",
)


def pushed(collector: Collector, *snapshots: Snapshot) -> Any:
    push = OtlpPush(collector.url, interval=3600)
    push.start()
    for snapshot in snapshots:
        push.add(snapshot)
    push.stop()
    return decoded(collector.bodies[-1])


def test_a_sample_arrives_under_the_names_of_the_conventions(collector: Collector) -> None:
    resource = pushed(collector, Snapshot(100.0, (WELL, LOST)), Snapshot(102.0, (WELL, LOST)))
    who = texts(resource.resource.attributes)
    assert (who["service.name"], who["host.name"]) == ("gpulse", os.uname().nodename)
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
    assert found["gpulse.gpu.sm_active", "GPU-1", ""] == (0.4, "1")
    assert found["gpulse.gpu.clock_sm", "GPU-1", ""] == (1.98e9, "Hz")
    assert found["gpulse.gpu.throttle.time", "GPU-1", "sw_power_cap"] == (2.0, "s")


def test_a_lost_gpu_has_a_status_and_nothing_else_and_what_is_missing_is_absent(collector: Collector) -> None:
    found = points(pushed(collector, Snapshot(100.0, (WELL, LOST))))
    assert {name for name, owner, _ in found if owner == "GPU-2"} == {"hw.status"}
    states = {state: found["hw.status", "GPU-2", state][0] for state in ("ok", "degraded", "failed")}
    assert states == {"ok": 0, "degraded": 0, "failed": 1}
    assert found["hw.status", "GPU-1", "ok"][0] == 1
    assert not [name for name, *_ in found if name == "gpulse.gpu.tensor_active"]


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


def test_an_instrument_that_fails_is_counted(collector: Collector) -> None:
    push = OtlpPush(collector.url, interval=3600)
    push.start()
    push.add(Snapshot(100.0, (WELL,)))
    push._counters.throttled.clear()  # as a mistake would
    push.stop()
    resource = decoded(collector.bodies[-1])
    metrics = {metric.name: metric for scope in resource.scope_metrics for metric in scope.metrics}
    assert "gpulse.gpu.throttle.time" not in metrics
    assert "hw.power" in metrics
    (point,) = metrics["gpulse.failed_instruments"].sum.data_points
    assert texts(point.attributes) == {"instrument": "gpulse.gpu.throttle.time"}


def test_without_a_sample_nothing_is_said(collector: Collector) -> None:
    push = OtlpPush(collector.url, interval=3600)
    push.start()
    push.stop()
    push.stop()
    assert all(not points(decoded(body)) for body in collector.bodies)


def test_a_missing_package_is_one_sentence(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in [name for name in sys.modules if name.partition(".")[0] == "opentelemetry"]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "opentelemetry", None)
    with pytest.raises(GpulseError, match="opentelemetry-exporter-otlp-proto-http"):
        OtlpPush("http://127.0.0.1:1").start()


def test_a_collector_that_is_not_there_raises_nothing_and_keeps_nobody() -> None:
    pytest.importorskip("opentelemetry.exporter.otlp.proto.http.metric_exporter")
    push = OtlpPush("http://127.0.0.1:1/v1/metrics", interval=3600, patience=0.2)
    push.start()
    push.add(Snapshot(100.0, (WELL,)))
    push.stop()
    push.add(Snapshot(101.0, (WELL,)))
