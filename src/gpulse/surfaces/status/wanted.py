"""What the glance asks for: nothing that it does not show."""

from __future__ import annotations

from ...model.catalog import PROCESS_METRICS
from ...model.select import Wanted

GLANCE = Wanted(
    gpu=(
        *("utilization", "sm_active", "tensor_active", "dram_active"),
        *("memory_used", "memory_total", "memory_percent", "memory_unattributed", "memory_unified"),
        *("temperature", "temperature_limit", "power_draw", "power_limit"),
        *("clock_sm", "throttle_reasons", "ecc_uncorrected"),
    ),
    process=("pid", "name", "user", "memory_used", "type"),
    host=("name", "load", "memory_used", "memory_total"),
)
STAYING = Wanted(gpu=("xid_last",))
PROCESSES = Wanted(process=PROCESS_METRICS)
