"""The monitor that samples for measurements where no other Monitor does."""

from __future__ import annotations

import os
import threading

from ..sources.registry import changed
from ..torch import is_data_worker
from . import monitor as monitors

TYPE_CHECKING = False
if TYPE_CHECKING:
    from .monitor import Monitor


class QuietMonitor:
    """Finds the monitor to measure with, and owns the quiet one that it starts if there is none."""

    def __init__(self) -> None:
        self._lock = threading.RLock()
        self._started: Monitor | None = None

    def sampling(self) -> Monitor | None:
        """Return the newest monitor that samples in this process; start a quiet one if there is none.

        Every process has its own, whatever its rank and wherever it was forked. None in the workers of a data loader: they use no
        GPU, and there are many of them.
        """
        found = _newest()
        if found is None and not is_data_worker():
            with self._lock:
                found = _newest()
                # one that could not be started, for example because there is no process left, is not tried again
                if found is None and (self._started is None or self._started.ledger is None):
                    self._started = monitors.Monitor(ranks="all", alerts=False)
                    self._started._quiet = True
                    self._started.start()
                    found = _newest()
        return found

    def stop(self) -> None:
        """Stop the quiet monitor: it samples a source that is no longer the default."""
        quiet, self._started = self._started, None
        if quiet is not None:
            quiet.stop()

    def start_over(self) -> None:
        """In a forked child: the lock may be held by a thread that does not exist here, and the monitor is the parent's."""
        self._lock = threading.RLock()
        self._started = None


def _newest() -> Monitor | None:
    return next((monitor for monitor in reversed(monitors.running) if monitor.samples), None)


QUIET_MONITOR = QuietMonitor()
changed.append(QUIET_MONITOR.stop)
os.register_at_fork(after_in_child=QUIET_MONITOR.start_over)
