"""What the machine knows of a process, whatever the process calls itself and however soon it is gone."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gpulse.model.catalog import PROCESS_METRICS
from gpulse.sampling.assemble import Rates, settle_rates
from gpulse.sources.processes import LinuxMachine, Stat, parse_stat
from tests.unit.sources.proc import INIT, Root

_ALL = frozenset(PROCESS_METRICS)
_FAST = frozenset({"name", "user", "cpu_percent", "host_memory"})
_PAGE = os.sysconf("SC_PAGE_SIZE")
_TICKS = os.sysconf("SC_CLK_TCK")


@pytest.fixture
def root(tmp_path: Path) -> Root:
    return Root(tmp_path)


@pytest.mark.parametrize("name", ["python", "a b", "tmux: server", "(sd-pam)", "x) S 1 2 (y", "", "ünï"])
def test_a_name_may_hold_brackets_and_spaces(root: Root, name: str) -> None:
    root.process(7, name, parent=3, cpu=11, started=22, resident=33)
    stat = parse_stat((root.folder / "proc/7/stat").read_bytes())
    assert stat is not None
    assert (stat.name, stat.parent, stat.cpu, stat.started, stat.resident) == (name, 3, 11, 22, 33)


def test_a_process_with_any_bytes_as_its_name_is_described() -> None:
    code = r"open('/proc/self/comm', 'wb').write(b'\xff) S 1 (\n\xc3'); print('ready', flush=True); input()"
    with subprocess.Popen([sys.executable, "-c", code], stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        process.stdout.readline()
        facts = LinuxMachine().processes([process.pid], _ALL)[process.pid]
        process.kill()
    assert (facts.values["name"], facts.values["parent"]) == ("\ufffd) S 1 (\n\ufffd", os.getpid())


@given(content=st.binary(max_size=200))
def test_any_bytes_are_a_process_or_none(content: bytes) -> None:
    stat = parse_stat(content)
    assert stat is None or content.count(b"(") > 0


def test_a_process_is_described(root: Root) -> None:
    root.process(7, command=("/usr/bin/python3", "train.py", "--password", "hunter2"), resident=5)
    facts = LinuxMachine(str(root)).processes([7], _ALL)[7]
    assert facts.values["name"] == "python"
    assert facts.values["command"] == "/usr/bin/python3 train.py --password ***"
    assert facts.values["host_memory"] == 5 * _PAGE
    assert isinstance(facts.values["user"], str)
    assert facts.values["running_time"] is not None


def test_a_name_the_kernel_cut_is_completed_from_the_program(root: Root) -> None:
    root.process(7, "a-very-long-pro", command=("/opt/bin/a-very-long-program",))
    root.process(8, "renamed", command=("/opt/bin/a-very-long-program",))
    known = LinuxMachine(str(root)).processes([7, 8], _FAST)
    assert [known[pid].values["name"] for pid in (7, 8)] == ["a-very-long-program", "renamed"]


def test_a_kernel_thread_has_no_command(root: Root) -> None:
    root.process(7, "kworker/0:1")
    values = LinuxMachine(str(root)).processes([7], _ALL)[7].values
    assert values["name"] == "kworker/0:1"
    assert "command" not in values


def test_one_that_is_gone_is_left_out_and_the_others_stay(root: Root) -> None:
    root.process(7)
    assert set(LinuxMachine(str(root)).processes([7, 8, 9], _ALL)) == {7}


def test_one_that_goes_while_it_is_read_is_no_error(root: Root) -> None:
    root.process(7, "short")
    for path in ("cmdline", "cgroup", "environ"):
        root.remove(f"proc/7/{path}")
    assert LinuxMachine(str(root)).processes([7], _ALL)[7].values["name"] == "short"


def test_a_pid_used_again_does_not_inherit_the_name(root: Root) -> None:
    machine = LinuxMachine(str(root))
    root.process(7, "first", command=("first", "--run"), started=100)
    assert machine.processes([7], _FAST)[7].values["command"] == "first --run"
    root.process(7, "second", command=("second",), started=900)
    values = machine.processes([7], _FAST)[7].values
    assert (values["name"], values["command"]) == ("second", "second")


def test_what_lasts_is_read_once(root: Root) -> None:
    machine = LinuxMachine(str(root))
    root.process(7, command=("first",))
    machine.processes([7], _FAST)
    root.write("proc/7/cmdline", "changed\0")
    assert machine.processes([7], _FAST)[7].values["command"] == "first"


def test_cpu_is_a_rate_where_one_core_is_a_hundred(root: Root) -> None:
    machine, rates = LinuxMachine(str(root)), Rates()
    root.process(7, cpu=0)
    first = machine.processes([7], _FAST)[7]
    begun = first.counters["cpu_percent"].at
    settle_rates(7, first, rates)
    root.process(7, cpu=3 * _TICKS)
    second = machine.processes([7], _FAST)[7]
    second.counters["cpu_percent"].at = begun + 2.0
    settle_rates(7, second, rates)
    assert (first.gaps["cpu_percent"], second.values["cpu_percent"]) == ("pending", 150.0)


def test_a_tree_is_the_process_with_all_its_descendants(root: Root) -> None:
    for pid, parent in ((7, 1), (8, 7), (9, 8), (10, 7), (11, 1)):
        root.process(pid, parent=parent, cpu=100)
    facts = LinuxMachine(str(root)).processes([7, 11], _ALL)
    assert [facts[pid].values["children"] for pid in (7, 11)] == [3, 0]
    assert [facts[pid].counters["tree_cpu_percent"].value for pid in (7, 11)] == [400 / _TICKS, 100 / _TICKS]


def test_the_files_of_a_process_stay_open_and_end_with_it() -> None:
    machine, sleeper = LinuxMachine(), ["sleep", "60"]
    with subprocess.Popen(sleeper) as first, subprocess.Popen(sleeper) as second:
        for _ in range(2):
            facts = machine.processes([first.pid, second.pid], frozenset({"thread_state"}))
            assert [facts[one.pid].values["name"] for one in (first, second)] == ["sleep", "sleep"]
        assert {pid for pid, _ in machine._files} == {first.pid, second.pid}
        kept = machine._files[first.pid, "stat"]
        first.kill()
        first.wait()
        assert kept.read() is None
        assert machine.processes([first.pid, second.pid], frozenset({"thread_state"})).keys() == {second.pid}
        assert {pid for pid, _ in machine._files} == {second.pid}
        second.kill()


def test_processes_outside_the_trees_are_read_once(root: Root, monkeypatch: pytest.MonkeyPatch) -> None:
    for pid, parent in ((7, 1), (8, 7), (20, 1), (21, 20)):
        root.process(pid, parent=parent)
    machine = LinuxMachine(str(root))
    plain, read = machine._stat, list[int]()

    def noted(pid: int) -> Stat | None:
        read.append(pid)
        return plain(pid)

    monkeypatch.setattr(machine, "_stat", noted)
    assert machine.processes([7], _ALL)[7].values["children"] == 1
    assert {*read} == {7, 8, 20, 21}
    root.process(9, parent=8)
    root.process(22, parent=20)
    read.clear()
    assert machine.processes([7], _ALL)[7].values["children"] == 2
    assert {*read} == {7, 8, 9, 22}
    read.clear()
    facts = machine.processes([7, 20], _ALL)  # one of them comes to a GPU
    assert [facts[pid].values["children"] for pid in (7, 20)] == [2, 2]
    assert {*read} == {7, 8, 9, 20, 21, 22}


def test_what_a_worker_used_stays_in_the_tree_when_it_ends(root: Root) -> None:
    machine = LinuxMachine(str(root))
    root.process(7, cpu=100)
    root.process(8, parent=7, cpu=50)
    before = machine.processes([7], _ALL)[7].counters["tree_cpu_percent"].value
    for name in ("stat", "cmdline", "cgroup", "environ", "io"):
        root.remove(f"proc/8/{name}")
    root.process(7, cpu=110, reaped=55)
    after = machine.processes([7], _ALL)[7].counters["tree_cpu_percent"].value
    assert (before, after) == (150 / _TICKS, 165 / _TICKS)


def test_a_tree_has_memory_and_traffic(root: Root) -> None:
    root.process(7, resident=5, traffic=(1000, 10))
    root.process(8, parent=7, resident=2, traffic=(500, 1))
    facts = LinuxMachine(str(root)).processes([7], _ALL)[7]
    assert facts.values["tree_memory"] == 7 * _PAGE
    assert [facts.counters[key].value for key in ("tree_read", "tree_write")] == [1500, 11]


def test_traffic_that_is_not_ours_to_see_is_denied(root: Root) -> None:
    root.process(7)
    root.process(8, parent=7, traffic=None)
    facts = LinuxMachine(str(root)).processes([7], _ALL)[7]
    assert "tree_read" not in facts.counters
    assert (facts.gaps["tree_read"], facts.gaps["tree_write"]) == ("denied", "denied")


def test_we_ourselves_are_not_part_of_the_program_we_watch(root: Root) -> None:
    root.process(7, cpu=100)
    root.process(os.getpid(), parent=7, cpu=900)
    facts = LinuxMachine(str(root)).processes([7], _ALL)[7]
    assert facts.values["children"] == 0
    assert facts.counters["tree_cpu_percent"].value == 100 / _TICKS


def test_a_circle_of_parents_ends(root: Root) -> None:
    root.process(7, parent=8)
    root.process(8, parent=7)
    assert LinuxMachine(str(root)).processes([7], _ALL)[7].values["children"] == 1


def test_without_the_tree_wanted_nobody_walks_it(root: Root) -> None:
    root.process(7)
    facts = LinuxMachine(str(root)).processes([7], _FAST)[7]
    assert "children" not in facts.values
    assert "tree_cpu_percent" not in facts.counters


def test_the_owner_comes_from_cgroup_and_environment(root: Root) -> None:
    root.process(7, cgroup=f"0::/docker/{'ab' * 32}\n", environ=("PATH=/bin", "SLURM_JOB_ID=42", "BROKEN"))
    values = LinuxMachine(str(root)).processes([7], _ALL)[7].values
    assert (values["container"], values["job"]) == ("abababababab", "slurm:42")


class TestForeignPids:
    def test_in_the_first_namespace_every_pid_is_ours(self, root: Root) -> None:
        root.link("proc/self/ns/pid", INIT)
        assert not LinuxMachine(str(root)).foreign([7])

    def test_without_the_link_they_are_taken_for_ours(self, root: Root) -> None:
        assert not LinuxMachine(str(root)).foreign([7])

    def test_in_another_namespace_a_pid_that_holds_no_gpu_is_somebody_elses(self, root: Root) -> None:
        root.link("proc/self/ns/pid", "pid:[4026532000]")
        root.process(7)
        root.link("proc/7/fd/0", "/dev/null")
        assert LinuxMachine(str(root)).foreign([7])
        assert LinuxMachine(str(root)).foreign([12345])

    def test_in_another_namespace_pids_that_hold_a_gpu_are_ours(self, root: Root) -> None:
        root.link("proc/self/ns/pid", "pid:[4026532000]")
        root.process(7)
        root.link("proc/7/fd/5", "/dev/nvidia0")
        assert not LinuxMachine(str(root)).foreign([7])
        assert LinuxMachine(str(root)).foreign([7, 8])

    def test_without_processes_nothing_is_foreign(self, root: Root) -> None:
        root.link("proc/self/ns/pid", "pid:[4026532000]")
        assert not LinuxMachine(str(root)).foreign([])


def test_a_worker_that_has_just_ended_hides_no_traffic(root: Root, monkeypatch: pytest.MonkeyPatch) -> None:
    root.process(7, traffic=(1000, 10))
    root.process(8, parent=7, traffic=(500, 1))
    machine = LinuxMachine(str(root))
    stats = machine._related([7])
    shutil.rmtree(Path(str(root), "proc/8"))
    monkeypatch.setattr(machine, "_related", lambda roots: stats)
    facts = machine.processes([7], _ALL)[7]
    assert facts.counters["tree_read"].value == 1000
    assert "tree_read" not in facts.gaps


def test_the_owner_of_a_known_process_is_told_as_soon_as_somebody_asks(root: Root) -> None:
    root.process(7, environ=("SLURM_JOB_ID=42",))
    machine = LinuxMachine(str(root))
    assert "job" not in machine.processes([7], _FAST)[7].values
    assert machine.processes([7], _FAST | {"job"})[7].values["job"] == "slurm:42"
