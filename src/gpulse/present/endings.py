"""How a program ended, in words."""

from __future__ import annotations

import os
import signal

OOM = {
    "cgroup": "the kernel's OOM killer ended it: its container or job reached its memory limit",
    "machine": "the kernel's OOM killer ended a process at that moment: the machine ran out of memory",
}
_UNKNOWN = "killed or crashed; the kernel does not tell how"


def status_text(status: int) -> str:
    """Return how a wait status says a process ended: exit 3, ended by SIGTERM."""
    if not os.WIFSIGNALED(status):
        return f"exit {os.waitstatus_to_exitcode(status)}"
    number = os.WTERMSIG(status)
    try:
        return f"ended by {signal.Signals(number).name}"
    except ValueError:
        return f"ended by signal {number}"


def death_text(status: int | None, oom: str = "", terminated: bool = False) -> str:
    """Return how a program ended that did not stop its monitor.

    `status` is its wait status, None if unknown; `oom` a key of OOM, if the OOM killer was seen; `terminated` if its agent was sent
    SIGTERM, too, as schedulers do.
    """
    how = _UNKNOWN if status is None else status_text(status)
    if status is not None and not os.WIFSIGNALED(status):
        return f"{how} without stopping the monitor, as os._exit does"
    if oom and (status is None or os.WTERMSIG(status) == signal.SIGKILL):
        return f"{how}; {OOM[oom]}" if status is not None else OOM[oom]
    if terminated and (status is None or os.WTERMSIG(status) == signal.SIGKILL):
        return f"{how}, after SIGTERM was sent to the whole job"
    return how
