"""Model servers are kept beside the GPUs: as series of their own, in snapshots, and never taken for a GPU."""

from __future__ import annotations

from pathlib import Path

import pytest

from gpulse.model.catalog import Server
from gpulse.model.snapshot import Snapshot
from gpulse.store.history import HistoryReader
from tests.unit.store.history.ticks import START, gpu, tick, write


def _served(at: float) -> Snapshot:
    server = Server(
        {
            "server": "vllm",
            "model": "acme/tiny-7b",
            "endpoint": "127.0.0.1:8000",
            "gpus": ("GPU-a",),
            "running": 10.0 + at % 3,
            "generation_rate": 2000.0 + at,
            "tokens_per_joule": 0.0451,
            "kv_cache": 87.25,
        }
    )
    return tick(at, gpu(power_draw=300.0)).replace(serving=(server,))


@pytest.fixture
def path(tmp_path: Path) -> str:
    file = str(tmp_path / "history.db")
    write(file, map(_served, range(1500)))  # the first ten minutes are sealed into blocks by then
    return file


def test_a_server_has_series_of_its_own(path: str) -> None:
    with HistoryReader(path) as reader:
        [(name, facts)] = reader.servers(START, START + 1500).items()
        assert (facts["model"], facts["gpus"]) == ("acme/tiny-7b", ["GPU-a"])
        [rate] = reader.series(["generation_rate"], [name], START, START + 100, 1000)
        assert rate.mean[50] == pytest.approx(2050, rel=1 / 8192)
        [efficiency] = reader.series(["tokens_per_joule"], [name], START, START + 1500, 10)
        assert efficiency.mean == pytest.approx([0.0451] * len(efficiency.mean), rel=1 / 8192)
        assert reader.servers(START - 500, START - 100) == {}


def test_a_server_is_no_gpu(path: str) -> None:
    with HistoryReader(path) as reader:
        assert [one.uuid for one in reader.gpus(START, START + 1500)] == ["GPU-a"]
        assert [one.uuid for one in reader.series(["power_draw"], None, START, START + 1500)] == ["GPU-a"]


def test_snapshots_have_their_servers_again(path: str) -> None:
    with HistoryReader(path) as reader:
        last = list(reader.snapshots(START + 100, START + 102))[-1]
    [server] = last.serving
    assert server.gpus == ("GPU-a",)
    assert server.kv_cache == 87.25
    assert server.generation_rate == pytest.approx(2101, rel=1 / 4000)
    assert len(last.gpus) == 1
