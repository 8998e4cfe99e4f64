"""gpulse on a real pseudo-terminal, as a person sees it."""

from __future__ import annotations

import fcntl
import re
import signal
import struct
import sys
import termios
from pathlib import Path

import pytest

from tests.e2e.lab import Lab, environment
from tests.e2e.terminal import CommandTerminal
from tests.fake_nvml import Clock, Scenario

pyte = pytest.importorskip("pyte")

PATIENCE = 60.0
HIDE, SHOW = b"\x1b[?25l", b"\x1b[?25h"
ENTER, LEAVE = b"\x1b[?1049h", b"\x1b[?1049l"
BEGIN, END = b"\x1b[?2026h", b"\x1b[?2026l"  # of a frame
COLOUR = re.compile(rb"\x1b\[[0-9;]+m")


class Terminal(CommandTerminal):
    """gpulse on a terminal of its own; `screen` is what stands there, `raw` all that was written."""

    patience = PATIENCE

    def __init__(self, env: dict[str, str], *arguments: str, columns: int = 100, rows: int = 30) -> None:
        self.screen = pyte.Screen(columns, rows)
        self._stream = pyte.ByteStream(self.screen)
        self._part = b""
        environ = {"TERM": "xterm-256color", "LANG": "C.UTF-8"} | env
        super().__init__(environ, sys.executable, "-m", "gpulse", *arguments, columns=columns, rows=rows)

    @property
    def lines(self) -> list[str]:
        return [line.rstrip() for line in self.screen.display]

    @property
    def text(self) -> str:
        return "\n".join(self.lines).rstrip()

    def shown(self) -> str:
        return self.text

    def resize(self, columns: int, rows: int) -> None:
        self.screen.resize(rows, columns)
        fcntl.ioctl(self._master, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))

    def took(self, data: bytes) -> None:
        """Show whole frames only, as a terminal with synchronized updates does: a frame arrives in pieces."""
        self._part += data
        if (begun := self._part.rfind(BEGIN)) >= 0 and self._part.find(END, begun) < 0:
            end = begun
        else:  # the last bytes may be the first of a frame
            end = len(self._part) - next(n for n in range(len(BEGIN) - 1, -1, -1) if self._part.endswith(BEGIN[:n]))
        self._stream.feed(self._part[:end])
        self._part = self._part[end:]


def steady() -> Scenario:
    """An H200 whose every number stands still."""
    return Scenario.load("h200-busy").gpu(0, energy="5 kJ").gpu(0, memory__used="1721761792")


def check_left_as_found(terminal: Terminal) -> None:
    assert terminal.raw.count(ENTER) == terminal.raw.count(LEAVE)
    assert terminal.raw.rfind(SHOW) >= terminal.raw.rfind(HIDE)
    assert not terminal.screen.cursor.hidden
    assert b"Traceback" not in terminal.raw


@pytest.mark.parametrize("how", ["Ctrl-C", "SIGINT", "SIGTERM"])
def test_a_watch_that_is_ended_leaves_the_terminal_as_it_was(tmp_path: Path, how: str) -> None:
    with Terminal(environment(steady(), tmp_path), "--watch", "0.1") as terminal:
        terminal.until(lambda: "H200" in terminal.text and "82 %" in terminal.text)
        assert ENTER in terminal.raw
        assert terminal.screen.cursor.hidden
        if how == "Ctrl-C":
            terminal.press(b"\x03")
        else:
            terminal.process.send_signal(signal.Signals[how])
        assert terminal.wait() == 0
        check_left_as_found(terminal)
        after = terminal.raw.rpartition(LEAVE)[2]
        assert b"H200" in after  # the last picture stays


def test_a_watch_shows_that_a_gpu_got_lost_and_goes_on(tmp_path: Path) -> None:
    clock = Clock(tmp_path)
    scenario = Scenario.load("boards/h100").driver(gpus=4).lose(2, since="2s").xid(gpu=2, code=79, at="2s")
    with Terminal(environment(scenario, tmp_path) | clock.environment, "--watch", "0.1") as terminal:
        terminal.until(lambda: terminal.text.count("GiB") >= 4)
        assert "lost" not in terminal.text
        clock.set(3.0)
        terminal.until(
            lambda: any(line.startswith("2 ") and "lost" in line and "79" in line for line in terminal.lines)
        )
        terminal.until(lambda: sum("°C" in line for line in terminal.lines) == 3)
        assert terminal.text.count("lost") == 1
        terminal.press(b"\x03")
        assert terminal.wait() == 0


def test_a_glance_ends_as_the_same_text_a_pipe_gets(tmp_path: Path, lab: Lab) -> None:
    for scenario in (steady(), Scenario.load("a100-mig")):
        piped = lab.run(scenario, COLUMNS="100", LANG="C.UTF-8").out.splitlines()
        with Terminal(environment(scenario, tmp_path), columns=100, rows=40) as terminal:
            assert terminal.wait() == 0
            check_left_as_found(terminal)
            shown = terminal.text.splitlines()
        assert [line.rstrip() for line in shown[1:]] == [
            line.rstrip() for line in piped[1:]
        ]  # the first tells the time


def test_a_glance_paints_before_activity_is_known_and_completes_it_in_place(tmp_path: Path) -> None:
    with Terminal(environment(steady(), tmp_path)) as terminal:
        assert terminal.wait() == 0
        first, second = re.split(rb"\x1b\[\d+A", terminal.raw)
        assert b"H200" in first
        assert b"82 %" not in first
        assert b"82 %" in second
        assert terminal.text.count("NVIDIA H200") == 1


def test_a_glance_taller_than_the_terminal_is_written_once(tmp_path: Path) -> None:
    with Terminal(environment(Scenario.load("dgx-h100x8"), tmp_path), rows=5) as terminal:
        assert terminal.wait() == 0
        assert terminal.raw.count(b"MEMORY") == 1


@pytest.mark.parametrize("arguments", [(), ("--watch", "0.1"), ("-p",)])
@pytest.mark.parametrize("name", ["h200-busy", "dgx-h100x8"])
def test_the_smallest_terminal_shows_something_that_fits(tmp_path: Path, name: str, arguments: tuple[str, ...]) -> None:
    with Terminal(environment(Scenario.load(name), tmp_path), *arguments, columns=20, rows=5) as terminal:
        if "--watch" in arguments:
            terminal.until(lambda: all(terminal.lines[:3]) and "%" in terminal.lines[2])
            terminal.process.send_signal(signal.SIGINT)
        assert terminal.wait() == 0
        check_left_as_found(terminal)
        apart = terminal.raw.replace(b"\x1b[H", b"\n").replace(LEAVE, b"\n")
        written = re.sub(rb"\x1b\[[0-9;?]*[a-zA-Z]", b"", apart).decode()
        assert max(len(line) for line in written.splitlines()) <= 20


def test_a_terminal_that_can_do_nothing_gets_plain_text(tmp_path: Path) -> None:
    with Terminal(environment(steady(), tmp_path) | {"TERM": "dumb"}) as terminal:
        assert terminal.wait() == 0
        assert b"\x1b" not in terminal.raw
        assert "82 %" in terminal.text


def test_a_watch_on_a_terminal_that_can_do_nothing_writes_no_escapes(tmp_path: Path) -> None:
    with Terminal(environment(steady(), tmp_path) | {"TERM": "dumb"}, "--watch", "0.1") as terminal:
        terminal.until(lambda: terminal.raw.count(b"NVIDIA H200") >= 2)
        terminal.press(b"\x03")
        assert terminal.wait() == 0
        assert b"\x1b" not in terminal.raw


def test_no_color_leaves_the_terminal_its_own_colours(tmp_path: Path) -> None:
    with Terminal(environment(steady(), tmp_path) | {"NO_COLOR": "1"}) as terminal:
        assert terminal.wait() == 0
        assert not COLOUR.search(terminal.raw)
    with Terminal(environment(steady(), tmp_path)) as terminal:
        assert terminal.wait() == 0
        assert COLOUR.search(terminal.raw)


def test_a_terminal_without_unicode_gets_ascii(tmp_path: Path) -> None:
    for arguments in (("metrics",), ("-p", "--demo"), ("run", "--demo", "--", "true")):
        with Terminal(environment(steady(), tmp_path) | {"LANG": "C", "LC_ALL": ""}, *arguments) as terminal:
            assert terminal.wait() == 0
            assert terminal.raw.isascii()
            assert b"\\x" not in terminal.raw


def test_a_driver_that_hangs_still_ends_at_ctrl_c(tmp_path: Path) -> None:
    clock = Clock(tmp_path)
    scenario = Scenario.load("boards/h100").driver(gpus=3)
    scenario.fault(function="nvmlDeviceGet*", gpu="0-2", hang="60s", since="2s")
    with Terminal(environment(scenario, tmp_path) | clock.environment, "--watch", "0.1") as terminal:
        terminal.until(lambda: terminal.text.count("GiB") >= 3)
        clock.set(3.0)
        terminal.until(lambda: terminal.text.count("not responding") == 3)
        terminal.press(b"\x03")
        assert terminal.wait() == 0
        check_left_as_found(terminal)
