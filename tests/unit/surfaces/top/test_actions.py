"""The table of keys: complete, without a key that means two things, and each does what it says."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import pytest

from gpulse.model.catalog import Gpu
from gpulse.model.select import EVERYTHING
from gpulse.model.snapshot import Snapshot
from gpulse.sampling.bus import Subscription
from gpulse.sampling.clock import ManualClock
from gpulse.sampling.sampler import Sampler
from gpulse.sources.simulated.source import SimulatedSource
from gpulse.surfaces.top import app as app_module
from gpulse.surfaces.top import feeds as feed_module
from gpulse.surfaces.top.actions import ACTIONS, BY_KEY, help_table, hints
from gpulse.surfaces.top.history import History
from gpulse.surfaces.top.state import SPANS, ScreenSettings, State


def fresh() -> State:
    """A screen that has watched two GPUs for 100 seconds."""
    preferences = ScreenSettings()
    history = History(preferences.charts)
    for second in range(101):
        history.add(Snapshot(1000.0 + second, (Gpu({"index": 0}), Gpu({"index": 1}))))
    state = State(preferences, history)
    state.live = state.shown = history.sample_at(1100.0)
    state.selected = 7
    return state


def press(state: State, *keys: str) -> str | None:
    effect = None
    for key in keys:
        effect = BY_KEY[key].run(state)
    return effect


def picture(state: State) -> dict[str, Any]:
    """Everything that a key may change."""
    found = {key: value for key, value in vars(state).items() if key not in ("history", "theme", "settings")}
    found |= {"tagged": set(state.tagged), "hidden": set(state.hidden), "settings": state.settings.values()}
    return found


class TestTheTable:
    def test_no_key_is_there_twice(self) -> None:
        count = Counter(key for action in ACTIONS for key in action.keys)
        assert [key for key, times in count.items() if times > 1] == []

    @pytest.mark.parametrize("key", [key for action in ACTIONS for key in action.keys])
    def test_every_key_does_something(self, key: str) -> None:
        state = fresh()
        state.back, state.paused = (20.0, True) if key in ("]", "}", "l") else (0.0, False)
        state.filter = "x" if key == "escape" else ""
        before = picture(state)
        effect = BY_KEY[key].run(state)
        assert effect is not None or picture(state) != before

    def test_the_help_names_every_action_that_is_not_only_moving(self) -> None:
        assert [keys for keys, _ in help_table()] == [" ".join(action.keys) for action in ACTIONS if action.what]
        quiet = {key for action in ACTIONS if not action.what for key in action.keys}
        assert quiet == {"pageup", "pagedown", "home", "end", "G", "left"}

    def test_the_hints_are_keys_that_exist(self) -> None:
        for key, word in hints():
            assert word
            assert key.lower() in BY_KEY or key in BY_KEY

    def test_all_ways_out_leave(self) -> None:
        assert {press(fresh(), key) for key in ("q", "f10", "ctrl-c")} == {"quit"}


class TestDialogs:
    @pytest.mark.parametrize(
        ("key", "name"), [("?", "help"), ("f2", "settings"), ("f6", "sort"), ("enter", "details"), ("/", "filter")]
    )
    def test_a_key_opens_one_at_its_first_line(self, key: str, name: str) -> None:
        state = fresh()
        state.choice = 9
        press(state, key)
        assert state.dialog == name
        assert name == "filter" or state.choice == 0

    def test_the_same_key_closes_it(self) -> None:
        state = fresh()
        press(state, "?", "?")
        assert state.dialog == ""

    def test_the_filter_begins_with_the_one_that_holds(self) -> None:
        state = fresh()
        state.filter = "user:ada"
        press(state, "/")
        assert state.editing == "user:ada"

    def test_escape_undoes_one_thing_at_a_time(self) -> None:
        state = fresh()
        state.dialog, state.enlarged, state.filter, state.tagged = "help", "gpus", "x", {7}
        left = []
        for _ in range(4):
            press(state, "escape")
            left.append((state.dialog, state.enlarged, state.filter, set(state.tagged)))
        assert left == [("", "gpus", "x", {7}), ("", "", "x", {7}), ("", "", "", {7}), ("", "", "", set())]


class TestSignals:
    def test_the_menu_opens_for_the_selected_or_the_tagged(self) -> None:
        state = fresh()
        press(state, "f9")
        assert state.dialog == "signal"
        state = fresh()
        state.selected, state.tagged = None, {5}
        press(state, "K")
        assert state.dialog == "signal"

    def test_k_moves_up_as_in_vi_and_opens_nothing(self) -> None:
        state = fresh()
        assert press(state, "k") == "up"
        assert press(state, "j") == "down"
        assert state.dialog == ""

    @pytest.mark.parametrize(
        ("change", "word"),
        [({"readonly": True}, "--readonly"), ({"back": 5.0}, "not live"), ({"selected": None}, "no process")],
    )
    def test_it_does_not_open_without_reason_and_says_why(self, change: dict[str, Any], word: str) -> None:
        state = fresh()
        for name, value in change.items():
            setattr(state, name, value)
        press(state, "f9")
        assert state.dialog == ""
        assert word in state.message


class TestProcesses:
    def test_sorting_goes_round_the_columns_in_both_directions(self) -> None:
        state = fresh()
        columns = [key for key in state.settings.columns if key != "command"]
        seen = []
        for _ in columns:
            press(state, ">")
            seen.append(state.sort)
        assert sorted(seen) == sorted(columns)
        assert seen[-1] == "memory_used"
        press(state, ">", "<")
        assert state.sort == "memory_used"

    def test_sorting_steps_from_a_column_that_is_not_shown(self) -> None:
        state = fresh()
        state.sort = "pod"
        press(state, ">")
        assert state.sort in state.settings.columns

    def test_sorting_when_the_command_is_the_only_column_changes_nothing(self) -> None:
        state = fresh()
        state.settings.columns = ["command"]
        press(state, ">", "<")
        assert state.sort

    def test_groups_and_the_tree_exclude_each_other(self) -> None:
        state = fresh()
        press(state, "t")
        assert (state.tree, state.group) == (True, "")
        press(state, "g")
        assert (state.tree, state.group, state.message) == (False, "user", "grouped by user")
        press(state, "t")
        assert (state.tree, state.group) == (True, "")

    def test_groups_go_round(self) -> None:
        state = fresh()
        seen = []
        for _ in range(4):
            press(state, "g")
            seen.append(state.group)
        assert seen == ["user", "container", "job", ""]

    def test_a_tag_is_set_and_taken_away_and_the_cursor_moves_on(self) -> None:
        state = fresh()
        assert press(state, "space") == "down"
        assert state.tagged == {7}
        press(state, "space")
        assert state.tagged == set()


class TestThePast:
    def test_steps_are_of_five_seconds_and_a_minute(self) -> None:
        state = fresh()
        seen = []
        for key in ("[", "[", "]", "{", "}"):
            press(state, key)
            seen.append(state.back)
        assert seen == [5, 10, 5, 65, 5]
        assert state.paused

    def test_not_beyond_what_is_known_nor_into_the_future(self) -> None:
        state = fresh()
        press(state, "{", "{", "{")
        assert state.back == 100.0
        press(state, "}", "}", "}")
        assert state.back == 0.0

    def test_without_a_sample_nothing(self) -> None:
        state = State(ScreenSettings(), History([]))
        press(state, "[")
        assert (state.back, state.paused) == (0.0, False)

    def test_live_and_the_end_of_a_pause_return_to_now(self) -> None:
        for key in ("l", "p"):
            state = fresh()
            press(state, "[", key)
            assert (state.back, state.paused) == (0.0, False)


class TestViews:
    def test_each_panel_in_turn_has_the_whole_screen(self) -> None:
        state = fresh()
        seen = []
        for _ in range(4):
            press(state, "e")
            seen.append(state.enlarged)
        assert seen == ["processes", "gpus", "charts", ""]

    def test_spans_and_charted_gpus_go_round(self) -> None:
        state = fresh()
        spans, gpus = [], []
        for _ in SPANS:
            press(state, "s")
            spans.append(state.span)
        for _ in range(3):
            press(state, "m")
            gpus.append(state.chart_gpu)
        assert spans == [*range(1, len(SPANS)), 0]
        assert gpus == [0, 1, None]

    def test_a_charted_gpu_that_is_gone_gives_way(self) -> None:
        state = fresh()
        state.chart_gpu = 9
        press(state, "m")
        assert state.chart_gpu == 0

    @pytest.mark.parametrize("start", [0.1, 0.2, 0.5, 1.0, 7.0, 10.0, 60.0, 3600.0])
    def test_more_often_is_never_slower_and_less_often_never_faster(self, start: float) -> None:
        state = fresh()
        state.settings.interval = start
        assert press(state, "+") == "interval"
        assert state.settings.interval <= start
        state.settings.interval = start
        press(state, "-")
        assert state.settings.interval >= start

    def test_the_pace_stays_between_a_fifth_of_a_second_and_ten(self) -> None:
        state = fresh()
        press(state, *["+"] * 9)
        assert (state.settings.interval, state.message) == (0.2, "every 0.2 s")
        press(state, *["-"] * 9)
        assert (state.settings.interval, state.message) == (10.0, "every 10 s")


class _Typist:
    """A terminal on which a script is typed: each read is what one wait returns, b"" a wake-up that brings no key."""

    def __init__(self, *reads: bytes) -> None:
        self._reads = list(reads)
        self.signals: set[int] = set()
        self.busy = False

    def __call__(self, source: int, target: int) -> _Typist:
        return self

    def __enter__(self) -> _Typist:
        return self

    def __exit__(self, *failure: object) -> None:
        pass

    def wake(self) -> None:
        pass

    def wait(self, timeout: float | None) -> bytes:
        return self._reads.pop(0) if self._reads else b"q"

    def write(self, text: str) -> None:
        pass

    def size(self) -> tuple[int, int]:
        return 80, 24


class _Waiting:
    """A bus that has some samples waiting for its first reader, and then no more."""

    def __init__(self, *samples: Snapshot) -> None:
        self._samples = samples
        self.interval = 1.0
        self.over = False

    def __call__(self, sampler: Sampler, interval: float) -> _Waiting:
        return self

    def subscribe(self, size: int, notify: Callable[[], None]) -> Subscription:
        reader = Subscription(size)
        for sample in self._samples:
            reader.put(sample)
        return reader

    def start(self) -> None:
        pass

    def close(self) -> None:
        pass


def run(monkeypatch: pytest.MonkeyPatch, tty: _Typist, bus: _Waiting) -> State:
    """The state that the app leaves behind; its own clock stands still."""
    monkeypatch.setattr(app_module, "Tty", tty)
    monkeypatch.setattr(feed_module, "Bus", bus)
    monkeypatch.setattr(app_module, "time", SimpleNamespace(time=lambda: 1000.0, monotonic=lambda: 1000.0))
    stream = SimpleNamespace(fileno=lambda: 0)
    monkeypatch.setattr(app_module, "sys", SimpleNamespace(stdin=stream, stdout=stream))
    source = SimulatedSource(clock=lambda: 0.0)
    sampler = Sampler(source, EVERYTHING, clock=ManualClock(990.0)).open()
    preferences = ScreenSettings()
    state = State(preferences, History(preferences.charts))
    app_module.App(sampler, state).run()
    sampler.close()
    return state


class TestTheLoop:
    def test_all_samples_that_wait_are_taken_at_one_wake_up(self, monkeypatch: pytest.MonkeyPatch) -> None:
        """Taken one at a time, the screen would stay behind for good."""
        samples = [Snapshot(time, (Gpu({"index": 0}),)) for time in (1000.0, 1001.0)]
        state = run(monkeypatch, _Typist(b"q"), _Waiting(*samples))
        assert state.live == samples[-1]
        assert state.history.moments() == [990.0, 1000.0, 1001.0]

    def test_a_new_sample_within_a_sequence_does_not_break_it(self, monkeypatch: pytest.MonkeyPatch) -> None:
        state = run(monkeypatch, _Typist(b"\x1b", b"", b"[B", b"q"), _Waiting())
        assert state.selected is not None
        assert (state.back, state.paused) == (0.0, False)
