"""Who used what over time, and two periods compared, from a history that is written for the test."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from gpulse.live.past import Past
from gpulse.model.catalog import Gpu, Process
from gpulse.model.event import Event
from gpulse.model.snapshot import Snapshot
from gpulse.present.runs import COUNTED
from gpulse.store.history import HistoryReader, HistoryWriter
from tests.unit.store.history.ticks import START, TurnedClock

if TYPE_CHECKING:
    from gpulse.model.metric import Value

HOUR = 3600.0
GIB = 1 << 30


def process(pid: int, user: str, at: float, **more: str) -> Process:
    values: dict[str, Value] = {"pid": pid, "user": user, "name": "python", "memory_used": 8 * GIB}
    return Process({**values, "running_time": at + 60.0, "command": f"python {user}.py", **more})


def machine(at: float) -> Snapshot:
    """For an hour ada holds both GPUs, then grace holds one at twice the power, and an instance of the second is ben's."""
    later = at >= HOUR
    first = (process(1, "ada", at, job="slurm:7"),) if not later else (process(2, "grace", at),)
    second = (process(1, "ada", at, job="slurm:7"),) if not later else ()
    power = 400.0 if later else 200.0
    values = {"utilization": 90.0 if later else 40.0, "memory_used": 8.0 * GIB, "memory_total": 80.0 * GIB}
    part = Gpu(
        {"uuid": "MIG-1", "index": 0, "name": "MIG 1g.10gb", "slices": 1.0, "memory_total": 10.0 * GIB},
        processes=(process(3, "ben", at),),
    )
    return Snapshot(
        START + at,
        (
            Gpu({"uuid": "GPU-a", "index": 0, "power_draw": power, **values}, processes=first),
            Gpu(
                {"uuid": "GPU-b", "index": 1, "power_draw": power, **values},
                processes=second,
                instances=(part,) if later else (),
            ),
        ),
    )


@pytest.fixture(scope="module")
def path(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("usage") / "history.db"
    clock = TurnedClock()
    with HistoryWriter(str(path), clock=clock) as writer:
        for at in range(0, int(2 * HOUR), 10):
            clock.now = float(at)
            events = [Event(START + at, "xid", uuids=("GPU-a",), gpus=("0",), value=79.0)] if at == 5000 else []
            writer.add(machine(at), events)
    return path


@pytest.fixture(scope="module")
def past(path: Path) -> Iterator[Past]:
    past = Past(str(path))
    yield past
    past.close()


def usage(past: Past, by: str, start: float = 0.0, end: float = 2 * HOUR, points: int = 8) -> dict[str, dict]:  # type: ignore[type-arg]
    answer = past.usage(START + start, START + end, by, points, None, commands=True)
    assert len(answer["times"]) == points
    return {row["label"]: row for row in answer["usage"]}


def test_users_over_time(past: Past) -> None:
    found = usage(past, "user")
    assert [*found][:2] == ["ada", "grace"]
    assert found["ada"]["gpus"] == pytest.approx([2, 2, 2, 2, 0, 0, 0, 0], abs=0.05)
    assert found["grace"]["gpus"] == pytest.approx([0, 0, 0, 0, 1, 1, 1, 1], abs=0.05)
    assert found["ada"]["watts"][0] == pytest.approx(400.0, rel=0.05)
    assert found["grace"]["watts"][-2] == pytest.approx(400.0, rel=0.05)


def test_totals_are_those_of_the_history(past: Past, path: Path) -> None:
    found = usage(past, "user")
    with HistoryReader(str(path)) as reader:
        for total in reader.usage(START, START + 2 * HOUR):
            row = found[total.owner or "(no user)"]
            assert row["gpu_hours"] == total.gpu_hours
            assert row["energy"] == total.energy
            assert sum(row["gpus"]) / 4 == pytest.approx(total.gpu_hours, abs=0.01)
            assert None not in row["gpus"]


def test_jobs_and_those_without(past: Past) -> None:
    found = usage(past, "job")
    assert found["slurm:7"]["gpu_hours"] == pytest.approx(2.0, abs=0.05)
    assert found["(no job)"]["processes"] == 2


def test_processes_have_their_names_and_gpus(past: Past) -> None:
    found = usage(past, "process")
    ada = found["1 python"]
    assert (ada["pid"], ada["user"], ada["command"]) == (1, "ada", "python ada.py")
    assert sorted(ada["uuids"]) == ["GPU-a", "GPU-b"]
    assert ada["gpu_hours"] == pytest.approx(2.0, abs=0.05)
    assert found["3 python"]["uuids"] == ["MIG-1"]
    hidden = past.usage(START, START + HOUR, "process", 4, None, commands=False)
    assert not any("command" in row for row in hidden["usage"])


def test_gpus_and_instances_are_named_by_number(past: Past) -> None:
    assert {"0", "1", "1:0"} <= {*usage(past, "gpu")}


def test_a_gpu_counts_with_its_instances(past: Past) -> None:
    answer = past.usage(START, START + 2 * HOUR, "user", 4, ["GPU-b"], commands=True)
    assert {"ada", "ben"} <= {row["label"] for row in answer["usage"]}
    assert "grace" not in {row["label"] for row in answer["usage"]}


def test_part_of_an_hour_counts_in_proportion(past: Past) -> None:
    found = usage(past, "user", HOUR / 2, HOUR, points=3)
    assert found["ada"]["gpu_hours"] == pytest.approx(1.0, abs=0.05)
    assert found["ada"]["gpus"] == pytest.approx([2, 2, 2], abs=0.05)


def recorded(path: Path, *stretches: tuple[int, int]) -> Iterator[float]:
    """Record ada on both GPUs, one sample a second; yield after each and leave the history open."""
    clock = TurnedClock()
    with HistoryWriter(str(path), clock=clock) as writer:
        for start, end in stretches:
            for at in range(start, end):
                clock.now = float(at)
                writer.add(machine(at))
                yield START + at


@pytest.mark.parametrize("span", [60.0, 300.0, 900.0])
def test_who_holds_gpus_holds_them_up_to_the_live_edge(tmp_path: Path, span: float) -> None:
    samples = recorded(tmp_path / "history.db", (0, 200))
    past: Past | None = None
    for at, now in enumerate(samples):
        if at < 150:
            continue
        past = past or Past(str(tmp_path / "history.db"))
        (ada,) = [
            row
            for row in past.usage(now - span, now, "user", 120, None, commands=True)["usage"]
            if row["label"] == "ada"
        ]
        known = [value for value in ada["gpus"] if value is not None]
        assert known == pytest.approx([2.0] * len(known), abs=0.02)
        unknown = next(at for at, value in enumerate(reversed(ada["gpus"])) if value is not None)
        assert unknown * span / 120 <= 14.0
        assert ada["watts"][-1] is None or ada["watts"][-1] == pytest.approx(400.0, rel=0.1)
    assert past is not None
    past.close()
    samples.close()  # type: ignore[attr-defined]


def test_where_nothing_was_recorded_usage_is_unknown_and_the_rest_is_not_diluted(tmp_path: Path) -> None:
    for _ in recorded(tmp_path / "history.db", (0, 600), (1200, 1800)):
        pass
    past = Past(str(tmp_path / "history.db"))
    (row,) = [
        row
        for row in past.usage(START - 600, START + 1800, "process", 4, None, commands=True)["usage"]
        if row["label"] == "1 python"
    ]
    assert row["gpus"] == [None, pytest.approx(2.0, abs=0.01), None, pytest.approx(2.0, abs=0.01)]
    assert row["gpu_hours"] == pytest.approx(2 * 1200 / 3600, abs=0.01)
    past.close()


def test_the_first_interval_is_whole_although_recording_began_inside_it(tmp_path: Path) -> None:
    for _ in recorded(tmp_path / "history.db", (127, 2400)):
        pass
    past = Past(str(tmp_path / "history.db"))
    for points in (20, 40, 120):
        (row,) = [
            row
            for row in past.usage(START - 600, START + 2400, "user", points, None, commands=True)["usage"]
            if row["label"] == "ada"
        ]
        known = [value for value in row["gpus"] if value is not None]
        assert known == pytest.approx([2.0] * len(known), abs=0.1), points
    past.close()


def test_the_time_between_two_recorders_is_unknown(tmp_path: Path) -> None:
    for stretch in ((0, 10, 100), (114, 1, 160)):  # 10 s apart, then 14 s later a recorder with 1 s
        clock = TurnedClock()
        with HistoryWriter(str(tmp_path / "history.db"), clock=clock) as writer:
            for at in range(stretch[0], stretch[2], stretch[1]):
                clock.now = float(at)
                writer.add(machine(at))
    past = Past(str(tmp_path / "history.db"))
    (row,) = [
        row
        for row in past.usage(START + 80, START + 130, "user", 10, None, commands=True)["usage"]
        if row["label"] == "ada"
    ]
    past.close()
    two = pytest.approx(2.0, abs=0.01)
    assert row["gpus"] == [two, two, None, None, None, None, two, two, two, two]


def test_two_periods_side_by_side(past: Past) -> None:
    answer = past.comparison((START, START + HOUR), (START + HOUR, START + 2 * HOUR), None)
    figures = {row["title"]: row for row in answer["figures"]}
    assert figures["Utilization"]["a_text"] == "40 %"
    assert figures["Utilization"]["b_text"] == "90 %"
    assert figures["Utilization"]["difference"] == "▲ 50 points"
    assert figures["Utilization"]["matters"]
    assert figures["Peak memory"]["difference"] == "same"
    assert figures["Energy"]["a"] == pytest.approx(2 * 200 * HOUR, rel=0.02)
    assert figures["GPU hours in use"]["a"] == pytest.approx(2.0, abs=0.05)
    assert (figures[COUNTED["xid"]]["a"], figures[COUNTED["xid"]]["b"]) == (0, 1)
    assert any(text.startswith("Utilization: 40 % → 90 %") for text in answer["headline"])
    assert [(row["label"], row["a"], row["b"]) for row in answer["gpus"]] == [
        ("0", ["40 %", "200 W", "8.0 GiB"], ["90 %", "400 W", "8.0 GiB"]),
        ("1", ["40 %", "200 W", "8.0 GiB"], ["90 %", "400 W", "8.0 GiB"]),
    ]


def test_the_same_period_twice_differs_in_nothing(past: Past) -> None:
    period = (START, START + HOUR)
    answer = past.comparison(period, period, None)
    assert not [row for row in answer["figures"] if row["matters"]]
    assert answer["headline"][0].startswith("No significant differences")
    assert "each run" not in answer["headline"][0] + answer["note"]


def test_a_period_without_records_has_no_figures(past: Past) -> None:
    answer = past.comparison((1000.0, 2000.0), (START, START + HOUR), None)
    assert answer["a"]["recorded"] == 0
    assert {row["a_text"] for row in answer["figures"] if row["title"] in ("Utilization", "Energy")} == {"–"}
    assert answer["headline"] == ["Nothing to compare: nothing was recorded in the first period."]
    assert {(row["difference"], row["matters"]) for row in answer["figures"]} == {("–", False)}


def test_a_late_sample_counts_for_its_interval_and_no_more(tmp_path: Path) -> None:
    clock = TurnedClock()
    with HistoryWriter(str(tmp_path / "history.db"), clock=clock) as writer:
        for at in [*range(30), *range(39, 70)]:  # a busy machine: one sample comes 10 s after the one before
            clock.now = float(at)
            writer.add(machine(at))
    past = Past(str(tmp_path / "history.db"))
    answer = past.usage(START, START + 69, "user", 6, None, commands=True)
    (row,) = [row for row in answer["usage"] if row["label"] == "ada"]
    assert row["gpus"] == [pytest.approx(2.0, abs=0.02)] * 6
