"""A recording is read as far as it is whole, and a line that is wrong is named."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bench.corruption import recording_rounds
from gpulse.errors import RecordingError
from gpulse.model.codec import from_line
from gpulse.store.lines import is_right
from gpulse.store.recording import read_recording
from tests.unit.recordings import frames, numbers, recorded, text_of, write


@pytest.mark.parametrize("packed", [False, True])
def test_snapshots_come_back_in_order(tmp_path: Path, packed: bool) -> None:
    path = write(tmp_path / "x.ndjson", text_of(frames(3)), packed)
    assert list(read_recording(path)) == frames(3)


def test_packed_is_seen_from_the_content_not_from_the_name(tmp_path: Path) -> None:
    path = write(tmp_path / "x.gz", text_of(frames(2)))
    assert list(read_recording(path)) == frames(2)


@pytest.mark.parametrize("packed", [False, True])
def test_a_last_line_cut_short_is_left_out(tmp_path: Path, packed: bool) -> None:
    path = write(tmp_path / "x", text_of(frames(3))[:-20], packed)
    assert list(read_recording(path)) == frames(2)


def test_a_last_line_cut_inside_a_character_is_left_out(tmp_path: Path) -> None:
    path = write(tmp_path / "x", text_of(frames(2)).encode() + b'{"schema": 1, "host": {"name": "\xc3')
    assert list(read_recording(path)) == frames(2)


def test_a_packed_recording_whose_writer_died_gives_what_is_whole(tmp_path: Path) -> None:
    path = tmp_path / "x.gz"
    write(path, text_of(frames(400)), packed=True)
    path.write_bytes(path.read_bytes()[:-12])
    read = list(read_recording(str(path)))
    assert len(read) > 300
    assert read == frames(400)[: len(read)]


@given(keep=st.floats(0, 1))
def test_a_packed_recording_cut_anywhere_is_a_beginning_of_the_whole(
    tmp_path_factory: pytest.TempPathFactory, keep: float
) -> None:
    path = tmp_path_factory.mktemp("cut") / "x.gz"
    write(path, text_of(frames(40)), packed=True)
    content = path.read_bytes()
    path.write_bytes(content[: 2 + int(keep * (len(content) - 2))])
    read = list(read_recording(str(path)))
    assert read == frames(40)[: len(read)]


def test_a_packed_recording_without_any_sound_line_is_an_error_that_names_it(tmp_path: Path) -> None:
    path = tmp_path / "x.gz"
    write(path, text_of(frames(400)), packed=True)
    content = bytearray(path.read_bytes())
    content[12:300] = b"\xff" * 288
    path.write_bytes(content)
    with pytest.raises(RecordingError, match=r"x\.gz"):
        list(read_recording(str(path)))


def test_a_damaged_line_is_left_out_and_named(tmp_path: Path) -> None:
    lines = recorded(frames(3)).splitlines(keepends=True)
    changed = lines[1].replace('"utilization": 1', '"utilization": 9')
    path = write(tmp_path / "x", "".join([lines[0], "\n", "garbage\n", changed, lines[2]]))
    damaged: list[int] = []
    assert numbers(list(read_recording(path, damaged))) == [0, 2]
    assert damaged == [3, 4]


def test_a_checksum_is_one_more_key_that_others_may_ignore(tmp_path: Path) -> None:
    (line,) = recorded(frames(1)).splitlines()
    assert [*json.loads(line)][-1] == "check"
    assert from_line(line) == frames(1)[0]
    assert is_right(line.encode())
    assert is_right(line.replace("30", "31").encode()) is False
    assert is_right(text_of(frames(1)).encode()) is None


def test_a_whole_last_line_of_another_schema_is_an_error_too(tmp_path: Path) -> None:
    path = write(tmp_path / "x", text_of(frames(1)).replace('"schema": 1', '"schema": 2'))
    with pytest.raises(RecordingError, match="schema 2"):
        list(read_recording(path))


def test_blank_lines_do_not_matter(tmp_path: Path) -> None:
    path = write(tmp_path / "x", "\n\n" + text_of(frames(1)) + "  \n" + text_of(frames(1)) + "\n")
    assert len(list(read_recording(path))) == 2


@pytest.mark.parametrize("content", ["", "\n"])
def test_an_empty_file_holds_nothing(tmp_path: Path, content: str) -> None:
    assert list(read_recording(write(tmp_path / "x", content))) == []


def test_a_file_that_is_missing_or_a_folder_is_an_error_that_names_it(tmp_path: Path) -> None:
    for path in (tmp_path / "missing.ndjson", tmp_path):
        with pytest.raises(RecordingError, match=str(path)):
            list(read_recording(str(path)))


def test_a_file_that_is_no_text_is_an_error(tmp_path: Path) -> None:
    path = write(tmp_path / "x", b"\x80\x81\n\x82\n" * 3)
    with pytest.raises(RecordingError):
        list(read_recording(path))


@pytest.mark.parametrize(
    ("name", "lines", "most"), [("run.ndjson", 60, 2 + 512 // 400), ("run.ndjson.gz", 150, 150 // 2)]
)
def test_a_hundred_random_corruptions_show_nothing_wrong(tmp_path: Path, name: str, lines: int, most: int) -> None:
    _, lost, _, wrong = recording_rounds(tmp_path, name, 100, seed=2, lines=lines)
    assert wrong == []
    assert lost <= most
