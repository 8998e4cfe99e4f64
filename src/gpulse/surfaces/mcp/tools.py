"""The tools themselves: each reads the GPUs or the history once and returns plain data; nothing here changes anything."""

from __future__ import annotations

import os
import time

from ...api import diagnose, snapshot
from ...errors import UsageError
from ...model.select import Wanted, metric_named
from ...sampling.sampler import Sampler
from ...sources.registry import make_source
from ...units import parse_duration, parse_size
from . import answers

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from typing import Any

    from ...store.history import HistoryReader

_WATCH = (2.0, 60.0)  # seconds an assistant may have the GPUs watched
_POINTS = 100
_LONGEST = 90 * 86400.0
_METRICS = ("utilization", "sm_active", "memory_used", "power_draw", "temperature")


class Tools:
    """The tools of one server: `source` is what to read, `history` the file of another history than this machine's."""

    def __init__(self, source: str, history: str | None = None) -> None:
        self._source = source
        self._history = history

    def snapshot(self, gpus: Sequence[str] | None = None, metrics: Sequence[str] | None = None) -> dict[str, Any]:
        """Return one sample of the GPUs and the machine."""
        keys = answers.GPU_KEYS if metrics is None else ("index", "name", *(metric_named(name).key for name in metrics))
        wanted = Wanted(keys, ("pid",), answers.HOST_KEYS, serving=True)
        sampler = Sampler(make_source(self._source), wanted).open()
        try:
            if gpus is not None:
                sampler.choose([str(word) for word in gpus])
            sampler.settle()
            return answers.snapshot_answer(sampler.with_servers(sampler.read()), keys)
        finally:
            sampler.close()

    def processes(self, gpus: Sequence[str] | None = None) -> dict[str, Any]:
        """Return who uses the GPUs."""
        return answers.processes_answer(snapshot(gpus=gpus, source=self._source).gpus)

    def why(self, seconds: float = 10.0, gpus: Sequence[str] | None = None, since: str | None = None) -> dict[str, Any]:
        """Return what limits each GPU."""
        if since is not None:
            now = time.time()
            with self._reader() as reader:
                return answers.why_answer(diagnose(reader.snapshots(now - _back(since), now)))
        long = min(max(float(seconds), _WATCH[0]), _WATCH[1])
        return answers.why_answer(diagnose(seconds=long, gpus=gpus, source=self._source))

    def history(
        self,
        since: str = "2h",
        metrics: Sequence[str] | None = None,
        gpus: Sequence[str] | None = None,
        points: int = 24,
    ) -> dict[str, Any]:
        """Return recorded values, averaged over equal intervals."""
        keys = [*_METRICS] if metrics is None else [metric_named(name).key for name in metrics]
        now = time.time()
        start = now - _back(since)
        with self._reader() as reader:
            known = [
                gpu for gpu in reader.gpus(start, now) if gpus is None or str(gpu.index) in gpus or gpu.uuid in gpus
            ]
            found = reader.series(keys, [gpu.uuid for gpu in known], start, now, min(max(int(points), 1), _POINTS))
        return answers.history_answer(found, known)

    def events(self, since: str = "24h") -> dict[str, Any]:
        """Return what happened, from the history."""
        from ...present.events import event_text

        now = time.time()
        with self._reader() as reader:
            found = reader.events(now - _back(since), now)
        return answers.events_answer(found, [event_text(event) for event in found])

    def free_gpus(self, free_memory: str | None = None) -> dict[str, Any]:
        """Return which GPUs are free, watched for two seconds."""
        from ...analysis.free import WANTED, Requirement, samples_for, watch

        asked = Requirement(1, None if free_memory is None else parse_size(free_memory))
        interval, size = samples_for()
        sampler = Sampler(make_source(self._source), WANTED).open()
        try:
            samples: Iterator[Any] = sampler.stream(interval)
            return answers.free_answer(next(watch(samples, size, asked, os.environ), []))
        finally:
            sampler.close()

    def _reader(self) -> HistoryReader:
        from ...store.history import HistoryReader

        if self._history is None and not make_source(self._source).machine.real:
            raise UsageError(f"{self._source} has no history of its own;", "start gpulse mcp with --file FILE.")
        return HistoryReader(self._history)


def _back(since: str) -> float:
    """Read how far back to go; raise UsageError if it is not between a second and 90 days."""
    seconds = parse_duration(str(since))
    if not 1.0 <= seconds <= _LONGEST:
        raise UsageError(f"since {since!r} is not between 1s and 90d;", "try 2h.")
    return seconds
