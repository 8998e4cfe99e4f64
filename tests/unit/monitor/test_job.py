"""The files through which the ranks of a job tell the first one what they did."""

from __future__ import annotations

import json
import os
import shutil
import time
from pathlib import Path

import pytest

from gpulse.analysis.summary import Summary
from gpulse.monitor.job import JobFile, gather, job_folder, leads
from gpulse.monitor.ledger import Ledger
from gpulse.monitor.process import job_id, world_size


@pytest.fixture(autouse=True)
def environ(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in {"XDG_RUNTIME_DIR": str(tmp_path), "RANK": "0", "LOCAL_RANK": "0", "WORLD_SIZE": "2"}.items():
        monkeypatch.setenv(name, value)


def summary() -> Summary:
    return Summary("", 10.0, samples=1, steps=5, items=0, waited=0, gpus=(), host={}, program={})


def other(folder: Path, rank: int, when: float, **told: object) -> None:
    folder.mkdir(exist_ok=True)
    (folder / f"rank-{rank}.json").write_text(json.dumps({"rank": rank, "time": when, **told}))


def test_a_folder_left_behind_that_another_rank_removes_at_the_same_time_is_no_error(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Gone:
        name, path = "job-old", str(tmp_path / "gpulse/job-old")

        def stat(self, **_: object) -> None:
            raise FileNotFoundError(self.path)

    monkeypatch.setattr(os, "scandir", lambda folder: [Gone()])
    assert job_folder(None) is not None


@pytest.mark.parametrize("shared", [False, True])
def test_the_first_rank_reads_the_figures_of_all_and_removes_them(tmp_path: Path, shared: bool) -> None:
    ledger = Ledger(lambda: None)
    job = JobFile(ledger, str(tmp_path / "common") if shared else None)
    assert job.folder is not None
    if shared:
        (tmp_path / "common").mkdir()
    ledger.step(5, 0)
    other(Path(job.folder), 1, time.time() + 1, steps=7, done=True)
    found = summary()
    ledger.end()
    assert job.finish(found, time.monotonic() + 60, report=True)
    assert [(rank.rank, rank.steps, rank.done) for rank in found.ranks] == [(0, 5, True), (1, 7, True)]
    assert (found.world, found.to_plain()["ranks"][1]["steps"]) == (2, 7)
    assert not os.path.exists(job.folder)


def test_another_rank_leaves_its_figures_and_the_summary_alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RANK", "1")
    monkeypatch.setenv("LOCAL_RANK", "1")
    job, found = JobFile(Ledger(lambda: None), None), summary()
    assert not job.finish(found, time.monotonic() + 60, report=True)
    assert found.ranks == ()
    assert job.folder is not None
    assert json.loads((Path(job.folder) / "rank-1.json").read_text())["done"]


def test_a_rank_that_ends_after_the_first_one_leaves_nothing_behind(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RANK", "1")
    monkeypatch.setenv("LOCAL_RANK", "1")
    job = JobFile(Ledger(lambda: None), None)
    job._write(done=False)
    assert job.folder is not None
    shutil.rmtree(job.folder)  # as the first rank does
    job.finish(summary(), time.monotonic() + 60, report=False)
    assert not os.path.exists(job.folder)


def test_figures_of_an_earlier_job_and_what_is_no_file_of_ours_do_not_count(tmp_path: Path) -> None:
    folder = tmp_path / "job"
    for rank, when in ((0, 100.0), (1, 100.0), (2, 1.0)):
        other(folder, rank, when, steps=1)
    (folder / "rank-3.json").write_text("{")
    (folder / "rank-4.json").write_text('{"rank": "x", "time": 100}')
    (folder / "rank-5.json.9.part").write_text("{}")
    found = summary()
    gather(found, str(folder), 50.0, {})
    assert [rank.rank for rank in found.ranks] == [0, 1]
    gather(found, str(tmp_path / "missing"), 0.0, {})
    gather(found, None, 0.0, {})


def test_without_a_shared_folder_the_first_rank_of_each_machine_leads(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RANK", "8")
    assert leads(None)
    assert not leads("/common")
    monkeypatch.setenv("LOCAL_RANK", "1")
    assert not leads(None)


def test_ranks_of_one_job_have_one_id_and_other_jobs_another() -> None:
    torchrun = {"MASTER_ADDR": "a", "MASTER_PORT": "29500", "TORCHELASTIC_RUN_ID": "none"}
    assert job_id(torchrun | {"RANK": "1"}, False) == job_id(torchrun | {"RANK": "2"}, False)
    assert job_id(torchrun, True) != job_id(torchrun | {"MASTER_PORT": "29501"}, True)
    assert job_id({"SLURM_JOB_ID": "7", "SLURM_STEP_ID": "0"}, False) == job_id(
        {"SLURM_JOB_ID": "7", "SLURM_STEP_ID": "0"}, True
    )


def test_the_size_of_a_job_is_one_without_ranks() -> None:
    assert world_size({}) == 1
    assert world_size({"SLURM_NTASKS": "4"}) == 1  # of an allocation, in which this is no task
    assert world_size({"SLURM_NTASKS": "4", "SLURM_PROCID": "2"}) == 4
