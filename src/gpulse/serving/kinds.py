"""The kinds of servers that gpulse knows, as data: a new one is an entry of KINDS.

In another package, an entry point in the group `gpulse.serving` names a function that returns a `Kind`.
"""

from __future__ import annotations

import re

from ..model.catalog import SERVER_METRICS
from .kind import MOST_MODELS, Figures, Kind, SecondPage, Series

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any

    from ..model.catalog import Server
    from .kind import Samples

_LOOPBACK = ("127.", "[::1]", "localhost")
_SHARED = re.compile(r"\s(?:-kvu|--kv-unified)(?=\s|$)")
_PARALLEL = re.compile(r"\s(?:-np|--parallel)[\s=]+[1-9]")
_VLLM_CACHE, _SGLANG_CACHE = "cache_config_info", "max_total_num_tokens"
_SECONDS = {
    "first_token": Series("time_to_first_token_seconds"),
    "inter_token": Series("inter_token_latency_seconds", "time_per_output_token_seconds"),
    "request": Series("e2e_request_latency_seconds"),
}


def plugin_kinds() -> Iterator[Kind]:
    """Yield the kinds of plug-ins; one that does not work is left out (`gpulse doctor` says why)."""
    from ..plugins import SERVING, plugins

    for plugin in plugins(SERVING):
        try:
            made = plugin.load()()
        except (Exception, SystemExit):  # noqa: BLE001  # foreign code, in the thread that asks all servers
            continue
        if isinstance(made, Kind):
            yield made


def _vllm_capacity(samples: Samples, prefix: str) -> float | None:
    """Return the tokens that the cache has room for, over all engines: blocks times tokens per block."""
    total = 0.0
    for labels, _ in samples.get(f"{prefix}{_VLLM_CACHE}", ()):
        blocks, size = labels.get("num_gpu_blocks", ""), labels.get("block_size", "")
        if not (blocks.isdecimal() and size.isdecimal()):
            return None
        total += int(blocks) * int(size)
    return total or None


def _sglang_capacity(samples: Samples, prefix: str) -> float | None:
    """Return the tokens that the cache has room for, of the engine with most if the ranks differ."""
    return max((value for _, value in samples.get(f"{prefix}{_SGLANG_CACHE}", ()) if value > 0), default=None)


def read_slots(body: bytes, command: str) -> float | None:
    """Return the share of llama.cpp's cache that running requests hold, in percent, from an answer of /slots.

    Slots have a cache each where the command line says how many there are, and one together where the server chose the number or
    --kv-unified is given. Without a command line, several slots do not tell.
    """
    slots = _parsed(body)
    if not isinstance(slots, list) or not slots or (len(slots) > 1 and not command):
        return None
    sizes = [_count(slot, "n_ctx") for slot in slots]
    used = [_used(slot) for slot in slots]
    known = [count for count in used if count is not None]
    if len(known) < len(slots) or not all(sizes):
        return None
    apart = bool(_PARALLEL.search(command)) and not _SHARED.search(command)
    room = sum(size or 0 for size in sizes) if apart else sizes[0] or 0
    return min(100.0, 100.0 * sum(known) / room)


def _used(slot: Any) -> int | None:
    """Return the tokens of a request in the cache; 0 of a slot without one: what is left of the last request can be overwritten."""
    if not isinstance(slot, dict) or not slot.get("is_processing"):
        return 0 if isinstance(slot, dict) and "is_processing" in slot else None
    following = slot.get("next_token")
    decoding = following[0] if isinstance(following, list) and following else following
    counts = [_count(slot, "n_prompt_tokens_cache"), _count(slot, "n_prompt_tokens_processed")]
    counts.append(_count(decoding, "n_decoded"))
    known = [count for count in counts if count is not None]
    return sum(known) if len(known) == len(counts) else None


def _count(plain: Any, key: str) -> int | None:
    value = plain.get(key) if isinstance(plain, dict) else None
    return value if isinstance(value, int) and 0 <= value < 1 << 40 else None


def read_loaded(body: bytes) -> list[Figures]:
    """Return the models in an answer of Ollama's /api/ps; nothing of one that is something else."""
    plain = _parsed(body)
    models = plain.get("models") if isinstance(plain, dict) else None
    listed = [model for model in models[:MOST_MODELS] if isinstance(model, dict)] if isinstance(models, list) else []
    named = [model.get("name") or model.get("model") for model in listed]
    return [Figures(name) for name in named if isinstance(name, str)]


def read_snapshot(body: bytes) -> list[Figures]:
    """Return the servers in an answer of /api/snapshot that run on that machine's GPUs.

    Those that it was told of are left out: two machines that name each other would repeat theirs forever.
    """
    from ..errors import RecordingError
    from ..model.codec import from_plain, time_text

    plain = _parsed(body)
    try:
        needed = {key: plain[key] for key in ("host", "serving", "schema") if key in plain}
        snapshot = from_plain(needed | {"time": time_text(0.0), "gpus": []})
    except (ValueError, TypeError, RecordingError):
        return []
    own = [server for server in snapshot.serving if server.gpus]
    return [_figures(server, snapshot.host.name or "") for server in own[:MOST_MODELS]]


def _figures(server: Server, host: str) -> Figures:
    endpoint = server.endpoint or ""
    if host and endpoint.startswith(_LOOPBACK):
        endpoint = f"{host}:{endpoint.rpartition(':')[2]}"
    figures = Figures(server.model or "", server.server or "", endpoint)
    values = {key: server.get(key) for key, metric in SERVER_METRICS.items() if metric.kind != "identity"}
    figures.gauges = {key: value for key, value in values.items() if isinstance(value, (int, float))}
    if not figures.gauges:
        figures.gap = server.gaps.get("running")
    return figures


def _parsed(body: bytes) -> Any:
    import json

    try:
        return json.loads(body)
    except (ValueError, RecursionError):
        return None


# vLLM, also under Ray Serve, which puts its own word before the names. One series per engine of a data-parallel server.
_VLLM = Kind(
    "vllm",
    "num_requests_running",
    prefixes=("vllm:", "ray_vllm:", "ray_vllm_"),
    ports=(8000,),
    gauges={
        "running": Series("num_requests_running"),
        "waiting": Series("num_requests_waiting"),
        "kv_cache": Series("kv_cache_usage_perc", "gpu_cache_usage_perc", scale=100.0),
    },
    counts={
        "prompt_tokens": Series("prompt_tokens_total"),
        "generation_tokens": Series("generation_tokens_total"),
        "requests": Series("request_success_total"),
        "errors": Series("=http_requests_total", where={"status": "5*"}),
        "preemptions": Series("num_preemptions_total"),
        "prefix_queries": Series("prefix_cache_queries_total", "gpu_prefix_cache_queries_total"),
        "prefix_found": Series("prefix_cache_hits_total", "gpu_prefix_cache_hits_total"),
    },
    latencies=_SECONDS,
    capacity=_vllm_capacity,
    capacity_names=(_VLLM_CACHE,),
)
# Order matters for answers that could be of several: nim, which has no prefix, comes last.
KINDS = (
    _VLLM,
    # SGLang, started with --enable-metrics. The ranks of one engine repeat each other; those of several (dp_rank) add up.
    Kind(
        "sglang",
        "num_running_reqs",
        prefixes=("sglang:", "sglang_"),
        ports=(30000,),
        ranks=frozenset(("tp_rank", "pp_rank", "moe_ep_rank", "pid")),
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
        latencies=_SECONDS,
        capacity=_sglang_capacity,
        capacity_names=(_SGLANG_CACHE,),
        remedy="Start it with --enable-metrics.",
    ),
    # Text Generation Inference: tokens are the sums of histograms; it says nothing about its cache and the first token.
    Kind(
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
    ),
    # The server of llama.cpp, started with --metrics. It has no latencies, and newer builds tell about the cache only per slot.
    Kind(
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
        second=SecondPage("/slots", "kv_cache", read_slots),
        remedy="Start it with --metrics.",
    ),
    # Triton: requests per model; with the TensorRT-LLM backend also the batch and the cache, with `--metrics-config` latencies.
    Kind(
        "triton",
        "inference_",
        prefixes=("nv_",),
        ports=(8002,),
        model="model",
        gauges={
            "running": Series("trt_llm_request_metrics", where={"request_type": "scheduled"}),
            "waiting": Series("inference_pending_request_count"),
            "kv_cache": Series(
                "trt_llm_kv_cache_block_metrics", scale=100.0, where={"kv_cache_block_type": "fraction"}
            ),
        },
        counts={
            "prompt_tokens": Series("llm_input_token_len_sum"),
            "generation_tokens": Series("llm_output_token_len_sum"),
            "requests": Series("inference_request_success"),
            "errors": Series("inference_request_failure"),
        },
        latencies={"first_token": Series("inference_first_response_histogram_ms", scale=0.001)},
    ),
    Kind("ollama", path="/api/ps", ports=(11434,), read=read_loaded),  # it says only which models are loaded
    # The `gpulse serve` of another machine: it tells of the model servers on its GPUs, with rates and all.
    Kind("gpulse", path="/api/snapshot", ports=(9440,), read=read_snapshot),
    _VLLM.replace(name="nim", prefixes=("",)),  # NVIDIA NIM: vLLM's names without a prefix
)
