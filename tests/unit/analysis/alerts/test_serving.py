"""Alerts about model servers: each fires when its figure has been beyond its value for long enough, and clears."""

from __future__ import annotations

from typing import Any

import pytest

from gpulse.analysis.alerts import RuleSet, Transition, rules_from
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


def queued(waiting: float, port: int) -> Server:
    endpoint = f"127.0.0.1:{port}"
    return Server({"server": "vllm", "model": "acme/m", "endpoint": endpoint, "gpus": ("GPU-1",), "waiting": waiting})


def watched(book: RuleSet, *servers: Server, seconds: int, start: int = 0) -> list[Transition]:
    gpus = (Gpu({"index": 1, "uuid": "GPU-1"}),)
    shown = (Snapshot(START + second, gpus, serving=servers) for second in range(start, start + seconds, 5))
    return [turned for snapshot in shown for turned in book.observe(snapshot)]


def test_two_servers_on_one_gpu_have_an_alert_each_which_goes_on_after_a_restart() -> None:
    book = RuleSet(rules_from({"enable": ["serving_queue"]}))
    assert len(watched(book, queued(70.0, 8000), queued(80.0, 8001), seconds=300)) == 2
    assert [one.event.value for one in book.active] == [70.0, 80.0]
    watched(book, queued(90.0, 8000), queued(80.0, 8001), seconds=5, start=300)
    assert [one.event.value for one in book.active] == [90.0, 80.0]
    again = RuleSet(rules_from({"enable": ["serving_queue"]}))
    again.resume(book.active)
    (cleared,) = watched(again, queued(2.0, 8000), queued(80.0, 8001), seconds=1000, start=305)
    assert (cleared.state, cleared.what) == ("clear", queued(2.0, 8000).key)
    assert [one.event.value for one in again.active] == [80.0]


def test_the_alert_of_a_server_that_has_ended_is_over() -> None:
    book = RuleSet(rules_from({"enable": ["serving_queue"]}))
    assert len(watched(book, queued(70.0, 8000), seconds=300)) == 1
    (cleared,) = watched(book, seconds=300, start=300)
    assert (cleared.state, alert_text(cleared)) == ("clear", "model server m on GPU 1 has ended")
    assert book.active == ()


def test_the_alert_of_a_server_stays_one_when_the_first_of_its_gpus_is_lost() -> None:
    def on(*gpus: str, waiting: float = 70.0) -> Server:
        return Server({"server": "vllm", "model": "acme/m", "endpoint": "x:1", "gpus": gpus, "waiting": waiting})

    book = RuleSet(rules_from({"enable": ["serving_queue"]}))
    (first,) = watched(book, on("GPU-0", "GPU-1"), seconds=300)
    assert watched(book, on("GPU-1"), seconds=600, start=300) == []
    assert [one.key for one in book.active] == [first.key]
    (cleared,) = watched(book, on("GPU-1", waiting=1.0), seconds=300, start=900)
    assert (cleared.state, cleared.key, book.active) == ("clear", first.key, ())
    assert alert_text(cleared) == "model server m on GPU 1 has only 1 request waiting"
