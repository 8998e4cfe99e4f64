"""What is wrong with links begins and ends once, at its threshold and not before."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import pytest

from gpulse.analysis.events import EventDetector
from gpulse.analysis.link_watch import FABRIC_START, FLAPS_OVER, SETTLED
from gpulse.model.catalog import Gpu, Host
from gpulse.model.event import Event
from gpulse.model.snapshot import Snapshot
from gpulse.present.events import event_text
from tests.unit.analysis.alerts.machines import book

START = 1_700_000_000.0
KINDS = ("nvlink-down", "fabric-not-ready", "slower-than-peers", "port-flaps")


def gpu(index: int, **values: Any) -> Gpu:
    return Gpu({"index": index, "uuid": f"GPU-{index}", "name": "NVIDIA H200", **values})


def watch(make: Callable[[float], Snapshot], times: Iterable[float]) -> list[tuple[str, float, float | None]]:
    """Return kind, begin and end of what was told, in seconds since START."""
    detector, told = EventDetector(), []
    for at in times:
        told += [event for event in detector.observe(make(at)) if event.kind in KINDS]
    return [(event.kind, event.time - START, None if event.until is None else event.until - START) for event in told]


def gpus(*made: Gpu) -> Callable[[float], Snapshot]:
    return lambda at: Snapshot(START + at, made, Host({}))


class TestNvlinks:
    def test_links_that_go_down_and_come_back_are_one_event(self) -> None:
        links = [18, 18, 4, 4, 18]
        found = watch(lambda at: Snapshot(START + at, (gpu(0, nvlink_links=links[int(at)]),), Host({})), range(5))
        assert found == [("nvlink-down", 2.0, None), ("nvlink-down", 2.0, 4.0)]

    def test_one_link_is_enough_and_more_of_them_are_the_same_event(self) -> None:
        links = [18, 17, 4]
        detector, told = EventDetector(), []
        for at, up in enumerate(links):
            told += detector.observe(Snapshot(START + at, (gpu(0, nvlink_links=up),), Host({})))
        assert [event_text(event).partition(";")[0] for event in told] == [
            "GPU 0: 17 of 18 NVLinks are up",
            "GPU 0: 4 of 18 NVLinks are up",
        ]
        assert len({event.key for event in told}) == 1
        assert {event.severity for event in told} == {"critical"}

    def test_what_cannot_be_read_and_a_split_gpu_tell_nothing(self) -> None:
        links = [18, None, 18]
        assert watch(lambda at: Snapshot(START + at, (gpu(0, nvlink_links=links[int(at)]),), Host({})), range(3)) == []
        split = Gpu({"index": 0, "uuid": "GPU-0", "nvlink_links": 0}, instances=(Gpu({"uuid": "MIG-1"}),))
        assert (
            watch(lambda at: Snapshot(START + at, (gpu(0, nvlink_links=18) if at == 0 else split,), Host({})), range(3))
            == []
        )


class TestFabric:
    @pytest.mark.parametrize(
        ("values", "why"),
        [
            ({"fabric_state": "not_started"}, "not started"),
            ({"fabric_state": "completed", "fabric_status": "not_ready"}, "not ready"),
            ({"fabric_state": "completed", "fabric_status": "success", "fabric_health": "unhealthy"}, "unhealthy"),
        ],
    )
    def test_a_fabric_that_is_not_ready_is_told_at_once(self, values: dict[str, str], why: str) -> None:
        (event,) = EventDetector().observe(gpus(gpu(0, **values))(0))
        assert event_text(event) == f"GPU 0: the NVLink fabric is not ready ({why}); CUDA may not start"

    @pytest.mark.parametrize("health", [None, "healthy", "limited_capacity"])
    def test_a_fabric_that_is_ready_is_not(self, health: str | None) -> None:
        values = {
            "fabric_state": "completed",
            "fabric_status": "success",
            **({"fabric_health": health} if health else {}),
        }
        assert watch(gpus(gpu(0, **values)), range(100)) == []

    def test_one_that_comes_up_has_a_minute(self) -> None:
        def make(at: float) -> Snapshot:
            return gpus(gpu(0, fabric_state="in_progress" if at < 90 else "completed"))(at)

        assert watch(make, [0, FABRIC_START - 1, 90]) == []
        assert watch(make, [0, FABRIC_START, 90]) == [("fabric-not-ready", 0.0, None), ("fabric-not-ready", 0.0, 90.0)]


class TestPeers:
    @pytest.mark.parametrize(("width", "slower"), [(16, False), (15.9, True), (8, True)])
    def test_a_narrower_link_than_that_of_the_same_model(self, width: float, slower: bool) -> None:
        made = (gpu(0, pcie_width=16, pcie_width_max=16), gpu(1, pcie_width=width, pcie_width_max=width))
        assert bool(watch(gpus(*made), [0, SETTLED])) is slower

    @pytest.mark.parametrize(("clock", "slower"), [(3201, False), (0.95 * 3201, False), (0.949 * 3201, True)])
    def test_a_slower_memory_clock_than_that_of_the_same_model(self, clock: float, slower: bool) -> None:
        made = (gpu(0, clock_memory=3201, utilization=99), gpu(1, clock_memory=clock, utilization=99))
        assert bool(watch(gpus(*made), [0, SETTLED])) is slower

    def test_it_takes_a_while_to_begin_and_to_end(self) -> None:
        def make(at: float) -> Snapshot:
            clock = 1593 if at < 100 else 3201
            return gpus(gpu(0, clock_memory=3201, utilization=99), gpu(1, clock_memory=clock, utilization=99))(at)

        assert watch(make, [0, 9]) == []
        assert watch(make, [0, 10, 99, 158]) == [("slower-than-peers", 0.0, None)]
        assert watch(make, [0, 10, 99, 159]) == [
            ("slower-than-peers", 0.0, None),
            ("slower-than-peers", 0.0, 99.0),
        ]

    def test_an_idle_gpu_another_model_and_a_single_one_are_not_compared(self) -> None:
        busy = gpu(0, clock_memory=3201, utilization=99, pcie_width=16, pcie_width_max=16)
        idle = gpu(1, clock_memory=405, utilization=0, pcie_width=8, pcie_width_max=16)
        other = gpu(2, clock_memory=1593, utilization=99, pcie_width=8, pcie_width_max=8, name="NVIDIA A100")
        assert watch(gpus(busy, idle, other), [0, SETTLED]) == []


class TestPorts:
    def snapshot(self, at: float, state: str, downs: float | None) -> Snapshot:
        values: dict[str, Any] = {"port_names": ("mlx5_0/1",), "port_states": (state,)}
        return Snapshot(START + at, (), Host(values if downs is None else {**values, "port_downs": (downs,)}))

    @pytest.mark.parametrize(("losses", "flaps"), [(2, False), (3, True)])
    def test_three_losses_within_ten_minutes_are_flaps(self, losses: int, flaps: bool) -> None:
        found = watch(lambda at: self.snapshot(at, "active", 7 + min(at, losses)), range(10))
        assert bool(found) is flaps

    def test_where_nothing_counts_them_they_are_seen(self) -> None:
        found = watch(lambda at: self.snapshot(at, "down" if at % 2 else "active", None), range(7))
        assert found[0] == ("port-flaps", 5.0, None)

    def test_losses_that_are_far_apart_are_no_flaps(self) -> None:
        assert watch(lambda at: self.snapshot(at, "active", at // 300), range(0, 6000, 100)) == []

    def test_it_is_over_after_ten_minutes_without_a_loss(self) -> None:
        times = [0, 1, FLAPS_OVER, 1 + FLAPS_OVER]
        found = watch(lambda at: self.snapshot(at, "active", 0 if at == 0 else 3), times)
        assert found == [("port-flaps", 1.0, None), ("port-flaps", 1.0, 1 + FLAPS_OVER)]


@pytest.mark.parametrize(
    ("rule", "severity", "broken", "well"),
    [
        ("nvlink_down", "critical", {"nvlink_links": 4}, {"nvlink_links": 18}),
        ("fabric_not_ready", "critical", {"fabric_state": "not_started"}, {"fabric_state": "completed"}),
    ],
)
def test_an_alert_is_a_latch_over_the_same_watch(
    rule: str, severity: str, broken: dict[str, Any], well: dict[str, Any]
) -> None:
    rules, found = book(rule), []
    for at in range(200):
        values = broken if 10 <= at < 20 else well
        found += rules.observe(Snapshot(START + at, (gpu(0, **values),), Host({})))
    turned = [(one.state, one.severity, one.time - START, one.last_true - START) for one in found]
    assert turned == [("fire", severity, 10.0, 10.0), ("clear", severity, 80.0, 19.0)]


def test_an_alert_of_a_port_is_about_the_machine() -> None:
    rules, ports = book("port_flaps"), TestPorts()
    (fired,) = [one for at in range(20) for one in rules.observe(ports.snapshot(at, "active", min(at, 3)))]
    assert (fired.uuid, fired.gpu, fired.what, fired.severity) == ("", "", "mlx5_0/1", "warn")
    assert isinstance(fired.event, Event)
