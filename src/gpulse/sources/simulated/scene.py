"""The parts of a scene: repeating beats with exact integrals, noise without state, processes, a model server.

Values add up for any sampling interval, and reads may come in any order and number: everything is a function of the time.
"""

from __future__ import annotations

from bisect import bisect_right
from itertools import accumulate
from math import cos, exp, floor, pi

from ...model.serving import Histogram, ServerSample
from ...value import Value, fresh

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence


GIB = 1 << 30
TOP_CLOCK = 1980
_CHANNEL = 1_000_003  # separates the noise of one metric from the next
_TICK = 10.0  # noise changes ten times per second, about as often as a driver samples
_INERTIA = 12.0  # seconds for the heat sink; the chip itself follows within one second


class Beat(Value):
    """A period in which nothing changes: utilization 0-1, W, MHz, bytes/s, and why the clock is below its maximum."""

    seconds: float
    busy: float
    watts: float
    clock: int = TOP_CLOCK
    rx: float = 0.0
    tx: float = 0.0
    nvlink: float = 0.0
    reasons: tuple[str, ...] = ()


def _sums(amounts: Iterable[float]) -> tuple[list[float], float]:
    """Return the sum of the amounts before each one, and that of all."""
    *before, whole = accumulate(amounts, initial=0.0)
    return before, whole


class LoadPattern:
    """Repeating beats, and the wave of each of their levels."""

    __slots__ = ("_beats", "_edges", "busy", "heat", "nvlink", "period", "rx", "tx", "watts")

    def __init__(self, beats: Sequence[Beat]) -> None:
        self._beats = beats
        self._edges, self.period = _sums(beat.seconds for beat in beats)
        steps = {
            name: [(beat.seconds, getattr(beat, name)) for beat in beats]
            for name in ("watts", "busy", "rx", "tx", "nvlink")
        }
        self.watts, self.busy, self.rx, self.tx, self.nvlink = map(Wave, steps.values())
        self.heat = Inertia(steps["watts"], _INERTIA)

    def beat(self, at: float) -> Beat:
        """Return the beat at that time."""
        return self._beats[bisect_right(self._edges, at % self.period) - 1]


class Profile(Value):
    """Activity of the chip's parts while a workload is busy, in percent."""

    sm: float
    occupancy: float
    tensor: float
    dram: float
    fp32: float
    integer: float


class Worker(Value):
    """A process on a GPU: its identity, memory and host usage; `started` is in the scene's time."""

    pid: int
    name: str
    command: str
    user: str
    memory: int
    started: float
    cpu: float
    tree_cpu: float
    children: int = 0
    host_memory: int = 2 * GIB
    owner: dict[str, str] = fresh(factory=dict)


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
    profile = Profile(sm=0.0, occupancy=0.0, tensor=0.0, dram=0.0, fp32=0.0, integer=0.0)
    lap: Sequence[Beat] = ()
    crew: Sequence[Worker] = ()
    rhythm: LoadPattern
    service: ModelService | None = None  # what the model server among its processes says of itself

    def __init__(self, seed: int, index: int) -> None:
        self.index = index
        self.rhythm = LoadPattern(self.beats(seed))

    def beats(self, seed: int) -> Sequence[Beat]:
        """Return the beats of one lap; `lap` unless they depend on the seed."""
        return self.lap

    def workers(self, at: float) -> Sequence[Worker]:
        """Return the processes on the GPU at that time of the scene; `crew` unless they change or depend on the GPU."""
        return self.crew


class Wave:
    """A repeating sequence of levels; each step is (seconds, level)."""

    __slots__ = ("_areas", "_edges", "_levels", "_whole", "period")

    def __init__(self, steps: Sequence[tuple[float, float]]) -> None:
        self._levels = [level for _, level in steps]
        self._edges, self.period = _sums(seconds for seconds, _ in steps)
        self._areas, self._whole = _sums(seconds * level for seconds, level in steps)

    def area(self, at: float) -> float:
        """Return the integral of the level from 0 to `at`."""
        laps, rest = divmod(at, self.period)
        step = bisect_right(self._edges, rest) - 1
        return laps * self._whole + self._areas[step] + (rest - self._edges[step]) * self._levels[step]

    def mean(self, at: float, window: float = 1.0) -> float:
        """Return the mean level over the window that ends at `at`."""
        return (self.area(at) - self.area(at - window)) / window


class Inertia:
    """A wave followed with a delay, as temperature follows power: it covers 63 % of the way in `seconds`.

    It has no start, so the same time of each lap has the same value.
    """

    __slots__ = ("_edges", "_period", "_seconds", "_starts", "_steps")

    def __init__(self, steps: Sequence[tuple[float, float]], seconds: float) -> None:
        self._seconds = seconds
        self._steps = steps
        self._edges, self._period = _sums(duration for duration, _ in steps)
        lap = self._lap(0.0)[-1] / (1.0 - exp(-self._period / seconds))
        self._starts = self._lap(lap)

    def at(self, at: float) -> float:
        """Return the value of the follower at that time."""
        rest = at % self._period
        step = bisect_right(self._edges, rest) - 1
        return self._follow(self._starts[step], self._steps[step][1], rest - self._edges[step])

    def _lap(self, value: float) -> list[float]:
        """Return the value at the start of each step and at the end of the last one, starting with `value`."""
        values = [value]
        for duration, level in self._steps:
            values.append(self._follow(values[-1], level, duration))
        return values

    def _follow(self, value: float, level: float, duration: float) -> float:
        return level + (value - level) * exp(-duration / self._seconds)


_MASK = (1 << 64) - 1
_CELL = 1.7  # seconds; longer than the averaging window of power, or the noise would average out


def scatter(seed: int, cell: int) -> float:
    """Return a pseudo-random number in [-1, 1) that depends only on these two values."""
    bits = (seed * 0x9E3779B97F4A7C15 + cell * 0xBF58476D1CE4E5B9) & _MASK
    bits = ((bits ^ (bits >> 31)) * 0x94D049BB133111EB) & _MASK
    bits = ((bits ^ (bits >> 29)) * 0xD6E8FEB86659FD93) & _MASK
    return (bits >> 11) / (1 << 52) - 1.0


def jitter(seed: int, channel: int, at: float) -> float:
    """Return the noise of one metric at one time, in [-1, 1)."""
    return scatter(seed + channel * _CHANNEL, int(at * _TICK))


def digits(seed: int, cell: int, count: int) -> str:
    """Return this number of hexadecimal digits, for names such as a UUID."""
    whole = 0
    for part in range(count // 8 + 1):
        whole = whole << 32 | int((scatter(seed, cell * 64 + part) + 1.0) * (1 << 31))
    return f"{whole:0{count}x}"[-count:]


def hum_area(seed: int, at: float) -> float:
    """Return the integral from 0 to `at` of noise between -1 and 1.

    The noise is one sine of random height in each cell; a whole cell adds nothing, so the integral needs no history.
    """
    cell = floor(at / _CELL)
    turn = 2.0 * pi * (at / _CELL - cell)
    return scatter(seed, cell) * (1.0 - cos(turn)) * _CELL / (2.0 * pi)


_INFINITE = float("inf")
# Upper bounds in seconds, and the share of all that lies below each.
_FIRST_TOKEN = ((0.1, 0.06), (0.2, 0.41), (0.3, 0.78), (0.4, 0.94), (0.6, 0.985), (1.0, 1.0), (_INFINITE, 1.0))
_INTER_TOKEN = ((0.005, 0.0), (0.01, 0.22), (0.015, 0.71), (0.02, 0.93), (0.03, 0.99), (0.05, 1.0), (_INFINITE, 1.0))
_REQUEST = ((1.0, 0.03), (2.5, 0.21), (5.0, 0.66), (10.0, 0.97), (20.0, 1.0), (_INFINITE, 1.0))


class ModelService:
    """A server whose batch follows the beats of its GPU: each beat is (seconds, generated tokens per second, running, waiting)."""

    def __init__(
        self,
        server: str,
        model: str,
        endpoint: str,
        beats: Sequence[tuple[float, float, float, float]],
        *,
        prompt_share: float,
        answer: float,
        weights: float,
        cache: float,
        cache_used: float,
        age: float,
    ) -> None:
        """Take prompt tokens per generated one, tokens per answer, bytes of weights and cache, the share of it in use in percent."""
        self._names = server, model, endpoint
        self._tokens, self._running, self._waiting = (Wave([(beat[0], beat[at]) for beat in beats]) for at in (1, 2, 3))
        self._prompt_share = prompt_share
        self._answer = answer
        self._memory = {"memory_weights": weights, "memory_cache": cache}
        self._cache_used = cache_used
        self._age = age

    def tokens(self, at: float) -> float:
        """Return the tokens generated until a time of the scene."""
        return self._tokens.area(at + self._age)

    def sample(self, at: float, moment: float, worker: Worker) -> ServerSample:
        """Return what the server says at a time of the scene, which is the monotonic time `moment`."""
        generated = self.tokens(at)
        requests = generated / self._answer
        noise = scatter(worker.pid, int(at))
        batch = self._running.mean(at, 0.5)
        return ServerSample(
            *self._names,
            moment,
            gauges={
                "running": round(batch + noise),
                "waiting": max(0, round(self._waiting.mean(at, 0.5) + noise)),
                "kv_cache": min(99.5, self._cache_used + 1.5 * noise),
                **self._memory,
            },
            counts={
                "prompt_tokens": generated * self._prompt_share,
                "generation_tokens": generated,
                "requests": requests,
                "errors": requests * 0.0004,
                "preemptions": requests * 0.002,
                "prefix_queries": generated * self._prompt_share,
                "prefix_found": generated * self._prompt_share * 0.62,
            },
            latencies={
                "first_token": _histogram(_FIRST_TOKEN, requests),
                "inter_token": _histogram(_INTER_TOKEN, generated),
                "request": _histogram(_REQUEST, requests),
            },
            pid=worker.pid,
            pids=(worker.pid,),
        )


def _histogram(shares: Sequence[tuple[float, float]], count: float) -> Histogram:
    return Histogram([bound for bound, _ in shares], [share * count for _, share in shares])
