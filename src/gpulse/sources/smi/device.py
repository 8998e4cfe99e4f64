"""One GPU of nvidia-smi's XML, its MIG instances and its processes."""

from __future__ import annotations

from ..base import Device, DeviceSample, Facts
from .fields import FIELDS, IDENTITY, SPECIAL, identity_of
from .words import gap_of, number, text_at

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from xml.etree.ElementTree import Element

    from ...model.metric import Gap, Value
    from ..base import Key
    from .words import Reading

# Every GPU metric that this source can have; `gpulse metrics` and the drift test read it.
KEYS = frozenset(
    {
        *FIELDS,
        *SPECIAL,
        *IDENTITY,
        "index",
        "vendor",
        "driver_version",
        "memory_unified",
        "gpu_instance",
        "compute_instance",
    }
)
_MEMORY = ("memory_used", "memory_total", "memory_free", "memory_reserved", "bar1_used", "bar1_total")
_LOST = ("utilization", "temperature", "memory_total")
_MOST_PIDS = 1 << 32  # Windows counts further than Linux


class SmiDevice(Device):
    """The GPU at one place of the log; `update` gives it the next log's element, or None where it is gone."""

    def __init__(self, gpu: Element, index: int, driver: str) -> None:
        self._gpu: Element | None = gpu
        self._identity_gaps: dict[str, Gap] = {}
        values: dict[str, Value] = {"vendor": "nvidia"}
        if driver:
            values["driver_version"] = driver
        for key, (value, gap) in identity_of(gpu, index).items():
            if value is None:
                self._identity_gaps[key] = gap
            else:
                values[key] = value
        values.setdefault("uuid", f"PCI-{values.get('pci_bus_id', index)}")
        self._identity_gaps.pop("uuid", None)
        self.identity: Mapping[str, Value] = values

    def update(self, gpu: Element | None) -> None:
        """Read from another log from now on."""
        self._gpu = gpu

    def parts(self) -> list[Mapping[str, Value]]:
        return [] if self._gpu is None else [self._part(at, part) for at, part in enumerate(self._migs())]

    def read(self, keys: Key, process_keys: Key | None) -> DeviceSample:
        sample = DeviceSample()
        gpu = self._gpu
        if gpu is None:
            sample.state = "lost"
            sample.gaps.update(dict.fromkeys(keys - self.identity.keys(), "lost"))
            return sample
        sample.gaps.update(self._identity_gaps)
        _fill(sample, gpu, keys)
        if "memory_unified" in keys:
            sample.values["memory_unified"] = False
            if "memory_total" not in sample.values and sample.gaps.get("memory_total"):
                del sample.values["memory_unified"]
        sample.gaps.update(dict.fromkeys(keys - sample.values.keys() - sample.gaps.keys(), "unsupported"))
        if all(sample.gaps.get(key) == "lost" for key in _LOST if key in keys) and keys & set(_LOST):
            sample.state = "lost"
        self._read_processes(sample, keys, process_keys)
        return sample

    def _read_processes(self, sample: DeviceSample, keys: Key, process_keys: Key | None) -> None:
        found = (
            []
            if process_keys is None or self._gpu is None
            else [_process(info) for info in self._gpu.findall("processes/process_info")]
        )
        placed: dict[tuple[str, str], dict[int, Facts]] = {}
        for place, pid, facts in found:
            if 0 < pid < _MOST_PIDS:
                _merge(placed.setdefault(place, {}), pid, facts)
        for at, part in enumerate(self._migs()):
            place = (text_at(part, ("gpu_instance_id",)), text_at(part, ("compute_instance_id",)))
            instance = DeviceSample()
            instance.values.update(self._part(at, part))
            instance.processes = placed.pop(place, {})
            _fill(instance, part, keys & set(_MEMORY))
            sample.instances.append(instance)
        for processes in placed.values():
            sample.processes.update(processes)

    def _migs(self) -> list[Element]:
        return [] if self._gpu is None else self._gpu.findall("mig_devices/mig_device")

    def _part(self, at: int, part: Element) -> dict[str, Value]:
        ids = [number(text_at(part, (name,)))[0] for name in ("index", "gpu_instance_id", "compute_instance_id")]
        position, gpu_instance, compute_instance = (value if isinstance(value, int) else at for value in ids)
        return {
            "index": position, "vendor": "nvidia", "name": f"MIG {position}", "gpu_instance": gpu_instance,
            "compute_instance": compute_instance,
            "uuid": text_at(part, ("uuid",)) or f"MIG-{self.identity['uuid']}/{gpu_instance}/{compute_instance}",
        }  # fmt: skip


def _fill(sample: DeviceSample, gpu: Element, keys: Key) -> None:
    for key in keys:
        if key in FIELDS:
            value, gap = _first(gpu, *FIELDS[key])
        elif key in SPECIAL:
            value, gap = SPECIAL[key](gpu)
        else:
            continue
        if value is None:
            sample.gaps[key] = gap
        else:
            sample.values[key] = value


def _first(gpu: Element, parse: Callable[[str], Reading], paths: tuple[str, ...]) -> Reading:
    """Return the first of several elements that has a value: of two names for one thing, the older may be deprecated."""
    readings = [parse(text_at(gpu, (path,))) for path in paths]
    return next((reading for reading in readings if reading[0] is not None), readings[0])


def _process(info: Element) -> tuple[tuple[str, str], int, Facts]:
    facts = Facts()
    pid = number(text_at(info, ("pid",)))[0]
    kind = text_at(info, ("type",))
    facts.values["type"] = kind if set(kind.split("+")) <= {"C", "G", "M"} and kind else "C"
    memory, gap = number(text_at(info, ("used_memory",)))
    if isinstance(memory, int):
        facts.values["memory_used"] = memory
    else:
        facts.gaps["memory_used"] = gap
    command = text_at(info, ("process_name",))
    if gap_of(command) != "failed":
        facts.gaps["name"] = gap_of(command)
    else:
        facts.values["name"] = command.split(" ")[0].replace("\\", "/").rsplit("/", 1)[-1] or command
    place = (text_at(info, ("gpu_instance_id",)), text_at(info, ("compute_instance_id",)))
    return place, pid if isinstance(pid, int) else 0, facts


def _merge(processes: dict[int, Facts], pid: int, facts: Facts) -> None:
    """Join a process that is listed twice, for compute and for graphics."""
    known = processes.setdefault(pid, facts)
    if known is not facts and str(facts.values["type"]) not in str(known.values["type"]):
        known.values["type"] = f"{known.values['type']}+{facts.values['type']}"
    known.values["pid"] = pid
