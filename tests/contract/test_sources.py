"""What every source owes the sampler, asked of each of them in the same words."""

from __future__ import annotations

import contextlib
import ctypes
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from gpulse.errors import GpulseError
from gpulse.model.catalog import GPU_METRICS, PROCESS_METRICS, Gpu
from gpulse.model.codec import to_line
from gpulse.model.metric import GAPS, Flag, Metric, Number, Numbers, Text, Words
from gpulse.model.select import EVERYTHING, Wanted
from gpulse.model.snapshot import Snapshot
from gpulse.sampling.sampler import Sampler
from gpulse.sources.base import Counter, DeviceSample, Facts, Source
from gpulse.sources.registry import make_source
from gpulse.sources.vendors import VENDORS
from gpulse.testing import ScriptedSource, scripted
from tests.e2e.lab import ROOT, environment
from tests.fake_nvml import Scenario
from tests.fake_nvml.build import SONAME
from tests.unit.sources.amd.cards import radeon
from tests.unit.sources.intel.cards import arc
from tests.unit.sources.jetson.boards import ORIN
from tests.unit.sources.smi.logs import log
from tests.unit.sources.trees import write_tree

SCRIPTED = "GPULSE_TEST_LIBRARY"  # set in the child that has the scripted driver loaded
MACHINES = ("dgx-h100x8", "h200-busy", "a100-mig", "h100-mig", "k80-old", "gb10-unified", "laptop", "zeros", "garbage")
TYPES: dict[type[Metric], type | tuple[type, ...]] = {
    Number: (int, float),
    Text: str,
    Flag: bool,
    Words: tuple,
    Numbers: tuple,
}


# Sources that read a tree or a file: what makes one in a folder, and the name of the source there.
RECORDED: dict[str, Callable[[Path], str]] = {
    "amd": lambda folder: f"amd:{radeon(folder)}",
    "intel": lambda folder: f"intel:{arc(folder)}",
    "jetson": lambda folder: f"jetson:{write_tree(folder, ORIN)}",
    "smi": lambda folder: f"smi:{write_tree(folder, {'smi.xml': log()}) / 'smi.xml'}",
}


@pytest.fixture(
    params=["nvidia"] if os.environ.get(SCRIPTED) else ["demo", "demo:mixed", "replay", "scripted", *RECORDED, "auto"]
)
def source(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Source]:
    name = request.param
    if name == "nvidia":
        ctypes.CDLL(os.environ[SCRIPTED])
    if name in RECORDED:
        name = RECORDED[name](tmp_path)
    if name == "auto":
        arc(radeon(tmp_path))
    if name == "replay":
        path = tmp_path / "recording.ndjson"
        path.write_text("".join(f"{to_line(snapshot)}\n" for snapshot in demo_snapshots(3)))
        name = f"replay:{path}*max"
    if name == "scripted":
        made: Source = ScriptedSource(scripted([{"energy": 1.0}, {"instances": [{}, {}]}]))
    else:
        made = make_source(name, str(tmp_path) if name == "auto" else None)
    yield made
    made.close()


def demo_snapshots(count: int) -> list[Snapshot]:
    sampler = Sampler(make_source("demo"), EVERYTHING).open()
    try:
        return [sampler.read() for _ in range(count)]
    finally:
        sampler.close()


def check_types(values: dict[str, object], metrics: dict[str, Metric]) -> None:
    for key, value in values.items():
        kind = TYPES[type(metrics[key])]
        assert isinstance(value, kind), (key, value)
        assert isinstance(metrics[key], Flag) or not isinstance(value, bool), (key, value)


def check_facts(facts: Facts, metrics: dict[str, Metric]) -> None:
    check_types(dict(facts.values), metrics)
    assert set(facts.gaps.values()) <= set(GAPS)
    assert all(isinstance(counter, Counter) for counter in facts.counters.values())


def samples(source: Source) -> list[tuple[DeviceSample, frozenset[str]]]:
    """Two looks at each device, as the sampler takes them, and what was asked for; of a recording, what it holds."""
    source.open()
    if (snapshot := source.recorded()) is not None:
        return [(recorded(gpu), frozenset(dict(gpu.items())) | gpu.gaps.keys()) for gpu in snapshot.gpus]
    keys = frozenset(key for key in EVERYTHING.gpu if GPU_METRICS[key].kind != "identity")
    keys -= {"memory_percent", "memory_unattributed"}  # the sampler's own
    snaps = []
    for _ in range(2):
        source.refresh()
        for device in source.devices:
            device.prime(keys)
            assert device.settled() in (True, False)
            snaps.append((device.read(keys, frozenset(PROCESS_METRICS)), keys))
    return snaps


def recorded(gpu: Gpu) -> DeviceSample:
    sample = DeviceSample()
    sample.values, sample.gaps = dict(gpu.items()), dict(gpu.gaps)
    for process in gpu.processes:
        facts = sample.processes[int(process.pid or 0)] = Facts()
        facts.values, facts.gaps = dict(process.items()), dict(process.gaps)
    return sample


def skip_recordings(source: Source) -> None:
    if source.recorded() is not None:
        pytest.skip("a recording is whole: nothing of it is read by itself")


def test_every_gpu_says_who_it_is_before_it_is_asked(source: Source) -> None:
    source.open()
    assert source.devices
    for device in source.devices:
        device.attach()
        assert {"index", "vendor"} <= device.identity.keys()
        assert {key for key in device.identity if key not in GPU_METRICS} == set()
        check_types(dict(device.identity), GPU_METRICS)
        for part in device.parts():
            assert {"index", "uuid", "name"} <= part.keys()
    uuids = [device.identity.get("uuid") for device in source.devices]
    assert len(set(uuids)) == len(uuids)
    assert all(isinstance(word, str) for word in (*source.driver, *source.driver.values()))


def test_every_metric_asked_for_is_a_value_or_a_counter_or_a_gap(source: Source) -> None:
    snaps = samples(source)
    assert snaps
    for sample, keys in snaps:
        for key in keys:
            places = (key in sample.values, key in sample.counters, key in sample.gaps)
            assert any(places), key
            assert places.count(True) == 1, (key, sample.gaps.get(key))


def test_values_have_the_types_of_the_catalog(source: Source) -> None:
    for sample, _ in samples(source):
        check_facts(sample, GPU_METRICS)
        for part in sample.instances:
            check_facts(part, GPU_METRICS)


def test_processes_are_well_formed(source: Source) -> None:
    for sample, _ in samples(source):
        for each in (sample, *sample.instances):
            for pid, facts in each.processes.items():
                assert isinstance(pid, int)
                assert pid > 0
                check_facts(facts, PROCESS_METRICS)
                assert facts.values.get("pid", pid) == pid
                assert set(str(facts.values.get("type", "C")).split("+")) <= {"C", "G", "M"}


def test_nothing_is_read_that_was_not_asked_for(source: Source) -> None:
    source.open()
    skip_recordings(source)
    for device in source.devices:
        device.prime(frozenset({"temperature"}))
        sample = device.read(frozenset({"temperature"}), None)
        assert not sample.processes
        dear = {"energy", "sm_active", "clock_sm_max", "pcie_rx", "power_draw"}
        assert not dear & (sample.values.keys() | sample.counters.keys())


def test_what_reaches_a_snapshot_can_be_written_down_and_is_believable(source: Source) -> None:
    sampler = Sampler(source, EVERYTHING).open()
    sampler.settle()
    for _ in range(2):
        snapshot = sampler.read()
        assert to_line(snapshot)
        for gpu in snapshot.gpus:
            assert gpu.state in ("ok", "lost", "timeout", "asleep")
            assert not set(gpu.gaps) & {key for key, _ in gpu.items()}
            for key, value in gpu.items():
                metric = GPU_METRICS[key]
                if isinstance(metric, Number) and isinstance(value, (int, float)) and metric.kind != "identity":
                    assert metric.low <= value <= metric.high, key
    sampler.close()


def test_a_source_may_be_closed_twice_and_before_it_was_opened(source: Source) -> None:
    source.close()
    source.open()
    source.close()
    source.close()


def test_a_source_opens_again_after_it_was_closed(source: Source) -> None:
    source.open()
    count = len(source.devices)
    source.close()
    source.open()
    assert len(source.devices) == count > 0


def test_a_device_read_after_its_source_was_closed_answers_with_gaps_or_values(source: Source) -> None:
    source.open()
    devices = list(source.devices)
    skip_recordings(source)
    source.close()
    for device in devices:
        sample = device.read(frozenset({"utilization", "sm_active"}), frozenset({"memory_used"}))
        assert {"utilization", "sm_active"} <= sample.values.keys() | sample.gaps.keys() | sample.counters.keys()


def test_a_sampler_over_a_closed_source_raises_nothing_but_its_own(source: Source) -> None:
    sampler = Sampler(source, Wanted(["utilization"])).open()
    sampler.read()
    sampler.close()
    with contextlib.suppress(GpulseError, StopIteration):
        assert isinstance(sampler.read(), Snapshot)


def test_the_machine_around_it_answers(source: Source) -> None:
    source.open()
    skip_recordings(source)
    host = source.machine.host(frozenset({"name", "load", "memory_used"}))
    assert host.values["name"]
    assert source.machine.processes([], frozenset()) == {}
    assert source.machine.foreign([]) is False


@pytest.mark.parametrize("name", ["auto", *VENDORS])
def test_this_computer_is_known_as_such_before_it_is_opened(name: str) -> None:
    assert make_source(name, "").machine.real


@pytest.mark.parametrize("name", ["demo", "demo:mixed", "replay", *RECORDED])
def test_a_simulation_or_a_recording_is_not_taken_for_this_computer(name: str, tmp_path: Path) -> None:
    if name == "replay":
        (tmp_path / "run.ndjson").write_text(to_line(demo_snapshots(1)[0]) + "\n")
        name = f"replay:{tmp_path / 'run.ndjson'}"
    assert not make_source(RECORDED[name](tmp_path) if name in RECORDED else name).machine.real


@pytest.mark.parametrize("machine", MACHINES)
def test_the_nvidia_source_keeps_all_this_on_a_scripted_driver(tmp_path: Path, machine: str) -> None:
    if os.environ.get(SCRIPTED):
        return  # this is that child
    env = environment(Scenario.load(machine), tmp_path / "fake")
    env[SCRIPTED] = str(Path(env.pop("LD_LIBRARY_PATH").split(os.pathsep)[0]) / SONAME)
    env["PYTEST_DISABLE_PLUGIN_AUTOLOAD"] = "1"  # plugins of other packages take two thirds of its CPU time
    command = [sys.executable, "-m", "pytest", str(Path(__file__)), "-k", "nvidia and not scripted", "--tb=short"]
    done = subprocess.run(command, cwd=ROOT, env=env, capture_output=True, text=True, check=False, timeout=60)
    assert done.returncode == 0, done.stdout[-3000:]
    assert " passed" in done.stdout
    assert "skipped" not in done.stdout
