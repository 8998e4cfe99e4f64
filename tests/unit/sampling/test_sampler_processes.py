"""The sampler tells what each process is and uses, and says what it cannot tell."""

from __future__ import annotations

from gpulse.model.select import Wanted
from gpulse.sampling.clock import ManualClock
from gpulse.sources.base import DeviceSample
from tests.unit.scripted import (
    VALUES,
    ScriptedDevice,
    ScriptedMachine,
    process,
    sample,
    sampler_of,
)


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
