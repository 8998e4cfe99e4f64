"""Looking back: the time that is meant, the numbers that were recorded, holes that stay holes."""

from __future__ import annotations

import csv
import json
import math
import re
import time
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gpulse.errors import UnknownGpu, UsageError
from gpulse.model.catalog import Process
from gpulse.model.snapshot import Snapshot
from gpulse.model.when import parse_when, stretch
from gpulse.present.cells import period_text
from gpulse.present.theme import Theme
from gpulse.store.history import HistoryReader
from gpulse.store.lines import csv_rows
from gpulse.surfaces.history.exports import csv_lines, plots, strips, table_rows, to_plain
from gpulse.surfaces.history.tables import (
    HistoryAnswer,
    HistoryRequest,
    events_list,
    metrics_named,
    over_time,
    overview,
    process_rows,
    processes_table,
    usage_table,
)
from tests.golden import check_golden
from tests.unit.store.history.ticks import START, gpu, tick, write

NOW = time.mktime((2026, 11, 15, 12, 0, 0, 0, 0, -1))
EVIL = Process({"pid": 7, "name": "py\x1b[31mthon", "user": "ada\n", "memory_used": 2 << 30, "job": "slurm:9"})


@pytest.fixture
def path(tmp_path: Path) -> str:
    """Ten minutes of two GPUs: one busy with a spike of memory and a hole, one that is lost on the way."""
    file = str(tmp_path / "history.db")

    def ticks(at: int) -> object:
        memory = (70 << 30) if at == 300 else 10 << 30
        busy = gpu("GPU-a", (EVIL,), utilization=50.0 + at % 2, memory_used=memory, power_draw=300.0)
        return tick(at, busy, gpu("GPU-b", index=1, utilization=0.0, memory_used=0))

    write(file, (ticks(at) for at in range(600) if not 100 <= at < 200))  # type: ignore[misc]
    return file


def answer(path: str, metrics: tuple[str, ...] = ("utilization", "memory_used"), **more: object) -> HistoryAnswer:
    question = HistoryRequest(START, START + 600, metrics, more.get("gpus"), 60, str(more.get("by", "user")))  # type: ignore[arg-type]
    with HistoryReader(path) as reader:
        return HistoryAnswer(reader, question)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("2h", NOW - 7200),
        ("30m", NOW - 1800),
        ("03:00", NOW - 9 * 3600),
        ("23:30", NOW - 12.5 * 3600),
        ("2026-11-15 11:00", NOW - 3600),
        ("2026-11-15T11:00:30", NOW - 3570),
        ("2026-11-14", NOW - 36 * 3600),
        ("1970-01-01T00:00:10Z", 10.0),
        ("1970-01-01T01:00:10+01:00", 10.0),
    ],
)
def test_a_moment_is_what_a_person_means(text: str, expected: float) -> None:
    assert parse_when(text, NOW) == expected


@pytest.mark.parametrize("text", ["", "25:00", "2026-13-01", "2x", "-1h", "\x1b"])
def test_what_is_no_time_is_said_so(text: str) -> None:
    with pytest.raises(UsageError):
        parse_when(text, NOW)


@given(st.text(max_size=30))
def test_any_text_is_a_time_or_a_usage_error(text: str) -> None:
    try:
        assert math.isfinite(parse_when(text, NOW))
    except UsageError:
        pass


def test_a_stretch_is_two_hours_unless_told() -> None:
    assert stretch(None, None, None, NOW) == (NOW - 7200, NOW)
    assert stretch("10m", None, "1h", NOW) == (NOW - 4200, NOW - 3600)
    assert stretch(None, "02:00", "03:00", NOW) == (NOW - 10 * 3600, NOW - 9 * 3600)
    with pytest.raises(UsageError, match="ends before"):
        stretch(None, "1h", "2h", NOW)
    with pytest.raises(UsageError, match="both given"):
        stretch("1h", "2h", None, NOW)


def test_nvidia_smis_names_are_metrics_too() -> None:
    assert metrics_named(["utilization.gpu", "power_draw"]) == ["utilization", "power_draw"]


def test_a_spike_of_one_second_is_in_the_figures(path: str) -> None:
    found = answer(path)
    memory = over_time(found.series(found.gpus[0], "memory_used"))
    assert memory is not None
    assert memory.max == pytest.approx(70 << 30, rel=1e-4)
    assert "(70.0 GiB)" in "\n".join(overview(found))


def test_the_tables_hold_no_control_characters(path: str) -> None:
    found = answer(path)
    text = "\n".join([*overview(found), *events_list(found.events, NOW)])
    assert "\x1b" not in text
    assert "ada" in text


def test_who_used_what_is_told_by_any_owner_and_only_of_the_gpus_asked_for(path: str) -> None:
    assert usage_table(answer(path, by="job").usage, "job")[1].startswith("slurm:9")
    assert [use.owner for use in answer(path).usage] == ["ada\n"]
    assert answer(path, gpus=["1"]).usage == []


def test_gpus_are_named_by_number_or_uuid(path: str) -> None:
    assert [gpu.uuid for gpu in answer(path, gpus=["1", "GPU-a"]).gpus] == ["GPU-b", "GPU-a"]
    with pytest.raises(UnknownGpu, match="this machine has GPUs 0, 1"):
        answer(path, gpus=["7"])


def test_the_csv_is_read_back(path: str) -> None:
    rows = [*csv.DictReader(csv_lines(answer(path)))]
    assert {row["gpu"] for row in rows} == {"0", "1"}
    assert max(float(row["memory_used.max"]) for row in rows) == pytest.approx(70 << 30, rel=1e-4)
    assert {float(row["utilization"]) for row in rows if row["gpu"] == "1"} == {0.0}
    assert not [row for row in rows if row["time"][14:19] in ("02:00", "02:30")]  # where nothing was recorded


def test_events_are_csv_too_with_times_in_utc(path: str) -> None:
    rows = [*csv.DictReader(csv_rows(table_rows(answer(path), "events")))]
    assert {"start", "stop"} <= {row["kind"] for row in rows}
    assert all(row["time"].endswith("Z") and row["text"] for row in rows)


def test_times_have_their_zone_and_periods_of_days_both_dates(path: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TZ", "CET-1")
    time.tzset()
    try:
        found = answer(path)
        assert re.match(r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d to \d\d:\d\d:\d\d CET, 10m00s$", overview(found)[0])
        assert events_list(found.events, NOW)[0].startswith("TIME (CET) ")
        week = period_text(NOW - 7 * 86_400, NOW)
        assert re.fullmatch(r"\d{4}-11-08 [\d:]+ to \d{4}-11-15 [\d:]+ CET", week)
    finally:
        monkeypatch.undo()
        time.tzset()


def test_the_json_has_null_for_what_is_not_there(path: str) -> None:
    plain = json.loads(json.dumps(to_plain(answer(path)), allow_nan=False))
    series = plain["gpus"][0]["series"]["utilization"]
    assert len(series["mean"]) == len(plain["times"])
    assert None in series["mean"]
    assert plain["usage"][0]["user"] == "ada\n"


def test_a_plot_leaves_a_hole_where_nothing_was_recorded(path: str) -> None:
    lines = [line.render(Theme(unicode=True), 70) for line in plots(answer(path, gpus=["0"]), 70, Theme(unicode=True))]
    lowest = lines[7][10:]
    assert [lowest[at] == " " for at in (0, 8, 12, 15, 18, 21, 40, 59)] == [
        at in (12, 15, 18) for at in (0, 8, 12, 15, 18, 21, 40, 59)
    ]
    assert max(map(len, lines)) <= 70


@pytest.mark.parametrize(("unicode", "columns"), [(True, 80), (False, 80), (True, 120)])
def test_every_plot_has_its_axis_and_the_page_says_which_time(
    path: str, unicode: bool, columns: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TZ", "UTC")
    time.tzset()
    theme = Theme(unicode=unicode)
    lines = [line.render(theme, columns) for line in plots(answer(path), columns, theme)]
    axes = [line for line in lines if re.fullmatch(r" +\d\d:\d\d(:\d\d)? +\d\d:\d\d(:\d\d)? +\d\d:\d\d(:\d\d)?", line)]
    assert len(axes) == len([line for line in lines if line.startswith("GPU ")]) > 1
    assert re.match(r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d to \d\d:\d\d:\d\d UTC  ", lines[0])
    check_golden(f"history/plot-{columns}{'' if unicode else '-ascii'}", lines)


def test_nothing_recorded_is_said(tmp_path: Path) -> None:
    file = str(tmp_path / "history.db")
    write(file, [tick(0, gpu(utilization=1.0))])
    with HistoryReader(file) as reader:
        later = HistoryAnswer(reader, HistoryRequest(START + 9000, START + 9600, ("utilization",), None, 10, "user"))
    assert overview(later)[-1] == "nothing was recorded in this time"
    assert plots(later, 80, Theme()) == []


def test_a_strip_shows_when_a_gpu_was_busy_and_who_held_it(path: str) -> None:
    theme = Theme(unicode=True)
    lines = [line.render(theme, 80) for line in strips(answer(path), 80, theme)]
    assert lines[0] == "Utilization of each GPU"
    assert lines[1].startswith("GPU 0  ▄▄▄▄▄▄▄▄▄")
    assert "    ▄" in lines[1]  # the hole
    assert lines[1].endswith("ada\\x0a 8m18s")
    assert set(lines[2][7:]) <= {"▁", " "}  # never busy, and not held
    assert lines[3].split() == [time.strftime("%H:%M", time.localtime(START + at)) for at in (0, 300, 600)]


def test_gpus_are_named_as_everywhere_and_bring_their_instances(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "GPU-b")
    file = str(tmp_path / "history.db")
    parts = tuple(gpu(f"MIG-{at}-of-the-first", index=at, utilization=1.0) for at in (0, 1))
    first = gpu("GPU-a", utilization=1.0, pci_bus_id="00000000:17:00.0").replace(instances=parts)
    write(file, [tick(0, first, *(gpu(f"GPU-{name}", index=at, utilization=1.0) for at, name in ((1, "b"), (2, "c"))))])

    def named(*words: str) -> list[str]:
        return [found.uuid for found in answer(file, gpus=list(words)).gpus]

    assert named("1-2") == ["GPU-b", "GPU-c"]
    assert named("visible") == ["GPU-b"]
    assert named("0") == named("17:00.0") == ["GPU-a", "MIG-0-of-the-first", "MIG-1-of-the-first"]
    assert named("mig-1") == ["MIG-1-of-the-first"]
    assert len(named("all")) == 5


def test_what_was_never_seen_to_end_lasts_until_the_last_sample(tmp_path: Path) -> None:
    file = str(tmp_path / "history.db")
    hot = ("hw_thermal_slowdown",)
    write(file, (tick(at, gpu("GPU-a", utilization=1.0, throttle_reasons=hot)) for at in range(120)))
    with HistoryReader(file) as reader:
        during, after = (
            HistoryAnswer(reader, HistoryRequest(START + start, START + 9000, ("utilization",), None, 60, "user"))
            for start in (60, 600)
        )
    (line,) = [line for line in events_list(during.events, during.now) if "too hot" in line]
    assert "1m59s so far" in line
    assert after.events == []


def test_processes_with_their_peak_and_how_they_ended(tmp_path: Path) -> None:
    file = str(tmp_path / "history.db")

    def ticks(at: int) -> Snapshot:
        both = [
            Process(
                {"pid": pid, "user": "ada", "name": "python", "command": f"python {pid}.py", "running_time": at + 9}
            )
            for pid in (1, 2)
            if pid == 1 or at < 300
        ]
        last = {297: 20, 298: 40, 299: 70}.get(at, 4)  # steps until the end, as of batches that grow
        held = [one.replace(memory_used=(last if one.pid == 2 else 4) << 30) for one in both]
        return tick(
            at, gpu("GPU-a", tuple(held), utilization=50.0, memory_used=sum(one.memory_used or 0 for one in held))
        )

    write(file, map(ticks, range(600)))
    found = answer(file)
    rows = [row.split("  ") for row in processes_table(found)]
    cells = {row[1].strip() or row[2].strip(): [cell.strip() for cell in row if cell.strip()] for row in rows}
    clock = time.strftime("%H:%M:%S", time.localtime(START + 300))
    assert cells["1"][-2:] == ["still there", "python 1.py"]
    assert cells["2"][-2:] == [f"out of memory {clock}", "python 2.py"]
    assert cells["2"][-4] == "70.0 GiB"
    (first, _) = csv.DictReader(csv_rows(table_rows(found, "processes")))
    assert (first["pid"], first["gpus"], first["ended"]) == ("1", "0", "still there")


def test_the_end_of_a_process_is_told_however_rarely_it_was_sampled(tmp_path: Path) -> None:
    file = str(tmp_path / "history.db")

    def ticks(at: int) -> Snapshot:
        age = at if at < 1200 else at - 1100  # the same PID again, of another process
        one = Process({"pid": 5, "user": "ada", "name": "python", "running_time": float(age), "memory_used": 1 << 30})
        there = (one,) if at < 900 or 1500 <= at < 2400 else ()
        return tick(at, gpu("GPU-a", there, utilization=50.0))

    write(file, map(ticks, range(0, 3600, 300)))
    with HistoryReader(file) as reader:
        found = HistoryAnswer(reader, HistoryRequest(START, START + 3600, ("utilization",), None, 60, "user"))
    clocks = [time.strftime("ended %H:%M:%S", time.localtime(START + at)) for at in (900, 2400)]
    assert [row["ended"] for row in process_rows(found)] == clocks
