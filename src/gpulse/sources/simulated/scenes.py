"""The scenarios of the simulated GPUs, one small class each, and the boards they run on.

To add a scenario, add a class here and an entry in SCENES.
"""

from __future__ import annotations

from math import floor

from ... import value
from .scene import GIB, Beat, ModelService, Profile, Scene, Worker, scatter

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from ...model.metric import Value

_HOUR = 3600.0
_CAPPED = ("sw_power_cap",)
_KERNEL = "/opt/conda/bin/python -m ipykernel_launcher -f /home/{}/.local/share/jupyter/runtime/kernel-{}.json"


class Training(Scene):
    """Healthy training on several GPUs: at the power limit, a step every 1.4 s, sometimes an evaluation or a checkpoint."""

    start = 20.0
    hum = 7.0
    profile = Profile(sm=95.0, occupancy=39.0, tensor=65.0, dram=42.0, fp32=2.4, integer=18.0)
    ranks = 2

    def beats(self, seed: int) -> Sequence[Beat]:
        evaluation = Beat(3.6, 0.93, 560.0, 1860, rx=0.4e9, tx=9e6, nvlink=2e9, reasons=_CAPPED)
        checkpoint = Beat(2.4, 0.06, 190.0, rx=9e6, tx=6.2e9, nvlink=0.1e9)
        return (*self._steps(seed, 30), evaluation, *self._steps(seed + 1, 30), checkpoint)

    def _steps(self, seed: int, count: int) -> list[Beat]:
        """Return this number of steps; all ranks wait for each other, so they are in sync."""
        steps: list[Beat] = []
        for step in range(count):
            length = 1.4 + 0.05 * scatter(seed, step)
            steps.append(Beat(0.45, 1.0, 698.0, 1530, rx=0.3e9, tx=9e6, nvlink=4e9, reasons=_CAPPED))
            steps.append(Beat(length - 0.57, 1.0, 696.0, 1605, rx=28e6, tx=9e6, nvlink=165e9, reasons=_CAPPED))
            steps.append(Beat(0.12, 0.72, 640.0, 1740, rx=28e6, tx=9e6, nvlink=40e9, reasons=_CAPPED))
        return steps

    def workers(self, at: float) -> Sequence[Worker]:
        command = f"torchrun --nproc-per-node={self.ranks} train.py --config configs/llama-8b.yaml --bf16 --fsdp"
        memory = 71_714_209_792 + self.index * 25_165_824
        return (
            Worker(31871 + self.index, "python", command, "ada", memory, started=-26.4 * _HOUR, cpu=101.0, tree_cpu=214.0,
                   children=4, host_memory=11 * GIB, owner={"job": "slurm:48213"}),
        )  # fmt: skip


class LargeTraining(Training):
    """The same on all GPUs of a machine."""

    ranks = 8


class Starving(Scene):
    """A GPU that waits for data: bursts of work between long gaps, while all data-loading workers are busy."""

    start = 11.0
    profile = Profile(sm=76.0, occupancy=38.0, tensor=21.0, dram=27.0, fp32=3.1, integer=28.0)

    def beats(self, seed: int) -> Sequence[Beat]:
        beats: list[Beat] = []
        for batch in range(16):
            beats.append(Beat(1.15 + 0.2 * scatter(seed, batch), 1.0, 430.0, rx=2.9e9, tx=180e6))
            beats.append(Beat(2.35 + 0.6 * scatter(seed + 1, batch), 0.01, 148.0, rx=9e6, tx=1e6))
        return beats

    crew = (
        Worker(40562, "python", "python train_vision.py --data /data/imagenet --arch vit_b_16 --batch-size 256 --workers 24", "grace",
               23_907_532_800, started=-3.2 * _HOUR, cpu=71.0, tree_cpu=2385.0, children=24, host_memory=9 * GIB,
               owner={"container": "7c1f0b92de44"}),
    )  # fmt: skip


class Leaking(Scene):
    """A process whose memory grows until the GPU is full; it dies, and a new one starts after a pause."""

    start = 232.0  # fifty seconds before the end
    hum = 3.0
    profile = Profile(sm=84.0, occupancy=31.0, tensor=38.0, dram=33.0, fp32=4.2, integer=15.0)
    _loading, _life = 6.0, 282.0
    _first, _last, _block = 14.0, 78.6, 20 << 20  # GiB, GiB, bytes

    def beats(self, seed: int) -> Sequence[Beat]:
        work, test = Beat(11.0, 0.94, 452.0, rx=60e6, tx=8e6), Beat(1.0, 0.6, 310.0, rx=25e6, tx=4e6)
        gone = Beat(18.0, 0.0, 74.0, 345, reasons=("gpu_idle",))
        return (Beat(self._loading, 0.0, 117.0, rx=1.2e9), *(work, test) * 23, gone)

    def workers(self, at: float) -> Sequence[Worker]:
        life, age = divmod(at, self.rhythm.period)
        if age >= self._life:
            return ()
        command = "python finetune.py --base qwen3-4b --lora-rank 32 --dataset chats.jsonl --log-every 10"
        return (
            Worker(52817 + 1637 * int(life) % 4_000_000, "python", command, "linus", self._memory(age),
                   started=life * self.rhythm.period, cpu=99.0, tree_cpu=128.0, children=2, host_memory=6 * GIB),
        )  # fmt: skip

    def _memory(self, age: float) -> int:
        if age < self._loading:
            return 545_259_520
        grown = (age - self._loading) / (self._life - self._loading)
        whole = (self._first + (self._last - self._first) * grown) * GIB
        return floor(whole / self._block) * self._block


class Overheating(Scene):
    """A language model server with bad cooling: it alternates between software and hardware thermal throttling."""

    start = 12.0
    ambient = 40.0
    spread = 0.2
    resistance = 0.1084
    profile = Profile(sm=71.0, occupancy=24.0, tensor=17.0, dram=58.0, fp32=3.4, integer=11.0)
    service = ModelService(
        *("vllm", "Qwen/Qwen3-32B", "127.0.0.1:8000"),
        ((10.0, 2140.0, 31.0, 4.0), (14.0, 1790.0, 31.0, 7.0)),  # slower, as the clock
        prompt_share=3.1, answer=190.0, weights=65.5e9, cache=8.9e9, cache_used=87.0, age=151.0 * _HOUR,
    )  # fmt: skip

    lap = (
        Beat(10.0, 0.98, 480.0, 1470, rx=42e6, tx=31e6, reasons=("sw_thermal_slowdown",)),
        Beat(14.0, 0.97, 440.0, 1200, rx=33e6, tx=24e6, reasons=("hw_slowdown", "sw_thermal_slowdown", "hw_thermal_slowdown")),
    )  # fmt: skip
    crew = (
        Worker(27340, "VLLM::EngineCore", "vllm serve Qwen/Qwen3-32B --port 8000 --max-model-len 32768 --gpu-memory-utilization 0.90",
               "mira", 76_432_801_792, started=-151.0 * _HOUR, cpu=100.0, tree_cpu=236.0, children=3, host_memory=14 * GIB,
               owner={"pod": "chat-7d9c5b6f4-x2x9k", "container": "e04a9b61c7d3"}),
    )  # fmt: skip


class Hoarding(Scene):
    """A notebook left open: it holds memory but runs nothing."""

    hum = 0.6
    lap = (Beat(60.0, 0.0, 115.0),)
    crew = (
        Worker(44107, "python", _KERNEL.format("noor", "5f0e2c81"), "noor", 39_728_447_488, started=-19.7 * _HOUR,
               cpu=0.3, tree_cpu=0.3, host_memory=5 * GIB),
        Worker(46915, "python", _KERNEL.format("tove", "b93a77d0"), "tove", 1_076_887_552, started=-5.1 * _HOUR,
               cpu=0.2, tree_cpu=0.2, host_memory=2 * GIB),
    )  # fmt: skip


class Free(Scene):
    """A GPU that nobody uses."""

    hum = 0.4
    lap = (Beat(60.0, 0.0, 71.0, 345, reasons=("gpu_idle",)),)


SCENES: tuple[type[Scene], ...] = (Training, Training, Free, Free, Starving, Leaking, Overheating, Hoarding)
MIXED_SCENES: tuple[type[Scene], ...] = (Training, Training, Starving, Overheating)
# The machines of a simulated fleet, in turn: a bit of everything, one large training, and one that is mostly free.
FLEET_SCENES: tuple[tuple[type[Scene], ...], ...] = (
    SCENES,
    (LargeTraining,) * 8,
    (Free, Starving, Hoarding, *(Free,) * 5),
)


_NVIDIA_ONLY = frozenset({
    *("sm_active", "sm_occupancy", "tensor_active", "fp64_active", "fp32_active", "fp16_active", "integer_active", "graphics_active"),
    *("pstate", "encoder_utilization", "decoder_utilization", "ofa_utilization", "memory_reserved"),
    *("compute_mode", "persistence_mode", "mig_mode", "remapped_rows", "pcie_rx", "pcie_tx", "xid_last"),
    *("power_trace", "utilization_trace"),
})  # fmt: skip
_DATACENTER_ONLY = frozenset({"dram_active", "ecc_corrected", "ecc_uncorrected", "jpeg_utilization", "energy"})


class Board(value.Value):
    """One product. `watts` scales power and `memory` the memory of the scenes, which are written for an H100."""

    identity: dict[str, Value]
    constants: dict[str, Value]
    absent: frozenset[str]
    watts: float = 1.0
    memory: float = 1.0

    def adapt(self, values: dict[str, Value]) -> None:
        """Turn the readings of an H100 into those of this board."""
        for key in ("power_draw", "energy"):
            if isinstance(reading := values.get(key), (int, float)):
                values[key] = round(reading * self.watts, 3)
        for key in ("memory_used", "bar1_used"):
            if isinstance(reading := values.get(key), (int, float)):
                values[key] = int(reading * self.memory)
        used, total = values.get("memory_used"), self.constants.get("memory_total")
        if "memory_free" in values and isinstance(used, int) and isinstance(total, int):
            values["memory_free"] = total - used
        degrees = values.get("temperature")
        if isinstance(degrees, (int, float)):
            values["hotspot_temperature"] = degrees + 9
        for key in self.absent:
            values.pop(key, None)


def _board(
    vendor: str, name: str, architecture: str, gibibytes: int, limit: float, absent: frozenset[str], watts: float, memory: float,
    *, ordinal: int = 0, **constants: Value,
) -> Board:  # fmt: skip
    """Return a board; what is not given is as on all of them."""
    total = gibibytes * GIB
    identity: dict[str, Value] = {"vendor": vendor, "name": name, "architecture": architecture, "ordinal": ordinal}
    shared: dict[str, Value] = {"memory_total": total, "power_limit": limit, "power_default_limit": limit}
    shared |= {"bar1_total": total, "temperature_limit": 100, "video_utilization": 0}
    return Board({**identity, "driver_version": "6.14.0"}, {**shared, **constants}, absent, watts, memory)


MIXED: tuple[Board | None, ...] = (
    None,  # the H100 the scenes are written for
    _board(
        "amd", "AMD Instinct MI300X", "CDNA 3 (gfx942)", 192, 750.0, _NVIDIA_ONLY, 1.07, 2.2,
        clock_memory=1300, clock_memory_max=1300, clock_sm_max=2100, partition_mode="SPX/NPS1",
    ),
    _board(
        "amd", "AMD Radeon RX 7900 XTX", "RDNA 3 (gfx1100)", 24, 339.0, _NVIDIA_ONLY | _DATACENTER_ONLY, 0.48, 0.28, ordinal=1,
        clock_memory=1249, clock_memory_max=1249, clock_sm_max=2990, fan_speed=41.2, fan_rpm=1380, pcie_gen=4, pcie_gen_max=4,
    ),
    _board(
        "intel", "Intel Arc B580", "Xe2-HPG", 12, 190.0,
        _NVIDIA_ONLY | _DATACENTER_ONLY
        | {"memory_utilization", "hotspot_temperature", "clock_memory", "clock_memory_max", "video_utilization"},
        0.27, 0.12, clock_sm_max=2850, fan_speed=57.2, fan_rpm=1235, pcie_gen=4, pcie_width=8, pcie_gen_max=4, pcie_width_max=8,
    ),
)  # fmt: skip
