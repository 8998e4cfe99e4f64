"""The lines at the end of a command."""

from __future__ import annotations

import signal
from typing import Any

import pytest

from gpulse.analysis.diagnosis.judge import diagnose
from gpulse.analysis.own_use import OtherProcess, OwnUse
from gpulse.analysis.summary import GpuSummary, Stats, Summary
from gpulse.monitor.report import ending, headline
from tests.unit.analysis.diagnosis.machines import samples

GIB = float(1 << 30)


def flat(value: float) -> Stats:
    return Stats(value, value, value, value, value)


def gpu(index: int, own: OwnUse | None = None) -> GpuSummary:
    return GpuSummary(
        index=index,
        uuid=f"GPU-{index}",
        name="NVIDIA H200",
        memory_total=141 * GIB,
        stats={"utilization": flat(90.0), "memory_used": flat(70 * GIB)},
        energy=None,
        idle_share=0.0,
        throttled_seconds=0.0,
        throttled={},
        power_capped=0.0,
        own=own or OwnUse(),
    )


def summary(*gpus: GpuSummary, seconds: float = 5.0, samples: int = 5, **program: float) -> Summary:
    return Summary(
        "",
        seconds,
        samples=samples,
        steps=0,
        items=0.0,
        waited=0.0,
        gpus=gpus,
        host={},
        program={key: flat(value) for key, value in program.items()},
    )


@pytest.mark.parametrize(
    ("status", "seconds", "end"),
    [
        (0, 0.04, "40.0 ms · exit 0"),
        (7 << 8, 59.94, "59.9 s · exit 7"),
        (255 << 8, 60.0, "1m00s · exit 255"),
        (signal.SIGTERM, 3723.0, "1h02m · ended by SIGTERM"),
        (signal.SIGSEGV | 0x80, 1.0, "1.00 s · ended by SIGSEGV"),
        (40, 1.0, "1.00 s · ended by signal 40"),
    ],
)
def test_the_first_line_says_how_long_and_how_it_ended(status: int, seconds: float, end: str) -> None:
    assert headline("python train.py", status, seconds) == f"gpulse: python train.py · {end}"


def test_a_command_is_cut_and_harmless() -> None:
    line = headline("python " + "x" * 100, 0, 1.0)
    assert line.startswith(f"gpulse: python {'x' * 52}… · ")
    assert headline("a\x1b[2J\nb\u202e\udcff", 0, 1.0).isprintable()


def test_gpus_then_the_machine() -> None:
    used = OwnUse(True, memory_peak=4 * GIB)
    lines = ending(summary(gpu(3, used), tree_cpu_percent=150.0, tree_memory=3 * GIB, tree_read=2e6))
    assert lines[0].startswith("  GPU 3 H200 · util 90 % (p95 90) · peak memory 4.0 GiB of 141 GiB")
    assert lines[1].startswith("  CPU 150 % (p95 150) of ")
    assert "peak host memory 3.0 GiB · read 1.9 MiB/s" in lines[1]
    assert len(lines) == 2


def test_memory_that_no_driver_tells_is_not_zero() -> None:
    assert "memory" not in ending(summary(gpu(0, OwnUse(True))))[0]
    assert "peak memory 0 B" in ending(summary(gpu(0, OwnUse(True, memory_peak=0.0))))[0]


def test_others_are_one_line_and_their_work_is_theirs() -> None:
    other = OtherProcess(7, "ada", "python", 60 * GIB, 80.0)
    used = OwnUse(True, memory_peak=4 * GIB, sm_utilization=20.0, energy=50.0, energy_estimated=True, others=[other])
    shared = gpu(0, used)
    shared.energy, shared.energy_estimated = 50.0, True
    first, second = ending(summary(shared))
    assert first == "  GPU 0 H200 · SM share 20 % · peak memory 4.0 GiB of 141 GiB · 50.0 J (its share, estimated)"
    assert second == "  Others: ada's python (pid 7) on GPU 0: 60.0 GiB, SM share 80 %."


def test_a_longer_run_has_a_verdict() -> None:
    whole = summary(gpu(0, OwnUse(True)), seconds=20.0)
    whole.diagnosis = diagnose(samples({"tensor_active": 0, "dram_active": 88}, seconds=20.0))
    lines = ending(whole)
    assert lines[-2].startswith("  → GPU 0: Limited by memory bandwidth")
    assert lines[-1] == f"  GPU 0 time  {'m' * 23}l  m memory-bound 95 % · l small kernels and launches ~5 %"
    assert sum("Limited by" in line for line in lines) == 1


@pytest.mark.parametrize(
    ("words", "lines"),
    [
        ({"summary": summary(samples=0, seconds=0.1)}, []),
        ({"summary": summary(samples=0)}, ["  GPUs were not sampled: the driver did not respond."]),
        ({"summary": summary(samples=0), "problem": "why\x1b."}, ["  GPUs were not sampled: why\\x1b."]),
        (
            {"summary": summary(), "problem": "why."},
            ["  sampling was incomplete: why.", "  none of its processes used a GPU"],
        ),
        ({"summary": summary()}, ["  none of its processes used a GPU"]),
    ],
)
def test_what_could_not_be_seen_is_told(words: dict[str, Any], lines: list[str]) -> None:
    assert ending(**words) == lines


def test_in_a_container_all_it_could_use_are_told_with_a_warning() -> None:
    first, second = ending(summary(gpu(0)))
    assert "cannot be told apart" in first
    assert second.startswith("  GPU 0")
