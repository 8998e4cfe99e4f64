"""What type checkers must say of the public names: mypy checks this file with the tests, and nothing runs it.

Pyright in strict mode agrees with it as well.
"""

from __future__ import annotations

from typing_extensions import assert_type

import gpulse
from gpulse import Gpu, Monitor, Process, Recording, Snapshot
from gpulse.sinks import CsvSink, JsonlSink, Sample, Sink


class Mine(Sink):
    name = "mine"

    def write(self, sample: Sample) -> None:
        assert_type(sample.values["gpu0/utilization"], float)


def snapshots() -> None:
    snapshot = gpulse.snapshot(["utilization"], gpus=[0])
    assert_type(snapshot, Snapshot)
    assert_type(snapshot.host.load, "tuple[float, ...] | None")
    for gpu in snapshot.gpus:
        assert_type(gpu, Gpu)
        assert_type(gpu.utilization, "float | None")
        assert_type(gpu.name, "str | None")
        assert_type(gpu.throttle_reasons, "tuple[str, ...] | None")
        assert_type(gpu.persistence_mode, "bool | None")
        for process in gpu.processes:
            assert_type(process, Process)
            assert_type(process.memory_used, "float | None")
    assert_type(Gpu.utilization.title, str)
    with gpulse.pick(2, free_memory="40GiB", wait=60) as picked:
        assert_type(picked[0], Gpu)
        assert_type(picked.environ, "dict[str, str]")
    for each in gpulse.stream(0.5):
        assert_type(each, Snapshot)


async def asynchronous() -> None:
    async for one in gpulse.stream(0.5):
        assert_type(one, Snapshot)
    async with gpulse.stream() as stream:
        assert_type(await stream.__anext__(), Snapshot)


def recordings() -> None:
    with gpulse.open_recording("run.ndjson") as recording:
        assert_type(recording, Recording)
        assert_type(recording[0], Snapshot)
        assert_type(recording[1:3], Recording)
        assert_type(recording.duration, float)
        for event in recording.events:
            assert_type(event, gpulse.Event)
            assert_type(event.kind, str)
        assert_type(recording.between("2026-01-01T00:00:00Z", None), Recording)


def training() -> None:
    with Monitor(["csv:gpu.csv", JsonlSink("run.jsonl"), Mine()], interval=0.5, gpus="all") as monitor:
        monitor.mark("epoch", 3)
        for batch in monitor.batches([1, 2]):
            assert_type(batch, int)
    if (summary := monitor.summary()) is not None:
        assert_type(summary.energy, "float | None")
    Monitor(CsvSink("gpu.csv"))
    Monitor("wandb")


def measuring() -> None:
    with gpulse.measure("load", sync=True) as measurement:
        assert_type(measurement.energy, "float | None")

    @gpulse.measure
    def train(epochs: int) -> str:
        return str(epochs)

    @gpulse.measure("load", show=False)
    def load(count: int) -> str:
        return str(count)

    assert_type(train(3), str)
    assert_type(load(3), str)


def testing() -> None:
    with gpulse.testing.scripted(
        gpus=2, steps=[{0: {"utilization": 95}}, {1: "lost"}, {"host": {"cpu_percent": 3}}]
    ) as script:
        script.set(0, utilization=3)

    @gpulse.testing.scripted()
    def check(count: int) -> None: ...

    check(3)
