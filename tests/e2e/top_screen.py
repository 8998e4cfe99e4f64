"""`gpulse top` on a pseudo-terminal: what the tests of the live screen share."""

from __future__ import annotations

import os
import re
import termios
from pathlib import Path
from typing import Any

import pytest

from tests.e2e.lab import environment
from tests.e2e.test_terminal import ENTER, LEAVE, Terminal, check_left_as_found
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

    def hang_up(self) -> None:
        os.close(self._master)
        self._master = os.open(os.devnull, os.O_RDONLY)


def check_given_back(top: Top) -> None:
    check_left_as_found(top)
    assert top.raw.count(ENTER) >= 1
    assert top.attributes == top.before
    assert top.raw.rfind(MOUSE_OFF) > top.raw.rfind(MOUSE_ON)
    assert top.raw.rstrip().endswith(LEAVE)


def using(pid: int) -> Scenario:
    """A GPU with one process on it, and so none that a test could hit by mistake."""
    return Scenario.load("h200-idle").process(gpu=0, pid=pid, memory="4 GiB", type="C", sm=20)


def select_the_only_process(top: Top, pid: int) -> None:
    top.until(lambda: [words[1] for words in top.table] == [str(pid)])
    top.press(DOWN)
    top.until(lambda: "▸" in top.text)
