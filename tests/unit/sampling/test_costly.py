"""Activity counters, process lists and traces, which are read less often than the other metrics."""

from __future__ import annotations

from gpulse.model.catalog import TRACES
from gpulse.model.select import Wanted
from gpulse.sampling.clock import SystemClock
from gpulse.sampling.sampler import Sampler
from gpulse.sources.base import Device, DeviceSample, Facts, Listing, Machine, Source

Key = frozenset[str]


class Hands(SystemClock):
    """A clock that stands where a test puts it."""

    at = 100.0

    def monotonic(self) -> float:
        return self.at

    def asleep(self) -> float:
        return 0.0


class Counting(Device):
    """A GPU that keeps what it was asked for."""

    identity = {"uuid": "GPU-1", "index": 0}
    lists_apart = True

    def __init__(self) -> None:
        self.asked: list[Key] = []
        self.listed = 0

    def read(self, keys: Key, process_keys: Key | None) -> DeviceSample:
        self.asked.append(keys)
        sample = DeviceSample()
        sample.values = {key: (7.0,) if key in TRACES else 7.0 for key in keys}
        return sample

    def list_processes(self, process_keys: Key) -> Listing:
        self.listed += 1
        listing = Listing()
        listing.processes = {4711: Facts()}
        return listing


class Host(Machine):
    def processes(self, pids: object, keys: Key) -> dict[int, Facts]:
        return {}


class One(Source):
    name = "one"
    machine = Host()

    def __init__(self) -> None:
        self.device = Counting()
        self.devices = (self.device,)

    def open(self) -> None:
        pass

    def close(self) -> None:
        pass


def sampled(every: float, keys: tuple[str, ...] = ()) -> tuple[Sampler, Hands, Counting]:
    clock, source = Hands(), One()
    wanted = Wanted({"power_draw", "sm_active", "energy", *keys}, {"memory_used"})
    return Sampler(source, wanted, clock=clock, costly_every=every).open(), clock, source.device


def test_they_are_read_with_every_sample_unless_said_otherwise() -> None:
    sampler, clock, device = sampled(0.0)
    for step in range(3):
        clock.at = 100.0 + step / 10
        assert sampler.read().gpus[0].sm_active == 7.0
    assert device.listed == 3
    sampler.close()


def test_they_are_read_once_per_second_and_are_missing_in_between() -> None:
    sampler, clock, device = sampled(1.0)
    seen = []
    for step in range(21):
        clock.at = 100.0 + step / 10
        gpu = sampler.read().gpus[0]
        assert gpu.power_draw == 7.0
        seen.append((gpu.sm_active, len(gpu.processes), gpu.gaps.get("processes")))
    complete = (7.0, 1, None)
    assert [at for at, one in enumerate(seen) if one == complete] == [0, 10, 20]
    assert set(seen) == {complete, (None, 0, "skipped")}
    assert device.listed == 3
    sampler.close()


def test_a_sample_in_a_hurry_has_everything_but_the_slow_metrics() -> None:
    sampler, clock, device = sampled(1.0)
    sampler.read()
    clock.at += 0.1
    sampler.hurry(slow=False)
    assert sampler.read().gpus[0].sm_active == 7.0
    assert device.asked[-1] == {"power_draw", "sm_active"}
    clock.at += 0.1
    sampler.hurry()
    sampler.read()
    assert device.asked[-1] == {"power_draw", "sm_active", "energy"}
    sampler.close()


def test_lists_can_be_read_always() -> None:
    sampler, clock, device = sampled(1.0)
    sampler.read()
    sampler.lists_every = 0.0
    clock.at += 0.1
    gpu = sampler.read().gpus[0]
    assert (gpu.sm_active, len(gpu.processes)) == (None, 1)
    assert device.listed == 2
    sampler.close()


def test_lists_can_be_rarer_than_counters_and_are_skipped_in_between() -> None:
    sampler, clock, device = sampled(0.0)
    sampler.lists_every = 1.0
    seen = []
    for step in range(11):
        clock.at = 100.0 + step / 10
        gpu = sampler.read().gpus[0]
        seen.append((gpu.sm_active, len(gpu.processes), gpu.gaps.get("processes")))
    assert seen == [(7.0, 1, None), *[(7.0, 0, "skipped")] * 9, (7.0, 1, None)]
    assert device.listed == 2
    sampler.close()


def test_only_what_was_asked_for_is_told_of_a_process() -> None:
    class Talkative(Host):
        def processes(self, pids: object, keys: Key) -> dict[int, Facts]:
            facts = Facts()
            facts.values = {"name": "python", "command": "python train.py --token secret"}
            return {4711: facts}

    source = One()
    source.machine = Talkative()
    sampler = Sampler(source, Wanted((), {"name"}), clock=Hands()).open()
    (process,) = sampler.read().gpus[0].processes
    assert dict(process.items()) == {"pid": 4711, "name": "python"}
    sampler.close()


def test_a_trace_is_in_the_sample_that_read_it_and_in_no_other() -> None:
    sampler, clock, _ = sampled(0.0, ("power_trace", "utilization_trace"))
    seen: dict[str, list[int]] = {"power_trace": [], "utilization_trace": [], "energy": []}
    for step in range(101):
        clock.at = 100.0 + step / 5
        gpu = sampler.read().gpus[0]
        for key, steps in seen.items():
            steps += [step] if gpu.get(key) is not None else []
        assert gpu.gap("power_trace") in (None, "skipped")
    assert seen["power_trace"] == [*range(0, 101, 5)]
    assert seen["utilization_trace"] == [0, 50, 100]
    assert seen["energy"] == [*range(101)]
    sampler.close()


def test_a_sample_in_a_hurry_has_the_trace_of_power() -> None:
    sampler, clock, device = sampled(0.0, ("power_trace",))
    sampler.read()
    clock.at += 0.2
    sampler.hurry(slow=False)
    sampler.read()
    assert "power_trace" in device.asked[-1]
    sampler.close()
