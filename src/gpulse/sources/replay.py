"""A recording as a source: plays what some machine did, at any speed."""

from __future__ import annotations

import os
import time

from ..errors import RecordingError, UsageError
from ..model.catalog import Gpu
from ..model.derive import memory_percent
from ..model.snapshot import Snapshot
from ..store.recording import read_recording
from ..units import parse_duration
from .base import Device, Machine, Source

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from ..model.metric import Value

_NORMAL: float | None = 1.0


class ReplaySource(Source):
    """Plays FILE, FILE@START or FILE@START*SPEED: from START into it, SPEED times as fast; *max gives every line in turn."""

    name = "replay"

    def __init__(self, spec: str, clock: Callable[[], float] = time.monotonic) -> None:
        self.path, self.start, self.speed = parse_spec(spec)
        self.machine = Machine()
        self._clock = clock
        self._frames: list[Snapshot] = []
        self._opened: float | None = None
        self._next = 0

    def open(self) -> None:
        self._frames = [_completed(frame) for frame in read_recording(self.path)]
        if not self._frames:
            raise RecordingError(f"{self.path} holds no snapshot.", "Record one with `gpulse status --json --watch`.")
        first = self._frames[0].time + self.start
        self._next = next((at for at, frame in enumerate(self._frames) if frame.time >= first), len(self._frames) - 1)
        shown = self._frames[self._next]
        self.driver = shown.driver
        self.devices = [_RecordedDevice(gpu) for gpu in shown.gpus]

    def recorded(self) -> Snapshot | None:
        if self._opened is None or self.speed is None:
            self._opened = self._clock()
            return self._step()
        reached = self._reached()
        if self._next >= len(self._frames) and reached > self._frames[-1].time:
            raise StopIteration
        while self._next < len(self._frames) and self._frames[self._next].time <= reached:
            self._next += 1
        return self._frames[self._next - 1]

    def _reached(self) -> float:
        """Return the moment of the recording that is now."""
        assert self._opened is not None
        assert self.speed is not None
        return self._frames[0].time + self.start + (self._clock() - self._opened) * self.speed

    def _step(self) -> Snapshot:
        if self._next >= len(self._frames):
            raise StopIteration
        self._next += 1
        return self._frames[self._next - 1]


def _completed(frame: Snapshot) -> Snapshot:
    """Add what follows from the recorded values, for recordings whose writer did not."""
    return Snapshot(frame.time, tuple(_complete(gpu) for gpu in frame.gpus), frame.host, frame.driver, frame.problems)


def _complete(gpu: Gpu) -> Gpu:
    parts = tuple(_complete(part) for part in gpu.instances)
    values = dict(gpu.items())
    if gpu.memory_percent is None and (share := memory_percent(values)) is not None:
        values["memory_percent"] = share
    gaps = {key: gap for key, gap in gpu.gaps.items() if key not in values}
    return Gpu(values, gaps, state=gpu.state, since=gpu.since, processes=gpu.processes, instances=parts)


class _RecordedDevice(Device):
    """Who a recorded GPU is, so that it can be chosen by name."""

    def __init__(self, gpu: Gpu) -> None:
        self.identity = dict(gpu.items())
        self._parts = [dict(instance.items()) for instance in gpu.instances]

    def parts(self) -> list[Mapping[str, Value]]:
        return [*self._parts]


def parse_spec(spec: str) -> tuple[str, float, float | None]:
    """Return path, start in seconds and speed (None: every line in turn); raise UsageError for a part that is wrong."""
    path, pace = spec, _NORMAL
    for path, pace in _without_speed(spec):
        if os.path.exists(path):
            return path, 0.0, pace
        before, at, start = path.rpartition("@")
        if at and os.path.exists(before) and "*" not in start:
            return before, parse_duration(start), pace
    before, at, start = path.rpartition("@")
    return (before, parse_duration(start), pace) if at else (path, 0.0, pace)


def _without_speed(spec: str) -> Iterator[tuple[str, float | None]]:
    """Yield the spec as it is, since a name may hold any sign, then with what follows its last * taken for a speed."""
    yield spec, _NORMAL
    rest, star, speed = spec.rpartition("*")
    if not star:
        return
    try:
        pace = None if speed == "max" else float(speed)
        if pace is not None and not 0 < pace < float("inf"):
            raise ValueError
    except ValueError:
        raise UsageError(f"{speed!r} is not a speed;", "write it as replay:FILE*4 or replay:FILE*max.") from None
    yield rest, pace
