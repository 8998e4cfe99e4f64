"""Model servers in /metrics: own names, bounded labels, never the server's counters again."""

from __future__ import annotations

from typing import Any

from gpulse.model.catalog import Gpu, Server
from gpulse.model.snapshot import Snapshot
from gpulse.present.exposition import render
from gpulse.surfaces.exporter.families import server_families


def page(*servers: Server) -> list[str]:
    gpus = (Gpu({"index": 6, "uuid": "GPU-a"}), Gpu({"index": 7, "uuid": "GPU-b"}))
    return list(render(server_families(Snapshot(1.0, gpus, serving=servers))))


def test_figures_and_gpus() -> None:
    named: dict[str, Any] = {
        "server": "vllm",
        "model": "acme/m",
        "endpoint": "127.0.0.1:8000",
        "gpus": ("GPU-a", "GPU-b"),
    }
    lines = page(
        Server(named | {"running": 31.0, "kv_cache": 87.0, "generation_rate": 2140.0, "generation_tokens": 5e9})
    )
    labels = 'server="vllm",model="acme/m",endpoint="127.0.0.1:8000"'
    assert f"gpulse_serving_running{{{labels}}} 31" in lines
    assert f"gpulse_serving_kv_cache_ratio{{{labels}}} 0.87" in lines
    assert f"gpulse_serving_generation_rate_tokens_per_second{{{labels}}} 2140" in lines
    assert f'gpulse_serving_info{{{labels},gpu="6",uuid="GPU-a"}} 1' in lines
    assert f'gpulse_serving_info{{{labels},gpu="7",uuid="GPU-b"}} 1' in lines
    assert not any("generation_tokens" in line for line in lines)


def test_labels_are_bounded() -> None:
    many = [Server({"server": "vllm", "model": f"{at}" + "x" * 500, "running": 1.0}) for at in range(200)]
    lines = [line for line in page(*many) if line.startswith("gpulse_serving_running{")]
    assert len(lines) == 64
    assert max(map(len, lines)) < 300


def test_without_servers_there_is_nothing() -> None:
    assert page() == []
