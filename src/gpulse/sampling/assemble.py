"""Turn the answers of a device into values: checked against the catalog, with derived values and rates."""

from __future__ import annotations

from ..model.catalog import GPU_METRICS, HOST_METRICS, PROCESS_METRICS, memory_percent, memory_unattributed
from ..model.metric import Number

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Hashable, Iterable, Mapping

    from ..model.metric import Metric, Value
    from ..sources.base import DeviceSample, Facts
    from .rates import Rates

MOST = 1e18  # no metric exceeds this, whatever its own bounds: sums over a year stay finite
_BOUNDS = {
    id(metrics): {
        key: (metric.low, min(metric.high, MOST)) for key, metric in metrics.items() if isinstance(metric, Number)
    }
    for metrics in (GPU_METRICS, PROCESS_METRICS, HOST_METRICS)
}
# Rounding in the driver can make a percentage slightly exceed 100; beyond this limit it is not a percentage.
_SLACK = 1.0


def corrections(values: Iterable[tuple[str, Value]], metrics: Mapping[str, Metric]) -> dict[str, float | None]:
    """Return what to put in place of implausible values: 100 for a share just above it, else None."""
    bounds = _BOUNDS[id(metrics)]
    found: dict[str, float | None] = {}
    for key, value in values:
        if key in bounds and isinstance(value, (int, float)):
            low, high = bounds[key]
            if not low <= value <= high:
                found[key] = 100.0 if high == 100 and 100 < value <= 100 + _SLACK else None
    return found


def check(facts: Facts, metrics: Mapping[str, Metric], dropped: dict[str, int]) -> None:
    """Drop implausible values and count them: drivers do answer 808334905 % now and then."""
    for key, value in corrections(facts.values.items(), metrics).items():
        if value is not None:
            facts.values[key] = value
            continue
        del facts.values[key]
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
