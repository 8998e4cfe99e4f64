"""The parts of a scene: repeating beats, its processes, and the properties of the GPU."""

from __future__ import annotations

from bisect import bisect_right

from .wave import Inertia, Wave

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from .model_service import ModelService

GIB = 1 << 30
TOP_CLOCK = 1980
_INERTIA = 12.0  # seconds for the heat sink; the chip itself follows within one second


class Beat:
    """A period in which nothing changes: utilization 0-1, W, MHz, bytes/s, and why the clock is below its maximum."""

    __slots__ = ("busy", "clock", "nvlink", "reasons", "rx", "seconds", "tx", "watts")

    def __init__(
        self,
        seconds: float,
        busy: float,
        watts: float,
        clock: int = TOP_CLOCK,
        *,
        rx: float = 0.0,
        tx: float = 0.0,
        nvlink: float = 0.0,
        reasons: tuple[str, ...] = (),
    ) -> None:
        self.seconds = seconds
        self.busy = busy
        self.watts = watts
        self.clock = clock
        self.rx = rx
        self.tx = tx
        self.nvlink = nvlink
        self.reasons = reasons


class LoadPattern:
    """Repeating beats, and the wave of each of their levels."""

    __slots__ = ("_beats", "_edges", "busy", "heat", "nvlink", "period", "rx", "tx", "watts")

    def __init__(self, beats: Sequence[Beat]) -> None:
        self._beats = beats
        self._edges: list[float] = []
        self.period = 0.0
        for beat in beats:
            self._edges.append(self.period)
            self.period += beat.seconds
        watts = [(beat.seconds, beat.watts) for beat in beats]
        self.watts = Wave(watts)
        self.heat = Inertia(watts, _INERTIA)
        self.busy = Wave([(beat.seconds, beat.busy) for beat in beats])
        self.rx = Wave([(beat.seconds, beat.rx) for beat in beats])
        self.tx = Wave([(beat.seconds, beat.tx) for beat in beats])
        self.nvlink = Wave([(beat.seconds, beat.nvlink) for beat in beats])

    def beat(self, at: float) -> Beat:
        """Return the beat at that time."""
        return self._beats[bisect_right(self._edges, at % self.period) - 1]


class Profile:
    """Activity of the chip's parts while a workload is busy, in percent."""

    __slots__ = ("dram", "fp32", "integer", "occupancy", "sm", "tensor")

    def __init__(self, sm: float, occupancy: float, tensor: float, dram: float, fp32: float, integer: float) -> None:
        self.sm = sm
        self.occupancy = occupancy
        self.tensor = tensor
        self.dram = dram
        self.fp32 = fp32
        self.integer = integer


class Worker:
    """A process on a GPU: its identity, memory and host usage; `started` is in the scene's time."""

    __slots__ = (
        "children", "command", "cpu", "host_memory", "memory", "name", "owner", "pid", "started", "tree_cpu", "user",
    )  # fmt: skip

    def __init__(
        self,
        pid: int,
        name: str,
        command: str,
        user: str,
        memory: int,
        *,
        started: float,
        cpu: float,
        tree_cpu: float = 0.0,
        children: int = 0,
        host_memory: int = 2 * GIB,
        owner: dict[str, str] | None = None,
    ) -> None:
        self.pid = pid
        self.name = name
        self.command = command
        self.user = user
        self.memory = memory
        self.started = started
        self.cpu = cpu
        self.tree_cpu = tree_cpu or cpu
        self.children = children
        self.host_memory = host_memory
        self.owner = owner or {}


class Scene:
    """The scenario of one GPU as a function of time; its own time is `start` seconds ahead, so that it starts in the middle.

    `ambient` (°C, varied by `spread` between GPUs) and `resistance` (°C per W) describe its cooling;
    `hum` is the noise of its power in W.
    """

    start = 0.0
    ambient = 27.0
    spread = 2.0
    resistance = 0.055
    hum = 5.0
    profile: Profile
    rhythm: LoadPattern
    service: ModelService | None = None  # what the model server among its processes says of itself

    def __init__(self, seed: int, index: int) -> None:
        self.index = index
        self.rhythm = LoadPattern(self.beats(seed))

    def beats(self, seed: int) -> Sequence[Beat]:
        """Return the beats of one lap."""
        raise NotImplementedError

    def workers(self, at: float) -> Sequence[Worker]:
        """Return the processes on the GPU at that time of the scene."""
        raise NotImplementedError
