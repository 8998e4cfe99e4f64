"""Convert samples to points of a curve, with increasing steps."""

from __future__ import annotations

from ..errors import UsageError
from ..value import Value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Literal, TypeAlias

    from .base import Sample

    Axis: TypeAlias = Literal["seconds", "train"]


class Means:
    """The mean of every tag over several samples; a sample without a tag does not count for it."""

    def __init__(self) -> None:
        self._sums: dict[str, tuple[float, int]] = {}

    def add(self, values: Mapping[str, float]) -> None:
        """Add the values of one sample."""
        for tag, value in values.items():
            total, count = self._sums.get(tag, (0, 0))
            self._sums[tag] = (total + value, count + 1)

    def values(self) -> dict[str, float]:
        """Return the means so far."""
        return {tag: total / count for tag, (total, count) in self._sums.items()}


class Point(Value):
    """The values at one step, with the time of the sample, or of the last one if several are averaged, in seconds since 1970."""

    step: int
    time: float
    values: dict[str, float]


class Points:
    """Converts samples to points with increasing steps.

    With "seconds", every sample is a point at once. Its step is the whole seconds elapsed, or one more than the previous step if
    samples come more often, so that none replaces another. With "train", the step is the program's: samples of one step are
    averaged to one point, and samples before the first counted step are omitted, because they belong to no step.
    """

    def __init__(self, axis: Axis) -> None:
        if axis not in ("seconds", "train"):
            raise UsageError(f"unknown step={axis!r};", 'choose "seconds" or "train".')
        self._by_second = axis == "seconds"
        self._base = 0
        self._step = -1
        self._time = 0.0
        self._means: Means | None = None

    def add(self, sample: Sample) -> Point | None:
        """Add a sample; return the point that is complete now, if any."""
        if self._by_second:
            self._step = max(self._base + int(sample.elapsed), self._step + 1)
            return Point(self._step, sample.time, dict(sample.values))
        return self._gather(sample)

    def _gather(self, sample: Sample) -> Point | None:
        step = sample.step
        if step is None or (self._means is None and step <= self._step):
            return None  # belongs to no step, or to one already returned
        means = Means() if self._means is None or step > self._step else self._means
        means.add(sample.values)
        done = None if means is self._means else self.finish()
        self._means, self._step, self._time = means, max(step, self._step), sample.time
        return done

    def resume(self) -> None:
        """Start with another monitor: its seconds continue from the previous ones; steps are the program's."""
        self._means = None
        if self._by_second:
            self._base = self._step + 1
        else:
            self._step = -1

    def finish(self) -> Point | None:
        """Return the point that is being collected, or None."""
        means, self._means = self._means, None
        return None if means is None else Point(self._step, self._time, means.values())


def under(prefix: str, tag: str) -> str:
    """Return the name of a tag with a prefix, which may be empty."""
    return f"{prefix}/{tag}" if prefix else tag
