"""`gpulse usage` as a user types it."""

from __future__ import annotations

import csv
import json
import time
from pathlib import Path

import pytest

from gpulse.cli.main import main
from gpulse.model.catalog import Gpu, Host, Process
from gpulse.model.snapshot import Snapshot
from gpulse.store.history import HistoryWriter
from tests.unit.moments import MOMENTS, begin_at
from tests.unit.store.history.ticks import TurnedClock


def history(path: Path, host: str, uuid: str, user: str = "ada", hours: int = 2) -> str:
    """Record a machine with one GPU for the last hours; half of the time nobody is there."""
    now = time.time()
    clock = TurnedClock()
    with HistoryWriter(str(path), clock=clock) as writer:
        for at in range(0, hours * 3600 + 1, 60):
            clock.now = float(at)
            running = Process({"pid": 7, "user": user, "name": "python", "running_time": at + 10.0})
            running = running.replace(sm_utilization=50.0, project="<b>x</b>\x1b[31m")
            there = (running,) if at <= hours * 1800 else ()
            gpu = Gpu({"uuid": uuid, "index": 0, "name": "H100", "power_draw": 500.0}, processes=there)
            writer.add(Snapshot(now - hours * 3600 + at, (gpu,), Host({"name": host})))
    return str(path)


@pytest.fixture(params=MOMENTS.values(), ids=list(MOMENTS))
def one(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    begin_at(monkeypatch, request.param)
    monkeypatch.setenv("GPULSE_CONFIG", str(tmp_path / "config.toml"))
    return history(tmp_path / "one.db", "gpu1", "GPU-1")


def test_a_table_that_adds_up(one: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["usage", one, "--since", "3h", "--gpu-price", "2", "--carbon", "400"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert "gpu1 · 1 GPU" in lines[0]
    cells = {line.split("  ")[0]: line.split() for line in lines[2:] if line}
    assert cells["ada"][1:6] == ["1.00", "50.0", "%", "0.50", "0.50"]
    assert cells["(not used)"][2:5] == ["1.00", "50.0", "%"]
    assert cells["total"][1:4] == ["2.00", "100.0", "%"]
    assert {"2.00", "200"} <= set(cells["ada"])  # the cost of an hour, and grams of 0.5 kWh
    assert lines[-1] == "Not recorded, and not counted: 1.0 GPU hours in which nothing was recording."


def test_several_machines_are_one(one: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    two = history(tmp_path / "two.db", "gpu2", "GPU-2", "bob")
    assert main(["usage", one, two, "--by", "host,user", "--format", "json"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert (told["hosts"], told["gpus"], round(told["capacity_hours"], 2)) == (["gpu1", "gpu2"], 2, 4.0)
    used = {(row["host"], row["user"]): round(row["gpu_hours"], 2) for row in told["usage"] if row["kind"] == "used"}
    assert used == {("gpu1", "ada"): 1.0, ("gpu2", "bob"): 1.0}
    assert main(["usage", one, one]) == 2
    assert "both recorded GPU GPU-1" in capsys.readouterr().err


def test_files_for_other_programs(one: str, tmp_path: Path) -> None:
    assert main(["usage", "--by", "project", "-o", str(tmp_path / "u.csv"), one]) == 0
    rows = [*csv.DictReader((tmp_path / "u.csv").read_text().splitlines())]
    assert [(row["kind"], row["gpu_hours"]) for row in rows] == [("used", "1"), ("unused", "1")]
    assert main(["usage", "--by", "project", "-o", str(tmp_path / "u.html"), "--since", "7d", one]) == 0
    page = (tmp_path / "u.html").read_text()
    assert all(text in page for text in ("&lt;b&gt;x&lt;/b&gt;", "By project", "By day"))
    assert not any(text in page for text in ("\x1b", "<b>x", "<script", "http"))  # nothing to run or to fetch


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--month", "2026-13"], "'2026-13' is not a month"),
        (["--month", "--since", "2h"], "more than one period"),
        (["--format", "pdf"], "pdf"),
    ],
)
def test_what_makes_no_sense_is_said(one: str, words: list[str], said: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["usage", one, *words]) == 2
    assert said in capsys.readouterr().err
