"""Verdicts about model servers, by the server's own figures beside those of the GPU."""

from __future__ import annotations

from typing import Any

import pytest

from gpulse.analysis.diagnosis.judge import diagnose
from gpulse.model.catalog import Server
from gpulse.model.verdict import Verdict
from gpulse.present.verdicts import worded
from tests.unit.analysis.diagnosis.machines import QUIET, samples

_USUAL: dict[str, Any] = {
    "server": "vllm", "model": "acme/tiny-7b", "endpoint": "127.0.0.1:8000", "gpus": ("GPU-0",), "running": 20.0, "waiting": 0.0,
    "kv_cache": 50.0, "generation_rate": 1500.0, "prompt_rate": 3000.0, "request_rate": 8.0, "preemption_rate": 0.0,
    "idle_time": 0.5,
}  # fmt: skip
_SERVER = {
    "name": "VLLM::EngineCore",
    "command": "vllm serve acme/tiny-7b",
    "cpu_percent": 60.0,
    "tree_cpu_percent": 60.0,
}
_DECODES = {"sm_active": 80, "tensor_active": 12, "dram_active": 62, "power_draw": 420}


def served(gpu: dict[str, Any], **said: Any) -> Verdict:
    frames = samples(gpu | {"processes": (_SERVER,)})
    server = Server({key: value for key, value in (_USUAL | said).items() if value is not None})
    (verdict,) = worded(diagnose([frame.replace(serving=(server,)) for frame in frames]))
    return verdict


def keys(verdict: Verdict) -> list[str]:
    return [verdict.key, *(one.key for one in verdict.also)]


def test_a_full_cache_while_requests_wait() -> None:
    verdict = served(_DECODES, kv_cache=99.0, waiting=12.0)
    assert verdict.key == "serving_cache_full"
    assert verdict.title == "The key-value cache is full: 99 % in use with 12 requests waiting."
    assert "serving_cache_full" not in keys(served(_DECODES, kv_cache=99.0))
    assert "serving_cache_full" not in keys(served(_DECODES, waiting=12.0))


def test_a_queue_while_the_sms_idle() -> None:
    slow = {
        "sm_active": 15,
        "tensor_active": 4,
        "dram_active": 8,
        "utilization": 40,
        "graphics_active": 40,
        "power_draw": 200,
    }
    verdict = served(slow, waiting=30.0)
    assert verdict.key == "serving_queue"
    assert "server_cpus" in verdict.advice
    assert "serving_queue" not in keys(served(_DECODES, waiting=30.0))
    assert "serving_queue" not in keys(served(slow, waiting=30.0, kv_cache=99.0))


def test_decoding_says_how_far_the_batch_can_grow() -> None:
    verdict = served(_DECODES)
    assert verdict.key == "serving_decode"
    assert verdict.values["room"] == pytest.approx(4.2)
    assert "20 requests run; about 4.2 times as many" in verdict.title


def test_a_server_busy_with_prompts() -> None:
    verdict = served({"tensor_active": 62, "dram_active": 30}, prompt_rate=40_000.0, generation_rate=900.0)
    assert verdict.key == "serving_prefill"


def test_a_preemption_storm() -> None:
    assert served(_DECODES, preemption_rate=4.0).key == "serving_preemptions"
    assert "serving_preemptions" not in keys(served(_DECODES, preemption_rate=0.3))


def test_stuck_is_told_from_no_traffic_by_counters() -> None:
    assert served(QUIET, idle_time=300.0, generation_rate=0.0).key == "serving_stuck"
    verdict = served(QUIET, idle_time=2400.0, generation_rate=0.0, running=0.0)
    assert verdict.key == "serving_idle"
    assert verdict.title == "Serving tiny-7b, no traffic for 40m00s."


def test_without_its_figures_nothing_is_said_of_a_server() -> None:
    verdict = served(_DECODES, running=None, waiting=None)
    assert not any(key.startswith("serving") for key in keys(verdict))
    assert not any(key.startswith("serving") for key in keys(served(QUIET, running=None, waiting=None, idle_time=None)))
