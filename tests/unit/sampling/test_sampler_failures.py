"""No failure of one GPU, process list or host hides the others: calls that raise or hang, and GPUs that are lost."""

from __future__ import annotations

import threading
from collections.abc import Iterator

import pytest

from gpulse.errors import DriverTimeout, SourceUnavailable
from gpulse.model.select import Wanted
from gpulse.sampling.clock import ManualClock
from gpulse.sampling.sampler import Sampler
from gpulse.sources.base import Counter, DeviceSample, Facts, Machine, Source
from tests.unit.scripted import (
    VALUES,
    Hang,
    ScriptedDevice,
    ScriptedMachine,
    ScriptedSource,
    lost,
    sample,
    sampler_of,
)

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


def test_a_source_that_cannot_be_opened_leaves_no_thread_behind() -> None:
    class Closed(ScriptedSource):
        def open(self) -> None:
            used.append(threading.current_thread())
            raise SourceUnavailable("nothing here", "")

    used: list[threading.Thread] = []
    with pytest.raises(SourceUnavailable):
        Sampler(Closed([]), Wanted(VALUES), clock=ManualClock()).open()
    used[0].join(60)
    assert not used[0].is_alive()


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

    def test_nothing_is_kept_of_the_gpu_that_another_one_has_taken_the_place_of(self) -> None:
        class Replaced(ScriptedSource):
            def refresh(self) -> None:
                if clock.monotonic() == 1.0:
                    self.devices = self.devices[1:]

        def counting(limit: float, count: int) -> ScriptedDevice:
            def script(snap: int, keys: frozenset[str]) -> DeviceSample:
                known = {"power_default_limit": limit} if "power_default_limit" in keys else {}
                return sample(known, {"pcie_rx": Counter(count, clock.monotonic())})

            return ScriptedDevice(int(limit), script)

        clock = ManualClock()
        source = Replaced([counting(1.0, 0), counting(2.0, 1000)])
        sampler = Sampler(source, Wanted(("power_default_limit", "pcie_rx")), clock=clock).open()
        sampler.read()
        clock.sleep(1.0)
        gpu = sampler.read().gpus[0]
        assert (gpu.power_default_limit, gpu.gap("pcie_rx")) == (2.0, "pending")

    def test_a_device_that_a_refresh_replaced_is_not_read_again(self) -> None:
        """It may have no handle any more, or one of the parent process."""

        class Replaced(ScriptedSource):
            def refresh(self) -> None:
                self.devices = [new]

        old, new = ScriptedDevice(0), ScriptedDevice(0)
        sampler = Sampler(Replaced([old]), Wanted(VALUES), clock=ManualClock()).open()
        sampler.read()
        assert (len(old.asked), len(new.asked)) == (0, 1)

    def test_a_chosen_gpu_stays_the_chosen_one_if_the_driver_lists_them_in_another_order(self) -> None:
        class Shuffled(ScriptedSource):
            def refresh(self) -> None:
                self.devices = orders.pop()

        first, second, third = (ScriptedDevice(index) for index in range(3))
        orders = [[first, second, third], [first, third], [third, second]]
        sampler = Sampler(Shuffled([first, second, third]), Wanted(VALUES), clock=ManualClock()).open()
        sampler.choose(["1"])
        assert [[gpu.uuid for gpu in sampler.read().gpus] for _ in range(3)] == [["GPU-00000001"], [], ["GPU-00000001"]]

    def test_the_host_is_read_once_per_sample_while_a_gpu_hangs(self, hang: Hang) -> None:
        def script(snap: int, keys: frozenset[str]) -> DeviceSample:
            hang()
            return sample({})

        machine = ScriptedMachine()
        wanted = Wanted(VALUES, host=("load",))
        sampler = sampler_of(ScriptedDevice(0, script), wanted=wanted, machine=machine, clock=hang.clock)
        sampler.read()
        machine.asked_host.clear()
        sampler.read()
        assert len(machine.asked_host) == 1

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

    def test_a_gpu_that_hangs_when_activity_is_started_is_a_timeout_with_its_identity(self, hang: Hang) -> None:
        class Hanging(ScriptedDevice):
            def prime_early(self, keys: frozenset[str]) -> None:
                hang()

        hanging = Hanging(1)
        source = ScriptedSource([ScriptedDevice(0), hanging, ScriptedDevice(2)])
        sampler = Sampler(source, Wanted((*VALUES, "sm_active")), clock=hang.clock).open(primed=True)
        sampler.begin()
        snapshot = sampler.complete()
        assert [gpu.state for gpu in snapshot.gpus] == ["ok", "timeout", "ok"]
        assert snapshot.gpus[1].uuid == "GPU-00000001"
        assert hanging.asked == []

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
        sampler = sampler_of(lost(2, 3), ScriptedDevice(1), clock=clock)
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
        sampler = sampler_of(lost(1, 3), clock=clock)
        since = []
        for _ in range(3):
            since.append(sampler.read().gpus[0].since)
            clock.sleep(1.0)
        assert since == [_START, None, _START + 2]

    def test_a_gpu_that_was_found_again_has_every_value_again_at_once(self) -> None:
        clock = ManualClock()
        sampler = sampler_of(lost(2), clock=clock)
        for _ in range(2):
            sampler.read()
            clock.sleep(1.0)
        gpu = sampler.read().gpus[0]
        assert {key: gpu.gap(key) for key in VALUES if gpu.get(key) is None} == {}
