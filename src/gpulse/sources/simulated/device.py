"""One simulated GPU: its metrics computed from its scene, one line each, with the resolution of a real driver."""

from __future__ import annotations

from ..base import Device, DeviceSample, Facts
from .scene import TOP_CLOCK, digits, hum_area, jitter, scatter

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from ...model.metric import Gap, Value
    from ..base import Key
    from .scene import Scene, Worker
    from .scenes import Board
    from .source import Stage

_TOTAL = 85_520_809_984
_RESERVED = 616_562_688
_CONTEXTS = 9_240_576  # memory that the driver uses once a program has a context
_BAR1_BASE = 1_703_936
_UPTIME = 18.3 * 86_400.0  # seconds between loading the driver and opening the stage
_QUICK = 0.4  # the part of the thermal resistance inside the chip, which responds immediately
_CLOCK_STEP = 15


class SimulatedInstant:
    """One GPU at one point in time: values shared by several metrics, each computed once."""

    __slots__ = ("at", "beat", "busy", "memory", "place", "profile", "rhythm", "scene", "seed", "workers")

    def __init__(self, scene: Scene, seed: int, at: float) -> None:
        self.scene = scene
        self.rhythm = scene.rhythm
        self.profile = scene.profile
        self.seed = seed
        self.at = at
        self.beat = self.rhythm.beat(at)
        self.busy = self.rhythm.busy.mean(at)
        self.place = scatter(seed, 0)
        self.workers = scene.workers(at)
        self.memory = sum(worker.memory for worker in self.workers) + (_CONTEXTS if self.workers else 0)

    def noisy(self, channel: int, level: float, unrest: float) -> float:
        """Return the level plus noise of this amplitude."""
        return level * (1.0 + unrest * jitter(self.seed, channel, self.at))

    def share(self, channel: int, level: float, unrest: float = 0.025) -> float:
        """Return the activity of a part of the chip that is at `level` percent while busy."""
        return round(min(100.0, max(0.0, self.noisy(channel, level * self.busy, unrest))), 2)


def _power(instant: SimulatedInstant) -> float:
    """Return the mean power over the last second, from the integral `_energy`."""
    hum = hum_area(instant.seed, instant.at) - hum_area(instant.seed, instant.at - 1.0)
    return round(instant.rhythm.watts.mean(instant.at) + instant.scene.hum * hum, 3)


def _energy(instant: SimulatedInstant) -> float:
    before = _UPTIME * (420.0 + 60.0 * instant.place)
    hum = instant.scene.hum * hum_area(instant.seed, instant.at)
    return round(before + instant.rhythm.watts.area(instant.at) + hum, 3)


def _temperature(instant: SimulatedInstant) -> int:
    scene = instant.scene
    watts = _QUICK * instant.rhythm.watts.mean(instant.at) + (1.0 - _QUICK) * instant.rhythm.heat.at(instant.at)
    return round(scene.ambient + scene.spread * instant.place + scene.resistance * watts)


def _memory_temperature(instant: SimulatedInstant) -> int:
    scene = instant.scene
    return round(
        scene.ambient + 6.0 + scene.spread * instant.place + 0.8 * scene.resistance * instant.rhythm.heat.at(instant.at)
    )


def _clock(instant: SimulatedInstant) -> int:
    level = instant.beat.clock
    unrest = 0.08 * max(0, TOP_CLOCK - level) if instant.beat.busy > 0.0 else 0.0
    return _CLOCK_STEP * round((level + unrest * jitter(instant.seed, 1, instant.at)) / _CLOCK_STEP)


def _power_step(scene: Scene, seed: int, at: float, step: float) -> int:
    hum = hum_area(seed, at) - hum_area(seed, at - step)
    return round(scene.rhythm.watts.mean(at, step) + scene.hum * hum / step)


# Step of each trace in seconds, and its value over the step that ends at a time of the scene.
TRACED: dict[str, tuple[float, Callable[[Scene, int, float, float], int]]] = {
    "power_trace": (0.02, _power_step),
    "utilization_trace": (0.2, lambda scene, seed, at, step: round(100.0 * scene.rhythm.busy.mean(at, step))),
}
_KEPT = {"power_trace": 119, "utilization_trace": 71}  # samples that the driver of an H200 keeps


def trace(key: str, scene: Scene, seed: int, last: int, at: float) -> tuple[int, tuple[int, ...]]:
    """Return the number of the newest step until `at`, and the values of the steps after number `last`, as many as are kept."""
    step, value = TRACED[key]
    newest = int(at / step)
    return newest, tuple(
        value(scene, seed, number * step, step) for number in range(max(last, newest - _KEPT[key]) + 1, newest + 1)
    )


READERS: dict[str, Callable[[SimulatedInstant], Value]] = {
    "utilization": lambda instant: round(instant.share(14, 100.0, 0.012)),
    "memory_utilization": lambda instant: round(instant.share(2, instant.profile.dram * 1.3)),
    "sm_active": lambda instant: instant.share(3, instant.profile.sm, 0.012),
    "sm_occupancy": lambda instant: instant.share(4, instant.profile.occupancy),
    "tensor_active": lambda instant: instant.share(5, instant.profile.tensor, 0.04),
    "dram_active": lambda instant: instant.share(6, instant.profile.dram, 0.06),
    "fp32_active": lambda instant: instant.share(7, instant.profile.fp32, 0.1),
    "integer_active": lambda instant: instant.share(8, instant.profile.integer, 0.05),
    "graphics_active": lambda instant: max(0.01, instant.share(9, 99.6, 0.004)),
    "memory_used": lambda instant: instant.memory,
    "memory_free": lambda instant: _TOTAL - _RESERVED - instant.memory,
    "bar1_used": lambda instant: instant.memory + _BAR1_BASE,
    "temperature": _temperature,
    "memory_temperature": _memory_temperature,
    "power_draw": _power,
    "energy": _energy,
    "clock_sm": _clock,
    "clock_graphics": _clock,
    "clock_video": lambda instant: 1530 if instant.workers else 765,
    "throttle_reasons": lambda instant: instant.beat.reasons,
    "pcie_rx": lambda instant: round(instant.noisy(10, 2.25e6 + instant.rhythm.rx.mean(instant.at), 0.04)),
    "pcie_tx": lambda instant: round(instant.noisy(11, 2.83e6 + instant.rhythm.tx.mean(instant.at), 0.04)),
}

CONSTANTS: dict[str, Value] = {
    "encoder_utilization": 0, "decoder_utilization": 0, "jpeg_utilization": 0, "ofa_utilization": 0,
    "fp64_active": 0.0, "fp16_active": 0.0, "memory_total": _TOTAL, "memory_reserved": _RESERVED,
    "memory_unified": False, "bar1_total": 137_438_953_472, "temperature_limit": 89, "power_limit": 700.0,
    "power_default_limit": 700.0, "clock_memory": 2619, "clock_sm_max": TOP_CLOCK, "clock_memory_max": 2619,
    "pstate": 0, "pcie_gen": 5, "pcie_width": 16, "pcie_gen_max": 5, "pcie_width_max": 16, "pcie_replays": 0,
    "ecc_corrected": 0, "ecc_uncorrected": 0, "compute_mode": "default", "persistence_mode": True, "mig_mode": False,
    "display_active": False,
}  # fmt: skip

_LINKS = 18
_SWITCHES = ("00000000:05:00.0", "00000000:06:00.0", "00000000:07:00.0", "00000000:08:00.0")
# What eight GPUs on one board have, and a GPU among others has not.
_LINKED: dict[str, Value] = {
    "nvlink_links": _LINKS, "nvlink_crc_errors": 0, "nvlink_replay_errors": 0, "nvlink_recovery_errors": 0,
    "nvlink_states": (1.0,) * _LINKS, "nvlink_speeds": (26.562e9,) * _LINKS, "nvlink_capabilities": ("111111",) * _LINKS,
    "nvlink_remotes": tuple(_SWITCHES[link % len(_SWITCHES)] for link in range(_LINKS)),
    "nvlink_crc_links": (0.0,) * _LINKS, "nvlink_replay_links": (0.0,) * _LINKS, "nvlink_recovery_links": (0.0,) * _LINKS,
}  # fmt: skip
_LINK_READERS: dict[str, Callable[[SimulatedInstant], Value]] = {
    "nvlink_rx": lambda instant: round(instant.noisy(12, instant.rhythm.nvlink.mean(instant.at), 0.03)),
    "nvlink_tx": lambda instant: round(instant.noisy(13, instant.rhythm.nvlink.mean(instant.at), 0.03)),
    "nvlink_rx_links": lambda instant: (instant.rhythm.nvlink.area(instant.at) // _LINKS,) * _LINKS,
    "nvlink_tx_links": lambda instant: (instant.rhythm.nvlink.area(instant.at) // _LINKS,) * _LINKS,
}

GAPS: dict[str, Gap] = {"fan_speed": "unsupported", "xid_last": "pending"}


DRIVER = "580.159.04"
_SHARE_WINDOW = 2.0  # seconds; the driver's per-process values cover a longer window than those of the GPU
_BUSES = (0x19, 0x3B, 0x4C, 0x5D, 0x9B, 0xBB, 0xCB, 0xDB)

_PROCESS_READERS: dict[str, Callable[[SimulatedInstant, Worker], Value]] = {
    "type": lambda instant, worker: "C",
    "memory_used": lambda instant, worker: worker.memory,
    "sm_utilization": lambda instant, worker: round(_busy(instant) * 99.0),
    "memory_utilization": lambda instant, worker: round(_busy(instant) * instant.profile.dram * 1.3),
    "encoder_utilization": lambda instant, worker: 0,
    "decoder_utilization": lambda instant, worker: 0,
}


def _busy(instant: SimulatedInstant) -> float:
    return instant.rhythm.busy.mean(instant.at, _SHARE_WINDOW)


def _seed_of(seed: int, index: int) -> int:
    return seed * 8191 + index


def uuid_of(seed: int, index: int) -> str:
    """Return the UUID of the GPU at a position of the stage with this seed."""
    name = digits(_seed_of(seed, index), 1, 32)
    return f"GPU-{name[:8]}-{name[8:12]}-{name[12:16]}-{name[16:20]}-{name[20:]}"


class SimulatedDevice(Device):
    """The GPU at one position of the stage."""

    def __init__(self, stage: Stage, index: int, board: Board | None = None) -> None:
        self._board = board
        self._stage = stage
        self._scene = stage.scenes[index]
        self._seed = _seed_of(stage.seed, index)
        self._traced: dict[str, int] = {}  # number of the last step of each trace that was read
        near = index * 2 // len(_BUSES)
        count = len(stage.scenes)
        linked = count == len(_BUSES)
        self._readers = READERS | _LINK_READERS if linked else READERS
        self._constants = {
            **CONSTANTS,
            **(_LINKED if linked else {}),
            "system_gpus": count,
            "remapped_rows": 3 if index == 2 else 0,
            "cpu_affinity": ("0-55,112-167", "56-111,168-223")[near],
            "numa_affinity": near,
            "topology": tuple(
                f"GPU{other}:{f'NV{_LINKS}' if linked else 'NODE'}" for other in range(count) if other != index
            ),
        }
        self.identity = {
            "index": index,
            "uuid": uuid_of(stage.seed, index),
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
        instant = SimulatedInstant(self._scene, self._seed, self._stage.elapsed() + self._scene.start)
        sample = DeviceSample()
        values = sample.values
        for key, reader in self._readers.items():
            if key in keys:
                values[key] = reader(instant)
        for key in keys & TRACED.keys():
            self._traced[key], steps = trace(key, self._scene, self._seed, self._traced.get(key, 0), instant.at)
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
            sample.processes = {worker.pid: _facts(instant, worker, process_keys) for worker in instant.workers}
            if self._board is not None:
                _scale(sample, self._board)
        return sample


def _facts(instant: SimulatedInstant, worker: Worker, keys: Key) -> Facts:
    facts = Facts()
    facts.values = {key: reader(instant, worker) for key, reader in _PROCESS_READERS.items() if key in keys}
    return facts


def _scale(sample: DeviceSample, board: Board) -> None:
    for facts in sample.processes.values():
        if isinstance(held := facts.values.get("memory_used"), int):
            facts.values["memory_used"] = int(held * board.memory)
