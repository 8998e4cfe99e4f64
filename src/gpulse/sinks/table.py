"""All sinks in one table: where each is, and how texts such as `csv:gpu.csv` name it."""

from __future__ import annotations

# name: the module and class, and what follows the colon (in brackets where it may be left out, empty where nothing may follow)
BUILT_IN = {
    "csv": ("files", "CsvSink", "FILE"),
    "jsonl": ("files", "JsonlSink", "FILE"),
    "tensorboard": ("tensorboard", "TensorBoardSink", "[FOLDER]"),
    "wandb": ("trackers", "WandbSink", ""),
    "mlflow": ("trackers", "MlflowSink", "[RUN]"),
    "comet": ("trackers", "CometSink", ""),
    "clearml": ("trackers", "ClearmlSink", ""),
    "swanlab": ("trackers", "SwanlabSink", ""),
    "trackio": ("trackers", "TrackioSink", ""),
    "history": ("files", "HistorySink", "[FILE]"),
}
# what `gpulse.sinks` has, by name, with the module; an AimSink needs a run and so cannot be named in a text
HOMES = {kind: module for module, kind, _ in BUILT_IN.values()} | {
    "AimSink": "trackers",
    **dict.fromkeys(("CallableSink", "Sink", "Sample", "Mark", "Alert"), "base"),
}
