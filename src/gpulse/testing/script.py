"""A script: GPUs as they start, what changes from sample to sample, and the source that plays it.

The sampler above that source is the real one, so gaps, states and selection behave as usual.
"""

from __future__ import annotations

import threading
from contextlib import ContextDecorator
from itertools import count

from ..errors import SourceUnavailable, UsageError
from ..model.catalog import GPU_METRICS, HOST_METRICS, PROCESS_METRICS
from ..model.codec import STATES
from ..model.metric import GAPS, Flag, Number, Numbers, Text
from ..model.select import metric_named
from ..sources.base import Device, DeviceSample, Facts, Machine, Source
from ..sources.registry import add_local, remove_local

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Collection, Mapping, Sequence
    from typing import Any, TypeAlias

    from typing_extensions import Self

    from ..model.catalog import State
    from ..model.metric import Gap, Metric, Value
    from ..sources.base import Key

    Changes: TypeAlias = Mapping[str, Any] | str
    # a mapping is invariant in its keys, so that each way to write one is a type of its own
    Step: TypeAlias = Mapping[int, Changes] | Mapping[str, Changes] | Mapping[int | str, Changes]


_numbers = count(1)


def scripted(
    gpus: int | Sequence[Mapping[str, Any]] = 1,
    steps: Sequence[Step] = (),
    *,
    host: Mapping[str, Any] | None = None,
    driver: Mapping[str, str] | None = None,
    advance: bool = True,
    unavailable: str = "",
) -> Script:
    """Return a context manager (and decorator) inside which gpulse reads scripted GPUs instead of this machine's.

    `gpus` is a number of idle GPUs, or one mapping per GPU with catalog keys and, where wanted, `state`, `processes`, `gaps`
    and `instances`. The first sample shows them as given; each further sample applies the next of `steps`, and the last one
    stays. A step maps a GPU's index to its changes or to a state such as "lost", and "host" to changes of the host.
    With `advance=False` only `Script.advance()` moves on. `unavailable` makes opening fail with that message instead.

    Sampling by `Monitor` and `measure` happens in a thread. A source named explicitly, as in `snapshot(source="demo")`, is
    read as usual. Raises UsageError for a key or a value that the catalog does not allow.
    """
    return Script(gpus, steps, host=host, driver=driver, advance=advance, unavailable=unavailable)


class Script(ContextDecorator):
    """What the scripted machine does; made by `scripted`. Any thread may call anything."""

    def __init__(
        self,
        gpus: int | Sequence[Mapping[str, Any]] = 1,
        steps: Sequence[Step] = (),
        *,
        host: Mapping[str, Any] | None = None,
        driver: Mapping[str, str] | None = None,
        advance: bool = True,
        unavailable: str = "",
    ) -> None:
        self.lock = threading.RLock()
        self.driver = {"version": "scripted"} if driver is None else dict(driver)
        self.unavailable = unavailable
        self.samples = 0
        self._given = (gpus, host)
        self._steps = list(steps)
        self._follows = advance
        self._entered: list[str] = []
        self._begin()
        for step in self._steps:  # on the GPUs themselves, so that a mistake is found now and not in a thread
            self._apply(step)
        self._begin()

    def __enter__(self) -> Self:
        self._begin()
        name = f"scripted{next(_numbers)}"
        self._entered.append(name)
        add_local(name, lambda _: ScriptedSource(self))
        return self

    def __exit__(self, *error: object) -> None:
        remove_local(self._entered.pop())

    def __repr__(self) -> str:
        return f"<Script {len(self.gpus)} GPUs, step {self.step} of {len(self._steps)}, {self.samples} samples>"

    def set(self, gpu: int, **changes: Any) -> None:
        """Change a GPU at once: `set(0, utilization=90)`, `set(1, state="lost")`, `set(0, processes=[...])`."""
        with self.lock:
            self._apply({gpu: changes})

    def advance(self, steps: int = 1) -> None:
        """Apply the next steps now."""
        with self.lock:
            for step in self._steps[self.step : self.step + steps]:
                self._apply(step)
                self.step += 1

    def sampled(self) -> None:
        """Count a sample that is about to be taken; every one but the first moves the script on."""
        with self.lock:
            self.samples += 1
            if self._follows and self.samples > 1:
                self.advance()

    def _begin(self) -> None:
        gpus, host = self._given
        given = [{} for _ in range(gpus)] if isinstance(gpus, int) else gpus
        with self.lock:
            self.samples = self.step = 0
            self.gpus = [ScriptedGpu(index, values) for index, values in enumerate(given)]
            self.host = ScriptedPart(HOST_METRICS, "host", {"name": "scripted", **(host or {})})

    def _apply(self, step: Step) -> None:
        for target, changes in step.items():
            if target == "host" and not isinstance(changes, str):
                self.host.change(changes)
                continue
            if not isinstance(target, int) or not 0 <= target < len(self.gpus):
                raise UsageError(f"a step changes {target!r};", f"there are GPUs 0 to {len(self.gpus) - 1} and 'host'.")
            wanted = {"state": changes} if isinstance(changes, str) else changes
            for key in wanted:
                if key == "instances" or (key in GPU_METRICS and GPU_METRICS[key].kind == "identity"):
                    raise UsageError(f"a step changes {key!r} of GPU {target};", "set it in `gpus`: it never changes.")
            self.gpus[target].change(wanted)


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


class ScriptedSource(Source):
    """Reads the GPUs of a script; every sample moves the script on by one step."""

    name = "scripted"

    def __init__(self, script: Script) -> None:
        self._script = script
        self.driver = dict(script.driver)
        self.machine = _ScriptedMachine(script)

    def open(self) -> None:
        if self._script.unavailable:
            raise SourceUnavailable(self._script.unavailable)
        self.devices = tuple(_ScriptedDevice(gpu, self._script) for gpu in self._script.gpus)

    def refresh(self) -> None:
        self._script.sampled()

    def close(self) -> None:
        self.devices = ()


class _ScriptedDevice(Device):
    """One GPU. A key that was asked once is answered in every sample.

    Otherwise a slow metric, which the sampler asks every 5 s, would miss the steps in between.
    """

    def __init__(self, gpu: ScriptedGpu, script: Script) -> None:
        self._gpu = gpu
        self._script = script
        self._asked: frozenset[str] = frozenset()
        self._asked_of_processes: frozenset[str] = frozenset()
        self.identity = gpu.identity

    def parts(self) -> list[Mapping[str, Value]]:
        return [part.identity for part in self._gpu.instances]

    def read(self, keys: Key, process_keys: Key | None) -> DeviceSample:
        self._asked |= keys
        self._asked_of_processes |= process_keys or frozenset()
        with self._script.lock:
            return self._gpu.sample(self._asked, None if process_keys is None else self._asked_of_processes)


class _ScriptedMachine(Machine):
    """The computer around the GPUs; all it knows of processes is what the GPUs say."""

    def __init__(self, script: Script) -> None:
        self._script = script

    def host(self, keys: Key) -> Facts:
        with self._script.lock:
            return self._script.host.facts(keys)

    def processes(self, pids: Collection[int], keys: Key) -> dict[int, Facts]:
        return {pid: Facts() for pid in pids}
