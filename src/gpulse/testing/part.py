"""One scripted thing (a GPU, a process, the host): its values now, checked against the catalog when a test sets them."""

from __future__ import annotations

from ..errors import UsageError
from ..model.catalog import GPU_METRICS, PROCESS_METRICS
from ..model.codec import STATES
from ..model.metric import GAPS, Flag, Number, Numbers, Text
from ..model.select import metric_named
from ..sources.base import DeviceSample, Facts

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Collection, Mapping
    from typing import Any

    from ..model.catalog import State
    from ..model.metric import Gap, Metric, Value

_DERIVED = ("memory_percent", "memory_unattributed")
_GIB = 1 << 30


class ScriptedPart:
    """Values and gaps of one thing; a value set to None is missing, with the reason `unsupported` unless `gaps` gives another."""

    def __init__(self, metrics: Mapping[str, Metric], where: str, values: Mapping[str, Any]) -> None:
        self._metrics = metrics
        self._where = where
        self.values: dict[str, Value] = {}
        self.gaps: dict[str, Gap] = {}
        self.change(values)

    def change(self, values: Mapping[str, Any]) -> None:
        """Set some values; raise UsageError for a key the catalog does not have or a value that does not fit it."""
        for key, value in values.items():
            if key == "gaps":
                self._miss(value)
            elif value is None:
                self._miss({self._metric(key).key: "unsupported"})
            else:
                self.values[key] = _fitting(self._metric(key), value, self._where)
                self.gaps.pop(key, None)

    def facts(self, keys: Collection[str], facts: Facts | None = None) -> Facts:
        """Return what is known of these keys: each has a value or a gap."""
        found = Facts() if facts is None else facts
        found.values.update({key: self.values[key] for key in keys if key in self.values})
        found.gaps.update({key: self.gaps.get(key, "unsupported") for key in keys if key not in self.values})
        return found

    def _miss(self, gaps: Mapping[str, Gap]) -> None:
        for key, gap in gaps.items():
            if gap not in GAPS:
                raise UsageError(f"{self._where}: {gap!r} is not a reason;", f"choose one of {', '.join(GAPS)}.")
            if key != "processes":  # a list and not a metric, but it can be missing like one
                self.values.pop(self._metric(key).key, None)
            self.gaps[key] = gap

    def _metric(self, key: str) -> Metric:
        if key not in self._metrics:
            metric_named(key, self._metrics)  # raises UnknownMetric with the nearest names
            raise UsageError(f"{self._where}: {key!r} is another tool's name;", "use its key of docs/metrics.md.")
        if key in _DERIVED:
            raise UsageError(f"{self._where}: {key} is derived;", "set memory_used and memory_total instead.")
        return self._metrics[key]


class ScriptedGpu(ScriptedPart):
    """A GPU with its state, its processes and its MIG instances."""

    def __init__(self, index: int, values: Mapping[str, Any], whole: bool = True) -> None:
        self.state: State = "ok"
        self.processes: dict[int, ScriptedPart] = {}
        own = {key: value for key, value in values.items() if key != "instances"}
        super().__init__(GPU_METRICS, f"GPU {index}", {**_start(index, whole), **own})
        self.instances = [ScriptedGpu(at, part, False) for at, part in enumerate(values.get("instances", ()))]
        self.identity = {key: value for key, value in self.values.items() if GPU_METRICS[key].kind == "identity"}

    def change(self, values: Mapping[str, Any]) -> None:
        if (state := values.get("state", self.state)) not in STATES:
            raise UsageError(f"{self._where}: {state!r} is not a state;", f"choose one of {', '.join(STATES)}.")
        self.state = state
        if "processes" in values:
            self.processes = dict(_process(self._where, each) for each in values["processes"])
            self.gaps.pop("processes", None)
        super().change({key: value for key, value in values.items() if key not in ("state", "processes")})

    def sample(self, keys: Collection[str], process_keys: Collection[str] | None) -> DeviceSample:
        """Return what this GPU answers now: a lost one nothing but why."""
        sample = DeviceSample()
        sample.state = self.state
        if self.state != "ok":
            sample.gaps.update(dict.fromkeys(keys, self.state))
            return sample
        self.facts(keys, sample)
        sample.gaps.update({key: gap for key, gap in self.gaps.items() if key == "processes"})
        if process_keys is not None and "processes" not in self.gaps:
            sample.processes = {pid: each.facts(process_keys) for pid, each in self.processes.items()}
        for part in self.instances:
            inner = part.sample(keys, process_keys)
            inner.values.update(part.identity)
            sample.instances.append(inner)
        return sample


def _start(index: int, whole: bool) -> dict[str, Any]:
    """Return an idle GPU: what a test does not set."""
    number = f"{index:012d}" if whole else f"{index:08d}0000"
    identity = {
        "index": index,
        "uuid": f"{'GPU' if whole else 'MIG'}-00000000-0000-0000-0000-{number}",
        "name": "Scripted GPU" if whole else "MIG 1g.10gb",
        "vendor": "nvidia",
    }
    idle = {"utilization": 0, "memory_used": 0, "memory_reserved": 0, "memory_total": 80 * _GIB}
    board = {
        "pci_bus_id": f"00000000:{index + 1:02X}:00.0",
        "temperature": 40,
        "power_draw": 70.0,
        "power_limit": 700.0,
    }
    return {**identity, **idle, **(board if whole else {})}


def _process(where: str, values: Mapping[str, Any]) -> tuple[int, ScriptedPart]:
    pid = values.get("pid")
    if not isinstance(pid, int) or pid < 1:
        raise UsageError(f"{where}: a process needs a pid;", "write it as {'pid': 1234, 'name': 'python'}.")
    return pid, ScriptedPart(PROCESS_METRICS, f"{where}, process {pid}", {"type": "C", **values})


def _fitting(metric: Metric, value: Any, where: str) -> Value:
    """Return a value as snapshots hold it; raise UsageError when it has the wrong type or is out of range."""
    if isinstance(metric, Number):
        if isinstance(value, bool) or not isinstance(value, (int, float)):
            raise UsageError(f"{where}: {metric.key}: {value!r} is not a number.")
        if metric.kind != "identity" and not metric.low <= value <= metric.high:
            raise UsageError(
                f"{where}: {metric.key}: {value!r} is not between {metric.low:g} and {metric.high:g}, "
                "so a sample would drop it."
            )
        return value
    if isinstance(metric, (Text, Flag)):
        kind = str if isinstance(metric, Text) else bool
        if not isinstance(value, kind):
            raise UsageError(f"{where}: {metric.key}: {value!r} is not a {kind.__name__}.")
        return value
    inner, what = ((int, float), "numbers") if isinstance(metric, Numbers) else (str, "words")
    if not isinstance(value, (list, tuple)) or not all(isinstance(each, inner) for each in value):
        raise UsageError(f"{where}: {metric.key}: {value!r} is not a list of {what}.")
    return tuple(value)
