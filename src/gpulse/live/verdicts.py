"""Verdicts: what limits each GPU now, from the last half minute."""

from __future__ import annotations

from ..analysis.summary import Summary
from ..analysis.tally import Tally
from ..analysis.verdict import verdict

TYPE_CHECKING = False
if TYPE_CHECKING:
    from ..model.snapshot import Snapshot

_WINDOW = 30.0  # seconds that are judged together; a new judgement comes as often


class Verdicts:
    """Judges window after window. `found` is the last judgement, one sentence an entry; used by the hub's thread, `found` by any."""

    def __init__(self) -> None:
        self.found: list[dict[str, str]] = []
        self._tally = Tally()
        self._seconds = 0.0
        self._before: float | None = None

    def add(self, snapshot: Snapshot) -> None:
        """Take a sample."""
        before, self._before = self._before, snapshot.time
        passed = 0.0 if before is None else snapshot.time - before
        if not 0 < passed < _WINDOW:  # the first, or the machine slept, or its clock was set
            self._tally, self._seconds = Tally(), 0.0
            return
        self._tally.add(snapshot, None, passed)
        self._seconds += passed
        if self._seconds >= _WINDOW:
            self.found = self._judged()
            self._tally, self._seconds = Tally(), 0.0

    def _judged(self) -> list[dict[str, str]]:
        whole = self._tally.summary("", self._seconds)
        return [
            {"uuid": gpu.uuid or "", "text": text}
            for gpu in whole.gpus
            for text in verdict(
                Summary("", self._seconds, samples=whole.samples, steps=0, items=0.0, waited=0.0,
                        gpus=[gpu], host=whole.host, program={})
            )
        ]  # fmt: skip
