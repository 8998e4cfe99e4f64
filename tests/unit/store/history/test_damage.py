"""Damage costs what was hit: a wrong value is never shown, everything else is, and the loss is an event."""

from __future__ import annotations

import gzip
import sqlite3
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest

from bench.corruption import history_rounds
from gpulse.cli.main import main
from gpulse.present.events import event_text
from gpulse.store.history import HistoryError, HistoryReader, HistoryWriter, repair, verify
from tests.unit.store.history.ticks import START, TurnedClock, gpu, known, series, tick, write

OLD = Path(__file__).parents[3] / "captures/history/format-2.db.gz"


@cache
def _written(end: int) -> bytes:
    with TemporaryDirectory() as folder:
        path = Path(folder, "h.db")
        write(
            str(path),
            (tick(at, gpu(utilization=at % 90), gpu("GPU-b", index=1, utilization=7.0)) for at in range(0, end, 10)),
        )
        return path.read_bytes()


def history(path: str, end: int = 9000) -> None:
    """Write samples of two GPUs: one counts, one is constant."""
    Path(path).write_bytes(_written(end))


def change(path: str, *statements: str) -> None:
    """Change rows behind the back of the checksums, as a bad disk does."""
    connection = sqlite3.connect(path)
    for statement in statements:
        assert connection.execute(statement).rowcount != 0, statement
    connection.commit()
    connection.close()


def flip(path: str, table: str, column: str, condition: str) -> None:
    """Flip one bit in the middle of a value."""
    connection = sqlite3.connect(path)
    (id, data) = connection.execute(f"SELECT id, {column} FROM {table} WHERE {condition}").fetchone()
    changed = bytearray(data)
    changed[len(changed) // 2] ^= 4
    connection.execute(f"UPDATE {table} SET {column} = ? WHERE id = ?", (bytes(changed), id))
    connection.commit()
    connection.close()


def sentences(path: str, start: float = 0, end: float = 20_000) -> list[str]:
    """Return what is said of damage, after everything has been read."""
    with HistoryReader(path) as reader:
        reader.series(["utilization"], None, START + start, START + end, 100_000)
        return [event_text(event) for event in reader.events(START + start, START + end, {"history-damaged"})]


def test_one_flipped_bit_costs_one_gpu_ten_minutes(tmp_path: Path) -> None:
    path = str(tmp_path / "h.db")
    history(path)
    flip(path, "part", "data", "gpu = 1 AND block = (SELECT id FROM block WHERE tier = 0 ORDER BY id LIMIT 1 OFFSET 2)")
    found = series(path, "utilization", 0, 9000)
    lost = [moment - START for moment, value in zip(found.times, found.mean, strict=True) if value != value]
    assert lost == [float(at) for at in range(1200, 1800, 10)]
    assert all(
        value == (moment - START) % 90 for moment, value in zip(found.times, found.mean, strict=True) if value == value
    )
    assert known(series(path, "utilization", 0, 9000, uuid="GPU-b").mean) == [7.0] * 900
    (sentence,) = sentences(path)
    assert sentence.startswith("history of GPU 0 damaged from ")


@pytest.mark.parametrize("column", ["times", "parts", "start", "stop", "row_count", "tier", "covered"])
def test_a_damaged_row_of_a_block_is_taken_from_a_coarser_one(tmp_path: Path, column: str) -> None:
    path = str(tmp_path / "h.db")
    history(path)
    third = "id = (SELECT id FROM block WHERE tier = 0 ORDER BY id LIMIT 1 OFFSET 2)"
    if column in ("times", "parts"):
        flip(path, "block", column, third)
    else:
        change(path, f"UPDATE block SET {column} = {column} + 1 WHERE {third}")
    found = series(path, "utilization", 0, 9000)
    assert known(series(path, "utilization", 0, 9000, uuid="GPU-b").mean) == [7.0] * len(found.times)
    assert max(later - sooner for sooner, later in zip(found.times, found.times[1:], strict=False)) <= 10.0
    assert len(sentences(path)) == 1


def test_a_damaged_sample_is_left_out(tmp_path: Path) -> None:
    path = str(tmp_path / "h.db")
    history(path, 300)
    flip(path, "tick", "data", "time = (SELECT min(time) + 100 FROM tick)")
    found = series(path, "utilization", 0, 300)
    assert known(found.mean) == [float(at % 90) for at in range(0, 300, 10) if at != 100]
    assert len(sentences(path)) == 1
    write(path, (tick(at, gpu(utilization=at % 90)) for at in range(300, 1300, 10)))  # it is sealed without that sample
    assert known(series(path, "utilization", 0, 1300).mean) == [
        float(at % 90) for at in range(0, 1300, 10) if at != 100
    ]
    assert len(sentences(path)) == 1
    assert list(tmp_path.glob("*damaged*")) == []


def test_what_a_gpu_and_its_metrics_are_called_survives(tmp_path: Path) -> None:
    path = str(tmp_path / "h.db")
    history(path)
    whole = series(path, "utilization", 0, 9000).mean
    change(
        path,
        "UPDATE gpu SET uuid = 'GPU-x' WHERE id = 1",
        "UPDATE slot_copy SET key = 'power_draw'",
        "UPDATE layout SET slots = x'0000'",
    )
    assert series(path, "utilization", 0, 9000).mean == whole
    write(path, (tick(at, gpu(utilization=at % 90)) for at in range(9000, 9100, 10)))
    assert len(series(path, "utilization", 0, 9100).mean) == 910
    assert verify(path).sound  # opening it to write restored the rows


def test_sealing_and_joining_drop_only_what_is_damaged(tmp_path: Path) -> None:
    path, clock = str(tmp_path / "h.db"), TurnedClock()
    history(path, 3500)
    flip(path, "part", "data", "gpu = 1 AND block = (SELECT id FROM block WHERE tier = 10 LIMIT 1)")
    change(path, "UPDATE block SET start = start - 3 WHERE id = (SELECT max(id) FROM block WHERE tier = 0)")
    with HistoryWriter(path, clock=clock) as writer:
        for at in range(3500, 26_500, 10):  # hours are joined on the way, and a day ends
            clock.now = float(at)
            writer.add(tick(at, gpu(utilization=at % 90), gpu("GPU-b", index=1, utilization=7.0)))
        assert writer.problems == ()
    assert list(tmp_path.glob("*damaged*")) == []
    assert verify(path).sound
    found = series(path, "utilization", 0, 26_500, uuid="GPU-b")
    assert known(found.mean) == [7.0] * len(found.times)
    assert len(sentences(path)) == 2  # kept in the file from now on


def test_damaged_usage_is_left_out_and_said(tmp_path: Path) -> None:
    from gpulse.model.catalog import Process

    path = str(tmp_path / "h.db")
    someone = (Process({"pid": 5, "user": "ada", "running_time": 100.0}),)
    write(path, (tick(at, gpu(utilization=1, processes=someone)) for at in range(0, 9000, 10)))
    change(path, "UPDATE usage SET held = held * 64 WHERE hour = (SELECT min(hour) FROM usage)")
    with HistoryReader(path) as reader:
        (use,) = [use for use in reader.usage(START, START + 9000) if use.owner == "ada"]
    assert 1.0 < use.gpu_hours < 2.0
    assert len(sentences(path)) == 1


@pytest.mark.parametrize(
    ("version", "said"),
    [
        (
            1,
            "has format 1, which no release of gpulse wrote (this version reads 3); move it away, and a new one is begun;",
        ),
        (
            2,
            "has format 2, which no release of gpulse wrote (this version reads 3); move it away, and a new one is begun;",
        ),
        (4, "was written by a newer gpulse (format 4, this version reads 3); update gpulse,"),
    ],
)
def test_a_file_of_another_format_is_refused_in_one_sentence_and_left_as_it_is(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], version: int, said: str
) -> None:
    path = tmp_path / "h.db"
    path.write_bytes(gzip.decompress(OLD.read_bytes()))
    change_version(path, version)
    before = path.read_bytes()
    for use in (HistoryReader, HistoryWriter, verify):
        with pytest.raises(HistoryError, match="or name another file") as error:
            use(str(path))
        assert str(error.value) == f"{path} {said} or name another file."
    assert main(["history", "--file", str(path)]) == 1
    assert main(["history", "--file", str(path), "--repair"]) == 1
    assert capsys.readouterr().err.count(said) == 2
    assert path.read_bytes() == before
    assert not list(tmp_path.glob("*damaged*"))
    path.rename(tmp_path / "old.db")
    history(str(path), 700)
    assert len(series(str(path), "utilization", 0, 700).mean) == 70


def change_version(path: Path, version: int) -> None:
    """Write another format into the header of a file."""
    connection = sqlite3.connect(path)
    connection.execute(f"PRAGMA user_version={version}")
    connection.close()


def test_a_damaged_format_in_the_header_costs_nothing(tmp_path: Path) -> None:
    path = tmp_path / "h.db"
    history(str(path))
    change_version(path, 1)
    assert len(known(series(str(path), "utilization", 0, 9000).mean)) == 900
    HistoryWriter(str(path)).close()
    assert verify(str(path)).sound


def test_verify_says_what_is_damaged_and_repair_drops_only_that(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = str(tmp_path / "h.db")
    history(path)
    asked = ["history", "--file", path]
    assert main([*asked, "--verify"]) == 0
    assert "no damage found" in capsys.readouterr().out
    flip(path, "part", "data", "gpu = 1 AND block = (SELECT id FROM block WHERE tier = 0 ORDER BY id LIMIT 1 OFFSET 2)")
    change(path, "UPDATE tick SET time = time + 1 WHERE id = (SELECT max(id) - 3 FROM tick)")
    assert main([*asked, "--verify"]) == 1
    out = capsys.readouterr().out
    assert "history of GPU 0 damaged from" in out
    assert "damaged rows in table tick: 1" in out
    told = sentences(path)
    assert main([*asked, "--repair"]) == 0
    assert "repaired: what was damaged was deleted" in capsys.readouterr().out
    assert main([*asked, "--verify"]) == 0
    assert sentences(path) == told
    assert len(known(series(path, "utilization", 0, 9000).mean)) == 900 - 60 - 1
    assert known(series(path, "utilization", 0, 9000, uuid="GPU-b").mean) == [7.0] * 899


def test_a_repair_waits_for_nobody_who_writes(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = str(tmp_path / "h.db")
    history(path, 300)
    change(path, "UPDATE tick SET time = time + 1")
    with HistoryWriter(path):
        assert main(["history", "--file", path, "--repair"]) == 1
    assert "already writes" in capsys.readouterr().err


def test_damaged_pages_are_copied_as_far_as_they_are_readable(tmp_path: Path) -> None:
    path = tmp_path / "h.db"
    history(str(path))
    connection = sqlite3.connect(path)
    (root,) = connection.execute("SELECT rootpage FROM sqlite_master WHERE name = 'event'").fetchone()
    connection.close()
    data = bytearray(path.read_bytes())
    data[(root - 1) * 4096 : root * 4096] = b"\xff" * 4096
    path.write_bytes(data)
    whole = [float(at % 90) for at in range(0, 9000, 10)]
    assert known(series(str(path), "utilization", 0, 9000).mean) == whole  # from a copy in memory
    found = verify(str(path))
    assert found.pages
    assert "were saved into a new one" in repair(str(path), found)
    (aside,) = tmp_path.glob("h.db.damaged-*")
    assert aside.read_bytes() == data
    assert verify(str(path)).sound
    assert known(series(str(path), "utilization", 0, 9000).mean) == whole


def test_a_writer_that_meets_damaged_pages_goes_on_with_what_is_readable(tmp_path: Path) -> None:
    path, clock = tmp_path / "h.db", TurnedClock()
    history(str(path))
    connection = sqlite3.connect(path)
    (root,) = connection.execute("SELECT rootpage FROM sqlite_master WHERE name = 'event'").fetchone()
    connection.close()
    data = bytearray(path.read_bytes())
    data[(root - 1) * 4096 : root * 4096] = b"\xff" * 4096
    path.write_bytes(data)
    with HistoryWriter(str(path), clock=clock) as writer:
        for at in range(9000, 9100, 10):
            clock.now = float(at)
            writer.add(tick(at, gpu(utilization=at % 90)))
        (problem,) = writer.problems
    assert "saved into a new one" in problem.message
    found = known(series(str(path), "utilization", 0, 9100).mean)
    assert found[:900] == [float(at % 90) for at in range(0, 9000, 10)]
    assert found[-5:] == [float(at % 90) for at in range(9050, 9100, 10)]


def test_a_hundred_random_corruptions_show_nothing_wrong(tmp_path: Path) -> None:
    first, second = history_rounds(tmp_path, 100, seed=1, again=20, step=30)
    assert first.wrong + second.wrong == []
    assert sum(first.untold.values()) == 0
    assert first.lost["bit"] <= 2 * first.rounds["bit"]


@pytest.mark.parametrize("place", [0, 18, 100, 108, 1500, 4000])
def test_a_damaged_first_page_is_replaced(tmp_path: Path, place: int) -> None:
    path = tmp_path / "h.db"
    history(str(path))
    data = bytearray(path.read_bytes())
    data[place : place + 40] = b"\xb1" * 40
    path.write_bytes(data)
    assert known(series(str(path), "utilization", 0, 9000).mean) == [float(at % 90) for at in range(0, 9000, 10)]


@pytest.mark.parametrize("place", [63, 71])  # the format and whose file it is, in the header
def test_a_damaged_header_is_no_other_file(tmp_path: Path, place: int) -> None:
    path = tmp_path / "h.db"
    history(str(path), 1300)
    data = bytearray(path.read_bytes())
    data[place] ^= 2
    path.write_bytes(data)
    assert known(series(str(path), "utilization", 0, 1300).mean) == [float(at % 90) for at in range(0, 1300, 10)]
    write(str(path), [tick(1300, gpu(utilization=1))])
    assert len(series(str(path), "utilization", 0, 1301).mean) == 131


def test_damage_that_every_question_meets_is_remembered_once(tmp_path: Path) -> None:
    path = str(tmp_path / "h.db")
    history(path)
    flip(path, "part", "data", "gpu = 1 AND block IN (SELECT id FROM block WHERE tier = 0)")
    with HistoryReader(path) as reader:
        for _ in range(5):
            reader.series(["utilization"], None, START, START + 9000, 100_000)
        assert len(reader._damages) == 1
