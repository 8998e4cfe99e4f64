"""Destinations of samples: files, TensorBoard, Weights & Biases, MLflow, or any function. Names are loaded at their first use."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from .base import Alert as Alert
    from .base import Mark as Mark
    from .base import Sample as Sample
    from .base import Sink as Sink
    from .callable import CallableSink as CallableSink
    from .csv import CsvSink as CsvSink
    from .history import HistorySink as HistorySink
    from .jsonl import JsonlSink as JsonlSink
    from .mlflow import MlflowSink as MlflowSink
    from .tensorboard import TensorBoardSink as TensorBoardSink
    from .wandb import WandbSink as WandbSink

_HOMES = {
    "TensorBoardSink": "tensorboard",
    "WandbSink": "wandb",
    "MlflowSink": "mlflow",
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
