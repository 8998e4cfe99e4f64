"""The quiet monitor: samples for measurements in a process that has no sampling Monitor of its own."""

from __future__ import annotations

import os
import threading

from ..sources.registry import changed
from ..torch import is_data_worker
from . import monitor as monitors

TYPE_CHECKING = False
if TYPE_CHECKING:
    from .monitor import Monitor

_lock = threading.Lock()
_started: list[Monitor] = []  # the one started here


def sampling_monitor() -> Monitor | None:
    """Return the newest monitor that samples in this process; start a quiet one if there is none.

    Every process has its own, whatever its rank and wherever it was forked. None in the workers of a data loader: they use no
    GPU, and there are many of them.
    """
    found = _newest()
    if found is None and not is_data_worker():
        with _lock:
            found = _newest()
            # one that could not be started, for example because there is no process left, is not tried again
            if found is None and not any(quiet.ledger is not None for quiet in _started):
                quiet = monitors.Monitor(ranks="all", alerts=False)
                quiet._quiet = True
                _started[:] = [quiet.start()]
                found = _newest()
    return found


def _newest() -> Monitor | None:
    return next((monitor for monitor in reversed(monitors.running) if monitor.samples), None)


def _stop() -> None:
    """Stop the quiet monitor: it samples a source that is no longer the default."""
    while _started:
        _started.pop().stop()


def _after_fork() -> None:
    """In a forked child: the lock may be held by a thread that does not exist here, and the monitor is the parent's."""
    global _lock
    _lock = threading.Lock()
    _started.clear()


changed.append(_stop)
os.register_at_fork(after_in_child=_after_fork)
