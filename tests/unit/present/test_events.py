"""Every kind of event has one sentence, and it is exactly this one."""

from __future__ import annotations

import time
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gpulse.model.catalog import Process
from gpulse.model.condition import KINDS
from gpulse.model.event import Event
from gpulse.present.cells import moment_text, xid_remedy, xid_text
from gpulse.present.events import event_parts, event_style, event_text, lasted_text, process_parts
from gpulse.present.text import Untrusted
from gpulse.present.words import gpus_text

GIB = 1 << 30
ADA = Process({"pid": 42, "name": "python", "user": "ada", "memory_used": 3 * GIB, "running_time": 7500.0})

CASES: list[tuple[str, dict[str, Any], str]] = [
    ("lost", {}, "GPU 3 is lost (fell off the bus)"),
    ("lost", {"value": 79.0}, "GPU 3 is lost (fell off the bus, XID 79)"),
    ("timeout", {}, "GPU 3 is not responding"),
    ("xid", {"value": 31.0}, "GPU 3 reported XID 31 (memory page fault): restart the program; usually a bug in it"),
    ("xid", {"value": 7.0}, "GPU 3 reported XID 7"),
    ("xid", {"value": 7.0, "values": {"count": 4.0}}, "GPU 3 reported XID 7 4 times"),
    ("memory-errors", {"value": 1.0}, "GPU 3: 1 new uncorrected memory error"),
    ("memory-errors", {"value": 2.0}, "GPU 3: 2 new uncorrected memory errors"),
    (
        "out-of-memory",
        {"process": ADA, "value": 5.0 * GIB},
        "ada's python (pid 42) ended on GPU 3, probably out of memory: it held 5.0 GiB",
    ),
    ("out-of-memory", {"process": ADA}, "ada's python (pid 42) ended on GPU 3, probably out of memory"),
    ("throttled", {"reasons": ("hw_slowdown", "hw_thermal_slowdown")}, "GPU 3 throttled: too hot"),
    ("throttled", {"reasons": ("hw_slowdown",)}, "GPU 3 throttled: hardware slowdown"),
    (
        "throttled",
        {"reasons": ("hw_power_brake_slowdown", "sw_thermal_slowdown")},
        "GPU 3 throttled: power brake, too hot",
    ),
    ("hot", {"value": 91.0, "values": {"above": 89.0}}, "GPU 3 is at 91 °C (limit 89 °C)"),
    ("hot", {"value": 101.0, "values": {"above": 100.0}, "note": "memory"}, "GPU 3 memory is at 101 °C (limit 100 °C)"),
    (
        "pcie-degraded",
        {"values": {"pcie_width": 4.0, "pcie_width_max": 16.0}},
        "GPU 3: the link is below its maximum under load: PCIe x4 of x16",
    ),
    (
        "pcie-degraded",
        {"values": {"pcie_gen": 1.0, "pcie_gen_max": 5.0, "pcie_width": 4.0, "pcie_width_max": 16.0}},
        "GPU 3: the link is below its maximum under load: PCIe Gen 1 x4 of Gen 5 x16",
    ),
    (
        "nvlink-down",
        {"value": 4.0, "values": {"before": 18.0}},
        "GPU 3: 4 of 18 NVLinks are up; check the bridge, the switch and the kernel log",
    ),
    (
        "fabric-not-ready",
        {"values": {"why": "in_progress"}},
        "GPU 3: the NVLink fabric is not ready (in progress); CUDA may not start",
    ),
    ("fabric-not-ready", {}, "GPU 3: the NVLink fabric is not ready; CUDA may not start"),
    (
        "slower-than-peers",
        {"value": 8.0, "values": {"metric": "pcie_width", "peers": 16.0}},
        "GPU 3: PCIe width is 8 (16 on other GPUs of the same model)",
    ),
    ("slower-than-peers", {}, "GPU 3 is slower than the other GPUs of its model"),
    ("memory-nearly-full", {"value": 96.4}, "GPU 3 memory is 96 % full"),
    (
        "memory-nearly-full",
        {"value": 96.0, "process": ADA},
        "GPU 3 memory is 96 % full; ada's python (pid 42) holds 3.0 GiB",
    ),
    (
        "memory-growth",
        {"process": ADA, "value": GIB / 60},
        "ada's python (pid 42) on GPU 3 grows by 1.0 GiB per minute",
    ),
    (
        "memory-growth",
        {"process": ADA, "value": GIB / 60, "values": {"full_in_low": 600.0, "full_in_high": 900.0}},
        "ada's python (pid 42) on GPU 3 grows by 1.0 GiB per minute; memory will be full in 10m00s to 15m00s",
    ),
    (
        "idle-allocation",
        {"process": ADA, "value": 3.0 * GIB, "values": {"idle": 900.0}},
        "ada's python (pid 42) holds 3.0 GiB on GPU 3 but has been idle for 15m00s",
    ),
    (
        "allocation-unused",
        {"note": "slurm:7", "values": {"idle": 900.0, "user": "ada"}},
        "GPU 3 has not been used for 15m00s, although slurm:7 of ada has it",
    ),
    (
        "alert-silenced",
        {"values": {"by": "eve\n", "rule": "hot", "user": "ada", "until": 0.0, "reason": "new fan"}},
        f"eve\\x0a silenced hot of ada on GPU 3 until {moment_text(0.0)}: new fan",
    ),
    ("alert-unsilenced", {"values": {"by": "eve"}}, "eve ended the silence of all alerts on GPU 3"),
    ("alert-acknowledged", {"values": {"by": "eve", "rule": "hot"}}, "eve acknowledged hot on GPU 3"),
    (
        "serving-stuck",
        {"note": "acme/m", "value": 90.0},
        "model server m on GPU 3 is stuck: it has requests and has made no token for 1m30s",
    ),
    ("serving-queue-long", {"note": "acme/m", "value": 60.0}, "model server m on GPU 3 has 60 requests waiting"),
    ("serving-slow", {"note": "m", "value": 12.0}, "model server m on GPU 3 needs 12.0 s to the first token (p95)"),
    ("serving-errors", {"note": "m", "value": 0.5}, "model server m on GPU 3 fails 0.5 requests per second"),
    (
        "stalled",
        {"process": ADA, "values": {"idle": 180.0}},
        "ada's python (pid 42) has not used GPU 3 for 3m00s",
    ),
    (
        "stalled",
        {
            "process": ADA,
            "values": {
                "idle": 180.0,
                "stacks": "42: wait threading.py:9 < step train.py:8",
                "behind": "rank 7 is at AllReduce 60, others at 64",
            },
        },
        "ada's python (pid 42) has not used GPU 3 for 3m00s; rank 7 is at AllReduce 60, others at 64; "
        "42: wait threading.py:9 < step train.py:8",
    ),
    (
        "threshold",
        {"value": 91.0, "values": {"metric": "temperature", "above": 85.0}},
        "GPU 3: Temperature is 91 °C, above 85 °C",
    ),
    (
        "threshold",
        {"value": 4.0, "values": {"metric": "utilization", "below": 5.0}},
        "GPU 3: Utilization is 4 %, below 5 %",
    ),
    (
        "link-errors",
        {"value": 4.0, "values": {"metric": "nvlink_crc_errors"}},
        "GPU 3: 4 new NVLink CRC errors; check slot, riser and bridge",
    ),
    ("removed", {}, "GPU 3 disappeared"),
    ("added", {}, "GPU 3 appeared"),
    ("back", {}, "GPU 3 is responding again"),
    ("asleep", {}, "GPU 3 is asleep"),
    ("gpu-free", {"value": 80.0 * GIB}, "GPU 3 (80.0 GiB) is free"),
    ("instance-removed", {}, "the MIG instance was removed"),
    ("server-ended", {"note": "m"}, "model server m on GPU 3 has ended"),
    ("process-start", {"process": ADA}, "ada's python (pid 42) started on GPU 3"),
    (
        "process-end",
        {"process": ADA, "value": 5.0 * GIB},
        "ada's python (pid 42) ended on GPU 3 after 2h05m, peak memory 5.0 GiB",
    ),
    ("verdict", {"note": "input-bound"}, "GPU 3: input-bound"),
]


def clock(moment: float) -> str:
    return time.strftime("%H:%M:%S", time.localtime(moment))


MACHINE: list[tuple[str, dict[str, Any], str]] = [
    ("gap", {"until": 190.0}, "no samples for 1m30s"),
    ("dropped", {"value": 12.0}, "12 samples were lost while the disk was full"),
    ("dropped", {"note": "too large"}, "a sample could not be kept: too large"),
    ("history-damaged", {"until": 190.0}, f"history damaged from {clock(100.0)} to {clock(190.0)}"),
    (
        "port-flaps",
        {"value": 3.0, "values": {"seconds": 600.0}, "note": "mlx5_0/1"},
        "network port mlx5_0/1 went down 3 times within 10m00s; check cable and switch",
    ),
    ("suspend", {"value": 900.0}, "the machine was suspended for 15m00s"),
    ("clock", {"value": -30.0}, "the system clock was set back by 30s"),
    ("clock", {"value": 30.0}, "the system clock was set forward by 30s"),
    (
        "threshold",
        {"value": 3.0 * GIB, "values": {"metric": "memory_used", "above": 2.0 * GIB}},
        "host: Memory used is 3.0 GiB, above 2.0 GiB",
    ),
    ("boot", {}, "the machine booted"),
    ("start", {}, "recording started"),
    ("stop", {}, "recording stopped"),
]
CLEARED: list[tuple[str, dict[str, Any], str]] = [
    ("lost", {}, "GPU 3 is responding again"),
    ("timeout", {}, "GPU 3 is responding again"),
    ("removed", {}, "GPU 3 is responding again"),
    ("xid", {"value": 31.0}, "GPU 3: no new XID since XID 31"),
    ("memory-errors", {}, "GPU 3 has no new memory errors"),
    ("throttled", {}, "GPU 3 is no longer throttled"),
    ("hot", {"value": 80.0}, "GPU 3 has cooled down to 80 °C"),
    ("pcie-degraded", {}, "GPU 3 PCIe link is at its maximum again"),
    ("nvlink-down", {"values": {"before": 18.0}}, "GPU 3: all 18 NVLinks are up again"),
    ("fabric-not-ready", {}, "GPU 3: the NVLink fabric is ready"),
    ("port-flaps", {"note": "mlx5_0/1"}, "network port mlx5_0/1 has been stable again"),
    ("slower-than-peers", {}, "GPU 3 is as fast as other GPUs of its model again"),
    ("memory-nearly-full", {"value": 80.0}, "GPU 3 memory is down to 80 %"),
    ("memory-growth", {"process": ADA}, "ada's python (pid 42) on GPU 3 no longer grows"),
    ("idle-allocation", {"process": ADA}, "ada's python (pid 42) on GPU 3 is no longer idle"),
    ("allocation-unused", {"note": "slurm:7"}, "GPU 3 is no longer held by slurm:7 without being used"),
    ("stalled", {"process": ADA}, "ada's python (pid 42) uses GPU 3 again"),
    ("serving-stuck", {"note": "acme/m"}, "model server m on GPU 3 makes tokens again"),
    ("serving-queue-long", {"note": "m", "value": 3.0}, "model server m on GPU 3 has only 3 requests waiting"),
    ("serving-slow", {"note": "m"}, "model server m on GPU 3 answers in time again"),
    ("serving-errors", {"note": "m"}, "model server m on GPU 3 no longer fails requests"),
    ("server-ended", {"note": "m"}, "model server m on GPU 3 has ended"),
    ("threshold", {"value": 80.0, "values": {"metric": "temperature", "above": 85.0}}, "GPU 3: Temperature is 80 °C"),
    ("link-errors", {}, "GPU 3 has no new link errors"),
]


@pytest.mark.parametrize(("kind", "fields", "sentence"), CASES)
def test_the_sentence_of_a_gpu(kind: str, fields: dict[str, Any], sentence: str) -> None:
    assert event_text(Event(100.0, kind, ("3",), **fields)) == sentence


@pytest.mark.parametrize(("kind", "fields", "sentence"), MACHINE)
def test_the_sentence_of_a_machine(kind: str, fields: dict[str, Any], sentence: str) -> None:
    assert event_text(Event(100.0, kind, **fields)) == sentence


@pytest.mark.parametrize(("kind", "fields", "sentence"), CLEARED)
def test_the_sentence_of_an_alert_that_clears(kind: str, fields: dict[str, Any], sentence: str) -> None:
    event = Event(100.0, kind, ("3",), rule="any", alert="clear", severity="critical", **fields)
    assert event_text(event) == sentence
    assert event_style(event) == "good"


def test_no_kind_is_without_a_sentence() -> None:
    assert {kind for kind, _, _ in CASES} | {kind for kind, _, _ in MACHINE} == set(KINDS)


@pytest.mark.parametrize(
    ("kind", "style"),
    [
        ("lost", "critical"),
        ("xid", "critical"),
        ("throttled", "critical"),
        ("back", "good"),
        ("process-start", "label"),
    ],
)
def test_how_bad_it_is(kind: str, style: str) -> None:
    assert event_style(Event(0.0, kind)) == style


def test_how_long_it_lasted() -> None:
    assert lasted_text(Event(100.0, "lost"), 160.0) == "1m00s so far"
    assert lasted_text(Event(100.0, "throttled", until=130.0), 160.0) == "30s"
    assert lasted_text(Event(100.0, "throttled", until=100.0), 160.0) == "1s"
    assert lasted_text(Event(100.0, "xid"), 160.0) == ""
    assert lasted_text(Event(100.0, "lost", rule="lost", alert="fire"), 160.0) == ""


def test_gpus_that_follow_each_other_are_a_range() -> None:
    assert gpus_text(["0"]) == "GPU 0"
    assert gpus_text(["0", "1", "2", "3", "6", "7"]) == "GPUs 0-3, 6, 7"
    assert gpus_text([]) == "GPU ?"


def test_a_process_nobody_knows() -> None:
    assert process_parts(None) == ("a process",)
    assert process_parts(Process({"name": "a"})) == ("a",)


def test_a_code_has_a_meaning_and_a_remedy_or_neither() -> None:
    assert (xid_text(79), xid_remedy(95)) == ("XID 79 (GPU has fallen off the bus)", "reset the GPU")
    assert (xid_text(1), xid_remedy(1)) == ("XID 1", "")


@given(
    st.sampled_from(KINDS),
    st.text(max_size=20),
    st.text(max_size=20),
    st.floats(allow_nan=False, allow_infinity=False) | st.none(),
)
def test_whatever_processes_call_themselves_a_sentence_is_safe_and_one_line(
    kind: str, name: str, user: str, value: float | None
) -> None:
    process = Process({"pid": 1, "name": name, "user": user})
    values: dict[str, float | str] = {"metric": name, "above": 1.0, "full_in_low": 1.0, "full_in_high": 2.0}
    event = Event(1.0, kind, ("0",), process=process, reasons=(name,), value=value, values=values, note=user)
    assert event_text(event).isprintable()
    trusted = "".join(part for part in event_parts(event) if not isinstance(part, Untrusted))
    assert not (name.isprintable() and len(name) > 8 and name in trusted)
