"""One simulated GPU: the values of its scene, with the resolution of a real driver."""

from __future__ import annotations

from ..base import Device, DeviceSample, Facts
from .noise import digits, scatter
from .readers import CONSTANTS, GAPS, READERS, TRACED, SimulatedInstant, trace

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from ...model.metric import Value
    from ..base import Key
    from .boards import Board
    from .scene import Worker
    from .stage import Stage

DRIVER = "580.159.04"
_SHARE_WINDOW = 2.0  # seconds; the driver's per-process values cover a longer window than those of the GPU
_BUSES = (0x19, 0x3B, 0x4C, 0x5D, 0x9B, 0xBB, 0xCB, 0xDB)

_PROCESS_READERS: dict[str, Callable[[SimulatedInstant, Worker], Value]] = {
    "type": lambda moment, worker: "C",
    "memory_used": lambda moment, worker: worker.memory,
    "sm_utilization": lambda moment, worker: round(_busy(moment) * 99.0),
    "memory_utilization": lambda moment, worker: round(_busy(moment) * moment.profile.dram * 1.3),
    "encoder_utilization": lambda moment, worker: 0,
    "decoder_utilization": lambda moment, worker: 0,
}


def _busy(moment: SimulatedInstant) -> float:
    return moment.rhythm.busy.mean(moment.at, _SHARE_WINDOW)


class SimulatedDevice(Device):
    """The GPU at one position of the stage."""

    def __init__(self, stage: Stage, index: int, board: Board | None = None) -> None:
        self._board = board
        self._stage = stage
        self._scene = stage.scenes[index]
        self._seed = stage.seed * 8191 + index
        self._traced: dict[str, int] = {}  # number of the last step of each trace that was read
        near = index * 2 // len(_BUSES)
        self._constants = {
            **CONSTANTS,
            "system_gpus": len(_BUSES),
            "remapped_rows": 3 if index == 2 else 0,
            "cpu_affinity": ("0-55,112-167", "56-111,168-223")[near],
            "numa_affinity": near,
            "topology": tuple(f"GPU{other}:NV18" for other in range(len(_BUSES)) if other != index),
        }
        name = digits(self._seed, 1, 32)
        self.identity = {
            "index": index,
            "uuid": f"GPU-{name[:8]}-{name[8:12]}-{name[12:16]}-{name[16:20]}-{name[20:]}",
            "name": "NVIDIA H100 80GB HBM3",
            "vendor": "nvidia",
            "architecture": "Hopper",
            "pci_bus_id": f"00000000:{_BUSES[index]:02X}:00.0",
            "serial": str(1_651_423_000_000 + int((scatter(self._seed, 2) + 1.0) * 499_999)),
            "vbios": "96.00.89.00.01",
            "driver_version": DRIVER,
        }
        if board is not None:
            self._constants.update(board.constants)
            self.identity = {**self.identity, **board.identity}

    def read(self, keys: Key, process_keys: Key | None) -> DeviceSample:
        moment = SimulatedInstant(self._scene, self._seed, self._stage.elapsed() + self._scene.start)
        sample = DeviceSample()
        values = sample.values
        for key, reader in READERS.items():
            if key in keys:
                values[key] = reader(moment)
        for key in keys & TRACED.keys():
            self._traced[key], steps = trace(key, self._scene, self._seed, self._traced.get(key, 0), moment.at)
            if steps:
                values[key] = steps
            else:
                sample.gaps[key] = "pending"
        values.update({key: value for key, value in self._constants.items() if key in keys})
        if self._board is not None:
            self._board.adapt(values)
            sample.values = values = {key: value for key, value in values.items() if key in keys}
        sample.gaps.update({key: gap for key, gap in GAPS.items() if key in keys and key not in values})
        unknown = keys - values.keys() - sample.gaps.keys() - self.identity.keys()
        sample.gaps.update(dict.fromkeys(unknown, "unsupported"))
        if process_keys is not None:
            sample.processes = {worker.pid: _facts(moment, worker, process_keys) for worker in moment.workers}
            if self._board is not None:
                _scale(sample, self._board)
        return sample


def _facts(moment: SimulatedInstant, worker: Worker, keys: Key) -> Facts:
    facts = Facts()
    facts.values = {key: reader(moment, worker) for key, reader in _PROCESS_READERS.items() if key in keys}
    return facts


def _scale(sample: DeviceSample, board: Board) -> None:
    for facts in sample.processes.values():
        if isinstance(held := facts.values.get("memory_used"), int):
            facts.values["memory_used"] = int(held * board.memory)
