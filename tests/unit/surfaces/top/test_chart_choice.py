"""Why a metric has no values, and what is drawn in its place."""

from __future__ import annotations

from typing import Any

import pytest

from gpulse.model.catalog import Gpu
from gpulse.present.cells import is_absent, why_absent
from gpulse.surfaces.top.panels.charts import chosen, metric_style
from tests.unit.surfaces.top.screens import screen

_NO_GPM: dict[str, Any] = {"sm_active": "unsupported", "tensor_active": "unsupported"}


def _gpu(architecture: str = "Ampere", gaps: dict[str, Any] | None = None, **more: Any) -> Gpu:
    instances = more.pop("instances", ())
    values: dict[str, Any] = {
        "index": 0,
        "vendor": "nvidia",
        "architecture": architecture,
        "power_draw": 90.0,
        "temperature": 40.0,
    }
    return Gpu({**values, **more}, gaps or _NO_GPM, instances=instances)


@pytest.mark.parametrize(
    ("gpus", "reason"),
    [
        ([_gpu()], "needs Hopper or newer"),
        ([_gpu("Hopper")], "not supported by this GPU"),
        ([_gpu("Hopper"), _gpu("Hopper")], "not supported by these GPUs"),
        ([_gpu("Hopper", mig_mode=True)], "not available with MIG"),
        ([_gpu("Hopper", instances=(Gpu({"index": 0, "sm_active": 5.0}),))], "measured per MIG instance"),
        ([_gpu(vendor="amd")], "not supported by this GPU"),
    ],
)
def test_the_reason(gpus: list[Gpu], reason: str) -> None:
    assert is_absent("sm_active", gpus)
    assert why_absent("sm_active", gpus) == reason


def test_a_gpu_that_does_not_respond_or_a_value_on_the_way_is_no_evidence() -> None:
    lost = Gpu({"index": 1}, {"sm_active": "unsupported"}, state="lost")
    assert not is_absent("sm_active", [lost])
    assert not is_absent("sm_active", [_gpu(), Gpu({"index": 1}, {"sm_active": "pending"})])
    assert not is_absent("sm_active", [_gpu(), Gpu({"index": 1, "sm_active": 0.0})])
    assert not is_absent("sm_active", [])


def test_an_absent_chart_is_replaced_by_one_with_data_and_says_why() -> None:
    state = screen(120, 40)
    state.settings.charts = ["utilization", "sm_active", "memory_percent"]
    gpu = _gpu(gaps={**_NO_GPM, "utilization": "unsupported"}, memory_percent=3.0)
    choices = chosen(state, (gpu,))
    assert [choice.metric.key for choice in choices] == ["power_draw", "temperature", "memory_percent"]
    assert choices[1].note == "SM active: needs Hopper or newer"
    assert choices[2].note == ""


def test_a_maximized_panel_has_every_curve_once() -> None:
    state = screen(120, 40)
    keys = [choice.metric.key for choice in chosen(state, (_gpu(utilization=1.0, clock_sm=900.0),), more=True)]
    assert len(keys) == len(set(keys))
    assert {"power_draw", "temperature", "clock_sm"} <= set(keys)


@pytest.mark.parametrize(
    ("key", "style"),
    [("utilization", "busy"), ("tensor_active", "busy"), ("memory_used", "memory"), ("memory_percent", "memory"),
     ("power_draw", "chart3"), ("temperature", "chart3"), ("nvlink_rx", "chart4")],
)  # fmt: skip
def test_a_metric_has_one_color(key: str, style: str) -> None:
    from gpulse.model.catalog import GPU_METRICS

    assert metric_style(GPU_METRICS[key]) == style
