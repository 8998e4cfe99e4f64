"""What the figures of a model server mean: whether it works, has no traffic or is stuck, and what a million tokens cost."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Literal, TypeAlias

    from ..model.catalog import Gpu, Server
    from .cost import Tariff

    Activity: TypeAlias = Literal["serving", "idle", "stuck", "silent", "unknown"]

STUCK_AFTER = 60.0  # seconds with requests and without a single token: longer than any prompt takes
IDLE_AFTER = 60.0
_MILLION, _HOUR, _JOULES = 1e6, 3600.0, 3.6e6


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


def cost_per_million(server: Server, gpus: Sequence[Gpu], tariff: Tariff | None) -> float | None:
    """Return what a million generated tokens cost at the present rate: GPU time and energy; None without prices or tokens."""
    rate = server.generation_rate
    if not tariff or not rate:
        return None
    own = gpus_of(server, gpus)
    watts = [gpu.power_draw for gpu in own]
    parts: list[float] = []
    if tariff.gpu_price is not None and own:
        parts.append(tariff.gpu_price * len(own) / _HOUR)
    if tariff.price is not None and own and None not in watts:
        parts.append(tariff.price * sum(power for power in watts if power is not None) / _JOULES)
    return sum(parts) / rate * _MILLION if parts else None
