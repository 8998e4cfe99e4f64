"""The rows of the process table: places, order, heads and families."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gpulse.model.catalog import PROCESS_METRICS, Gpu, Process
from gpulse.model.snapshot import Snapshot
from gpulse.surfaces.top.history import History
from gpulse.surfaces.top.processes import all_rows, pids, rows
from gpulse.surfaces.top.state import ScreenSettings, State

if TYPE_CHECKING:
    from gpulse.model.metric import Value
    from gpulse.surfaces.top.processes import ProcessRow


def process(pid: int, **values: Value) -> Process:
    return Process({"pid": pid, **values})


def gpu(index: int, *processes: Process, instances: tuple[Gpu, ...] = ()) -> Gpu:
    return Gpu({"index": index}, processes=processes, instances=instances)


def state(
    sort: str = "memory_used", falling: bool = True, filter: str = "", tree: bool = False, group: str = ""
) -> State:
    made = State(ScreenSettings(), History(()))
    made.sort, made.falling, made.filter, made.tree, made.group = sort, falling, filter, tree, group
    return made


def order(found: list[ProcessRow]) -> list[int | None]:
    return [row.pid for row in found]


def test_no_sample_has_no_rows() -> None:
    assert rows(None, state()) == []


def test_a_process_on_two_gpus_has_two_rows() -> None:
    both = Snapshot(1.0, (gpu(0, process(7)), gpu(1, process(7))))
    found = rows(both, state("gpu", falling=False))
    assert [(row.pid, row.gpu) for row in found] == [(7, "0"), (7, "1")]
    assert pids(found) == [7]


def test_an_instance_is_named_after_its_gpu() -> None:
    divided = Snapshot(1.0, (gpu(1, process(5), instances=(gpu(0), gpu(2, process(6)))),))
    assert [(row.pid, row.gpu, row.place) for row in all_rows(divided)] == [(5, "1", (1, -1)), (6, "1:2", (1, 2))]


@pytest.mark.parametrize("falling", [True, False])
def test_missing_values_are_last_in_either_direction(falling: bool) -> None:
    sample = Snapshot(1.0, (gpu(0, process(1), process(2, cpu_percent=5), process(3, cpu_percent=0), process(4)),))
    found = order(rows(sample, state("cpu_percent", falling)))
    assert found == ([2, 3, 1, 4] if falling else [3, 2, 1, 4])


def test_equal_values_keep_the_order_of_pids() -> None:
    sample = Snapshot(1.0, (gpu(0, *(process(pid, sm_utilization=50) for pid in (9, 3, 7))),))
    assert order(rows(sample, state("sm_utilization", True))) == [3, 7, 9]
    assert order(rows(sample, state("sm_utilization", False))) == [3, 7, 9]


def test_the_column_sorted_by_before_orders_equal_rows() -> None:
    people = [("ada", 1), ("bob", 5), ("ada", 3), ("bob", 2)]
    listed = (process(pid, user=user, memory_used=size) for pid, (user, size) in enumerate(people, 1))
    sample = Snapshot(1.0, (gpu(0, *listed),))
    made = state("memory_used")
    made.sort_by("user", False)
    assert order(rows(sample, made)) == [3, 1, 2, 4]
    made.sort_by("user", True)
    assert order(rows(sample, made)) == [2, 4, 3, 1], "turning the order round keeps the second column"
    made.sort_by("gpu", False)
    made.ties = (("user", False), ("memory_used", False))
    assert order(rows(sample, made)) == [1, 3, 4, 2]


def test_names_are_sorted_without_regard_to_case() -> None:
    sample = Snapshot(1.0, (gpu(0, process(1, user="bob"), process(2, user="Ada"), process(3, user="Cy")),))
    assert order(rows(sample, state("user", False))) == [2, 1, 3]


@pytest.mark.parametrize("key", ["gpu", "nonsense", *PROCESS_METRICS])
def test_every_column_can_be_sorted_by(key: str) -> None:
    sample = Snapshot(
        1.0, (gpu(10, process(1, user="a", cpu_percent=1)), gpu(9, process(2, job="slurm:1"), process(3)))
    )
    assert sorted(order(rows(sample, state(key))), key=str) == [1, 2, 3]


def test_gpus_are_sorted_as_numbers() -> None:
    sample = Snapshot(1.0, (gpu(10, process(1)), gpu(9, process(2))))
    assert order(rows(sample, state("gpu", False))) == [2, 1]


def test_a_group_has_a_head_with_sums() -> None:
    sample = Snapshot(
        1.0,
        (
            gpu(0, process(1, user="ada", memory_used=10, sm_utilization=40, cpu_percent=100, host_memory=5)),
            gpu(1, process(1, user="ada", memory_used=20, sm_utilization=30, cpu_percent=100, host_memory=5)),
            gpu(2, process(2, user="ada", memory_used=1), process(3, user="bob", memory_used=25)),
        ),
    )
    found = rows(sample, state(group="user"))
    assert order(found) == [None, 1, 1, 2, None, 3]
    head = found[0]
    assert (head.head, head.count, head.gpu, head.branch) == ("ada", 2, "0-2", "")
    assert (head.process.memory_used, head.process.sm_utilization) == (31, 70)
    assert (head.process.cpu_percent, head.process.host_memory) == (100, 5), "a process is counted once, not once a GPU"
    assert found[4].head == "bob"
    assert found[4].process.cpu_percent is None
    assert [row.branch for row in found] == ["", "├ ", "├ ", "└ ", "", "└ "]
    assert pids(found) == [1, 2, 3]


def test_groups_are_in_the_order_of_their_sums() -> None:
    sample = Snapshot(
        1.0,
        (
            gpu(
                0,
                process(1, user="a", memory_used=9),
                *(process(n, user="b", memory_used=5) for n in (2, 3)),
                process(4),
            ),
        ),
    )
    assert [row.head for row in rows(sample, state(group="user")) if row.head] == ["b", "a", "no user"]
    assert [row.head for row in rows(sample, state(group="user", falling=False)) if row.head] == ["a", "b", "no user"]


def test_what_has_no_job_is_under_a_head_that_says_so() -> None:
    sample = Snapshot(1.0, (gpu(0, process(1, job="slurm:9"), process(2)),))
    assert {row.head for row in rows(sample, state(group="job")) if row.head} == {"slurm:9", "no job"}


def test_the_filter_that_is_typed_counts() -> None:
    sample = Snapshot(1.0, (gpu(0, process(1, user="ada"), process(2, user="bob")),))
    typing = state(filter="ada")
    assert order(rows(sample, typing)) == [1]
    typing.dialog, typing.editing = "filter", "bo"
    assert order(rows(sample, typing)) == [2]


def test_the_same_question_is_answered_once() -> None:
    sample = Snapshot(1.0, (gpu(0, process(1)),))
    one = state()
    assert rows(sample, one) is rows(sample, one)
    one.falling = False
    first = rows(sample, one)
    assert rows(Snapshot(1.0, sample.gpus), one) is not first


_PROCESSES = st.lists(
    st.builds(
        lambda pid, values: Process({"pid": pid, **{key: value for key, value in values.items() if value is not None}}),
        st.integers(0, 20),
        st.fixed_dictionaries(
            {
                "user": st.none() | st.text(max_size=3),
                "job": st.none() | st.text(max_size=2),
                "command": st.none() | st.text(max_size=12),
                "memory_used": st.none() | st.integers(0, 2**60),
                "cpu_percent": st.none() | st.floats(0, 1e6),
                "parent": st.none() | st.integers(0, 25),
            }
        ),
    ),
    max_size=12,
)


@given(
    st.lists(_PROCESSES, max_size=3),
    st.sampled_from(["gpu", *PROCESS_METRICS]),
    st.booleans(),
    st.booleans(),
    st.sampled_from(["", "user", "container", "job"]),
)
def test_no_arrangement_loses_or_doubles_a_row(
    machine: list[list[Process]], sort: str, falling: bool, tree: bool, group: str
) -> None:
    sample = Snapshot(1.0, tuple(gpu(at, *processes) for at, processes in enumerate(machine)))
    found = rows(sample, state(sort, falling, tree=tree, group=group))
    expected = sorted((at, int(one.pid or 0)) for at, processes in enumerate(machine) for one in processes)
    assert sorted((row.place[0], row.pid) for row in found if row.pid is not None) == expected
