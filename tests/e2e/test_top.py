"""The live screen on a real pseudo-terminal, as a person uses it."""

from __future__ import annotations

import fcntl
import os
import re
import signal
import struct
import subprocess
import sys
import termios
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from gpulse.model.codec import to_line
from gpulse.model.select import EVERYTHING
from gpulse.present.terminal import QUERY
from gpulse.sampling.clock import ManualClock
from gpulse.sampling.sampler import Sampler
from gpulse.sources.simulated.source import SimulatedSource
from tests.e2e.lab import environment
from tests.e2e.test_terminal import ENTER, HIDE, LEAVE, PATIENCE, SHOW, Terminal, check_left_as_found, steady
from tests.fake_nvml import Clock, Scenario

pyte = pytest.importorskip("pyte")

F1, F2, F6, F9, F10 = b"\x1bOP", b"\x1bOQ", b"\x1b[17~", b"\x1b[20~", b"\x1b[21~"
DOWN, ESC, ENTER_KEY, TAB = b"\x1b[B", b"\x1b", b"\r", b"\t"
MOUSE_ON, MOUSE_OFF = b"\x1b[?1000h", b"\x1b[?1000l"
COLOUR = re.compile(rb"\x1b\[[0-9;]*\b(?:3[0-8]|4[0-8]|9[0-7]|10[0-7])[0-9;]*m")
ESCAPE = re.compile(rb"\x1b\[[0-9;?]*[a-zA-Z]")
DEMO_COMMANDS = ("vllm", "finetune", "torchrun", "ipykernel", "train_vision")


class Top(Terminal):
    """`gpulse top` on a terminal of its own, with a configuration of its own."""

    def __init__(
        self,
        folder: Path,
        *arguments: str,
        scenario: Scenario | None = None,
        columns: int = 100,
        rows: int = 30,
        clock: Clock | None = None,
        **environ: str,
    ) -> None:
        where = () if scenario is not None else ("--demo",)
        env = environment(scenario or Scenario.load("h200-idle"), folder)
        env |= {"GPULSE_CONFIG": str(folder / "config.toml"), "TZ": "UTC"} | environ
        env |= {} if clock is None else clock.environment
        if any(argument.startswith(("replay:", "--source")) for argument in arguments):
            where = ()
        super().__init__(env, "top", *where, *arguments, columns=columns, rows=rows)
        self.before: list[Any] = termios.tcgetattr(self._master)

    def __enter__(self) -> Top:
        return self

    @property
    def attributes(self) -> list[Any]:
        return termios.tcgetattr(self._master)

    @property
    def header(self) -> str:
        return self.lines[0]

    @property
    def footer(self) -> str:
        return self.lines[-1]

    @property
    def titles(self) -> str:
        """The head of the process table."""
        return next((line for line in self.lines if "PID" in line and "COMMAND" in line), "")

    @property
    def table(self) -> list[list[str]]:
        """The words of every process row."""
        at = self.lines.index(self.titles) if self.titles else len(self.lines)
        found = [line.replace("▸", " ").replace("●", " ").split() for line in self.lines[at + 1 :]]
        return [words for words in found if len(words) > 5 and words[0].isdecimal() and words[1].isdecimal()]

    def opened(self) -> Top:
        self.until(lambda: bool(self.table) and "F1 help" in self.footer)
        return self

    def click(self, column: int, row: int) -> None:
        self.press(b"\x1b[<0;%d;%dM\x1b[<0;%d;%dm" % (column + 1, row + 1, column + 1, row + 1))

    def resize(self, columns: int, rows: int) -> None:
        self.screen.resize(rows, columns)
        fcntl.ioctl(self._master, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))

    def hang_up(self) -> None:
        os.close(self._master)
        self._master = os.open(os.devnull, os.O_RDONLY)


def check_given_back(top: Top) -> None:
    check_left_as_found(top)
    assert top.raw.count(ENTER) >= 1
    assert top.attributes == top.before
    assert top.raw.rfind(MOUSE_OFF) > top.raw.rfind(MOUSE_ON)
    assert top.raw.rstrip().endswith(LEAVE)


@pytest.fixture
def child() -> Iterator[subprocess.Popen[bytes]]:
    """A process that only waits to be ended."""
    process = subprocess.Popen(["/bin/sleep", "600"])
    yield process
    process.kill()
    process.wait()


def using(pid: int) -> Scenario:
    """A GPU with one process on it, and so none that a test could hit by mistake."""
    return Scenario.load("h200-idle").process(gpu=0, pid=pid, memory="4 GiB", type="C", sm=20)


def select_the_only_process(top: Top, pid: int) -> None:
    top.until(lambda: [words[1] for words in top.table] == [str(pid)])
    top.press(DOWN)
    top.until(lambda: "▸" in top.text)


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

    def test_it_grows_and_shrinks_without_leftovers(self, tmp_path: Path) -> None:
        with Top(tmp_path, columns=200, rows=60) as top:
            top.opened()
            top.press(b"p")
            top.until(lambda: "PAUSED" in top.header and "p pause" in top.footer)
            wide = top.text
            for columns, rows in ((40, 10), (80, 24), (200, 60)):
                top.resize(columns, rows)
                top.until(lambda rows=rows: "PAUSED" in top.header and "F1 help" in top.lines[rows - 1])  # type: ignore[misc]
            top.until(lambda: top.text == wide)


LAUNCHER = "import subprocess, sys, time; [subprocess.Popen(['/bin/sleep', '600']) for _ in range(2)]; print(flush=True); time.sleep(600)"


@pytest.fixture
def launched() -> Iterator[tuple[int, list[int]]]:
    """A launcher that uses no GPU, and its two children."""
    process = subprocess.Popen([sys.executable, "-c", LAUNCHER], stdout=subprocess.PIPE)
    assert process.stdout is not None
    process.stdout.readline()
    children = [int(pid) for pid in Path(f"/proc/{process.pid}/task/{process.pid}/children").read_text().split()]
    yield process.pid, children
    for pid in (*children, process.pid):
        os.kill(pid, signal.SIGKILL)
    process.wait()
    process.stdout.close()


class TestTheTree:
    def test_the_launcher_stands_above_its_processes_and_cannot_be_signaled(
        self, tmp_path: Path, launched: tuple[int, list[int]]
    ) -> None:
        launcher, (one, other) = launched
        scenario = using(one).process(gpu=0, pid=other, memory="1 GiB", type="C")
        with Top(tmp_path, "--tree", scenario=scenario, rows=40, columns=160) as top:
            top.until(lambda: "└ /bin/sleep 600" in top.text)
            at = top.lines.index(top.titles) + 1
            rows = top.lines[at : at + 3]
            assert rows[0].split()[0] == str(launcher)
            assert LAUNCHER[:20] in rows[0]
            assert "├ /bin/sleep 600" in rows[1]
            assert f" {one} " in rows[1]
            assert f" {other} " in rows[2]
            top.click(20, at)
            top.press(F9)
            top.until(lambda: "no process selected" in top.footer)
            top.press(DOWN)
            top.until(lambda: any(line.startswith("▸") and f" {one} " in line for line in top.lines))


class TestStartingAsAsked:
    def test_sorted_and_filtered(self, tmp_path: Path) -> None:
        with Top(tmp_path, "--filter", "user:ada", "--sort", "pid", columns=120) as top:
            top.opened()
            assert [words[2] for words in top.table] == ["ada"] * 2
            assert [words[1] for words in top.table] == sorted(words[1] for words in top.table)
            assert "PID▲" in top.titles
            assert "filter user:ada: 2 of 7" in top.titles
            assert "/ user:ada" in top.footer
            top.press(ESC)
            top.until(lambda: "/ filter" in top.footer and len(top.table) > 2)

    def test_grouped(self, tmp_path: Path) -> None:
        with Top(tmp_path, "--group", "user", rows=40) as top:
            top.until(lambda: "ada: 2 processes" in top.text)

    @pytest.mark.parametrize(
        ("words", "said"),
        [
            (("--sort", "memroy_used"), "unknown column 'memroy_used' (did you mean 'memory_used'?)"),
            (("--filter", "usr:ada"), "unknown field 'usr'"),
            (("--group", "usr"), "unknown value 'usr' (did you mean 'user'?)"),
            (("--tree", "--group", "user"), "--tree and --group cannot be combined"),
        ],
    )
    def test_a_mistake_is_said_before_the_screen_opens(self, tmp_path: Path, words: tuple[str, ...], said: str) -> None:
        with Top(tmp_path, *words) as top:
            assert top.wait() == 2
            assert said in " ".join(top.text.split())
            assert ENTER not in top.raw


class TestTheMouse:
    def test_the_bottom_line_and_the_menus_take_clicks(self, tmp_path: Path) -> None:
        with Top(tmp_path) as top:
            top.opened()
            top.click(top.footer.index("sort"), 29)
            top.until(lambda: "Sort by" in top.text)
            row = next(at for at, line in enumerate(top.lines) if "│" in line and "PID" in line)
            column = top.lines[row].index("PID")
            top.click(column, row)
            top.until(lambda: "▸ PID" in top.text)
            top.click(column, row)
            top.until(lambda: "PID▼" in top.titles and "setup" in top.footer)  # a frame arrives in pieces
            top.click(top.footer.index("setup"), 29)
            top.until(lambda: "Settings" in top.text)
            top.click(0, 0)
            top.until(lambda: "Settings" not in top.text)
            top.click(top.footer.index("quit"), 29)
            assert top.wait() == 0


class TestSignals:
    def test_a_process_is_ended_with_f9_and_enter(self, tmp_path: Path, child: subprocess.Popen[bytes]) -> None:
        with Top(tmp_path, scenario=using(child.pid)) as top:
            select_the_only_process(top, child.pid)
            top.press(F9)
            top.until(lambda: "Enter sends TERM (15) to this process" in top.text)
            assert any(f"{child.pid}  " in line and "/bin/sleep 600" in line and "│" in line for line in top.lines)
            assert child.poll() is None
            top.press(ENTER_KEY)
            top.until(lambda: f"sent TERM to {child.pid}" in top.text)
            assert child.wait(PATIENCE) == -signal.SIGTERM

    @pytest.mark.parametrize(
        ("keys", "number"), [(b"9", signal.SIGKILL), (b"2", signal.SIGINT), (b"\x1b[A" * 6, signal.SIGKILL)]
    )
    def test_another_signal_is_chosen_by_its_number_or_with_the_arrows(
        self, tmp_path: Path, child: subprocess.Popen[bytes], keys: bytes, number: signal.Signals
    ) -> None:
        with Top(tmp_path, scenario=using(child.pid)) as top:
            select_the_only_process(top, child.pid)
            top.press(F9)
            top.until(lambda: "Send a signal" in top.text)
            top.press(keys)
            top.until(lambda: f"Enter sends {number.name.removeprefix('SIG')} ({number:d})" in top.text)
            assert child.poll() is None
            top.press(ENTER_KEY)
            assert child.wait(PATIENCE) == -number

    def test_a_signal_is_chosen_and_sent_with_two_clicks(self, tmp_path: Path, child: subprocess.Popen[bytes]) -> None:
        with Top(tmp_path, scenario=using(child.pid), rows=40) as top:
            select_the_only_process(top, child.pid)
            top.click(top.footer.index("kill"), len(top.lines) - 1)
            top.until(lambda: "Send a signal" in top.text)
            row = next(at for at, line in enumerate(top.lines) if " 2 INT" in line)
            column = top.lines[row].index("INT")
            top.click(column, row)
            top.until(lambda: "Enter sends INT (2)" in top.text)
            assert child.poll() is None
            top.click(column, row)
            assert child.wait(PATIENCE) == -signal.SIGINT

    def test_a_second_signal_goes_to_the_process_the_menu_names(self, tmp_path: Path) -> None:
        first, second = (subprocess.Popen(["/bin/sleep", str(600 + at)]) for at in range(2))
        scenario = using(first.pid).process(gpu=0, pid=second.pid, memory="1 GiB", type="C")
        try:
            with Top(tmp_path, scenario=scenario, rows=40) as top:
                top.until(lambda: [words[1] for words in top.table] == [str(first.pid), str(second.pid)])
                top.press(DOWN + F9)
                top.until(lambda: "Send a signal" in top.text)
                assert any("│" in line and "sleep 600" in line for line in top.lines)
                top.press(b"18")
                top.until(lambda: "Enter sends CONT" in top.text)
                top.press(ENTER_KEY)
                top.until(lambda: f"sent CONT to {first.pid}" in top.text)
                row = next(at for at, line in enumerate(top.lines) if f" {second.pid} " in line)
                top.click(30, row)
                top.until(lambda: any("▸" in line and f" {second.pid} " in line for line in top.lines))
                top.press(F9)
                top.until(lambda: any("│" in line and "sleep 601" in line for line in top.lines))
                top.press(ENTER_KEY)
                top.until(lambda: "sent TERM to" in top.text)
                assert f"sent TERM to {second.pid}" in top.text
                assert second.wait(PATIENCE) == -signal.SIGTERM
                assert first.poll() is None
        finally:
            for process in (first, second):
                process.kill()
                process.wait()

    def test_k_moves_the_cursor_and_opens_nothing(self, tmp_path: Path) -> None:
        with Top(tmp_path) as top:
            top.opened()
            top.press(b"jj")
            top.until(lambda: "▸" in top.text)
            second = next(line for line in top.lines if line.startswith("▸")).split()[2]
            top.press(b"k")
            top.until(lambda: next(line for line in top.lines if line.startswith("▸")).split()[2] != second)
            assert "signal" not in top.text.lower()

    def test_processes_that_are_not_of_this_machine_are_left_alone(self, tmp_path: Path) -> None:
        with Top(tmp_path) as top:
            top.opened()
            top.press(DOWN + F9)
            top.until(lambda: "not on this machine" in top.footer)
            assert "Send a signal" not in top.text

    def test_escape_sends_nothing(self, tmp_path: Path, child: subprocess.Popen[bytes]) -> None:
        with Top(tmp_path, scenario=using(child.pid)) as top:
            select_the_only_process(top, child.pid)
            top.press(b"K")
            top.until(lambda: "Send a signal" in top.text)
            top.press(ESC)
            top.until(lambda: "Send a signal" not in top.text)
            top.press(b"q")
            assert top.wait() == 0
            assert child.poll() is None

    def test_a_screen_that_only_reads_refuses(self, tmp_path: Path, child: subprocess.Popen[bytes]) -> None:
        with Top(tmp_path, "--readonly", scenario=using(child.pid)) as top:
            select_the_only_process(top, child.pid)
            assert "read only" in top.header
            top.press(F9)
            top.until(lambda: "--readonly" in top.footer)
            top.press(ENTER_KEY)
            top.until(lambda: f"Process {child.pid}" in top.text)
            assert "Signal process" not in top.text
            top.press(b"qq")
            assert top.wait() == 0
            assert child.poll() is None


class TestLeaving:
    @pytest.mark.parametrize("key", [b"q", F10, b"\x03"], ids=["q", "F10", "Ctrl-C"])
    def test_a_key_leaves_the_terminal_as_it_was(self, tmp_path: Path, key: bytes) -> None:
        with Top(tmp_path) as top:
            top.opened()
            assert top.attributes != top.before
            top.press(key)
            assert top.wait() == 0
            check_given_back(top)

    @pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP, signal.SIGINT])
    def test_a_signal_leaves_the_terminal_as_it_was(self, tmp_path: Path, number: signal.Signals) -> None:
        with Top(tmp_path) as top:
            top.opened()
            top.process.send_signal(number)
            assert top.wait() == 0
            check_given_back(top)

    def test_a_terminal_that_goes_away_ends_it_quietly(self, tmp_path: Path) -> None:
        with Top(tmp_path) as top:
            top.opened()
            top.hang_up()
            assert top.process.wait(PATIENCE) == 0

    def test_ctrl_c_leaves_while_a_dialog_is_open(self, tmp_path: Path) -> None:
        with Top(tmp_path) as top:
            top.opened()
            top.press(F1)
            top.until(lambda: "─ Help " in top.text)
            top.press(b"\x03")
            assert top.wait() == 0
            check_given_back(top)

    def test_ctrl_z_gives_the_terminal_to_the_shell_and_fg_brings_the_screen_back(self, tmp_path: Path) -> None:
        script = 'set -m; "$@"; echo STOPPED $?; read answer; fg >/dev/null; echo ENDED $?'
        run = [sys.executable, "-m", "gpulse", "top", "--demo"]
        with Shell(tmp_path, script, *run) as shell:
            shell.opened()
            shell.press(b"\x1a")
            shell.until(lambda: b"STOPPED 148" in shell.raw)
            assert shell.attributes == shell.before
            assert shell.raw.count(ENTER) == shell.raw.count(LEAVE) == 1
            assert shell.raw.rfind(SHOW) > shell.raw.rfind(HIDE)
            assert shell.raw.rfind(MOUSE_OFF) > shell.raw.rfind(MOUSE_ON)
            shell.screen.reset()
            shell.press(b"\r")
            shell.until(lambda: shell.raw.count(ENTER) == 2)
            shell.opened()
            assert shell.screen.cursor.hidden
            assert shell.attributes != shell.before
            shell.press(b"q")
            shell.until(lambda: b"ENDED 0" in shell.raw)
            shell.wait()
            assert shell.attributes == shell.before
            assert shell.raw.count(ENTER) == shell.raw.count(LEAVE) == 2


class Shell(Top):
    """The same under a shell with jobs."""

    def __init__(self, folder: Path, script: str, *command: str) -> None:
        real = sys.executable
        wrapper = folder / "python"
        words = " ".join(f"'{word}'" for word in command)
        wrapper.write_text(f"#!/bin/bash\nset -- {words}\n{script}\n")
        wrapper.chmod(0o755)
        try:
            sys.executable = str(wrapper)  # what Terminal starts
            super().__init__(folder)
        finally:
            sys.executable = real


class TestTrouble:
    def test_a_call_that_hangs_leaves_keys_working_and_is_said(self, tmp_path: Path) -> None:
        with Top(tmp_path, "-n", "0.2", scenario=Scenario.load("hang"), columns=120, rows=40) as top:
            top.until(lambda: "not responding" in top.text)
            assert sum("not responding" in line for line in top.lines) == 1
            top.press(F1)
            top.until(lambda: "─ Help " in top.text)
            top.press(ESC)
            top.until(lambda: "─ Help " not in top.text)
            top.press(b"q")
            assert top.wait() == 0
            check_given_back(top)

    def test_gpus_that_stop_answering_are_said_and_q_still_leaves(self, tmp_path: Path) -> None:
        clock = Clock(tmp_path)
        scenario = Scenario.load("boards/h100").driver(gpus=2)
        scenario.fault(function="nvmlDeviceGet*", gpu="0-1", hang="60s", since="2s")
        with Top(tmp_path, "-n", "0.1", scenario=scenario, clock=clock) as top:
            top.until(lambda: top.text.count("GiB") >= 2)
            clock.set(3.0)
            top.until(lambda: top.text.count("not responding") >= 2)
            top.press(b"q")
            assert top.wait() == 0
            check_given_back(top)

    def test_a_gpu_that_is_lost_is_shown_as_lost_and_told_as_an_event(self, tmp_path: Path) -> None:
        clock = Clock(tmp_path)
        scenario = Scenario.load("boards/h100").driver(gpus=4).lose(2, since="2s").xid(gpu=2, code=79, at="4s")
        with Top(tmp_path, "-n", "0.5", scenario=scenario, clock=clock, rows=40) as top:
            top.until(lambda: "F1 help" in top.footer and top.text.count("GiB") >= 4)
            assert "lost" not in top.text
            for _ in range(2):  # XIDs are recorded from the second sample on, and not of a GPU that is lost already
                shown = top.lines[0]
                top.until(lambda before=shown: top.lines[0] != before)  # type: ignore[misc]
            clock.set(3.0)
            top.until(lambda: any(line.startswith("lost") for line in top.lines))
            clock.set(5.0)
            top.until(lambda: re.search(r"s ago GPU 2 .*XID 79", top.text) is not None)
            assert sum("°C" in line for line in top.lines) >= 2
            top.press(b"q")
            assert top.wait() == 0

    def test_names_from_outside_never_act_on_the_terminal(self, tmp_path: Path) -> None:
        evil = subprocess.Popen(["\x1b[31mevil\x07\x1b]0;owned\x07\u202e\x9b5m", "600"], executable="/bin/sleep")
        try:
            scenario = Scenario.load("garbage").process(gpu=0, pid=evil.pid, memory="1 GiB", type="C")
            with Top(tmp_path, scenario=scenario, columns=160, rows=50) as top:
                top.until(lambda: bool(top.table))
                top.press(DOWN)
                top.until(lambda: "▸" in top.text)
                top.press(ENTER_KEY)
                top.until(lambda: "Environment" in top.text)
                assert "evil" in top.text
                top.press(b"qq")
                assert top.wait() == 0
                drawn = top.raw.rpartition(b"\x1b[?1006l")[0]  # leaving may cut the last frame anywhere
                drawn = drawn.replace(QUERY.encode(), b"")
                rest = re.sub(rb"\x1b(\[[0-9;?]*)?$", b"", ESCAPE.sub(b"", drawn)).decode("utf-8", "ignore")
                assert not re.search("[\x00-\x09\x0b\x0c\x0e-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]", rest)
                assert b"\x1b[31m" not in top.raw
                assert top.screen.title == ""
        finally:
            evil.kill()
            evil.wait()


class TestViews:
    def test_64_gpus_at_80x24_can_all_be_reached(self, tmp_path: Path) -> None:
        with Top(tmp_path, scenario=Scenario.load("fleet64"), columns=80, rows=24) as top:
            top.until(lambda: "F1 help" in top.footer and "↓38 more" in top.text)
            assert " 63 " not in top.text
            top.press(TAB + b"\x1b[F")
            top.until(lambda: " 63 " in top.text)
            top.press(ENTER_KEY)
            top.until(lambda: top.lines[1].startswith("GPU 63 "))
            top.press(b"\x1b[D")
            top.until(lambda: top.lines[1].startswith("GPU 62 "))
            top.press(ESC)
            top.until(lambda: "UTIL" in top.lines[1])
            top.press(b"q")
            assert top.wait() == 0

    def test_the_host_opens_to_its_top_processes(self, tmp_path: Path) -> None:
        with Top(tmp_path, columns=120, rows=40) as top:
            top.opened()
            top.press(b"n")
            top.until(lambda: "Context switches" in top.text and "no GPU" in top.text)
            top.press(ESC)
            top.until(lambda: "Context switches" not in top.text)

    def test_a_gpu_that_hangs_does_not_block_its_view(self, tmp_path: Path) -> None:
        scenario = (
            Scenario.load("boards/h100").driver(gpus=2).fault(function="nvmlDevice*", gpu=1, hang="600s", since="2s")
        )
        clock = Clock(tmp_path)
        with Top(tmp_path, "-n", "0.2", scenario=scenario, clock=clock, columns=120, rows=40) as top:
            top.until(lambda: "F1 help" in top.footer and top.text.count("GiB") >= 2)
            clock.set(3.0)
            top.until(lambda: "not responding" in top.text)
            top.press(b"\x1b[C\x1b[C" + ENTER_KEY)
            top.until(lambda: top.lines[1].startswith("GPU 1 "))
            assert "not responding" in top.lines[2]
            top.press(b"\x1b[D")
            top.until(lambda: top.lines[1].startswith("GPU 0 "))
            top.press(b"q")
            top.until(lambda: "util" in top.text)
            top.press(b"q")
            assert top.wait() == 0


class TestPlainPlaces:
    LINE = re.compile(r"\d\d:\d\d:\d\d  0: \d+% \S+ \SiB \d+C \d+W")

    def test_a_terminal_that_can_do_nothing_gets_one_line_a_sample(self, tmp_path: Path) -> None:
        with Top(tmp_path, "-n", "0.1", scenario=steady(), TERM="dumb") as top:
            top.until(lambda: top.raw.count(b"\n") >= 3)
            top.press(b"\x03")
            assert top.wait() == 0
            assert b"\x1b" not in top.raw
            assert b"Traceback" not in top.raw
            assert all(self.LINE.fullmatch(line) for line in top.lines[:2])

    def test_a_pipe_gets_one_line_a_sample_until_its_reader_leaves(self, tmp_path: Path) -> None:
        env = environment(steady(), tmp_path) | {"GPULSE_CONFIG": str(tmp_path / "none"), "TERM": "xterm"}
        process = subprocess.Popen(
            [sys.executable, "-m", "gpulse", "top", "-n", "0.1"],
            env=env,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        assert process.stdout is not None
        assert process.stderr is not None
        with process:
            try:
                lines = [process.stdout.readline().rstrip("\n") for _ in range(3)]
                process.stdout.close()
                process.wait(PATIENCE)
                assert "Traceback" not in process.stderr.read()
            finally:
                process.kill()
        assert all(self.LINE.fullmatch(line) for line in lines), lines

    def test_no_color_leaves_the_colours_alone(self, tmp_path: Path) -> None:
        with Top(tmp_path, NO_COLOR="1") as top:
            top.opened()
            assert not COLOUR.search(top.raw)
        with Top(tmp_path) as top:
            top.opened()
            assert COLOUR.search(top.raw)

    def test_a_terminal_without_unicode_gets_only_ascii(self, tmp_path: Path) -> None:
        named = subprocess.Popen(["träin-漢字", "600"], executable="/bin/sleep")
        try:
            with Top(tmp_path, scenario=using(named.pid), LANG="C", rows=40) as top:
                top.until(lambda: "ELP" in top.footer.upper() and bool(top.table))
                top.press(DOWN)
                for key, title in (
                    (ENTER_KEY, "Environment"),
                    (F1, "show this help"),
                    (F2, "Fahrenheit"),
                    (F6, "Sort by"),
                ):
                    top.press(key)
                    top.until(lambda title=title: title in top.text)  # type: ignore[misc]
                    top.press(b"q")
                    top.until(lambda title=title: title not in top.text)  # type: ignore[misc]
                top.press(b"[")
                top.until(lambda: "PAUSED" in top.header)
                top.press(b"q")
                assert top.wait() == 0
                assert top.raw.isascii()
        finally:
            named.kill()
            named.wait()


class TestConfiguration:
    def test_a_broken_file_is_one_sentence_and_stays_as_it_is(self, tmp_path: Path) -> None:
        config = tmp_path / "config.toml"
        config.write_text("[top\ninterval = 1\n")
        with Top(tmp_path) as top:
            assert top.wait() == 2
            assert ENTER not in top.raw
            assert b"Traceback" not in top.raw
            assert "config.toml" in top.text.replace("\n", "")
            assert "line 1" in top.text.replace("\n", "")
        assert config.read_text() == "[top\ninterval = 1\n"

    def test_a_setting_that_cannot_be_is_said_and_the_rest_holds(self, tmp_path: Path) -> None:
        (tmp_path / "config.toml").write_text('[top]\nsort = "nonsense"\nfahrenheit = true\n')
        with Top(tmp_path) as top:
            top.until(lambda: "nonsense" in top.footer and bool(top.table))
            assert "°F" in top.text
            assert "GPU MEM▼" in top.titles

    def test_saved_settings_are_there_at_the_next_start(self, tmp_path: Path) -> None:
        config = tmp_path / "config.toml"
        config.write_text("# mine\n[other]\nkey = 1\n")
        with Top(tmp_path) as top:
            top.opened()
            assert "°C" in top.text
            top.press(F2)
            top.until(lambda: "Fahrenheit" in top.text)
            for _ in range(2):
                top.press(DOWN)
            top.press(b" ")
            top.until(lambda: bool(re.search(r"Fahrenheit +on", top.text)))
            top.press(ESC)
            top.until(lambda: "─ Settings " not in top.text)
            top.press(b"w")
            top.until(lambda: "saved to" in top.footer)
            top.press(b"q")
            assert top.wait() == 0
        assert config.read_text().startswith("# mine\n[other]\nkey = 1\n")
        with Top(tmp_path) as top:
            top.opened()
            assert "°F" in top.text
            assert "°C" not in top.text

    def test_the_order_and_the_panels_chosen_by_keys_are_saved_too(self, tmp_path: Path) -> None:
        with Top(tmp_path) as top:
            top.opened()
            top.press(b"<<<")
            top.until(lambda: "PID▼" in top.titles)
            top.press(b"rH")
            top.until(lambda: "PID▲" in top.titles and "iowait" not in top.text)
            top.press(b"w")
            top.until(lambda: "saved to" in top.footer)
            top.press(b"q")
            assert top.wait() == 0
        with Top(tmp_path) as top:
            top.opened()
            assert "PID▲" in top.titles
            assert "iowait" not in top.text

    def test_a_file_that_cannot_be_written_is_said_and_nothing_ends(self, tmp_path: Path) -> None:
        with Top(tmp_path, GPULSE_CONFIG="/proc/nowhere/config.toml") as top:
            top.opened()
            top.press(b"w")
            top.until(lambda: "cannot be written" in top.footer)
            assert top.process.poll() is None


class TestRecordings:
    @pytest.fixture
    def recording(self, tmp_path: Path) -> Path:
        clock = ManualClock(1_700_000_000.0)
        sampler = Sampler(SimulatedSource(clock=clock.monotonic), EVERYTHING, clock=clock).open()
        lines = []
        for _ in range(6):
            lines.append(to_line(sampler.read()))
            clock.sleep(10.0)
        path = tmp_path / "run.ndjson"
        path.write_text("".join(f"{line.rstrip()}\n" for line in lines))
        return path

    def test_one_is_played_to_its_last_sample_and_then_says_that_it_is_over(
        self, tmp_path: Path, recording: Path
    ) -> None:
        with Top(tmp_path, "--source", f"replay:{recording}*max", "-n", "0.1") as top:
            top.until(lambda: "end of the recording" in top.header)
            assert top.header.endswith("22:14:10")
            top.press(b"," * 5)
            top.until(lambda: "22:13:20" in top.header)
            top.press(b"q")
            assert top.wait() == 0
            check_given_back(top)
