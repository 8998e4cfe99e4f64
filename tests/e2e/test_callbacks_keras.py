"""The Keras callback in real trainings, on the torch backend, which calls the ends of batches from other threads."""

from __future__ import annotations

from typing import Any

import pytest

from tests.e2e.trainings import SLEEP, run

CODE = """
import copy, pickle, time, warnings
warnings.simplefilter("ignore")
import keras, numpy
from gpulse.callbacks.keras import GpulseCallback
from tests.e2e.trainings import SLEEP, Watch, agents, tell, told

class Data(keras.utils.PyDataset):
    def __init__(self, length, slow=False, at=lambda: None):
        super().__init__()
        self.length, self.slow, self.at = length, slow, at
    def __len__(self): return self.length
    def __getitem__(self, at):
        self.at()
        if self.slow: time.sleep(SLEEP)
        return numpy.ones((1, 4)), numpy.ones((1, 1))

class Steps(keras.callbacks.Callback):
    def __init__(self, at_step):
        super().__init__()
        self.at_step = at_step
    def on_train_batch_begin(self, batch, logs=None): self.at_step()

def model():
    made = keras.Sequential([keras.Input((4,)), keras.layers.Dense(1)])
    made.compile("sgd", "mse")
    return made

watch = Watch()
callback = GpulseCallback(watch, interval=0.1)
history = model().fit(Data(4), epochs=2, validation_data=Data(2), verbose=0, callbacks=[callback, Steps(watch.wait)])
fast = told(callback.monitor) | {"marks": watch.marks(), "history": sorted(history.history)}

model().fit(Data(6, slow=True), verbose=0, callbacks=[callback])
slow = told(callback.monitor)

model().evaluate(Data(5, slow=True), verbose=0, callbacks=[callback])
alone = told(callback.monitor)
model().predict(Data(2), verbose=0, callbacks=[callback])
predicted = told(callback.monitor)

class Boom(Exception): pass
failing = GpulseCallback(interval=0.1)
copies, running = [], []
def boom():
    copies.extend([copy.deepcopy(failing), pickle.loads(pickle.dumps(failing))])
    running.append(failing.monitor.samples)
    raise Boom
try:
    model().fit(Data(4), verbose=0, callbacks=[failing, Steps(boom)])
except Boom:
    passed = True
else:
    passed = False
lost = failing.monitor
model().fit(Data(3), verbose=0, callbacks=[failing])
failed = told(failing.monitor) | {"passed": passed, "ran": running, "copies_run": [each.monitor.samples for each in copies],
    "lost_runs": lost.samples}
tell(fast=fast, slow=slow, alone=alone, predicted=predicted, failed=failed)
"""


@pytest.fixture(scope="module")
def told(tmp_path_factory: pytest.TempPathFactory) -> Any:
    return run(CODE, tmp_path_factory.mktemp("keras"), "keras", "torch")


def test_a_fit_has_samples_steps_phases_and_epochs(told: Any) -> None:
    fast = told["fast"]
    assert fast["samples"] >= 16, "two more came in each of four batches of two epochs"
    assert fast["steps"] == fast["phases"]["fit"]["steps"] == 8
    assert list(fast["phases"]) == ["fit", "fit/evaluate"]
    assert fast["phases"]["fit/evaluate"]["steps"] == 0
    assert fast["marks"] == [["epoch", 0], ["epoch", 1]]


def test_the_history_is_the_user_s_own(told: Any) -> None:
    assert told["fast"]["history"] == ["loss", "val_loss"]


def test_only_a_slow_loader_makes_it_wait(told: Any) -> None:
    fast, slow = told["fast"], told["slow"]
    assert slow["waited"] > 2.5 * SLEEP, "of six, less what the device was still busy"
    assert fast["waited"] / fast["steps"] < slow["waited"] / slow["steps"]


def test_another_fit_counts_from_the_start(told: Any) -> None:
    assert told["slow"]["steps"] == 6


def test_evaluating_and_predicting_alone_are_monitored(told: Any) -> None:
    assert list(told["alone"]["phases"]) == ["evaluate"]
    assert told["alone"]["waited"] > 2 * SLEEP
    assert list(told["predicted"]["phases"]) == ["predict"]


def test_an_error_passes_and_the_next_fit_stops_what_it_left(told: Any) -> None:
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
