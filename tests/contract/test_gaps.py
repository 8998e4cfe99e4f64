"""Time in which nothing was recorded is a gap on every surface, whatever its length and however old it is."""

from __future__ import annotations

import json
import shutil
import sqlite3
from typing import Any

import pytest

from gpulse.cli.main import main
from gpulse.errors import RecordingError
from gpulse.live.past import Past
from gpulse.model.catalog import Gpu, Process
from gpulse.model.codec import time_text
from gpulse.store.history import HistoryReader
from gpulse.surfaces.report.account import account
from gpulse.surfaces.report.recorded_samples import remembered
from tests.unit.store.history.ticks import START, gpu, tick, write
from tests.unit.surfaces.web.asking import app_of, ask

STEP = 5  # seconds between samples
FIRST = 4 * 3600 + 203  # seconds at which recording stops: inside a window, a minute and ten seconds
END = 12 * 3600
TIERS = (0, 10, 60, 600)
BUSY, WATTS = 80, 300.0


class Outage:
    """A history with one gap, of which only rows of `finest` seconds or more are left."""

    def __init__(self, path: str, length: int, finest: int) -> None:
        self.path, self.finest = path, finest
        times = samples(length)
        self.gap = START + max(at for at in times if at <= FIRST), START + min(at for at in times if at > FIRST)
        self.length = self.gap[1] - self.gap[0]
        self.middle = sum(self.gap) / 2
        self.inside = self.gap[0] + self.length / 3, self.gap[1] - self.length / 3

    def past(self) -> Past:
        return Past(self.path)

    def ask(self, target: str) -> Any:
        past = self.past()
        try:
            return ask(app_of(past=past), target)
        finally:
            past.close()


def samples(length: int) -> list[int]:
    return [at for at in range(0, END, STEP) if not FIRST < at < FIRST + length]


@pytest.fixture(scope="module", params=[30, 600, 3 * 3600], ids=["30 s", "10 min", "3 h"])
def recorded(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> tuple[str, int]:
    path = str(tmp_path_factory.mktemp("gap") / "history.db")
    ada = [Process({"pid": 7, "name": "train", "user": "ada", "memory_used": 1 << 30, "running_time": 9e5})]

    def machine(at: int) -> Gpu:  # the counter of energy goes on in the gap
        return gpu(processes=tuple(ada), utilization=BUSY, power_draw=WATTS, energy=1e6 + WATTS * at)

    write(path, (tick(at, machine(at), cpu_percent=10.0) for at in samples(request.param)))
    return path, request.param


@pytest.fixture(scope="module", params=TIERS, ids=["every sample", "rows of 10 s", "rows of 1 min", "rows of 10 min"])
def outage(
    request: pytest.FixtureRequest, recorded: tuple[str, int], tmp_path_factory: pytest.TempPathFactory
) -> Outage:
    path = str(tmp_path_factory.mktemp("aged") / "history.db")
    shutil.copy(recorded[0], path)
    connection = sqlite3.connect(path)
    # as when the time of the finer ones is over; the newest are always there
    old = "tier < ? AND start < ?", (request.param, START + END - 3600)
    connection.execute(f"DELETE FROM part WHERE block IN (SELECT id FROM block WHERE {old[0]})", old[1])
    connection.execute(f"DELETE FROM block WHERE {old[0]}", old[1])
    connection.commit()
    connection.close()
    return Outage(path, recorded[1], request.param)


def between(start: float, end: float) -> str:
    return f"from={start}&to={end}"


def test_a_snapshot_inside_it_is_not_there(outage: Outage) -> None:
    for at in (outage.gap[0] + STEP + 2, outage.middle, outage.gap[1] - 1):
        assert outage.ask(f"/api/snapshot?at={at}").status == 404
    for at in (outage.gap[0] - 1, outage.gap[1] + 1):
        answer = outage.ask(f"/api/snapshot?at={at}")
        assert answer.status == 200
        assert answer.json["gpus"][0]["utilization"] == BUSY


def test_the_history_inside_it_has_no_point_and_says_so(outage: Outage) -> None:
    start, end = outage.inside
    plain = outage.ask(f"/api/history?metrics=utilization&{between(start, end)}").json
    assert [series["mean"] for series in plain["series"]] == []
    assert plain["gaps"] == [[pytest.approx(start, abs=0.001), pytest.approx(end, abs=0.001)]]


@pytest.mark.parametrize("points", [5000, 600, 50, 5])
def test_the_history_around_it_has_no_value_inside_it(outage: Outage, points: int) -> None:
    first, last = outage.gap
    span = between(START, START + END)
    plain = outage.ask(f"/api/history?metrics=utilization&{span}&points={points}").json
    assert plain["gaps"] == [[first, last]]
    (series,) = plain["series"]
    inside = [(time, value) for time, value in zip(plain["times"], series["mean"], strict=True) if first <= time < last]
    assert [time for time, value in inside if value is not None and time > first] == []
    if outage.length > END / points and outage.length > outage.finest:
        assert [time for time, value in inside if value is None], "a line through these points would cross the gap"


def test_the_command_line_says_that_nothing_was_recorded(outage: Outage, capsys: pytest.CaptureFixture[str]) -> None:
    def said(*words: str) -> str:
        assert main(["history", "--file", outage.path, *words]) == 0
        return capsys.readouterr().out

    within = ("--from", time_text(outage.inside[0]), "--to", time_text(outage.inside[1]))
    assert "nothing was recorded in this time" in said(*within)
    around = ("--from", time_text(START), "--to", time_text(START + END))
    assert "not recorded: " in said(*around)
    plain = json.loads(said(*around, "--format", "json"))
    assert plain["gaps"] == [[time_text(outage.gap[0]), time_text(outage.gap[1])]]
    assert json.loads(said(*within, "--format", "json"))["usage"] == []


@pytest.mark.parametrize("points", [240, 24, 4])
def test_usage_over_time_has_no_dips(outage: Outage, points: int) -> None:
    span = between(START, START + END)
    (owner,) = [one for one in outage.ask(f"/api/usage?{span}&points={points}").json["usage"] if one["owner"] == "ada"]
    width = END / points
    for at, held in enumerate(owner["gpus"][:-1]):
        begin, end = START + at * width, START + (at + 1) * width
        if outage.gap[0] <= begin and end <= outage.gap[1]:
            assert held is None
        else:
            assert held == pytest.approx(1.0, abs=0.002)
            assert owner["watts"][at] == pytest.approx(WATTS, rel=0.01)
    assert owner["gpu_hours"] == pytest.approx((END - outage.length) / 3600, abs=0.01)
    assert owner["energy"] == pytest.approx(WATTS * (END - outage.length), rel=0.01)


def test_usage_inside_it_is_nothing(outage: Outage, capsys: pytest.CaptureFixture[str]) -> None:
    def hours(start: float, end: float) -> Any:
        span = ("--from", time_text(start), "--to", time_text(end))
        assert main(["usage", outage.path, *span, "--format", "json"]) == 0
        return json.loads(capsys.readouterr().out)

    inside = hours(*outage.inside)
    assert inside["used_hours"] == pytest.approx(0.0, abs=1e-6)
    assert not inside["capacity_hours"]
    whole = hours(START, START + END)
    assert (
        whole["capacity_hours"] == whole["used_hours"] == pytest.approx((END - STEP - outage.length) / 3600, abs=1e-6)
    )
    assert whole["unrecorded_hours"] == pytest.approx((outage.length + STEP) / 3600, abs=1e-6)


def test_a_report_counts_what_was_recorded(outage: Outage) -> None:
    run = account(remembered(START, START + END, outage.path), "the day")
    assert run.missing == pytest.approx(outage.length, abs=0.01)
    assert [(event.time, event.until) for event in run.events if event.kind == "gap"] == [outage.gap]
    assert run.summary.seconds == pytest.approx(END - outage.length, abs=max(STEP, 600))
    with pytest.raises(RecordingError, match="no samples in this time range"):
        account(remembered(*outage.inside, outage.path), "the outage")


def test_a_comparison_counts_what_was_recorded(outage: Outage) -> None:
    first, last = outage.gap
    past = outage.past()
    try:
        around = (first - 1800, last + 1800)
        plain = past.comparison(outage.inside, around, None)
    finally:
        past.close()
    assert plain["a"]["recorded"] == 0.0
    assert plain["b"]["recorded"] == pytest.approx(3600, abs=2 * STEP)
    assert "nothing was recorded" in plain["headline"][0]


def test_what_ended_and_what_began_is_known_to_the_second(outage: Outage) -> None:
    with HistoryReader(outage.path) as reader:
        recorded = reader.recorded(START, START + END)
    assert [(one.start, one.stop) for one in recorded.stretches] == [
        (START, outage.gap[0]),
        (outage.gap[1], START + END - STEP),
    ]
