"""`gpulse replay` on a real pseudo-terminal and in pipes, and every other verb on a recording."""

from __future__ import annotations

import gzip
import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from gpulse.cli.main import VERBS
from gpulse.model.select import EVERYTHING
from gpulse.sampling.clock import ManualClock
from gpulse.sampling.sampler import Sampler
from gpulse.sources.simulated.source import SimulatedSource
from gpulse.store.recorder import RecordingFile
from tests.e2e.lab import Lab, environment
from tests.e2e.test_terminal import Terminal, check_left_as_found
from tests.fake_nvml import Scenario

pyte = pytest.importorskip("pyte")

PLAIN = Scenario.load("h200-busy")
LEFT, RIGHT, ESC = b"\x1b[D", b"\x1b[C", b"\x1b"
SAMPLES = 300  # a second apart, from 22:13:20 to 22:18:19


@pytest.fixture(scope="module")
def recording(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Five minutes of the demo, packed."""
    clock = ManualClock(1_700_000_000.0)
    sampler = Sampler(SimulatedSource(clock=clock.monotonic), EVERYTHING, clock=clock).open()
    path = tmp_path_factory.mktemp("recording") / "run.ndjson.gz"
    file = RecordingFile(str(path))
    for _ in range(SAMPLES):
        file.write(sampler.read())
        clock.sleep(1.0)
    file.close()
    sampler.close()
    return path


@pytest.fixture(scope="module", params=["plain", "packed"])
def either(request: pytest.FixtureRequest, recording: Path) -> Path:
    """The same, packed and not, for what finds its place in the file."""
    if request.param == "packed":
        return recording
    plain = recording.with_suffix("")
    plain.write_bytes(gzip.decompress(recording.read_bytes()))
    return plain


class Replay(Terminal):
    """`gpulse replay` on a terminal of its own."""

    def __init__(self, folder: Path, *arguments: str, columns: int = 100, rows: int = 30) -> None:
        env = environment(PLAIN, folder) | {"GPULSE_CONFIG": str(folder / "config.toml"), "TZ": "UTC"}
        super().__init__(env, "replay", *arguments, columns=columns, rows=rows)

    def __enter__(self) -> Replay:
        return self

    @property
    def header(self) -> str:
        return self.lines[0]

    @property
    def at(self) -> str:
        """Where it says that it is: 1:05 of 1:05/4:59."""
        found = re.search(r"REPLAY ([\d:.]+)/4:59", self.header)
        return found[1] if found else ""

    def held(self, keys: bytes, at: str) -> None:
        """Press keys while it is paused and see where that leads."""
        self.press(keys)
        self.until(lambda: self.at == at)
        assert "PAUSED" in self.header

    def paused(self) -> Replay:
        self.until(lambda: self.at != "")
        self.press(b" ")
        self.until(lambda: "PAUSED" in self.header)
        return self


def test_it_plays_on_the_live_screen_by_itself(tmp_path: Path, recording: Path) -> None:
    with Replay(tmp_path, str(recording)) as replay:
        replay.until(lambda: replay.at == "0:01")
        assert "8 × H100" in replay.header
        assert "22:13:21" in replay.header
        assert "torchrun" in replay.text
        assert "space pause" in replay.lines[-1]
        replay.press(b"q")
        assert replay.wait() == 0
        check_left_as_found(replay)


def test_held_it_can_be_stepped_both_ways(tmp_path: Path, either: Path) -> None:
    with Replay(tmp_path, str(either), "--start", "100") as replay:
        replay.paused()
        replay.press(b"0")
        replay.until(lambda: replay.at == "0:00")
        replay.held(b"...", "0:03")
        replay.held(b",", "0:02")
        assert "22:13:22" in replay.header
        replay.held(b",,,,,", "0:00")


def test_it_can_be_sought(tmp_path: Path, either: Path) -> None:
    with Replay(tmp_path, str(either)) as replay:
        replay.paused().press(b"0")
        replay.held(b"]", "0:10")
        replay.held(b"}", "1:10")
        replay.held(RIGHT, "1:20")
        replay.held(LEFT + b"[", "1:00")
        replay.held(b"}}{", "2:00")
        assert "22:15:20" in replay.header
        replay.held(b"{{{{{", "0:00")


def test_after_a_leap_the_charts_show_what_led_there(tmp_path: Path, recording: Path) -> None:
    with Replay(tmp_path, str(recording), columns=120, rows=40) as replay:
        replay.paused().press(b"0")
        replay.until(lambda: replay.at == "0:00")
        bare = dots(replay.text)
        replay.held(b"}}", "2:00")
        replay.until(lambda: dots(replay.text) > bare + 60)


def dots(screen: str) -> int:
    """Return the number of characters with which charts are drawn, without those of the grid."""
    return sum("\u2800" < char <= "\u28ff" and char != "\u2802" for char in screen)


def test_the_screen_grows_and_shrinks_without_leftovers(tmp_path: Path, recording: Path) -> None:
    with Replay(tmp_path, str(recording), columns=200, rows=60) as replay:
        replay.paused()  # from here on nothing changes, while verdicts and events of a live screen do
        wide = replay.text
        for columns, rows in ((40, 10), (80, 24), (200, 60)):
            replay.resize(columns, rows)
            replay.until(lambda rows=rows: "PAUSED" in replay.header and "F10 quit" in replay.lines[rows - 1])  # type: ignore[misc]
        assert replay.text == wide


def test_the_speed_can_be_changed(tmp_path: Path, recording: Path) -> None:
    with Replay(tmp_path, str(recording), "--speed", "2") as replay:
        replay.until(lambda: "×2" in replay.header)
        replay.press(b"+++")
        replay.until(lambda: "×16" in replay.header)
        replay.until(lambda: replay.at > "0:16")
        replay.press(b"-----")
        replay.until(lambda: "×0.5" in replay.header)
        replay.press(b"+" * 20)
        replay.until(lambda: " max" in replay.header)


def test_at_its_end_it_says_so_and_can_be_gone_back(tmp_path: Path, either: Path) -> None:
    with Replay(tmp_path, str(either), "--start", "298") as replay:
        replay.until(lambda: "end of the recording" in replay.header)
        assert replay.at == "4:59"
        assert "22:18:19" in replay.header
        assert replay.process.poll() is None
        replay.press(b"[")
        replay.until(lambda: replay.at == "4:49")
        assert "end of the recording" not in replay.header
        replay.press(b"$")
        replay.until(lambda: "end of the recording" in replay.header)
        replay.press(b" ")
        replay.until(lambda: replay.at == "0:01")
        replay.press(b"q")
        assert replay.wait() == 0


def test_the_help_says_how_to_move(tmp_path: Path, recording: Path) -> None:
    with Replay(tmp_path, str(recording)) as replay:
        replay.until(lambda: replay.at != "")
        replay.press(b"?")
        replay.until(lambda: "Help" in replay.text)
        for words in (
            "pause or resume",
            "next sample",
            "10 seconds back",
            "1 minute forward",
            "go to the end",
            "faster",
        ):
            assert words in replay.text
        assert "shorter interval" not in replay.text


def test_a_signal_is_sent_to_nobody(tmp_path: Path, recording: Path) -> None:
    with Replay(tmp_path, str(recording)) as replay:
        replay.until(lambda: replay.at != "")
        replay.press(b"jK")
        replay.until(lambda: "not on this machine" in replay.lines[-1])


@pytest.mark.parametrize(("columns", "rows"), [(80, 24), (40, 10), (20, 4)])
def test_any_size_of_screen_shows_where_it_is(tmp_path: Path, recording: Path, columns: int, rows: int) -> None:
    with Replay(tmp_path, str(recording), columns=columns, rows=rows) as replay:
        replay.until(lambda: "REPLAY 0:0" in replay.header)
        replay.press(b" .}$q")
        assert replay.wait() == 0
        assert b"Traceback" not in replay.raw


def test_only_the_chosen_gpus_are_shown(tmp_path: Path, recording: Path) -> None:
    with Replay(tmp_path, str(recording), "--gpu", "2,3", "--start", "2m") as replay:
        replay.until(lambda: replay.at >= "2:01")
        assert "2 × H100" in replay.header
        replay.paused().press(b"0")
        replay.until(lambda: replay.at == "0:00")
        assert "2 × H100" in replay.header


def test_glances_on_a_terminal(tmp_path: Path, recording: Path) -> None:
    with Replay(tmp_path, str(recording), "--status", "--speed", "max", "--start", "270") as replay:
        assert replay.wait() == 0
        check_left_as_found(replay)
        assert "22:18:19" in replay.text  # the last picture stays


class TestInPipes:
    def test_it_is_glances(self, lab: Lab, either: Path) -> None:
        answer = lab.run(PLAIN, "replay", str(either), "--speed", "max", "--start", "290", TZ="UTC")
        assert (answer.code, answer.err) == (0, "")
        assert re.findall(r"\d\d:\d\d:\d\d$", answer.out, re.MULTILINE) == [f"22:18:{at}" for at in range(10, 20)]
        assert "\x1b" not in answer.out

    def test_with_top_a_line_a_sample(self, lab: Lab, recording: Path) -> None:
        answer = lab.run(PLAIN, "replay", str(recording), "--top", "--start", "299", TZ="UTC")
        assert answer.code == 0
        assert answer.out.startswith("22:18:19  0: ")

    def test_a_loop_begins_anew(self, tmp_path: Path, either: Path) -> None:
        process = subprocess.Popen(
            [sys.executable, "-m", "gpulse", "replay", either, "--speed", "max", "--start", "299", "--loop"],
            env=environment(PLAIN, tmp_path, TZ="UTC"), stdout=subprocess.PIPE, text=True,
        )  # fmt: skip
        assert process.stdout is not None
        moments: list[str] = []
        while len(moments) < 3 and (line := process.stdout.readline()):
            moments += re.findall(r"\d\d:\d\d:\d\d$", line)
        process.terminate()
        process.communicate()
        assert moments == ["22:18:19", "22:13:20", "22:13:21"]

    @pytest.mark.parametrize(
        ("words", "code", "said"),
        [
            (("replay",), 2, "gpulse replay run"),
            (("replay", "/no/such/file"), 1, "/no/such/file cannot be read"),
            (("replay", os.devnull), 1, "contains no samples"),
            (("replay", __file__), 1, "line 1"),
            (("replay", "x", "--speed", "0"), 2, "--speed"),
            (("replay", "x", "--top", "--status"), 2, "choose one"),
        ],
    )
    def test_what_cannot_be_is_one_sentence(self, lab: Lab, words: tuple[str, ...], code: int, said: str) -> None:
        answer = lab.run(PLAIN, *words)
        assert answer.code == code
        assert said in answer.err
        assert answer.err.count("\n") == 1

    def test_a_bad_line_is_left_out_and_named(self, lab: Lab, tmp_path: Path, recording: Path) -> None:
        lines = gzip.decompress(recording.read_bytes()).decode().splitlines(keepends=True)[:3]
        bad = tmp_path / "bad.ndjson"
        bad.write_text("".join([*lines, "garbage\n", *lines]))
        answer = lab.run(PLAIN, "replay", str(bad), "--speed", "max", TZ="UTC")
        assert answer.code == 0
        assert answer.err == f"gpulse: 1 damaged line was left out of {bad} (line 4).\n"
        assert "22:13:22" in answer.out


ANSWERS = [
    ("status", "22:15:20"),
    ("status --json", '"schema": 1'),
    ("status -p", "torchrun"),
    ("status -c utilization,sm_active", "UTIL"),
    ("top", "22:18:10"),
    ("query", "NVIDIA H100"),
    ("query --query-gpu=index,name,power.draw --format=csv", "power.draw [W]"),
    ("query --query-gpu=index,utilization --format=json", '"utilization"'),
    ("query --query-gpu=index,utilization --format=ndjson --count 3", '"utilization"'),
    ("query --query-gpu=utilization.gpu --format=prometheus", "# TYPE"),
    ("query --query-gpu=utilization.gpu --format=table --where utilization>50 --sort -power_draw", "%"),
    ("query --query-compute-apps=pid,process_name,used_memory", "31871"),
    ("query -L", "GPU 0: NVIDIA H100"),
    ("query -q -d MEMORY,POWER", "FB Memory Usage"),
    ("query -q -x", "<nvidia_smi_log>"),
    ("query --scroll puc --count 2", "# gpu"),
    ("query --scroll-processes u --count 2", "31871"),
    ("metrics", "utilization"),
    ("doctor", "8 found"),
    ("doctor --report", "8 found"),
    ("pick --window 0 --utilization 5", "GPU-"),
    ("record -o - --count 2", '"schema": 1'),
]


@pytest.mark.parametrize(("words", "said"), ANSWERS, ids=[words for words, _ in ANSWERS])
def test_every_verb_reads_a_recording(lab: Lab, recording: Path, words: str, said: str) -> None:
    source = f"replay:{recording}@{'4m50s' if words == 'top' else '2m'}*max"
    if words.startswith("metrics"):
        answer = lab.run(PLAIN, *words.split(), GPULSE_SOURCE=source)
    else:
        timed = words if words != "top" else "top -n 0.1"
        answer = lab.run(PLAIN, *timed.split(), "--source", source, TZ="UTC")
    if words.startswith("pick"):
        assert answer.code in (0, 1)  # what was free then, or why nothing was
        assert said in answer.out or "free" in answer.err
    else:
        assert answer.code == 0, answer.err
        assert said in answer.out
    assert not any(name.startswith("nvmlDevice") for name in answer.calls)


def test_no_verb_is_forgotten() -> None:
    tried = {words.split()[0] for words, _ in ANSWERS} | {"replay", "completion"}
    assert {"status", "top", "query", "metrics", "doctor", "pick", "record"} <= tried
    assert tried <= set(VERBS)


def test_json_of_a_recording_is_what_was_recorded(lab: Lab, either: Path) -> None:
    answer = lab.run(PLAIN, "status", "--json", "--source", f"replay:{either}@2m")
    assert json.loads(answer.out)["time"] == "2023-11-14T22:15:20.000000Z"
