"""A real W&B run without a network, read back from its file."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from gpulse.errors import GpulseError
from gpulse.sinks import WandbSink
from tests.unit.readback import wandb_history, wandb_summary
from tests.unit.samples import sample

wandb: Any = None
TAG = "gpu0/utilization"


@pytest.fixture(scope="module", autouse=True)
def _wandb() -> None:
    """Import it in the one worker that runs these tests, and not in all that collect them."""
    global wandb
    wandb = pytest.importorskip("wandb")


@pytest.fixture
def run(tmp_path: Path) -> Iterator[Any]:
    quiet = wandb.Settings(x_disable_stats=True, x_disable_meta=True, console="off", silent=True)
    made = wandb.init(mode="offline", dir=str(tmp_path), settings=quiet)
    yield made
    made.finish()


def rows(folder: Path) -> list[dict[str, Any]]:
    return [
        {key: value for key, value in row.items() if not key.startswith("_") or key == "_step"}
        for row in wandb_history(folder)
    ]


def test_samples_ride_in_the_rows_of_the_program_and_move_no_step(run: Any, tmp_path: Path) -> None:
    sink = WandbSink()
    sink.open()

    def snap(elapsed: float, value: float) -> None:
        thread = threading.Thread(target=sink.write, args=(sample(elapsed, {TAG: value}),))
        thread.start()
        thread.join()

    snap(0.0, 10.0)
    snap(1.0, 20.0)
    assert run.step == 0
    run.log({"loss": 3.0})
    assert run.step == 1
    run.log({"loss": 2.0})
    snap(2.0, 50.0)
    run.log({"loss": 1.0}, step=10)
    snap(3.0, 0.0)
    sink.close()
    assert run.step == 10
    run.finish()
    assert rows(tmp_path) == [
        {"_step": 0, "loss": 3.0, f"gpulse/{TAG}": 15.0, "gpulse/elapsed": 1.0},
        {"_step": 1, "loss": 2.0},
        {"_step": 2, f"gpulse/{TAG}": 50.0, "gpulse/elapsed": 2.0},
        {"_step": 10, "loss": 1.0, f"gpulse/{TAG}": 0.0, "gpulse/elapsed": 3.0},
    ]


def test_rows_of_its_own_for_a_program_that_logs_nothing(run: Any, tmp_path: Path) -> None:
    sink = WandbSink(run, "machine", commit=True)
    sink.open()
    for second in range(3):
        sink.write(sample(second, {TAG: second * 10.0}))
    sink.close()
    assert run.step == 3
    run.finish()
    assert rows(tmp_path) == [{"_step": at, f"machine/{TAG}": at * 10.0, "machine/elapsed": at} for at in range(3)]


def test_the_lines_of_code_are_in_the_summary_of_the_run_and_move_no_step(run: Any, tmp_path: Path) -> None:
    sink = WandbSink()
    sink.open()
    sink.summarize("| train.py:84 … |")
    sink.close()
    assert run.step == 0
    run.finish()
    assert wandb_summary(tmp_path)["gpulse/code"] == "| train.py:84 … |"


def test_the_run_stays_open(run: Any) -> None:
    sink = WandbSink()
    sink.open()
    sink.close()
    run.log({"loss": 1.0})
    assert run.step == 1


def test_no_run_is_said_with_its_remedy() -> None:
    with pytest.raises(GpulseError, match=r"no W&B run is active. Call wandb.init\(\)"):
        WandbSink().open()
