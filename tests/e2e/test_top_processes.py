"""Processes on the live screen: the tree, options, the mouse, and signals."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.e2e.test_terminal import ENTER, PATIENCE
from tests.e2e.top_screen import (
    DOWN,
    ENTER_KEY,
    ESC,
    F9,
    Top,
    select_the_only_process,
    using,
)

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
            top.until(lambda: "PID▼" in top.titles and "setup" in top.footer)
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
