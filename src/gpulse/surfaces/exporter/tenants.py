"""Which Kubernetes pod a GPU was given to: from the kubelet's socket where it is there, else from the processes' cgroups."""

from __future__ import annotations

import time

from ...sources.kubelet import SOCKET, Assignment, pod_resources

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

    from ...model.catalog import Gpu

_EVERY = 15.0  # seconds between two questions to the kubelet


class Tenants:
    """The pods of this node by the UUID of their GPU or MIG instance, asked again every 15 seconds; used by one thread."""

    def __init__(self, socket: str = SOCKET) -> None:
        self._socket = socket
        self._known: Mapping[str, Assignment] = {}
        self._next = 0.0

    def refresh(self) -> None:
        """Ask the kubelet where it is time to; a kubelet that does not answer leaves what it last said."""
        now = time.monotonic()
        if now >= self._next:
            self._next = now + _EVERY
            found = pod_resources(self._socket)
            self._known = self._known if found is None else found

    def of(self, uuid: str | None) -> Assignment | None:
        """Return who was given this GPU or MIG instance."""
        return self._known.get(uuid or "")


def tenant_labels(gpu: Gpu, whole: Gpu | None, tenants: Tenants | None) -> list[tuple[str, str | None]]:
    """Return the labels pod, namespace and container, as far as anybody knows them."""
    given = tenants.of(gpu.uuid) if tenants is not None else None
    if given is not None:
        return [("namespace", given.namespace), ("pod", given.pod), ("container", given.container)]
    processes = gpu.processes if whole is not None else tuple(gpu.all_processes())
    named = [process for process in processes if process.pod]
    if not named:
        return []
    most = max(named, key=lambda process: process.memory_used or 0)
    return [("pod", most.pod), ("container", most.container)]
