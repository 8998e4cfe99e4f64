"""Keeps the run of a Monitor for `gpulse runs`, at no cost to a program that only tries something out."""

from __future__ import annotations

import os
import sys
import time

from .messages import PART_OF

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from typing import Any

    from ..analysis.summary import Summary
    from ..sinks.base import Sink
    from .ledger import Ledger
    from .run_record import RunRecord
    from .traces import StepTraces

_TRIAL = 5.0  # seconds below which a run is a trial that nobody wants listed


class RunKeeper:
    """Writes the record of a run once it has lasted long enough, if it is to be `kept`, and the traces that are asked for.

    `failure` is the exception that ended it.
    """

    def __init__(
        self, run: str, ledger: Ledger, sinks: Sequence[Sink], kept: bool, show: Callable[[str], None]
    ) -> None:
        self._run = run
        self._show = show
        self._ledger = ledger
        self._sinks = sinks
        self._kept = kept
        self._part = os.environ.get(PART_OF) == run
        self._record: RunRecord | None = None
        self._traces: StepTraces | None = None
        self._traced: list[str] = []
        self.failure = ""
        self.signaled = False  # whether a signal has asked for a trace

    def tick(self) -> None:
        """Write how the run is getting on, if it is time; called about once per second, in the listener's thread."""
        self._poll()
        if self._kept and time.monotonic() - self._ledger.started >= _TRIAL:
            self._begun().tick(self._ledger)

    def end(self, summary: Summary, seconds: float) -> str:
        """Write how it ended; return how it compares with the last run of the same command, empty if that takes too long."""
        if not self._kept or (summary.seconds < _TRIAL and not self._part):
            return ""
        recording = next((os.path.abspath(sink.path) for sink in self._sinks if sink.name == "jsonl"), None)  # type: ignore[attr-defined]
        told = {"failure": self.failure, "recording": recording, "traces": self._traced}
        return self._begun().end_in_time(max(0.5, seconds), summary, **told)

    def _poll(self) -> None:
        from .traces import show_stacks

        if self._traces is None:
            from .presence import private_folder
            from .traces import StepTraces

            try:
                folder = private_folder(os.environ)
            except OSError:
                return
            self._traces = StepTraces(self._run, self._ledger, self._sinks, folder, self._traced.append)
            self._ledger.at_stop = (*self._ledger.at_stop, self._traces.close)
        if self.signaled and self._traces.trace(self._told):
            self.signaled = False
        self._traces.poll()
        show_stacks(os.getpid(), self._traces.folder, self._tree)

    def _told(self, state: str, **more: str) -> None:
        if state == "done":
            self._show(f"gpulse: trace: {more['path']}")
        elif state == "failed":
            self._show(f"gpulse: no trace: {more['reason']}")

    def _tree(self) -> dict[str, Any]:
        from ..analysis.code_lines import flame_of

        code = self._ledger.code
        return flame_of([] if code is None else code.stacks()).to_plain()

    def _begun(self) -> RunRecord:
        from .run_record import RunRecord  # with the words of verdicts, which a short program need not load

        if self._record is None:
            self._record = RunRecord(self._run, sys.orig_argv, os.getpid(), self._ledger.started, part=self._part)
        return self._record
