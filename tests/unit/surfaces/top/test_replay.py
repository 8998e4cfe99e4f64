"""Recordings on the screen: which keys move them, what the header says, and looks when they are due."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest

from gpulse.model.select import EVERYTHING
from gpulse.sampling.sampler import Sampler
from gpulse.sources.replay import Player, Position, ReplaySource
from gpulse.surfaces.top.actions import ACTIONS, action_for, help_table, hints
from gpulse.surfaces.top.feeds import REPLAY, ReplayFeed
from gpulse.surfaces.top.history import History
from gpulse.surfaces.top.state import ScreenSettings, State
from tests.unit.recordings import frames, numbers, text_of, write
from tests.unit.surfaces.top.screens import painted, screen


class Shown:
    """A recording of samples a second apart, fed to a state as the app does it."""

    def __init__(self, path: str) -> None:
        self.sampler = Sampler(ReplaySource(f"{path}*0.1"), EVERYTHING).open()
        self.player: Player = self.sampler.source.player  # type: ignore[attr-defined]
        self.state = State(ScreenSettings(), History(["utilization"]))
        self.state.player = self.player
        self.feed = ReplayFeed(self.sampler, self.state, self.player)

    def press(self, *keys: str) -> list[float | None]:
        for key in keys:
            action = action_for(self.state, key)
            assert action is not None
            action.run(self.state)
        samples = self.feed.samples()
        for sample in samples:
            self.state.history.add(sample)
        return numbers(samples)


@pytest.fixture
def shown(tmp_path: Path) -> Iterator[Shown]:
    shown = Shown(write(tmp_path / "x", text_of(frames(300))))
    yield shown
    shown.sampler.close()


def test_no_key_moves_it_in_two_ways() -> None:
    count = Counter(key for action in REPLAY for key in action.keys)
    assert set(count.values()) == {1}


def test_the_help_of_a_recording_has_its_keys_and_none_twice() -> None:
    keys = [key for names, _ in help_table(True) for key in names.split()]
    assert max(Counter(keys).values()) == 1
    assert {key for action in REPLAY for key in action.keys} <= set(keys)
    assert "space pause" in [f"{key} {word}" for key, word in hints(True)]


def test_a_live_screen_keeps_its_keys() -> None:
    state = State(ScreenSettings(), History(["utilization"]))
    assert [action_for(state, action.keys[0]) for action in ACTIONS] == list(ACTIONS)
    assert action_for(state, "no such key") is None


def test_the_same_sample_is_given_once(shown: Shown) -> None:
    assert [shown.press(), shown.press("space"), shown.press()] == [[0], [], []]
    assert shown.press(".") == [1]
    assert shown.press(",") == [0]


def test_after_a_leap_what_led_there_comes_first_and_only_then(shown: Shown) -> None:
    shown.press("space")
    assert shown.press("}", "}") == list(range(60, 121))
    assert shown.press("]") == [*range(70, 131)]
    assert shown.press("[") == [120]  # its charts are full already
    assert shown.press("0") == [0]  # nothing led there


def test_while_it_is_held_nothing_is_waited_for(shown: Shown) -> None:
    shown.press()
    assert shown.feed.patience is not None
    shown.press("space")
    assert shown.feed.patience is None


@pytest.mark.parametrize(
    ("position", "said"),
    [
        (Position(0, 7.5, None, 1.0, False, False), "REPLAY 0:07/... ×1  "),
        (Position(0, 7.5, 3723.0, 0.5, True, False), "REPLAY 0:07.5/1:02:03 ×0.5  PAUSED"),
        (Position(0, 60.0, 60.0, None, False, True), "REPLAY 1:00/1:00 max  end of the recording"),
    ],
)
def test_the_header_says_where_it_is(position: Position, said: str) -> None:
    state = screen(120, 30)
    state.position = position
    assert said in "".join(painted(state).chars[0])
