"""Sink workers: each sink has its own queue and thread, so that one that fails or hangs loses only its own samples."""

from __future__ import annotations

import time

from ..queue_worker import QueueWorker
from ..sources.registry import make_source

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from ..analysis.summary import Summary
    from ..sinks.base import Sample, Sink

_WAITING = 600  # samples that a slow sink may be behind: ten minutes at one per second
_FLUSH = 10.0  # seconds between flushes


def opened(sinks: Iterable[Sink], say: Callable[[str], None], source: str) -> list[Outlet]:
    """Open sinks and return the workers of those that could be opened; `say` is called with what is wrong with the others.

    `source` names where the samples come from.
    """
    outlets = []
    for sink in sinks:
        try:
            if getattr(sink, "real_only", False) and not make_source(source).machine.real:
                say(f"data of {source} is not written to this machine's history; name another file: {sink.name}:FILE.")
                continue
            sink.open()
        except Exception as error:  # noqa: BLE001  # a missing logger must not prevent the training from starting
            say(f"{sink.name}: {str(error) or type(error).__name__} (this program continues without this sink).")
            continue
        outlets.append(Outlet(sink, say))
        outlets[-1].start()
    return outlets


def close_all(outlets: Iterable[Outlet], deadline: float, say: Callable[[str], None], summary: Summary) -> None:
    """Hand sinks the lines of code, close them and wait for them until a monotonic time; `say` is called with those that are late."""
    from ..present.code import code_markdown

    waiting, text = [*outlets], code_markdown(summary.code, summary.seconds)
    for outlet in waiting:
        outlet.summary = text
        outlet.close()
    late = [outlet.sink.name for outlet in waiting if not outlet.join(deadline - time.monotonic())]
    if late:
        say(f"{', '.join(late)} did not finish in time; its last samples may be missing.")


class Outlet(QueueWorker):
    """The worker of one sink. `dropped` counts samples it was too slow for, `failed` those that raised; `say` reports the first."""

    def __init__(self, sink: Sink, say: Callable[[str], None]) -> None:
        super().__init__(sink.name, _WAITING, say)
        self.sink = sink
        self.summary = ""  # what the sink is handed before it is closed
        self._flushed = time.monotonic()

    @property
    def continued(self) -> str:
        """The name of a sink that continues this one in another process; a sink of another package need not have one."""
        return self.sink.continued() if hasattr(self.sink, "continued") else ""

    def handle(self, sample: Sample) -> None:
        self.sink.write(sample)
        if time.monotonic() - self._flushed > _FLUSH:
            self._flushed = time.monotonic()
            self.sink.flush()

    def finish(self) -> None:
        if self.summary and hasattr(self.sink, "summarize"):
            self._try(self.sink.summarize, self.summary)
        self.sink.close()

    def complaint(self, error: Exception) -> str:
        return (
            f"{self.sink.name}: {str(error) or type(error).__name__} (reported once; other samples are still written)."
        )
