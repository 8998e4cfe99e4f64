"""Past runs on the disk: kept whole, few, private, and found by a word."""

from __future__ import annotations

import os
import stat
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gpulse.errors import UsageError
from gpulse.model.codec import time_text
from gpulse.store import runs
from gpulse.store.runs import earlier, free_id, keep, kept_runs, run_named, run_recorded, runs_folder


@pytest.fixture
def folder(tmp_path: Path) -> str:
    return str(tmp_path / "runs")


def entry(run: str, start: float = 1e9, **more: Any) -> dict[str, Any]:
    return {
        "schema": 1,
        "id": run,
        "start": time_text(start),
        "command": "python train.py",
        "folder": "/home/ada",
        **more,
    }


def test_a_run_is_kept_private_and_read_again(folder: str) -> None:
    path = keep(entry("20011116-064612-82c8a9", seconds=12.5), folder)
    assert path is not None
    assert stat.S_IMODE(os.stat(path).st_mode) == 0o600
    assert stat.S_IMODE(os.stat(folder).st_mode) == 0o700
    (run,) = kept_runs(folder)
    assert (run.id, run.short, run.start, run.seconds) == ("20011116-064612-82c8a9", "82c8a9", 1e9, 12.5)


def test_who_began_a_run_says_where_it_came_from_and_others_add_to_it(folder: str) -> None:
    keep(entry("a-1", state="running", git={"commit": "1a2b", "dirty": False}), folder)
    keep(entry("a-1", 1e9 + 5, command="other", throughput={"steps": 7, "mfu": None}, seconds=None), folder)
    keep(
        {
            "schema": 1,
            "id": "a-1",
            "start": time_text(1e9),
            "state": "ended",
            "throughput": {"steps": None, "energy": 3.0},
        },
        folder,
    )
    (run,) = kept_runs(folder)
    assert run.text("command") == "python train.py"
    assert run.start == 1e9
    assert run.text("state") == "ended"
    assert run.part("throughput") == {"steps": 7, "energy": 3.0, "mfu": None}


def test_the_oldest_are_dropped(folder: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(runs, "MOST", 3)
    for at in range(6):
        keep(entry(f"r-{at}", 1e9 + at), folder)
    assert [run.id for run in kept_runs(folder)] == ["r-5", "r-4", "r-3"]


def test_words_name_runs(folder: str) -> None:
    for at, run in enumerate(("20261116-000000-aa11", "20261116-000001-aa22", "20261116-000002-bb33", "mine")):
        keep(entry(run, 1e9 + at), folder)
    assert run_named("last", folder).id == "mine"
    assert run_named("last~2", folder).short == "aa22"
    assert run_named("bb", folder).short == "bb33"
    assert run_named("20261116-000000", folder).short == "aa11"
    assert run_named("mi", folder).id == "mine"
    for word, message in (
        ("aa", "2 runs have an id"),
        ("zz", "no run has an id"),
        ("last~9", "there is no run"),
        ("", "no run has an id"),
    ):
        with pytest.raises(UsageError, match=message):
            run_named(word, folder)


def test_a_whole_id_wins_over_one_that_starts_with_it(folder: str) -> None:
    keep(entry("x-aa"), folder)
    keep(entry("x-aab", 1e9 + 1), folder)
    assert run_named("aa", folder).id == "x-aa"


def test_earlier_runs_have_the_same_command_and_folder(folder: str) -> None:
    keep(entry("r-1"), folder)
    keep(entry("r-2", 1e9 + 1, command="python other.py"), folder)
    keep(entry("r-3", 1e9 + 2, folder="/home/bob"), folder)
    keep(entry("r-4", 1e9 + 3), folder)
    keep(entry("r-5", 1e9 + 4), folder)
    assert [run.id for run in earlier(run_named("r-4", folder), folder)] == ["r-1"]


def test_a_continued_run_gets_an_id_of_its_own(folder: str) -> None:
    assert free_id("r-1", folder) == "r-1"
    keep(entry("r-1"), folder)
    keep(entry("r-1.2", 1e9 + 1), folder)
    assert free_id("r-1", folder) == "r-1.3"


def test_the_run_of_a_recording(folder: str, tmp_path: Path) -> None:
    path = tmp_path / "run.ndjson.gz"
    keep(entry("r-1", recording=str(path)), folder)
    found = run_recorded(str(path), folder)
    assert found is not None
    assert found.id == "r-1"
    assert run_recorded("other.ndjson", folder) is None


def test_damaged_and_foreign_files_are_left_out(folder: str) -> None:
    keep(entry("r-1"), folder)
    for name, text in (
        ("000001000000000-half.json", '{"id": "ha'),
        ("000001000000000-list.json", "[1]"),
        ("notes.txt", "hello"),
    ):
        Path(folder, name).write_text(text)
    os.symlink("/etc/passwd", Path(folder, "000001000000000-link.json"))
    os.mkdir(Path(folder, "000001000000000-folder.json"))
    files = len(os.listdir("/proc/self/fd"))
    assert [run.id for run in kept_runs(folder)] == ["r-1"]
    assert len(os.listdir("/proc/self/fd")) == files


def test_the_folder_is_the_users_state_folder_or_stated_or_off(tmp_path: Path) -> None:
    assert runs_folder({"XDG_STATE_HOME": str(tmp_path)}) == str(tmp_path / "gpulse/runs")
    assert runs_folder({"GPULSE_RUNS": "/data/runs"}) == "/data/runs"
    assert runs_folder({"GPULSE_RUNS": "off"}) is None


@given(
    st.text(max_size=100),
    st.dictionaries(st.text(max_size=9), st.none() | st.integers() | st.text() | st.lists(st.text()), max_size=5),
)
def test_any_id_and_any_content_can_be_kept(
    tmp_path_factory: pytest.TempPathFactory, run: str, more: dict[str, Any]
) -> None:
    folder = str(tmp_path_factory.mktemp("runs"))
    told = {**more, "id": run, "start": time_text(1e9)}
    path = keep(told, folder)
    assert path is not None
    assert os.path.dirname(path) == folder
    (kept,) = kept_runs(folder)
    assert kept.id == run.encode("utf-8", "backslashreplace").decode() or not run.isprintable()
    assert kept.list("nothing") == []
    assert kept.number("start") is None
