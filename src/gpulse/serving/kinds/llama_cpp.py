"""The server of llama.cpp, started with --metrics. It has no latencies, and newer builds tell about the cache only per slot."""

from __future__ import annotations

import re

from ..kind import Kind, SecondPage, Series

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

_SHARED = re.compile(r"\s(?:-kvu|--kv-unified)(?=\s|$)")
_PARALLEL = re.compile(r"\s(?:-np|--parallel)[\s=]+[1-9]")


def read_slots(body: bytes, command: str) -> float | None:
    """Return the share of the cache that running requests hold, in percent, from an answer of /slots.

    Slots have a cache each where the command line says how many there are, and one together where the server chose the number or
    --kv-unified is given. Without a command line, several slots do not tell.
    """
    import json

    try:
        slots = json.loads(body)
    except (ValueError, RecursionError):
        return None
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
    counts = [
        _count(slot, "n_prompt_tokens_cache"),
        _count(slot, "n_prompt_tokens_processed"),
        _count(following[0] if isinstance(following, list) and following else following, "n_decoded"),
    ]
    known = [count for count in counts if count is not None]
    return sum(known) if len(known) == len(counts) else None


def _count(plain: Any, key: str) -> int | None:
    value = plain.get(key) if isinstance(plain, dict) else None
    return value if isinstance(value, int) and 0 <= value < 1 << 40 else None


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
    second=SecondPage("/slots", "kv_cache", read_slots),
    remedy="Start it with --metrics.",
)
