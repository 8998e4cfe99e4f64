"""The sampler asks what is wanted, as often as it changes, and no failure of one hides the others."""

from __future__ import annotations

import threading
from collections.abc import Collection
from itertools import islice
from typing import TYPE_CHECKING

import pytest

from gpulse.errors import UnknownGpu
from gpulse.model.catalog import Gpu
from gpulse.model.select import Wanted
from gpulse.model.snapshot import Snapshot
from gpulse.sampling.clock import ManualClock
from gpulse.sources.base import Counter, DeviceSample, Facts
from tests.unit.scripted import (
    VALUES,
    ScriptedDevice,
    ScriptedMachine,
    ScriptedSource,
    lost,
    process,
    sample,
    sampler_of,
)

if TYPE_CHECKING:
    from gpulse.sources.base import Key

_START = 1_700_000_000.0
_FAST = frozenset({"utilization", "memory_used", "memory_total", "memory_reserved", "temperature"})


class TestWhatIsAsked:
    def test_static_values_once_slow_ones_every_five_seconds_fast_ones_each_time(self) -> None:
        device, clock = ScriptedDevice(0), ManualClock()
        sampler = sampler_of(device, clock=clock)
        for _ in range(7):
            sampler.read()
            clock.sleep(1.0)
        extra = [set(keys - _FAST) for keys in device.asked]
        assert extra == [{"energy", "power_default_limit"}, set(), set(), set(), set(), {"energy"}, set()]
        assert all(keys >= _FAST for keys in device.asked)

    def test_only_what_is_wanted(self) -> None:
        device, machine = ScriptedDevice(0), ScriptedMachine()
        sampler_of(device, wanted=Wanted(gpu=("temperature", "uuid")), machine=machine).read()
        assert device.asked == [{"temperature"}]
        assert device.asked_of_processes == [None]
        assert machine.asked_host == []
        assert machine.asked_processes == []

    def test_values_stay_between_the_samples_that_ask_for_them(self) -> None:
        sampler = sampler_of(ScriptedDevice(0))
        first, second = sampler.read().gpus[0], sampler.read().gpus[0]
        assert first == second
        assert (second.energy, second.power_default_limit, second.temperature) == (1000.0, 700.0, 0)

    def test_a_static_value_that_failed_is_asked_again_and_one_that_is_unsupported_is_not(self) -> None:
        def script(snap: int, keys: frozenset[str]) -> DeviceSample:
            answer = DeviceSample()
            answer.gaps.update({"power_default_limit": "failed", "temperature_limit": "unsupported"})
            return answer

        device = ScriptedDevice(0, script)
        sampler = sampler_of(device, wanted=Wanted(gpu=("power_default_limit", "temperature_limit")))
        gpus = [sampler.read().gpus[0] for _ in range(3)]
        assert device.asked[1:] == [{"power_default_limit"}] * 2
        assert gpus[2].gap("temperature_limit") == "unsupported"

    def test_absurd_values_are_dropped_and_counted(self) -> None:
        sampler = sampler_of(ScriptedDevice(0, lambda snap, keys: sample({"utilization": 808334905})))
        gpu = sampler.read().gpus[0]
        assert (gpu.utilization, gpu.gap("utilization")) == (None, "failed")
        assert sampler.dropped == {"utilization": 1}

    def test_a_snapshot_has_the_time_the_driver_and_the_host(self) -> None:
        snapshot = sampler_of(ScriptedDevice(0), wanted=Wanted(host=("name",))).read()
        assert (snapshot.time, snapshot.driver, snapshot.host.name) == (_START, {"version": "1.0"}, "box")


class TestRates:
    @staticmethod
    def _device(clock: ManualClock) -> ScriptedDevice:
        def script(snap: int, keys: frozenset[str]) -> DeviceSample:
            return sample({}, {"pcie_rx": Counter(1000 * snap, clock.monotonic())})

        return ScriptedDevice(0, script)

    def test_a_counter_becomes_a_rate_from_the_second_sample_on(self) -> None:
        clock = ManualClock()
        sampler = sampler_of(self._device(clock), wanted=Wanted(gpu=("pcie_rx",)), clock=clock)
        first = sampler.read().gpus[0]
        clock.sleep(2.0)
        assert (first.pcie_rx, first.gap("pcie_rx"), sampler.read().gpus[0].pcie_rx) == (None, "pending", 500.0)

    def test_a_suspend_between_two_samples_makes_rates_a_gap(self) -> None:
        clock = ManualClock()
        sampler = sampler_of(self._device(clock), wanted=Wanted(gpu=("pcie_rx",)), clock=clock)
        rates = []
        for suspended in (0, 0, 3600, 0):
            clock.suspend(suspended)
            clock.sleep(1.0)
            rates.append(sampler.read().gpus[0].pcie_rx)
        assert rates == [None, 1000, None, 1000]

    def test_two_gpus_do_not_share_counters(self) -> None:
        clock = ManualClock()
        devices = [self._device(clock), self._device(clock)]
        devices[1].asked.append(frozenset())
        sampler = sampler_of(*devices, wanted=Wanted(gpu=("pcie_rx",)), clock=clock)
        assert [gpu.pcie_rx for gpu in sampler.read().gpus] == [None, None]

    def test_host_counters_become_rates_too(self) -> None:
        machine = ScriptedMachine()
        sampler = sampler_of(wanted=Wanted(host=("net_rx",)), machine=machine)
        machine.host_counters["net_rx"] = Counter(0, 0.0)
        assert sampler.read().host.gap("net_rx") == "pending"
        machine.host_counters["net_rx"] = Counter(300, 3.0)
        assert sampler.read().host.net_rx == 100


class TestChoosing:
    def test_only_chosen_gpus_are_asked_in_the_order_named(self) -> None:
        devices = [ScriptedDevice(index) for index in range(4)]
        sampler = sampler_of(*devices)
        sampler.choose(["3", "1"], {})
        assert [gpu.index for gpu in sampler.read().gpus] == [3, 1]
        assert [len(device.asked) for device in devices] == [0, 1, 0, 1]

    def test_a_gpu_that_is_not_there_is_refused(self) -> None:
        with pytest.raises(UnknownGpu):
            sampler_of(ScriptedDevice(0)).choose(["7"], {})


class TestRecordings:
    def test_recorded_snapshots_pass_through_as_they_are(self) -> None:
        frame = Snapshot(5.0, (Gpu({"index": 0, "utilization": 808334905}),))
        sampler = sampler_of()
        assert isinstance(sampler.source, ScriptedSource)
        sampler.source.frames = [frame]
        assert sampler.read() is frame

    def test_chosen_gpus_are_taken_out_of_a_recording(self) -> None:
        frame = Snapshot(5.0, (Gpu({"index": 0}), Gpu({"index": 1})))
        sampler = sampler_of(ScriptedDevice(0), ScriptedDevice(1))
        assert isinstance(sampler.source, ScriptedSource)
        sampler.source.frames = [frame]
        sampler.choose(["1"], {})
        assert [gpu.index for gpu in sampler.read().gpus] == [1]

    def test_a_stream_ends_with_its_recording(self) -> None:
        sampler = sampler_of()
        assert isinstance(sampler.source, ScriptedSource)
        sampler.source.frames = [Snapshot(5.0), Snapshot(6.0)]
        assert [frame.time for frame in sampler.stream(1.0)] == [5.0, 6.0]


class TestStream:
    def test_it_is_steady_and_a_late_sample_does_not_delay_those_after_it(self) -> None:
        clock = ManualClock()

        def script(snap: int, keys: frozenset[str]) -> DeviceSample:
            clock.sleep(2.5 if snap == 3 else 0.25)
            return DeviceSample()

        sampler = sampler_of(ScriptedDevice(0, script), clock=clock)
        times = [frame.time - _START for frame in islice(sampler.stream(1.0), 7)]
        assert times == [0.0, 1.0, 2.0, 4.5, 5.0, 6.0, 7.0]

    def test_what_the_reader_takes_does_not_add_up(self) -> None:
        clock = ManualClock()
        times = []
        for frame in islice(sampler_of(ScriptedDevice(0), clock=clock).stream(1.0), 5):
            times.append(frame.time - _START)
            clock.sleep(0.75)
        assert times == [0.0, 1.0, 2.0, 3.0, 4.0]

    def test_after_a_long_stop_the_missed_samples_are_not_made_up_for(self) -> None:
        clock = ManualClock()
        stream = sampler_of(ScriptedDevice(0), clock=clock).stream(1.0)
        next(stream)
        clock.sleep(100.5)
        times = [frame.time - _START for frame in islice(stream, 3)]
        assert times == [100.5, 101.0, 102.0]


class TestSettling:
    def test_settle_waits_for_devices_that_are_not_ready_and_only_so_long(self) -> None:
        class Slow(ScriptedDevice):
            polls = 0

            def settled(self) -> bool:
                self.polls += 1
                return self.polls > 3

        clock, soon = ManualClock(), Slow(0)
        sampler_of(soon, clock=clock).settle()
        assert soon.polls == 4
        never = Slow(1)
        never.polls = -1000
        sampler_of(never, clock=clock).settle(0.12)
        assert clock.now() - _START < 1.0

    def test_priming_names_the_keys_that_will_be_read(self) -> None:
        primed: list[frozenset[str]] = []

        class Primed(ScriptedDevice):
            def prime(self, keys: frozenset[str]) -> None:
                primed.append(keys)

        sampler_of(Primed(0)).prime()
        assert primed == [_FAST | {"energy"}]


class TestWantingSomethingElse:
    def test_the_next_read_asks_for_that_and_no_longer_for_the_rest(self) -> None:
        device = ScriptedDevice(0)
        sampler = sampler_of(device, wanted=Wanted(gpu=("utilization",)))
        sampler.read()
        sampler.want(Wanted(gpu=("temperature",)))
        gpu = sampler.read().gpus[0]
        assert device.asked == [{"utilization"}, {"temperature"}]
        assert (gpu.utilization, gpu.temperature) == (None, 0)

    def test_slow_and_static_ones_are_asked_at_once(self) -> None:
        device, clock = ScriptedDevice(0), ManualClock()
        sampler = sampler_of(device, wanted=Wanted(gpu=("utilization",)), clock=clock)
        sampler.read()
        clock.sleep(1.0)
        sampler.want(Wanted(gpu=("utilization", "energy", "power_default_limit")))
        first = sampler.read().gpus[0]
        clock.sleep(1.0)
        second = sampler.read().gpus[0]
        assert device.asked[1:] == [{"utilization", "energy", "power_default_limit"}, {"utilization"}]
        assert [(gpu.energy, gpu.power_default_limit) for gpu in (first, second)] == [(1000.0, 700.0)] * 2

    def test_what_is_no_longer_wanted_is_no_longer_there(self) -> None:
        sampler = sampler_of(ScriptedDevice(0), wanted=Wanted(gpu=("energy", "power_default_limit", "utilization")))
        sampler.read()
        sampler.want(Wanted(gpu=("utilization",)))
        gpu = sampler.read().gpus[0]
        assert (gpu.utilization, gpu.energy, gpu.power_default_limit) == (50, None, None)

    def test_a_static_value_that_is_wanted_again_is_asked_again(self) -> None:
        device = ScriptedDevice(0)
        sampler = sampler_of(device, wanted=Wanted(gpu=("power_default_limit",)))
        sampler.read()
        sampler.want(Wanted(gpu=("utilization",)))
        sampler.read()
        sampler.want(Wanted(gpu=("power_default_limit",)))
        assert sampler.read().gpus[0].power_default_limit == 700.0
        assert device.asked == [{"power_default_limit"}, {"utilization"}, {"power_default_limit"}]

    def test_processes_and_the_machine_are_asked_only_while_wanted(self) -> None:
        device, machine = ScriptedDevice(0), ScriptedMachine()
        sampler = sampler_of(device, wanted=Wanted(gpu=("utilization",)), machine=machine)
        sampler.read()
        sampler.want(Wanted(("utilization",), ("pid", "memory_used"), ("name",)))
        sampler.read()
        sampler.want(Wanted(gpu=("utilization",)))
        sampler.read()
        assert [keys is None for keys in device.asked_of_processes] == [True, False, True]
        assert machine.asked_host == [{"name"}]

    def test_the_last_wish_counts(self) -> None:
        device = ScriptedDevice(0)
        sampler = sampler_of(device)
        sampler.want(Wanted(gpu=("utilization",)))
        sampler.want(Wanted(gpu=("temperature",)))
        sampler.read()
        assert device.asked == [{"temperature"}]

    def test_another_thread_may_ask_while_a_sample_is_under_way(self) -> None:
        sampling, release = threading.Event(), threading.Event()

        def script(snap: int, keys: frozenset[str]) -> DeviceSample:
            sampling.set()
            release.wait()
            return sample({key: value for key, value in VALUES.items() if key in keys})

        device = ScriptedDevice(0, script)
        sampler = sampler_of(device, wanted=Wanted(gpu=("utilization",)))
        snaps: list[Snapshot] = []
        reading = threading.Thread(target=lambda: snaps.append(sampler.read()), daemon=True)
        reading.start()
        sampling.wait()
        sampler.want(Wanted(gpu=("temperature",)))
        release.set()
        reading.join()
        assert snaps[0].gpus[0].utilization == 50
        sampler.read()
        assert device.asked == [{"utilization"}, {"temperature"}]


class TestSingleSample:
    def test_activity_is_read_last_and_the_rest_only_once(self) -> None:
        device = ScriptedDevice(0)
        sampler = sampler_of(device, wanted=Wanted((*VALUES, "sm_active"), host=()))
        plain = sampler_of(ScriptedDevice(0), wanted=Wanted((*VALUES, "sm_active"), host=())).read()
        sampler.begin()
        assert "sm_active" not in device.asked[-1]
        assert {"energy", "power_default_limit", "utilization"} <= device.asked[-1]
        assert sampler.begun().gpus[0].utilization == 50
        snapshot = sampler.complete()
        assert device.asked[-1] == {"sm_active"}
        assert len(device.asked) == 2
        assert dict(snapshot.gpus[0].items()) == dict(plain.gpus[0].items())
        assert snapshot.gpus[0].gaps == plain.gpus[0].gaps

    def test_processes_that_are_read_together_with_their_gpu_have_rates_too(self) -> None:
        class Here(ScriptedMachine):
            real = True

            def processes(self, pids: Collection[int], keys: frozenset[str]) -> dict[int, Facts]:
                found = super().processes(pids, keys)
                for facts in found.values():
                    facts.counters["cpu_percent"] = Counter(clock.monotonic(), clock.monotonic(), 100.0)
                return found

        def script(snap: int, keys: frozenset[str]) -> DeviceSample:
            answer = sample({})
            answer.processes[7] = process(memory_used=1)
            return answer

        clock = ManualClock()
        wanted = Wanted(VALUES, ("pid", "cpu_percent"), ())
        sampler = sampler_of(ScriptedDevice(0, script), wanted=wanted, machine=Here({7: {}}), clock=clock)
        sampler.begin(rates=True)
        assert sampler.complete().gpus[0].processes[0].cpu_percent == 100.0

    def test_a_gpu_that_is_lost_stays_lost(self) -> None:
        sampler = sampler_of(lost(1), wanted=Wanted((*VALUES, "sm_active"), host=()))
        plain = sampler_of(lost(1), wanted=Wanted((*VALUES, "sm_active"), host=())).read()
        sampler.begin()
        snapshot = sampler.complete()
        assert snapshot.gpus[0].state == "lost"
        assert snapshot.gpus[0].gaps == plain.gpus[0].gaps

    def test_a_gpu_that_fails_when_its_activity_is_read_has_no_values(self) -> None:
        class Failing(ScriptedDevice):
            def read(self, keys: Key, process_keys: Key | None) -> DeviceSample:
                if keys == {"sm_active"}:
                    raise ValueError("no")
                return super().read(keys, process_keys)

        sampler = sampler_of(Failing(0), wanted=Wanted((*VALUES, "sm_active"), host=()))
        sampler.begin()
        snapshot = sampler.complete()
        assert snapshot.gpus[0].gaps["utilization"] == "failed"
        assert [problem.message for problem in snapshot.problems] == ["ValueError: no"]

    def test_many_gpus_side_by_side_give_the_same_snapshot(self) -> None:
        devices = [ScriptedDevice(at) for at in range(16)]
        sampler = sampler_of(*devices, wanted=Wanted(VALUES, ("pid",), ()))
        sampler.widen()
        assert [gpu.index for gpu in sampler.read().gpus] == list(range(16))
        assert all(len(device.asked) == 1 for device in devices)
