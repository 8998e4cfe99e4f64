"""What the summary of a command says of the model server that it ran."""

from __future__ import annotations

from typing import Any

import pytest

from gpulse.analysis.tally import ServingTally, together
from gpulse.model.catalog import Gpu, Process, Server
from gpulse.model.snapshot import Snapshot
from gpulse.monitor.messages import AgentSample
from gpulse.monitor.report import serving_ending
from gpulse.supervision.watch import _of_command

_USUAL: dict[str, Any] = {
    "server": "vllm", "model": "acme/m", "endpoint": "127.0.0.1:8000", "gpus": ("GPU-0", "GPU-1"), "running": 12.0, "waiting": 2.0,
    "kv_cache": 60.0, "first_token_p95": 0.4, "inter_token_p95": 0.02,
}  # fmt: skip


def frame(at: float, rate: float, watts: float = 500.0) -> Snapshot:
    gpus = tuple(
        Gpu({"index": n, "uuid": f"GPU-{n}", "power_draw": watts}, processes=(Process({"pid": 10 + n}),))
        for n in (0, 1)
    )
    return Snapshot(at, gpus, serving=(Server(_USUAL | {"generation_rate": rate}),))


def test_tokens_energy_and_latencies_of_a_run() -> None:
    tally = ServingTally()
    for at, rate in enumerate((1000.0, 3000.0)):
        tally.add(frame(at, rate), 10.0)
    (run,) = tally.sorted()
    assert run.tokens == 40_000
    assert run.joules == 20_000
    assert run.tokens_per_joule == 2.0
    assert serving_ending([run]) == [
        "  served m · 40,000 tokens, 2000 tok/s · 12.0 running, 2.0 waiting · KV 60 % (max 60) · first token p95 400 ms · "
        "between tokens p95 20.0 ms · 2.00 tok/J"
    ]
    assert together([run, run], "generation_rate") == 4000
    assert together([run, run], "tokens_per_joule") == 2.0
    assert together([], "waiting") is None
    elsewhere = ServingTally()
    elsewhere.add(frame(0, 1000.0).replace(gpus=()), 10.0)  # its GPUs are not read, so its tokens have no price
    assert together([run, *elsewhere.sorted()], "tokens_per_joule") == 2.0


def test_energy_that_is_not_known_for_all_gpus_is_not_told() -> None:
    tally = ServingTally()
    tally.add(frame(0, 100.0).replace(gpus=frame(0, 1.0).gpus[:1]), 1.0)
    (run,) = tally.sorted()
    assert run.joules is None
    assert run.tokens_per_joule is None
    known = ServingTally()
    known.add(frame(0, 1000.0), 1.0)
    assert together([run, *known.sorted()], "tokens_per_joule") == 1.0  # of the one whose energy is known
    assert together([run], "tokens_per_joule") is None


def test_a_server_that_does_not_say_who_waits_is_not_without_a_queue() -> None:
    tally = ServingTally()
    silent = Server({key: value for key, value in _USUAL.items() if key != "waiting"})
    tally.add(frame(0, 1.0).replace(serving=(silent,)), 1.0)
    (line,) = serving_ending(tally.sorted())
    assert "· 12.0 running ·" in line
    assert "waiting" not in line


@pytest.mark.parametrize(("own", "count"), [(frozenset({10}), 1), (frozenset({99}), 0), (None, 1)])
def test_only_servers_on_the_gpus_of_the_command_count(own: frozenset[int] | None, count: int) -> None:
    assert len(_of_command(AgentSample(0.0, frame(0, 1.0), None, own)).serving) == count
