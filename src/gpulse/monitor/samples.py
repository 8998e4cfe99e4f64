"""Convert the agent's samples to samples for sinks: values by tag, with the program's progress and events, at their interval.

Tags are the flat names of values in sinks, generated from the catalog.
"""

from __future__ import annotations

import os
from math import isfinite

from ..analysis.events import ClockWatch, EventDetector
from ..model import catalog
from ..model.catalog import GPU_METRICS, HOST_METRICS, PROCESS_METRICS
from ..model.metric import Number
from ..model.select import by_uuid
from ..model.stacks import StackWriter
from ..sinks.base import Sample
from ..torch import memory_by_device, ordinals
from .messages import HOST_CONSTANTS, ActivityMeans, EnergySinceStart
from .rhythm import RhythmRates

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence

    from ..model.catalog import Gpu
    from ..model.event import Event
    from ..model.metric import Metric, Reading
    from ..sinks.base import Alert, PhaseProgress
    from .ledger import Ledger
    from .messages import AgentSample

_STACKS = 30.0  # seconds between two samples that have the stacks since the one before


class Samples:
    """Converts samples that are at least `apart` seconds apart; those in between are used for summaries only."""

    def __init__(
        self, ledger: Ledger, apart: float, keys: Sequence[str] | None, run: str = "", stacks: bool = False
    ) -> None:
        """Convert for a run; with `stacks`, for sinks that keep them."""
        self._ledger = ledger
        self._apart = apart
        self._keys = keys
        self._run = run
        self._tags = Tags(None, keys, ledger.energy)
        self._at = float("-inf")
        self._detector = EventDetector(ClockWatch())
        self._events: list[Event] = []
        self._alerts: list[Alert] = []
        self._activity = ActivityMeans()
        self._rates = RhythmRates(ledger.rhythm)
        self._progress: dict[str, PhaseProgress] = {}
        self._keeps_stacks = stacks
        self._stacks = StackWriter()
        self._stacks_at = ledger.started

    def greet(self, uuids: list[str] | None) -> None:
        """Set the order of the GPUs as reported by an agent."""
        self._tags = Tags(uuids, self._keys, self._ledger.energy)

    def due(self, taken: AgentSample, alerts: Iterable[Alert] = (), last: bool = False) -> Sample | None:
        """Return the sample for sinks; None if it is too close to the previous one and not the `last`: its alerts go with the next."""
        self._alerts += alerts
        self._events += self._detector.observe(taken.snapshot)
        self._activity.add(taken)
        if taken.at - self._at < (0.0 if last else self._apart):
            return None
        events, self._events = tuple(self._events), []
        told, self._alerts = tuple(self._alerts), []
        ledger = self._ledger
        since = taken.at - max(self._at, ledger.started)
        self._at = taken.at
        marks = ledger.marks.new()
        taken = taken.replace(snapshot=self._activity.pass_on(taken.snapshot))
        values = self._tags.values(taken)
        values.update(self._rates.since(since))
        values.update(ledger.energy_rates())
        values.update(
            {
                f"mark/{mark.name}": mark.value
                for mark in marks
                if isinstance(mark.value, (int, float)) and isfinite(mark.value)
            }
        )
        return Sample(
            taken.snapshot.time,
            taken.at - ledger.started,
            values,
            taken.snapshot,
            step=ledger.rhythm.reached,
            phase=ledger.phase(),
            run=self._run,
            marks=marks,
            program=taken.program,
            texts=self._tags.texts,
            events=events,
            alerts=told,
            progress=self._since_last(),
            stacks=self._new_stacks(taken.at, last),
        )

    def _new_stacks(self, at: float, last: bool) -> dict[str, object] | None:
        code = self._ledger.code
        if code is None or not self._keeps_stacks or (at - self._stacks_at < _STACKS and not last):
            return None
        self._stacks_at = at
        return self._stacks.new(code.stacks())

    def _since_last(self) -> dict[str, PhaseProgress]:
        before, self._progress = self._progress, self._ledger.progress()
        return {name: each.since(before.get(name)) for name, each in self._progress.items()}


TRAINING = {
    "train/steps_per_second": "Steps of the program per second.",
    "train/items_per_second": "Items processed by the program per second.",
    "train/tokens_per_second": "Tokens processed by the program per second.",
    "train/flops_per_second": "Floating-point operations of the program's steps per second.",
    "train/mfu": "Floating-point operations as a share of the GPUs' dense peak, in percent.",
    "train/energy_per_item": "Energy for each item so far, in joules.",
    "train/energy_per_token": "Energy for each token so far, in joules.",
    "train/data_wait": "Share of time the program waited for data, in percent.",
}
ENERGY = "Energy consumed since the monitor started."
_PROGRAM = {key for key in PROCESS_METRICS if key not in ("pid", "running_time", "memory_used")}
_READ = {f"process_{key}": key for key in ("memory_used", "sm_utilization")}
TEXTS = {
    "process_memory_used": "GPU memory held by this process, in bytes.",
    "process_sm_utilization": f"{PROCESS_METRICS['sm_utilization'].help} Of this process, in percent.",
    "torch_allocated": "Memory of this process' tensors in torch's allocator, in bytes.",
    "torch_reserved": "Memory that torch's allocator of this process holds, used or not, in bytes.",
}


class Tags:
    """Names the values of samples: gpu{ordinal}/{key}, host/{key}, process/{key}; missing values are omitted.

    `ordinals` are the GPUs by the program's indices; None for the driver's indices. `keys` are the GPU metrics to log; None
    for the default ones, to which what this program uses belongs. Energy is what `energy` has counted.
    """

    def __init__(
        self, ordinals: list[str] | None, keys: Collection[str] | None, energy: EnergySinceStart | None = None
    ) -> None:
        self._energy = energy or EnergySinceStart()
        self._ordinals = None if ordinals is None else {uuid: at for at, uuid in enumerate(ordinals)}
        self._keys = frozenset(catalog.TRAINING if keys is None else keys)
        self._own = OwnTags(self._ordinals) if keys is None else None
        self.texts: dict[str, str] = dict(TRAINING)

    def values(self, sample: AgentSample) -> dict[str, float]:
        """Return the finite numbers of a sample by tag."""
        found: dict[str, float] = {}
        for at, gpu in enumerate(sample.snapshot.gpus):
            group = f"gpu{self._number(gpu, at)}"
            self._add(found, group, gpu, GPU_METRICS, self._keys, f" {gpu.name}, {gpu.uuid}.")
            if (tag := f"{group}/energy") in found:
                found[tag] = self._energy.joules(gpu)
        if self._own is not None:
            self._add_own(found, self._own, sample)
        self._add(found, "host", sample.snapshot.host, HOST_METRICS, HOST_METRICS.keys() - HOST_CONSTANTS, "")
        if sample.program is not None:
            self._add(found, "process", sample.program, PROCESS_METRICS, _PROGRAM, "")
        return found

    def _add_own(self, found: dict[str, float], own: OwnTags, sample: AgentSample) -> None:
        in_torch = own.from_torch(sample.snapshot.gpus)
        pid = (
            os.getpid() if os.getpid() in (sample.own or ()) else None
        )  # in a container, another's process may have the number
        for at, gpu in enumerate(sample.snapshot.gpus):
            values = {} if pid is None else dict(own.from_driver(gpu, pid))
            if gpu.uuid in in_torch:
                values["torch_allocated"], values["torch_reserved"] = in_torch[gpu.uuid]
            for key, value in values.items():
                tag = f"gpu{self._number(gpu, at)}/{key}"
                found[tag] = value
                self.texts.setdefault(tag, f"{TEXTS[key]} {gpu.name}, {gpu.uuid}.")

    def _number(self, gpu: Gpu, at: int) -> int:
        if self._ordinals is not None:
            return self._ordinals.get(gpu.uuid or "", at)
        return at if gpu.index is None else int(gpu.index)

    def _add(
        self,
        found: dict[str, float],
        group: str,
        reading: Reading,
        metrics: Mapping[str, Metric],
        keys: Collection[str],
        whose: str,
    ) -> None:
        for key, value in reading.items():
            if key not in keys or not isinstance(value, (int, float)) or not isinstance(metrics.get(key), Number):
                continue
            tag = f"{group}/{key}"
            found[tag] = value
            if tag not in self.texts:
                metric = metrics[key]
                about = ENERGY if metric is GPU_METRICS["energy"] else metric.help
                self.texts[tag] = f"{about}{f' In {metric.unit.name}.' if metric.unit.symbol else ''}{whose}"


class OwnTags:
    """Yields what this process uses, by GPU; what it does not use and what cannot be read is left out.

    `numbers` are the program's ordinals by UUID; None if they are not known.
    """

    def __init__(self, numbers: Mapping[str, int] | None) -> None:
        self._numbers = numbers
        self._devices: list[str] | None = None  # UUIDs by torch's ordinal
        self._used: set[int] = set()  # torch's ordinals that had memory once: a 0 there is a value

    def from_driver(self, gpu: Gpu, pid: int) -> Iterator[tuple[str, float]]:
        """Yield what the driver says of this process, which it knows by `pid`, by key."""
        own = [process for process in gpu.all_processes() if process.pid == pid]
        for name, key in _READ.items():
            known = [value for process in own if isinstance(value := process.get(key), (int, float))]
            if known:
                yield name, sum(known)

    def from_torch(self, gpus: Iterable[Gpu]) -> dict[str, tuple[int, int]]:
        """Return what torch has allocated and reserved, by UUID of the GPU; empty if it has not initialized CUDA."""
        there, found = [*gpus], {}
        for device, sizes in enumerate(memory_by_device()):
            if sizes[1] or device in self._used:
                self._used.add(device)
                if (uuid := self._uuid(device, there)) is not None:
                    found[uuid] = sizes
        return found

    def _uuid(self, device: int, gpus: list[Gpu]) -> str | None:
        if self._devices is None:
            self._devices = ordinals() or []
        if device < len(self._devices):
            return next((gpu.uuid for gpu in by_uuid(gpus, [self._devices[device]])), None)
        return next((uuid for uuid, number in (self._numbers or {}).items() if number == device), None)
