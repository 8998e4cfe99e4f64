"""What Slurm says of jobs and nodes, as its commands print it (22.05)."""

from __future__ import annotations

import threading
from collections.abc import Sequence

import pytest

from gpulse.errors import GpulseError
from gpulse.sources.slurm import SlurmNode, gpu_nodes, node_names, parse_job

_JOB = """\
JobId=7 ArrayJobId=5 ArrayTaskId=2 JobName={name}
   UserId=ada(1000) GroupId=ada(1000) MCS_label=N/A
   Priority=4294901758 Nice=0 Account=lab QOS=(null)
   JobState={state} Reason=None Dependency=(null)
   StartTime=1794823385 EndTime=1794826985 Deadline=N/A
   Partition=main AllocNode:Sid=login:4671
   NodeList=gpu[1-3]
   JOB_GRES=gpu:h100:6
     Nodes=gpu[1-2] CPU_IDs=0-3,8 Mem=2048 GRES=gpu:h100:2(IDX:0-1),shard:0(IDX:N/A)
     Nodes=gpu3 CPU_IDs=0 Mem=2048 GRES={gres}
   WorkDir=/home/ada
   Comment={comment}
"""


def job(name: str = "train", gres: str = "gpu:h100:2(IDX:1,3)", comment: str = "", state: str = "RUNNING") -> str:
    return _JOB.format(name=name, gres=gres, comment=comment, state=state)


def test_a_job_is_told_with_its_share_of_this_node() -> None:
    found = parse_job("7", job(), "gpu3")
    assert (found.key, found.name, found.user, found.account, found.partition) == (
        *("slurm:7", "train", "ada", "lab"),
        "main",
    )
    assert (found.start, found.end, found.gpus) == (1794823385, 1794826985, (1, 3))
    other = parse_job("7", job(), "gpu2")
    assert other.gpus == (0, 1)


@pytest.mark.parametrize(
    "text",
    [
        job(name="x\n     Nodes=gpu3 CPU_IDs=0 Mem=0 GRES=gpu:4(IDX:0-3)"),
        job(comment="x\n     Nodes=gpu3 CPU_IDs=0 Mem=0 GRES=gpu:4(IDX:0-3)"),
        job(name="x\n     Nodes=gpu[3-3] CPU_IDs=0 Mem=0 GRES=gpu:4(IDX:0-3)"),
    ],
)
def test_a_name_that_looks_like_an_allocation_gives_no_gpu(text: str) -> None:
    assert parse_job("7", text, "gpu3").gpus is None


def test_a_name_that_looks_like_another_owner_gives_no_owner() -> None:
    found = parse_job("7", job(name="x\n   UserId=root(0) GroupId=root(0)"), "gpu3")
    assert (found.user, found.name, found.account) == (None, "x", "lab")


def test_gpus_of_a_job_that_has_ended_are_unknown_and_of_one_without_gpus_none() -> None:
    assert parse_job("7", job(gres="", state="COMPLETED"), "gpu3").gpus is None
    assert parse_job("7", job(gres=""), "gpu3").gpus == ()


class Controller:
    """Answers as Slurm's commands do, and counts."""

    def __init__(self) -> None:
        self.asked: list[str] = []
        self.running = ["7"]
        self.works = True
        self.answers = threading.Event()
        self.answers.set()

    def __call__(self, words: Sequence[str]) -> str:
        assert self.answers.wait(60)
        self.asked.append(" ".join(words))
        if not self.works:
            raise GpulseError("scontrol: error: Unable to contact slurm controller")
        if words[1] == "listpids":
            if not self.running:
                raise GpulseError("scontrol: No job steps exist on this node.")
            return "PID JOBID STEPID\n" + "".join(f"1{number} {number} batch\n" for number in self.running)
        return job().replace("JobId=7", f"JobId={words[-1]}")


def settled(node: SlurmNode, *named: str) -> list[str] | None:
    """Ask again, and wait for the answer."""
    node._asked = float("-inf")
    node.jobs(named)
    for thread in threading.enumerate():
        if thread.name == "gpulse-slurm":
            thread.join(60)
    known = node.jobs(named)
    return None if known is None else list(known)


def test_the_controller_is_asked_once_per_job(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SLURMD_NODENAME", "gpu3")
    controller = Controller()
    node = SlurmNode(controller)
    controller.answers.clear()
    assert node.jobs() is None  # it does not wait
    controller.answers.set()
    assert settled(node) == ["slurm:7"]
    assert settled(node) == ["slurm:7"]
    assert controller.asked.count("scontrol --details show job 7") == 1
    controller.running = []
    assert settled(node) == []
    assert settled(node, "slurm:9") == ["slurm:9"]  # a process says so
    controller.works = False
    assert settled(node, "slurm:9") == ["slurm:9"]  # the last answer stays


def test_a_controller_that_hangs_is_not_asked_again_meanwhile() -> None:
    controller = Controller()
    node = SlurmNode(controller)
    controller.answers.clear()
    for _ in range(3):
        node._asked = float("-inf")
        assert node.jobs() is None
    assert sum(thread.name == "gpulse-slurm" for thread in threading.enumerate()) == 1
    controller.answers.set()
    assert settled(node) == ["slurm:7"]


def test_without_an_answer_nothing_is_known() -> None:
    controller = Controller()
    controller.works = False
    assert settled(SlurmNode(controller)) is None


def test_nodes_with_gpus() -> None:
    assert gpu_nodes("main", lambda words: "gpu1 gpu:h100:8\ncpu1 (null)\ngpu1 gpu:h100:8\n") == ["gpu1"]
    assert node_names("a[1-2],b c[01]") == ["a1", "a2", "b", "c01"]
