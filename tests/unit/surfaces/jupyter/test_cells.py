"""What each cell of a kernel took: its memory before and after, what it still holds, and how long the GPU waited."""

from __future__ import annotations

import os
import time
from pathlib import Path
from typing import Any, Literal

import pytest

from gpulse.model.catalog import Gpu, Process
from gpulse.model.snapshot import Snapshot
from gpulse.sources.processes import LinuxMachine
from gpulse.store.cell_log import CellLog, CellSpan
from gpulse.surfaces.jupyter.cells import CurvePoint, KernelRecord, KernelWatch, cell_figures, thinned
from gpulse.surfaces.jupyter.kernels import Kernel

GIB = 2.0**30


def curve(*memory: float | None, sm: float | None = 50.0) -> list[CurvePoint]:
    """One point per second from 0 on, memory in GiB."""
    return [CurvePoint(float(at), None if one is None else one * GIB, sm, 100.0) for at, one in enumerate(memory)]


def span(start: float, end: float | None, id: str = "") -> CellSpan:
    return CellSpan(id or f"{start}", None, 1, "x", start, end, None if end is None else True)


def in_gib(figures: dict[str, Any], *names: str) -> list[float | None]:
    return [None if (value := figures[name]) is None else value / GIB for name in names]


def test_a_cell_is_told_what_it_took_at_most_and_still_holds() -> None:
    points = curve(1, 1, 9, 5, 5, 4, 4)
    [loads] = cell_figures([span(1.5, 2.5)], points)
    assert in_gib(loads, "before", "peak", "after", "held") == [1, 9, 5, 3], "1 GiB of it was freed later"


def test_memory_that_was_freed_later_is_held_by_nobody() -> None:
    [first, second] = cell_figures([span(0.5, 1.5), span(3.5, 4.5)], curve(0, 8, 8, 8, 2, 0, 0))
    assert in_gib(first, "before", "after", "held") == [0, 8, 0]
    assert in_gib(second, "before", "after", "held") == [8, 0, 0]


def test_cells_that_no_sample_tells_apart_are_told_together() -> None:
    [first, second] = cell_figures([span(0.2, 0.4), span(0.5, 0.8)], curve(0, 8, 8))
    assert [first["held"], first["beside"]] == [None, 0]
    assert in_gib(second, "before", "after", "held") == [0, 8, 8], "the longer one has the figures of both"
    assert second["beside"] == 1


def test_a_short_cell_in_which_nothing_changed_is_told_apart() -> None:
    [short, long] = cell_figures([span(0.2, 0.4), span(0.5, 3.5)], curve(1, 1, 8, 8, 8))
    assert in_gib(short, "before", "after", "held") == [1, 1, 0]
    assert in_gib(long, "before", "after", "held") == [1, 8, 7]
    assert long["beside"] == 0


def test_cells_that_follow_each_other_at_once_share_the_last_sample_between_them() -> None:
    [first, second, third] = cell_figures(
        [span(0.5, 2.5), span(2.5, 4.5), span(4.5, 5.5)], curve(0, 8, 8, 8, 20, 12, 12)
    )
    assert in_gib(first, "before", "after", "held") == [0, 8, 8]
    assert in_gib(second, "before", "after", "held") == [8, 20, 4]
    assert in_gib(third, "before", "after", "held") == [20, 12, 0]
    [slow, after] = cell_figures(
        [span(0.5, 9.5), span(9.5, 30.0)], [point for point in curve(*range(10)) if point.time < 5]
    )
    assert [slow["after"], slow["beside"]] == [None, 0], "its last sample was too long before its end"
    assert [after["before"], after["after"], after["beside"]] == [0, None, 1]


def test_a_cell_that_runs_is_told_what_it_took_so_far() -> None:
    [running] = cell_figures([span(0.5, None)], curve(1, 2, 6))
    assert in_gib(running, "before", "peak", "after", "held") == [1, 6, 6, 5]


def test_a_cell_waited_only_where_the_kernel_holds_memory_and_enough_samples_tell() -> None:
    assert cell_figures([span(0.5, 4.5)], curve(1, 1, 1, 1, 1, 1, sm=0.0))[0]["waited"] == 4.0
    assert cell_figures([span(0.5, 4.5)], curve(1, 1, 1, 1, 1, 1, sm=90.0))[0]["waited"] == 0.0
    rising = [*curve(1, 1, 1, sm=0.0), *(CurvePoint(at, GIB, 85.0, 1.0) for at in (3.0, 4.0, 5.0))]
    assert cell_figures([span(0.5, 5.5)], rising)[0]["waited"] == 0.0, (
        "the share of before stood until the next reading"
    )
    for points in (curve(0, 0, 0, 0, 0, 0, sm=0.0), curve(1, 1, 1, 1, 1, sm=None), curve(1, 1, sm=0.0)):
        assert cell_figures([span(0.5, 4.5)], points)[0]["waited"] is None


def test_unknown_memory_is_unknown_and_never_zero() -> None:
    [figures] = cell_figures([span(0.5, 1.5)], curve(None, None, None))
    assert set(figures.values()) <= {None, 0}
    assert figures["held"] is None


def test_thinning_keeps_the_peak_the_dip_and_the_order() -> None:
    points = curve(*([1.0] * 500), 70, *([2.0] * 700), 0.5, *([3.0] * 300))
    kept = thinned(points, 100)
    assert len(kept) <= 110
    assert [point.time for point in kept] == sorted(point.time for point in kept)
    memory = [(point.memory or 0.0) / GIB for point in kept]
    assert (max(memory), min(memory)) == (70, 0.5)
    assert thinned(points, 5000) == points


@pytest.fixture(autouse=True)
def _own_numbers(monkeypatch: pytest.MonkeyPatch) -> None:
    """Tests may run in a container; these pids are ours."""
    monkeypatch.setattr(LinuxMachine, "isolated", lambda self: False)


def machine(time: float, *gpus: Gpu) -> Snapshot:
    return Snapshot(time, gpus)


def gpu(index: int, *processes: Process, state: Literal["ok", "lost"] = "ok", power: float = 300.0) -> Gpu:
    values: dict[str, Any] = {"uuid": f"GPU-{index}", "index": index, "power_draw": power, "memory_used": 1e9}
    return Gpu(values, state=state, processes=processes)


def process(pid: int, memory: float, sm: float) -> Process:
    return Process({"pid": pid, "memory_used": memory * GIB, "sm_utilization": sm})


def test_the_curve_of_a_kernel_is_its_own_on_a_machine_busy_with_others() -> None:
    watch = KernelWatch(lambda: {"k": 50, "remote": None})
    watch.add(
        machine(
            1.0,
            gpu(0, process(50, 10, 60), process(70, 60, 20)),
            gpu(1, process(50, 20, 40)),
            gpu(2, process(70, 60, 90)),
        )
    )
    plain = watch.answer(kernel("k"), 0.0, 10.0, 400)
    assert plain["memory"] == [30 * GIB]
    assert plain["sm"] == [50.0], "the mean over its two GPUs"
    assert plain["power"] == [300.0 * 0.75 + 300.0]
    assert watch.answer(kernel("remote"), 0.0, 10.0, 400)["memory"] == [], "unknown is not zero"


def test_in_a_container_that_hides_who_is_on_the_gpus_nothing_is_zero(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(LinuxMachine, "isolated", lambda self: True)
    watch = KernelWatch(lambda: {"k": 50})
    watch.add(machine(1.0, gpu(0, process(70, 60, 20))))
    assert watch.answer(kernel("k"), 0.0, 10.0, 400)["memory"] == []
    watch.add(machine(2.0, gpu(0)))
    assert watch.answer(kernel("k"), 0.0, 10.0, 400)["memory"] == []


def test_memory_on_a_lost_gpu_is_unknown_and_a_gpu_of_others_does_not_matter() -> None:
    watch = KernelWatch(lambda: {"k": 50})
    watch.add(machine(1.0, gpu(0, process(50, 10, 60)), gpu(1, state="lost")))
    watch.add(machine(2.0, gpu(0, state="lost"), gpu(1, process(70, 1, 1))))
    watch.add(machine(3.0, gpu(0, process(50, 10, 60)), gpu(1)))
    watch.add(machine(4.0, gpu(0, state="lost"), gpu(1, state="lost")))
    assert watch.answer(kernel("k"), 0.0, 10.0, 400)["memory"] == [10 * GIB, None, 10 * GIB]


def test_a_long_day_stays_bounded() -> None:
    record = KernelRecord()
    for at in range(9000):
        used = {"GPU-0": gpu(0, process(50, 40.0 if at == 77 else 1.0, 0))}
        record.add(float(at), used, frozenset({50}))
    assert len(record.curve) <= 4001
    assert max(point.memory or 0.0 for point in record.curve) == 40 * GIB


def kernel(id: str, idle_since: float | None = None) -> Kernel:
    return Kernel(id, None, "a.ipynb", "a.ipynb", "busy" if idle_since is None else "idle", idle_since, 50)


def test_what_the_browser_and_the_kernel_saw_is_one_list(tmp_path: Path) -> None:
    path = tmp_path / "kernel-k.json"
    path.touch()
    CellLog(str(path)).append(span(10.0, 12.0, "both"))
    watch = KernelWatch(lambda: {"k": 50}, lambda kernel: str(path))
    watch.tell("k", [span(10.1, 12.1, "both"), span(20.0, None, "cut off"), span(30.0, None, "runs")])
    cells = watch.answer(kernel("k"), 0.0, 100.0, 400)["cells"]
    assert [(cell["id"], cell["start"], cell["end"]) for cell in cells] == [
        ("both", 10.0, 12.0),
        ("cut off", 20.0, 30.0),
        ("runs", 30.0, None),
    ]
    idle = watch.answer(kernel("k", 35.0), 0.0, 100.0, 400)["cells"]
    assert idle[-1]["end"] == 35.0, "nothing runs in a kernel that is idle"


def test_a_kernel_that_jupyter_takes_for_idle_is_busy_while_a_cell_is_known_to_run() -> None:
    own = Kernel("k", None, "a.ipynb", "a.ipynb", "idle", time.time(), os.getpid())
    watch = KernelWatch(lambda: {"k": os.getpid()})
    watch.tell("k", [span(time.time(), None, "runs")])
    [row] = watch.table([own], machine(1.0), True)["kernels"]
    assert (row["state"], row["idle_since"]) == ("busy", None)
    watch.tell("k", [span(time.time(), time.time() + 1, "runs")])
    own.state, own.idle_since = "idle", 7.0
    assert watch.table([own], machine(1.0), True)["kernels"][0]["state"] == "idle"
    watch.tell("k", [span(1.0, None, "of a process before")])
    assert watch.table([own], machine(1.0), True)["kernels"][0]["state"] == "idle"


def test_a_kernel_that_is_gone_is_forgotten() -> None:
    there = {"k": 50}
    watch = KernelWatch(lambda: there)
    watch.tell("k", [span(1.0, 2.0)])
    watch.add(machine(3.0, gpu(0)))
    there.clear()
    watch.add(machine(4.0, gpu(0)))
    plain = watch.answer(kernel("k"), 0.0, 10.0, 400)
    assert (plain["cells"], plain["times"]) == ([], [])
