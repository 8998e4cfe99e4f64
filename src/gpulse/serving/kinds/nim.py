"""NVIDIA NIM: vLLM's names without a prefix."""

from __future__ import annotations

from ..kind import Kind
from .vllm import CACHE, COUNTS, GAUGES, LATENCIES, capacity

KIND = Kind(
    "nim",
    "num_requests_running",
    ports=(8000,),
    gauges=GAUGES,
    counts=COUNTS,
    latencies=LATENCIES,
    capacity=capacity,
    capacity_names=(CACHE,),
)
