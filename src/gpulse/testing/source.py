"""The source that plays a script: the sampler above it is the real one, so gaps, states and selection behave as usual."""

from __future__ import annotations

from ..errors import SourceUnavailable
from ..sources.base import Device, DeviceSample, Facts, Machine, Source

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Collection, Mapping

    from ..model.metric import Value
    from ..sources.base import Key
    from .part import ScriptedGpu
    from .script import Script


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
