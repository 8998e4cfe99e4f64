"""The process tree: real ancestors, and lines that connect them."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from gpulse.model.catalog import Process
from gpulse.sources.base import Relative
from gpulse.surfaces.top.processes import ProcessRow, family_rows, pids


def row(pid: int, gpu: int = 0, parent: int | None = None) -> ProcessRow:
    values = {"pid": pid} if parent is None else {"pid": pid, "parent": parent}
    return ProcessRow(Process(values), str(gpu), (gpu, -1), pid)


def known(*lines: tuple[int, int, str]) -> dict[int, Relative]:
    return {pid: Relative(pid, parent, name, f"{name} --all", "ada") for pid, parent, name in lines}


def drawn(found: list[ProcessRow]) -> list[str]:
    """The tree as it is read: lines, PID and GPU; a launcher in brackets."""
    return [
        f"{one.branch}({one.process.pid:.0f})" if one.launcher else f"{one.branch}{one.pid}@{one.gpu}" for one in found
    ]


def test_ranks_stand_below_their_launcher_which_cannot_be_selected() -> None:
    relatives = known((12, 10, "python"), (11, 10, "python"), (10, 9, "torchrun"), (9, 8, "bash"), (8, 1, "sshd"))
    found = family_rows([row(12, 1), row(11, 0)], relatives)
    assert drawn(found) == ["(10)", "├ 12@1", "└ 11@0"]
    assert pids(found) == [12, 11]
    assert found[0].process.command == "torchrun --all"
    assert found[0].process.user == "ada"


def test_the_lowest_pid_is_not_a_parent() -> None:
    assert drawn(family_rows([row(11), row(12)], {})) == ["11@0", "12@0"]
    assert drawn(family_rows([row(11), row(12)], known((11, 1, "a"), (12, 1, "b")))) == ["11@0", "12@0"]


def test_a_process_on_a_second_gpu_is_not_its_own_child() -> None:
    found = family_rows([row(11, 0), row(20, 1), row(11, 2)], known((11, 1, "a"), (20, 1, "b")))
    assert drawn(found) == ["11@0", "11@2", "20@1"]


def test_rows_of_one_process_continue_the_lines() -> None:
    relatives = known((11, 10, "a"), (12, 11, "b"), (13, 10, "c"), (10, 1, "launcher"))
    found = family_rows([row(11, 0), row(11, 1), row(12, 0), row(13, 2), row(13, 3)], relatives)
    assert drawn(found) == ["(10)", "├ 11@0", "│ │ 11@1", "│ └ 12@0", "└ 13@2", "  13@3"]


def test_a_process_below_another_through_one_that_uses_no_gpu() -> None:
    relatives = known((30, 20, "worker"), (20, 10, "sh"), (10, 1, "python"))
    assert drawn(family_rows([row(30), row(10)], relatives)) == ["10@0", "└ 30@0"]


def test_two_launchers_below_one() -> None:
    relatives = known(
        (1001, 101, "r"), (1002, 101, "r"), (1003, 102, "r"), (1004, 102, "r"), (101, 100, "node0"), (102, 100, "node1"), (100, 1, "m")
    )  # fmt: skip
    found = family_rows([row(1003), row(1001), row(1004), row(1002)], relatives)
    assert drawn(found) == ["(100)", "├ (102)", "│ ├ 1003@0", "│ └ 1004@0", "└ (101)", "  ├ 1001@0", "  └ 1002@0"]


def test_a_launcher_that_has_one_process_gets_no_row() -> None:
    relatives = known((11, 10, "python"), (10, 1, "bash"), (21, 20, "python"), (20, 1, "bash"))
    assert drawn(family_rows([row(11), row(21)], relatives)) == ["11@0", "21@0"]


def test_in_a_recording_the_parent_is_known_and_its_name_is_not() -> None:
    found = family_rows([row(11, parent=10), row(12, parent=10), row(13, parent=1)], {})
    assert drawn(found) == ["(10)", "├ 11@0", "└ 12@0", "13@0"]
    assert found[0].process.command == "not recorded"


def test_a_loop_of_reused_pids_hides_nothing() -> None:
    found = family_rows([row(11), row(12)], known((11, 12, "a"), (12, 11, "b")))
    assert sorted(pids(found)) == [11, 12]


@given(
    st.lists(st.tuples(st.integers(0, 12), st.integers(0, 3)), max_size=12, unique=True),
    st.dictionaries(st.integers(0, 20), st.integers(0, 20), max_size=20),
)
def test_every_row_is_drawn_once_whatever_the_ancestors_are(
    listed: list[tuple[int, int]], parents: dict[int, int]
) -> None:
    relatives = {pid: Relative(pid, parent, "x") for pid, parent in parents.items()}
    found = family_rows([row(pid, gpu) for pid, gpu in listed], relatives)
    assert sorted((one.pid or 0, one.place[0]) for one in found if not one.launcher) == sorted(listed)
    launchers = [one.process.pid for one in found if one.launcher]
    assert len(launchers) == len(set(launchers))
    for before, after in zip([None, *found], found, strict=False):
        depth = len(after.branch) // 2
        assert depth == 0 or (before is not None and depth <= len(before.branch) // 2 + 1)
