"""measure and print_utilization in real programs."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from tests.e2e.lab import ROOT
from tests.e2e.programs import (
    DEMO,
    Program,
    agent,
    machine,
    on,
    outlived,
    run,
    told,
)
from tests.fake_nvml import Clock, Scenario

pytestmark = pytest.mark.skipif(not hasattr(os, "pidfd_open"), reason="needs Linux")


def test_measuring_starts_a_quiet_monitor_and_the_program_ends_cleanly(tmp_path: Path) -> None:
    code = """
onto_the_gpus()
@gpulse.measure(show=False)
def work():
    until(lambda: gpulse.monitor.monitor.running[0].latest)
    time.sleep(0.15)
work()
with gpulse.measure("block") as block:
    time.sleep(0.15)
with gpulse.measure("short") as short: pass
total = gpulse.measurements()
print(total["work"].calls, total["block"].calls, len(block.gpus), block.memory_peak > 0, block.energy, short.gpus, flush=True)
sys.stdin.readline()
"""
    scenario = machine(2).process(gpu=1, pid="OWN", memory="1 GiB")
    with Program(code, tmp_path, on(scenario, tmp_path)) as program:
        assert program.line() == "1 1 1 True None ()"
        with outlived(agent(program.pid)) as wait:
            program.go()
            ended = program.end()
            wait()
    assert ended.code == 0
    lines = sorted(ended.err.splitlines())
    assert [line.split()[0] for line in lines] == ["block", "short"]
    assert "GiB" in lines[0]
    assert "GiB" not in lines[1]


def test_a_measurement_sees_the_memory_of_the_driver_and_of_this_process(tmp_path: Path) -> None:
    scenario = machine(2).gpu(1, memory__used="steps(0:1 GiB, 5s:3 GiB)")
    scenario.process(gpu=1, pid="self", memory="1 GiB")
    environ = on(scenario, tmp_path)
    clock = Clock(tmp_path / "machine")
    code = """
m = gpulse.Monitor(interval=0.1, mode="thread").start()
until(lambda: m.latest)
with gpulse.measure("grow", show=False) as grow:
    print("inside", flush=True)
    sys.stdin.readline()
    until(lambda: m.latest.gpus[1].memory_used == 3 << 30)
    time.sleep(0.15)
print([getattr(grow, name) / 2**30 for name in ('device_memory_peak', 'device_memory_net', 'memory_peak', 'memory_net')], flush=True)
print([gpu.index for gpu in grow.gpus], grow.utilization.mean)
"""
    with Program(code, tmp_path, environ | clock.environment) as program:
        program.line()
        clock.set(6.0)
        program.go()
        assert program.line() == "[3.0, 2.0, 1.0, 0.0]"
        assert program.line() == "[1] 11.0"
        assert program.end().code == 0


def test_a_monitor_may_stop_inside_a_measurement(tmp_path: Path) -> None:
    code = """
for pause in (0, 0.15):
    m = gpulse.Monitor(interval=0.1).start()
    until(lambda: m.latest)
    with gpulse.measure("x", show=False) as x:
        time.sleep(pause)
        m.stop()
    assert x.wait(0)
print(json.dumps(gpulse.measurements()["x"].calls))
"""
    assert told(code, tmp_path, DEMO) == 2


def test_measuring_where_there_is_no_driver(tmp_path: Path) -> None:
    code = "with gpulse.measure('x', show=False) as x:\n    until(lambda: gpulse.monitor.monitor.running[0].errors)\n"
    ended = run(f"{code}print(x.seconds > 0, x.gpus)", tmp_path, on(Scenario.load("not-loaded"), tmp_path))
    assert (ended.code, ended.out, ended.err.count("\n")) == (0, "True ()\n", 1), ended


def test_a_quick_sample(tmp_path: Path) -> None:
    code = "gpulse.print_utilization()"
    seen = run(code, tmp_path, on(machine(), tmp_path, CUDA_VISIBLE_DEVICES="3,1"))
    assert (seen.code, seen.err) == (0, "")
    lines = seen.out.splitlines()
    assert [line[:5] for line in lines] == ["GPU 0", "GPU 1"]
    assert "util 13 %" in lines[0]
    assert "103 W" in lines[0]
    assert "util 11 %" in lines[1]


def test_a_quick_sample_says_what_this_process_holds(tmp_path: Path) -> None:
    scenario = machine(2).process(gpu=1, pid="self", memory="1536 MiB")
    seen = run("gpulse.print_utilization()", tmp_path, on(scenario, tmp_path))
    assert (seen.code, seen.err) == (0, "")
    other, own = seen.out.splitlines()
    assert "this process" not in other
    assert own.endswith("this process 1.5 GiB")


def test_a_quick_sample_where_there_is_nothing_to_see(tmp_path: Path) -> None:
    hidden = run("gpulse.print_utilization()", tmp_path, on(machine(), tmp_path, CUDA_VISIBLE_DEVICES=""))
    assert (hidden.code, hidden.err) == (0, "")
    assert "no GPU is visible" in hidden.out
    missing = run("gpulse.print_utilization(sys.stderr)", tmp_path, on(Scenario.load("not-loaded"), tmp_path))
    assert (missing.code, missing.out, missing.err.count("\n")) == (0, "", 1)
    assert missing.err.startswith("gpulse: ")


def test_importing_the_monitor_starts_nothing(tmp_path: Path) -> None:
    code = """
before = threading.active_count(), len(os.listdir("/proc/self/fd"))
gpulse.Monitor, gpulse.measure, gpulse.print_utilization
after = threading.active_count(), len(os.listdir("/proc/self/fd"))
print(json.dumps([before == after, [name for name in ("subprocess", "typing", "asyncio", "logging") if name in sys.modules]]))
"""
    same, loaded = told(code, tmp_path, DEMO)
    assert same
    assert "asyncio" not in loaded
    assert ROOT.exists()


def test_collecting_by_hand(tmp_path: Path) -> None:
    code = """
m = gpulse.Monitor(interval=0.1, source="nvidia").start()
until(lambda: m.collect())
first = m.collect()
for _ in m.batches(range(20)):
    time.sleep(0.01)
last = m.collect()
print(json.dumps([first["gpu0/utilization"], first["gpu1/utilization"], "host/cpu_percent" in last, last["train/steps_per_second"] > 0]))
"""
    assert told(code, tmp_path, on(machine(), tmp_path, CUDA_VISIBLE_DEVICES="3,1")) == [13.0, 11.0, True, True]


def test_what_this_process_uses_reaches_sinks_and_hand_written_logs(tmp_path: Path) -> None:
    scenario = machine(2).process(gpu=1, pid="self", memory="1 GiB", sm=30)
    code = """
sink = Values()
m = gpulse.Monitor(sink.sink, interval=0.1, mode="thread").start()
values = sink(lambda values: "gpu1/process_sm_utilization" in values and "gpu1/process_memory_used" in values)
until(lambda: "gpu1/process_memory_used" in m.collect())
own = {key: value for key, value in m.collect().items() if "process_" in key}
print(json.dumps([own["gpu1/process_memory_used"] / 2**30, [key for key in values if key.startswith("gpu0/process")]]))
"""
    assert told(code, tmp_path, on(scenario, tmp_path)) == [1.0, []]
