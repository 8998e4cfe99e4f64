"""The process table on a grid: titles, rows, cursor, tags, what is missing, and where a click lands."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gpulse.model.catalog import PROCESS_METRICS, Gpu, Process
from gpulse.model.snapshot import Problem, Snapshot
from gpulse.present.theme import Theme
from gpulse.screen.grid import Grid
from gpulse.surfaces.top.history import History
from gpulse.surfaces.top.layout import Area
from gpulse.surfaces.top.panels import processes as panel
from gpulse.surfaces.top.panels.menus import Menu, chosen_signal, menu_of, recipients, signal_targets, type_signal
from gpulse.surfaces.top.signals import SIGNALS
from gpulse.surfaces.top.state import ScreenSettings, State

if TYPE_CHECKING:
    from gpulse.model.metric import Gap

_EVIL = "\x1b[2J\x1b]0;owned\x07\u202egnp.exe\n漢字かな한글 e\u0301 "


@pytest.fixture(autouse=True)
def _me(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(panel, "me", lambda: "ada")


def one(pid: int, user: str = "ada", command: str = "python train.py") -> Process:
    return Process(
        {"pid": pid, "user": user, "type": "C", "command": command, "memory_used": pid << 20, "sm_utilization": 97.0,
         "cpu_percent": 103.4, "host_memory": 11 << 30, "running_time": 71_000.0}
    )  # fmt: skip


def sample(*processes: Process, gaps: dict[str, Gap] | None = None) -> Snapshot:
    return Snapshot(1.0, (Gpu({"index": 0}, gaps or {}, processes=processes),))


def state(snapshot: Snapshot | None, unicode: bool = True) -> State:
    made = State(ScreenSettings(), History(()), Theme(256, unicode))
    made.shown = made.live = snapshot
    return made


def drawn(made: State, columns: int = 100, rows: int = 8) -> Grid:
    grid = Grid(columns, rows)
    panel.paint(grid, Area(0, 0, rows, columns), made)
    return grid


def test_titles_and_a_row() -> None:
    assert drawn(state(sample(one(31871)))).text()[:3] == [
        "  GPU   PID USER TYPE GPU MEM▼   SM   CPU  HOST MEM   TIME COMMAND",
        "  0   31871 ada  C    31.1 GiB 97 % 103 %  11.0 GiB 19h43m python train.py",
        "",
    ]


def test_the_sorted_column_is_marked() -> None:
    made = state(sample(one(1)), unicode=False)
    assert "GPU MEMv" in drawn(made).text()[0]
    made.falling = False
    made.sort = "user"
    assert "USER^" in drawn(made).text()[0]


def test_without_unicode_everything_is_ascii() -> None:
    made = state(sample(*(one(n, command="пуск " * 30) for n in range(1, 40))), unicode=False)
    made.selected, made.tagged, made.group = 5, {5, 6}, "user"
    assert "".join(drawn(made).text()).isascii()


def test_the_selected_row_is_highlighted_to_the_edge_and_seen_without_colours() -> None:
    made = state(sample(one(1), one(2)))
    made.selected = 1
    grid = drawn(made)
    assert grid.text()[2].startswith("▸ 0")
    assert set(grid.styles[2]) == {"selected"}
    assert "selected" not in grid.styles[1]


def test_tagged_rows_are_marked() -> None:
    made = state(sample(one(1), one(2)))
    made.tagged = {2}
    assert [line[:2] for line in drawn(made).text()[1:3]] == [" ●", "  "]


def test_other_users_are_dimmed() -> None:
    grid = drawn(state(sample(one(2, "ada"), one(1, "bob"), Process({"pid": 3}))))
    assert set(grid.styles[2]) <= {"faint", ""}
    assert "user" in grid.styles[1]
    assert "accent" in grid.styles[3], "nobody knows whose it is"


def test_who_looks_has_a_name(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.undo()
    assert panel.me()


def test_heads_of_groups_are_titles_and_say_how_many() -> None:
    made = state(sample(one(1), one(2), one(3, "bob")))
    made.group = "user"
    grid = drawn(made)
    assert [line[line.index("ada") :].split()[-3:] for line in grid.text() if "ada:" in line] == [
        ["ada:", "2", "processes"]
    ]
    assert any("bob: 1 process" in line for line in grid.text())
    assert set(grid.styles[1]) <= {"title", ""}


@pytest.mark.parametrize(
    ("snapshot", "filter", "words"),
    [
        (None, "", "waiting for the first sample"),
        (sample(), "", "no process uses a GPU"),
        (sample(), "ada", "no process uses a GPU"),
        (sample(one(1)), "user:nobody", "no process matches the filter"),
        (sample(one(1)), "usr:nobody", "no process matches the filter (unknown field 'usr')"),
        (sample(gaps={"processes": "unsupported"}), "", "no process uses a GPU"),
    ],
)
def test_an_empty_table_says_why(snapshot: Snapshot | None, filter: str, words: str) -> None:
    made = state(snapshot)
    made.filter = filter
    assert drawn(made).text()[1].strip() == words


def test_lists_that_could_not_be_read_are_said() -> None:
    words = "processes of GPU 0 not shown: no permission"
    text = drawn(state(sample(gaps={"processes": "denied"}))).text()
    assert text[-1].strip() == words
    assert "no process uses a GPU" not in "".join(text)
    both = Snapshot(1.0, (*sample(gaps={"processes": "denied"}).gpus, Gpu({"index": 1}, processes=(one(7), one(8)))))
    text = drawn(state(both), rows=3).text()
    assert text[-1].strip() == words
    assert " 8 " in text[1]


def test_problems_are_said_in_whole_sentences_or_not_at_all() -> None:
    problem = Problem("processes", "names cannot be shown in this container.", "Start the container with --pid=host.")
    made = state(Snapshot(1.0, sample(one(7)).gpus, problems=(problem,)))
    words = "names cannot be shown in this container. Start the container with --pid=host."
    for columns in (30, 40, 100):
        text = [line.strip() for line in drawn(made, columns=columns, rows=8).text()]
        assert words in " ".join(text), columns
        assert " 7 " in drawn(made, columns=columns, rows=8).text()[1]
    assert "container" not in "".join(drawn(made, columns=30, rows=4).text())


def test_the_selected_row_is_always_seen() -> None:
    made = state(sample(*(one(n) for n in range(1, 101))))
    made.sort, made.falling = "pid", False
    for scrolled, selected, first in (
        (0, 3, 1),
        (0, 50, 44),
        (60, 50, 50),
        (95, None, 94),
        (999, 100, 94),
        (40, 777, 41),
    ):
        made.scrolled, made.selected = scrolled, selected
        area = Area(0, 0, 8, 100)
        assert panel.row_at(area, made, 1) == first
        assert made.scrolled == scrolled, "a painter changes nothing"


def test_more_rows_are_marked() -> None:
    made = state(sample(*(one(n) for n in range(1, 101))))
    text = drawn(made).text()
    assert text[0].endswith(" 1-7 of 100")
    assert text[-1].endswith("▼")
    assert not text[1].endswith("▲")
    made.scrolled = 50
    assert drawn(made).text()[1].endswith("▲")
    assert "of" not in drawn(state(sample(one(1)))).text()[0]


@pytest.mark.parametrize(
    ("columns", "titles"),
    [
        (100, "GPU PID USER TYPE GPU MEM▼ SM CPU HOST MEM TIME COMMAND"),
        (70, "GPU PID USER GPU MEM▼ SM CPU HOST MEM TIME COMMAND"),
        (60, "GPU PID USER GPU MEM▼ SM CPU TIME COMMAND"),
        (40, "GPU PID USER GPU MEM▼ COMMAND"),
        (30, "PID GPU MEM▼ COMMAND"),
        (10, "COMMAND"),
    ],
)
def test_a_narrow_screen_does_without_some_columns(columns: int, titles: str) -> None:
    assert " ".join(drawn(state(sample(one(31871))), columns).text()[0].split()) == titles


def test_columns_are_chosen_in_the_settings_and_unknown_ones_ignored() -> None:
    made = state(sample(one(1)))
    made.settings.columns = ["pid", "nonsense", "command", "cpu_percent", "pid"]
    assert drawn(made, 50).text()[0].split() == ["PID", "COMMAND", "CPU"]
    made.settings.columns = []
    drawn(made)


def test_a_click_on_a_title_names_its_column() -> None:
    made = state(sample(one(31871)))
    area = Area(3, 5, 8, 100)
    titles = drawn(made).text()[0]
    for word, key in (
        ("GPU ", "gpu"),
        ("PID", "pid"),
        ("GPU MEM", "memory_used"),
        ("CPU", "cpu_percent"),
        ("COMMAND", "command"),
    ):
        assert panel.column_at(area, made, 5 + titles.index(word)) == key
    assert panel.column_at(area, made, 104) == "command"
    assert panel.column_at(area, made, 4) is None
    assert panel.column_at(area, made, 105) is None


def test_a_click_on_a_row_names_its_process() -> None:
    made = state(sample(one(1), one(2)))
    made.group = "user"
    area = Area(3, 0, 8, 100)
    assert [panel.row_at(area, made, y) for y in range(2, 8)] == [None, None, None, 2, 1, None]


def test_sizes_follow_the_settings() -> None:
    made = state(sample(one(1000)))
    made.settings.decimal = True
    assert "1.0 GB" in drawn(made).text()[1]


def test_long_pids_are_whole() -> None:
    assert " 4194303 " in drawn(state(sample(one(4_194_303)))).text()[1]


_TEXT = st.text(max_size=12) | st.just(_EVIL)
_ANY = st.builds(
    lambda values: Process({key: value for key, value in values.items() if value is not None}),
    st.fixed_dictionaries(
        {
            key: st.none() | (_TEXT if type(metric).__name__ == "Text" else st.floats(0, min(metric.high, 1e15)))
            for key, metric in PROCESS_METRICS.items()
        }
    ),
)


@given(
    st.lists(_ANY, max_size=5),
    st.integers(0, 130),
    st.integers(0, 9),
    st.booleans(),
    st.sampled_from(["", "user", "job"]),
    st.permutations(["gpu", *PROCESS_METRICS]),
    st.integers(-3, 9),
)
def test_any_process_is_drawn_inside_any_area(
    processes: list[Process], columns: int, rows: int, unicode: bool, group: str, keys: list[str], scrolled: int
) -> None:
    made = state(sample(*processes), unicode)
    made.group, made.settings.columns, made.scrolled = group, keys, scrolled
    made.selected = int(processes[0].pid or 0) if processes else None
    grid = Grid(columns + 4, rows + 2)
    area = Area(1, 2, rows, columns)
    panel.paint(grid, area, made)
    outside = [
        grid.chars[row][column]
        for row in range(rows + 2)
        for column in range(columns + 4)
        if not area.holds(row, column)
    ]
    assert set(outside) <= {" "}
    assert all(text.isprintable() for text in grid.text())
    for at in range(rows + 2):
        panel.row_at(area, made, at)
        panel.column_at(area, made, at)


def _menu(made: State) -> Menu:
    made.dialog = "signal"
    return menu_of(made)


def test_the_signal_menu_names_who_and_what() -> None:
    made = state(sample(*(one(n) for n in range(1, 9))))
    made.selected, made.choice = 4, 8
    grid = Grid(60, 20)
    area = Area(0, 0, 20, 60)
    _menu(made).paint(grid, area, made.theme)
    text = grid.text()
    assert any("Send a signal" in line for line in text)
    process = one(4)
    assert any(f" 4  {process.user}  {process.command or process.name}" in line for line in text)
    at = next(y for y, line in enumerate(text) if "9 KILL" in line)
    assert "▸" in text[at]
    assert "selected" in grid.styles[at]
    assert _menu(made).line_at(area, at, 30) == 8
    assert chosen_signal(made) == "KILL"
    assert any("Enter sends KILL (9) to this process" in line for line in text)
    made.tagged = {1, 2, 3, 5, 6, 7}
    assert _menu(made).title == "Send a signal to 6 processes"
    assert [text.split()[0] for text, _ in signal_targets(made)] == ["1", "2", "3", "5", "and"]
    assert signal_targets(made)[-1][0] == "and 2 more"


@pytest.mark.parametrize(
    ("digits", "name"),
    [("9", "KILL"), ("15", "TERM"), ("1", "HUP"), ("2", "INT"), ("19", "STOP"), ("10", "USR1"), ("99", "KILL"), ("159", "KILL")],
)  # fmt: skip
def test_digits_select_a_signal_by_its_number(digits: str, name: str) -> None:
    made = state(sample(one(1)))
    made.selected = 1
    for digit in digits:
        type_signal(made, digit)
    assert chosen_signal(made) == name


def test_a_number_that_no_signal_has_changes_nothing() -> None:
    made = state(sample(one(1)))
    made.choice = 3
    type_signal(made, "0")
    assert (made.choice, made.digits, made.message) == (3, "", "no signal has the number 0")


@pytest.mark.parametrize("rows", range(16))
def test_a_click_in_the_signal_menu_hits_what_is_drawn(rows: int) -> None:
    made = state(sample(one(1)))
    made.selected = 1
    same = {SIGNALS.index(("USR1", "defined by the program")), SIGNALS.index(("USR2", "defined by the program"))}
    for made.choice in (-1, 0, 4, 8, 29, 99):
        grid = Grid(60, rows)
        area = Area(0, 0, rows, 60)
        _menu(made).paint(grid, area, made.theme)
        for y, line in enumerate(grid.text() if rows > 2 else []):
            here = next((at for at, (name, meaning) in enumerate(SIGNALS) if f" {name:<6} {meaning} " in line), None)
            found = _menu(made).line_at(area, y, 30)
            assert found == here or {found, here} <= same or (here is None and found == -1)


def test_only_what_still_runs_gets_a_signal() -> None:
    made = state(sample(one(1), one(2)))
    made.tagged, made.selected = {2, 9}, 1
    assert recipients(made) == [2]
    made.tagged = {9}
    assert recipients(made) == [], "the cursor is no stand-in for what was tagged"
    assert _menu(made).title == "No process to signal"
    made.tagged = set()
    made.live = sample(one(1).replace(running_time=3.0))
    assert recipients(made) == [], "younger than in the sample on screen: another process"
    made.live = None
    assert recipients(made) == []
