"""Recordings on the live screen: playback keys, and samples by their time in the recording."""

from __future__ import annotations

import time
from bisect import bisect_left

from ...errors import RecordingError
from .actions import Action
from .state import SPANS

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from ...model.snapshot import Snapshot
    from ...sampling.sampler import Sampler
    from ...sources.replay.source import Player, Position
    from .state import State

_QUICKEST = 0.05  # minimum seconds between two samples: more than 20 frames per second are not visible
_GAP = 5.0  # seconds without a sample before the current one after which charts are filled
_POINTS = 60  # samples to read for that, which takes 80 ms
_SURVEY = 0.03  # seconds to search for the end of a long recording at a time


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
        moments = [position.moment - span * (_POINTS - at) / _POINTS for at in range(_POINTS)]
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
