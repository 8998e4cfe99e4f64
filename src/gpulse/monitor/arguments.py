"""The arguments of a Monitor: checked when it is made, so that a mistake is reported before the training starts."""

from __future__ import annotations

import os

from ..errors import UsageError
from ..sinks.base import BorrowedSink, CallableSink, Sink, sink_named
from ..sources.registry import is_built_in, is_local, make_source

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence
    from typing import TypeAlias

    # what may stand for a sink: itself, a function, a path, or a name
    Given: TypeAlias = "Sink | str | os.PathLike[str] | Callable[[dict[str, float], int | None, float], object]"


_ENDINGS = {".csv": "csv", ".jsonl": "jsonl", ".ndjson": "jsonl"}
_LONGEST_RUN = 100
_METHODS = ("open", "write", "flush", "close")


def sinks_of(given: Given | Iterable[Given]) -> list[Sink]:
    """Return sinks as a list, from sinks, functions, paths, and names as in `csv:gpu.csv`; raise TypeError for anything else."""
    alone = isinstance(given, (Sink, str, os.PathLike)) or callable(given) or not hasattr(given, "__iter__")
    return [_sink(one) for one in ([given] if alone else [*given])]  # type: ignore[misc, arg-type]


def _sink(given: Given) -> Sink:
    if isinstance(given, Sink):
        return given
    if isinstance(given, str):
        return _of_text(given)
    if isinstance(given, os.PathLike):
        return _of_path(os.fspath(given))
    if isinstance(given, type):
        raise TypeError(f"{given.__name__} is a class; pass an instance: {given.__name__}(...).")
    if all(callable(getattr(given, name, None)) for name in _METHODS):
        return BorrowedSink(str(getattr(given, "name", type(given).__name__)), lambda: given)
    if callable(given):
        return CallableSink(given)
    raise TypeError(
        f'{given!r} is not a sink; pass one of gpulse.sinks, a function f(values, step, time), a path, or a name: "csv:gpu.csv".'
    )


def _of_text(text: str) -> Sink:
    """Return the sink of a name, or of a path: a text with a separator or a known ending.

    What exists on disk does not matter: W&B, MLflow and others create a folder of their own name in every project.
    """
    name, colon, _ = text.partition(":")
    ending = "" if colon else os.path.splitext(text)[1].lower()
    return _of_path(text) if os.sep in name or ending in _ENDINGS else sink_named(text)


def _of_path(path: str) -> Sink:
    """Return the sink for a file, by its ending; a path without one is a folder for TensorBoard."""
    ending = os.path.splitext(path)[1].lower()
    if ending[1:].isalpha() and ending not in _ENDINGS and not os.path.isdir(path):
        raise UsageError(
            f"the ending of {path!r} does not name a sink;", "choose .csv, .jsonl, or a folder for TensorBoard."
        )
    return sink_named(f"{_ENDINGS.get(ending, 'tensorboard')}:{path}")


def folder_beside(sinks: Iterable[Sink]) -> str:
    """Return where other files of a run go: beside the first that its sinks write, else the current folder."""
    for sink in sinks:
        if isinstance(path := getattr(sink, "path", None), str):
            return os.path.dirname(os.path.abspath(path))
        if isinstance(folder := getattr(sink, "directory", None), str):  # that of TensorBoard's run
            return os.path.abspath(folder)
    return os.getcwd()


def check_values(interval: object, mode: object, ranks: object, source: object, **switches: object) -> None:
    """Raise UsageError with one sentence for a value that a Monitor cannot use; `switches` must be True or False."""
    _check_source(source)
    if isinstance(interval, bool) or not isinstance(interval, (int, float)) or not 0.1 <= interval <= 3600:
        raise UsageError(f"interval={interval!r} is not a number of seconds from 0.1 to 3600;", "try interval=1.")
    for name, value, choices in (("mode", mode, ("process", "thread")), ("ranks", ranks, ("one", "all"))):
        if value not in choices:
            raise UsageError(f"unknown {name}={value!r};", f'choose "{choices[0]}" or "{choices[1]}".')
    for name, value in switches.items():
        if not isinstance(value, bool):
            raise UsageError(f"{name}={value!r} is neither True nor False;", f"write {name}=True or {name}=False.")


def check_run(run: object, initial_step: object, shared: object) -> None:
    """Raise UsageError for an id, a first step or a folder that a run cannot have."""
    if shared is not None and not isinstance(shared, (str, os.PathLike)):
        raise UsageError(f"shared={shared!r} is not a folder;", 'write it as shared="/shared/run".')
    if run is not None and (not isinstance(run, str) or not 0 < len(run) <= _LONGEST_RUN or not run.isprintable()):
        raise UsageError(f"run={run!r} is not an id;", f"use up to {_LONGEST_RUN} printable characters.")
    if isinstance(initial_step, bool) or not isinstance(initial_step, int) or initial_step < 0:
        raise UsageError(f"initial_step={initial_step!r} is not a number of steps;", "try initial_step=0.")


def _check_source(name: object) -> None:
    """Raise UsageError for a source that does not exist; whether it can be read is only known once it is opened."""
    if name is None or (isinstance(name, str) and (is_built_in(name) or is_local(name))):
        return
    if not isinstance(name, str):
        raise UsageError(f"source={name!r} is not a name;", 'write it as source="auto" or source="demo".')
    from ..plugins import SOURCES, plugins

    if not any(plugin.name == name.partition(":")[0] for plugin in plugins(SOURCES)):
        make_source(name)  # raises, and names what there is


def checked_keys(metrics: Sequence[str]) -> list[str]:
    """Return metrics by key; raise UsageError for anything but a list of names that the catalog has."""
    from ..model.select import metric_named

    if isinstance(metrics, str) or not hasattr(metrics, "__iter__"):
        raise UsageError(f"metrics={metrics!r} is not a list;", 'write it as metrics=["utilization", "power_draw"].')

    return [metric_named(name).key for name in metrics]


def listed(gpus: str | int | Sequence[str | int]) -> list[str]:
    """Return the names of GPUs as a list; raise UsageError when it is empty."""
    words = gpus.split(",") if isinstance(gpus, str) else [*gpus] if hasattr(gpus, "__iter__") else [gpus]
    if not words or not all(isinstance(word, (str, int)) and not isinstance(word, bool) for word in words):
        raise UsageError(f"gpus={gpus!r} names no GPUs;", 'write it as gpus=[0, 2], "visible" or "all".')
    return [str(word) for word in words]
