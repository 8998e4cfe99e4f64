"""Samples to Weights & Biases, beside what the program logs and without touching its steps."""

from __future__ import annotations

from ..errors import GpulseError
from .base import Sink
from .packages import load
from .points import Means, under

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from .base import Sample


class WandbSink(Sink):
    """Logs to `run`, or to the run that is active when the monitor starts; finishing it stays with the program.

    The curves lie under `prefix` over prefix/elapsed, in seconds. W&B has one row a step, and only what finishes a row moves
    run.step: so the samples go into the row that the program's next log() finishes, as their mean since the row before, and
    what comes after its last one into the row that finish() writes. A program that logs nothing itself wants `commit`: then
    every sample is a row of its own, and moves run.step by one.
    """

    name = "wandb"

    def __init__(self, run: Any = None, prefix: str = "gpulse", *, commit: bool = False) -> None:
        self._given = run
        self._prefix = prefix
        self._commit = commit
        self._run: Any = None
        self._row = -1
        self._means = Means()

    def open(self) -> None:
        run = load("wandb", "wandb").run if self._given is None else self._given
        if run is None:
            raise GpulseError("no W&B run is active.", "Call wandb.init() first, or pass WandbSink(run).")
        run.define_metric(under(self._prefix, "*"), step_metric=under(self._prefix, "elapsed"))
        self._run, self._row = run, -1

    def write(self, sample: Sample) -> None:
        if self._run is None:
            return
        if self._commit:
            self._means = Means()
        elif (row := self._run.step) != self._row:  # asks W&B's own process: 0.4 ms
            self._row, self._means = row, Means()
        self._means.add(sample.values)
        values = {under(self._prefix, tag): value for tag, value in self._means.values().items()}
        values[under(self._prefix, "elapsed")] = sample.elapsed
        self._run.log(values, commit=self._commit)

    def close(self) -> None:
        self._run = None
