"""Every field of --query-gpu, one line each, in nvidia-smi's words."""

from __future__ import annotations

from .field import Field
from .forms import mib, pstate, watts, whole

FIELDS: tuple[Field, ...] = (
    Field("memory.total", "memory_total", mib, "MiB"),
    Field("memory.used", "memory_used", mib, "MiB"),
    Field("utilization.gpu", "utilization", whole, "%"),
    Field("power.draw", "power_draw", watts, "W"),
    Field("pstate", "pstate", pstate),
)
