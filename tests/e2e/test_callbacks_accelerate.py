"""The Accelerate tracker in real loops."""

from __future__ import annotations

from typing import Any

import pytest

from tests.e2e.trainings import SLEEP, run

CODE = """
import time, warnings
warnings.simplefilter("ignore")
import torch
from accelerate import Accelerator
from gpulse.callbacks.accelerate import GpulseTracker
from tests.e2e.trainings import SLEEP, Watch, agents, tell, told

class Data(torch.utils.data.Dataset):
    def __init__(self, length, slow): self.length, self.slow = length, slow
    def __len__(self): return self.length
    def __getitem__(self, at):
        if self.slow: time.sleep(SLEEP)
        return torch.ones(4)

def train(accelerator, length, slow=False, at_step=lambda: None, every=1, start=0):
    model = torch.nn.Linear(4, 1)
    loader = torch.utils.data.DataLoader(Data(length, slow), batch_size=1)
    model, optimizer, loader = accelerator.prepare(model, torch.optim.SGD(model.parameters(), 0.1), loader)
    tracker = accelerator.get_tracker("gpulse")
    for step, batch in enumerate(tracker.batches(loader), start):
        at_step()
        accelerator.backward(model(batch).sum())
        optimizer.step()
        if step % every == 0:
            accelerator.log({"loss": 1.0, "epoch": 0}, step=step)
            accelerator.log({"more": 1.0}, step=step)
    with tracker.monitor.phase("evaluate"):
        accelerator.log({"accuracy": 1.0})

watch = Watch()
accelerator = Accelerator(cpu=True, log_with=GpulseTracker(sinks=watch, interval=0.1))
accelerator.init_trackers("project", config={"rate": 0.1})
train(accelerator, 8, at_step=watch.wait)
monitor = accelerator.get_tracker("gpulse", unwrap=True)
accelerator.end_training()
fast = told(monitor) | {"marks": watch.marks()}

named = Accelerator(cpu=True, log_with="gpulse")
named.init_trackers("project", init_kwargs={"gpulse": {"interval": 0.1}})
train(named, 6, slow=True)
named.end_training()
slow = told(named.get_tracker("gpulse").monitor)

resumed = Accelerator(cpu=True, log_with="gpulse")
resumed.init_trackers("project")
train(resumed, 9, every=4, start=1000)
resumed.end_training()
tell(fast=fast, slow=slow, resumed=told(resumed.get_tracker("gpulse").monitor))
"""


@pytest.fixture(scope="module")
def told(tmp_path_factory: pytest.TempPathFactory) -> Any:
    return run(CODE, tmp_path_factory.mktemp("accelerate"), "accelerate", "torch")


def test_a_loop_has_samples_steps_phases_and_epochs(told: Any) -> None:
    fast = told["fast"]
    assert fast["samples"] >= 16, "two more came in each of eight batches"
    assert fast["steps"] == 8
    assert list(fast["phases"]) == ["evaluate"]
    assert fast["marks"] == [["epoch", 0]]


def test_the_name_finds_the_tracker_and_its_options(told: Any) -> None:
    assert told["slow"]["samples"] > 0
    assert told["slow"]["steps"] == 6


def test_only_a_slow_loader_makes_it_wait(told: Any) -> None:
    fast, slow = told["fast"], told["slow"]
    assert slow["waited"] >= 6 * SLEEP
    assert fast["waited"] / fast["steps"] < slow["waited"] / slow["steps"]


def test_steps_of_an_earlier_run_are_not_counted(told: Any) -> None:
    assert told["resumed"]["steps"] == 9


def test_nothing_is_left_behind(told: Any) -> None:
    assert [each["agents"] for each in told.values()] == [0] * len(told)
    assert not any(each["runs"] or each["errors"] for each in told.values())
