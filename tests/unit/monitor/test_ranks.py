"""Which process of a job samples."""

from __future__ import annotations

import os
import sys
from types import SimpleNamespace

import pytest

from gpulse.monitor.process import launcher, local_rank, local_size


@pytest.fixture(autouse=True)
def without_torch(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delitem(sys.modules, "torch.distributed", raising=False)


@pytest.mark.parametrize(
    "name",
    [
        "LOCAL_RANK",
        "SLURM_LOCALID",
        "OMPI_COMM_WORLD_LOCAL_RANK",
        "MPI_LOCALRANKID",
        "PMI_LOCAL_RANK",
        "PALS_LOCAL_RANKID",
        "FLUX_TASK_LOCAL_ID",
    ],
)
def test_every_launcher_has_its_word(name: str) -> None:
    assert [local_rank({name: value}) for value in ("0", "3", "12")] == [0, 3, 12]


def test_the_framework_knows_better_than_the_scheduler() -> None:
    assert local_rank({"LOCAL_RANK": "1", "SLURM_LOCALID": "0"}) == 1


@pytest.mark.parametrize("value", ["", "-1", "one", "1.0", " ", "²"])
def test_nonsense_says_nothing(value: str) -> None:
    assert local_rank({"LOCAL_RANK": value}) == 0
    assert local_rank({"LOCAL_RANK": value, "SLURM_LOCALID": "2"}) == 2
    assert local_size({"LOCAL_WORLD_SIZE": value}) == 1


def test_alone_is_the_first_of_one() -> None:
    assert (local_rank({}), local_size({})) == (0, 1)


@pytest.mark.parametrize(
    "name", ["LOCAL_WORLD_SIZE", "SLURM_NTASKS_PER_NODE", "OMPI_COMM_WORLD_LOCAL_SIZE", "MPI_LOCALNRANKS"]
)
def test_the_size_of_the_job_here(name: str) -> None:
    assert local_size({name: "8"}) == 8


def _distributed(monkeypatch: pytest.MonkeyPatch, initialized: bool, rank: int) -> None:
    fake = SimpleNamespace(is_available=lambda: True, is_initialized=lambda: initialized, get_rank=lambda: rank)
    monkeypatch.setitem(sys.modules, "torch.distributed", fake)


def test_a_spawned_process_is_known_to_the_framework_only(monkeypatch: pytest.MonkeyPatch) -> None:
    _distributed(monkeypatch, True, 2)
    assert local_rank({}) == 2
    assert local_rank({"LOCAL_RANK": "0"}) == 0


def test_a_framework_that_is_not_set_up_or_broken_says_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    _distributed(monkeypatch, False, 2)
    assert local_rank({}) == 0
    monkeypatch.setitem(sys.modules, "torch.distributed", SimpleNamespace())
    assert local_rank({}) == 0


@pytest.mark.parametrize("address", ["", "localhost", "127.0.0.1", "127.0.1.1", "::1", os.uname().nodename])
def test_a_rank_on_the_machine_of_the_first_is_not_the_first(address: str) -> None:
    environ = {"RANK": "3", "WORLD_SIZE": "8", "MASTER_ADDR": address}
    assert local_rank(environ) == 3
    assert local_rank(environ | {"RANK": "0"}) == 0


@pytest.mark.parametrize("address", ["192.0.2.1", "2001:db8::1", "node-of-nobody", "999.1.1.1"])
def test_a_rank_on_another_machine_may_be_the_only_one_there(address: str) -> None:
    environ = {"RANK": "9", "WORLD_SIZE": "16", "MASTER_ADDR": address}
    assert local_rank(environ) == 0
    assert local_rank(environ | {"LOCAL_WORLD_SIZE": "8"}) == 1
    assert local_rank(environ | {"LOCAL_RANK": "2"}) == 2


@pytest.mark.parametrize(
    ("environ", "has"),
    [
        ({}, False),
        ({"LOCAL_RANK": "0", "WORLD_SIZE": "8"}, False),  # started by the program itself, which is their parent
        ({"LOCAL_RANK": "0", "LOCAL_WORLD_SIZE": "8"}, True),
        ({"LOCAL_RANK": "0", "LOCAL_WORLD_SIZE": "1"}, False),
        ({"RANK": "0", "WORLD_SIZE": "8"}, True),
        ({"SLURM_LOCALID": "0", "SLURM_NTASKS_PER_NODE": "4"}, True),
    ],
)
def test_ranks_that_are_sampled_together_have_one_parent(environ: dict[str, str], has: bool) -> None:
    assert launcher(environ) == (os.getppid() if has else None)
