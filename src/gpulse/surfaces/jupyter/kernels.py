"""Kernels: which notebook or console of this server uses which GPU, in its own process or in child processes."""

from __future__ import annotations

import os
from calendar import timegm

from ...sources.processes import LinuxMachine

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence
    from typing import Any

    from ...model.catalog import Process
    from ...model.snapshot import Snapshot

_DEEPEST = 64  # parents between a process and its kernel
_FOREIGN = (
    "The driver reports the process IDs of the host, and Jupyter runs in a container with its own process IDs, "
    "so memory cannot be matched to notebooks. Start the container with --pid=host."
)


class Kernel:
    """A kernel of this server; `pid` is None if it runs on another machine, `idle_since` is None while it is busy."""

    def __init__(
        self, id: str, session: str | None, name: str, path: str, state: str, idle_since: float | None, pid: int | None
    ) -> None:
        self.id = id
        self.session = session
        self.name = name
        self.path = path
        self.state = state
        self.idle_since = idle_since
        self.pid = pid

    @classmethod
    def of(cls, kernel: Mapping[str, Any], session: Mapping[str, Any] | None, pid: int | None) -> Kernel:
        """Build it from Jupyter's lists of kernels and sessions; the name is that of the notebook."""
        state = str(kernel.get("execution_state") or "unknown")
        idle = _moment(kernel.get("last_activity")) if state == "idle" else None
        path = str((session or {}).get("path") or "")
        name = str((session or {}).get("name") or "") or path.rpartition("/")[2] or str(kernel.get("name") or "kernel")
        return cls(kernel["id"], (session or {}).get("id"), name, path, state, idle, pid)

    def to_plain(self) -> dict[str, Any]:
        """Return it as plain data."""
        return dict(vars(self))


def kernel_table(
    kernels: Sequence[Kernel], snapshot: Snapshot, parent: Callable[[int], int | None] | None = None
) -> dict[str, Any]:
    """Return the kernels with their use of each GPU; `problem` says why nothing could be matched."""
    machine = LinuxMachine(os.environ.get("GPULSE_ROOT", ""))
    owners = {kernel.pid: kernel.id for kernel in kernels if kernel.pid is not None}
    uses: dict[str, dict[str, dict[str, Any]]] = {}
    for uuid, process in _processes(snapshot):
        if (owner := _owner(_pid(process, machine), owners, parent or machine.parent)) is not None:
            _add(uses.setdefault(owner, {}), uuid, process)
    rows = [{**kernel.to_plain(), "gpus": list(uses.get(kernel.id, {}).values())} for kernel in kernels]
    foreign = bool(owners) and not uses and machine.isolated() and any(_processes(snapshot))
    return {"time": round(snapshot.time, 3), "kernels": rows, "problem": _FOREIGN if foreign else None}


def _processes(snapshot: Snapshot) -> Iterator[tuple[str, Process]]:
    for gpu in snapshot.gpus:
        for process in gpu.all_processes():
            yield gpu.uuid or "", process


def _pid(process: Process, machine: LinuxMachine) -> int | None:
    """Return the PID of a process; None if the driver reports the PIDs of another namespace."""
    return None if process.pid is None or machine.foreign([int(process.pid)]) else int(process.pid)


def _owner(pid: int | None, owners: Mapping[int, str], parent: Callable[[int], int | None]) -> str | None:
    """Return the kernel whose process this is, or the nearest ancestor of it."""
    for _ in range(_DEEPEST):
        if pid is None or pid <= 1:
            return None
        if pid in owners:
            return owners[pid]
        pid = parent(pid)
    return None


def _add(uses: dict[str, dict[str, Any]], uuid: str, process: Process) -> None:
    use = uses.setdefault(uuid, {"uuid": uuid, "memory_used": None, "sm_utilization": None, "pids": []})
    if process.pid not in use["pids"]:
        use["pids"].append(process.pid)
    for key in ("memory_used", "sm_utilization"):
        if (value := getattr(process, key)) is not None:
            use[key] = (use[key] or 0.0) + value


def _moment(text: Any) -> float | None:
    """Return a time of Jupyter's API in seconds since 1970."""
    import time

    try:
        return float(timegm(time.strptime(str(text)[:19].replace(" ", "T"), "%Y-%m-%dT%H:%M:%S")))
    except ValueError:
        return None
