"""Answers of model servers with made-up values, in the shapes that the servers have."""

from __future__ import annotations

import json

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

_BOUNDS = ("0.1", "0.25", "0.5", "1.0", "+Inf")


def histogram(name: str, labels: str, counts: Sequence[float], bounds: Iterable[str] = _BOUNDS) -> str:
    """Return the lines of a histogram."""
    comma = "," if labels else ""
    lines = [
        f'{name}_bucket{{{labels}{comma}le="{bound}"}} {count}' for bound, count in zip(bounds, counts, strict=True)
    ]
    braces = f"{{{labels}}}" if labels else ""
    return "\n".join([*lines, f"{name}_count{braces} {counts[-1]}", f"{name}_sum{braces} 1.5"])


def vllm(
    *,
    prefix: str = "vllm:",
    cache: str = "kv_cache_usage_perc",
    engines: int = 1,
    generated: float = 5000.0,
    waiting: float = 4.0,
    model: str = "acme/tiny-7b",
) -> str:
    """Return an answer of vLLM; each engine has its own series."""
    parts = [
        "# HELP python_gc_objects_collected_total Objects collected during gc",
        'python_gc_objects_collected_total{generation="0"} 12.0',
    ]
    for engine in range(engines):
        labels = f'engine="{engine}",model_name="{model}"'
        parts += [
            f"# TYPE {prefix}num_requests_running gauge",
            f"{prefix}num_requests_running{{{labels}}} 31.0",
            f"{prefix}num_requests_waiting{{{labels}}} {waiting}",
            f"{prefix}{cache}{{{labels}}} {0.87 if engine == 0 else 0.5}",
            f"{prefix}prompt_tokens_total{{{labels}}} 9.0e+03",
            f"{prefix}generation_tokens_total{{{labels}}} {generated}",
            f"{prefix}num_preemptions_total{{{labels}}} 2.0",
            f"{prefix}prefix_cache_queries_total{{{labels}}} 1000.0",
            f"{prefix}prefix_cache_hits_total{{{labels}}} 250.0",
            f'{prefix}request_success_total{{{labels},finished_reason="stop"}} 40.0',
            f'{prefix}request_success_total{{{labels},finished_reason="length"}} 10.0',
            f'{prefix}cache_config_info{{{labels},block_size="16",num_gpu_blocks="2000"}} 1.0',
            histogram(f"{prefix}time_to_first_token_seconds", labels, (10, 20, 38, 40, 40)),
            histogram(f"{prefix}inter_token_latency_seconds", labels, (40, 40, 40, 40, 40)),
        ]
    parts.append('http_requests_total{handler="/v1/completions",method="POST",status="2xx"} 48.0')
    parts.append('http_requests_total{handler="/v1/completions",method="POST",status="5xx"} 3.0')
    return "\n".join(parts) + "\n"


def sglang() -> str:
    """Return an answer of SGLang with two engines (dp_rank) of two ranks (tp_rank) each, and timestamps."""
    lines = []
    for dp in (0, 1):
        for tp in (0, 1):
            labels = f'dp_rank="{dp}",model_name="acme/tiny-7b",tp_rank="{tp}"'
            running = 7 if tp == 0 else 5
            lines += [
                f"sglang:num_running_reqs{{{labels}}} {running} 1700000000000",
                f"sglang:num_queue_reqs{{{labels}}} 2 1700000000000",
                f"sglang:token_usage{{{labels}}} {0.4 if dp == 0 else 0.6} 1700000000000",
                f"sglang:prompt_tokens_total{{{labels}}} 1000",
                f"sglang:cached_tokens_total{{{labels}}} 400",
                f"sglang:generation_tokens_total{{{labels}}} 300",
                f"sglang:max_total_num_tokens{{{labels}}} 50000",
            ]
    return "\n".join(lines) + "\n"


def tgi() -> str:
    """Return an answer of Text Generation Inference."""
    return "\n".join(
        [
            "# TYPE tgi_queue_size gauge\ntgi_queue_size 6\n",
            "tgi_batch_current_size 12",
            "tgi_request_success 90",
            'tgi_request_failure{err="validation"} 2\ntgi_request_failure{err="generation"} 1',
            histogram("tgi_request_duration", "", (0, 1, 5, 9, 10)),
            histogram("tgi_request_mean_time_per_token_duration", "", (10, 10, 10, 10, 10)),
            "tgi_request_generated_tokens_sum 4100\ntgi_request_generated_tokens_count 90",
            "tgi_request_input_length_sum 800\ntgi_request_input_length_count 90\n",
        ]
    )


def llama_cpp() -> str:
    """Return an answer of llama.cpp's server before its first request: some gauges are not numbers."""
    return "\n".join(
        [
            "llamacpp:prompt_tokens_total 120",
            "llamacpp:tokens_predicted_total 640",
            "llamacpp:predicted_tokens_seconds nan",
            "llamacpp:requests_processing 2",
            "llamacpp:requests_deferred 1\n",
        ]
    )


def llama_slots(*held: tuple[int, int, int] | None, size: int = 4096) -> bytes:
    """Return an answer of llama.cpp's /slots: the tokens from the cache, of the prompt and decoded, by slot; None of an idle one."""
    return json.dumps(
        [
            {
                "id": at,
                "n_ctx": size,
                "is_processing": tokens is not None,
                "n_prompt_tokens_cache": (tokens or (700,))[0],  # of an idle one, of its last request
                "n_prompt_tokens_processed": (tokens or (0, 70))[1],
                "next_token": [{"has_next_token": tokens is not None, "n_decoded": (tokens or (0, 0, 7))[2]}],
            }
            for at, tokens in enumerate(held)
        ]
    ).encode()


def triton() -> str:
    """Return an answer of Triton with one model of TensorRT-LLM that is used and one model that never was."""
    lines = []
    for model, count in (("tensorrt_llm", 70), ("unused", 0)):
        labels = f'model="{model}",version="1"'
        lines += [
            f"nv_inference_request_success{{{labels}}} {count}",
            f"nv_inference_request_failure{{{labels}}} {count // 35}",
            f"nv_inference_pending_request_count{{{labels}}} 3",
        ]
    trt = 'model="tensorrt_llm",version="1"'
    lines += [
        f'nv_trt_llm_request_metrics{{{trt},request_type="scheduled"}} 16',
        f'nv_trt_llm_request_metrics{{{trt},request_type="max"}} 512',
        f'nv_trt_llm_kv_cache_block_metrics{{{trt},kv_cache_block_type="fraction"}} 0.31',
        f'nv_trt_llm_kv_cache_block_metrics{{{trt},kv_cache_block_type="max"}} 9000',
        'nv_gpu_utilization{gpu_uuid="GPU-1"} 0.5',
    ]
    return "\n".join(lines) + "\n"


OLLAMA = '{"models": [{"name": "tiny:7b", "size": 5000000000, "size_vram": 5000000000}, {"model": "small:1b"}]}'
