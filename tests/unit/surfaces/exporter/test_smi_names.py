"""nvidia_gpu_exporter's names: every series its dashboards ask for, in its units."""

from __future__ import annotations

import pytest

from gpulse.surfaces.exporter.dcgm import SMI_SERIES, smi_name
from tests.unit.surfaces.exporter.pages import exporter_of, gpu

# What the public dashboards for nvidia_gpu_exporter query.
ASKED = {
    "nvidia_smi_utilization_gpu_ratio", "nvidia_smi_utilization_memory_ratio", "nvidia_smi_temperature_gpu",
    "nvidia_smi_power_draw_watts", "nvidia_smi_enforced_power_limit_watts", "nvidia_smi_power_default_limit_watts",
    "nvidia_smi_power_max_limit_watts", "nvidia_smi_power_min_limit_watts", "nvidia_smi_memory_used_bytes",
    "nvidia_smi_memory_total_bytes", "nvidia_smi_memory_free_bytes", "nvidia_smi_fan_speed_ratio", "nvidia_smi_pstate",
    "nvidia_smi_clocks_current_graphics_clock_hz", "nvidia_smi_clocks_current_memory_clock_hz",
    "nvidia_smi_clocks_current_sm_clock_hz", "nvidia_smi_clocks_current_video_clock_hz",
    "nvidia_smi_clocks_max_graphics_clock_hz", "nvidia_smi_clocks_max_memory_clock_hz",
    "nvidia_smi_clocks_max_sm_clock_hz", "nvidia_smi_encoder_stats_average_fps",
    "nvidia_smi_encoder_stats_session_count", "nvidia_smi_remapped_rows_uncorrectable", "nvidia_smi_display_active",
}  # fmt: skip


def test_every_series_that_dashboards_ask_for_has_its_name() -> None:
    assert {smi_name(metric)[0] for metric in SMI_SERIES} >= ASKED


@pytest.mark.parametrize(
    ("key", "told", "line"),
    [
        ("utilization", 57, 'nvidia_smi_utilization_gpu_ratio{uuid="1"} 0.57'),
        ("memory_used", 3 << 20, 'nvidia_smi_memory_used_bytes{uuid="1"} 3145728'),
        ("clock_sm", 1980, 'nvidia_smi_clocks_current_sm_clock_hz{uuid="1"} 1980000000'),
        ("power_draw", 690.5, 'nvidia_smi_power_draw_watts{uuid="1"} 690.5'),
        ("persistence_mode", True, 'nvidia_smi_persistence_mode{uuid="1"} 1'),
        ("compute_mode", "exclusive_process", 'nvidia_smi_compute_mode{uuid="1"} 3'),
        ("throttle_reasons", ("sw_power_cap",), 'nvidia_smi_clocks_throttle_reasons_sw_power_cap{uuid="1"} 1'),
        ("throttle_reasons", ("sw_power_cap",), 'nvidia_smi_clocks_event_reasons_active{uuid="1"} 4'),
    ],
)
def test_units_are_those_of_nvidia_gpu_exporter(key: str, told: object, line: str) -> None:
    exporter = exporter_of(gpu(**{key: told}))  # type: ignore[arg-type]  # each of a type the catalog has
    assert line in exporter.text(smi=True).decode().splitlines()
    assert b"nvidia_smi" not in exporter.text()
