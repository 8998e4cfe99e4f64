"""What is wrong now is one list: each condition of a GPU once, the worst and costliest first."""

from __future__ import annotations

from typing import Any

from gpulse.analysis.alerts import Transition
from gpulse.analysis.concerns import concerns
from gpulse.analysis.diagnosis.judge import diagnose
from gpulse.model.event import Event
from gpulse.model.verdict import Budget, Diagnosis, Holder, Verdict
from tests.unit.analysis.alerts.machines import GIB, START, book, gpu, process, watch
from tests.unit.analysis.diagnosis.machines import samples

END = START + 60


def verdict(key: str, index: int = 0, **fields: Any) -> Verdict:
    known: dict[str, Any] = {"uuid": f"GPU-{index}", "start": START, "end": END} | fields
    return Verdict(key, index=index, **known)


def judged(*verdicts: Verdict) -> Diagnosis:
    return Diagnosis(verdicts, START, END, 60)


def fired(kind: str, index: int = 0, after: float = 10.0, **fields: Any) -> Transition:
    place: dict[str, Any] = {"uuids": (f"GPU-{index}",)} | fields
    return Transition(Event(START + after, kind, (str(index),), rule=kind, alert="fire", **place))


def test_only_what_is_bad_is_listed() -> None:
    calm = [verdict(key, at) for at, key in enumerate(("healthy", "idle", "busy", "underused", "unknown"))]
    assert concerns(judged(*calm), [fired("gpu-free")]) == ()


def test_of_a_gpu_that_does_not_respond_only_that_and_its_faults_are_wrong_now() -> None:
    before = [
        verdict("small_batch"),
        verdict("thermal_throttled"),
        verdict("memory_leak"),
        verdict("xid", values={"xid": 79}),
    ]
    for key in ("lost", "driver_unresponsive"):
        assert {one.key for one in concerns(judged(verdict(key, also=before)))} == {key, "xid"}
        back = verdict(key, also=before, values={"end_time": END - 20})
        assert {one.key for one in concerns(judged(back))} == {"small_batch", "thermal_throttled", "memory_leak", "xid"}


def test_a_verdict_and_the_alert_of_one_condition_are_one_concern_since_the_earlier() -> None:
    hot = ("hw_thermal_slowdown",)
    (found,) = concerns(
        judged(verdict("thermal_throttled", since=START + 30)), [fired("throttled", after=-100, reasons=hot)]
    )
    assert (found.key, found.severity, found.gpus) == ("thermal_throttled", "critical", ("0",))
    assert found.since == START - 100
    assert found.verdict is not None
    assert found.event is not None


def test_the_same_condition_of_another_gpu_process_or_code_is_a_concern_of_its_own() -> None:
    ada = process(1, user="ada")
    leak = verdict("memory_leak", processes=[Holder(2, "python", "bob")])
    found = concerns(
        judged(leak, verdict("xid", 1, values={"xid": 31})),
        [
            fired("memory-growth", process=ada),
            fired("throttled", 0, reasons=("hw_thermal_slowdown",)),
            fired("throttled", 1, reasons=("hw_thermal_slowdown",)),
            fired("xid", 1, value=31),
            fired("xid", 1, value=79),
        ],
    )
    assert sorted((one.key, one.gpus[0], one.pid) for one in found if one.key != "xid") == [
        ("memory_leak", "0", 1),
        ("memory_leak", "0", 2),
        ("thermal_throttled", "0", None),
        ("thermal_throttled", "1", None),
    ]
    assert sum(one.key == "xid" for one in found) == 2


def test_rules_of_the_users_own_on_one_gpu_are_told_apart() -> None:
    rules = book(
        rule=[
            {"name": "busy", "metric": "utilization", "above": 95},
            {"name": "cold", "metric": "temperature", "below": 20},
        ]
    )
    watch(rules, lambda at: gpu(0, utilization=99, temperature=10), 120)
    found = concerns(Diagnosis(end=START + 120), rules.active)
    assert [one.key for one in found] == ["threshold", "threshold"]


def test_an_alert_whose_condition_no_longer_holds_is_not_wrong_now() -> None:
    rules = book("memory", memory={"clear_for": "10m"})
    watch(rules, lambda at: gpu(5, memory_used=99 * GIB, memory_percent=99.0), 60)
    assert [one.key for one in concerns(Diagnosis(end=END), rules.active)] == ["memory_pressure"]
    watch(rules, lambda at: gpu(5, memory_used=41 * GIB, memory_percent=41.0), 60, start=60)
    assert rules.active
    assert concerns(Diagnosis(end=END + 60), rules.active) == ()


def test_gpus_of_one_process_with_one_condition_are_one_concern() -> None:
    job = [Holder(7, "python", "ada")]
    held = [verdict("idle_allocation", at, processes=job) for at in (0, 1, 3)]
    other = verdict("idle_allocation", 4, processes=[Holder(8, "python", "bob")])
    first, second = concerns(judged(*held, other))
    assert (first.gpus, first.uuids, first.owner, first.pid) == (
        ("0", "1", "3"),
        ("GPU-0", "GPU-1", "GPU-3"),
        "ada",
        7,
    )
    assert first.lost == 180
    assert (second.gpus, second.owner) == (("4",), "bob")


def test_the_worst_and_then_the_costliest_come_first() -> None:
    def waits(share: float) -> Budget:
        return Budget(60, {"workers": share, "copy": 0.1, "compute": 0.9 - share})

    found = concerns(
        judged(
            verdict("input_bound_cpu", 0, budget=waits(0.2)),
            verdict("input_bound_cpu", 1, budget=waits(0.7)),
            verdict("lost", 2, values={"start_time": END - 2}),
            verdict("fp32_no_tensor", 10, budget=waits(0.9)),
            verdict("fp32_no_tensor", 9, budget=waits(0.9)),
        )
    )
    assert [(one.severity, one.gpus[0]) for one in found] == [
        ("critical", "2"), ("warn", "1"), ("warn", "0"), ("warn", "9"), ("warn", "10"),
    ]  # fmt: skip
    assert [round(one.lost) for one in found] == [2, 42, 12, 0, 0]


def test_what_else_was_seen_is_listed_with_its_own_cost() -> None:
    budget = Budget(60, {"throttled": 0.5, "workers": 0.25, "compute": 0.25})
    also = [verdict("input_bound_cpu"), verdict("healthy")]
    found = concerns(judged(verdict("thermal_throttled", budget=budget, also=also)))
    assert [(one.key, one.lost) for one in found] == [("thermal_throttled", 30.0), ("input_bound_cpu", 15.0)]


def test_a_leak_ends_when_the_memory_is_full_by_the_faster_estimate() -> None:
    (found,) = concerns(judged(verdict("memory_leak", values={"eta": (25.0, 40.0)})), now=END + 5)
    assert found.expected == END + 25
    (found,) = concerns(Diagnosis(end=END), [fired("memory-growth", values={"full_in_low": 90.0})])
    assert found.expected == START + 10 + 90


def test_what_held_from_the_first_sample_on_began_at_an_unknown_time() -> None:
    found = concerns(
        judged(
            verdict("thermal_throttled", 0),
            verdict("lost", 1, values={"start_time": START + 20}),
            verdict("input_bound_cpu", 2, since=START - 500),
        )
    )
    assert {one.gpus[0]: one.since for one in found} == {"0": None, "1": START + 20, "2": START - 500}


def test_a_gpu_that_responds_again_is_not_wrong_now() -> None:
    def lost(second: float) -> Any:
        return "lost" if 5 <= second < 15 else "ok"

    assert [one.key for one in concerns(diagnose(samples({"state": lost}, seconds=10)))] == ["lost"]
    assert [one.key for one in concerns(diagnose(samples({"state": lost}, seconds=30)))] == []


def test_memory_held_idle_counts_from_when_the_gpu_was_last_used() -> None:
    (found,) = concerns(Diagnosis(end=END), [fired("idle-allocation", process=process(1), values={"idle": 600.0})])
    assert (found.since, found.lost, found.owner) == (START + 10 - 600, 650.0, "ada")


def test_a_mig_instance_has_one_name_in_verdicts_and_alerts() -> None:
    part = verdict("memory_leak", 0, uuid="MIG-1", instance="1")
    alert = fired("memory-nearly-full", 0, uuids=("MIG-1",), note="GPU 0 MIG 1g.10gb")
    found = concerns(judged(part), [alert])
    assert {one.key: one.gpus for one in found} == {"memory_leak": ("0:1",), "memory_pressure": ("0:1",)}


def test_the_machine_has_concerns_without_a_gpu() -> None:
    alert = Transition(Event(START, "port-flaps", value=3, note="mlx5_0", rule="port_flaps", alert="fire"))
    (found,) = concerns(Diagnosis(end=END), [alert])
    assert (found.gpus, found.uuids, found.key) == ((), (), "port_flaps")


def test_the_alert_of_a_server_and_the_verdicts_of_its_gpus_are_one_concern() -> None:
    stuck = [verdict("serving_stuck", at, processes=[Holder(100 + at)]) for at in (6, 7)]
    event = Event(START, "serving-stuck", ("6", "7"), uuids=("GPU-6", "GPU-7"), rule="serving_stuck", alert="fire")
    (found,) = concerns(judged(*stuck), [Transition(event)])
    assert (found.gpus, found.alerts, found.key) == (("6", "7"), (Transition(event).id,), "serving_stuck")
    assert len(concerns(judged(*stuck), [Transition(event.replace(gpus=("7",), uuids=("GPU-7",)))])) == 2
