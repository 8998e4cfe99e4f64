"""Only the time between asking for a batch and getting it is waiting for data, whatever other callbacks do around it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from tests.e2e.lab import Forking
from tests.e2e.trainings import SLOW, run, trainings

STEPS = 3  # of each training

SHARED = """
import time, warnings
warnings.simplefilter("ignore")
import logging
logging.disable(logging.WARNING)
from tests.e2e.trainings import SLOW, tell, told

def cases(train, callback):
    '''Train with another callback that is slow at each of its two hooks per step, before and after ours, or with slow data.'''
    found = {}
    for name, before, after, data in (("before", SLOW, 0, 0), ("after", 0, SLOW, 0), ("data", 0, 0, SLOW), ("both", SLOW, SLOW, SLOW)):
        ours = callback()
        train(before, ours, after, data)
        found[name] = told(ours.monitor)
    tell(**found)
"""

KERAS = """
import keras, numpy
from gpulse.callbacks.keras import GpulseCallback

class Data(keras.utils.PyDataset):
    def __init__(self, seconds):
        super().__init__()
        self.seconds = seconds
    def __len__(self): return 3
    def __getitem__(self, at):
        time.sleep(self.seconds)
        return numpy.ones((1, 4)), numpy.ones((1, 1))

class Other(keras.callbacks.Callback):
    def __init__(self, seconds):
        super().__init__()
        self.seconds = seconds
    def on_train_batch_begin(self, batch, logs=None): time.sleep(self.seconds)
    def on_train_batch_end(self, batch, logs=None): time.sleep(self.seconds)
    def on_epoch_begin(self, epoch, logs=None): time.sleep(self.seconds)
    def on_epoch_end(self, epoch, logs=None): time.sleep(self.seconds)

def train(before, ours, after, data):
    model = keras.Sequential([keras.Input((4,)), keras.layers.Dense(1)])
    model.compile("sgd", "mse")
    model.fit(Data(data), verbose=0, callbacks=[Other(before), ours, Other(after)])

cases(train, GpulseCallback)
from keras.src.trainers.epoch_iterator import EpochIterator
assert EpochIterator._enumerate_iterator.__module__ == EpochIterator.__module__, "it is as it was"
"""

LIGHTNING = """
import torch
import lightning.pytorch as pl
from gpulse.callbacks.lightning import GpulseCallback

class Data(torch.utils.data.Dataset):
    def __init__(self, seconds): self.seconds = seconds
    def __len__(self): return 3
    def __getitem__(self, at):
        time.sleep(self.seconds)
        return torch.ones(4)

class Other(pl.Callback):
    def __init__(self, seconds): self.seconds = seconds
    def on_train_batch_start(self, *given): time.sleep(self.seconds)
    def on_train_batch_end(self, *given): time.sleep(self.seconds)
    def on_train_epoch_start(self, *given): time.sleep(self.seconds)
    def on_train_epoch_end(self, *given): time.sleep(self.seconds)

class Second(Other): pass

class Model(pl.LightningModule):
    def __init__(self):
        super().__init__()
        self.layer = torch.nn.Linear(4, 1)
    def training_step(self, batch, at): return self.layer(batch).sum()
    def configure_optimizers(self): return torch.optim.SGD(self.parameters(), 0.1)

def train(before, ours, after, data):
    trainer = pl.Trainer(accelerator="cpu", max_epochs=1, logger=False, enable_checkpointing=False, enable_progress_bar=False,
        enable_model_summary=False, callbacks=[Other(before), ours, Second(after)])
    trainer.fit(Model(), torch.utils.data.DataLoader(Data(data), batch_size=1))
    assert not {"start", "stop"} & vars(trainer.profiler).keys(), "it is as it was"

cases(train, GpulseCallback)
"""

TRANSFORMERS = """
import torch
from transformers import BertConfig, BertForSequenceClassification, Trainer, TrainerCallback, TrainingArguments
from gpulse.callbacks.transformers import GpulseCallback

class Data(torch.utils.data.Dataset):
    def __init__(self, seconds): self.seconds = seconds
    def __len__(self): return 3
    def __getitem__(self, at):
        time.sleep(self.seconds)
        return {"input_ids": torch.ones(4, dtype=torch.long), "labels": torch.tensor(0)}

class Other(TrainerCallback):
    def __init__(self, seconds): self.seconds = seconds
    def on_step_begin(self, *given, **more): time.sleep(self.seconds)
    def on_step_end(self, *given, **more): time.sleep(self.seconds)
    def on_epoch_begin(self, *given, **more): time.sleep(self.seconds)
    def on_log(self, *given, **more): time.sleep(self.seconds)

class Second(Other): pass

def train(before, ours, after, data):
    model = BertForSequenceClassification(BertConfig(vocab_size=8, hidden_size=8, num_hidden_layers=1, num_attention_heads=1,
        intermediate_size=8, max_position_embeddings=8))
    arguments = TrainingArguments("out", per_device_train_batch_size=1, num_train_epochs=1, use_cpu=True, save_strategy="no",
        disable_tqdm=True, logging_steps=1, report_to="none")
    Trainer(model, arguments, train_dataset=Data(data), callbacks=[Other(before), ours, Second(after)]).train()

cases(train, GpulseCallback)
assert Trainer.get_batch_samples.__module__ == Trainer.__module__, "it is as it was"
"""

ACCELERATE = """
import torch
from accelerate import Accelerator
from gpulse.callbacks.accelerate import GpulseTracker

class Data(torch.utils.data.Dataset):
    def __init__(self, seconds): self.seconds = seconds
    def __len__(self): return 3
    def __getitem__(self, at):
        time.sleep(self.seconds)
        return torch.ones(4)

def train(before, ours, after, data):
    accelerator = Accelerator(cpu=True, log_with=ours)
    accelerator.init_trackers("project")
    loader = accelerator.prepare(torch.utils.data.DataLoader(Data(data), batch_size=1))
    for step, batch in enumerate(ours.batches(loader)):
        time.sleep(before)
        accelerator.log({"loss": 1.0}, step=step)
        time.sleep(after)
    accelerator.end_training()

cases(train, GpulseTracker)
"""
PROGRAMS = {
    "keras": (KERAS, ("keras", "torch")),
    "lightning": (LIGHTNING, ("lightning", "torch")),
    "transformers": (TRANSFORMERS, ("transformers", "accelerate", "torch")),
    "accelerate": (ACCELERATE, ("accelerate", "torch")),
}


@pytest.fixture(scope="module")
def server() -> Iterator[Forking]:
    """The program that has imported the frameworks."""
    with trainings() as program:
        yield program


@pytest.fixture(scope="module", params=PROGRAMS)
def told(request: pytest.FixtureRequest, server: Forking, tmp_path_factory: pytest.TempPathFactory) -> Any:
    """What the monitors of one framework's trainings counted."""
    code, needs = PROGRAMS[request.param]
    return run(server, SHARED + code, tmp_path_factory.mktemp(request.param), *needs)


@pytest.mark.parametrize("order", ["before", "after"])
def test_a_slow_callback_is_not_waiting_for_data(told: Any, order: str) -> None:
    assert told[order]["steps"] == STEPS
    assert told[order]["waited"] < SLOW, "it took six times as long, and the data no time"


@pytest.mark.parametrize("case", ["data", "both"])
def test_slow_data_is_with_and_without_a_slow_callback(told: Any, case: str) -> None:
    assert told[case]["steps"] == STEPS
    assert told[case]["waited"] >= STEPS * SLOW
    assert told[case]["waited"] < 2 * STEPS * SLOW, "with both callbacks it would be four times as long"
