"""The Transformers callback in real trainings of a model of some hundred weights."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.e2e.trainings import SLEEP, run

CODE = """
import copy, glob, pickle, time, warnings
warnings.simplefilter("ignore")
import torch
from transformers import BertConfig, BertForSequenceClassification, Trainer, TrainingArguments
from gpulse.callbacks.transformers import GpulseCallback
from tests.e2e.trainings import SLEEP, Watch, agents, tell, told

class Data(torch.utils.data.Dataset):
    def __init__(self, length, slow=False, at=lambda: None): self.length, self.slow, self.at = length, slow, at
    def __len__(self): return self.length
    def __getitem__(self, at):
        self.at()
        if self.slow: time.sleep(SLEEP)
        return {"input_ids": torch.ones(4, dtype=torch.long), "labels": torch.tensor(0)}

def trainer(callback, data, at_step=lambda: None, **more):
    model = BertForSequenceClassification(BertConfig(vocab_size=8, hidden_size=8, num_hidden_layers=1, num_attention_heads=1,
        intermediate_size=8, max_position_embeddings=8))
    model.register_forward_pre_hook(lambda module, given: at_step() if module.training else None)
    given = dict(output_dir="out", per_device_train_batch_size=1, num_train_epochs=1, use_cpu=True, save_strategy="no",
        disable_tqdm=True, logging_steps=1, report_to="none")
    return Trainer(model, TrainingArguments(**(given | more)), train_dataset=data, eval_dataset=Data(2, at=lambda: time.sleep(2 * SLEEP)),
        callbacks=[callback])

watch = Watch()
callback = GpulseCallback([watch], interval=0.1)
first = trainer(callback, Data(4), watch.wait, gradient_accumulation_steps=2, num_train_epochs=2, eval_strategy="epoch",
    save_strategy="epoch", report_to="tensorboard")
first.train()
before = first.evaluate() and callback.monitor.samples
fast = told(callback.monitor) | {"global_step": first.state.global_step, "marks": watch.marks(),
    "ran_for_evaluate": before, "curves": sorted(glob.glob("out/runs/**/events*", recursive=True)),
    "spoiled": [key for row in first.state.log_history for key in row if "gpu" in key]}

trainer(callback, Data(6, slow=True), eval_strategy="steps", eval_steps=3, output_dir="again", report_to="tensorboard").train()
slow = told(callback.monitor) | {"curves": sorted(glob.glob("again/runs/**/events*", recursive=True))}

class Boom(Exception): pass
failing = GpulseCallback(interval=0.1)
copies, running = [], []
def boom():
    copies.extend([copy.deepcopy(failing), pickle.loads(pickle.dumps(failing))])
    running.append(failing.monitor.samples)
    raise Boom
try:
    trainer(failing, Data(4), boom).train()
except Boom:
    passed = True
else:
    passed = False
lost = failing.monitor
trainer(failing, Data(3)).train()
failed = told(failing.monitor) | {"passed": passed, "ran": running[:], "copies_run": [each.monitor.samples for each in copies],
    "lost_runs": lost.samples}
again = GpulseCallback(interval=0.1)
try:
    trainer(again, Data(4), boom).train()
except Boom:
    again.monitor.stop()
tell(fast=fast, slow=slow, failed=failed, stopped=told(again.monitor))
"""


@pytest.fixture(scope="module")
def told(tmp_path_factory: pytest.TempPathFactory) -> Any:
    return run(CODE, tmp_path_factory.mktemp("transformers"), "transformers", "accelerate", "torch", "tensorboard")


def test_a_training_has_samples_steps_phases_and_marks(told: Any) -> None:
    fast = told["fast"]
    assert fast["samples"] >= 16, "two more came in each of four batches of two epochs"
    assert fast["steps"] == fast["phases"]["train"]["steps"] == fast["global_step"] == 4
    assert list(fast["phases"]) == ["train", "train/evaluate"]
    assert fast["marks"][:3] == [["epoch", 0], ["save", 2], ["epoch", 1]]


def test_values_go_beside_the_reporter_and_not_into_the_history(told: Any) -> None:
    assert told["fast"]["spoiled"] == []
    for output, training in (("out", "fast"), ("again", "slow")):
        theirs, ours = sorted(
            {Path(path).parent for path in told[training]["curves"]}, key=lambda path: len(path.parts)
        )
        assert theirs.parent == Path(output, "runs")
        assert ours == theirs / "gpulse", "one folder holds one run"


def test_evaluating_alone_is_not_monitored(told: Any) -> None:
    assert told["fast"]["ran_for_evaluate"] is False


def test_only_a_slow_loader_makes_it_wait(told: Any) -> None:
    fast, slow = told["fast"], told["slow"]
    assert slow["waited"] >= 6 * SLEEP
    assert slow["phases"]["train"]["waited"] == pytest.approx(slow["waited"])
    assert fast["waited"] / fast["steps"] < slow["waited"] / slow["steps"]


def test_evaluating_is_not_waiting(told: Any) -> None:
    assert told["slow"]["waited"] < (6 + 2 * 2 * 2) * SLEEP, "of which two batches in each of two evaluations"


def test_another_training_counts_from_the_start(told: Any) -> None:
    assert told["slow"]["steps"] == 6


def test_an_error_passes_and_the_next_training_stops_what_it_left(told: Any) -> None:
    failed = told["failed"]
    assert failed["ran"] == [True]
    assert failed["passed"]
    assert not failed["lost_runs"]
    assert failed["steps"] == 3


def test_a_copy_runs_nothing(told: Any) -> None:
    assert told["failed"]["copies_run"] == [False, False]


def test_nothing_is_left_behind(told: Any) -> None:
    assert [each["agents"] for each in told.values()] == [0] * len(told)
    assert not any(each["runs"] or each["errors"] for each in told.values())
