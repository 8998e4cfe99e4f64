"""A monitor's figures in real programs: energy of phases, what is kept at every kind of end, and what is said without a GPU."""

from __future__ import annotations

import json
import os
import signal
from pathlib import Path

import pytest

from tests.e2e.programs import DEMO, Program, machine, on, run, told
from tests.fake_nvml import Scenario
from tests.unit.readback import tensorboard_rows

pytestmark = pytest.mark.skipif(not hasattr(os, "pidfd_open"), reason="needs Linux")

# --- energy


@pytest.mark.parametrize("pattern", ["a 0.7 b 0.7", "a 0.15", "a 0.05 b 0.3 a 0.01"])
@pytest.mark.parametrize("interval", [1.0, 0.1])
def test_every_phase_has_its_energy(tmp_path: Path, pattern: str, interval: float) -> None:
    words = pattern.split()
    code = f"""
import itertools, json
onto_the_gpus()
with gpulse.Monitor(interval={interval}) as m:
    end = time.monotonic() + 3.0
    for name, seconds in itertools.cycle({[*zip(words[::2], words[1::2], strict=True)]}):
        with m.phase(name):
            time.sleep(float(seconds))
        if time.monotonic() > end:
            break
    summary = m.stop()
print(json.dumps([[p.seconds, p.energy] for p in (summary, *summary.phases)]))
"""
    scenario = Scenario.load("h200-idle").driver(gpus=1).gpu(0, power="685 W", energy="integral(power)")
    scenario.process(gpu=0, pid="OWN", memory="1 GiB", sm=80)
    whole, *phases = told(code, tmp_path, on(scenario, tmp_path))
    assert whole[1] / whole[0] == pytest.approx(
        685, rel=0.1
    )  # the counter of the real time that passed, which busy cores stretch
    for seconds, joules in phases:
        if seconds > 1:
            assert joules / seconds == pytest.approx(685, rel=0.1)
    known = [(seconds, joules) for seconds, joules in phases if joules is not None]
    assert sum(joules for _, joules in known) == pytest.approx(685 * sum(seconds for seconds, _ in known), rel=0.1)


def test_logged_energy_counts_from_the_start_of_the_run(tmp_path: Path) -> None:
    code = """
import json
seen = []
with gpulse.Monitor(lambda values, step, time: seen.append(values), interval=0.1) as m:
    until(lambda: len(seen) > 15)
print(json.dumps([seen[0]["gpu0/energy"], seen[-1]["gpu0/energy"], m.summary().gpus[0].device_energy, m.latest.gpus[0].energy]))
"""
    scenario = machine(1).gpu(0, energy="counter(5000000, 100000)")
    first, last, summed, counter = told(code, tmp_path, on(scenario, tmp_path))
    assert 0.0 <= first < last < 5000.0 <= counter
    assert last == pytest.approx(summed)


# --- ends

MULTIPROCESSING = """
import multiprocessing, warnings
def work(folder):
    m = gpulse.Monitor([f"{folder}/gpu.jsonl", folder], interval=0.1, report=True).start()
    until(lambda: m.latest)
    m.mark("last", 7)
    m.step(3)

if __name__ == "__main__":
    warnings.simplefilter("ignore")
    process = multiprocessing.get_context(METHOD).Process(target=work, args=("runs/child",))
    process.start()
    process.join()
    print(process.exitcode)
"""


@pytest.mark.parametrize("method", ["fork", "spawn"])
def test_a_process_of_multiprocessing_ends_with_its_last_sample_and_report(tmp_path: Path, method: str) -> None:
    ended = run(MULTIPROCESSING.replace("METHOD", repr(method)), tmp_path, DEMO)
    assert (ended.code, ended.out) == (0, "0\n"), ended
    assert "3 steps" in ended.err
    lines = (tmp_path / "runs/child/gpu.jsonl").read_text().splitlines()
    assert sum('"last"' in line for line in lines) == 1
    rows = tensorboard_rows(tmp_path / "runs/child/gpulse")
    assert [values["mark/last"] for _, values in rows if "mark/last" in values] == [7]
    assert len(rows) == len(lines)


def test_a_signal_loses_no_point_of_tensorboard(tmp_path: Path) -> None:
    code = """
count = 0
def seen(*_):
    global count
    count += 1
m = gpulse.Monitor(["runs/a", seen], interval=0.1).start()
until(lambda: count >= 12)
print("ready", flush=True)
signal.pause()
"""
    with Program(code, tmp_path, DEMO) as program:
        program.line()
        program.signal(signal.SIGTERM)
        assert program.end().code == -signal.SIGTERM
    assert len(tensorboard_rows(tmp_path / "runs/a/gpulse")) >= 11  # the twelfth may have been on its way


def test_a_program_that_collects_orphans_keeps_no_ended_agent(tmp_path: Path) -> None:
    code = """
import ctypes
ctypes.CDLL(None).prctl(36, 1, 0, 0, 0)  # PR_SET_CHILD_SUBREAPER: as process 1 of a container
for _ in range(3):
    with gpulse.Monitor(interval=0.1) as m:
        until(lambda: m.latest)
def zombies():
    return [name for name in os.listdir("/proc") if name.isdecimal() and is_zombie(name)]
def is_zombie(name):
    try:
        state, parent = open(f"/proc/{name}/stat", "rb").read().rpartition(b")")[2].split()[:2]
    except OSError:
        return False
    return state == b"Z" and int(parent) == os.getpid()
until(lambda: not zombies())
print("none")
"""
    ended = run(code, tmp_path, DEMO)
    assert (ended.code, ended.out, ended.err) == (0, "none\n", ""), ended


def test_a_cell_that_is_run_again_replaces_its_monitor(tmp_path: Path) -> None:
    pytest.importorskip("IPython")
    code = """
from IPython.core.interactiveshell import InteractiveShell
shell = InteractiveShell.instance()
cell = "m = gpulse.Monitor(lambda *_: None, interval=0.1).start()"
shell.run_cell("import gpulse", store_history=True)
for _ in range(5):
    shell.run_cell(cell, store_history=True)
print(len(gpulse.monitor.monitor.running))
both = "with gpulse.Monitor(interval=0.1), gpulse.Monitor(interval=0.1): both = len(gpulse.monitor.monitor.running)"
shell.run_cell(both, store_history=True)
print(shell.user_ns["both"], len(gpulse.monitor.monitor.running))
"""
    ended = run(code, tmp_path, DEMO | {"HOME": str(tmp_path), "IPYTHONDIR": str(tmp_path / "ipython")})
    assert (ended.code, ended.out) == (0, "1\n2 0\n"), ended
    assert ended.err.count("replaces one that an earlier cell left running") == 1, ended


# --- no GPU

WITHOUT = """
import json
seen = []
m = gpulse.Monitor([lambda values, step, time: seen.append((values, step)), "gpu.jsonl"], interval=0.1).start()
with m.phase("train"):
    for _ in m.batches(range(3)):
        pass
    until(lambda: any("host/cpu_percent" in values and step == 3 for values, step in seen))
summary = m.stop()
print(json.dumps([summary.steps, len(summary.gpus), sorted(seen[-1][0])[:1], m.errors]))
"""


@pytest.mark.parametrize(
    ("scenario", "listed", "words"),
    [
        ("not-loaded", "", "driver"),
        ("machine", "7", "CUDA_VISIBLE_DEVICES='7' matches no GPU"),
        ("machine", "GPU-nonsense", "matches no GPU"),
    ],
)
def test_without_a_gpu_the_program_and_its_host_are_still_logged(
    tmp_path: Path, scenario: str, listed: str, words: str
) -> None:
    found = machine() if scenario == "machine" else Scenario.load(scenario)
    environ = on(found, tmp_path, **({"CUDA_VISIBLE_DEVICES": listed} if listed else {}))
    ended = run(WITHOUT, tmp_path, environ)
    assert (ended.code, ended.out) == (0, '[3, 0, ["host/cpu_percent"], 1]\n'), ended
    assert ended.err.count("\n") == 1
    assert words in ended.err
    assert (tmp_path / "gpu.jsonl").stat().st_size > 0


# --- looking back


@pytest.mark.parametrize("interval", [1.0, 0.2])
def test_the_report_of_a_recording_agrees_with_the_live_one(tmp_path: Path, interval: float) -> None:
    code = f"""
import json
import contextlib, io
from gpulse.cli.main import main
m = gpulse.Monitor("run.jsonl", interval={interval}).start()
end = time.monotonic() + 3.5
while time.monotonic() < end:
    with m.phase("train"):
        time.sleep(0.11)
        m.step(items=4)
        with m.phase("save"):
            time.sleep(0.04)
            m.waited(0.01)
live = m.stop()
with contextlib.redirect_stderr(io.StringIO()):
    main(["report", "run.jsonl", "-o", "report.json"])
print(json.dumps(live.to_plain()))
"""
    scenario = Scenario.load("h200-busy").driver(gpus=1)
    scenario.gpu(0, power="ramp(300000, 50000)", energy="integral(power)", gpm__sm="ramp(20, 10)")
    live = told(code, tmp_path, on(scenario, tmp_path))
    report = json.loads((tmp_path / "report.json").read_text())["summary"]
    assert [phase["name"] for phase in report["phases"]] == ["train", "train/save"]
    for ours, theirs in zip([live, *live["phases"]], [report, *report["phases"]], strict=True):
        assert theirs["steps"] == ours["steps"]
        assert theirs["calls"] == ours["calls"]
        assert theirs["items"] == pytest.approx(ours["items"])
        assert theirs["data_wait_seconds"] == pytest.approx(ours["data_wait_seconds"], abs=1e-3)
        assert theirs["seconds"] == pytest.approx(ours["seconds"], rel=0.1)
        if (energy := ours["gpus"][0]["device_energy"]) is not None:
            assert theirs["energy"] == pytest.approx(energy, rel=0.06)
        for key in ("sm_active", "utilization", "power_draw"):
            means = [each["gpus"][0]["stats"][key]["mean"] for each in (theirs, ours)]
            # the power between two lines, and which phase it belongs to, is only in the samples at the edges of phases; the first sample of
            # a ramp may be late on a busy machine
            near = 0.15 if ours["name"] or key == "power_draw" else 0.1
            assert means[0] == pytest.approx(means[1], rel=near), (ours["name"], key)
