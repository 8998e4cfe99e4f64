"""The sampler asks what is wanted, as often as it changes, and no failure of one hides the others."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from itertools import islice

import pytest

from gpulse.errors import DriverTimeout, SourceUnavailable, UnknownGpu
from gpulse.model.catalog import Gpu
from gpulse.model.select import Wanted
from gpulse.model.snapshot import Snapshot
from gpulse.sampling.clock import ManualClock
from gpulse.sampling.sampler import Sampler
from gpulse.sources.base import Counter, DeviceSample, Facts, Machine, Source
from tests.unit.scripted import (
    VALUES,
    Hang,
    ScriptedDevice,
    ScriptedMachine,
    ScriptedSource,
    process,
    sample,
    sampler_of,
)

_FAST = frozenset({"utilization", "memory_used", "memory_total", "memory_reserved", "temperature"})
_START = 1_700_000_000.0


@pytest.fixture
def hang() -> Iterator[Hang]:
    """A hanging call; released at the end, so that no thread stays behind."""
    hang = Hang(ManualClock())
    yield hang
    hang.release()


def _broken(snap: int, keys: frozenset[str]) -> DeviceSample:
    if snap == 3:
        raise RuntimeError("out of luck")
    return sample({"utilization": snap})


def _lost(*snaps: int) -> ScriptedDevice:
    def script(snap: int, keys: frozenset[str]) -> DeviceSample:
        if snap not in snaps:
            return sample({key: value for key, value in VALUES.items() if key in keys})
        answer = sample({"xid_last": 79})
        answer.state = "lost"
        return answer

    return ScriptedDevice(0, script)


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


class TestFailures:
    def test_a_gpu_that_raises_is_a_failed_row_with_a_problem_and_all_else_goes_on(self) -> None:
        sampler = sampler_of(ScriptedDevice(0, _broken), ScriptedDevice(1))
        snaps = [sampler.read() for _ in range(5)]
        assert [snap.gpus[0].utilization for snap in snaps] == [1, 2, None, 4, 5]
        assert [snap.gpus[1].utilization for snap in snaps] == [50] * 5
        assert [len(snap.problems) for snap in snaps] == [0, 0, 1, 0, 0]
        assert "out of luck" in snaps[2].problems[0].message
        assert snaps[2].gpus[0].gap("utilization") == "failed"
        assert snaps[2].gpus[0].uuid == "GPU-00000000"

    def test_a_machine_that_raises_does_not_hide_the_gpus(self) -> None:
        class Broken(Machine):
            def host(self, keys: frozenset[str]) -> Facts:
                raise RuntimeError("no /proc today")

        snapshot = sampler_of(ScriptedDevice(0), wanted=Wanted(VALUES, host=("load",)), machine=Broken()).read()
        assert snapshot.gpus[0].utilization == 50
        assert any("no /proc today" in problem.message for problem in snapshot.problems)

    def test_a_refresh_that_raises_is_told(self) -> None:
        class Restless(ScriptedSource):
            def refresh(self) -> None:
                raise RuntimeError("cannot refresh")

        snapshot = Sampler(Restless([ScriptedDevice(0)]), Wanted(VALUES), clock=ManualClock()).open().read()
        assert snapshot.gpus[0].utilization == 50
        assert any("cannot refresh" in problem.message for problem in snapshot.problems)

    def test_a_gpu_that_a_refresh_brought_is_not_called_silent(self) -> None:
        class Growing(ScriptedSource):
            def refresh(self) -> None:
                self.devices = [*self.devices, ScriptedDevice(len(self.devices))]

        snapshot = Sampler(Growing([ScriptedDevice(0)]), Wanted(VALUES), clock=ManualClock()).open().read()
        assert {gpu.state for gpu in snapshot.gpus} == {"ok"}

    def test_a_gpu_that_a_refresh_took_away_is_no_problem(self) -> None:
        class Shrinking(ScriptedSource):
            def refresh(self) -> None:
                self.devices = self.devices[:1]

        source = Shrinking([ScriptedDevice(0), ScriptedDevice(1)])
        snapshot = Sampler(source, Wanted(VALUES), clock=ManualClock()).open().read()
        assert [gpu.index for gpu in snapshot.gpus] == [0]
        assert snapshot.problems == ()

    def test_a_gpu_that_hangs_is_a_timeout_since_then_and_the_others_answer(self, hang: Hang) -> None:
        def script(snap: int, keys: frozenset[str]) -> DeviceSample:
            if snap > 1:
                hang()
            return sample({"utilization": 7})

        hanging = ScriptedDevice(1, script)
        sampler = sampler_of(ScriptedDevice(0), hanging, ScriptedDevice(2), clock=hang.clock)
        snaps = []
        for _ in range(4):
            snaps.append(sampler.read())
            hang.clock.sleep(1.0)
        assert [snap.gpus[1].state for snap in snaps] == ["ok", "timeout", "timeout", "timeout"]
        assert [snap.gpus[1].since for snap in snaps] == [None, _START + 1, _START + 1, _START + 1]
        assert [snap.gpus[1].gap("utilization") for snap in snaps[1:]] == ["timeout"] * 3
        assert snaps[3].gpus[1].uuid == "GPU-00000001"
        assert all(snap.gpus[at].utilization == 50 for snap in snaps for at in (0, 2))
        assert len(hanging.asked) == 2

    def test_a_gpu_that_came_back_is_asked_again(self, hang: Hang) -> None:
        def script(snap: int, keys: frozenset[str]) -> DeviceSample:
            if snap == 1:
                hang()
            return sample({"utilization": snap})

        sampler = sampler_of(ScriptedDevice(0, script), clock=hang.clock)
        assert sampler.read().gpus[0].state == "timeout"
        hang.release()
        while (gpu := sampler.read().gpus[0]).state != "ok":
            pass
        assert (gpu.utilization, gpu.since) == (2, None)

    def test_close_does_not_touch_a_source_that_hangs(self, hang: Hang) -> None:
        sampler = sampler_of(ScriptedDevice(0, lambda snap, keys: sample({"name": hang()})), clock=hang.clock)
        sampler.read()
        sampler.close()
        assert isinstance(sampler.source, ScriptedSource)
        assert sampler.source.closed == 0

    def test_close_closes_a_source_that_answers(self) -> None:
        sampler = sampler_of(ScriptedDevice(0))
        sampler.read()
        sampler.close()
        assert isinstance(sampler.source, ScriptedSource)
        assert sampler.source.closed == 1

    def test_opening_a_driver_that_hangs_is_a_timeout_with_its_exit_code(self, hang: Hang) -> None:
        class Hanging(Source):
            name = "hanging"

            def open(self) -> None:
                hang()

        with pytest.raises(DriverTimeout, match="does not respond") as caught:
            Sampler(Hanging(), Wanted(), clock=hang.clock).open()
        assert caught.value.exit_code == 124

    def test_what_open_raises_reaches_the_caller(self) -> None:
        class Missing(Source):
            name = "missing"

            def open(self) -> None:
                raise SourceUnavailable("no library.", "Install it.")

        with pytest.raises(SourceUnavailable, match=r"no library\. Install it\."):
            Sampler(Missing(), Wanted()).open()


class TestLostAndFound:
    def test_a_lost_gpu_keeps_its_identity_and_what_it_says_now_and_nothing_from_before(self) -> None:
        clock = ManualClock()
        sampler = sampler_of(_lost(2, 3), ScriptedDevice(1), clock=clock)
        snaps = []
        for _ in range(4):
            snaps.append(sampler.read())
            clock.sleep(1.0)
        assert [snap.gpus[0].state for snap in snaps] == ["ok", "lost", "lost", "ok"]
        assert [snap.gpus[0].since for snap in snaps] == [None, _START + 1, _START + 1, None]
        identity = {"index": 0, "uuid": "GPU-00000000", "name": "Scripted"}
        assert dict(snaps[2].gpus[0].items()) == {**identity, "xid_last": 79}
        assert all(snap.gpus[1].utilization == 50 for snap in snaps)

    def test_a_second_loss_has_its_own_time(self) -> None:
        clock = ManualClock()
        sampler = sampler_of(_lost(1, 3), clock=clock)
        since = []
        for _ in range(3):
            since.append(sampler.read().gpus[0].since)
            clock.sleep(1.0)
        assert since == [_START, None, _START + 2]

    def test_a_gpu_that_was_found_again_has_every_value_again_at_once(self) -> None:
        clock = ManualClock()
        sampler = sampler_of(_lost(2), clock=clock)
        for _ in range(2):
            sampler.read()
            clock.sleep(1.0)
        gpu = sampler.read().gpus[0]
        assert {key: gpu.gap(key) for key in VALUES if gpu.get(key) is None} == {}


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


class TestProcesses:
    _WANTED = Wanted(gpu=("memory_used",), process=("pid", "name", "memory_used", "sm_utilization"))

    @staticmethod
    def _device(index: int, *pids: int) -> ScriptedDevice:
        def script(snap: int, keys: frozenset[str]) -> DeviceSample:
            answer = sample({"memory_used": 300})
            answer.processes = {pid: process(memory_used=pid * 10) for pid in pids}
            return answer

        return ScriptedDevice(index, script)

    def test_processes_are_described_once_each_and_sorted_by_memory(self) -> None:
        machine = ScriptedMachine({7: {"name": "train"}, 9: {"name": "serve"}})
        gpus = sampler_of(self._device(0, 7, 9), self._device(1, 7), wanted=self._WANTED, machine=machine).read().gpus
        assert [(row.pid, row.name, row.memory_used) for row in gpus[0].processes] == [
            (9, "serve", 90),
            (7, "train", 70),
        ]
        assert [row.name for row in gpus[1].processes] == ["train"]
        assert [pids for pids, _ in machine.asked_processes] == [{7, 9}]

    def test_a_process_the_machine_does_not_know_keeps_what_the_driver_said(self) -> None:
        row = sampler_of(self._device(0, 7), wanted=self._WANTED, machine=ScriptedMachine()).read().gpus[0].processes[0]
        assert (row.pid, row.memory_used, row.name, row.gap("name")) == (7, 70, None, "failed")

    def test_pids_of_another_namespace_are_said_to_be_so(self) -> None:
        machine = ScriptedMachine({7: {"name": "somebody else"}})
        machine.is_foreign = True
        snapshot = sampler_of(self._device(0, 7), wanted=self._WANTED, machine=machine).read()
        assert "--pid=host" in snapshot.problems[0].remedy
        assert snapshot.gpus[0].processes[0].name is None
        assert snapshot.gpus[0].processes[0].memory_used == 70

    def test_unattributed_memory_needs_no_names(self) -> None:
        machine = ScriptedMachine()
        sampler = sampler_of(self._device(0, 7), wanted=Wanted(gpu=("memory_unattributed",)), machine=machine)
        assert sampler.read().gpus[0].memory_unattributed == 230
        assert machine.asked_processes == []

    def test_slow_values_of_a_process_stay_until_asked_again(self) -> None:
        def script(snap: int, keys: frozenset[str]) -> DeviceSample:
            answer = DeviceSample()
            answer.processes = {7: process(sm_utilization=40) if snap == 1 else process()}
            return answer

        sampler = sampler_of(ScriptedDevice(0, script), wanted=self._WANTED)
        assert [sampler.read().gpus[0].processes[0].sm_utilization for _ in range(2)] == [40, 40]

    def test_a_pid_that_was_gone_for_a_sample_inherits_nothing(self) -> None:
        def script(snap: int, keys: frozenset[str]) -> DeviceSample:
            answer = DeviceSample()
            answer.processes = {1: {7: process(sm_utilization=40)}, 2: {}, 3: {7: process()}}[snap]
            return answer

        sampler = sampler_of(ScriptedDevice(0, script), wanted=self._WANTED)
        assert [[row.sm_utilization for row in sampler.read().gpus[0].processes] for _ in range(3)] == [
            [40],
            [],
            [None],
        ]

    def test_instances_have_their_own_values_and_processes(self) -> None:
        def script(snap: int, keys: frozenset[str]) -> DeviceSample:
            answer, part = sample({"memory_used": 300}), sample({"memory_used": 20, "memory_total": 40})
            part.processes = {7: process(memory_used=20)}
            answer.instances = [part]
            return answer

        wanted = self._WANTED | Wanted(["memory_percent"])
        sampler = sampler_of(ScriptedDevice(0, script), wanted=wanted, machine=ScriptedMachine({7: {"name": "train"}}))
        gpu = sampler.read().gpus[0]
        assert gpu.processes == ()
        assert [(part.memory_used, part.memory_percent) for part in gpu.instances] == [(20, 50.0)]
        assert [row.name for row in gpu.all_processes()] == ["train"]


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


def test_a_kept_value_of_a_process_does_not_outlive_a_new_gap() -> None:
    def script(number: int, keys: frozenset[str]) -> DeviceSample:
        answer = sample({key: value for key, value in VALUES.items() if key in keys})
        answer.processes = {7: process(pid=7)}
        if number == 1:
            answer.processes[7].values["sm_utilization"] = 80
        elif number == 3:
            answer.processes[7].gaps["sm_utilization"] = "denied"
        return answer

    wanted = Wanted(gpu=VALUES, process=["pid", "sm_utilization"])
    reader = sampler_of(ScriptedDevice(0, script), wanted=wanted)
    found = [reader.read().gpus[0].processes[0] for _ in range(4)]
    assert [row.sm_utilization for row in found] == [80, 80, None, None]
    assert [row.gaps.get("sm_utilization") for row in found] == [None, None, "denied", "denied"]


def test_a_process_that_comes_between_two_slow_readings_says_that_its_share_is_pending() -> None:
    clock = ManualClock()

    def script(number: int, keys: frozenset[str]) -> DeviceSample:
        answer = sample({key: value for key, value in VALUES.items() if key in keys})
        if number >= 2:
            answer.processes = {7: process(pid=7)}
        if number == 4:
            answer.processes[7].values["sm_utilization"] = 80
        return answer

    wanted = Wanted(gpu=VALUES, process=["pid", "sm_utilization"])
    reader = sampler_of(ScriptedDevice(0, script), wanted=wanted, clock=clock)
    found = [reader.read().gpus[0].processes for _ in range(4)][1:]
    assert [row.sm_utilization for (row,) in found] == [None, None, 80]
    assert [row.gaps.get("sm_utilization") for (row,) in found] == ["pending", "pending", None]


class TestReadingAhead:
    def test_the_next_sample_reads_only_the_rest_and_has_all_values(self) -> None:
        device = ScriptedDevice(0)
        sampler = sampler_of(device, wanted=Wanted(VALUES, host=()))
        plain = sampler_of(ScriptedDevice(0), wanted=Wanted(VALUES, host=())).read()
        sampler.read_ahead()
        ahead = device.asked[-1]
        assert ahead == {"energy", "power_default_limit"}
        snapshot = sampler.read()
        assert not device.asked[-1] & ahead
        assert dict(snapshot.gpus[0].items()) == dict(plain.gpus[0].items())
        sampler.hurry()
        sampler.read()
        assert "energy" in device.asked[-1]

    def test_a_gpu_that_is_lost_is_read_as_always(self) -> None:
        device = _lost(1)
        sampler = sampler_of(device, wanted=Wanted(VALUES, host=()))
        sampler.read_ahead()
        sampler.read()
        assert {"energy", "utilization"} <= device.asked[-1]

    def test_many_gpus_side_by_side_give_the_same_snapshot(self) -> None:
        devices = [ScriptedDevice(at) for at in range(16)]
        sampler = sampler_of(*devices, wanted=Wanted(VALUES, ("pid",), ()))
        sampler.widen()
        assert [gpu.index for gpu in sampler.read().gpus] == list(range(16))
        assert all(len(device.asked) == 1 for device in devices)
