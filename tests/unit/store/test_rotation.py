"""A recording in several files: in order, and never more than allowed."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gpulse.errors import RecordingError
from gpulse.store.recorder import Rotation
from gpulse.store.recording import read_recording
from tests.unit.recordings import frames, numbers, text_of

LINE = len(text_of(frames(1)))


def files(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


def read_in_order(folder: Path) -> list[float | None]:
    return [number for name in files(folder) for number in numbers(list(read_recording(str(folder / name))))]


def record(rotation: Rotation, count: int) -> int:
    written = sum(rotation.write(sample) for sample in frames(count))
    rotation.close()
    return written


def test_without_a_limit_there_is_the_one_file(tmp_path: Path) -> None:
    assert record(Rotation(str(tmp_path / "run.ndjson")), 5) == 5
    assert files(tmp_path) == ["run.ndjson"]


@pytest.mark.parametrize("end", [".ndjson", ".ndjson.gz", ""])
def test_names_sort_as_the_files_follow_each_other(tmp_path: Path, end: str) -> None:
    record(Rotation(str(tmp_path / f"run{end}"), size=1), 12)
    assert files(tmp_path) == [f"run-{number:04d}{end}" for number in range(1, 13)]
    assert read_in_order(tmp_path) == list(range(12))


def test_a_file_is_full_after_a_time(tmp_path: Path) -> None:
    record(Rotation(str(tmp_path / "run.ndjson"), span=4.0), 10)
    counts = [len(list(read_recording(str(tmp_path / name)))) for name in files(tmp_path)]
    assert counts == [4, 4, 2]


def test_a_clock_that_was_set_back_begins_a_new_file(tmp_path: Path) -> None:
    rotation = Rotation(str(tmp_path / "run.ndjson"), span=100.0)
    for sample in (frames(6)[5], frames(1)[0], frames(2)[1]):
        rotation.write(sample)
    rotation.close()
    assert len(files(tmp_path)) == 2


def test_only_the_newest_are_kept(tmp_path: Path) -> None:
    record(Rotation(str(tmp_path / "run.ndjson"), size=2 * LINE - 10, keep=3), 20)
    assert len(files(tmp_path)) == 3
    assert read_in_order(tmp_path) == list(range(14, 20))


@settings(max_examples=40, deadline=None)
@given(most=st.integers(2, 12), size=st.integers(1, 20), packed=st.booleans())
def test_there_is_never_more_than_allowed(
    tmp_path_factory: pytest.TempPathFactory, most: int, size: int, packed: bool
) -> None:
    folder = tmp_path_factory.mktemp("most")
    end = ".gz" if packed else ""
    rotation = Rotation(str(folder / f"run{end}"), size=size * LINE, most=most * (LINE + 40))
    for sample in frames(30):
        assert rotation.write(sample)
        assert sum(path.stat().st_size for path in folder.iterdir()) <= most * (LINE + 40)
        assert rotation.size == sum(path.stat().st_size for path in folder.iterdir())
    rotation.close()
    left = read_in_order(folder)
    assert left == list(range(30))[-len(left) :]


def test_one_file_stops_before_it_is_too_big(tmp_path: Path) -> None:
    path = tmp_path / "run.ndjson"
    assert record(Rotation(str(path), most=4.5 * LINE), 20) == 4
    assert path.stat().st_size <= 4.5 * LINE
    assert numbers(list(read_recording(str(path)))) == [0, 1, 2, 3]


def test_files_of_an_earlier_recording_are_kept_continued_or_replaced(tmp_path: Path) -> None:
    path = str(tmp_path / "run.ndjson")
    record(Rotation(path, size=1), 3)
    with pytest.raises(RecordingError, match=r"run-0001\.ndjson already exists"):
        Rotation(path, size=1)
    record(Rotation(path, size=1, append=True), 2)
    assert read_in_order(tmp_path) == [0, 1, 2, 0, 1]
    record(Rotation(path, size=1, force=True), 2)
    assert files(tmp_path) == ["run-0001.ndjson", "run-0002.ndjson"]


def test_a_continued_one_counts_the_files_before(tmp_path: Path) -> None:
    path = str(tmp_path / "run.ndjson")
    record(Rotation(path, size=1), 3)
    record(Rotation(path, size=1, keep=2, append=True), 3)
    assert files(tmp_path) == ["run-0005.ndjson", "run-0006.ndjson"]


def test_files_that_only_look_alike_are_left_alone(tmp_path: Path) -> None:
    others = ["run-1.ndjson", "run-final.ndjson", "run-0001.ndjson.gz", "rerun-0001.ndjson", "run.ndjson"]
    for name in others:
        (tmp_path / name).write_text("mine\n")
    record(Rotation(str(tmp_path / "run.ndjson"), size=1, keep=1, force=True), 3)
    assert all((tmp_path / name).read_text() == "mine\n" for name in others)


def test_a_file_that_somebody_took_away_ends_nothing(tmp_path: Path) -> None:
    rotation = Rotation(str(tmp_path / "run.ndjson"), size=1, keep=2)
    for sample in frames(2):
        rotation.write(sample)
    (tmp_path / "run-0001.ndjson").unlink()
    assert rotation.write(frames(3)[2])
    rotation.close()


@pytest.mark.parametrize("end", [".ndjson", ".ndjson.gz"])
def test_a_file_that_somebody_removes_ends_nothing(tmp_path: Path, end: str) -> None:
    rotation = Rotation(str(tmp_path / f"run{end}"), size=1, keep=2)
    for at, each in enumerate(frames(6)):
        if at == 3:
            (tmp_path / f"run-0003{end}").unlink()
        rotation.write(each)
    assert rotation.size == sum(path.stat().st_size for path in tmp_path.iterdir())
    rotation.close()
    assert files(tmp_path) == [f"run-0005{end}", f"run-0006{end}"]
