"""Which kernel a process on a GPU belongs to: its own process, or the nearest parent that is one."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from gpulse.model.catalog import Gpu, Process
from gpulse.model.snapshot import Snapshot
from gpulse.sources.processes import LinuxMachine
from gpulse.surfaces.jupyter.kernels import Kernel, KernelProcesses, kernel_table


def kernel(pid: int | None, id: str = "k") -> Kernel:
    return Kernel(id, None, "a.ipynb", "work/a.ipynb", "idle", 5.0, pid)


def machine(*processes: Process, uuid: str = "GPU-1") -> Snapshot:
    return Snapshot(100.0, (Gpu({"uuid": uuid, "index": 0}, processes=processes),))


def process(pid: int, memory: float | None = None, sm: float | None = None) -> Process:
    values: dict[str, Any] = {"pid": pid, "memory_used": memory, "sm_utilization": sm}
    return Process({key: value for key, value in values.items() if value is not None})


@pytest.fixture(autouse=True)
def _own_numbers(monkeypatch: pytest.MonkeyPatch) -> None:
    """Tests may run in a container; these pids are ours."""
    monkeypatch.setattr(LinuxMachine, "isolated", lambda self: False)


def test_a_child_of_a_real_process_counts_for_its_kernel() -> None:
    with subprocess.Popen(["sh", "-c", "sleep 60 & echo $!; wait"], stdout=subprocess.PIPE, text=True) as parent:
        assert parent.stdout is not None
        child = int(parent.stdout.readline())
        try:
            table = kernel_table(
                [kernel(parent.pid)], machine(process(child, 2.0**30, 10.0), process(parent.pid, 2.0**20))
            )
        finally:
            subprocess.run(["kill", str(child)], check=True)
    [row] = table["kernels"]
    [use] = row["gpus"]
    assert use["memory_used"] == 2**30 + 2**20
    assert use["sm_utilization"] == 10.0
    assert sorted(use["pids"]) == sorted([child, parent.pid])
    assert table["problem"] is None


def test_processes_of_others_and_kernels_without_a_process_match_nothing() -> None:
    parents = {50: 40, 40: 1}
    table = kernel_table([kernel(None), kernel(60, "other")], machine(process(50, 1.0)), KernelProcesses(parents.get))
    assert [row["gpus"] for row in table["kernels"]] == [[], []]


def test_parents_that_go_in_a_circle_end() -> None:
    table = kernel_table([kernel(60)], machine(process(50, 1.0)), KernelProcesses({50: 51, 51: 50}.get))
    assert table["kernels"][0]["gpus"] == []


def test_memory_that_is_not_known_stays_unknown() -> None:
    table = kernel_table([kernel(50)], machine(process(50)))
    assert table["kernels"][0]["gpus"] == [{"uuid": "GPU-1", "memory_used": None, "sm_utilization": None, "pids": [50]}]


def test_numbers_of_another_namespace_are_told_and_never_matched(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(LinuxMachine, "isolated", lambda self: True)
    table = kernel_table([kernel(50)], machine(process(50, 1.0)))
    assert table["kernels"][0]["gpus"] == []
    assert "--pid=host" in table["problem"]


def test_a_kernel_in_a_container_is_known_by_its_connection_file() -> None:
    id = "0b1c2d3e-0000-4000-8000-000000000007"
    command = [sys.executable, "-c", "import sys; print(flush=True); sys.stdin.read()", f"/run/kernel-{id}.json"]
    # no child of the process that Jupyter started
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as contained:
        assert contained.stdout is not None
        contained.stdout.readline()
        table = kernel_table([kernel(2, id), kernel(3)], machine(process(contained.pid, 2.0**30)))
    assert [[use["memory_used"] for use in row["gpus"]] for row in table["kernels"]] == [[2**30], []]


@pytest.mark.parametrize(("program", "told"), [("docker", True), ("ssh", True), ("python3", False)])
def test_a_process_that_only_starts_a_kernel_is_told(program: str, told: bool, tmp_path: Path) -> None:
    launcher = tmp_path / program
    launcher.symlink_to("/bin/sh")
    with subprocess.Popen(
        [str(launcher), "-c", "echo; read end"], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as started:
        assert started.stdout is not None
        started.stdout.readline()
        [row] = kernel_table([kernel(started.pid)], machine())["kernels"]
        started.kill()
    expected = f"started with {program}; its own processes are not visible here" if told else None
    assert row["elsewhere"] == expected


def test_a_mig_instance_is_told_by_its_own_uuid() -> None:
    instance = Gpu({"uuid": "MIG-1", "index": 1}, processes=(process(50, 1.0),))
    snapshot = Snapshot(100.0, (Gpu({"uuid": "GPU-1", "index": 0}, instances=(instance,)),))
    [row] = kernel_table([kernel(50)], snapshot)["kernels"]
    assert [use["uuid"] for use in row["gpus"]] == ["MIG-1"]


def test_no_kernel_runs_on_a_simulated_machine() -> None:
    table = kernel_table([kernel(50)], machine(process(50, 1.0)), real=False)
    assert table["kernels"][0]["gpus"] == []
    assert "simulated" in table["problem"]


def test_host_memory_and_processes_are_those_of_the_kernel_and_its_children() -> None:
    with subprocess.Popen(
        ["sh", "-c", "sleep 60 & echo; wait"], stdout=subprocess.PIPE, start_new_session=True
    ) as parent:
        assert parent.stdout is not None
        parent.stdout.readline()
        [row] = kernel_table([kernel(parent.pid)], machine())["kernels"]
        os.killpg(parent.pid, signal.SIGKILL)
    assert row["children"] == 1
    assert row["host_memory"] > 0
    assert row["cpu_percent"] is None, "a rate needs two looks"


def test_a_process_that_is_replaced_gets_its_own_kernel() -> None:
    processes = KernelProcesses({50: 1}.get)
    assert processes.owners({"k": 50}, machine(process(50, 1.0))) == {50: "k"}
    assert processes.owners({"k": 51}, machine(process(50, 1.0))) == {}, "the kernel was restarted"


_SEEN = {"last_activity": "2026-01-02T03:04:05.678901Z"}
_SESSION = {"path": "x/a.ipynb", "name": ""}


@pytest.mark.parametrize(
    ("plain", "session", "name", "idle"),
    [
        ({"execution_state": "idle", **_SEEN}, _SESSION, "a.ipynb", 1767323045.0),
        ({"execution_state": "busy", **_SEEN}, {**_SESSION, "name": "b"}, "b", None),
        ({"execution_state": "idle", "last_activity": "nonsense", "name": "python3"}, None, "python3", None),
    ],
)
def test_a_kernel_of_jupyters_lists(
    plain: dict[str, Any], session: dict[str, Any] | None, name: str, idle: float | None
) -> None:
    made = Kernel.from_jupyter({"id": "k", **plain}, session, 7)
    assert (made.name, made.idle_since, made.pid) == (name, idle, 7)
