"""Every condition is as bad as this table says, in every case and under every name."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gpulse.model import condition
from gpulse.model.condition import CONDITIONS, KINDS, LASTING, XIDS, named, of_event, of_verdict, rank, xid_of
from gpulse.model.event import Event

SEVERITIES = {
    "critical": """lost driver_unresponsive memory_errors nvlink_down fabric_not_ready hang hw_slowdown thermal_throttled
        removed serving_stuck""",
    "warn": """out_of_memory power_throttled hot pcie_degraded link_errors port_flaps slower_than_peers
        memory_pressure memory_leak idle_allocation allocation_unused stalled threshold contention orphaned_memory clocks_locked straggler
        communication_bound stalls transfer_bound input_bound_cpu input_bound_io host_bound launch_bound not_used waiting
        fp32_no_tensor small_batch gap dropped history_damaged serving_queue_long serving_slow serving_errors serving_cache_full
        serving_preemptions serving_queue""",
    "info": """busy memory_bandwidth memory_latency underused starting loading idle unknown gpu_free instance_removed asleep process_end
        server_ended alert_silenced alert_unsilenced alert_acknowledged
        process_start verdict suspend clock boot start stop serving_prefill serving_decode serving_idle""",
    "good": "healthy added back",
}
LASTS = """lost timeout nvlink-down fabric-not-ready throttled hot pcie-degraded port-flaps slower-than-peers memory-nearly-full
    memory-growth idle-allocation allocation-unused stalled threshold serving-stuck serving-queue-long serving-slow serving-errors"""
PROGRAM_XIDS = (13, 31, 43, 45, 94)
NOTICES = (63, 92)


def test_how_bad_every_condition_is() -> None:
    told = {key: level for level, keys in SEVERITIES.items() for key in keys.split()}
    assert {key: one.severity() for key, one in CONDITIONS.items() if key != "xid"} == told


@pytest.mark.parametrize("code", [*XIDS, 7, 999])
def test_how_bad_an_xid_is(code: int) -> None:
    expected = "warn" if code in PROGRAM_XIDS else "info" if code in NOTICES else "critical"
    assert xid_of(code).severity == expected
    assert CONDITIONS["xid"].severity(float(code)) == expected
    assert Event(0.0, "xid", ("0",), value=float(code)).severity == expected


def test_what_an_xid_affects() -> None:
    assert {code: one.affects for code, one in XIDS.items() if one.affects != "gpu"} == {
        **dict.fromkeys(PROGRAM_XIDS, "program"),
        **dict.fromkeys(NOTICES, "notice"),
        **dict.fromkeys((74, 145, 149), "link"),
    }
    assert xid_of(12345).affects == "gpu"
    assert CONDITIONS["xid"].severity() == "critical"  # a code that nobody knows


@pytest.mark.parametrize(
    ("reasons", "key"),
    [
        ((), "thermal_throttled"),
        (("sw_thermal_slowdown",), "thermal_throttled"),
        (("hw_thermal_slowdown", "hw_slowdown"), "thermal_throttled"),
        (("hw_slowdown",), "hw_slowdown"),
        (("hw_power_brake_slowdown", "hw_slowdown"), "hw_slowdown"),
        (("hw_power_brake_slowdown", "sw_thermal_slowdown"), "hw_slowdown"),
        (("current_limit",), "power_throttled"),
        (("sw_power_cap",), "power_throttled"),
    ],
)
def test_which_throttling_it_is(reasons: tuple[str, ...], key: str) -> None:
    found = Event(0.0, "throttled", ("0",), reasons=reasons)
    assert found.condition is CONDITIONS[key]
    assert found.severity == CONDITIONS[key].severity()


def test_which_kinds_of_events_last() -> None:
    assert set(LASTING) == set(LASTS.split())


def test_conditions_are_found_by_the_names_of_their_rules_and_events() -> None:
    keys = {name: tuple(one.key for one in named(name)) for name in ("lost", "ecc", "memory", "leak", "timeout")}
    assert keys == {
        "lost": ("lost", "driver_unresponsive", "removed"),
        "ecc": ("memory_errors",),
        "memory": ("memory_pressure",),
        "leak": ("memory_leak",),
        "timeout": ("driver_unresponsive",),
    }
    assert [one.key for one in named("throttled")] == ["hw_slowdown", "thermal_throttled", "power_throttled"]
    assert named("nothing of the kind") == ()


def test_what_nobody_knows_is_no_condition() -> None:
    assert of_verdict("nothing") is None
    assert of_event("nothing") is None
    assert Event(0.0, "nothing").severity == "info"


def test_an_event_about_a_verdict_is_as_bad_as_the_verdict() -> None:
    assert Event(0.0, "verdict", values={"verdict": "hang"}).severity == "critical"
    assert Event(0.0, "verdict", values={"verdict": "healthy"}).severity == "good"
    assert Event(0.0, "verdict").severity == "info"


@pytest.mark.parametrize(
    ("names", "found"),
    [
        ({"timeout"}, {"timeout"}),
        ({"driver_unresponsive"}, {"timeout"}),
        ({"lost"}, {"lost"}),
        ({"xid"}, {"xid"}),
        ({"thermal_throttled"}, {"throttled"}),
        ({"hw_slowdown"}, set()),
        ({"verdict"}, {"verdict"}),
        ({"host_bound"}, {"verdict"}),
        ({"alert"}, {"alert"}),
    ],
)
def test_events_are_found_by_any_name(names: set[str], found: set[str]) -> None:
    events = [
        Event(0.0, "lost", ("0",)),
        Event(0.0, "timeout", ("0",)),
        Event(0.0, "xid", ("0",), value=31.0),
        Event(0.0, "throttled", ("0",), reasons=("sw_thermal_slowdown",)),
        Event(0.0, "verdict", ("0",), values={"verdict": "host_bound"}),
        Event(0.0, "lost", ("0",), rule="lost", alert="fire"),
    ]
    assert {event.category for event in events if event.is_named(names)} == found


@given(st.sampled_from([*KINDS, "unheard of"]), st.sampled_from([*KINDS, "unheard of"]))
def test_the_worse_event_comes_first(one: str, two: str) -> None:
    worst = condition.SEVERITIES.index
    first, second = Event(0.0, one), Event(0.0, two)
    if worst(first.severity) < worst(second.severity):
        assert rank(first.severity, first.kind) < rank(second.severity, second.kind)


def test_names_are_of_one_condition_each_and_titles_short() -> None:
    assert len({one.title for one in CONDITIONS.values()}) == len(CONDITIONS)
    assert all(len(one.title) <= 24 for one in CONDITIONS.values())
    assert all(key.replace("_", "").isalnum() and key == key.lower() for key in CONDITIONS)
