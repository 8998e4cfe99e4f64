"""Callbacks configured from YAML: by LightningCLI from signatures alone, for the other frameworks as keyword arguments."""

from __future__ import annotations

from typing import Any

import pytest

from tests.e2e.trainings import run

CODE = """
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

SENTENCES = [
    "interval=0 is not a number of seconds from 0.1 to 3600; try interval=1.",
    "unknown sink 'cvs:bad.csv' (did you mean 'csv'?)",
    "unknown source 'dmeo' (did you mean 'demo'?)",
    "unknown metric 'utilisation' (did you mean 'utilization'?)",
    'gpus=[] names no GPUs; write it as gpus=[0, 2], "visible" or "all".',
]


@pytest.fixture(scope="module")
def told(tmp_path_factory: pytest.TempPathFactory) -> Any:
    needs = ("lightning", "jsonargparse", "transformers", "accelerate", "keras", "torch", "yaml")
    return run(CODE, tmp_path_factory.mktemp("yaml"), *needs)


@pytest.mark.parametrize(("framework", "steps"), [("lightning", 8), ("transformers", 3), ("keras", 3)])
def test_yaml_configures_a_training(told: Any, framework: str, steps: int) -> None:
    assert told[framework]["steps"] == steps
    assert {tag.partition("/")[0] for tag in told[framework]["columns"]} == {"gpu0", "gpu2"}
    assert {tag.partition("/")[2] for tag in told[framework]["columns"]} == {"utilization", "power_draw"}
    assert not told[framework]["errors"]


def test_lightning_makes_a_sink_from_its_class_path(told: Any) -> None:
    assert told["lightning"]["jsonl"] >= 1


def test_lightning_refuses_what_the_signature_does_not_have(told: Any) -> None:
    name, kind, *_ = told["lightning"]["refused"]
    assert name == "Option 'intervall' is not accepted"
    assert kind == "Expected a <class 'float'>. Got value: fast"


@pytest.mark.parametrize("framework", ["lightning", "transformers", "keras"])
def test_a_wrong_argument_is_refused_before_the_training(told: Any, framework: str) -> None:
    refused = told[framework]["refused"]
    assert all(refused), "each of them"
    for sentence in SENTENCES:
        assert any(sentence in one.replace("0.0 is", "0 is") for one in refused), "\n".join(refused)


@pytest.mark.parametrize("framework", ["transformers", "keras"])
def test_without_a_parser_names_and_types_are_refused_as_well(told: Any, framework: str) -> None:
    refused = told[framework]["refused"]
    assert "unexpected keyword argument 'intervall'" in refused[0]
    assert refused[1] == "UsageError: interval='fast' is not a number of seconds from 0.1 to 3600; try interval=1."
    assert refused[3] == 'UsageError: unknown mode=\'threads\'; choose "process" or "thread".'
    assert refused[7] == "UsageError: alerts=3 is neither True nor False; write alerts=True or alerts=False."
    assert refused[9].startswith("UsageError: metrics='utilization' is not a list;")


def test_a_refused_callback_has_written_nothing(told: Any) -> None:
    assert told["files"] == []


def test_callbacks_have_the_arguments_and_defaults_of_a_monitor_with_types(told: Any) -> None:
    signatures = told["signatures"]
    assert signatures["missing"] == [[], [], [], []]
    assert signatures["own"] == [["log"], ["log"], [], ["run_name"]]
    assert signatures["hints"] == [["return"]] * 4
