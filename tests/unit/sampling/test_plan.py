"""The plan asks for what is wanted, at its cost, and for what derived values need."""

from __future__ import annotations

from gpulse.model.catalog import GPU_METRICS
from gpulse.model.select import Wanted
from gpulse.sampling.plan import Plan


def test_keys_are_asked_at_the_pace_of_their_cost() -> None:
    plan = Plan(Wanted(gpu=("utilization", "energy", "power_default_limit")))
    assert [set(keys) for keys in (plan.fast, plan.slow, plan.static)] == [
        {"utilization"},
        {"energy"},
        {"power_default_limit"},
    ]


def test_identity_is_never_asked() -> None:
    plan = Plan(Wanted(gpu=("uuid", "name", "index")))
    assert not plan.fast | plan.slow | plan.static


def test_a_derived_value_brings_what_it_is_made_of_and_is_not_asked_itself() -> None:
    plan = Plan(Wanted(gpu=("memory_percent",)))
    assert plan.fast == {"memory_used", "memory_total", "memory_reserved"}
    assert plan.asked == {"memory_percent"}


def test_unattributed_memory_needs_the_process_list_but_not_their_names() -> None:
    plan = Plan(Wanted(gpu=("memory_unattributed",)))
    assert plan.lists
    assert not plan.describes
    assert plan.process(slow=True) == frozenset()


def test_without_processes_wanted_none_are_listed() -> None:
    plan = Plan(Wanted(gpu=("utilization",)))
    assert not plan.lists


def test_slow_process_values_are_due_only_when_slow_ones_are() -> None:
    plan = Plan(Wanted(process=("pid", "name", "sm_utilization")))
    assert plan.process(slow=False) == {"pid", "name"}
    assert plan.process(slow=True) == {"pid", "name", "sm_utilization"}


def test_everything_is_covered_once() -> None:
    plan = Plan(Wanted(gpu=GPU_METRICS))
    assert not plan.fast & plan.slow
    assert not plan.fast & plan.static
    asked = plan.fast.union(plan.slow, plan.static, *plan.traced.values())
    identity = {key for key, metric in GPU_METRICS.items() if metric.kind == "identity"}
    assert asked | identity | {
        "memory_percent",
        "memory_unattributed",
        "job",
        "job_user",
        "held_for",
        "held_until",
    } == set(GPU_METRICS)


def test_traces_have_a_pace_of_their_own_and_do_not_last() -> None:
    plan = Plan(Wanted(gpu=("power_draw", "power_trace", "utilization_trace", "energy")))
    assert plan.traced.keys() == {"power_trace", "utilization_trace"}
    assert [set(keys) for keys in (plan.fast, plan.slow, plan.lasting)] == [{"power_draw"}, {"energy"}, {"energy"}]
