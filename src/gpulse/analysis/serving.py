"""What the figures of a model server mean: whether it works, has no traffic or is stuck."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Literal, TypeAlias

    from ..model.catalog import Gpu, Server

    Activity: TypeAlias = Literal["serving", "idle", "stuck", "silent", "unknown"]

STUCK_AFTER = 60.0  # seconds with requests and without a single token: longer than any prompt takes
IDLE_AFTER = 60.0


def activity(server: Server) -> Activity:
    """Return what a server does, by its counters: utilization cannot tell one that is stuck from one without traffic."""
    if server.running is None and server.gaps.get("running") in ("timeout", "failed", "denied", "lost"):
        return "silent"
    if server.idle_time is None:
        return "unknown"
    queued = (server.running or 0) + (server.waiting or 0)
    if queued > 0:
        return "stuck" if server.idle_time >= STUCK_AFTER else "serving"
    return "idle" if server.idle_time >= IDLE_AFTER else "serving"


def gpus_of(server: Server, gpus: Sequence[Gpu]) -> list[Gpu]:
    """Return the GPUs and MIG instances of a server."""
    return [part for gpu in gpus for part in (gpu, *gpu.instances) if part.uuid in (server.gpus or ())]
