"""The source of `--demo`: eight simulated GPUs with training, an input stall, a leak and throttling.

The host has 2 × 48 cores and 1 TiB of memory; its processes belong to the users of the scenes.
"""

from __future__ import annotations

import time

from ..base import Facts, Machine, Relative, Source
from ..host import TOP_KEYS
from .device import DRIVER, SimulatedDevice, uuid_of
from .scene import GIB, jitter
from .scenes import MIXED, MIXED_SCENES, SCENES

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterator, Sequence

    from ...model.metric import Value
    from ...model.serving import ServerSample
    from ..base import Key
    from .scene import LoadPattern, Scene, Wave, Worker


class SimulatedSource(Source):
    """A realistic machine without hardware: the same seed and clock give the same values, however often they are read.

    `mixed` gives GPUs of several vendors instead of eight alike, `scenes` are what the eight do.
    Time starts at `open`.
    """

    name = "demo"

    def __init__(
        self,
        seed: int = 7,
        clock: Callable[[], float] = time.monotonic,
        mixed: bool = False,
        scenes: Sequence[type[Scene]] = SCENES,
    ) -> None:
        self._mixed = mixed
        self._scenes = scenes
        self._seed = seed
        self._clock = clock

    def open(self) -> None:
        boards, scenes = (MIXED, MIXED_SCENES) if self._mixed else ((None,) * len(self._scenes), self._scenes)
        stage = Stage(self._seed, self._clock, scenes)
        self.driver = {"version": DRIVER, "cuda": "13.0", "nvml": f"13.{DRIVER}"}
        self.machine = SimulatedMachine(stage)
        self.devices = tuple(SimulatedDevice(stage, index, boards[index]) for index in range(len(stage.scenes)))

    def close(self) -> None:
        self.devices = ()


class Stage:
    """The scenes by GPU, started now; all values follow from the seed and the time since then."""

    def __init__(self, seed: int, clock: Callable[[], float], scenes: Sequence[type[Scene]] = SCENES) -> None:
        self.seed = seed
        self.scenes: tuple[Scene, ...] = tuple(scene(seed, index) for index, scene in enumerate(scenes))
        self._clock = clock
        self._opened = clock()

    def elapsed(self) -> float:
        """Return the seconds since the stage was opened."""
        return self._clock() - self._opened

    def workers(self, elapsed: float) -> Iterator[tuple[Worker, float]]:
        """Yield the processes of all GPUs, each with the time of its scene."""
        for scene in self.scenes:
            at = elapsed + scene.start
            for worker in scene.workers(at):
                yield worker, at


_CORES = 96
_STRIDE = 37  # coprime to the number of cores: spreads the load over the cores as the kernel would
_SYSTEM_MEMORY = 31 * GIB
_CONSTANTS: dict[str, Value] = {
    "port_names": ("eth0",), "port_states": ("active",), "port_speeds": (3.125e9,), "port_downs": (0.0,),
    "port_errors": (0.0,), "memory_total": 1024 * GIB, "swap_used": 0, "swap_total": 8 * GIB,
    "memory_cached": 412 * GIB, "swap_in": 0, "swap_out": 0, "processes_blocked": 0,
    "disk_names": ("nvme0n1", "nvme1n1"),
}  # fmt: skip

_TOP = 40
_OTHERS = (
    (2841, "root", "rsync -a --delete /data/imagenet backup:/srv/imagenet", 88.0, 1 * GIB),
    (1873, "root", "/usr/bin/containerd", 4.0, GIB // 8),
    (2207, "prometheus", "/usr/bin/node_exporter", 1.2, GIB // 32),
    (1102, "root", "/usr/sbin/sshd -D", 0.1, GIB // 128),
)  # pid, user, command, CPU, memory

_PROCESS_READERS: dict[str, Callable[[Worker, float, float], Value]] = {
    "name": lambda worker, age, noise: worker.name,
    "command": lambda worker, age, noise: worker.command,
    "user": lambda worker, age, noise: worker.user,
    "cpu_percent": lambda worker, age, noise: round(worker.cpu * (1.0 + 0.04 * noise), 1),
    "tree_cpu_percent": lambda worker, age, noise: round(worker.tree_cpu * (1.0 + 0.02 * noise), 1),
    "children": lambda worker, age, noise: worker.children,
    "workers_running": lambda worker, age, noise: min(worker.children, round((worker.tree_cpu - worker.cpu) / 100.0)),
    "workers_blocked": lambda worker, age, noise: 0,
    "thread_state": lambda worker, age, noise: _thread_state(worker, noise),
    "host_memory": lambda worker, age, noise: worker.host_memory,
    "tree_memory": lambda worker, age, noise: worker.host_memory + worker.children * GIB,
    "tree_read": lambda worker, age, noise: round(worker.children * 21e6 * (1.0 + 0.1 * noise)),
    "tree_write": lambda worker, age, noise: 0,
    "running_time": lambda worker, age, noise: round(age, 1),
}


def _thread_state(worker: Worker, noise: float) -> str:
    """Return running for the share of time in which the process uses its core; it waits for its workers, or for events if it has none."""
    if 50.0 * (1.0 + noise) < worker.cpu:
        return "running"
    return "lock" if worker.children else "poll"


_STEP = Relative(31806, 1, "slurmstepd", "slurmstepd: [48213.batch]", "root")  # starts the processes of the batch job


class SimulatedMachine(Machine):
    """The host of one stage."""

    def __init__(self, stage: Stage) -> None:
        self._stage = stage
        self._readers: dict[str, Callable[[float], Value]] = {
            "cpu_percent": lambda elapsed: round(sum(self._cores(elapsed)) / _CORES, 1),
            "cpu_per_core": self._cores,
            "iowait": lambda elapsed: round(0.4 + 0.2 * self._noise(1, elapsed), 1),
            "load": self._load,
            "memory_used": self._memory,
            "disk_read": lambda elapsed: round(self._disk(40e6, 0.11, lambda rhythm: rhythm.rx, elapsed)),
            "disk_write": lambda elapsed: round(self._disk(4e6, 0.35, lambda rhythm: rhythm.tx, elapsed)),
            "net_rx": self._received,
            "net_tx": self._sent,
            "port_rx": lambda elapsed: (float(self._received(elapsed)),),
            "port_tx": lambda elapsed: (float(self._sent(elapsed)),),
            "context_switches": lambda elapsed: round(310e3 * (1.0 + 0.1 * self._noise(4, elapsed))),
            "interrupts": lambda elapsed: round(190e3 * (1.0 + 0.1 * self._noise(5, elapsed))),
            "processes_running": lambda elapsed: max(1, round(self._load(elapsed)[0])),
            "major_faults": lambda elapsed: round(abs(3.0 * self._noise(6, elapsed))),
            "disk_reads": lambda elapsed: self._split(self._readers["disk_read"](elapsed)),
            "disk_writes": lambda elapsed: self._split(self._readers["disk_write"](elapsed)),
            "disk_busy": lambda elapsed: (round(31.0 + 9.0 * self._noise(7, elapsed), 1), 2.4),
        }

    def _split(self, rate: Value) -> tuple[float, ...]:
        """Return the traffic of each disk: nearly all on the one with the data."""
        total = float(rate) if isinstance(rate, (int, float)) else 0.0
        return round(0.94 * total), round(total) - round(0.94 * total)

    def _received(self, elapsed: float) -> int:
        return round(2.6e6 * (1.0 + 0.3 * self._noise(2, elapsed)))

    def _sent(self, elapsed: float) -> int:
        return round(7.9e6 * (1.0 + 0.3 * self._noise(3, elapsed)))

    def host(self, keys: Key) -> Facts:
        elapsed = self._stage.elapsed()
        facts = Facts()
        facts.values = {"name": "demo", "cpu_count": _CORES}
        facts.values.update({key: value for key, value in _CONSTANTS.items() if key in keys})
        facts.values.update({key: reader(elapsed) for key, reader in self._readers.items() if key in keys})
        if keys & TOP_KEYS:
            facts.values.update(self._top(elapsed))
        return facts

    def _top(self, elapsed: float) -> dict[str, Value]:
        """Return the top processes: those on GPUs, their workers, and some that have nothing to do with GPUs."""
        rows: list[tuple[int, str, str, float, int, str]] = []
        for worker, at in self._stage.workers(elapsed):
            noise = 1.0 + 0.04 * jitter(self._stage.seed, worker.pid, at)
            rows.append((worker.pid, worker.user, worker.command, worker.cpu * noise, worker.host_memory, "gpu"))
            each = (worker.tree_cpu - worker.cpu) / max(1, worker.children)
            rows += [
                (worker.pid + 1 + child, worker.user, "pt_data_worker", each * noise, GIB, "worker")
                for child in range(worker.children)
            ]
        rows += [(pid, user, command, cpu * (1.0 + 0.1 * self._noise(8, elapsed)), memory, "other")
                 for pid, user, command, cpu, memory in _OTHERS]  # fmt: skip
        rows.sort(key=lambda row: (-row[3], -row[4]))
        columns = list(zip(*rows[:_TOP], strict=True))
        return {
            "top_pids": tuple(map(float, columns[0])),
            "top_users": columns[1],
            "top_commands": columns[2],
            "top_cpu": tuple(round(cpu, 1) for cpu in columns[3]),
            "top_memory": tuple(map(float, columns[4])),
            "top_roles": columns[5],
        }

    def servers(self, at: float) -> list[ServerSample]:
        elapsed = self._stage.elapsed()
        return [
            scene.service.sample(elapsed + scene.start, at, worker).replace(gpus=(uuid_of(self._stage.seed, index),))
            for index, scene in enumerate(self._stage.scenes)
            for worker in scene.workers(elapsed + scene.start)
            if scene.service is not None
        ]

    def processes(self, pids: Collection[int], keys: Key) -> dict[int, Facts]:
        elapsed = self._stage.elapsed()
        wanted = {worker.pid: (worker, at) for worker, at in self._stage.workers(elapsed) if worker.pid in pids}
        return {pid: self._facts(worker, at, keys) for pid, (worker, at) in wanted.items()}

    def lineage(self, pids: Collection[int]) -> dict[int, Relative]:
        workers = {worker.pid: worker for worker, _ in self._stage.workers(self._stage.elapsed()) if worker.pid in pids}
        found = {
            pid: Relative(pid, _STEP.pid if "job" in worker.owner else 1, worker.name, worker.command, worker.user)
            for pid, worker in workers.items()
        }
        return found | ({_STEP.pid: _STEP} if any(one.parent == _STEP.pid for one in found.values()) else {})

    def _facts(self, worker: Worker, at: float, keys: Key) -> Facts:
        facts = Facts()
        age, noise = at - worker.started, jitter(self._stage.seed, worker.pid, at)
        facts.values = {key: reader(worker, age, noise) for key, reader in _PROCESS_READERS.items() if key in keys}
        facts.values.update({key: value for key, value in worker.owner.items() if key in keys})
        return facts

    def _noise(self, channel: int, elapsed: float) -> float:
        return jitter(self._stage.seed + 1, channel, elapsed)

    def _cores(self, elapsed: float) -> tuple[float, ...]:
        """Return the utilization of each core: the load of all process trees spread over the cores, plus noise."""
        cores = [1.5 + self._noise(100 + core, elapsed) for core in range(_CORES)]
        place = 0
        for worker, at in self._stage.workers(elapsed):
            noise = jitter(self._stage.seed, worker.pid, at)
            left = worker.tree_cpu * (1.0 + 0.02 * noise)
            while left > 0.0:
                cores[place * _STRIDE % _CORES] += min(left, 97.0)
                left -= 97.0
                place += 1
        return tuple(round(min(core, 100.0), 1) for core in cores)

    def _load(self, elapsed: float) -> tuple[float, ...]:
        runnable = sum(worker.tree_cpu for worker, _ in self._stage.workers(elapsed)) / 100.0
        return tuple(round(runnable + 1.2 * self._noise(slow, elapsed / slow), 2) for slow in (20, 60, 180))

    def _memory(self, elapsed: float) -> int:
        return _SYSTEM_MEMORY + sum(worker.host_memory for worker, _ in self._stage.workers(elapsed))

    def _disk(self, base: float, part: float, link: Callable[[LoadPattern], Wave], elapsed: float) -> float:
        """Return the disk traffic: a part of the traffic between host and GPUs, plus some of its own."""
        passing = sum(link(scene.rhythm).mean(elapsed + scene.start) for scene in self._stage.scenes)
        return base * (1.0 + 0.3 * self._noise(5, elapsed)) + part * passing
