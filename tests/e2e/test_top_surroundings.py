"""The live screen and what is around it: how it ends, trouble, views, terminals that can do little, settings, recordings."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from gpulse.model.codec import to_line
from gpulse.model.select import EVERYTHING
from gpulse.present.theme import QUERY
from gpulse.sampling.clock import ManualClock
from gpulse.sampling.sampler import Sampler
from gpulse.sources.simulated.source import SimulatedSource
from tests.e2e.lab import environment
from tests.e2e.test_terminal import ENTER, HIDE, LEAVE, PATIENCE, SHOW, steady
from tests.e2e.top_screen import (
    COLOUR,
    DOWN,
    ENTER_KEY,
    ESC,
    ESCAPE,
    F1,
    F2,
    F6,
    F10,
    MOUSE_OFF,
    MOUSE_ON,
    TAB,
    Top,
    check_given_back,
    using,
)
from tests.fake_nvml import Clock, Scenario


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
            assert sum("util" in line and "not responding" in line for line in top.lines) == 1  # in its panel
            assert "GPU 3 is not responding" in top.text  # among the events
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
        with Top(tmp_path, scenario=using(os.getpid())) as top:
            assert top.wait() == 2
            assert ENTER not in top.raw
            assert b"Traceback" not in top.raw
            said = "".join(top.text.split())  # the terminal wraps the line where the length of the path has it
            assert "config.toml,line1:" in said
        assert config.read_text() == "[top\ninterval = 1\n"

    def test_a_demo_has_the_looks_of_the_settings_and_saves_none(self, tmp_path: Path) -> None:
        config = tmp_path / "config.toml"
        config.write_text("[top]\nfahrenheit = true\n")
        with Top(tmp_path) as top:
            top.opened()
            assert "°F" in top.text
            top.press(b"w")
            top.until(lambda: "not saved" in top.footer)
            top.press(b"q")
            assert top.wait() == 0
        assert config.read_text() == "[top]\nfahrenheit = true\n"

    def test_a_setting_that_cannot_be_is_said_and_the_rest_holds(self, tmp_path: Path) -> None:
        (tmp_path / "config.toml").write_text('[top]\nsort = "nonsense"\nfahrenheit = true\n')
        with Top(tmp_path, scenario=using(os.getpid())) as top:
            top.until(lambda: "nonsense" in top.footer and bool(top.table))
            assert "°F" in top.text
            assert "GPU MEM▼" in top.titles

    def test_saved_settings_are_there_at_the_next_start(self, tmp_path: Path) -> None:
        config = tmp_path / "config.toml"
        config.write_text("# mine\n[other]\nkey = 1\n")
        with Top(tmp_path, scenario=using(os.getpid())) as top:
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
        with Top(tmp_path, scenario=using(os.getpid())) as top:
            top.opened()
            assert "°F" in top.text
            assert "°C" not in top.text

    def test_the_order_and_the_panels_chosen_by_keys_are_saved_too(self, tmp_path: Path) -> None:
        with Top(tmp_path, scenario=using(os.getpid())) as top:
            top.opened()
            top.press(b"<<<")
            top.until(lambda: "PID▼" in top.titles)
            top.press(b"rH")
            top.until(lambda: "PID▲" in top.titles and "iowait" not in top.text)
            top.press(b"w")
            top.until(lambda: "saved to" in top.footer)
            top.press(b"q")
            assert top.wait() == 0
        with Top(tmp_path, scenario=using(os.getpid())) as top:
            top.opened()
            assert "PID▲" in top.titles
            assert "iowait" not in top.text

    def test_a_file_that_cannot_be_written_is_said_and_nothing_ends(self, tmp_path: Path) -> None:
        with Top(tmp_path, scenario=using(os.getpid()), GPULSE_CONFIG="/proc/nowhere/config.toml") as top:
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
