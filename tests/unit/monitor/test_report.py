"""A summary as a person reads it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from gpulse.analysis.summary import GpuSummary, Stats, Summary
from gpulse.model.catalog import Gpu
from gpulse.monitor.report import gpu_line, report_text, summary_text

GIB = 1 << 30


def flat(value: float, p95: float | None = None) -> Stats:
    return Stats(value, value, value if p95 is None else p95, value, value)


def gpu(**changes: Any) -> GpuSummary:
    values: dict[str, Any] = {
        "index": 0,
        "uuid": "GPU-0",
        "name": "NVIDIA H100 80GB HBM3",
        "memory_total": 80 * GIB,
        "stats": {"utilization": flat(93.4, 99.0), "memory_used": flat(71 * GIB), "power_draw": flat(650.2)},
        "energy": None,
        "idle_share": 0.0,
        "throttled_seconds": 0.0,
        "throttled": {},
        "power_capped": 50.0,
    }
    return GpuSummary(**(values | changes))


def summary(name: str = "", seconds: float = 90.0, **changes: Any) -> Summary:
    values: dict[str, Any] = {
        "samples": 90,
        "steps": 0,
        "items": 0.0,
        "waited": 0.0,
        "gpus": (),
        "host": {},
        "program": {},
    }
    return Summary(name, seconds, **(values | changes))


def test_a_run_on_one_gpu() -> None:
    assert summary_text(summary(gpus=[gpu()])) == (
        "gpulse: 1m30s\n  GPU 0 H100 80GB HBM3 · util 93 % (p95 99) · peak memory 71.0 GiB of 80.0 GiB · 650 W"
    )


def test_everything_that_can_be_said() -> None:
    busy = gpu(
        stats={key: flat(40.0) for key in ("utilization", "sm_active", "tensor_active", "dram_active")},
        energy=58_500.0,
        idle_share=12.0,
        throttled_seconds=30.0,
        throttled={"hw_thermal_slowdown": 30.0},
    )
    text = summary_text(
        summary(steps=900, items=57_600.0, waited=9.0, gpus=[busy], program={"tree_cpu_percent": flat(412.0)})
    )
    head, line = text.splitlines()
    assert head == (
        "gpulse: 1m30s · 900 steps, 10/s · 640 items/s (1.02 J each) · waited for data 10 % of the time · 16.2 Wh · CPU 412 %"
    )
    for part in (
        "util 40 % (p95 40)",
        "SM 40 %",
        "tensor 40 %",
        "DRAM 40 %",
        "16.2 Wh",
        "idle 12 %",
        "throttled 30s (",
    ):
        assert part in line


def test_much_energy_is_written_as_on_the_bill() -> None:
    assert "2.50 kWh" in summary_text(summary(gpus=[gpu(energy=9e6)]))


def test_no_gpu_and_no_time_are_no_error() -> None:
    assert summary_text(summary(seconds=0.0)) == "gpulse: 0 µs"
    assert "0 %" in summary_text(summary(seconds=0.0, phases=(summary("train", 0.0),)))


def test_phases_are_a_table() -> None:
    phases = (
        summary("train", 60.0, steps=600, waited=6.0, gpus=[gpu(energy=39_000.0)], calls=3),
        summary("train/eval", 15.0, gpus=[gpu(index=1)]),
    )
    lines = summary_text(summary(gpus=[gpu()], phases=phases)).splitlines()[2:]
    assert len({len(line) for line in lines}) == 1
    assert lines[0].split() == [
        "phase",
        "times",
        "time",
        "share",
        "steps/s",
        "wait",
        "util",
        "peak",
        "energy",
    ]  # nobody knows SM
    assert " ".join(lines[1].split()) == "train 3 1m00s 67 % 10 10 % 93 % 71.0 GiB 10.8 Wh"
    assert " ".join(lines[2].split()) == "train/eval 1 15.0 s 17 % – – 93 % 71.0 GiB –"


def test_a_lost_gpu_says_so_and_unknown_figures_are_left_out() -> None:
    line = summary_text(summary(gpus=[gpu(state="lost", stats={}, index=None)])).splitlines()[1]
    assert line == "  GPU ? H100 80GB HBM3 · lost"


def test_names_cannot_act_on_a_terminal() -> None:
    hostile = "\x1b[2J\r\n\u202e"
    text = summary_text(
        summary(
            gpus=[gpu(name=hostile, throttled_seconds=5.0, throttled={hostile: 5.0})],
            phases=(summary(hostile, 1.0),),
        )
    ) + gpu_line(Gpu({"name": hostile}), 0)
    assert not {"\x1b", "\r", "\u202e"} & set(text)
    assert text.count("\n") == 3


def test_a_gpu_on_one_line() -> None:
    full = Gpu(
        {
            "name": "NVIDIA H100",
            "utilization": 98,
            "memory_used": 71 * GIB,
            "memory_total": 80 * GIB,
            "temperature": 62,
            "power_draw": 650.0,
        }
    )
    assert gpu_line(full, 1) == "GPU 1 H100 · util 98 % · 71.0/80.0 GiB · 62 °C · 650 W"
    assert gpu_line(Gpu({"name": "NVIDIA H100"}, state="lost"), 0) == "GPU 0 H100: lost"
    assert gpu_line(Gpu({"utilization": 0}), 0) == "GPU 0 unknown GPU · util 0 %"


def test_the_report_has_what_the_used_gpus_cost(tmp_path: Path) -> None:
    config = tmp_path / "config.toml"
    config.write_text('[cost]\nprice = 0.30\ngpu_price = 2.0\ncarbon = 400\ncurrency = "EUR"\n')
    unused = gpu(index=1)
    unused.own.used = False
    run = summary(seconds=3600.0, gpus=[gpu(energy=3.6e6), unused])
    last = report_text(run, {"GPULSE_CONFIG": str(config)}).splitlines()[-1]
    assert last.startswith("  cost 2.30 EUR (GPU time 2.00, energy 0.30)")
    assert "400 g CO2e" in last
    config.write_text("[cost]\nprice = 'x'\n")
    assert report_text(run, {"GPULSE_CONFIG": str(config)}).splitlines()[-1].startswith("  no cost: ")
    assert report_text(run, {"GPULSE_CONFIG": str(tmp_path / "none")}) == summary_text(run)


def test_step_times_are_in_the_first_line() -> None:
    run = summary(steps=10)
    run.step_time = Stats(0.2, 0.1, 0.5, 1.0, 0.05)
    assert "step 100 ms (p95 500 ms, max 1.00 s)" in summary_text(run).splitlines()[0]
