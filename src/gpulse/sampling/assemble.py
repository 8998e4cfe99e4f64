"""Turn the answers of a device into values: checked against the catalog, with derived values and rates."""

from __future__ import annotations

from ..model.catalog import GPU_METRICS, HOST_METRICS, PROCESS_METRICS
from ..model.derive import memory_percent, memory_unattributed
from ..model.metric import Number

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Hashable, Mapping

    from ..model.metric import Metric
    from ..sources.base import DeviceSample, Facts
    from .rates import Rates

_RANGES = {
    id(metrics): {key: (metric.low, metric.high) for key, metric in metrics.items() if isinstance(metric, Number)}
    for metrics in (GPU_METRICS, PROCESS_METRICS, HOST_METRICS)
}
# Rounding in the driver can make a percentage slightly exceed 100; beyond this limit it is not a percentage.
_SLACK = 1.0


def check(facts: Facts, metrics: Mapping[str, Metric], dropped: dict[str, int]) -> None:
    """Drop and count impossible values: drivers sometimes report 808334905 %."""
    ranges = _RANGES[id(metrics)]
    values = facts.values
    for key, value in [*values.items()]:
        if key not in ranges or not isinstance(value, (int, float)):
            continue
        low, high = ranges[key]
        if low <= value <= high:
            continue
        if high == 100 and 100 < value <= 100 + _SLACK:
            values[key] = 100.0
            continue
        del values[key]
        facts.gaps[key] = "failed"
        dropped[key] = dropped.get(key, 0) + 1


def settle_rates(owner: Hashable, facts: Facts, rates: Rates) -> None:
    """Turn counters into rates, or into gaps if there is no previous count; cpu_per_core.N become one list."""
    lists: dict[str, list[float]] = {}
    for key, counter in facts.counters.items():
        rate = rates.rate((owner, key), counter)
        name, dot, _ = key.partition(".")
        if rate is None:
            facts.gaps[name] = "pending"
        elif dot:
            lists.setdefault(name, []).append(round(rate, 1))
        else:
            facts.values[key] = round(rate, 1) if rate < 1e6 else round(rate)
    for name, entries in lists.items():
        if name not in facts.gaps:
            facts.values[name] = tuple(entries)
    facts.counters.clear()


def derive_memory(sample: DeviceSample, listed: bool = True) -> None:
    """Add the percentage of memory in use and, if all processes were `listed`, the memory that none of them accounts for."""
    values, gaps = sample.values, sample.gaps
    unknown = gaps.get("memory_used") or gaps.get("memory_total") or "unsupported"
    if (share := memory_percent(values)) is not None:
        values["memory_percent"] = share
    else:
        gaps["memory_percent"] = unknown
    if not listed:
        return  # without the list, all memory would appear unattributed
    held = [facts.values.get("memory_used") for facts in sample.processes.values()]
    if sample.instances or "processes" in gaps or values.get("memory_unified"):
        gaps["memory_unattributed"] = gaps.get("processes", "unsupported")
    elif (rest := memory_unattributed(values.get("memory_used"), held)) is not None:
        values["memory_unattributed"] = rest
    else:
        gaps["memory_unattributed"] = unknown
