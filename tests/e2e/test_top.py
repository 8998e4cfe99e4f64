"""The live screen on a real pseudo-terminal, as a person uses it."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

import pytest

from tests.e2e.test_terminal import steady
from tests.e2e.top_screen import (
    DEMO_COMMANDS,
    DOWN,
    ENTER_KEY,
    ESC,
    F1,
    F2,
    F6,
    MOUSE_ON,
    Top,
    check_given_back,
    select_the_only_process,
    using,
)
from tests.fake_nvml import Clock, Scenario


class TestWhatIsShown:
    def test_the_gpus_and_the_processes_of_the_demo(self, tmp_path: Path) -> None:
        with Top(tmp_path) as top:
            top.opened()
            assert "8 × H100" in top.header
            assert all(command in top.text for command in DEMO_COMMANDS)
            assert sum(" W" in line and "GiB" in line and "°C" in line for line in top.lines) == 8
            assert top.screen.cursor.hidden
            assert MOUSE_ON in top.raw

    def test_a_process_of_the_driver_with_its_command(self, tmp_path: Path, child: subprocess.Popen[bytes]) -> None:
        with Top(tmp_path, scenario=using(child.pid)) as top:
            top.until(lambda: any(words[1] == str(child.pid) for words in top.table))
            assert "sleep 600" in top.text
            assert "4.0 GiB" in top.text

    def test_a_machine_without_processes_says_so(self, tmp_path: Path) -> None:
        with Top(tmp_path, scenario=Scenario.load("h200-idle")) as top:
            top.until(lambda: "F1 help" in top.footer)
            assert "no process" in top.text.lower()

    def test_new_values_arrive_by_themselves(self, tmp_path: Path) -> None:
        clock = Clock(tmp_path)
        scenario = steady().gpu(0, temperature="steps(0:41, 2s:57)")
        with Top(tmp_path, "-n", "0.1", scenario=scenario, clock=clock) as top:
            top.until(lambda: "41°C" in top.text)
            clock.set(3.0)
            top.until(lambda: "57°C" in top.text and "41°C" not in top.text)


class TestSorting:
    def test_by_a_key(self, tmp_path: Path) -> None:
        with Top(tmp_path) as top:
            top.opened()
            assert "GPU MEM▼" in top.titles
            top.press(b"<")
            top.until(lambda: "TYPE▼" in top.titles)
            top.press(b"<<")
            top.until(lambda: "PID▼" in top.titles)
            pids = [int(words[1]) for words in top.table]
            assert pids == sorted(pids, reverse=True)
            assert len(pids) > 5
            top.press(b"r")
            top.until(lambda: "PID▲" in top.titles)
            turned = [int(words[1]) for words in top.table]  # the table may be too short for all of them
            assert turned == sorted(turned)

    def test_by_a_click_on_a_title_and_a_second_one_turns_it_round(self, tmp_path: Path) -> None:
        with Top(tmp_path) as top:
            top.opened()
            row = top.lines.index(top.titles)
            top.click(top.titles.index("PID"), row)
            top.until(lambda: "PID▼" in top.titles)
            pids = [int(words[1]) for words in top.table]
            assert pids == sorted(pids, reverse=True)
            top.click(top.titles.index("PID"), row)
            top.until(lambda: "PID▲" in top.titles)
            turned = [int(words[1]) for words in top.table]  # the table may be too short for all of them
            assert turned == sorted(turned)

    def test_by_the_menu(self, tmp_path: Path) -> None:
        with Top(tmp_path) as top:
            top.opened()
            top.press(F6)
            top.until(lambda: "Sort by" in top.text)
            top.press(DOWN)
            top.press(ENTER_KEY)
            top.until(lambda: "Sort by" not in top.text and "PID▼" in top.titles)

    def test_a_click_on_a_process_selects_it(self, tmp_path: Path) -> None:
        with Top(tmp_path) as top:
            top.opened()
            row = next(at for at, line in enumerate(top.lines) if "train_vision" in line)
            top.click(30, row)
            top.until(lambda: any("▸" in line and "40562" in line for line in top.lines))


class TestFiltering:
    def test_what_is_typed_is_shown_and_then_holds(self, tmp_path: Path) -> None:
        with Top(tmp_path) as top:
            top.opened()
            top.press(b"/user:adx")
            top.until(lambda: "filter: user:adx" in top.footer)
            top.press(b"\x7fa")
            top.until(lambda: "filter: user:ada" in top.footer)
            top.press(ENTER_KEY)
            top.until(lambda: bool(top.table) and {words[2] for words in top.table} == {"ada"})
            assert len(top.table) == 2
            top.press(ESC)
            top.until(lambda: len(top.table) > 2)

    def test_escape_leaves_the_processes_as_they_were(self, tmp_path: Path) -> None:
        with Top(tmp_path) as top:
            count = len(top.opened().table)
            top.press(b"/zzz")
            top.until(lambda: "filter: zzz" in top.footer)
            top.press(ESC)
            top.until(lambda: "F1 help" in top.footer and len(top.table) == count)

    def test_keys_that_mean_something_elsewhere_are_only_typed(self, tmp_path: Path) -> None:
        with Top(tmp_path) as top:
            top.opened()
            top.press("/q?wé".encode())
            top.until(lambda: "filter: q?wé" in top.footer)
            assert not (tmp_path / "config.toml").exists()


class TestDialogs:
    @pytest.mark.parametrize(
        ("key", "title"),
        [(F1, "─ Help "), (b"?", "─ Help "), (F2, "─ Settings "), (F6, "─ Sort by "), (ENTER_KEY, "─ Process ")],
    )
    @pytest.mark.parametrize("close", [ESC, b"q"], ids=["escape", "q"])
    def test_one_opens_and_closes(self, tmp_path: Path, key: bytes, title: str, close: bytes) -> None:
        with Top(tmp_path) as top:
            top.opened()
            top.press(key)
            top.until(lambda: title in top.text)
            top.press(close)
            top.until(lambda: title not in top.text)
            assert top.process.poll() is None

    def test_the_details_tell_the_command_and_the_memory_of_the_selected_process(
        self, tmp_path: Path, child: subprocess.Popen[bytes]
    ) -> None:
        with Top(tmp_path, scenario=using(child.pid)) as top:
            select_the_only_process(top, child.pid)
            top.press(ENTER_KEY)
            top.until(lambda: f"Process {child.pid}" in top.text and "Environment" in top.text)
            assert "/bin/sleep 600" in top.text
            assert "4.0 GiB" in top.text

    def test_keys_work_while_one_is_open_at_the_smallest_size(self, tmp_path: Path) -> None:
        with Top(tmp_path, columns=40, rows=10) as top:
            top.until(lambda: "H100" in top.header or "demo" in top.header)
            for key, title in ((F1, "Help"), (F2, "Settings"), (F6, "Sort by")):
                top.press(key)
                top.until(lambda title=title: title in top.text)  # type: ignore[misc]
                top.press(ESC)
                top.until(lambda title=title: f"─ {title} " not in top.text)  # type: ignore[misc]
            top.press(b"q")
            assert top.wait() == 0


class TestPanels:
    def test_one_gets_the_whole_screen_and_gives_it_back(self, tmp_path: Path) -> None:
        with Top(tmp_path) as top:
            top.opened()
            top.press(b"e")
            top.until(lambda: "PID" in top.lines[1])
            assert "UTIL" not in top.text
            top.press(ESC)
            top.until(lambda: "UTIL" in top.text and "PID" in top.text)

    @pytest.mark.parametrize(
        ("key", "mark"), [(b"H", "iowait"), (b"C", "Utilization"), (b"P", "COMMAND")], ids=["host", "charts", "table"]
    )
    def test_one_is_hidden_and_shown(self, tmp_path: Path, key: bytes, mark: str) -> None:
        with Top(tmp_path) as top:
            top.opened()
            assert mark in top.text
            top.press(key)
            top.until(lambda: mark not in top.text)
            top.press(key)
            top.until(lambda: mark in top.text)


class TestThePast:
    def test_a_pause_holds_the_screen_and_live_returns(self, tmp_path: Path) -> None:
        clock = Clock(tmp_path)
        scenario = steady().gpu(0, temperature="steps(0:41, 2s:57)")
        with Top(tmp_path, "-n", "0.1", scenario=scenario, clock=clock) as top:
            top.until(lambda: "41°C" in top.text)
            top.press(b"p")
            top.until(lambda: "PAUSED" in top.header)
            clock.set(3.0)
            top.press(F1)
            top.until(lambda: "─ Help " in top.text)
            top.press(ESC)
            top.until(lambda: "─ Help " not in top.text)
            assert "41°C" in top.text
            top.press(b"l")
            top.until(lambda: "PAUSED" not in top.header and "57°C" in top.text)

    def test_a_step_back_shows_an_old_sample_and_says_so(self, tmp_path: Path) -> None:
        clock = Clock(tmp_path)
        scenario = steady().gpu(0, temperature="steps(0:41, 2s:57)")
        with Top(tmp_path, "-n", "0.1", scenario=scenario, clock=clock) as top:
            top.until(lambda: "41°C" in top.text)
            first = top.header.split()[-1]
            clock.set(3.0)
            top.until(lambda: "57°C" in top.text and top.header.split()[-1] > first)
            top.press(b"[")
            top.until(lambda: "PAUSED" in top.header and " ago " in top.header)
            assert "41°C" in top.text
            assert top.header.split()[-1] == first
            top.press(b"l")
            top.until(lambda: "PAUSED" not in top.header and "57°C" in top.text)


class TestResizing:
    @pytest.mark.parametrize(("columns", "rows"), [(40, 10), (80, 24), (200, 60)])
    def test_the_screen_is_drawn_anew_at_the_size_it_gets(self, tmp_path: Path, columns: int, rows: int) -> None:
        with Top(tmp_path, columns=100, rows=30) as top:
            top.opened()
            top.resize(columns, rows)
            ends = re.compile(r"demo .*\d\d:\d\d:\d\d")
            top.until(lambda: bool(ends.fullmatch(top.header)) and len(top.header) == columns)
            top.until(lambda: top.footer.startswith("F1 help") and "PID" in top.text)
            assert sum("%" in line for line in top.lines) >= 3

    @pytest.mark.parametrize(("columns", "rows"), [(20, 5), (3, 2), (1, 1)])
    def test_one_too_small_to_show_anything_is_no_reason_to_end(self, tmp_path: Path, columns: int, rows: int) -> None:
        with Top(tmp_path, columns=100, rows=30) as top:
            top.opened()
            top.resize(columns, rows)
            top.until(lambda: top.raw.count(b"\x1b[2J") >= 2)
            top.resize(100, 30)
            top.until(lambda: "F1 help" in top.footer and bool(top.table))
            top.press(b"q")
            assert top.wait() == 0
            check_given_back(top)
