"""A metric is its catalog entry on the class and its value on an instance, and a reading cannot be changed."""

from __future__ import annotations

import pytest

from gpulse.model.catalog import GPU_METRICS, Gpu, Host, Process
from gpulse.model.metric import Metric


def test_on_the_class_it_is_the_entry_and_on_an_instance_the_value() -> None:
    assert isinstance(Gpu.utilization, Metric)
    assert Gpu.utilization is GPU_METRICS["utilization"]
    assert Gpu({"utilization": 97}).utilization == 97


def test_a_value_that_is_not_there_is_none_with_its_reason() -> None:
    gpu = Gpu({"utilization": 0}, {"fan_speed": "unsupported"})
    assert (gpu.fan_speed, gpu.gap("fan_speed")) == (None, "unsupported")
    assert (gpu.utilization, gpu.gap("utilization")) == (0, None)
    assert (gpu.energy, gpu.gap("energy")) == (None, "skipped")


@pytest.mark.parametrize("reading", [Gpu({"name": "x"}), Process({"name": "x"}), Host({"name": "x"})])
def test_a_reading_cannot_be_changed(reading: Gpu | Process | Host) -> None:
    with pytest.raises(AttributeError, match="is immutable"):
        setattr(reading, "name", "y")  # noqa: B010  # the type checker would not allow it either
    with pytest.raises(AttributeError, match="is immutable"):
        setattr(reading, "gaps", {})  # noqa: B010
    with pytest.raises(AttributeError, match="is immutable"):
        del reading.gaps
    assert reading.name == "x"


def test_replace_returns_a_changed_copy_and_leaves_the_first_alone() -> None:
    process = Process({"pid": 1})
    first = Gpu({"index": 0, "power_draw": 5.0}, {"energy": "failed"}, state="lost", since=3.0, processes=(process,))
    second = first.replace(power_draw=None, utilization=0)
    assert (first.power_draw, second.power_draw, second.utilization, second.index) == (5.0, None, 0, 0)
    assert (second.state, second.since, second.processes, second.gap("energy")) == ("lost", 3.0, (process,), "failed")


def test_readings_are_equal_when_everything_about_them_is() -> None:
    gpu = Gpu({"index": 0}, {"energy": "failed"})
    assert gpu == Gpu({"index": 0}, {"energy": "failed"})
    assert hash(gpu) == hash(Gpu({"index": 0}, {"energy": "failed"}))
    others = [
        Gpu({"index": 1}, {"energy": "failed"}),
        Gpu({"index": 0}, {"energy": "denied"}),
        Gpu({"index": 0}, {"energy": "failed"}, state="lost"),
        Gpu({"index": 0}, {"energy": "failed"}, since=1.0),
        Gpu({"index": 0}, {"energy": "failed"}, processes=(Process({}),)),
        Gpu({"index": 0}, {"energy": "failed"}, instances=(Gpu({}),)),
        Host({}),
    ]
    assert all(gpu != other for other in others)


def test_metrics_are_walked_in_order_of_declaration() -> None:
    assert [metric.key for metric in Process.metrics()][:4] == ["pid", "name", "command", "user"]
