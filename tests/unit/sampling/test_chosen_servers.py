"""Model servers belong to GPUs: choosing GPUs leaves out the servers of the others, on every surface."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator

import pytest

from gpulse.model.catalog import Gpu, Process, Server
from gpulse.model.select import EVERYTHING
from gpulse.model.serving import ServerSample
from gpulse.model.snapshot import Snapshot
from gpulse.sampling.clock import ManualClock
from gpulse.sampling.plan import ChosenGpus
from gpulse.sampling.sampler import Sampler
from gpulse.serving.tracking import ServingTracker
from gpulse.sources.simulated.source import SimulatedSource
from gpulse.surfaces.report.recorded_samples import RecordedSample, of_gpus

SERVED = "6"  # the demo's GPU with a model server


@pytest.fixture
def sampler() -> Iterator[Sampler]:
    clock = ManualClock()
    found = Sampler(SimulatedSource(clock=clock.monotonic), EVERYTHING, clock=clock).open()
    yield found
    found.close()


def models(snapshot: Snapshot) -> list[str | None]:
    return [one.model for one in snapshot.serving]


@pytest.mark.parametrize(("chosen", "count"), [(["0", "1"], 0), ([SERVED], 1), (["all"], 1)])
def test_a_sample_has_only_the_servers_of_the_chosen_gpus(sampler: Sampler, chosen: list[str], count: int) -> None:
    sampler.choose(chosen)
    assert len(models(sampler.read())) == count
    sampler.begin()
    assert len(models(sampler.begun())) == len(models(sampler.complete())) == count


def test_a_recording_is_reduced_in_the_same_way(sampler: Sampler) -> None:
    whole = [RecordedSample(sampler.read()) for _ in range(2)]
    assert [models(one.snapshot) for one in of_gpus(whole, ["0", "1"], {})] == [[], []]


def test_a_server_of_which_no_process_is_known_stays() -> None:
    configured = Server({"server": "vllm", "endpoint": "10.0.0.7:8000"})
    elsewhere = Server({"server": "vllm", "endpoint": "127.0.0.1:8000", "pid": 7})
    here = Server({"server": "vllm", "endpoint": "127.0.0.1:8001", "pid": 8, "gpus": ("GPU-0",)})
    kept = Snapshot(0.0, serving=(configured, elsewhere, here)).with_gpus((Gpu({"uuid": "GPU-0"}),)).serving
    assert kept == (configured, here)


@pytest.mark.parametrize(
    "words",
    [
        ("status",),
        ("status", "--json"),
        ("query", "--query-gpu=index", "--format=json"),
        ("why", "--for", "2s", "--json"),
        ("record", "--count", "2", "-o", "-"),
        ("report", "--format", "json"),
    ],
)
def test_no_verb_names_a_server_of_another_gpu(words: tuple[str, ...]) -> None:
    command = [sys.executable, "-m", "gpulse", *words, "--demo", "--gpu", "0,1"]
    done = subprocess.run(command, capture_output=True, text=True, check=True, timeout=60)
    assert done.stdout
    assert "Qwen" not in done.stdout


OF_ALL_GPUS = ("gpu_generation_rate", "tokens_per_joule", "cost_per_million", "memory_other")


@pytest.mark.parametrize(("chosen", "known"), [(["0"], False), (["0", "1"], True), (["all"], True)])
def test_figures_over_all_gpus_of_a_server_need_all_gpus(chosen: list[str], known: bool) -> None:
    """A server with a process on GPUs 0 and 1: of GPU 0 alone, its tokens per GPU and per joule are not known."""
    gpus = [
        Gpu({"index": at, "uuid": f"GPU-{at}", "power_draw": 300.0}, processes=(Process({"pid": 7}),))
        for at in range(2)
    ]
    selected = ChosenGpus(gpus, chosen, {})
    seen = selected.of(dict(enumerate(gpus)))
    tracker = ServingTracker()
    for at in (0.0, 1.0):
        sample = ServerSample(
            "vllm", "m", "127.0.0.1:8000", at, counts={"generation_tokens": 1000.0 * at}, pid=7, pids=(7,)
        )
        [server] = tracker.readings([sample], seen, at, selected.whole)
    assert server.generation_rate == 1000.0
    assert server.gpu_generation_rate == (500.0 if known else None)
    assert server.tokens_per_joule == (pytest.approx(1000 / 600, abs=0.001) if known else None)
    assert known or {server.gaps[key] for key in OF_ALL_GPUS} == {"skipped"}
