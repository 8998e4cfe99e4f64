"""What happened between two samples, told once, the worst first."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from gpulse.model.catalog import Gpu, Process
from gpulse.model.snapshot import Snapshot
from gpulse.surfaces.top.events import happenings

if TYPE_CHECKING:
    from gpulse.model.catalog import State


def gpu(index: int | None = 0, state: State = "ok", pids: tuple[int, ...] = (), **values: Any) -> Gpu:
    people = tuple(Process({"pid": pid, "user": "ada", "name": "train"}) for pid in pids)
    known = {} if index is None else {"index": index}
    return Gpu({**known, "uuid": f"GPU-{index}", **values}, state=state, processes=people)


def told(before: Gpu, after: Gpu) -> list[tuple[str, str]]:
    found = happenings(Snapshot(1.0, (before,)), Snapshot(2.0, (after,)))
    assert all(one.time == 2.0 for one in found)
    return [(one.text, one.style) for one in found]


class TestStates:
    @pytest.mark.parametrize(
        ("state", "words", "style"),
        [
            ("lost", "GPU 0 was lost", "critical"),
            ("timeout", "GPU 0 does not answer", "critical"),
            ("asleep", "GPU 0 fell asleep", "label"),
        ],
    )
    def test_a_gpu_that_changes_is_told_and_so_is_its_return(self, state: State, words: str, style: str) -> None:
        assert told(gpu(), gpu(state=state)) == [(words, style)]
        assert told(gpu(state=state), gpu()) == [("GPU 0 answers again", "good")]
        assert told(gpu(state=state), gpu(state=state)) == []

    def test_a_lost_one_names_its_fault(self) -> None:
        assert told(gpu(), gpu(state="lost", xid_last=79)) == [("GPU 0 was lost (XID 79)", "critical")]

    def test_a_fault_of_one_that_is_lost_already_is_told(self) -> None:
        assert told(gpu(state="lost"), gpu(state="lost", xid_last=79)) == [("GPU 0 reported XID 79", "critical")]

    def test_its_processes_did_not_end_because_it_was_lost(self) -> None:
        assert told(gpu(pids=(5,)), gpu(state="lost")) == [("GPU 0 was lost", "critical")]

    def test_a_gpu_without_an_index_is_told_too(self) -> None:
        assert told(gpu(None), gpu(None, "lost")) == [("a GPU was lost", "critical")]


class TestFaults:
    def test_a_new_fault_is_told_once(self) -> None:
        assert told(gpu(), gpu(xid_last=31)) == [("GPU 0 reported XID 31", "critical")]
        assert told(gpu(xid_last=31), gpu(xid_last=31)) == []

    def test_heat_is_told_and_a_power_cap_is_not(self) -> None:
        found = told(gpu(), gpu(throttle_reasons=("hw_slowdown", "hw_thermal_slowdown")))
        assert [style for _, style in found] == ["warn"]
        assert found[0][0].startswith("GPU 0 is held down: ")
        assert told(gpu(), gpu(throttle_reasons=("sw_power_cap",))) == []


class TestProcesses:
    def test_one_that_comes_and_one_that_goes(self) -> None:
        assert told(gpu(pids=(5,)), gpu(pids=(6,))) == [
            ("ada's train 5 ended on GPU 0", "label"),
            ("ada's train 6 started on GPU 0", "label"),
        ]

    def test_one_that_goes_from_a_full_gpu_is_suspect(self) -> None:
        assert told(gpu(pids=(5,), memory_percent=99.0), gpu()) == [
            ("ada's train 5 ended on GPU 0, whose memory was full", "warn")
        ]

    def test_a_list_that_could_not_be_read_says_nothing(self) -> None:
        unread = Gpu({"index": 0, "uuid": "GPU-0"}, {"processes": "denied"})
        assert told(gpu(pids=(5,)), unread) == []
        assert told(unread, gpu(pids=(5,))) == []

    def test_names_from_outside_are_harmless(self) -> None:
        evil = Gpu({"index": 0, "uuid": "GPU-0"}, processes=(Process({"pid": 5, "user": "a\x1b[31m", "name": "\n"}),))
        [(text, _)] = told(gpu(), evil)
        assert text.isprintable()


class TestOrder:
    def test_the_worst_comes_first(self) -> None:
        before = Snapshot(1.0, (gpu(0, pids=(5,)), gpu(1, "lost"), gpu(2)))
        after = Snapshot(2.0, (gpu(0), gpu(1), gpu(2, "lost")))
        assert [one.style for one in happenings(before, after)] == ["critical", "good", "label"]

    def test_a_gpu_that_was_not_there_before_says_nothing(self) -> None:
        assert happenings(Snapshot(1.0), Snapshot(2.0, (gpu(pids=(5,)),))) == []

    def test_gpus_are_known_by_what_they_are_and_not_by_where_they_stand(self) -> None:
        one, two = gpu(0, pids=(5,)), gpu(1, pids=(6,))
        assert happenings(Snapshot(1.0, (one, two)), Snapshot(2.0, (two, one))) == []
