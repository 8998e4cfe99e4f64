"""A monitor in real programs: what it sees, and that it never hurts them."""

from __future__ import annotations

import os
import signal
from pathlib import Path

import pytest

from tests.e2e.programs import (
    DEMO,
    UUIDS,
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

# --- what it sees

SEEN = """
values = Values()
with gpulse.Monitor(values.sink, interval=0.1{more}) as m:
    found = values(lambda seen: "host/cpu_percent" in seen and "process/cpu_percent" in seen)
    print(json.dumps({{tag: value for tag, value in found.items() if tag.startswith("gpu")}}))
"""


def expected(**by_ordinal: int) -> dict[str, float]:
    """Return the values of the machine's GPUs, by the name they go by."""
    values: dict[str, float] = {}
    for name, at in by_ordinal.items():
        values |= {
            f"{name}/utilization": 10 + at,
            f"{name}/temperature": 40 + at,
            f"{name}/power_draw": 100 + at,
            f"{name}/memory_used": (at + 1) << 30,
        }
    return values


def some_of(values: dict[str, float]) -> dict[str, float]:
    keys = ("utilization", "temperature", "power_draw", "memory_used")
    return {tag: value for tag, value in values.items() if tag.endswith(tuple(f"/{key}" for key in keys))}


@pytest.mark.parametrize("mode", ["process", "thread"])
@pytest.mark.parametrize(
    ("listed", "ordinals"),
    [
        (None, {"gpu0": 0, "gpu1": 1, "gpu2": 2, "gpu3": 3}),
        ("3,1", {"gpu0": 3, "gpu1": 1}),
        ("GPU-00000002", {"gpu0": 2}),
        ("", {}),
        ("-1", {}),
        ("1,-1,2", {"gpu0": 1}),
    ],
)
def test_values_are_the_drivers_by_cuda_ordinal(
    tmp_path: Path, listed: str | None, ordinals: dict[str, int], mode: str
) -> None:
    listing = {} if listed is None else {"CUDA_VISIBLE_DEVICES": listed}
    seen = told(SEEN.format(more=f", mode={mode!r}"), tmp_path, on(machine(), tmp_path, **listing))
    assert some_of(seen) == expected(**ordinals)


@pytest.mark.parametrize(
    ("gpus", "ordinals"),
    [
        ("'all'", {"gpu0": 0, "gpu1": 1, "gpu2": 2, "gpu3": 3}),
        ("[2, 0]", {"gpu0": 0, "gpu2": 2}),
        (f"{UUIDS[3]!r}", {"gpu3": 3}),
    ],
)
def test_all_or_named_gpus_go_by_the_drivers_number(tmp_path: Path, gpus: str, ordinals: dict[str, int]) -> None:
    environ = on(machine(), tmp_path, CUDA_VISIBLE_DEVICES="1")
    assert some_of(told(SEEN.format(more=f", gpus={gpus}"), tmp_path, environ)) == expected(**ordinals)


def test_a_mig_instance_is_gpu_0(tmp_path: Path) -> None:
    scenario = Scenario.load("h100-mig")
    whole = "import json\nprint([part.uuid for part in gpulse.snapshot().gpus[0].instances][0])"
    uuid = run(whole, tmp_path, on(scenario, tmp_path)).out.strip()
    assert uuid.startswith("MIG-")
    seen = told(SEEN.format(more=""), tmp_path, on(scenario, tmp_path, CUDA_VISIBLE_DEVICES=uuid))
    assert seen["gpu0/memory_used"] == 30 << 30
    assert not [tag for tag in seen if not tag.startswith("gpu0/")]


def test_only_the_named_metrics_are_logged(tmp_path: Path) -> None:
    seen = told(SEEN.format(more=", metrics=['power.draw', 'temperature']"), tmp_path, on(machine(1), tmp_path))
    assert seen == {"gpu0/power_draw": 100.0, "gpu0/temperature": 40}


def test_an_unknown_gpu_is_one_sentence_and_the_program_goes_on(tmp_path: Path) -> None:
    code = "with gpulse.Monitor(gpus=[9], interval=0.1) as m:\n    until(lambda: m.errors)\nprint('done')"
    ended = run(code, tmp_path, on(machine(), tmp_path))
    assert (ended.code, ended.out, ended.err.count("\n")) == (0, "done\n", 1), ended
    assert ended.err.startswith("gpulse: ")


def test_a_wrong_argument_is_told_at_once(tmp_path: Path) -> None:
    for wrong in ("interval=0", "mode='fork'", "metrics=['nonsense']", "gpus=[]"):
        ended = run(f"gpulse.Monitor({wrong})", tmp_path, DEMO)
        assert ended.code == 1
        assert "gpulse.errors." in ended.err.splitlines()[-1]


def test_phases_steps_and_marks_reach_summary_and_samples(tmp_path: Path) -> None:
    code = """
values = Values()
with gpulse.Monitor(values.sink, interval=0.1) as m:
    with m.phase("train"):
        for batch in m.batches(range(5)):
            m.mark("epoch", batch)
        with m.phase("eval"):
            values(lambda seen: "mark/epoch" in seen and seen.get("train/steps_per_second"))
            before = values.count
            until(lambda: values.count > before + 1)
summary = m.summary()
print(json.dumps([summary.steps, values.step, [[p.name, p.calls, p.steps, p.samples > 0] for p in summary.phases],
                  len(summary.gpus), m.latest is not None, m.stop()]))
"""
    assert told(code, tmp_path, DEMO) == [
        5,
        5,
        [["train", 1, 5, True], ["train/eval", 1, 0, True]],
        8,
        True,
        None,
    ]


def test_the_summary_is_printed_when_asked_for(tmp_path: Path) -> None:
    code = """
with gpulse.Monitor(interval=0.1, report=True) as m:
    with m.phase("eval"):
        until(lambda: m.latest)
"""
    ended = run(code, tmp_path, on(machine(2), tmp_path))
    assert (ended.code, ended.out) == (0, "")
    lines = ended.err.splitlines()
    assert lines[0].startswith("gpulse: ")
    assert [line.split(" · ")[1].strip() for line in lines[1:3]] == ["util 10 % (p95 10)", "util 11 % (p95 11)"]
    assert lines[-1].split()[0] == "eval"


# --- drivers in trouble


def test_a_driver_that_hangs_at_the_start_is_one_sentence(tmp_path: Path) -> None:
    code = "m = gpulse.Monitor(interval=0.1).start()\nuntil(lambda: m.latest)\nprint(m.stop().gpus, m.errors)"
    ended = run(code, tmp_path, on(Scenario.load("init-hang"), tmp_path))
    assert (ended.code, ended.out) == (0, "() 1\n"), ended
    assert ended.err.count("\n") == 1
    assert "does not respond" in ended.err


def test_a_program_may_end_while_the_driver_hangs_at_the_start(tmp_path: Path) -> None:
    code = "m = gpulse.Monitor(interval=0.1).start()\nprint('ready', flush=True)\nsys.stdin.readline()"
    with Program(code, tmp_path, on(Scenario.load("init-hang"), tmp_path)) as program:
        program.line()
        with outlived(agent(program.pid)) as wait:
            program.signal(signal.SIGKILL)
            wait()


@pytest.mark.parametrize(
    ("fault", "state"),
    [
        ({"function": "nvmlDeviceGetPowerUsage", "hang": "60s"}, "timeout"),
        ({"function": "*", "code": "GPU_IS_LOST"}, "lost"),
    ],
)
@pytest.mark.parametrize("mode", ["process", "thread"])
def test_a_gpu_in_trouble_says_so_and_the_other_goes_on(
    tmp_path: Path, fault: dict[str, str], state: str, mode: str
) -> None:
    environ = on(machine(2).fault(gpu=0, since="5s", **fault), tmp_path)
    clock = Clock(tmp_path / "machine")
    code = f"""
values = Values()
m = gpulse.Monitor(values.sink, interval=0.1, mode={mode!r}).start()
until(lambda: m.latest)
print([gpu.state for gpu in m.latest.gpus], flush=True)
sys.stdin.readline()
until(lambda: m.latest.gpus[0].state != "ok")
print([gpu.state for gpu in m.latest.gpus], flush=True)
values(lambda seen: "gpu0/power_draw" not in seen and "gpu1/power_draw" in seen)
summary = m.stop()
print([gpu.state for gpu in summary.gpus], flush=True)
"""
    with Program(code, tmp_path, environ | clock.environment) as program:
        assert program.line() == "['ok', 'ok']"
        clock.set(6.0)
        program.go()
        assert program.line() == f"[{state!r}, 'ok']"
        assert program.line() == f"[{state!r}, 'ok']"
        ended = program.end()
    assert (ended.code, ended.err) == (0, ""), ended


def test_no_driver_is_one_sentence_and_nothing_else(tmp_path: Path) -> None:
    code = "m = gpulse.Monitor(interval=0.1).start()\nuntil(lambda: m.errors)\nm.step()\nprint('done')"
    ended = run(code, tmp_path, on(Scenario.load("not-loaded"), tmp_path))
    assert (ended.code, ended.out, ended.err.count("\n")) == (0, "done\n", 1), ended
    assert ended.err.startswith("gpulse: ")


def test_a_source_that_does_not_exist_is_one_sentence(tmp_path: Path) -> None:
    code = "m = gpulse.Monitor(interval=0.1).start()\nuntil(lambda: m.errors)\nprint('done')"
    ended = run(code, tmp_path, DEMO | {"GPULSE_SOURCE": "nonsense"})
    assert (ended.code, ended.out, ended.err.count("\n")) == (0, "done\n", 1), ended


# --- sinks


def test_a_sink_that_cannot_be_opened_or_written_costs_only_itself(tmp_path: Path) -> None:
    code = """
from gpulse.sinks import Sink
class Unopened(Sink):
    name = "unopened"
    def open(self): raise ImportError
class Failing(Sink):
    name = "failing"
    def write(self, sample): raise ValueError("no")
values = Values()
with gpulse.Monitor([Unopened(), Failing(), values.sink], interval=0.1) as m:
    until(lambda: values.count > 3)
print(m.errors)
"""
    ended = run(code, tmp_path, DEMO)
    assert (ended.code, ended.out) == (0, "2\n"), ended
    assert ended.err.splitlines() == [
        "gpulse: unopened: ImportError (this program continues without this sink).",
        "gpulse: failing: no (reported once; other samples are still written).",
    ]


def test_a_sink_that_hangs_is_named_and_left_behind(tmp_path: Path) -> None:
    code = """
hangs = threading.Event()
values = Values()
class Hanging(gpulse.sinks.Sink):
    name = "hanging"
    def write(self, sample):
        hangs.set()
        threading.Event().wait()
with gpulse.Monitor([Hanging(), values.sink], interval=0.1) as m:
    hangs.wait()
    until(lambda: values.count > 3)
print("done")
"""
    ended = run(code, tmp_path, DEMO)
    assert (ended.code, ended.out, ended.err.count("\n")) == (0, "done\n", 1), ended
    assert "hanging did not finish in time" in ended.err
