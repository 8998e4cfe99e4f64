"""`gpulse why` as people use it: on a recording, on the demo machine, on a terminal, interrupted, and asked for nonsense."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

import gpulse as library
from gpulse.model.snapshot import Snapshot
from tests.e2e.programs import until
from tests.e2e.test_terminal import Terminal
from tests.unit.analysis.diagnosis.machines import samples
from tests.unit.recordings import text_of, write
from tests.unit.store.history.ticks import write as write_history

ROOT = Path(__file__).parents[2]
ENV = {**os.environ, "NO_COLOR": "1", "PYTHONPATH": f"{ROOT / 'src'}:{ROOT}"}


def gpulse(*words: str, code: int = 0, environ: dict[str, str] | None = None) -> subprocess.CompletedProcess[str]:
    done = subprocess.run(
        [sys.executable, "-m", "gpulse", "why", *words],
        capture_output=True, text=True, check=False, timeout=60, env={**ENV, **(environ or {})},
    )  # fmt: skip
    assert done.returncode == code, done.stderr
    return done


@pytest.fixture
def recording(tmp_path: Path) -> str:
    taken = samples({"tensor_active": 0, "dram_active": 88, "power_draw": 500}, {}, seconds=20)
    return write(tmp_path / "run.ndjson.gz", text_of(taken), packed=True)


def test_a_recording_is_judged_at_once(recording: str) -> None:
    done = gpulse("--source", f"replay:{recording}", environ={"COLUMNS": "80"})
    assert "Limited by memory bandwidth" in done.stdout
    assert "≥ 60 %" in done.stdout
    assert "torch.compile" in done.stdout
    assert not done.stderr
    assert max(map(len, done.stdout.splitlines())) <= 80


def test_json_has_the_documented_shape(recording: str) -> None:
    plain = json.loads(gpulse("--source", f"replay:{recording}", "--json").stdout)
    first, second = plain["gpus"]
    assert (first["index"], first["verdict"], second["verdict"]) == (0, "memory_bandwidth", "healthy")
    assert first["evidence"][0].keys() >= {"metric", "value", "threshold", "text"}
    assert first["advice"]
    assert first["window"]["from"] < first["window"]["to"]


def test_python_returns_the_same_values(recording: str) -> None:
    plain = json.loads(gpulse("--source", f"replay:{recording}", "--json").stdout)
    assert library.diagnose(recording).to_plain() == {key: plain[key] for key in ("window", "gpus")}


def test_gpus_and_times_of_a_recording_can_be_chosen(recording: str) -> None:
    plain = json.loads(gpulse("--source", f"replay:{recording}@5", "--for", "8s", "--gpu", "1", "--json").stdout)
    assert [one["index"] for one in plain["gpus"]] == [1]
    assert plain["window"]["samples"] == 17


@pytest.fixture
def two_hot(tmp_path: Path) -> str:
    hot = {"throttle_reasons": ("hw_thermal_slowdown",), "temperature": 92}
    return write(tmp_path / "hot.ndjson", text_of(samples(hot, {}, hot, seconds=20)))


def test_what_is_wrong_heads_the_answer_and_the_healthy_come_last(two_hot: str) -> None:
    lines = gpulse("--source", f"replay:{two_hot}", environ={"COLUMNS": "80"}).stdout.splitlines()
    assert lines[0].endswith(" samples: 1 critical")
    assert lines[2].startswith("■ GPUs 0, 2  too hot")
    blocks = [line.split("  ")[0] for line in lines[4:] if line.startswith("GPU")]
    assert blocks == ["GPU 0", "GPU 2", "GPU 1"]


def test_a_script_can_check_whether_something_is_wrong(two_hot: str, recording: str) -> None:
    assert "too hot" in gpulse("--source", f"replay:{two_hot}", "--check", code=1).stdout
    plain = json.loads(gpulse("--source", f"replay:{two_hot}", "--check", "--json", code=1).stdout)
    assert [(one["key"], one["gpus"]) for one in plain["problems"]] == [("thermal_throttled", ["0", "2"])]
    assert plain["problems"][0]["text"].startswith("Thermally throttled")
    done = gpulse("--source", f"replay:{recording}", "--check", "--json")
    assert json.loads(done.stdout)["problems"] == []


def test_the_gpus_of_a_process(recording: str) -> None:
    assert "GPU 0" in gpulse("4242", "--source", f"replay:{recording}").stdout
    done = gpulse("17", "--source", f"replay:{recording}", code=2)
    assert "process 17 does not use a GPU" in done.stderr


@pytest.mark.parametrize(
    ("words", "text"),
    [
        (("abc",), "'abc' is not a process id"),
        (("--for", "1"), "not between 2 and 86400 seconds; try --for 2."),
        (("--since", "2h", "--source", "demo"), "--since cannot be combined"),
        (("--source", "replay:/nowhere"), "cannot be read"),
        (("--since", "soon"), "'soon' is not a duration"),
    ],
)
def test_a_wrong_question_gets_one_sentence(words: tuple[str, ...], text: str) -> None:
    done = gpulse(*words, code=1 if "replay:/nowhere" in words else 2)
    assert text in done.stderr
    assert len(done.stderr.splitlines()) == 1
    assert not done.stdout


def test_the_demo_machine_is_watched_with_a_progress_bar() -> None:
    with Terminal(ENV | {"TERM": "xterm-256color"}, "why", "--demo", "--for", "4s", columns=100, rows=100) as terminal:
        terminal.until(lambda: "watching 8 GPUs" in terminal.text)
        terminal.until(lambda: "so far: GPU 6: Thermally throttled" in terminal.text)
        terminal.until(lambda: "GPU 7" in terminal.text)
        assert terminal.wait() == 0
        assert "watching" not in terminal.text
        assert "so far" not in terminal.text
        assert "Idle allocation" in terminal.text


def catches(pid: int, number: signal.Signals) -> bool:
    """Return whether a process has a handler for a signal."""
    status = Path(f"/proc/{pid}/status").read_text()
    mask = next(line.split()[1] for line in status.splitlines() if line.startswith("SigCgt:"))
    return bool(int(mask, 16) >> (number - 1) & 1)


def test_an_interrupt_judges_what_was_seen() -> None:
    child = subprocess.Popen(
        [sys.executable, "-m", "gpulse", "why", "--demo", "--for", "10m", "--interval", "0.1"],
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=ENV,
    )  # fmt: skip
    try:
        until(lambda: catches(child.pid, signal.SIGTERM))  # it takes samples from then on
        with pytest.raises(subprocess.TimeoutExpired):
            child.wait(4)
        child.send_signal(signal.SIGINT)
        out, err = child.communicate(timeout=30)
    finally:
        child.kill()
    assert child.returncode == 0, err
    assert "GPUs 0, 1" in out


def history(tmp_path: Path, taken: list[Snapshot]) -> dict[str, str]:
    """Write samples into a history as if they had ended just now, and return the environment that finds it."""
    environ = {"GPULSE_HISTORY": str(tmp_path / "history.db"), "HOME": str(tmp_path)}
    shift = time.time() - 5 - taken[-1].time
    write_history(environ["GPULSE_HISTORY"], [Snapshot(one.time + shift, one.gpus, one.host) for one in taken])
    return environ


def test_the_history_is_judged(tmp_path: Path) -> None:
    environ = history(tmp_path, samples({}, seconds=60, interval=1.0))
    plain = json.loads(gpulse("--since", "10m", "--json", environ=environ).stdout)
    assert plain["gpus"][0]["verdict"] == "healthy"


def test_a_fault_and_a_leak_are_the_headline_of_a_long_history(tmp_path: Path) -> None:
    def used(second: float) -> float:
        return (4 + second / 60) * 2**30

    taken = samples(
        {"state": lambda second: "lost" if 1200 <= second < 1500 else "ok"},
        {"memory_used": used, "processes": ({"pid": 77, "memory_used": used},)},
        seconds=3600, interval=5.0,
    )  # fmt: skip
    environ = history(tmp_path, taken)
    plain = json.loads(gpulse("--since", "2h", "--json", environ=environ).stdout)
    assert [one["verdict"] for one in plain["gpus"]] == ["lost", "memory_leak"]
    done = subprocess.run(
        [sys.executable, "-m", "gpulse", "report", "--since", "2h"],
        capture_output=True, text=True, check=True, timeout=60, env={**ENV, **environ},
    )  # fmt: skip
    assert "GPU 0: The GPU was lost for" in done.stdout
    assert "Memory leak" in done.stdout
