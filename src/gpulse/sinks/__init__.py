"""Destinations of samples: files, TensorBoard, experiment trackers, or any function. Names are loaded at their first use."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from .aim import AimSink as AimSink
    from .base import Alert as Alert
    from .base import Mark as Mark
    from .base import Sample as Sample
    from .base import Sink as Sink
    from .callable import CallableSink as CallableSink
    from .clearml import ClearmlSink as ClearmlSink
    from .comet import CometSink as CometSink
    from .csv import CsvSink as CsvSink
    from .history import HistorySink as HistorySink
    from .jsonl import JsonlSink as JsonlSink
    from .mlflow import MlflowSink as MlflowSink
    from .swanlab import SwanlabSink as SwanlabSink
    from .tensorboard import TensorBoardSink as TensorBoardSink
    from .trackio import TrackioSink as TrackioSink
    from .wandb import WandbSink as WandbSink

_HOMES = {
    "TensorBoardSink": "tensorboard",
    "WandbSink": "wandb",
    "MlflowSink": "mlflow",
    "CometSink": "comet",
    "ClearmlSink": "clearml",
    "SwanlabSink": "swanlab",
    "TrackioSink": "trackio",
    "AimSink": "aim",
    "CsvSink": "csv",
    "JsonlSink": "jsonl",
    "HistorySink": "history",
    "CallableSink": "callable",
    "Sink": "base",
    "Sample": "base",
    "Mark": "base",
    "Alert": "base",
}
__all__ = list(_HOMES)  # a single table of names


if not TYPE_CHECKING:  # else a misspelled name would be an object to type checkers

    def __getattr__(name: str) -> object:
        if name not in _HOMES:
            raise AttributeError(f"module 'gpulse.sinks' has no attribute {name!r}")
        found = getattr(__import__(f"gpulse.sinks.{_HOMES[name]}", fromlist=[name]), name)
        globals()[name] = found
        return found


def __dir__() -> list[str]:
    return sorted({*globals(), *_HOMES})
