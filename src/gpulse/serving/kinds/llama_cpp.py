"""The server of llama.cpp, started with --metrics. It has no latencies, and newer builds say nothing about the cache."""

from __future__ import annotations

from ..kind import Kind, Series

KIND = Kind(
    "llama.cpp",
    "requests_processing",
    prefixes=("llamacpp:",),
    ports=(8080,),
    model="",
    gauges={
        "running": Series("requests_processing"),
        "waiting": Series("requests_deferred"),
        "kv_cache": Series("kv_cache_usage_ratio", scale=100.0),
    },
    counts={
        "prompt_tokens": Series("prompt_tokens_total"),
        "generation_tokens": Series("tokens_predicted_total"),
    },
    remedy="Start it with --metrics.",
)
