"""The player: held, stepped, sought and hurried, by a clock that a test turns."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from gpulse.sampling.clock import ManualClock
from gpulse.sources.replay import SPEEDS, Player
from gpulse.store.recording import Frames
from tests.unit.recordings import frames, text_of, write


class Show:
    """A player of samples a second apart, each with its number as utilization."""

    def __init__(self, path: str, speed: float | None = 1.0, start: float = 0.0) -> None:
        self.clock = ManualClock()
        self.player = Player(Frames(path), start, speed, self.clock.monotonic)
        self.player.stays = True

    def after(self, seconds: float) -> float | None:
        self.clock.sleep(seconds)
        return self.player.due_sample().gpus[0].utilization


@pytest.fixture
def path(tmp_path: Path) -> str:
    return write(tmp_path / "x.ndjson", text_of(frames(100)))


@pytest.fixture
def show(path: str) -> Iterator[Show]:
    show = Show(path)
    yield show
    show.player.close()


def test_a_pause_holds_and_loses_no_time(show: Show) -> None:
    assert [show.after(0), show.after(3.5)] == [0, 3]
    show.player.pause()
    assert [show.after(0), show.after(50)] == [3, 3]
    assert show.player.position().paused
    show.player.pause()
    assert [show.after(0.4), show.after(0.2)] == [3, 4]


def test_it_can_be_moved_before_the_first_sample(path: str) -> None:
    for move, sample in ((Player.pause, 40), (lambda player: player.seek(5), 45), (lambda player: player.step(1), 41)):
        show = Show(path, start=40)
        show.clock.sleep(500)
        move(show.player)
        assert show.after(0) == sample
        show.player.close()


def test_a_step_holds_and_goes_one_sample(show: Show) -> None:
    show.after(0)
    seen = []
    for count in (1, 1, 1, -1, -100):
        show.player.step(count)
        seen.append(show.after(7))
    assert seen == [1, 2, 3, 2, 0]
    assert show.player.position().paused


def test_seeking_moves_by_seconds_and_time_goes_on_from_there(show: Show) -> None:
    show.after(0)
    show.player.seek(10)
    assert [show.after(0), show.after(2)] == [10, 12]
    show.player.seek(-5)
    assert [show.after(0), show.after(1)] == [7, 8]
    show.player.seek(-1000)
    assert [show.after(0), show.after(1)] == [0, 1]


def test_seeking_while_it_is_held_stays_held(show: Show) -> None:
    show.after(0)
    show.player.pause()
    show.player.seek(60)
    assert [show.after(0), show.after(9)] == [60, 60]


def test_start_and_end_can_be_jumped_to(show: Show) -> None:
    show.after(5)
    show.player.jump(float("inf"))
    assert [show.after(0), show.after(100)] == [99, 99]
    assert show.player.position().ended
    show.player.jump(0)
    assert [show.after(0), show.after(1)] == [0, 1]
    assert not show.player.position().ended


def test_the_speed_changes_what_follows_and_not_what_was(show: Show) -> None:
    assert [show.after(0), show.after(4)] == [0, 4]
    show.player.change_speed(2)
    assert show.player.position().speed == 4
    assert [show.after(0), show.after(2)] == [4, 12]
    show.player.change_speed(-3)
    assert show.player.position().speed == 0.5
    assert show.after(2) == 13


def test_beyond_the_fastest_is_every_sample_in_turn_and_back(show: Show) -> None:
    show.after(0)
    show.player.change_speed(50)
    assert show.player.position().speed is None
    assert [show.after(0) for _ in range(3)] == [1, 2, 3]
    show.player.seek(20)
    assert [show.after(0) for _ in range(2)] == [23, 24]
    show.player.jump(0)
    assert [show.after(0) for _ in range(2)] == [0, 1]
    show.player.pause()
    assert [show.after(0) for _ in range(2)] == [1, 1]
    show.player.pause()
    show.player.change_speed(-1)
    assert show.player.position().speed == SPEEDS[-1]
    show.player.change_speed(-50)
    assert show.player.position().speed == SPEEDS[0]


def test_an_odd_speed_goes_to_its_neighbours(path: str) -> None:
    for steps, speed in ((1, 4.0), (-1, 2.0)):
        show = Show(path, speed=3.0)
        show.player.change_speed(steps)
        assert show.player.position().speed == speed
        show.player.close()


@pytest.mark.parametrize("speed", [1.0, None])
def test_at_the_end_it_stays_stops_or_begins_anew(path: str, speed: float | None) -> None:
    show = Show(path, speed=speed, start=99)
    assert [show.after(0), show.after(500), show.after(500)] == [99, 99, 99]
    show.player.stays = False
    with pytest.raises(StopIteration):
        show.after(1)
    show.player.loops = True
    assert [show.after(1), show.after(1), show.after(1)] == [0, 1, 2]
    show.player.close()


def test_going_on_after_the_end_begins_anew(show: Show) -> None:
    show.after(0)
    show.after(500)
    show.player.pause()
    assert [show.after(0), show.after(1)] == [0, 1]
    assert not show.player.position().paused


def test_it_says_when_the_next_sample_is_due(show: Show) -> None:
    show.after(0)
    show.after(0.25)
    assert show.player.wait() == pytest.approx(0.75)
    show.player.change_speed(1)
    assert show.player.wait() == pytest.approx(0.375)
    show.player.pause()
    assert show.player.wait() is None
    show.player.pause()
    show.player.jump(float("inf"))
    assert show.player.wait() is None


def test_the_total_is_told_once_the_end_is_found(show: Show) -> None:
    show.after(0)
    assert show.player.position().total is None
    while not show.player.survey(0.0):
        pass
    assert show.player.position().total == 99


def test_the_same_sample_is_the_same_object(show: Show) -> None:
    show.after(0)
    assert show.player.due_sample() is show.player.due_sample()


def test_one_that_is_closed_has_no_samples(show: Show) -> None:
    show.after(0)
    show.player.close()
    with pytest.raises(StopIteration):
        show.player.due_sample()


def test_two_threads_may_look_and_move_at_once(path: str) -> None:
    player = Player(Frames(path), speed=None)
    player.stays = True
    wrong: list[BaseException] = []

    def use(move: bool) -> None:
        try:
            for at in range(300):
                if move and at % 2:
                    player.pause()
                    player.seek(7)
                elif move:
                    player.step(-3)
                    player.jump(at % 90)
                else:
                    assert player.due_sample().gpus
                    assert 0 <= player.position().moment <= 99
        except BaseException as error:  # noqa: BLE001  # told by the test itself
            wrong.append(error)

    threads = [threading.Thread(target=use, args=(move,)) for move in (True, False, True, False)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    player.close()
    assert wrong == []
