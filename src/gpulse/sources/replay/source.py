"""A recording as a source, played at any speed."""

from __future__ import annotations

import os
import time

from ...errors import RecordingError
from ...model.catalog import Gpu, memory_percent
from ...model.snapshot import Snapshot
from ...store.recording import Frames
from ..base import Device, Machine, Source, file_is_late
from .player import Player
from .spec import parse_spec

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from ...model.metric import Value


class ReplaySource(Source):
    """Plays FILE, FILE@START or FILE@START*SPEED: from START on, at SPEED; *max plays every line.

    `player` controls the playback once the source is open.
    """

    name = "replay"

    def __init__(self, spec: str, clock: Callable[[], float] = time.monotonic) -> None:
        self.path, self.start, self.speed = parse_spec(spec)
        self.machine = Machine()
        self.player: Player | None = None
        self._clock = clock
        self.late = file_is_late(self.path)

    def open(self) -> None:
        frames = Frames(self.path)
        try:
            self.player = Player(frames, self.start, self.speed, self._clock, completed)
            if not len(frames):
                raise RecordingError(
                    f"{frames.path} contains no samples.",
                    "Record some with Monitor(JsonlSink(path)).",
                    option="Record some with `gpulse record -o FILE`.",
                )
            first = frames[0]
        except RecordingError:
            frames.close()
            raise
        self.driver = first.driver
        self.devices = [RecordedDevice(gpu) for gpu in first.gpus]

    def close(self) -> None:
        if self.player is not None:
            self.player.close()

    def recorded(self) -> Snapshot | None:
        assert self.player is not None
        return self.player.due_sample()


def replay_source(spec: str) -> Source:
    """Return the source that plays a file, or shows what comes through a pipe as it comes; - is standard input."""
    from ...store.recording import STDIN, is_pipe

    if spec == STDIN and os.path.isfile("/dev/stdin"):
        return ReplaySource("/dev/stdin")
    if not is_pipe(spec):
        return ReplaySource(spec)
    from .pipe_source import PipeSource

    return PipeSource(spec)


def completed(frame: Snapshot) -> Snapshot:
    """Add derived values to recordings that lack them."""
    return frame.replace(gpus=tuple(_complete(gpu) for gpu in frame.gpus))


def _complete(gpu: Gpu) -> Gpu:
    parts = tuple(_complete(part) for part in gpu.instances)
    values = dict(gpu.items())
    if gpu.memory_percent is None and (share := memory_percent(values)) is not None:
        values["memory_percent"] = share
    gaps = {key: gap for key, gap in gpu.gaps.items() if key not in values}
    return Gpu(values, gaps, state=gpu.state, since=gpu.since, processes=gpu.processes, instances=parts)


class RecordedDevice(Device):
    """The identity of a recorded GPU, so that it can be selected by name."""

    def __init__(self, gpu: Gpu) -> None:
        self.identity = dict(gpu.items())
        self._parts = [dict(instance.items()) for instance in gpu.instances]

    def parts(self) -> list[Mapping[str, Value]]:
        return [*self._parts]
