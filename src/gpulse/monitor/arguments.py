"""The arguments of a Monitor: checked when it is made, so that a mistake is reported before the training starts."""

from __future__ import annotations

from ..errors import UsageError
from ..sources.registry import is_built_in, is_local, make_source

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from ..sinks.base import Sink


def sinks_of(given: Sink | str | Iterable[Sink | str]) -> list[Sink]:
    """Return sinks as a list; a text is the name of one, as in `csv:gpu.csv`."""
    sinks = [given] if isinstance(given, str) or not hasattr(given, "__iter__") else [*given]
    if not any(isinstance(sink, str) for sink in sinks):
        return sinks  # type: ignore[return-value]
    from ..sinks.named import sink_named

    return [sink_named(sink) if isinstance(sink, str) else sink for sink in sinks]


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
