"""Text Generation Inference: tokens are the sums of histograms; it says nothing about its cache and the first token."""

from __future__ import annotations

from ..kind import Kind, Series

KIND = Kind(
    "tgi",
    "queue_size",
    prefixes=("tgi_",),
    ports=(80, 3000, 8080),
    model="",
    gauges={"running": Series("batch_current_size"), "waiting": Series("queue_size")},
    counts={
        "prompt_tokens": Series("request_input_length_sum"),
        "generation_tokens": Series("request_generated_tokens_sum"),
        "requests": Series("request_success"),
        "errors": Series("request_failure"),
    },
    latencies={
        "inter_token": Series("request_mean_time_per_token_duration"),
        "request": Series("request_duration"),
    },
)
