"""Programs that train with the callbacks, and tell what their monitors saw."""

from __future__ import annotations

# The Accelerate tracker in real loops.
ACCELERATE = """
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

# The Keras callback in real trainings, on the torch backend, which calls the ends of batches from other threads.
KERAS = """
import time, warnings
warnings.simplefilter("ignore")
import keras, numpy
from gpulse.callbacks.keras import GpulseCallback
from tests.e2e.trainings import SLEEP, Failing, Watch, agents, tell, told

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

failing = Failing(GpulseCallback(interval=0.1))
failing.train(lambda: model().fit(Data(4), verbose=0, callbacks=[failing.callback, Steps(failing.boom)]))
lost = failing.callback.monitor
model().fit(Data(3), verbose=0, callbacks=[failing.callback])
failed = failing.told() | {"lost_runs": lost.samples}
tell(fast=fast, slow=slow, alone=alone, predicted=predicted, failed=failed)
"""

# The Lightning callback in real trainings.
LIGHTNING = """
import threading, time, warnings
warnings.simplefilter("ignore")
import logging
logging.disable(logging.WARNING)
import torch
import lightning.pytorch as pl
from lightning.pytorch.loggers import CSVLogger
from lightning.pytorch.loggers.logger import Logger, DummyExperiment
from gpulse.callbacks.lightning import GpulseCallback
from tests.e2e.trainings import SLEEP, Failing, Watch, agents, tell, told

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

failing = Failing(GpulseCallback(interval=0.1))
failing.train(lambda: trainer(failing.callback).fit(Model(failing.boom), loader(4)))
failed, copied = failing.told(), failing.copies[1]
trainer(copied, max_epochs=1).fit(Model(), loader(3))
tell(fast=fast, slow=slow, test=test, failed=failed, copy=told(copied.monitor))
"""

# The Transformers callback in real trainings of a model of some hundred weights.
TRANSFORMERS = """
import glob, time, warnings
warnings.simplefilter("ignore")
import torch
from transformers import BertConfig, BertForSequenceClassification, Trainer, TrainingArguments
from gpulse.callbacks.transformers import GpulseCallback
from tests.e2e.trainings import SLEEP, Failing, Watch, agents, tell, told

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

failing = Failing(GpulseCallback(interval=0.1))
failing.train(lambda: trainer(failing.callback, Data(4), failing.boom).train())
lost = failing.callback.monitor
trainer(failing.callback, Data(3)).train()
failed = failing.told() | {"lost_runs": lost.samples}
again = GpulseCallback(interval=0.1)
failing.train(lambda: trainer(again, Data(4), failing.boom).train())
again.monitor.stop()
tell(fast=fast, slow=slow, failed=failed, stopped=told(again.monitor))
"""

# Callbacks configured from YAML: by LightningCLI from signatures alone, for the other frameworks as keyword arguments.
YAML = """
import contextlib, inspect, io, os, warnings
warnings.simplefilter("ignore")
import logging
logging.disable(logging.WARNING)
import keras, numpy, torch, transformers, typing, yaml
import lightning.pytorch as pl
from lightning.pytorch.cli import LightningCLI
from gpulse import Monitor
from gpulse.callbacks import accelerate as of_accelerate, keras as of_keras, lightning as of_lightning, transformers as of_transformers
from tests.e2e.trainings import agents, tell, told

GOOD = '''
sinks: ["csv:{name}.csv", {more}]
interval: 0.2
metrics: [utilization, power_draw]
gpus: [0, 2]
mode: thread
ranks: all
report: false
alerts: false
source: demo
'''
LIGHTNING = '''
trainer: {{accelerator: cpu, max_epochs: 1, logger: false, enable_checkpointing: false, enable_progress_bar: false,
    enable_model_summary: false, callbacks: [{{class_path: gpulse.callbacks.lightning.GpulseCallback, init_args: {0}}}]}}
'''
BAD = [("interval: 0.2", "intervall: 0.2"), ("interval: 0.2", "interval: fast"), ("interval: 0.2", "interval: 0"),
    ("mode: thread", "mode: threads"), ("csv:", "cvs:"), ("source: demo", "source: dmeo"), ("utilization", "utilisation"),
    ("alerts: false", "alerts: 3"), ("[0, 2]", "[]"), ("[utilization, power_draw]", "utilization")]

class Model(pl.LightningModule):
    def __init__(self):
        super().__init__()
        self.layer = torch.nn.Linear(4, 1)
    def training_step(self, batch, at): return self.layer(batch).sum()
    def train_dataloader(self): return torch.utils.data.DataLoader(torch.ones(8, 4))
    def configure_optimizers(self): return torch.optim.SGD(self.parameters(), 0.1)

def refusal(make):
    said = io.StringIO()
    with contextlib.redirect_stderr(said), contextlib.redirect_stdout(io.StringIO()):
        try:
            make()
        except SystemExit:
            return [line.strip() for line in said.getvalue().splitlines() if "not accepted" in line or "Expected a" in line][0]
        except Exception as error:
            return f"{type(error).__name__}: {error}"
    return ""

def columns(name):
    header = open(name).readline().strip().split(",")
    return sorted({tag for tag in header if tag.startswith("gpu")}, key=header.index)

def cli(text):
    options = " ".join(yaml.dump(yaml.safe_load(text), default_flow_style=True, width=10**6).split())
    with open("lightning.yaml", "w") as file: file.write(LIGHTNING.format(options))
    return LightningCLI(Model, args=["fit", "-c", "lightning.yaml"], save_config_callback=None)

jsonl = "{class_path: gpulse.sinks.JsonlSink, init_args: {path: lightning.jsonl}}"
done = cli(GOOD.format(name="lightning", more=jsonl))
lightning = told(next(each for each in done.trainer.callbacks if isinstance(each, of_lightning.GpulseCallback)).monitor)
lightning |= {"columns": columns("lightning.csv"), "jsonl": len(open("lightning.jsonl").readlines()),
    "refused": [refusal(lambda: cli(GOOD.format(name="bad", more=jsonl).replace(*bad))) for bad in BAD]}

class Data(torch.utils.data.Dataset):
    def __len__(self): return 3
    def __getitem__(self, at): return {"input_ids": torch.ones(4, dtype=torch.long), "labels": torch.tensor(0)}

def refusals(make): return [refusal(lambda: make(**yaml.safe_load(GOOD.format(name="bad", more="").replace(*bad)))) for bad in BAD]

callback = of_transformers.GpulseCallback(**yaml.safe_load(GOOD.format(name="transformers", more="")))
model = transformers.BertForSequenceClassification(transformers.BertConfig(vocab_size=8, hidden_size=8, num_hidden_layers=1,
    num_attention_heads=1, intermediate_size=8, max_position_embeddings=8))
arguments = transformers.TrainingArguments("out", per_device_train_batch_size=1, num_train_epochs=1, use_cpu=True, save_strategy="no",
    disable_tqdm=True, report_to="none")
transformers.Trainer(model, arguments, train_dataset=Data(), callbacks=[callback]).train()
hf = told(callback.monitor) | {"columns": columns("transformers.csv"), "refused": refusals(of_transformers.GpulseCallback)}

callback = of_keras.GpulseCallback(**yaml.safe_load(GOOD.format(name="keras", more="")))
model = keras.Sequential([keras.Input((4,)), keras.layers.Dense(1)])
model.compile("sgd", "mse")
model.fit(numpy.ones((3, 4)), numpy.ones((3, 1)), batch_size=1, verbose=0, callbacks=[callback])
of = told(callback.monitor) | {"columns": columns("keras.csv"), "refused": refusals(of_keras.GpulseCallback)}

def arguments(made): return {name: each.default for name, each in inspect.signature(made).parameters.items()}
makers = [of_lightning.GpulseCallback, of_transformers.GpulseCallback, of_keras.GpulseCallback, of_accelerate.GpulseTracker]
wanted = {name: default for name, default in arguments(Monitor).items() if name != "stderr"}
own = [sorted(name for name, default in arguments(made).items() if wanted.get(name, made) != default) for made in makers]
missing = [sorted(wanted.keys() - arguments(made).keys()) for made in makers]
hints = [sorted(typing.get_type_hints(made.__init__).keys() ^ arguments(made).keys()) for made in makers]
tell(lightning=lightning, transformers=hf, keras=of, signatures={"own": own, "missing": missing, "hints": hints},
    files=[name for name in os.listdir() if name.startswith("bad")])
"""
