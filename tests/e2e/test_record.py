"""`gpulse record` as a process: killed, interrupted, out of room, rotated; what it leaves can always be read."""

from __future__ import annotations

import json
import os
import random
import re
import resource
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from gpulse.model.snapshot import Snapshot
from gpulse.store.recording import read_recording
from tests.e2e.lab import ROOT, Lab, environment
from tests.e2e.test_terminal import Terminal
from tests.fake_nvml import Scenario
from tests.unit.sources.smi.logs import log

PATIENCE = 60.0
PLAIN = Scenario.load("h200-busy")
NAMES = ("run.ndjson", "run.ndjson.gz")
# records as the command does and says on stderr, which cannot be lost, how many lines have been written
COUNTING = """
import os, sys
from gpulse.cli.main import main
from gpulse.store import recorder
write = recorder.Rotation.write
def counted(self, snapshot):
    done = write(self, snapshot)
    os.write(2, b"%d\\n" % self.count)
    return done
recorder.Rotation.write = counted
sys.exit(main(sys.argv[1:]))
"""


@pytest.fixture
def env(tmp_path: Path) -> dict[str, str]:
    return environment(PLAIN, tmp_path)


def start(env: dict[str, str], *arguments: str, counting: bool = False, limit: int = 0) -> subprocess.Popen[str]:
    program = ["-c", COUNTING] if counting else ["-m", "gpulse"]
    return subprocess.Popen(
        [sys.executable, *program, "record", *arguments],
        env=env,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        preexec_fn=(lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (limit, limit))) if limit else None,
    )


def read(path: Path) -> list[Snapshot]:
    return list(read_recording(str(path)))


def wait_for(path: Path, size: int = 1) -> None:
    end = time.monotonic() + PATIENCE
    while not (path.exists() and path.stat().st_size >= size):
        assert time.monotonic() < end, f"{path} was never written"
        time.sleep(0.005)


@pytest.mark.parametrize("name", NAMES)
def test_a_kill_at_any_moment_costs_at_most_the_line_being_written(
    tmp_path: Path, env: dict[str, str], name: str
) -> None:
    chance = random.Random(name)
    path = tmp_path / name
    before = 0
    for _ in range(15):
        process = start(env, "-o", str(path), "--append", "--interval", "0.01", "--demo", counting=True)
        assert process.stderr is not None
        process.stderr.readline()  # the first line is written
        time.sleep(chance.uniform(0, 0.1))
        process.kill()
        told = [1, *(int(line) for line in process.communicate()[1].splitlines() if line.strip())][-1]
        samples = read(path)
        assert told <= len(samples) - before <= told + 1  # one may be written and not yet told
        assert all(len(sample.gpus) == 8 for sample in samples)
        before = len(samples)
    assert before > 15


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("how", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_a_signal_ends_it_well_with_one_line(
    tmp_path: Path, env: dict[str, str], name: str, how: signal.Signals
) -> None:
    path = tmp_path / name
    process = start(env, "-o", str(path), "--interval", "0.02")
    wait_for(path, 3000)
    process.send_signal(how)
    out, err = process.communicate(timeout=PATIENCE)
    samples = read(path)
    assert process.returncode == 0
    assert out == ""
    assert re.fullmatch(
        rf"gpulse: {len(samples)} samples? in \d+s, [\d.]+ \w+, {re.escape(str(path))}(; \d+ skipped .*)?\.\n", err
    )
    if name.endswith(".gz"):
        assert subprocess.run(["gzip", "-t", path], check=False).returncode == 0


def test_what_nohup_ignores_stays_ignored(tmp_path: Path, env: dict[str, str]) -> None:
    path = tmp_path / "run.ndjson"
    process = subprocess.Popen(
        ["nohup", sys.executable, "-m", "gpulse", "record", "-o", path, "--interval", "0.02"],
        env=env, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, stdin=subprocess.DEVNULL,
    )  # fmt: skip
    wait_for(path)
    process.send_signal(signal.SIGHUP)
    wait_for(path, path.stat().st_size + 20_000)
    assert process.poll() is None
    process.terminate()
    process.communicate(timeout=PATIENCE)
    assert process.returncode == 0


@pytest.mark.parametrize("name", NAMES)
def test_without_room_it_says_so_and_what_was_written_stays(tmp_path: Path, env: dict[str, str], name: str) -> None:
    path = tmp_path / name
    process = start(env, "-o", str(path), "--interval", "0.01", limit=20_000)
    _, err = process.communicate(timeout=PATIENCE)
    assert process.returncode == 1
    assert err == f"gpulse: {path} cannot be written: File too large.\n"
    samples = read(path)
    assert len(samples) > 2
    assert path.stat().st_size <= 20_000
    assert subprocess.run([sys.executable, "-m", "gpulse", "record", "--append", "-o", path, "--count", "2"],
                          env=env, capture_output=True, check=False).returncode == 0  # fmt: skip
    assert len(read(path)) == len(samples) + 2


def test_a_full_disk_is_one_sentence(lab: Lab) -> None:
    answer = lab.run(PLAIN, "record", "-o", "/dev/full", "--count", "3")
    assert answer.code == 1
    assert (
        answer.err
        == "gpulse: /dev/full cannot be written: No space left on device. Free some space, or write elsewhere.\n"
    )


def test_files_follow_each_other_and_the_oldest_go(lab: Lab, tmp_path: Path) -> None:
    path = tmp_path / "run.ndjson"
    answer = lab.run(PLAIN, "record", "-o", str(path), "-n", "0.01", "--count", "12", "--rotate", "1KiB", "--keep", "3")
    assert answer.code == 0
    names = sorted(each.name for each in tmp_path.iterdir())
    assert names == ["run-0010.ndjson", "run-0011.ndjson", "run-0012.ndjson"]
    times = [sample.time for name in names for sample in read(tmp_path / name)]
    assert len(times) == 3
    assert times == sorted(times)
    assert "12 samples" in answer.err
    assert "run-0012.ndjson" in answer.err


def test_a_size_that_is_reached_ends_it(lab: Lab, tmp_path: Path) -> None:
    path = tmp_path / "run.ndjson"
    answer = lab.run(PLAIN, "record", "-o", str(path), "-n", "0.01", "--max-size", "20KiB")
    assert answer.code == 0
    assert "stopped at --max-size 20.0 KiB" in answer.err
    assert path.stat().st_size <= 20 << 10


def test_a_time_ends_it(lab: Lab, tmp_path: Path) -> None:
    path = tmp_path / "run.ndjson"
    assert lab.run(PLAIN, "record", "-o", str(path), "-n", "0.05", "--for", "0.2").code == 0
    times = [sample.time for sample in read(path)]
    assert len(times) <= 5
    assert times[-1] - times[0] >= 0.2 - 0.05 / 2  # all of it, whatever the machine does besides


def test_standard_output_has_the_lines_alone(lab: Lab) -> None:
    answer = lab.run(PLAIN, "record", "-o", "-", "-n", "0.01", "--count", "3", "-m", "power.draw,utilization")
    lines = [json.loads(line) for line in answer.out.splitlines()]
    assert (answer.code, answer.err, len(lines)) == (0, "", 3)
    gpu = lines[0]["gpus"][0]
    assert gpu["power_draw"] > 0
    assert "utilization" in gpu
    assert "temperature" not in gpu


def test_processes_are_recorded_as_a_diagnosis_needs_them_and_with_owners_when_asked_for(lab: Lab) -> None:
    scenario = Scenario.load("h200-idle").process(gpu=0, pid=os.getpid(), memory="4 GiB", type="C", sm=20)
    usual = lab.run(scenario, "record", "-o", "-", "--count", "1").gpus[0]
    full = lab.run(scenario, "record", "-o", "-", "--count", "1", "--processes").gpus[0]
    (process,) = usual["processes"]
    told = process.keys() | process.get("gaps", {}).keys()
    assert process["pid"] == os.getpid()
    assert {"thread_state", "children", "workers_running", "tree_cpu_percent", "sm_utilization", "memory_used"} <= told
    assert told.isdisjoint({"user", "command", "host_memory"})
    assert len(usual["utilization_trace"]) == 71
    assert {"user", "command", "host_memory"} <= full["processes"][0].keys()
    assert "clocks_supported" not in full


def test_named_metrics_are_recorded_without_processes(lab: Lab) -> None:
    scenario = Scenario.load("h200-idle").process(gpu=0, pid=os.getpid(), memory="4 GiB", type="C", sm=20)
    bare = lab.run(scenario, "record", "-o", "-", "--count", "1", "-m", "utilization")
    assert (bare.gpus[0]["processes"], bare.gpus[0]["gaps"]["processes"]) == ([], "skipped")
    assert bare.calls["nvmlDeviceGetComputeRunningProcesses_v3"] == 0


def test_at_a_short_interval_processes_are_listed_once_per_second_and_else_skipped(lab: Lab) -> None:
    scenario = Scenario.load("h200-idle").process(gpu=0, pid=os.getpid(), memory="4 GiB", type="C", sm=20)
    lines = lab.run(scenario, "record", "-o", "-", "-n", "0.01", "--count", "12").out.splitlines()
    gpus = [json.loads(line)["gpus"][0] for line in lines]
    assert [len(gpu["processes"]) for gpu in (gpus[0], gpus[-1])] == [1, 1]  # the last sample is complete
    assert {gpu["gaps"].get("processes") for gpu in gpus if not gpu["processes"]} == {"skipped"}


def test_a_file_that_is_there_is_refused_continued_or_replaced(lab: Lab, tmp_path: Path) -> None:
    path = tmp_path / "run.ndjson.gz"
    words = ("record", "-o", str(path), "-n", "0.01", "--count", "2")
    assert lab.run(PLAIN, *words).code == 0
    refused = lab.run(PLAIN, *words)
    assert refused.code == 1
    assert "already exists; use --append" in refused.err
    assert lab.run(PLAIN, *words, "--append").code == 0
    assert len(read(path)) == 4
    assert lab.run(PLAIN, *words, "--force").code == 0
    assert len(read(path)) == 2


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ("", "gpulse record -o"),
        ("-o x --append --force", "choose one"),
        ("-o x --keep 3", "--rotate"),
        ("-o - --rotate 1h", "name a file"),
        ("-o - --append", "name a file"),
        ("-o x --rotate 100", "100MiB or 1h"),
        ("-o x --rotate soon", "100MiB or 1h"),
        ("-o x --rotate 0h", "100MiB or 1h"),
        ("-o x --keep 0 --rotate 1h", "--keep"),
        ("-o x --metrics nonsense", "unknown metric"),
        ("-o x --interval 0", "--interval"),
    ],
)
def test_a_wrong_request_is_one_sentence_and_makes_no_file(lab: Lab, words: str, said: str) -> None:
    answer = lab.run(PLAIN, "record", *words.split())
    assert answer.code == 2
    assert said in answer.err
    assert answer.err.count("\n") == 1
    assert not Path("x").exists()


def test_on_a_terminal_one_line_says_how_far_it_is(tmp_path: Path, env: dict[str, str]) -> None:
    path = tmp_path / "run.ndjson"
    with Terminal(env, "record", "-o", str(path), "--interval", "0.05", columns=100) as terminal:
        terminal.until(lambda: "samples" in terminal.text and "KiB" in terminal.text and "Ctrl-C" in terminal.text)
        terminal.until(lambda: "  1s  " in terminal.text)
        assert len(terminal.text.splitlines()) == 1
        terminal.press(b"\x03")
        assert terminal.wait() == 0
        assert "Ctrl-C ends it" not in terminal.text
        assert f"gpulse: {len(read(path))} samples in" in terminal.text.replace("\n", "")
        assert b"Traceback" not in terminal.raw


def test_a_recording_can_be_recorded_from(lab: Lab, tmp_path: Path) -> None:
    first, second = tmp_path / "a.ndjson", tmp_path / "b.ndjson.gz"
    assert lab.run(PLAIN, "record", "-o", str(first), "-n", "0.01", "--count", "5", "-p").code == 0
    answer = lab.run(PLAIN, "record", "-o", str(second), "-p", "-n", "0.01", "--source", f"replay:{first}*max")
    assert answer.code == 0
    assert [sample.time for sample in read(second)] == [sample.time for sample in read(first)]


def gpulse(*words: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "gpulse", *words]
    env = os.environ | {"PYTHONPATH": str(ROOT / "src")}
    return subprocess.run(command, env=env, capture_output=True, text=True, timeout=30, check=False)


def test_a_history_is_kept_and_read_back(tmp_path: Path) -> None:
    file = tmp_path / "history.db"
    kept = gpulse("record", "--history", str(file), "--demo", "--count", "3", "--interval", "0.1")
    assert (kept.returncode, str(file) in kept.stderr) == (0, True), kept.stderr
    told = gpulse("history", "--file", str(file), "--since", "5m", "--usage")
    assert "ada" in told.stdout, told
    both = gpulse("record", "--history", str(file), "-o", "x.ndjson", "--demo")
    assert (both.returncode, both.stderr.count("\n")) == (2, 1)


def test_what_nvidia_smi_says_of_this_machine_goes_into_its_history(lab: Lab, tmp_path: Path) -> None:
    program = tmp_path / "nvidia-smi"
    program.write_text(f"#!/bin/sh\ncat <<'END'\n{log()}\nEND\n")
    program.chmod(0o755)
    found = {"PATH": f"{tmp_path}:{os.environ['PATH']}", "GPULSE_HISTORY": str(tmp_path / "history.db")}
    kept = lab.run(Scenario(), "record", "--history", "--source", "smi", "--count", "1", **found)
    assert (kept.code, (tmp_path / "history.db").exists()) == (0, True), kept.err


def test_another_machines_samples_do_not_go_into_this_machines_history() -> None:
    refused = gpulse("record", "--history", "--demo", "--count", "1")
    assert (refused.returncode, "--history FILE" in refused.stderr) == (2, True)


@pytest.mark.parametrize(("options", "mode"), [(("-p",), 0o600), ((), 0o644)])
def test_only_its_owner_reads_a_recording_with_command_lines(
    tmp_path: Path, options: tuple[str, ...], mode: int
) -> None:
    path = tmp_path / "run.ndjson"
    command = [sys.executable, "-m", "gpulse", "record", "--demo", "-o", str(path), "--count", "1", *options]
    subprocess.run(command, check=True, timeout=60, capture_output=True, umask=0o022)
    assert path.stat().st_mode & 0o777 == mode
