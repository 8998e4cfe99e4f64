"""What a diagnosis asks a sampler for."""

from __future__ import annotations

from ...model.presets import DIAGNOSIS
from ...model.select import Wanted
from .window import HOST_KEYS, PROCESS_KEYS

_IDENTITY = ("index", "uuid", "name", "throttle_reasons", "memory_percent", "utilization_trace")
_PROCESS = ("pid", "name", "command", "user", "parent", "type", "container", "pod", "job", "thread_state")
WANTED = Wanted(
    (*DIAGNOSIS, *_IDENTITY), (*PROCESS_KEYS, *_PROCESS), (*HOST_KEYS, "name", "cpu_per_core"), serving=True
)
