"""One value, one text, one severity."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gpulse.model.catalog import GPU_METRICS, Gpu, Host, Process
from gpulse.model.metric import Metric
from gpulse.present.cells import severity, throttle_text, value_text

if TYPE_CHECKING:
    from gpulse.model.metric import Value


@pytest.mark.parametrize(
    ("metric", "value", "text"),
    [
        (Gpu.utilization, 97.4, "97 %"),
        (Gpu.utilization, 0, "0 %"),
        (Gpu.utilization, None, "-"),
        (Gpu.memory_used, 76_432_801_792, "71.2 GiB"),
        (Gpu.memory_used, 0, "0 B"),
        (Gpu.pcie_rx, 2.9e9, "2.7 GiB/s"),
        (Gpu.power_draw, 691.2, "691 W"),
        (Gpu.temperature, 0, "0 °C"),
        (Gpu.clock_sm, 1980, "1980 MHz"),
        (Gpu.energy, 999, "999 J"),
        (Gpu.energy, 5107.3, "5107 J"),
        (Gpu.energy, 7.5e9, "2083 kWh"),
        (Gpu.pstate, 0, "P0"),
        (Gpu.ecc_corrected, 0, "0"),
        (Gpu.mig_mode, True, "yes"),
        (Gpu.mig_mode, False, "no"),
        (Gpu.throttle_reasons, (), "none"),
        (Gpu.throttle_reasons, ("a", "b\x1b"), "a b\\x1b"),
        (Gpu.name, "evil\x1b[2J", "evil\\x1b[2J"),
        (Host.load, (0.5, 12.0), "0.5 12"),
        (Process.running_time, 725.0, "12m05s"),
    ],
)
def test_values_are_written_short_with_their_unit(metric: Metric, value: Value | None, text: str) -> None:
    assert value_text(metric, value) == text


@given(key=st.sampled_from(sorted(GPU_METRICS)), value=st.integers(0, 2**64) | st.floats(0, 1e18) | st.text())
def test_any_value_has_a_text_that_is_safe(key: str, value: int | float | str) -> None:
    assert value_text(GPU_METRICS[key], value).isprintable()


@pytest.mark.parametrize(
    ("metric", "gpu", "level"),
    [
        (Gpu.memory_percent, Gpu({"memory_percent": 89.9}), "calm"),
        (Gpu.memory_percent, Gpu({"memory_percent": 90}), "warn"),
        (Gpu.memory_percent, Gpu({"memory_percent": 97}), "critical"),
        (Gpu.memory_percent, Gpu({}), "calm"),
        (Gpu.ecc_uncorrected, Gpu({"ecc_uncorrected": 0}), "calm"),
        (Gpu.ecc_uncorrected, Gpu({"ecc_uncorrected": 1}), "critical"),
        (Gpu.temperature, Gpu({"temperature": 80}), "calm"),
        (Gpu.temperature, Gpu({"temperature": 82}), "warn"),
        (Gpu.temperature, Gpu({"temperature": 89}), "critical"),
        (Gpu.temperature, Gpu({"temperature": 85, "temperature_limit": 105}), "calm"),
        (Gpu.temperature, Gpu({"temperature": 85, "temperature_limit": 86}), "critical"),
        (Gpu.temperature, Gpu({"temperature_limit": 86}), "calm"),
        (Gpu.temperature, Gpu({"temperature": 0}), "calm"),
        (Gpu.throttle_reasons, Gpu({"throttle_reasons": ("sw_power_cap",)}), "calm"),
        (Gpu.throttle_reasons, Gpu({"throttle_reasons": ("sw_power_cap", "hw_slowdown")}), "critical"),
        (Gpu.throttle_reasons, Gpu({"throttle_reasons": ()}), "calm"),
        (Gpu.utilization, Gpu({"utilization": 100}), "calm"),
    ],
)
def test_severity_follows_the_catalog_and_the_gpus_own_limit(metric: Metric, gpu: Gpu, level: str) -> None:
    assert severity(metric, gpu) == level


@pytest.mark.parametrize(
    ("reasons", "text"),
    [
        (None, ""),
        ((), ""),
        (("gpu_idle",), ""),
        (("sw_power_cap",), "power cap"),
        (("gpu_idle", "sw_power_cap"), "power cap"),
        (("hw_slowdown",), "hardware slowdown"),
        (("hw_slowdown", "hw_thermal_slowdown"), "too hot"),
        (("sw_thermal_slowdown", "hw_thermal_slowdown"), "too hot"),
        (("hw_slowdown", "hw_power_brake_slowdown"), "power brake"),
        (("sw_power_cap", "sync_boost"), "power cap, sync boost"),
        (("something_new\x1b",), "something_new\\x1b"),
    ],
)
def test_throttling_is_said_in_words_and_being_idle_is_none(reasons: tuple[str, ...] | None, text: str) -> None:
    assert throttle_text(Gpu({} if reasons is None else {"throttle_reasons": reasons})) == text
