"""The flat names of values, and the samples made of them."""

from __future__ import annotations

import math

from hypothesis import given

from gpulse.model.catalog import TRAINING, Gpu, Host, Process
from gpulse.model.snapshot import Snapshot
from gpulse.monitor.ledger import Ledger
from gpulse.monitor.messages import HOST_CONSTANTS, AgentSample
from gpulse.monitor.samples import Samples, Tags
from tests.unit.snapshots import snapshots


def seen(*gpus: Gpu, host: Host | None = None, program: Process | None = None, at: float = 0.0) -> AgentSample:
    return AgentSample(at, Snapshot(at, gpus, host or Host({})), program)


A, B = (
    Gpu({"uuid": f"GPU-{name}", "index": at, "name": "H100", "utilization": at}) for at, name in ((3, "a"), (1, "b"))
)


def test_ordinals_number_the_gpus_not_the_order_of_the_snapshot() -> None:
    assert Tags(["GPU-a", "GPU-b"], None).values(seen(B, A)) == {"gpu1/utilization": 1, "gpu0/utilization": 3}


def test_without_ordinals_the_drivers_index_does() -> None:
    assert Tags(None, None).values(seen(A, B)) == {"gpu3/utilization": 3, "gpu1/utilization": 1}
    assert Tags(None, None).values(seen(Gpu({"utilization": 0}))) == {"gpu0/utilization": 0}


def test_a_missing_value_is_left_out_and_zero_is_not() -> None:
    gpu = Gpu({"index": 0, "power_draw": 0.0, "temperature": 0}, {"utilization": "timeout"}, state="timeout")
    assert Tags(None, None).values(seen(gpu)) == {"gpu0/power_draw": 0.0, "gpu0/temperature": 0}


def test_constants_and_texts_make_no_curve() -> None:
    gpu = Gpu({"index": 0, "memory_total": 5, "memory_used": 3, "name": "H100", "throttle_reasons": ("x",)})
    host = Host({"memory_total": 10, "memory_used": 4, "name": "box"})
    assert Tags(None, None).values(seen(gpu, host=host)) == {"gpu0/memory_used": 3, "host/memory_used": 4}


def test_named_metrics_are_all_that_is_logged_of_gpus() -> None:
    gpu = Gpu({"index": 0, "memory_total": 5, "utilization": 3})
    host = Host({"cpu_percent": 1.0})
    assert Tags(None, ["memory_total"]).values(seen(gpu, host=host)) == {
        "gpu0/memory_total": 5,
        "host/cpu_percent": 1.0,
    }


def test_the_program_has_its_own_group_without_what_says_nothing() -> None:
    program = Process({"pid": 7, "running_time": 5.0, "cpu_percent": 99.0, "tree_cpu_percent": 150.0, "children": 0})
    assert Tags(None, None).values(seen(program=program)) == {
        "process/cpu_percent": 99.0,
        "process/tree_cpu_percent": 150.0,
        "process/children": 0,
    }


def test_a_text_names_the_gpu_and_the_unit() -> None:
    tags = Tags(["GPU-a"], None)
    tags.values(seen(Gpu({"uuid": "GPU-a", "name": "NVIDIA H100", "power_draw": 5.0})))
    assert "GPU-a" in tags.texts["gpu0/power_draw"]
    assert "NVIDIA H100" in tags.texts["gpu0/power_draw"]
    assert "watts" in tags.texts["gpu0/power_draw"]
    assert "train/steps_per_second" in tags.texts


@given(snapshot=snapshots())
def test_every_value_of_any_snapshot_is_a_number_with_a_text(snapshot: Snapshot) -> None:
    tags = Tags(None, None)
    for tag, value in tags.values(AgentSample(0.0, snapshot, None)).items():
        group, key = tag.split("/")
        assert isinstance(value, (int, float))
        assert key in TRAINING if group.startswith("gpu") else key not in HOST_CONSTANTS
        assert tags.texts[tag]


# --- samples


def test_samples_come_at_their_pace_and_time_grows() -> None:
    samples = Samples(Ledger(lambda: None), 0.9, None)
    made = [samples.due(seen(A, at=at)) for at in (1e6, 1e6 + 0.1, 1e6 + 0.8, 1e6 + 1.0, 1e6 + 1.1, 1e6 + 2.0)]
    assert [sample is not None for sample in made] == [True, False, False, True, False, True]
    elapsed = [sample.elapsed for sample in made if sample]
    assert elapsed == sorted(set(elapsed))


def test_a_sample_has_what_the_program_said_since_the_one_before() -> None:
    ledger = Ledger(lambda: None)
    samples = Samples(ledger, 0.9, None)
    first = samples.due(seen(at=ledger.started + 1))
    assert first is not None
    assert (first.step, first.phase, first.marks, dict(first.values)) == (None, "", (), {})
    ledger.step(4, 8)
    ledger.marks.add("epoch", 3)
    ledger.marks.add("loss", math.nan)
    ledger.marks.add("note", "saved")
    ledger.enter("train")
    second = samples.due(seen(at=ledger.started + 3))
    assert second is not None
    assert (second.step, second.phase) == (4, "train")
    assert [mark.name for mark in second.marks] == ["epoch", "loss", "note"]
    assert second.values == {"train/steps_per_second": 2.0, "train/items_per_second": 4.0, "mark/epoch": 3}
    third = samples.due(seen(at=ledger.started + 4))
    assert third is not None
    assert third.marks == ()
    assert (third.step, third.values["train/steps_per_second"]) == (4, 0.0)


def test_a_greeting_gives_the_ordinals() -> None:
    samples = Samples(Ledger(lambda: None), 0.0, None)
    samples.greet(["GPU-b", "GPU-a"])
    sample = samples.due(seen(A, B))
    assert sample is not None
    assert sample.values == {"gpu1/utilization": 3, "gpu0/utilization": 1}
