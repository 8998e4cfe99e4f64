"""The last minutes of each process."""

from __future__ import annotations

from gpulse.model.catalog import Gpu, Process
from gpulse.model.snapshot import Snapshot
from gpulse.surfaces.top.history import ProcessPast
from gpulse.surfaces.top.panels.menus import move_column, setting_lines
from gpulse.surfaces.top.state import ScreenSettings


def sample(*held: tuple[int, float | None]) -> Snapshot:
    rows = tuple(Process({"pid": pid, **({} if memory is None else {"memory_used": memory})}) for pid, memory in held)
    return Snapshot(0.0, (Gpu({"index": 0}, processes=rows),))


def test_the_values_of_a_process_come_back_in_order_with_holes() -> None:
    past = ProcessPast()
    for memory in (1.0, None, 3.0):
        past.add(sample((7, memory)))
    assert past.series(7, "memory_used") == [1.0, None, 3.0]
    assert past.series(7, "cpu_percent") == [None, None, None]


def test_memory_on_several_gpus_is_added_and_the_cpu_is_not() -> None:
    row = Process({"pid": 7, "memory_used": 2, "cpu_percent": 90.0})
    past = ProcessPast()
    past.add(Snapshot(0.0, (Gpu({"index": 0}, processes=(row,)), Gpu({"index": 1}, processes=(row,)))))
    assert (past.series(7, "memory_used"), past.series(7, "cpu_percent")) == ([4.0], [90.0])


def test_a_process_that_is_gone_is_forgotten_and_its_pid_starts_anew() -> None:
    past = ProcessPast()
    past.add(sample((7, 1.0)))
    past.add(sample((8, 2.0)))
    past.add(sample((7, 3.0)))
    assert past.series(7, "memory_used") == [3.0]


def test_thousands_of_processes_do_not_fill_the_memory() -> None:
    past = ProcessPast()
    past.add(sample(*((pid, 1.0) for pid in range(1, 5001))))
    assert sum(bool(past.series(pid, "memory_used")) for pid in range(1, 5001)) == 500


def test_a_column_can_be_moved_but_not_out_of_the_table() -> None:
    settings = ScreenSettings()
    titles = [label for label, _ in setting_lines(settings)]
    pid = titles.index("PID")
    assert move_column(settings, pid, 1) == "PID is column 3 of 10"
    assert settings.columns[:3] == ["gpu", "user", "pid"]
    for _ in range(20):
        move_column(settings, pid, -1)
    assert settings.columns[0] == "pid"
    assert move_column(settings, titles.index("Theme"), 1) == ""
