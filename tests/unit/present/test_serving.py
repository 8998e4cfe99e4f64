"""The line of a model server."""

from __future__ import annotations

from typing import Any

from gpulse.model.catalog import Gpu, Server
from gpulse.present.cost import place_text, serving_text

_USUAL: dict[str, Any] = {
    "server": "vllm", "model": "Qwen/Qwen3-32B", "endpoint": "127.0.0.1:8000", "gpus": ("GPU-a", "GPU-b"),
    "generation_rate": 2140.0, "running": 31.0, "waiting": 4.0, "kv_cache": 87.0, "first_token_p95": 0.41, "tokens_per_joule": 4.9,
    "idle_time": 0.3,
}  # fmt: skip


def server(**more: Any) -> Server:
    return Server({key: value for key, value in (_USUAL | more).items() if value is not None})


def test_everything_in_one_line() -> None:
    assert serving_text(server()) == (
        "Qwen3-32B · 2,140 tok/s · 31 running, 4 waiting · KV 87 % · first token p95 410 ms · 4.9 tok/J"
    )
    assert serving_text(server(cost_per_million=1.5)).endswith("4.9 tok/J · 1.50 per M tok")
    assert "per M tok" not in serving_text(server(cost_per_million=1.5, idle_time=900.0, running=0.0, waiting=0.0))


def test_what_is_missing_is_left_out() -> None:
    bare = server(kv_cache=None, first_token_p95=None, tokens_per_joule=None, waiting=None)
    assert serving_text(bare) == "Qwen3-32B · 2,140 tok/s · 31 running"
    assert serving_text(Server({"server": "ollama", "model": "tiny:7b"})) == "tiny:7b · loaded by ollama"


def test_idle_stuck_and_silent_are_different() -> None:
    quiet = {"idle_time": 2400.0, "generation_rate": 0.0, "waiting": 0.0}
    assert serving_text(server(**quiet, running=0.0)).startswith("Qwen3-32B · no traffic for 40m00s · KV 87 %")
    assert serving_text(server(**quiet)).startswith("Qwen3-32B · stuck: no token for 40m00s · 31 running, 0 waiting")
    silent = Server({"server": "vllm", "model": "m"}, {"running": "timeout"})
    assert serving_text(silent) == "m · vllm does not answer"


def test_control_characters_of_a_name_are_not_printed() -> None:
    assert "\x1b" not in serving_text(server(model="evil\x1b[31m"))


def test_its_gpus_or_its_address() -> None:
    gpus = [Gpu({"index": at, "uuid": f"GPU-{name}"}) for at, name in enumerate("abc")]
    assert place_text(server(), gpus) == "0, 1"
    assert place_text(server(gpus=None), gpus) == "127.0.0.1:8000"
