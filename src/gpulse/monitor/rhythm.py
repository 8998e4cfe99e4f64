"""The rhythm of a program: its steps, items and waits, as rates between samples."""

from __future__ import annotations


class SampleRhythm:
    """The program's progress since the previous sample: steps, items and time spent waiting for data."""

    def __init__(self) -> None:
        self.steps = 0
        self.items = 0.0
        self.waited = 0.0
        self._at = (0, 0.0, 0.0)

    def since(self, seconds: float) -> dict[str, float]:
        """Return the rates since the last call by tag, without what the program does not count."""
        steps, items, waited = self.steps, self.items, self.waited
        before, self._at = self._at, (steps, items, waited)
        values: dict[str, float] = {}
        if seconds > 0:
            if steps:
                values["train/steps_per_second"] = (steps - before[0]) / seconds
            if items:
                values["train/items_per_second"] = (items - before[1]) / seconds
            if waited:
                values["train/data_wait"] = min(100.0, 100.0 * (waited - before[2]) / seconds)
        return values
