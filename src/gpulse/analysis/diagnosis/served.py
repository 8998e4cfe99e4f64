"""What the model server on a GPU said over a stretch of time, for the rules about servers."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from ...model.catalog import Server
    from .load import Load

_LEAST = 0.5  # of the time for which the server must have answered


class ServedTime:
    """The answers of a server in the samples of a load, each with the seconds that it stands for."""

    def __init__(self, answers: Sequence[tuple[Server, float]]) -> None:
        self._answers = answers
        self.last = answers[-1][0]
        self._seconds = sum(weight for _, weight in answers)

    def mean(self, key: str) -> float | None:
        """Return the mean of a metric over the time in which it is known."""
        known = [(value, weight) for one, weight in self._answers if isinstance(value := one.get(key), (int, float))]
        seconds = sum(weight for _, weight in known)
        return sum(value * weight for value, weight in known) / seconds if seconds > 0 else None

    def share(self, key: str, least: float) -> float:
        """Return the part of the time in which a metric was at least this."""
        there = sum(
            weight
            for one, weight in self._answers
            if isinstance(value := one.get(key), (int, float)) and value >= least
        )
        return there / self._seconds if self._seconds > 0 else 0.0


def served(load: Load) -> ServedTime | None:
    """Return what the server on the GPU of a load said; None without one that answered for most of the time."""
    gpu = load.gpu
    answers = [
        (server, gpu.weights[at])
        for at in range(load.first, load.end)
        if (server := gpu.rows[at].server) is not None and (server.running is not None or server.waiting is not None)
    ]
    whole = sum(gpu.weights[load.first : load.end])
    return ServedTime(answers) if answers and sum(weight for _, weight in answers) >= _LEAST * whole else None
