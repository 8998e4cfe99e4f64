"""The Lightning callback in real trainings."""

from __future__ import annotations

from typing import Any

import pytest

from tests.e2e.trainings import SLEEP, run

CODE = """
import copy, pickle, threading, time, warnings
warnings.simplefilter("ignore")
import logging
logging.disable(logging.WARNING)
import torch
import lightning.pytorch as pl
from lightning.pytorch.loggers import CSVLogger
from lightning.pytorch.loggers.logger import Logger, DummyExperiment
from gpulse.callbacks.lightning import GpulseCallback
from tests.e2e.trainings import SLEEP, Watch, agents, tell, told

class Data(torch.utils.data.Dataset):
    def __init__(self, length, slow): self.length, self.slow = length, slow
    def __len__(self): return self.length
    def __getitem__(self, at):
        if self.slow: time.sleep(SLEEP)
        return torch.ones(4)

def loader(length, slow=False): return torch.utils.data.DataLoader(Data(length, slow), batch_size=1)

class Model(pl.LightningModule):
    def __init__(self, at_step=lambda: None):
        super().__init__()
        self.layer, self.at_step = torch.nn.Linear(4, 1), at_step
    def forward(self, x): return self.layer(x)
    def training_step(self, batch, at):
        self.at_step()
        return self(batch).sum()
    def validation_step(self, batch, at): time.sleep(2 * SLEEP)
    def test_step(self, batch, at): self(batch)
    def configure_optimizers(self): return torch.optim.SGD(self.parameters(), 0.1)

class Memory(Logger):
    name, version = "memory", 0
    def __init__(self):
        super().__init__()
        self.calls = []
    def log_hyperparams(self, *given): pass
    def log_metrics(self, metrics, step=None):
        ours = [key for key in metrics if key.startswith("gpulse/")]
        if ours: self.calls.append((threading.current_thread() is threading.main_thread(), step, ours))

def trainer(*callbacks, **more):
    given = dict(accelerator="cpu", max_epochs=2, logger=False, enable_checkpointing=False, enable_progress_bar=False,
        enable_model_summary=False, callbacks=[*callbacks])
    return pl.Trainer(**(given | more))

watch, memory = Watch(), Memory()
callback = GpulseCallback(watch, interval=0.1)
csv = CSVLogger("logs")
first = trainer(callback, logger=[memory, csv], accumulate_grad_batches=2, enable_checkpointing=True)
first.fit(Model(watch.wait), loader(4), loader(2))
fast = told(callback.monitor) | {"global_step": first.global_step, "marks": watch.marks(), "logged": memory.calls,
    "csv": open(csv.log_dir + "/metrics.csv").readline()}

trainer(callback, max_epochs=1).fit(Model(), loader(6, slow=True), loader(2))
slow = told(callback.monitor)

trainer(callback).test(Model(), loader(5), verbose=False)
test = told(callback.monitor)

class Boom(Exception): pass
failing = GpulseCallback(interval=0.1)
copies, running = [], []
def boom():
    copies.extend([copy.deepcopy(failing), pickle.loads(pickle.dumps(failing))])
    running.append(failing.monitor.samples)
    raise Boom
try:
    trainer(failing).fit(Model(boom), loader(4))
except Boom:
    passed = True
else:
    passed = False
failed = told(failing.monitor) | {"passed": passed, "ran": running, "copies_run": [each.monitor.samples for each in copies]}
trainer(copies[1], max_epochs=1).fit(Model(), loader(3))
tell(fast=fast, slow=slow, test=test, failed=failed, copy=told(copies[1].monitor))
"""


@pytest.fixture(scope="module")
def told(tmp_path_factory: pytest.TempPathFactory) -> Any:
    return run(CODE, tmp_path_factory.mktemp("lightning"), "lightning", "torch")


def test_a_fit_has_samples_steps_phases_and_epochs(told: Any) -> None:
    fast = told["fast"]
    assert fast["samples"] >= 16, "two more came in each of four batches of two epochs"
    assert fast["steps"] == fast["phases"]["fit"]["steps"] == fast["global_step"] == 4
    assert list(fast["phases"]) == ["fit", "fit/sanity", "fit/validate"]
    assert fast["phases"]["fit/validate"]["steps"] == 0
    assert fast["marks"] == [["epoch", 0], ["epoch", 1]]


def test_values_reach_the_loggers_in_the_thread_that_trains(told: Any) -> None:
    calls = told["fast"]["logged"]
    assert len(calls) >= 8
    assert all(main for main, _, _ in calls)
    steps = [step for _, step, _ in calls]
    assert steps == sorted(steps)
    assert steps[-1] == 4
    assert {"gpulse/gpu0/memory_used", "gpulse/host/cpu_percent", "gpulse/train/steps_per_second"} <= {
        key for _, _, keys in calls for key in keys
    }
    assert "gpulse/gpu0/memory_used" in told["fast"]["csv"]


def test_only_a_slow_loader_makes_it_wait(told: Any) -> None:
    fast, slow = told["fast"], told["slow"]
    assert slow["waited"] >= 6 * SLEEP
    assert slow["phases"]["fit"]["waited"] == pytest.approx(slow["waited"])
    assert fast["waited"] / fast["steps"] < slow["waited"] / slow["steps"]


def test_validating_is_not_waiting(told: Any) -> None:
    assert told["fast"]["waited"] < 2 * 2 * 2 * SLEEP, "two batches in each of two epochs"


def test_another_fit_counts_from_the_start(told: Any) -> None:
    assert told["slow"]["steps"] == 6


def test_batches_are_the_steps_of_other_stages(told: Any) -> None:
    assert list(told["test"]["phases"]) == ["test"]
    assert told["test"]["steps"] == 5


def test_an_error_passes_and_stops_the_monitor(told: Any) -> None:
    failed = told["failed"]
    assert failed["ran"] == [True]
    assert failed["passed"]
    assert not failed["runs"]


def test_a_copy_runs_nothing_until_it_is_used(told: Any) -> None:
    assert told["failed"]["copies_run"] == [False, False]
    assert told["copy"]["steps"] == 3


def test_nothing_is_left_behind(told: Any) -> None:
    assert [each["agents"] for each in told.values()] == [0] * len(told)
    assert not any(each["runs"] or each["errors"] for each in told.values())
