"""Triton: requests per model; with the TensorRT-LLM backend also the batch and the cache, with `--metrics-config` latencies."""

from __future__ import annotations

from ..kind import Kind, Series

_MILLISECONDS = 0.001


def _requests(kind: str) -> Series:
    return Series("trt_llm_request_metrics", where={"request_type": kind})


KIND = Kind(
    "triton",
    "inference_",
    prefixes=("nv_",),
    ports=(8002,),
    model="model",
    gauges={
        "running": _requests("scheduled"),
        "waiting": Series("inference_pending_request_count"),
        "kv_cache": Series("trt_llm_kv_cache_block_metrics", scale=100.0, where={"kv_cache_block_type": "fraction"}),
    },
    counts={
        "prompt_tokens": Series("llm_input_token_len_sum"),
        "generation_tokens": Series("llm_output_token_len_sum"),
        "requests": Series("inference_request_success"),
        "errors": Series("inference_request_failure"),
    },
    latencies={
        "first_token": Series("inference_first_response_histogram_ms", scale=_MILLISECONDS),
    },
)
