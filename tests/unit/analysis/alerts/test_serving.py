"""Alerts about model servers: each fires when its figure has been beyond its value for long enough, and clears."""

from __future__ import annotations

from typing import Any

import pytest

from gpulse.analysis.alerts import RuleSet, rules_from
from gpulse.model.catalog import Gpu, Server
from gpulse.model.snapshot import Snapshot
from gpulse.present.alerts import alert_text

START = 1_700_000_000.0


def fired(name: str, wrong: dict[str, float], right: dict[str, float]) -> list[str]:
    book = RuleSet(rules_from({"enable": [name]}), lambda rule, error: pytest.fail(f"{rule}: {error}"))
    found = []
    for second in range(0, 900, 5):
        figures = wrong if second < 450 else right
        named: dict[str, Any] = {"server": "vllm", "model": "acme/m", "endpoint": "127.0.0.1:8000", "gpus": ("GPU-1",)}
        server = Server(named | {"running": 1.0} | figures)
        snapshot = Snapshot(START + second, (Gpu({"index": 1, "uuid": "GPU-1"}),), serving=(server,))
        found += book.observe(snapshot)
    return [alert_text(one) for one in found]


def test_a_long_queue() -> None:
    assert fired("serving_queue", {"waiting": 70.0}, {"waiting": 2.0}) == [
        "model server m on GPU 1 has 70 requests waiting",
        "model server m on GPU 1 has only 2 requests waiting",
    ]
    assert fired("serving_queue", {"waiting": 40.0}, {"waiting": 2.0}) == []


def test_a_late_first_token() -> None:
    assert len(fired("serving_first_token", {"first_token_p95": 12.0}, {"first_token_p95": 0.4})) == 2


def test_errors() -> None:
    assert len(fired("serving_errors", {"error_rate": 2.0}, {"error_rate": 0.0})) == 2


def test_stuck_needs_requests() -> None:
    assert len(fired("serving_stuck", {"idle_time": 120.0}, {"idle_time": 0.0})) == 2
    assert fired("serving_stuck", {"idle_time": 120.0, "running": 0.0}, {"idle_time": 0.0}) == []
