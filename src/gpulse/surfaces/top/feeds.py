"""Where the data of the screen comes from: live samples, a recording, the history, stacks; and samples as plain lines."""

from __future__ import annotations

import threading
import time
from bisect import bisect_left

from ...errors import GpulseError, RecordingError
from ...present.cells import clock_text
from ...present.words import label
from ...sampling.bus import Bus
from ...units import size_text
from .actions import Action
from .state import SPANS

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from typing import TextIO

    from ...model.catalog import Gpu
    from ...model.event import Event
    from ...model.snapshot import Snapshot
    from ...model.stacks import Stack
    from ...monitor.presence import Presence
    from ...sampling.sampler import Sampler
    from ...sources.replay import Player, Position
    from .state import State

_EVERY = 1.0  # seconds; reading a stack costs 11 ms of CPU
_PATIENCE = 5.0  # seconds to wait for a stack
_FINE, _COARSE = 900.0, 43_200.0  # seconds back: one point per second, then one per 30 s up to the longest chart
_POINTS = 1400  # of the coarse part
_EVENTS = 6 * 3600.0  # seconds back for the event line
_QUICKEST = 0.05  # minimum seconds between two samples: more than 20 frames per second are not visible
_GAP = 5.0  # seconds without a sample before the current one after which charts are filled
_LEAD_IN = 60  # samples to read for that, which takes 80 ms
_SURVEY = 0.03  # seconds to search for the end of a long recording at a time


class LiveFeed:
    """Live samples. `wake` is called in another thread when there is a new one."""

    patience = None  # there is nothing to do until a sample or a key arrives

    def __init__(self, sampler: Sampler, state: State, wake: Callable[[], None]) -> None:
        self._state = state
        self._bus = Bus(sampler, state.settings.interval)
        self._subscription = self._bus.subscribe(2, wake)
        self._bus.start()

    def samples(self) -> list[Snapshot]:
        """Return the new samples."""
        self._bus.interval = self._state.settings.interval
        found = []
        while (fresh := self._subscription.get(0)) is not None:
            found.append(fresh)
        if self._bus.over:
            self._state.message = "The recording has ended."
        return found

    def close(self) -> None:
        """Stop sampling."""
        self._bus.close()


class LiveStack:
    """Reads the stacks of one process of this user at a time, and calls `done` in its own thread when there is something new.

    `stacks` and `problem`, why there are none, are those of `pid`. A process of somebody else is not read.
    """

    def __init__(self, done: Callable[[], None]) -> None:
        self.pid: int | None = None
        self.stacks: Sequence[Stack] = ()
        self.problem = ""
        self._done = done
        self._changed = threading.Event()
        self._thread: threading.Thread | None = None

    def watch(self, pid: int | None) -> None:
        """Read this process from now on; None to stop."""
        if pid == self.pid:
            return
        self.pid, self.stacks, self.problem = pid, (), ""
        self._changed.set()
        if pid is not None and self._thread is None:
            self._thread = threading.Thread(target=self._run, name="gpulse-stack", daemon=True)
            self._thread.start()

    @property
    def run(self) -> Presence | None:
        """What a Monitor in the process says of its run now; reading its file takes 50 µs."""
        from ...monitor.presence import presence_of

        return None if self.pid is None else presence_of(self.pid)

    def _run(self) -> None:
        while True:
            self._changed.clear()
            pid = self.pid
            again = pid is not None and self._read(pid)
            self._changed.wait(_EVERY if again else None)

    def _read(self, pid: int) -> bool:
        """Read once; return whether to do so again."""
        from ...sources.py_spy import StacksUnavailable, is_own, read_stacks

        if not is_own(pid):
            return False
        stacks, problem = [], ""
        try:
            stacks = read_stacks(pid, patience=_PATIENCE)
        except StacksUnavailable as error:
            problem = str(error)
        if pid == self.pid:
            self.stacks, self.problem = stacks, problem
            self._done()
        return not problem


class Recall:
    """Reads the history in its own thread and calls `done` there when it is complete.

    `series` are runs of points, oldest first: times, and values by UUID and metric. Empty if there is no history.
    """

    def __init__(self, keys: Sequence[str], done: Callable[[], None], path: str | None = None) -> None:
        self.series: list[tuple[Sequence[float], dict[tuple[str, str], Sequence[float]]]] = []
        self.events: list[Event] = []
        self.ready = False
        self._keys = tuple(keys)
        self._done = done
        self._path = path
        threading.Thread(target=self._read, name="gpulse-recall", daemon=True).start()

    def _read(self) -> None:
        from ...store.history import HistoryReader

        now = time.time()
        try:
            with HistoryReader(self._path) as reader:
                for start, end, points in ((now - _COARSE, now - _FINE, _POINTS), (now - _FINE, now, int(_FINE))):
                    found = reader.series(self._keys, None, start, end, points)
                    values: dict[tuple[str, str], Sequence[float]] = {(one.uuid, one.key): one.mean for one in found}
                    if found:
                        self.series.append((found[0].times, values))
                self.events = reader.events(now - _EVENTS, now)
        except (GpulseError, OSError):
            return  # no readable history: the screen starts empty
        self.ready = True
        self._done()


def stream_lines(sampler: Sampler, interval: float, out: TextIO) -> None:
    """Write a line for every sample until the sampler or the reader ends it."""
    for snapshot in sampler.stream(interval):
        out.write(one_line(snapshot) + "\n")
        out.flush()


def one_line(snapshot: Snapshot) -> str:
    """Return a sample in one line: the time, then each GPU's use, memory, heat and power."""
    return "  ".join([clock_text(snapshot.time), *(_gpu(gpu) for gpu in snapshot.gpus)])


def _gpu(gpu: Gpu) -> str:
    name = label(gpu)
    if gpu.state != "ok":
        return f"{name}: {gpu.state}"
    parts = [
        "-" if gpu.utilization is None else f"{gpu.utilization:.0f}%",
        "-" if gpu.memory_used is None else size_text(gpu.memory_used),
        "-" if gpu.temperature is None else f"{gpu.temperature:.0f}C",
        "-" if gpu.power_draw is None else f"{gpu.power_draw:.0f}W",
    ]
    return f"{name}: {' '.join(parts)}"


def _do(move: Callable[[Player], None]) -> Callable[[State], str | None]:
    def run(state: State) -> None:
        if state.player is not None:
            move(state.player)

    return run


# These take precedence over the same keys in ACTIONS, whose actions need a live machine.
REPLAY = (
    Action(("space", "p", "z"), "pause or resume", _do(lambda player: player.pause()), "pause"),
    Action((".",), "next sample", _do(lambda player: player.step(1)), "step"),
    Action((",",), "previous sample", _do(lambda player: player.step(-1))),
    Action(("]", "right"), "10 seconds forward", _do(lambda player: player.seek(10)), "+10 s"),
    Action(("[", "left"), "10 seconds back", _do(lambda player: player.seek(-10))),
    Action(("}",), "1 minute forward", _do(lambda player: player.seek(60))),
    Action(("{",), "1 minute back", _do(lambda player: player.seek(-60))),
    Action(("0", "^"), "go to the start", _do(lambda player: player.jump(0.0))),
    Action(("$", "l"), "go to the end", _do(lambda player: player.jump(float("inf")))),
    Action(("+", "="), "faster", _do(lambda player: player.change_speed(1)), "faster"),
    Action(("-",), "slower", _do(lambda player: player.change_speed(-1))),
)


class ReplayFeed:
    """The samples of a recording, read in the app's thread: nothing is read ahead, so keys take effect immediately."""

    def __init__(self, sampler: Sampler, state: State, player: Player) -> None:
        self._sampler = sampler
        self._state = state
        self._player = player
        self._place = -1
        self._looked = 0.0
        self._surveyed = False
        player.stays = True

    @property
    def patience(self) -> float | None:
        """Seconds until the next sample is due; None if only a key can change something."""
        if not self._surveyed:
            return 0.0
        due = self._player.wait()
        return None if due is None else max(due, self._looked + _QUICKEST - time.monotonic(), 0.0)

    def samples(self) -> list[Snapshot]:
        """Return the sample that is due if it is new, and after a seek also those before it.

        A problem with the file is shown as the message.
        """
        try:
            self._surveyed = self._surveyed or self._player.survey(_SURVEY)
            sample = self._sampler.read()
        except RecordingError as error:
            self._state.message = str(error)
            return []
        finally:
            self._looked = time.monotonic()
            self._state.position = self._player.position()
        before, self._place = self._place, self._state.position.place
        if self._place == before:
            return []
        leapt = self._place not in (before - 1, before + 1) and self._is_bare(sample.time)
        return [*self._lead_in(self._state.position), sample] if leapt else [sample]

    def _is_bare(self, moment: float) -> bool:
        times = self._state.history.times
        at = bisect_left(times, moment)
        return at == 0 or moment - times[at - 1] > _GAP

    def _lead_in(self, position: Position) -> list[Snapshot]:
        """Return the samples of the charts' time span, so that charts are not empty after a seek."""
        span = SPANS[self._state.span][0]
        moments = [position.moment - span * (_LEAD_IN - at) / _LEAD_IN for at in range(_LEAD_IN)]
        found: dict[int, Snapshot] = {}
        try:
            for moment in moments:
                if moment >= 0:
                    self._player.jump(moment)
                    sample = self._sampler.read()
                    found[self._player.position().place] = sample
        except RecordingError:
            pass  # reported when playback reaches it
        self._player.jump(position.moment)
        return [sample for place, sample in found.items() if place < position.place]

    def close(self) -> None:
        """Do nothing: there is no background thread."""
