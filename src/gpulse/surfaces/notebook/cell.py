"""The measurement of a notebook cell: its samples as a small chart, and what limited it."""

from __future__ import annotations

from ...analysis.diagnosis.judge import judge
from ...analysis.diagnosis.window import WindowBuilder
from ...monitor.measurement import CallTally
from ...present.verdicts import QUIET, advice, line
from .chart import CellChartLine, cell_chart

TYPE_CHECKING = False
if TYPE_CHECKING:
    from ...model.catalog import Process
    from ...model.snapshot import Snapshot
    from ...monitor.measurement import Measurement

_KEYS = ("utilization", "sm_active", "memory_used")
_MOST = 2000  # samples; for longer cells every second one is dropped, repeatedly
_FEWEST = 3  # samples below which no chart is drawn
_JUDGED = 5.0  # seconds a cell must last to be judged


class CellTally(CallTally):
    """The tally of a cell, which also keeps its samples."""

    def __init__(self) -> None:
        super().__init__()
        self.taken: list[tuple[float, dict[str, tuple[float | None, ...]]]] = []
        self.labels: dict[str, tuple[int | None, float | None]] = {}  # number and memory by UUID
        self._window = WindowBuilder()
        self._stride = 1
        self._seen = 0

    def add(self, snapshot: Snapshot, program: Process | None, seconds: float, within: bool = True) -> None:
        super().add(snapshot, program, seconds, within)
        if within:
            self._window.add(snapshot)
        self._seen += 1
        if not within or self._seen % self._stride:
            return
        values = {gpu.uuid or "": tuple(gpu.get(key) for key in _KEYS) for gpu in snapshot.gpus}
        self.taken.append((snapshot.time, values))  # type: ignore[arg-type]
        for gpu in snapshot.gpus:
            self.labels[gpu.uuid or ""] = (None if gpu.index is None else int(gpu.index), gpu.memory_total)
        if len(self.taken) > _MOST:
            self.taken = self.taken[::2]
            self._stride *= 2

    def verdicts(self) -> list[str]:
        """Return a sentence for each GPU that was used, with the first advice."""
        found = [one for one in judge(self._window).verdicts if one.key not in QUIET]
        own = [one for one in found if one.uuid in self.used] or found
        return [" ".join([line(one), *advice(one)[:1]]) for one in own]

    def chart(self) -> str | None:
        """Return utilization and memory of the GPUs that were used as an SVG; None for a cell too short to draw."""
        if len(self.taken) < _FEWEST:
            return None
        shown = [uuid for uuid in self.labels if uuid in self.used] or list(self.labels)
        start = self.taken[0][0]
        times = [time - start for time, _ in self.taken]

        def line(uuid: str, at: int) -> CellChartLine:
            values = [sample.get(uuid, (None,) * len(_KEYS))[at] for _, sample in self.taken]
            return CellChartLine(f"GPU {self.labels[uuid][0]}", self.labels[uuid][0] or 0, values)

        busy = [line(uuid, 0) for uuid in shown]
        work = [line(uuid, 1) for uuid in shown]
        memory = [line(uuid, 2) for uuid in shown]
        total = max((self.labels[uuid][1] or 0.0 for uuid in shown), default=0.0)
        return cell_chart(times, busy, work, memory, total or None)


def cell_text(measurement: Measurement) -> str:
    """Return what a cell took in one line of text."""
    return " · ".join([measurement.name, *(f"{title.lower()} {text}" for title, text in measurement.facts())])


def cell_verdict(measurement: Measurement) -> list[str]:
    """Return what limited a cell and what to do about it, one sentence each; nothing for a short cell."""
    tally = measurement.tally
    return tally.verdicts() if isinstance(tally, CellTally) and measurement.elapsed >= _JUDGED else []
