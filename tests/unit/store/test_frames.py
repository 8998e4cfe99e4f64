"""The samples of a recording by place and time, without reading all of it."""

from __future__ import annotations

import random
from collections.abc import Iterator
from pathlib import Path

import pytest

from gpulse.errors import RecordingError
from gpulse.model.snapshot import Snapshot
from gpulse.store import packed
from gpulse.store.recorder import RecordingFile
from gpulse.store.recording import Frames, read_recording
from tests.unit.recordings import START, frames, numbers, recorded, text_of, write

ALL = float("inf")


@pytest.fixture(params=[False, True], ids=["plain", "packed"])
def recording(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Frames]:
    found = Frames(write(tmp_path / "x", text_of(frames(200)), request.param))
    yield found
    found.close()


def test_only_what_is_needed_is_found(recording: Frames) -> None:
    recording.find(9.5)
    assert len(recording) == 11
    assert not recording.whole
    recording.find(ALL)
    assert len(recording) == 200
    assert recording.whole


def test_any_sample_can_be_read_in_any_order(recording: Frames) -> None:
    recording.find(ALL)
    order = list(range(200))
    random.Random(7).shuffle(order)
    assert numbers([recording[place] for place in order]) == order


@pytest.mark.parametrize(("moment", "place"), [(-5, 0), (0, 0), (0.9, 0), (1, 1), (57.5, 57), (199, 199), (ALL, 199)])
def test_the_sample_at_a_moment_is_the_last_one_before(recording: Frames, moment: float, place: int) -> None:
    assert recording.at(moment) == place


def test_a_budget_ends_the_search_early_and_it_goes_on_later(recording: Frames) -> None:
    rounds = 0
    while not recording.whole:
        recording.find(ALL, 0.0)
        rounds += 1
    assert rounds == 201
    assert len(recording) == 200


def test_a_packed_one_is_read_from_places_within(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(packed, "_APART", 1000)
    path = tmp_path / "x.gz"
    packer = [packed.Packer(), packed.Packer()]
    halves = [frames(300)[:150], frames(300)[150:]]
    path.write_bytes(
        b"".join(
            b"".join(one.line(text_of([sample]).encode()) for sample in half) + one.end()
            for one, half in zip(packer, halves, strict=True)
        )
    )
    recording = Frames(str(path))
    recording.find(ALL)
    assert numbers([recording[place] for place in range(299, -1, -1)]) == list(range(299, -1, -1))
    assert numbers([recording[place] for place in range(0, 300, 7)]) == list(range(0, 300, 7))
    recording.close()


def test_time_goes_on_where_the_clock_was_set_back(tmp_path: Path) -> None:
    samples = [Snapshot(START + at, ()) for at in (0, 10, 20, 5, 15, 15)]
    recording = Frames(write(tmp_path / "x", text_of(samples)))
    recording.find(ALL)
    assert list(recording.times) == [0, 10, 20, 20, 30, 30]
    recording.close()


def test_lines_written_by_others_are_found_too(tmp_path: Path) -> None:
    other = '{"time": "2023-11-14T22:13:30Z", "gpus": [], "schema": 1}\n'
    recording = Frames(write(tmp_path / "x", "\n" + text_of(frames(1)) + other + "  \n"))
    recording.find(ALL)
    assert list(recording.times) == [0, 10]
    assert recording[1].time == START + 10
    recording.close()


def test_a_line_cut_off_is_left_out_and_a_whole_one_without_its_end_is_not(tmp_path: Path) -> None:
    for cut, count in ((20, 2), (1, 3)):
        recording = Frames(write(tmp_path / "x", text_of(frames(3))[:-cut]))
        recording.find(ALL)
        assert len(recording) == count
        assert numbers([recording[count - 1]]) == [count - 1]
        recording.close()


def test_a_damaged_line_is_left_out_and_those_after_it_are_found(tmp_path: Path) -> None:
    changed = recorded(frames(2)).replace('"utilization": 1', '"utilization": 9')
    recording = Frames(write(tmp_path / "x", changed + "garbage\n" + recorded(frames(2))))
    recording.find(ALL)
    assert recording.damaged == [2, 3]
    assert numbers([recording[place] for place in range(len(recording))]) == [0, 0, 1]
    recording.close()


def test_a_line_that_is_bad_further_on_is_named_when_it_is_read(tmp_path: Path) -> None:
    good = text_of(frames(2)).splitlines(keepends=True)
    recording = Frames(write(tmp_path / "x", good[0] + good[1].replace('"gpus": [', '"gpus": {')))
    recording.find(ALL)
    with pytest.raises(RecordingError, match="line 2"):
        recording[1]
    recording.close()


def test_a_packed_one_whose_own_checksum_is_damaged_has_all_its_lines(tmp_path: Path) -> None:
    path = tmp_path / "x.gz"
    write(path, text_of(frames(4000)), packed=True)
    content = bytearray(path.read_bytes())
    content[-8] ^= 0xFF
    path.write_bytes(content)
    recording = Frames(str(path))
    recording.find(ALL)
    assert len(recording) == 4000
    assert numbers([recording[place] for place in (3999, 17, 2500)]) == [3999, 17, 2500]
    recording.close()


def test_damage_in_a_packed_one_costs_at_most_a_minute(tmp_path: Path) -> None:
    path = tmp_path / "x.gz"
    file = RecordingFile(str(path))
    for sample in frames(600):
        file.write(sample)
    file.close()
    content = bytearray(path.read_bytes())
    for place in (3, len(content) // 2):  # in the header, and in the middle
        content[place] ^= 0x10
    path.write_bytes(content)
    recording = Frames(str(path))
    recording.find(ALL)
    assert 600 - 2 * 60 <= len(recording) < 600
    found = numbers([recording[place] for place in range(len(recording))])
    assert found == sorted(found, key=lambda number: number or 0.0)
    assert numbers([recording[place] for place in range(len(recording) - 1, -1, -1)]) == found[::-1]
    assert numbers(list(read_recording(str(path)))) == found
    recording.close()
