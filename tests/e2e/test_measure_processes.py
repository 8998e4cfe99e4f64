"""measure in every process of a job: each rank of a launcher, forked and spawned children, workers of pools."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from tests.e2e.programs import DEMO, Program, agents, machine, on, run, told, until
from tests.packages import require

pytestmark = pytest.mark.skipif(not hasattr(os, "pidfd_open"), reason="needs Linux")

# What a process measures: indices and utilization of the GPUs it sees.
MEASURED = """
import json
def measured(name="work"):
    with gpulse.measure(name, show=False) as work:
        time.sleep(0.15)
    assert work.wait(20), "no sample arrived"
    return sorted(int(gpu.index) for gpu in work.gpus), work.utilization and round(work.utilization.mean, 3), work.memory_peak / 2**30
"""
LAUNCHERS = [
    {"LOCAL_RANK": "1", "RANK": "1", "WORLD_SIZE": "2", "LOCAL_WORLD_SIZE": "2"},  # torchrun
    {"SLURM_LOCALID": "1", "SLURM_PROCID": "5"},
    {"OMPI_COMM_WORLD_LOCAL_RANK": "3"},
]


@pytest.mark.parametrize("launcher", LAUNCHERS, ids=lambda launcher: next(iter(launcher)))
@pytest.mark.parametrize("monitored", [False, True], ids=["alone", "beside a Monitor"])
def test_on_every_rank_for_the_gpus_it_sees(tmp_path: Path, launcher: dict[str, str], monitored: bool) -> None:
    code = (
        f"{MEASURED}\nm = gpulse.Monitor(interval=0.1).start() if {monitored} else None\nprint(json.dumps(measured()))"
    )
    for visible, expected in (("2", [[2], 12.0, 3.0]), ("3,1", [[1, 3], 13.0, 6.0])):
        environ = on(machine(), tmp_path, CUDA_VISIBLE_DEVICES=visible, **launcher)
        assert told(code, tmp_path, environ) == expected


def test_the_line_of_a_second_rank_has_no_dashes(tmp_path: Path) -> None:
    code = """
@gpulse.measure
def work():
    time.sleep(0.15)
work()
"""
    ended = run(code, tmp_path, on(machine(1), tmp_path, LOCAL_RANK="1"))
    assert (ended.code, ended.out) == (0, "")
    (line,) = ended.err.splitlines()
    assert line.startswith("work ")
    assert "1.0 GiB" in line
    assert "util  10 %" in line


PROCESSES = (
    MEASURED
    + """
import multiprocessing
def child(name):
    totals = len(gpulse.measurements())
    return os.getpid(), totals, measured(name)
def send(pipe):
    pipe.send(child("child"))
    pipe.recv()
if __name__ == "__main__":
    context = multiprocessing.get_context(METHOD)
    parent = measured("parent") if MEASURES else None
    START
"""
)
ONE = """
    here, there = context.Pipe()
    process = context.Process(target=send, args=(there,))
    process.start()
    print(json.dumps([parent, [here.recv()]]), flush=True)
    sys.stdin.readline()
    here.send("end")
    process.join()
"""
POOL = """
    with context.Pool(2) as pool:
        print(json.dumps([parent, pool.map(child, ["a", "b", "c"])]), flush=True)
        sys.stdin.readline()
"""


@pytest.mark.parametrize("measures", [True, False], ids=["of a parent that measured", "of a parent that did not"])
@pytest.mark.parametrize("start", [ONE, POOL], ids=["a process", "a pool"])
@pytest.mark.parametrize("method", ["fork", "spawn", "forkserver"])
def test_in_children(tmp_path: Path, method: str, start: str, measures: bool) -> None:
    code = PROCESSES.replace("METHOD", repr(method)).replace("MEASURES", str(measures)).replace("START", start.strip())
    environ = on(machine(2), tmp_path, CUDA_VISIBLE_DEVICES="1")
    expected = [[1], 11.0, 2.0]
    with Program(code, tmp_path, environ) as program:
        parent, children = json.loads(program.line())
        assert parent == (expected if measures else None)
        assert [found for _, _, found in children] == [expected] * len(children)
        first = {pid: totals for pid, totals, _ in reversed(children)}
        assert set(first.values()) == {0}, "a child begins with no totals"
        pids = [pid for pid, _, _ in children]
        assert all(len(agents(pid)) == 1 for pid in pids), "one agent per process"
        program.go()
        ended = program.end()
    assert (ended.code, ended.err) == (0, ""), ended
    until(lambda: not any(agents(pid) for pid in pids))


def test_a_plain_fork_inside_a_measurement(tmp_path: Path) -> None:
    code = f"""{MEASURED}
with gpulse.measure("outer", show=False) as outer:
    time.sleep(0.15)
    child = os.fork()
    if child == 0:
        print(json.dumps(measured("inner")), flush=True)
        os._exit(0)
    assert os.waitpid(child, 0)[1] == 0
print(json.dumps([int(gpu.index) for gpu in outer.gpus]), flush=True)
"""
    ended = run(code, tmp_path, on(machine(1), tmp_path))
    assert (ended.code, ended.err) == (0, ""), ended
    assert [json.loads(line) for line in ended.out.splitlines()] == [[[0], 10.0, 1.0], [0]]


def test_workers_of_a_data_loader_measure_time_and_start_no_agent(tmp_path: Path) -> None:
    require("torch")
    code = """
import torch
from torch.utils.data import DataLoader, Dataset
class Data(Dataset):
    def __len__(self): return 4
    @gpulse.measure(show=False)
    def __getitem__(self, at):
        time.sleep(0.11)
        return len(gpulse.monitor.monitor.running)
if __name__ == "__main__":
    found = [int(count) for batch in DataLoader(Data(), num_workers=2) for count in batch]
    print(found)
"""
    ended = run(code, tmp_path, DEMO)
    assert (ended.code, ended.out, ended.err) == (0, "[0, 0, 0, 0]\n", ""), ended


def test_ranks_started_together_measure_each_their_own(tmp_path: Path) -> None:
    """Start four processes at once, as torchrun does, each with one GPU."""
    code = f"{MEASURED}\nprint(json.dumps(measured()), flush=True)"
    programs = []
    try:
        for rank in range(4):
            folder = tmp_path / str(rank)
            folder.mkdir()
            environ = on(machine(), folder, CUDA_VISIBLE_DEVICES=str(rank), LOCAL_RANK=str(rank), LOCAL_WORLD_SIZE="4")
            programs.append(Program(code, folder, environ))
        found = [json.loads(program.line()) for program in programs]
        assert found == [[[rank], 10.0 + rank, rank + 1.0] for rank in range(4)]
        assert [program.end().code for program in programs] == [0] * 4
    finally:
        for program in programs:
            program.__exit__(None, None, None)
