"""The whole screen, as somebody last looked at it and found it right."""

from __future__ import annotations

import functools
import time
from collections.abc import Callable, Iterator

import pytest

from gpulse.model.catalog import Gpu, Process
from gpulse.model.event import Event
from gpulse.model.snapshot import Snapshot
from gpulse.present.text import width
from gpulse.screen.grid import Grid
from gpulse.surfaces.top import app
from gpulse.surfaces.top.app import paint
from gpulse.surfaces.top.panels import processes as process_panel
from gpulse.surfaces.top.state import State
from tests.golden import check_golden
from tests.unit.surfaces.top.screens import machine, screen, troubled, watched

SIZES = ((40, 10), (80, 24), (120, 40), (200, 60))


@pytest.fixture(autouse=True)
def _utc(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setattr(process_panel, "me", lambda: "ada")
    monkeypatch.setenv("TZ", "UTC")
    time.tzset()
    yield
    monkeypatch.undo()
    time.tzset()


def no_processes() -> Snapshot:
    sample = watched()[1]
    gpus = tuple(Gpu(dict(gpu.items()), dict(gpu.gaps), state=gpu.state) for gpu in sample.gpus)
    return Snapshot(sample.time, gpus, sample.host, sample.driver)


def with_people(people: list[Process]) -> Snapshot:
    sample = watched()[1]
    first = sample.gpus[0]
    gpu = Gpu(dict(first.items()), dict(first.gaps), state=first.state, processes=tuple(people))
    return Snapshot(sample.time, (gpu,), sample.host, sample.driver)


@functools.cache
def crowd() -> Snapshot:
    return with_people(
        [
            Process({"pid": 1000 + at, "user": f"user{at % 37}", "name": "python", "memory_used": (at + 1) << 20,
                     "type": "C", "running_time": 60.0 * at, "command": f"python train.py --rank {at}"})
            for at in range(5000)
        ]
    )  # fmt: skip


def languages() -> Snapshot:
    commands = (
        "訓練 --データ /資料/画像",
        "אימון --נתונים מסלול",
        "تدريب --بيانات مسار",
        "trä\u0301ning 🚀 --größe 漢",
        "\x1b[31mred\x07\u202eevil\u2066",
        "漢" * 120,
    )
    return with_people(
        [
            Process({"pid": 100 + at, "user": ("山田", "דוד", "أحمد")[at % 3], "name": command.split()[0], "type": "C",
                     "memory_used": (at + 1) << 30, "running_time": 100.0, "command": command})
            for at, command in enumerate(commands)
        ]
    )  # fmt: skip


SAMPLES: dict[str, Callable[[], Snapshot]] = {
    "demo": lambda: watched()[1],
    "troubled": troubled,  # lost, silent, asleep, forbidden and divided ones
    "64": lambda: machine(64),
    "idle": no_processes,
    "5000": crowd,
    "languages": languages,
}


def check_whole(grid: Grid, state: State) -> None:
    assert (grid.columns, grid.rows) == (state.columns, state.rows)
    for row in grid.chars:
        assert sum(width(char) for char in row) == state.columns
        assert all(char.isprintable() for cell in row for char in cell)


def divided() -> Snapshot:
    sample = troubled()
    return Snapshot(sample.time, sample.gpus[-1:], sample.host, sample.driver)


class TestGoldens:
    @pytest.mark.parametrize(("columns", "rows"), SIZES)
    @pytest.mark.parametrize("name", [*SAMPLES, "mig"])
    def test_as_it_was_found_right(self, name: str, columns: int, rows: int) -> None:
        sample = divided() if name == "mig" else SAMPLES[name]()
        state = screen(columns, rows, sample)
        grid = paint(state)
        check_whole(grid, state)
        check_golden(f"top/screen-{name}-{columns}x{rows}", grid.text())

    @pytest.mark.parametrize(("columns", "rows"), SIZES)
    @pytest.mark.parametrize("name", ["demo", "languages"])
    def test_in_ascii(self, name: str, columns: int, rows: int) -> None:
        state = screen(columns, rows, SAMPLES[name](), unicode=False)
        grid = paint(state)
        check_whole(grid, state)
        assert all(line.isascii() for line in grid.text())
        check_golden(f"top/screen-{name}-{columns}x{rows}-ascii", grid.text())

    @pytest.mark.parametrize("dialog", ["help", "settings", "sort", "signal", "details", "filter"])
    def test_with_a_dialog_in_front(self, dialog: str) -> None:
        state = screen(80, 24)
        state.dialog, state.selected, state.editing = dialog, 31871, "user:ada"
        grid = paint(state, lambda pid: {"cwd": "/home/ada", "$PATH": "/bin", "$TOKEN": "s3cret"})
        check_whole(grid, state)
        assert "s3cret" not in "\n".join(grid.text())
        check_golden(f"top/screen-{dialog}-80x24", grid.text())


class TestEvents:
    def test_they_stand_above_the_last_row_newest_first_with_their_age(self) -> None:
        state = screen(120, 40)
        now = state.now
        state.events = [Event(now - 3, "lost", ("2",)), Event(now - 40, "asleep", ("1",))]
        grid = paint(state)
        assert grid.text()[-2] == "3s ago GPU 2 is lost (fell off the bus)   40s ago GPU 1 is asleep"
        assert grid.styles[-2][10] == "critical"

    def test_the_newest_is_cut_with_a_mark_and_an_older_one_left_out(self) -> None:
        state = screen(80, 24)
        state.events = [Event(state.now, "test", note="x" * 200)]
        assert paint(state).text()[-2] == "0s ago " + "x" * 72 + "…"
        state.events = [Event(state.now, "test", note="x" * 30), Event(state.now, "test", note="y" * 60)]
        assert paint(state).text()[-2] == "0s ago " + "x" * 30

    def test_one_from_the_future_is_now(self) -> None:
        state = screen(80, 24)
        state.events = [Event(state.now + 5, "boot")]
        assert "0s ago the machine booted" in paint(state).text()[-2]


class TestThePainter:
    @pytest.mark.parametrize("size", [(0, 0), (1, 1), (2, 50), (400, 3), (7, 7)])
    @pytest.mark.parametrize("dialog", ["", "help", "settings", "sort", "signal", "details", "filter"])
    @pytest.mark.parametrize("name", SAMPLES)
    def test_any_size_is_filled_and_never_left(self, name: str, dialog: str, size: tuple[int, int]) -> None:
        state = screen(*size, SAMPLES[name]())
        state.dialog, state.selected = dialog, 102
        check_whole(paint(state), state)

    def test_a_screen_before_the_first_sample(self) -> None:
        state = screen(80, 24)
        state.live = state.shown = None
        check_whole(paint(state), state)

    def test_painting_changes_nothing_and_says_the_same_again(self) -> None:
        state = screen(120, 40)
        state.selected, state.dialog = 31871, "details"
        before = {key: str(value) for key, value in vars(state).items()}
        first = paint(state)
        assert {key: str(value) for key, value in vars(state).items()} == before
        second = paint(state)
        assert (first.chars, first.styles) == (second.chars, second.styles)

    def test_facts_are_asked_only_for_the_details(self) -> None:
        asked: list[int] = []

        def facts(pid: int) -> dict[str, str]:
            asked.append(pid)
            return {}

        state = screen(80, 24)
        state.selected = 31871
        paint(state, facts)
        assert asked == []
        state.dialog = "details"
        paint(state, facts)
        assert set(asked) == {31871}

    def test_every_panel_and_dialog_that_a_key_opens_is_known(self) -> None:
        for dialog in ("help", "settings", "sort", "signal", "details"):
            plain, opened = screen(80, 24), screen(80, 24)
            opened.dialog = dialog
            assert app.paint(plain).chars != app.paint(opened).chars


class TestThePast:
    def test_events_after_the_moment_on_screen_have_not_happened_yet(self) -> None:
        state = screen(120, 40)
        now = state.now
        state.events = [Event(now - 3, "lost", ("2",)), Event(now - 40, "asleep", ("1",))]
        state.back = 20.0
        state.shown = Snapshot(now - 20, watched()[1].gpus, watched()[1].host, watched()[1].driver)
        assert paint(state).text()[-2] == "20s ago GPU 1 is asleep"

    def test_a_maximized_panel_has_no_event_line(self) -> None:
        state = screen(120, 40)
        state.enlarged = "gpus"
        before = paint(state).text()[-1]
        state.events = [Event(state.now - 3, "lost", ("2",))]
        assert paint(state).text()[-1] == before
