"""SGLang, started with --enable-metrics. The ranks of one engine repeat each other; those of several (dp_rank) add up."""

from __future__ import annotations

from ..kind import Kind, Series

TYPE_CHECKING = False
if TYPE_CHECKING:
    from ..kind import Samples

_ROOM = "max_total_num_tokens"


def capacity(samples: Samples, prefix: str) -> float | None:
    """Return the tokens that the cache has room for, of the engine with most if the ranks differ."""
    return max((value for _, value in samples.get(f"{prefix}{_ROOM}", ()) if value > 0), default=None)


KIND = Kind(
    "sglang",
    "num_running_reqs",
    prefixes=("sglang:", "sglang_"),
    ports=(30000,),
    ranks=("tp_rank", "pp_rank", "moe_ep_rank", "pid"),
    gauges={
        "running": Series("num_running_reqs"),
        "waiting": Series("num_queue_reqs"),
        "kv_cache": Series("token_usage", scale=100.0),
    },
    counts={
        "prompt_tokens": Series("prompt_tokens_total"),
        "generation_tokens": Series("generation_tokens_total"),
        "requests": Series("num_requests_total"),
        "errors": Series("num_aborted_requests_total"),
        "preemptions": Series("num_retracted_requests_total", "num_retracted_reqs_total"),
        "prefix_queries": Series("prompt_tokens_total"),
        "prefix_found": Series("cached_tokens_total"),
    },
    latencies={
        "first_token": Series("time_to_first_token_seconds"),
        "inter_token": Series("inter_token_latency_seconds", "time_per_output_token_seconds"),
        "request": Series("e2e_request_latency_seconds"),
    },
    capacity=capacity,
    capacity_names=(_ROOM,),
    remedy="Start it with --enable-metrics.",
)
