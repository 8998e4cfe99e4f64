"""One report for all ranks of a job, and none from processes that only help a program."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from tests.e2e.programs import PATIENCE, agent, machine, on, outlived, run, until
from tests.packages import require
from tests.ports import free_port

require("torch")
pytestmark = pytest.mark.skipif(not hasattr(os, "pidfd_open"), reason="needs Linux")

# rank 1 waits longer for its data; all meet in a collective after each step
TRAINING = """
import os, signal, sys, time, warnings
warnings.simplefilter("ignore")
import gpulse, torch, torch.distributed as dist

def loader(rank, count):
    for at in range(count):
        time.sleep(0.05 if rank == 1 else 0.005)
        yield at

def train(monitor, count=30):
    rank = dist.get_rank()
    with monitor.phase("train"):
        for at in monitor.batches(loader(rank, count)):
            dist.all_reduce(torch.ones(1))
            if at == 20 and rank == 0:
                print("under way", os.getpid(), flush=True)
"""
# torchrun starts the file; started alone it is its own torchrun, whose ranks are forks: each import of torch takes 2 s of CPU time
ALONE = (
    TRAINING
    + """
from torch.distributed.launcher.api import LaunchConfig, elastic_launch
from tests.e2e.programs import agents

def work(count):
    signal.signal(signal.SIGTERM, signal.SIG_DFL)  # as torchrun starts it; a fork has the handler of the launcher
    monitor = gpulse.Monitor(interval=0.2, report=True, ranks=os.environ.get("RANKS", "one")).start()
    dist.init_process_group("gloo")
    train(monitor, count)
    dist.barrier()
    print(f"<rank {dist.get_rank()} of {dist.get_world_size()}: {len(agents(os.getpid()))} agents>", flush=True)
    dist.barrier()
    monitor.stop()
    dist.destroy_process_group()

if "RANK" in os.environ:
    work(int(sys.argv[1]))
else:
    options = LaunchConfig(1, 1, 4, rdzv_backend="c10d", rdzv_endpoint="localhost:0", max_restarts=0, start_method="fork")
    elastic_launch(options, work)(int(sys.argv[1]))
"""
)
SPAWNED = (
    TRAINING
    + """
import glob
import torch.multiprocessing as mp

def work(rank):
    monitor = gpulse.Monitor(interval=0.2, report=True).start()  # before anybody knows the rank
    os.environ.update(MASTER_ADDR="127.0.0.1", MASTER_PORT=sys.argv[1])
    dist.init_process_group("gloo", rank=rank, world_size=2)
    train(monitor)
    while not glob.glob(f"gpulse/job-*/rank-{rank}.json"):  # written once a second
        time.sleep(0.01)
    dist.barrier()
    monitor.stop()
    dist.destroy_process_group()

mp.start_processes(work, nprocs=2, start_method="fork")  # as mp.spawn does, without another import of torch for each rank
"""
)


def launched(code: str, folder: Path, *words: str, **more: str) -> subprocess.Popen[str]:
    """Start a program, through torchrun if it is for several ranks."""
    file = folder / "train.py"
    file.write_text(code)
    environ = on(machine(4), folder, XDG_RUNTIME_DIR=str(folder), OMP_NUM_THREADS="1", PYTHONWARNINGS="ignore", **more)
    return subprocess.Popen(
        [sys.executable, *(str(file) if word == "FILE" else word for word in words)],
        env=environ,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        cwd=folder,
    )


TORCHRUN = ("-m", "torch.distributed.run", "--standalone", "--nproc-per-node", "2", "FILE")


def table(err: str) -> dict[str, list[str]]:
    """Return the rows of the ranks by their first word."""
    lines = err.splitlines()
    start = next(at for at, line in enumerate(lines) if line.split()[:2] == ["rank", "steps/s"])
    return {line.split()[0]: line.split() for line in lines[start + 1 :] if line.split()[0].isdecimal()}


@pytest.mark.parametrize(("launcher", "ranks", "count"), [(TORCHRUN, "one", 2), (("FILE",), "all", 4)])
def test_torchrun_has_one_report_that_names_the_slow_rank(
    tmp_path: Path, launcher: tuple[str, ...], ranks: str, count: int
) -> None:
    with launched(ALONE, tmp_path, *launcher, "30", RANKS=ranks) as program:
        out, err = program.communicate(timeout=PATIENCE)
    assert program.returncode == 0, err
    assert sum(line.startswith("gpulse: ") and "steps" in line for line in err.splitlines()) == 1, err
    assert table(err).keys() == {str(rank) for rank in range(count)}
    (found,) = [line for line in err.splitlines() if "slower" in line]
    assert "Rank 1 is" in found
    assert "per step for data" in found
    assert os.listdir(tmp_path / "gpulse") == []  # neither files of ranks nor of running monitors
    said = sorted(re.findall(r"<rank [^>]*>", out))
    sampling = {"one": [1] + [0] * (count - 1), "all": [1] * count}[ranks]
    assert said == [f"<rank {rank} of {count}: {agents} agents>" for rank, agents in enumerate(sampling)]


def test_a_job_that_is_killed_has_one_report_with_all_ranks(tmp_path: Path) -> None:
    with launched(ALONE, tmp_path, "FILE", "100000") as program:
        assert program.stdout is not None
        first = int(program.stdout.readline().split()[-1])
        until(lambda: len([*tmp_path.glob("gpulse/job-*/rank-*.json")]) == 4)
        with outlived(agent(first)) as wait:
            program.send_signal(signal.SIGTERM)
            wait()
        _, err = program.communicate(timeout=PATIENCE)
    assert err.count("gpulse: the program did not finish (ended by SIG") == 1, err
    assert table(err).keys() == {"0", "1", "2", "3"}


def test_spawned_ranks_have_one_report(tmp_path: Path) -> None:
    with launched(SPAWNED, tmp_path, "FILE", str(free_port())) as program:
        _, err = program.communicate(timeout=PATIENCE)
    assert program.returncode == 0, err
    assert sum(line.startswith("gpulse: ") and "steps" in line for line in err.splitlines()) == 1, err
    assert table(err).keys() == {"0", "1"}


def test_workers_that_import_a_running_monitor_start_none(tmp_path: Path) -> None:
    code = """
import warnings
warnings.simplefilter("ignore")
import gpulse.monitor.monitor as monitors
from torch.utils.data import DataLoader, Dataset
m = gpulse.Monitor("gpu.csv", interval=0.1, report=True).start()  # at the level of the module, as many programs do

class Data(Dataset):
    def __len__(self):
        return 4
    def __getitem__(self, at):
        extra = gpulse.Monitor().start()
        return len(monitors.running), extra.samples, m.samples, os.getpid()

if __name__ == "__main__":
    until(lambda: m.latest)
    for method in ("fork", "spawn", "forkserver"):
        batches = [[int(one) for one in batch] for batch in DataLoader(Data(), num_workers=1, multiprocessing_context=method)]
        assert len(batches) == 4, (method, batches)
        for *told, pid in batches:
            assert told == [0, 0, 0], (method, told)
            assert pid != os.getpid(), method
    print(m.samples, flush=True)
"""
    ended = run(code, tmp_path, on(machine(1), tmp_path))
    assert (ended.code, ended.out) == (0, "True\n"), ended
    assert sum(line.startswith("gpulse: ") for line in ended.err.splitlines()) == 1, ended
