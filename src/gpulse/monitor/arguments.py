"""The arguments of a Monitor: checked when it is made, so that a mistake is reported before the training starts."""

from __future__ import annotations

from ..errors import UsageError

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


def checked_keys(metrics: Sequence[str]) -> list[str]:
    """Return metrics by key; raise UnknownMetric for a name that the catalog does not have."""
    from ..model.select import metric_named

    return [metric_named(name).key for name in metrics]


def listed(gpus: str | Sequence[str | int]) -> list[str]:
    """Return the names of GPUs as a list; raise UsageError when it is empty."""
    words = gpus.split(",") if isinstance(gpus, str) else [str(gpu) for gpu in gpus]
    if not words:
        raise UsageError("gpus is empty;", 'write it as gpus=[0, 2], "visible" or "all".')
    return words
