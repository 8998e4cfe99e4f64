"""The public test kit: code that uses gpulse sees what a script says, through every entry point."""

from __future__ import annotations

import os
import threading
from pathlib import Path
from typing import Any

import pytest

import gpulse
from gpulse.errors import NoFreeGpu, SourceUnavailable, UsageError
from gpulse.sinks import CallableSink
from gpulse.sources.registry import default_source

GIB = 1 << 30
SHORT = 60.0  # seconds before a wait counts as failed


@pytest.fixture(autouse=True)
def no_environment(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.delenv("CUDA_VISIBLE_DEVICES", raising=False)
    monkeypatch.setenv("GPULSE_CLAIMS", str(tmp_path))


def test_every_sample_moves_the_script_on_and_the_last_step_stays() -> None:
    steps: list[Any] = [{0: {"utilization": 95, "energy": 10.0}}, {1: "lost"}, {1: "ok", "host": {"cpu_percent": 50}}]
    with gpulse.testing.scripted(gpus=2, steps=steps) as script:
        first, second, third, fourth, fifth = (gpulse.snapshot() for _ in range(5))
        assert repr(script) == "<Script 2 GPUs, step 3 of 3, 5 samples>"
    assert [gpu.utilization for gpu in first.gpus] == [0, 0]
    assert first.gpus[0].gap("energy") == "unsupported"
    assert (second.gpus[0].utilization, second.gpus[0].energy) == (95, 10.0)
    assert (third.gpus[1].state, third.gpus[1].utilization, third.gpus[1].gap("utilization")) == ("lost", None, "lost")
    assert third.gpus[1].uuid == first.gpus[1].uuid
    assert (fourth.gpus[1].state, fourth.host.cpu_percent) == ("ok", 50)
    assert fifth.gpus == fourth.gpus


def test_a_stream_sees_slow_metrics_change_at_every_step() -> None:
    steps = [{0: {"energy": float(at)}} for at in range(1, 4)]
    with gpulse.testing.scripted(gpus=[{"energy": 0.0}], steps=steps):
        stream = gpulse.stream(0.001, ["energy"])
        assert [next(stream).gpus[0].energy for _ in range(4)] == [0.0, 1.0, 2.0, 3.0]
        stream.close()


def test_only_what_is_asked_for_is_there() -> None:
    with gpulse.testing.scripted():
        gpu = gpulse.snapshot(["utilization"]).gpus[0]
    assert gpu.utilization == 0
    assert gpu.temperature is None
    assert gpu.gap("temperature") == "skipped"


def test_processes_gaps_and_instances() -> None:
    process = {"pid": 4242, "name": "python", "user": "ada", "memory_used": 3 * GIB}
    gpus: list[dict[str, Any]] = [
        {"memory_used": 4 * GIB, "processes": [process], "gaps": {"temperature": "denied"}},
        {"gaps": {"processes": "denied"}},
        {"mig_mode": True, "instances": [{"memory_used": GIB, "processes": [{"pid": 7}]}]},
    ]
    with gpulse.testing.scripted(gpus):
        one, two, three = gpulse.gpus()
    assert (one.processes[0].pid, one.processes[0].name, one.processes[0].user) == (4242, "python", "ada")
    assert one.processes[0].gap("command") == "unsupported"
    assert one.gap("temperature") == "denied"
    assert one.memory_percent == 5.0
    assert one.memory_unattributed == GIB
    assert two.gap("processes") == "denied"
    assert three.instances[0].memory_used == GIB
    assert [each.pid for each in three.all_processes()] == [7]


def test_pick_takes_the_free_gpu_and_says_why_there_is_none() -> None:
    busy = {"processes": [{"pid": 1, "name": "train", "user": "bob", "memory_used": GIB}]}
    with gpulse.testing.scripted([busy, {}]):
        assert [gpu.index for gpu in gpulse.pick(window=0)] == [1]
        assert len(gpulse.visible_gpus()) == 2
    with gpulse.testing.scripted([busy]), pytest.raises(NoFreeGpu, match="held by bob"):
        gpulse.pick(window=0)


def test_a_monitor_samples_the_script_in_a_thread() -> None:
    seen: list[float | None] = []
    enough = threading.Event()

    def take(values: dict[str, float], step: int | None, time: float) -> None:
        seen.append(values.get("gpu0/utilization"))
        if len(seen) >= 3:
            enough.set()

    steps = [{0: {"utilization": 40}}, {0: {"utilization": 80}}]
    with (
        gpulse.testing.scripted(steps=steps),
        gpulse.Monitor(CallableSink(take), interval=0.1) as monitor,
    ):
        assert monitor.agent_pid is None
        assert enough.wait(SHORT)
    assert seen[:3] == [0, 40, 80]


def test_measure_sees_the_script_and_forgets_it_afterwards() -> None:
    for share in (30, 60):
        with gpulse.testing.scripted([{"utilization": share, "memory_used": GIB}]):
            with gpulse.measure("work", show=False) as measurement:
                threading.Event().wait(0.15)  # long enough to be sampled
            assert measurement.wait(SHORT)
            assert measurement.utilization is not None
            assert measurement.utilization.max == share
            assert measurement.memory_peak == GIB


def test_nested_scripts_and_the_environment_come_back(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GPULSE_SOURCE", "demo")
    with gpulse.testing.scripted(gpus=1):
        assert len(gpulse.gpus(["name"])) == 1
        with gpulse.testing.scripted(gpus=3):
            assert len(gpulse.gpus(["name"])) == 3
        assert len(gpulse.gpus(["name"])) == 1
        assert len(gpulse.gpus(["name"], source="demo")) == 8
        assert os.environ["GPULSE_SOURCE"] == "demo"
    assert default_source() == "demo"


@gpulse.testing.scripted(gpus=[{"name": "H200"}])
def test_it_is_a_decorator_too() -> None:
    assert gpulse.gpus(["name"])[0].name == "H200"


def test_it_moves_by_hand() -> None:
    with gpulse.testing.scripted(steps=[{0: {"utilization": 1}}, {0: {"utilization": 2}}], advance=False) as script:
        assert [gpulse.gpus()[0].utilization for _ in range(2)] == [0, 0]
        script.advance(2)
        assert gpulse.gpus()[0].utilization == 2
        script.set(0, utilization=9, state="asleep")
        assert gpulse.gpus()[0].state == "asleep"
        script.set(0, state="ok")
        assert gpulse.gpus()[0].utilization == 9


def test_a_machine_without_gpus() -> None:
    with gpulse.testing.scripted(unavailable="no driver here."), pytest.raises(SourceUnavailable, match="no driver"):
        gpulse.snapshot()


@pytest.mark.parametrize(
    ("given", "says"),
    [
        ({"gpus": [{"utilisation": 1}]}, "did you mean 'utilization'"),
        ({"gpus": [{"utilization": 101}]}, "not between 0 and 100"),
        ({"gpus": [{"utilization": True}]}, "is not a number"),
        ({"gpus": [{"name": 3}]}, "is not a str"),
        ({"gpus": [{"throttle_reasons": "hot"}]}, "is not a list of words"),
        ({"gpus": [{"memory_percent": 3}]}, "memory_percent is derived"),
        ({"gpus": [{"memory.used": 3}]}, "another tool's name"),
        ({"gpus": [{"state": "gone"}]}, "'gone' is not a state"),
        ({"gpus": [{"gaps": {"utilization": "why"}}]}, "'why' is not a reason"),
        ({"gpus": [{"processes": [{"name": "x"}]}]}, "needs a pid"),
        ({"steps": [{1: {"utilization": 1}}]}, "GPUs 0 to 0"),
        ({"steps": [{0: {"name": "other"}}]}, "it never changes"),
        ({"steps": [{"host": {"cpu": 1}}]}, "unknown metric 'cpu'"),
    ],
    ids=lambda given: "" if isinstance(given, str) else str(given)[:40],
)
def test_a_mistake_in_a_script_is_found_when_it_is_made(given: dict[str, Any], says: str) -> None:
    with pytest.raises(UsageError, match=says):
        gpulse.testing.scripted(**given)
