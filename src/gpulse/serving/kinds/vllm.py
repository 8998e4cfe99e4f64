"""vLLM, also under Ray Serve, which puts its own word before the names. One series per engine of a data-parallel server."""

from __future__ import annotations

from ..kind import Kind, Series

TYPE_CHECKING = False
if TYPE_CHECKING:
    from ..kind import Samples

GAUGES = {
    "running": Series("num_requests_running"),
    "waiting": Series("num_requests_waiting"),
    "kv_cache": Series("kv_cache_usage_perc", "gpu_cache_usage_perc", scale=100.0),
}
COUNTS = {
    "prompt_tokens": Series("prompt_tokens_total"),
    "generation_tokens": Series("generation_tokens_total"),
    "requests": Series("request_success_total"),
    "errors": Series("=http_requests_total", where={"status": "5*"}),
    "preemptions": Series("num_preemptions_total"),
    "prefix_queries": Series("prefix_cache_queries_total", "gpu_prefix_cache_queries_total"),
    "prefix_found": Series("prefix_cache_hits_total", "gpu_prefix_cache_hits_total"),
}
LATENCIES = {
    "first_token": Series("time_to_first_token_seconds"),
    "inter_token": Series("inter_token_latency_seconds", "time_per_output_token_seconds"),
    "request": Series("e2e_request_latency_seconds"),
}
CACHE = "cache_config_info"


def capacity(samples: Samples, prefix: str) -> float | None:
    """Return the tokens that the cache has room for, over all engines: blocks times tokens per block."""
    total = 0.0
    for labels, _ in samples.get(f"{prefix}{CACHE}", ()):
        blocks, size = labels.get("num_gpu_blocks", ""), labels.get("block_size", "")
        if not (blocks.isdecimal() and size.isdecimal()):
            return None
        total += int(blocks) * int(size)
    return total or None


KIND = Kind(
    "vllm",
    "num_requests_running",
    prefixes=("vllm:", "ray_vllm:", "ray_vllm_"),
    ports=(8000,),
    gauges=GAUGES,
    counts=COUNTS,
    latencies=LATENCIES,
    capacity=capacity,
    capacity_names=(CACHE,),
)
