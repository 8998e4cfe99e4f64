"""Pass samples to a function."""

from __future__ import annotations

from .base import Sink

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from .base import Sample


class CallableSink(Sink):
    """Calls f(values, step, time) for every sample, in the monitor's thread.

    `values` is a new dict by tag, `step` is None before the first step, `time` is in seconds since 1970.
    """

    name = "callable"

    def __init__(self, f: Callable[[dict[str, float], int | None, float], object]) -> None:
        self._f = f

    def write(self, sample: Sample) -> None:
        self._f(dict(sample.values), sample.step, sample.time)
