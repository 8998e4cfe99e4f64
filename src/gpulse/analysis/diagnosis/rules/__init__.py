"""The rules, one verdict per file, in order of importance within each group; a new rule is a file here and a line in this table."""

from __future__ import annotations

# isort: off
from . import busy, clocks_locked, communication_bound, contention, driver_unresponsive, fp32_no_tensor, hang, healthy
from . import host_bound, hw_slowdown, idle, idle_allocation, input_bound_cpu, input_bound_io, launch_bound, loading
from . import lost, memory_bandwidth, memory_errors, memory_latency, memory_leak, memory_pressure, not_used
from . import orphaned_memory, out_of_memory, pcie_degraded, power_throttled, serving_cache_full, serving_decode
from . import serving_idle, serving_preemptions, serving_prefill, serving_queue, serving_stuck, small_batch, stalls
from . import starting, straggler, thermal_throttled, transfer_bound, underused, unknown, waiting, xid
# isort: on

TYPE_CHECKING = False
if TYPE_CHECKING:
    from ..rule import DiagnosisRule

RULES: tuple[DiagnosisRule, ...] = (
    lost.RULE, driver_unresponsive.RULE, memory_errors.RULE, xid.RULE, out_of_memory.RULE, hang.RULE, serving_stuck.RULE,
    memory_leak.RULE,
    not_used.RULE, contention.RULE, idle_allocation.RULE, orphaned_memory.RULE,
    hw_slowdown.RULE, thermal_throttled.RULE, power_throttled.RULE, clocks_locked.RULE, pcie_degraded.RULE, straggler.RULE,
    serving_cache_full.RULE, serving_preemptions.RULE, serving_queue.RULE,
    communication_bound.RULE, stalls.RULE, transfer_bound.RULE, input_bound_cpu.RULE, input_bound_io.RULE,
    launch_bound.RULE, host_bound.RULE, underused.RULE, waiting.RULE,
    serving_prefill.RULE, serving_decode.RULE,
    memory_bandwidth.RULE, fp32_no_tensor.RULE, healthy.RULE, memory_latency.RULE, small_batch.RULE, busy.RULE,
    memory_pressure.RULE, serving_idle.RULE, loading.RULE, starting.RULE, idle.RULE, unknown.RULE,
)  # fmt: skip
BY_KEY = {rule.key: rule for rule in RULES}
ORDER = {rule.key: place for place, rule in enumerate(RULES)}
