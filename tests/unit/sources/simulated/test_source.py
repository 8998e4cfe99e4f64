"""The demo source keeps the seam's contract: complete, believable, and a function of seed and time alone."""

from __future__ import annotations

import subprocess
import sys
from typing import TYPE_CHECKING

from hypothesis import given, settings
from hypothesis import strategies as st

from gpulse.model.catalog import GPU_METRICS, HOST_METRICS, PROCESS_METRICS
from gpulse.model.metric import Metric
from gpulse.sources.base import Facts
from tests.unit.sources.simulated.demo import GPU_KEYS, HOST_KEYS, PROCESS_KEYS, Demo, number, numbers

if TYPE_CHECKING:
    from gpulse.model.metric import Value

_ELAPSED = st.floats(min_value=0.0, max_value=1e6, allow_nan=False)
_SHARED = Demo()


def _picture(demo: Demo, elapsed: float) -> list[object]:
    source = demo.at(elapsed)
    samples = [device.read(GPU_KEYS, PROCESS_KEYS) for device in source.devices]
    pids = {pid for sample in samples for pid in sample.processes}
    known = source.machine.processes(pids, PROCESS_KEYS)
    return [
        source.machine.host(HOST_KEYS).values,
        *((sample.values, sample.gaps, _values(sample.processes)) for sample in samples),
        _values(known),
    ]


def _values(known: dict[int, Facts]) -> dict[int, dict[str, Value]]:
    return {pid: facts.values for pid, facts in known.items()}


def _believable(facts: Facts, catalog: dict[str, Metric]) -> None:
    for key, value in facts.values.items():
        metric = catalog[key]
        for part in value if isinstance(value, tuple) else (value,):
            if isinstance(part, (int, float)) and not isinstance(part, bool):
                assert metric.low <= part <= metric.high, (key, part)


@settings(deadline=None)
@given(seed=st.integers(0, 2**31), elapsed=_ELAPSED, opened=st.sampled_from([0.0, 4096.0]))
def test_same_seed_and_clock_give_the_same_picture(seed: int, elapsed: float, opened: float) -> None:
    assert _picture(Demo(seed, opened), elapsed) == _picture(Demo(seed, opened), elapsed)


def test_another_seed_gives_another_machine() -> None:
    one, other = Demo(1), Demo(2)
    assert one.source.devices[0].identity["uuid"] != other.source.devices[0].identity["uuid"]
    assert one.read(0, 5.0).values != other.read(0, 5.0).values


@settings(deadline=None)
@given(order=st.permutations([0.0, 3.7, 49.9, 50.1, 68.5, 400.0]))
def test_order_and_number_of_reads_do_not_matter(order: list[float]) -> None:
    demo = Demo()
    seen = {elapsed: _picture(demo, elapsed) for elapsed in (*order, *order)}
    assert all(_picture(_SHARED, elapsed) == picture for elapsed, picture in seen.items())


@settings(deadline=None)
@given(elapsed=_ELAPSED)
def test_every_gpu_key_is_there_or_has_a_gap_and_is_believable(elapsed: float) -> None:
    for device in _SHARED.at(elapsed).devices:
        sample = device.read(GPU_KEYS, PROCESS_KEYS)
        known = set(device.identity) | set(sample.values)
        assert not known & set(sample.gaps)
        assert known | set(sample.gaps) == GPU_KEYS
        _believable(sample, GPU_METRICS)
        for facts in sample.processes.values():
            _believable(facts, PROCESS_METRICS)


@settings(deadline=None)
@given(elapsed=_ELAPSED)
def test_machine_is_complete_and_believable(elapsed: float) -> None:
    machine = _SHARED.at(elapsed).machine
    host = machine.host(HOST_KEYS)
    assert set(host.values) == HOST_KEYS
    _believable(host, HOST_METRICS)
    pids = {pid for gpu in range(8) for pid in _SHARED.read(gpu, elapsed).processes}
    known = machine.processes(pids, PROCESS_KEYS)
    assert set(known) == pids
    for facts in known.values():
        _believable(facts, PROCESS_METRICS)
        assert number(facts, "running_time") >= 0


def test_only_what_was_asked_for_is_read() -> None:
    device = _SHARED.at(0.0).devices[0]
    sample = device.read(frozenset({"temperature", "fan_speed"}), frozenset({"memory_used"}))
    assert set(sample.values) == {"temperature"}
    assert sample.gaps == {"fan_speed": "unsupported"}
    assert [set(facts.values) for facts in sample.processes.values()] == [{"memory_used"}]
    assert device.read(GPU_KEYS, None).processes == {}
    assert _SHARED.source.machine.processes({1}, PROCESS_KEYS) == {}


def test_gpus_have_their_own_names() -> None:
    identities = [device.identity for device in _SHARED.source.devices]
    assert [identity["index"] for identity in identities] == list(range(8))
    for key in ("uuid", "pci_bus_id", "serial"):
        assert len({identity[key] for identity in identities}) == 8


@settings(deadline=None)
@given(elapsed=_ELAPSED)
def test_memory_adds_up(elapsed: float) -> None:
    for gpu in range(8):
        sample = _SHARED.read(gpu, elapsed)
        held = sum(number(facts, "memory_used") for facts in sample.processes.values())
        assert 0 <= number(sample, "memory_used") - held < 16 << 20
        parts = sum(number(sample, f"memory_{part}") for part in ("used", "free", "reserved"))
        assert parts == number(sample, "memory_total")
        assert number(sample, "memory_free") >= 0


@settings(deadline=None)
@given(elapsed=_ELAPSED, gpu=st.integers(0, 7), steps=st.lists(st.floats(0.001, 90.0), min_size=1, max_size=6))
def test_energy_never_falls(elapsed: float, gpu: int, steps: list[float]) -> None:
    energy = number(_SHARED.read(gpu, elapsed), "energy")
    for step in steps:
        elapsed += step
        energy, before = number(_SHARED.read(gpu, elapsed), "energy"), energy
        assert energy > before


@settings(deadline=None)
@given(elapsed=st.floats(0.0, 1e5), gpu=st.integers(0, 7), seconds=st.integers(1, 120))
def test_energy_is_the_integral_of_power(elapsed: float, gpu: int, seconds: int) -> None:
    """Power is the mean of the last second, so its readings a second apart add up to the energy without remainder."""
    powers = numbers(_SHARED.watch(gpu, (elapsed + second for second in range(1, seconds + 1))), "power_draw")
    used = number(_SHARED.read(gpu, elapsed + seconds), "energy") - number(_SHARED.read(gpu, elapsed), "energy")
    assert abs(used - sum(powers)) < 0.001 * (seconds + 2)


def test_energy_agrees_with_power_sampled_at_ten_hertz() -> None:
    for gpu in range(8):
        samples = _SHARED.watch(gpu, (tenth / 10 for tenth in range(3001)))
        integral = sum(numbers(samples[1:], "power_draw")) * 0.1
        used = number(samples[-1], "energy") - number(samples[0], "energy")
        assert abs(used - integral) / used < 0.004


def test_reads_like_a_driver() -> None:
    for gpu in range(8):
        for sample in _SHARED.watch(gpu, (third / 3 for third in range(300))):
            assert all(isinstance(sample.values[key], int) for key in ("utilization", "temperature", "clock_sm"))
            assert number(sample, "clock_sm") % 15 == 0
            assert all(number(sample, key) == round(number(sample, key), 2) for key in ("sm_active", "dram_active"))
            assert number(sample, "tensor_active") <= number(sample, "sm_active")


def test_importing_it_loads_nothing_slow() -> None:
    slow = "{'typing', 'dataclasses', 'random', 'datetime', 'enum', 're', 'asyncio'}"
    program = f"import sys, gpulse.sources.simulated.source; print(*{slow} & set(sys.modules))"
    done = subprocess.run(
        [sys.executable, "-S", "-c", program], capture_output=True, text=True, env=_path(), check=True
    )
    assert done.stdout.strip() == ""


def _path() -> dict[str, str]:
    import gpulse

    assert gpulse.__file__
    return {"PYTHONPATH": gpulse.__file__.rsplit("/", 2)[0]}


def test_open_begins_anew_and_close_lets_go() -> None:
    demo = Demo()
    first = demo.read(5, 0.0).values
    demo.at(33.0).open()
    assert demo.source.devices[5].read(GPU_KEYS, None).values == first
    demo.source.close()
    demo.source.close()
    assert not demo.source.devices


def test_traces_have_each_step_once_and_agree_with_the_counter_of_energy() -> None:
    demo, keys = Demo(), frozenset({"power_trace", "utilization_trace", "energy"})
    first = demo.at(10.0).devices[4].read(keys, None)
    second = demo.at(12.0).devices[4].read(keys, None)
    assert [len(_trace(first, key)) for key in ("power_trace", "utilization_trace")] == [119, 71]
    assert [len(_trace(second, key)) for key in ("power_trace", "utilization_trace")] == [100, 10]
    spent = number(second, "energy") - number(first, "energy")
    assert abs(0.02 * sum(_trace(second, "power_trace")) - spent) < 0.02 * spent
    assert demo.at(12.0).devices[4].read(keys, None).gaps == dict.fromkeys(
        ("power_trace", "utilization_trace"), "pending"
    )


def _trace(facts: Facts, key: str) -> tuple[float, ...]:
    value = facts.values[key]
    assert isinstance(value, tuple)
    return tuple(float(one) for one in value)
