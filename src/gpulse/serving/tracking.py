"""Answers of servers become readings: counts become rates, histograms quantiles, and the energy of the GPUs tokens per joule."""

from __future__ import annotations

from collections import deque

from ..model.catalog import SERVER_METRICS, Server
from ..model.plausible import drop_implausible
from ..model.serving import COUNTS, LATENCIES

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from ..model.catalog import Gpu
    from ..model.metric import Gap, Value
    from ..model.serving import Histogram, ServerSample, Tariff

_MINUTE = 60.0  # seconds over which latencies and the hits of the prefix cache are taken
_ENERGY = 30.0  # seconds over which tokens are divided by joules
_LEAST_ENERGY = 4.0  # seconds from which they are: the counter moves every 0.1 s and is read every 5 s
_FORGET = 600.0  # seconds after which a server that has gone is forgotten
_RATES = {
    "prompt_tokens": "prompt_rate",
    "generation_tokens": "generation_rate",
    "requests": "request_rate",
    "errors": "error_rate",
    "preemptions": "preemption_rate",
}
_QUANTILES = (("p50", 0.5), ("p95", 0.95))
_OF_ALL_GPUS = ("gpu_generation_rate", "tokens_per_joule", "cost_per_million", "memory_other")
_ESTIMATES = ("memory_weights", "memory_cache")


class EnergyTrail:
    """The joules of one GPU over time: of its counter, which most samples repeat, or from its power where it has none."""

    __slots__ = ("_counted", "_drawn", "_last", "_power_at")

    def __init__(self) -> None:
        self._counted: deque[tuple[float, float]] = deque()
        self._drawn: deque[tuple[float, float]] = deque()
        self._last: float | None = None
        self._power_at: tuple[float, float] | None = None

    def add(self, gpu: Gpu, at: float) -> None:
        """Note what a sample says."""
        if gpu.energy is not None and gpu.energy != self._last:
            if self._last is not None and gpu.energy < self._last:
                self._counted.clear()  # the driver was loaded again
            elif self._last is not None:  # nobody knows when the first value was read
                self._counted.append((at, gpu.energy))
            self._last = gpu.energy
        if gpu.power_draw is not None:
            before = self._drawn[-1][1] if self._drawn else 0.0
            if self._power_at is not None:
                since, power = self._power_at
                before += (at - since) * (power + gpu.power_draw) / 2
            self._drawn.append((at, before))
            self._power_at = at, gpu.power_draw
        for trail in (self._counted, self._drawn):
            while len(trail) > 2 and trail[1][0] < at - 2 * _ENERGY:
                trail.popleft()

    @property
    def power(self) -> float | None:
        """The power of the last sample."""
        return None if self._power_at is None else self._power_at[1]

    def span(self) -> tuple[float, float] | None:
        """Return from when to when joules are known."""
        trail = self._trail()
        return (trail[0][0], trail[-1][0]) if len(trail) > 1 else None

    def joules(self, at: float) -> float:
        """Return the joules at a moment inside the span, on a line between the two readings around it."""
        trail = self._trail()
        for (since, low), (until, high) in zip(trail, list(trail)[1:], strict=False):
            if at <= until:
                return low + (high - low) * max(0.0, at - since) / ((until - since) or 1.0)
        return trail[-1][1]

    def _trail(self) -> deque[tuple[float, float]]:
        return self._counted if len(self._counted) > 1 else self._drawn


class _Trail:
    """The answers of one server about one model since it started, as far back as any figure reaches."""

    __slots__ = ("answers", "gpus", "latencies", "moved", "reading", "seen")

    def __init__(self, at: float) -> None:
        self.answers: deque[tuple[float, dict[str, float]]] = deque()
        self.latencies: dict[str, deque[tuple[float, Histogram]]] = {}
        self.moved = at  # when a count last grew
        self.seen = at
        self.gpus: tuple[str, ...] = ()
        self.reading: tuple[float, dict[str, Value], dict[str, Gap]] | None = None

    def add(self, sample: ServerSample) -> None:
        """Take an answer. One with a smaller count than before is of a server that has started again."""
        before = self.answers[-1][1] if self.answers else {}
        if any(sample.counts.get(key, 0.0) < count for key, count in before.items()):
            self.answers.clear()
            self.latencies.clear()
            self.moved = sample.at
        elif before and any(count > before.get(key, 0.0) for key, count in sample.counts.items()):
            self.moved = sample.at
        self.answers.append((sample.at, sample.counts))
        for key, histogram in sample.latencies.items():
            trail = self.latencies.setdefault(key, deque())
            if trail and trail[-1][1].bounds != histogram.bounds:
                trail.clear()
            trail.append((sample.at, histogram))
            _shorten(trail, sample.at - _MINUTE)
        _shorten(self.answers, sample.at - _MINUTE)


class ServingTracker:
    """Turns the answers of all servers into readings, one sample after the other. Used by the sampler's thread.

    `tariff` returns the user's prices; it is called once, when the first server answers.
    """

    def __init__(self, tariff: Callable[[], Tariff] | None = None) -> None:
        self._read_tariff = tariff
        self._tariff: Tariff | None = None
        self._trails: dict[tuple[str, str, str], _Trail] = {}
        self._energy: dict[str, EnergyTrail] = {}

    def readings(
        self, samples: Sequence[ServerSample], gpus: Sequence[Gpu], now: float, whole: bool = True
    ) -> tuple[Server, ...]:
        """Return a reading for each answer; `gpus` are those of the same sample, taken at `now`.

        Without `whole`, servers may use others, too: figures over all GPUs of a server are left out unless it says which it uses.
        """
        if not samples and not self._trails:
            return ()
        if self._read_tariff is not None:
            self._tariff, self._read_tariff = self._read_tariff(), None
        for gpu in gpus:
            if gpu.uuid:
                self._energy.setdefault(gpu.uuid, EnergyTrail()).add(gpu, now)
        found = tuple(self._reading(sample, gpus, now, whole or bool(sample.gpus)) for sample in samples)
        self._trails = {key: trail for key, trail in self._trails.items() if now - trail.seen < _FORGET}
        return tuple(sorted(found, key=lambda one: (one.gpus or (), one.key)))

    def _reading(self, sample: ServerSample, gpus: Sequence[Gpu], now: float, whole: bool) -> Server:
        trail = self._trails.setdefault(sample.key, _Trail(sample.at))
        trail.seen = now
        values: dict[str, Value] = {"server": sample.server, "endpoint": sample.endpoint}
        if sample.model:
            values["model"] = sample.model
        if sample.pid is not None:
            values["pid"] = sample.pid
        uuids = trail.gpus = sample.gpus or _held(sample.pids, gpus) or trail.gpus  # a sample may lack the lists
        if uuids:
            values["gpus"] = uuids
        if sample.gap is not None:
            moving = [key for key, metric in SERVER_METRICS.items() if metric.kind != "identity"]
            return Server(values, dict.fromkeys(moving, sample.gap))
        if trail.reading is None or trail.reading[0] != sample.at:
            trail.add(sample)
            trail.reading = sample.at, *_figures(sample, trail)
        _, figures, gaps = trail.reading
        values |= figures
        gaps = dict(gaps)
        if sample.counts:
            values["idle_time"] = round(max(0.0, now - trail.moved), 1)
        if whole:
            rate = values.get("generation_rate")
            if uuids and isinstance(rate, (int, float)):
                values["gpu_generation_rate"] = round(rate / len(uuids), 2)
            self._add_efficiency(values, gaps, trail, uuids)
            self._add_cost(values, gaps, uuids)
            _add_memory(values, sample, gpus, uuids)
        elif uuids:
            gaps |= dict.fromkeys(_OF_ALL_GPUS, "skipped")
        drop_implausible(values, gaps, SERVER_METRICS)  # servers report wrong numbers, too
        return Server(values, gaps)

    def _add_efficiency(
        self, values: dict[str, Value], gaps: dict[str, Gap], trail: _Trail, uuids: tuple[str, ...]
    ) -> None:
        """Add tokens per joule: of the same seconds, as long as both are known."""
        if not uuids or "generation_tokens" not in trail.answers[-1][1]:
            return
        trails = [self._energy[uuid] for uuid in uuids if uuid in self._energy]
        if len(trails) < len(uuids):  # a MIG instance has no energy of its own
            gaps["tokens_per_joule"] = "unsupported"
            return
        spans = [span for one in trails if (span := one.span()) is not None]
        if len(spans) < len(uuids):
            self._add_from_power(values, gaps, trails)
            return
        end = min([trail.answers[-1][0], *(until for _, until in spans)])
        start = max([trail.answers[0][0], end - _ENERGY, *(since for since, _ in spans)])
        if end - start < _LEAST_ENERGY:
            self._add_from_power(values, gaps, trails)
            return
        joules = sum(one.joules(end) - one.joules(start) for one in trails)
        tokens = _count_at(trail.answers, end) - _count_at(trail.answers, start)
        if joules > 0:
            values["tokens_per_joule"] = round(tokens / joules, 5)

    def _add_from_power(self, values: dict[str, Value], gaps: dict[str, Gap], trails: Sequence[EnergyTrail]) -> None:
        """Add tokens per joule of the first seconds: tokens per second over watts."""
        rate, powers = values.get("generation_rate"), [trail.power for trail in trails]
        watts = sum(power for power in powers if power is not None)
        if isinstance(rate, (int, float)) and None not in powers and watts > 0:
            values["tokens_per_joule"] = round(rate / watts, 5)
        else:
            gaps["tokens_per_joule"] = "pending"

    def _add_cost(self, values: dict[str, Value], gaps: dict[str, Gap], uuids: tuple[str, ...]) -> None:
        """Add the cost of a million tokens, if there are prices and whole GPUs to apply them to."""
        if not uuids or self._tariff is None or (self._tariff.price is None and self._tariff.gpu_price is None):
            return
        rate, efficiency = values.get("generation_rate"), values.get("tokens_per_joule")
        joules = rate / efficiency if isinstance(rate, float) and isinstance(efficiency, float) and efficiency else None
        cost = self._tariff.per_million(rate if isinstance(rate, float) else None, len(uuids), joules)
        if any(uuid not in self._energy for uuid in uuids):  # a MIG instance, of which there is no price
            gaps["cost_per_million"] = "unsupported"
        elif cost is None:
            gaps["cost_per_million"] = "pending"
        else:
            values["cost_per_million"] = float(f"{cost:.6g}")


def _figures(sample: ServerSample, trail: _Trail) -> tuple[dict[str, Value], dict[str, Gap]]:
    values: dict[str, Value] = {key: round(value, 5) for key, value in sample.gauges.items() if key in SERVER_METRICS}
    gaps: dict[str, Gap] = {}
    for key in COUNTS[:2]:
        if key in sample.counts:
            values[key] = round(sample.counts[key])
    pair = (trail.answers[-2], trail.answers[-1]) if len(trail.answers) > 1 else None
    for key, name in _RATES.items():
        if key in sample.counts:
            if pair is None or key not in pair[0][1]:
                gaps[name] = "pending"
            else:
                elapsed = max(1e-6, pair[1][0] - pair[0][0])
                values[name] = round((pair[1][1][key] - pair[0][1][key]) / elapsed, 3)
        else:
            gaps[name] = "unsupported"
    hits = _share(trail.answers, "prefix_found", "prefix_queries")
    if hits is not None:
        values["prefix_hits"] = round(100.0 * hits, 2)
    for key in LATENCIES:
        _add_quantiles(values, gaps, key, trail.latencies.get(key))
    return values, {
        key: gap for key, gap in gaps.items() if key not in values
    }  # another gpulse tells rates as they are


def _add_quantiles(
    values: dict[str, Value], gaps: dict[str, Gap], key: str, trail: deque[tuple[float, Histogram]] | None
) -> None:
    if not trail:
        gaps |= {f"{key}_{name}": "unsupported" for name, _ in _QUANTILES}
        return
    recent = trail[-1][1].since(trail[0][1]) if len(trail) > 1 else None
    for name, share in _QUANTILES:
        value = None if recent is None else recent.quantile(share)
        if value is None:
            gaps[f"{key}_{name}"] = "pending"  # no request has ended yet
        else:
            values[f"{key}_{name}"] = round(value, 5)


def _share(answers: deque[tuple[float, dict[str, float]]], part: str, whole: str) -> float | None:
    first, last = answers[0][1], answers[-1][1]
    if not {part, whole} <= first.keys() & last.keys():
        return None
    total = last[whole] - first[whole]
    return min(1.0, (last[part] - first[part]) / total) if total > 0 else None


def _count_at(answers: Iterable[tuple[float, dict[str, float]]], at: float) -> float:
    """Return the tokens at a moment, on a line between the two answers around it."""
    before: tuple[float, float] | None = None
    for moment, counts in answers:
        tokens = counts.get("generation_tokens", 0.0)
        if moment >= at:
            if before is None or moment == before[0]:
                return tokens
            return before[1] + (tokens - before[1]) * (at - before[0]) / (moment - before[0])
        before = moment, tokens
    return before[1] if before is not None else 0.0


def _add_memory(values: dict[str, Value], sample: ServerSample, gpus: Sequence[Gpu], uuids: tuple[str, ...]) -> None:
    """Add what is left of the memory that the processes hold, if weights and cache are known and fit into it."""
    parts = [sample.gauges[key] for key in _ESTIMATES if key in sample.gauges]
    held = [
        process.memory_used
        for gpu in gpus
        for process in gpu.all_processes()
        if process.pid in sample.pids or (not sample.pids and process.pid == sample.pid and gpu.uuid in uuids)
    ]
    known = sum(memory for memory in held if memory is not None)
    if len(parts) == len(_ESTIMATES) and held and None not in held and known >= sum(parts):
        values["memory_other"] = known - sum(parts)


def _held(pids: Sequence[int], gpus: Sequence[Gpu]) -> tuple[str, ...]:
    """Return the UUIDs of the GPUs that some processes hold."""
    return tuple(
        part.uuid
        for gpu in gpus
        for part in (gpu, *gpu.instances)
        if part.uuid and any(process.pid in pids for process in part.processes)
    )


def _shorten(trail: deque[tuple[float, Histogram]] | deque[tuple[float, dict[str, float]]], since: float) -> None:
    """Forget what is not needed to look back to a moment."""
    while len(trail) > 2 and trail[1][0] <= since:
        trail.popleft()
