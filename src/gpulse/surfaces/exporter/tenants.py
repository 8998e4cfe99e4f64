"""Whose a GPU is: the user and job of its processes, and the Kubernetes pod it was given to, as a limited number of labels."""

from __future__ import annotations

import os
import threading
import time

from ...model.select import Wanted
from ...sources.kubelet import SOCKET, Assignment, PodsUnavailable, pod_resources

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence

    from ...model.catalog import Gpu, Process

    Pairs = list[tuple[str, str | None]]
    Owner = tuple[str | None, str | None, str | None, str | None]

_KUBELET_EVERY = 15.0  # seconds between two questions to the kubelet
_NVIDIA = "gpu.nvidia.com/gpu-"  # a whole GPU in the claims of NVIDIA's driver for dynamic resource allocation, by its minor number
_REMEMBERED = 2 * 3600.0  # how long a database keeps a series that has ended in memory
LIMIT = 1000
LONGEST_LABEL = 120  # names of pods and jobs come from the environment of programs
OTHER: Pairs = [("user", "(other)")]  # the owner of what is beyond the limit


class Tenants:
    """The pods of this node by their GPU or MIG instance, asked again every 15 seconds in a thread; used by one other thread."""

    def __init__(self, socket: str = SOCKET) -> None:
        self.gap = ""  # why the pods are missing
        self._socket = socket
        self._known: Mapping[str, list[Assignment]] = {}
        self._next = 0.0
        self._thread: threading.Thread | None = None

    @property
    def wanted(self) -> Wanted:
        """The metrics by which claims name a GPU; none without a kubelet."""
        return Wanted(("minor_number",)) if os.path.exists(self._socket) else Wanted()

    def refresh(self) -> None:
        """Ask the kubelet if it is time to; one that hangs delays nobody."""
        now = time.monotonic()
        if now >= self._next and (self._thread is None or not self._thread.is_alive()):
            self._next = now + _KUBELET_EVERY
            self._thread = threading.Thread(target=self._ask, name="gpulse-kubelet", daemon=True)
            self._thread.start()

    def join(self, seconds: float) -> None:
        """Wait for the answer to the last question."""
        if self._thread is not None:
            self._thread.join(seconds)

    def assigned(self, gpu: Gpu) -> Sequence[Assignment]:
        """Return who was given this GPU or MIG instance: several if they share it in turns."""
        known = self._known.get(gpu.uuid or "")
        if known is None and gpu.vendor == "nvidia" and (minor := gpu.minor_number) is not None:
            known = self._known.get(f"{_NVIDIA}{minor:.0f}")
        return known or ()

    def _ask(self) -> None:
        try:
            self._known, self.gap = pod_resources(self._socket), ""
        except PodsUnavailable as error:  # what the kubelet last said is kept
            self.gap = error.gap


class Bound:
    """Admits at most `most` different keys; one that was not seen for two hours makes room for another."""

    def __init__(self, most: int = LIMIT, clock: Callable[[], float] = time.monotonic) -> None:
        self._most = most
        self._clock = clock
        self._seen: dict[Hashable, float] = {}

    def admits(self, key: Hashable) -> bool:
        now = self._clock()
        if key not in self._seen and len(self._seen) >= self._most:
            self._seen = {known: at for known, at in self._seen.items() if now - at < _REMEMBERED}
        if key in self._seen or len(self._seen) < self._most:
            self._seen[key] = now
            return True
        return False


def owner_of_gpu(processes: Iterable[Process], given: Sequence[Assignment]) -> Pairs:
    """Return the owner of the most memory, with all processes of a job or user added up, and the pod that was given the GPU.

    Empty if neither is known.
    """
    memory: dict[Owner, float] = {}
    for process in processes:
        owner = process.user, process.job, process.container, process.pod
        if any(owner):
            memory[owner] = memory.get(owner, 0.0) + (process.memory_used or 0)
    if not memory and not given:
        return []
    nobody: Owner = (None, None, None, None)
    owner = max(memory, key=lambda owner: (memory[owner], tuple(part or "" for part in owner)), default=nobody)
    return _pairs(*owner, _matching(owner[3], given) or (given[0] if given else None))


def owner_of_process(process: Process, given: Sequence[Assignment]) -> Pairs:
    """Return the owner of one process on a GPU that was given to these pods."""
    return _pairs(process.user, process.job, process.container, process.pod, _matching(process.pod, given))


def tenant_labels(gpu: Gpu, whole: Gpu | None, tenants: Tenants | None) -> Pairs:
    """Return DCGM's labels namespace, pod and container, as far as anybody knows them."""
    processes = gpu.processes if whole is not None else tuple(gpu.all_processes())
    named = [process for process in processes if process.pod]
    most = max(named, key=lambda process: process.memory_used or 0, default=None)
    given = tenants.assigned(gpu) if tenants is not None else ()
    if given:
        one = _matching(None if most is None else most.pod, given) or given[0]
        return [("namespace", one.namespace), ("pod", one.pod), ("container", one.container)]
    return [] if most is None else [("pod", most.pod), ("container", most.container)]


def _matching(pod: str | None, given: Sequence[Assignment]) -> Assignment | None:
    """Return the assignment of a pod; where the process only knows its pod's UID, that of the only pod there is."""
    named = next((one for one in given if one.pod == pod), None)
    return named or (given[0] if pod and len(given) == 1 else None)


def _pairs(
    user: str | None, job: str | None, container: str | None, pod: str | None, given: Assignment | None
) -> Pairs:
    scheduler, _, number = (job or "").rpartition(":")
    told = [
        *(("user", user), ("scheduler", scheduler), ("job_id", number), ("container", container)),
        *(("pod", pod if given is None else given.pod), ("namespace", given and given.namespace)),
        ("container_name", given and given.container),
    ]
    return [(name, text[:LONGEST_LABEL] if text else None) for name, text in told]
