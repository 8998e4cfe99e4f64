"""The report of a Slurm job: when and where it ran."""

from __future__ import annotations

from pathlib import Path

import pytest

from gpulse.errors import GpulseError, UsageError
from gpulse.sources.slurm import SlurmJob
from gpulse.surfaces.report import run as module
from gpulse.surfaces.report.comparison import run_to_plain
from gpulse.surfaces.report.run import JobSpan, job_number, job_span
from tests.unit.store.history.ticks import write
from tests.unit.surfaces.report.runs import START, gpu, process, run_of, sample


@pytest.fixture
def history(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """Return a history in which job 7 uses GPU 1 from second 100 to 299."""
    monkeypatch.setattr(module, "has_slurm", lambda: False)
    path = str(tmp_path / "history.db")
    ours = process(7, job="slurm:7", running_time=0.0)
    write(path, [sample(at, gpu(0), gpu(1, *([ours] if 100 <= at < 300 else []))) for at in range(0, 400, 2)])
    return path


def test_a_job_that_slurm_has_forgotten_is_found_by_its_processes(history: str) -> None:
    span = job_span("7", environ={}, history=history)
    assert (round(span.start - START), round(span.end - START), span.gpus) == (100, 298, ("GPU-1",))
    assert span.title == "Slurm job 7 · ada"


def test_what_slurm_says_comes_first(history: str, monkeypatch: pytest.MonkeyPatch) -> None:
    job = SlurmJob("7")
    job.name, job.account, job.start, job.end, job.gpus = "train", "lab", START + 50, START + 350, (0, 1)
    monkeypatch.setattr(module, "has_slurm", lambda: True)
    monkeypatch.setattr(module, "describe_job", lambda number: job)
    span = job_span("7", environ={}, history=history)
    assert (span.start, span.end, span.gpus) == (START + 50, START + 350, ("0", "1"))
    assert span.title == "Slurm job 7 · train · ada · account lab"
    job.gpus = None  # it has ended: a prolog or epilog still knows
    environ = {"SLURM_JOB_ID": "7", "SLURM_JOB_GPUS": "0"}
    assert job_span("7", environ=environ, history=history).gpus == ("0",)
    assert job_span("7", ["1"], environ, history).gpus == ("1",)


def test_a_job_that_nobody_knows_is_said_so(history: str) -> None:
    with pytest.raises(GpulseError, match="job 8: no process of it"):
        job_span("8", environ={}, history=history)


@pytest.mark.parametrize("text", ["", "x", "1;2", "-1", "1_", "$(id)", "slurm:"])
def test_what_is_no_number_is_refused(text: str) -> None:
    with pytest.raises(UsageError):
        job_number(text)


def test_numbers() -> None:
    assert [job_number(text) for text in ("12", "slurm:12", "12_3")] == ["12", "12", "12_3"]


def test_plain_data_has_the_job() -> None:
    run = run_of(sample(at, gpu(0), gpu(3)) for at in range(3))
    run.job = JobSpan(SlurmJob("7"), START, START + 2, ("0", "3"))
    assert run_to_plain(run)["job"]["gpus"] == ["0", "3"]
