"""A demo machine whose clock stands still until a test moves it."""

from __future__ import annotations

from collections.abc import Iterable

from gpulse.model.catalog import HOST_METRICS, PROCESS_METRICS
from gpulse.model.select import EVERYTHING
from gpulse.sources.base import DeviceSample, Facts
from gpulse.sources.simulated.source import SimulatedSource

GPU_KEYS = EVERYTHING.gpu
PROCESS_KEYS = frozenset(PROCESS_METRICS)
HOST_KEYS = frozenset(HOST_METRICS)


class Demo:
    """A source opened at an odd time of a clock that only tests move."""

    def __init__(self, seed: int = 7, opened: float = 1024.5) -> None:
        self._opened = opened
        self._now = opened
        self.source = SimulatedSource(seed, clock=lambda: self._now)
        self.source.open()

    def at(self, elapsed: float) -> SimulatedSource:
        self._now = self._opened + elapsed
        return self.source

    def read(self, gpu: int, elapsed: float) -> DeviceSample:
        return self.at(elapsed).devices[gpu].read(GPU_KEYS, PROCESS_KEYS)

    def watch(self, gpu: int, times: Iterable[float]) -> list[DeviceSample]:
        return [self.read(gpu, elapsed) for elapsed in times]

    def process(self, pid: int, elapsed: float) -> Facts:
        return self.at(elapsed).machine.processes({pid}, PROCESS_KEYS)[pid]


def number(facts: Facts, key: str) -> float:
    """Return a value that must be a number."""
    value = facts.values[key]
    assert isinstance(value, (int, float)), key
    return value


def numbers(samples: Iterable[DeviceSample], key: str) -> list[float]:
    """Return one metric of many samples."""
    return [number(sample, key) for sample in samples]


def percentile(values: Iterable[float], share: float) -> float:
    """Return the value below which that share of the values lies."""
    ranked = sorted(values)
    return ranked[min(len(ranked) - 1, int(share * len(ranked)))]
