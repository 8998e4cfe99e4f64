"""Recordings as a source: FILE, FILE@START or FILE@START*SPEED, and recordings from elsewhere. May import store and below."""

from __future__ import annotations

import os
import threading
import time

from .. import value
from ..errors import RecordingError, UsageError
from ..model.catalog import Gpu, memory_percent
from ..model.snapshot import Problem, Snapshot
from ..store.recording import PIPE_PATIENCE, Frames, read_pipe, title_of
from ..units import parse_duration
from .base import Device, Machine, Source, file_is_late
from .files import link, names, read_bytes

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from ..model.metric import Value


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
    from ..store.recording import STDIN, is_pipe

    if spec == STDIN and os.path.isfile("/dev/stdin"):
        return ReplaySource("/dev/stdin")
    if not is_pipe(spec):
        return ReplaySource(spec)
    return PipeSource(spec)


def completed(frame: Snapshot) -> Snapshot:
    """Add derived values to recordings that lack them."""
    return frame.replace(gpus=tuple(_complete(gpu) for gpu in frame.gpus))


def _complete(gpu: Gpu) -> Gpu:
    parts = tuple(map(_complete, gpu.instances))
    share = memory_percent(dict(gpu.items())) if gpu.memory_percent is None else gpu.memory_percent
    gaps = gpu.gaps if share is None else {key: gap for key, gap in gpu.gaps.items() if key != "memory_percent"}
    return gpu.replace(memory_percent=share, gaps=gaps, instances=parts)


class RecordedDevice(Device):
    """The identity of a recorded GPU, so that it can be selected by name."""

    def __init__(self, gpu: Gpu) -> None:
        self.identity = dict(gpu.items())
        self._parts = [dict(instance.items()) for instance in gpu.instances]

    def parts(self) -> list[Mapping[str, Value]]:
        return [*self._parts]


_NORMAL: float | None = 1.0


def parse_spec(spec: str) -> tuple[str, float, float | None]:
    """Return path, start in seconds and speed (None: every line); raise UsageError for a wrong part."""
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
    """Yield the whole text as a path, since a name may contain any character, then the text split at its last * into path and speed."""
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


SPEEDS = (0.1, 0.25, 0.5, 1.0, 2.0, 4.0, 8.0, 16.0, 32.0, 64.0)


class Position(value.Value):
    """The position of a player: sample number, seconds into the recording, and `total` seconds if the end is known.

    A `speed` of None plays every sample as fast as possible.
    """

    place: int
    moment: float
    total: float | None
    speed: float | None
    paused: bool
    ended: bool


class Player:
    """Plays samples by the clock, skipping those between two calls; with a speed of None, plays every one.

    At the end, `due_sample` raises StopIteration unless it `loops` or `stays` at the last sample. Thread-safe.
    """

    def __init__(
        self,
        frames: Frames,
        start: float = 0.0,
        speed: float | None = 1.0,
        clock: Callable[[], float] = time.monotonic,
        complete: Callable[[Snapshot], Snapshot] = lambda due_sample: due_sample,
    ) -> None:
        """Start at `start` seconds of a recording that is not empty; `complete` adds derived values to each sample."""
        frames.find(0.0)  # no further: finding a later start may take longer than opening a source may take
        self.stays = self.loops = self._closed = False
        self._complete = complete
        self._frames = frames
        self._speed = speed
        self._clock = clock
        self._lock = threading.RLock()
        self._place = -1  # number of the sample shown last; -1 before the first
        self._from = start  # the time in the recording ...
        self._since = 0.0  # ... and the clock's time at that point
        self._paused = False
        self._read: tuple[int, Snapshot] | None = None

    @property
    def damaged(self) -> list[int]:
        """The numbers of the lines that were left out so far, because they are damaged."""
        return self._frames.damaged

    def due_sample(self) -> Snapshot:
        """Return the sample that is due now; the same object as long as it is the same sample."""
        with self._lock:
            frames = self._frames
            if self._closed:
                raise StopIteration
            if self._place < 0:
                self._begin()
            elif self._paused:
                pass
            elif self._is_last() and (self._speed is None or self._moment() > frames.times[-1]):
                self._finish()
            elif self._speed is None:
                self._go(self._place + 1)
            else:
                self._place = max(self._place, frames.at(self._moment()))
            if self._read is None or self._read[0] != self._place:
                self._read = (self._place, self._complete(frames[self._place]))
            return self._read[1]

    def pause(self) -> None:
        """Pause or resume; after the end, start over."""
        with self._lock:
            anew = self._has_ended()
            self._go_on_from(self._moment())
            self._paused = not self._paused and not anew
            if anew:
                self.jump(0.0)

    def step(self, count: int) -> None:
        """Pause and move by this number of samples; negative moves back."""
        with self._lock:
            self._paused = True
            if self._place < 0:
                self._begin()
            self._is_last()  # finds the sample after this one
            self._go(min(len(self._frames) - 1, max(0, self._place + count)))

    def seek(self, seconds: float) -> None:
        """Move by this number of seconds; negative moves back."""
        with self._lock:
            self.jump(self._moment() + seconds)

    def jump(self, moment: float) -> None:
        """Move to a time in seconds from the start; beyond the end is the last sample."""
        with self._lock:
            place = self._frames.at(moment)
            self._go_on_from(max(0.0, min(moment, self._frames.times[-1])))
            self._place = place - (self._speed is None and not self._paused)  # the next call advances by one sample

    def change_speed(self, steps: int) -> None:
        """Change the speed by this number of steps in SPEEDS; beyond the fastest, every sample is played."""
        with self._lock:
            self._go_on_from(self._moment())
            pace = float("inf") if self._speed is None else self._speed
            for _ in range(abs(steps)):
                others = [speed for speed in SPEEDS if (speed > pace if steps > 0 else speed < pace)]
                pace = (min if steps > 0 else max)(others, default=float("inf") if steps > 0 else pace)
            self._speed = None if pace == float("inf") else pace

    def position(self) -> Position:
        """Return the current position."""
        with self._lock:
            times, place = self._frames.times, max(0, self._place)
            total = times[-1] if self._frames.whole else None
            return Position(place, times[place], total, self._speed, self._paused, self._has_ended())

    def wait(self) -> float | None:
        """Return the seconds until the next sample is due; None if playback is paused or at the end."""
        with self._lock:
            if self._paused or self._has_ended():
                return None
            if self._speed is None or self._is_last():
                return 0.0
            return max(0.0, (self._frames.times[self._place + 1] - self._moment()) / self._speed)

    def survey(self, budget: float) -> bool:
        """Search for the end for at most this number of seconds; return whether it was found."""
        with self._lock:
            self._frames.find(float("inf"), budget)
            return self._frames.whole

    def close(self) -> None:
        """Close the file; safe to call twice. There are no samples afterwards."""
        with self._lock:
            self._closed = True
            self._frames.close()

    def _begin(self) -> None:
        """Show the first sample at or after the start, or the last one."""
        times = self._frames.times
        place = self._frames.at(self._from)
        self._place = place if times[place] >= self._from else min(place + 1, len(times) - 1)
        self._since = self._clock()

    def _finish(self) -> None:
        if self.loops:
            self.jump(0.0)
            self._place = 0
        elif not self.stays:
            raise StopIteration

    def _moment(self) -> float:
        if self._paused or self._speed is None or self._place < 0:
            return self._from
        return self._from + (self._clock() - self._since) * self._speed

    def _go(self, place: int) -> None:
        self._place = place
        self._go_on_from(self._frames.times[place])

    def _go_on_from(self, moment: float) -> None:
        self._from, self._since = moment, self._clock()

    def _is_last(self) -> bool:
        self._frames.find(self._frames.times[max(0, self._place)])
        return self._place >= len(self._frames) - 1

    def _has_ended(self) -> bool:
        return self.stays and not self.loops and self._frames.whole and self._place >= len(self._frames) - 1


_LATE = 10.0  # seconds, or three times what is usual, after which a new sample is missed


class PipeSource(Source):
    """Reads a pipe in a thread. `recorded` returns the newest sample, and raises StopIteration when the pipe has ended."""

    name = "replay"
    patience = PIPE_PATIENCE + 5.0

    def __init__(self, path: str) -> None:
        self.path = path
        self.machine = Machine()
        self._changed = threading.Condition()
        self._newest: Snapshot | None = None
        self._given: Snapshot | None = None
        self._came = self._usual = 0.0
        self._over = False
        self._rivals: tuple[Problem, ...] = ()
        self._error: RecordingError | None = None

    def open(self) -> None:
        threading.Thread(target=self._read, name="gpulse-pipe", daemon=True).start()
        with self._changed:
            self._changed.wait_for(lambda: self._newest is not None or self._over)
            first = self._newest
        if first is None:
            assert self._error is not None
            raise self._error
        self.driver = first.driver
        self.devices = [RecordedDevice(gpu) for gpu in first.gpus]
        self._rivals = rivals(os.getpgrp())

    def recorded(self) -> Snapshot:
        with self._changed:
            assert self._newest is not None
            if self._over and self._given is self._newest:
                raise StopIteration
            self._given = newest = self._newest
            limit = max(_LATE, 3 * self._usual)
            late = time.monotonic() - self._came > limit
        if not late:
            return newest.replace(problems=(*newest.problems, *self._rivals)) if self._rivals else newest
        said = Problem("replay", f"no new sample has come through {title_of(self.path)} for more than {limit:.0f} s.")
        return newest.replace(problems=(*newest.problems, said))

    def _read(self) -> None:
        try:
            for sample in read_pipe(self.path):
                now = time.monotonic()
                with self._changed:
                    self._usual = now - self._came if self._newest is not None else 0.0
                    self._came, self._newest = now, completed(sample)
                    self._changed.notify_all()
        except RecordingError as error:
            self._error = error
        finally:
            with self._changed:
                self._over = True
                self._changed.notify_all()


def rivals(group: int, root: str = "") -> tuple[Problem, ...]:
    """Return a problem if an ssh of the same pipeline reads the terminal: it takes some of the keys that are typed."""
    for pid in filter(str.isdecimal, names(f"{root}/proc")):
        name, _, rest = (read_bytes(f"{root}/proc/{pid}/stat", 4096) or b"").rpartition(b")")
        ours = name.endswith(b"(ssh") and rest.split()[2:3] == [b"%d" % group]
        if ours and link(f"{root}/proc/{pid}/fd/0").startswith(("/dev/pts/", "/dev/tty")):
            return (Problem("replay", "ssh reads the keyboard, too, so that keys are lost.", "Use `ssh -n`."),)
    return ()
