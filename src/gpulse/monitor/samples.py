"""From looks to samples: values by tag, with what the program said of itself in between, at the pace of the sinks."""

from __future__ import annotations

from math import isfinite

from ..sinks.base import Sample
from .tags import Tags

TYPE_CHECKING = False
if TYPE_CHECKING:
    from .ledger import Ledger
    from .request import AgentSample


class Samples:
    """Makes samples of samples that are at least `apart` seconds from each other; those in between are for summaries only."""

    def __init__(self, ledger: Ledger, apart: float, keys: list[str] | None) -> None:
        self._ledger = ledger
        self._apart = apart
        self._keys = keys
        self._tags = Tags(None, keys)
        self._at = float("-inf")

    def greet(self, uuids: list[str] | None) -> None:
        """Learn the order of the GPUs from an agent."""
        self._tags = Tags(uuids, self._keys)

    def due(self, taken: AgentSample) -> Sample | None:
        """Return the sample of a sample; None when it comes too soon after the one before."""
        if taken.at - self._at < self._apart:
            return None
        ledger = self._ledger
        since = taken.at - max(self._at, ledger.started)
        self._at = taken.at
        marks = ledger.new_marks()
        values = self._tags.values(taken)
        values.update(ledger.rhythm.since(since))
        values.update(
            {
                f"mark/{mark.name}": mark.value
                for mark in marks
                if isinstance(mark.value, (int, float)) and isfinite(mark.value)
            }
        )
        return Sample(
            taken.snapshot.time,
            taken.at - ledger.started,
            values,
            taken.snapshot,
            step=ledger.rhythm.steps or None,
            phase=ledger.phase(),
            marks=marks,
            program=taken.program,
            texts=self._tags.texts,
        )
