"""Kernels: which notebook or console of this server uses which GPU, in its own process or in child processes."""

from __future__ import annotations

import os
import time
from calendar import timegm

from ...sampling.assemble import Rates, settle_rates
from ...sources.files import read_bytes
from ...sources.processes import LinuxMachine
from ...value import Value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence
    from typing import Any

    from ...model.catalog import Process
    from ...model.snapshot import Snapshot

_DEEPEST = 64  # parents between a process and its kernel
_TREE = frozenset({"tree_memory", "tree_cpu_percent", "children"})
_LAUNCHERS = frozenset({"docker", "podman", "nerdctl", "ssh", "kubectl", "oc", "srun"})
_FOREIGN = (
    "The driver reports the process IDs of the host, and Jupyter runs in a container with its own process IDs, "
    "so memory cannot be matched to notebooks. Start the container with --pid=host."
)
_SIMULATED = "This machine is simulated or recorded: no notebook runs on its GPUs."


class Kernel(Value):
    """A kernel of this server; `idle_since` is None while it is busy.

    `pid` is None, and `elsewhere` says where it runs, if it has no process on this machine. `kind` is that of its session, "notebook"
    or "console".
    """

    id: str
    session: str | None
    name: str
    path: str
    state: str
    idle_since: float | None
    pid: int | None
    kind: str = "notebook"
    elsewhere: str | None = None

    @classmethod
    def from_jupyter(
        cls, kernel: Mapping[str, Any], session: Mapping[str, Any] | None, pid: int | None, elsewhere: str | None = None
    ) -> Kernel:
        """Build it from Jupyter's lists of kernels and sessions; the name is that of the notebook."""
        session = session or {}
        state = str(kernel.get("execution_state") or "unknown")
        idle = _seconds(kernel.get("last_activity")) if state == "idle" else None
        path = str(session.get("path") or "")
        name = str(session.get("name") or "") or path.rpartition("/")[2] or str(kernel.get("name") or "kernel")
        kind = str(session.get("type") or "notebook")
        return cls(kernel["id"], session.get("id"), name, path, state, idle, pid, kind, elsewhere)


class KernelProcesses:
    """Tells which kernel a process on a GPU belongs to, and what the kernels use of the computer; used by one thread at a time."""

    def __init__(self, parent: Callable[[int], int | None] | None = None) -> None:
        self._root = os.environ.get("GPULSE_ROOT", "")
        self._machine = LinuxMachine(self._root)
        self._parent = parent or self._machine.parent
        self._rates = Rates()
        self._pids: dict[str, int | None] = {}
        self._known: dict[int, str | None] = {}  # the kernel of each process that was on a GPU at the last sample
        self._strangers: set[int] = set()  # those of them with a PID of another namespace

    def owners(self, pids: Mapping[str, int | None], snapshot: Snapshot) -> dict[int, str]:
        """Return the kernel of each process on a GPU that belongs to one; `pids` are those of the kernels."""
        if pids != self._pids:
            self._pids, self._known, self._strangers = dict(pids), {}, set()
        there = {int(process.pid) for _, process in processes_by_gpu(snapshot) if process.pid}
        self._known = {pid: self._known[pid] if pid in self._known else self._owner(pid) for pid in there}
        self._strangers &= there
        return {pid: owner for pid, owner in self._known.items() if owner is not None}

    @property
    def blind(self) -> bool:
        """Whether any PID at the last sample was that of another namespace, and so may be any kernel's."""
        return bool(self._strangers)

    def hosts(self, pids: Mapping[str, int | None]) -> dict[str, dict[str, Any]]:
        """Return host memory in bytes, CPU in percent of one core and the number of child processes of each kernel."""
        found = self._machine.processes([pid for pid in pids.values() if pid is not None], _TREE)
        for pid, facts in found.items():
            settle_rates(pid, facts, self._rates)
        names = {"host_memory": "tree_memory", "cpu_percent": "tree_cpu_percent", "children": "children"}
        return {
            id: {name: found[pid].values.get(key) for name, key in names.items()}
            for id, pid in pids.items()
            if pid in found
        }

    def started(self, pid: int | None) -> float:
        """Return when a process was started, in seconds since 1970; infinity if it is not there."""
        facts = self._machine.processes([pid], frozenset()).get(pid) if pid else None
        return float("inf") if facts is None else time.time() - float(str(facts.values["running_time"]))

    def launcher(self, pid: int) -> str | None:
        """Return the program of a kernel's process if that only starts the kernel in a container or on another machine."""
        program = self._command(pid).split(b"\0")[0].rsplit(b"/", 1)[-1].decode("utf-8", "replace")
        return program if program in _LAUNCHERS else None

    def _owner(self, pid: int) -> str | None:
        """Return the kernel whose process this is, or the nearest ancestor of it.

        A kernel in a container is no descendant of the process that started it, but its connection file is on its command line.
        """
        if self._machine.foreign([pid]):
            self._strangers.add(pid)
            return None
        owners = {known: id for id, known in self._pids.items() if known is not None}
        for _ in range(_DEEPEST):
            if pid <= 1:
                return None
            if (owner := owners.get(pid) or self._named(pid)) is not None:
                return owner
            pid = self._parent(pid) or 0
        return None

    def _named(self, pid: int) -> str | None:
        command = self._command(pid)
        return next((id for id in self._pids if len(id) >= 32 and id.encode() in command), None)

    def _command(self, pid: int) -> bytes:
        return read_bytes(f"{self._root}/proc/{pid}/cmdline") or b""


def kernel_table(
    kernels: Sequence[Kernel], snapshot: Snapshot, processes: KernelProcesses | None = None, real: bool = True
) -> dict[str, Any]:
    """Return the kernels with their use of each GPU and of the host; `problem` says why nothing could be matched.

    Not `real` is a machine whose processes are not those of this computer.
    """
    processes = processes or KernelProcesses()
    pids = {kernel.id: kernel.pid for kernel in kernels}
    owners = processes.owners(pids, snapshot) if real else {}
    uses: dict[str, dict[str, dict[str, Any]]] = {}
    for uuid, process in processes_by_gpu(snapshot):
        if process.pid is not None and (owner := owners.get(int(process.pid))) is not None:
            _add(uses.setdefault(owner, {}), uuid, process)
    hosts = processes.hosts(pids)
    rows = [
        {**kernel.to_plain(), "gpus": list(uses.get(kernel.id, {}).values()), **hosts.get(kernel.id, {})}
        for kernel in kernels
    ]
    for row in rows:
        if row["elsewhere"] is None and not row["gpus"] and row["pid"] and (program := processes.launcher(row["pid"])):
            row["elsewhere"] = f"started with {program}; its own processes are not visible here"
    blind = real and any(pids.values()) and not uses and processes.blind
    problem = (_FOREIGN if blind else None) if real else _SIMULATED
    return {"time": round(snapshot.time, 3), "machine": os.uname().nodename, "kernels": rows, "problem": problem}


def processes_by_gpu(snapshot: Snapshot) -> Iterator[tuple[str, Process]]:
    """Yield each process on a GPU or MIG instance, with the UUID of that."""
    for gpu in snapshot.gpus:
        for part in (gpu, *gpu.instances):
            for process in part.processes:
                yield part.uuid or gpu.uuid or "", process


def _add(uses: dict[str, dict[str, Any]], uuid: str, process: Process) -> None:
    use = uses.setdefault(uuid, {"uuid": uuid, "memory_used": None, "sm_utilization": None, "pids": []})
    if process.pid not in use["pids"]:
        use["pids"].append(process.pid)
    for key in ("memory_used", "sm_utilization"):
        if (value := getattr(process, key)) is not None:
            use[key] = (use[key] or 0.0) + value


def _seconds(text: Any) -> float | None:
    """Return a time of Jupyter's API in seconds since 1970."""
    try:
        return float(timegm(time.strptime(str(text)[:19].replace(" ", "T"), "%Y-%m-%dT%H:%M:%S")))
    except ValueError:
        return None
