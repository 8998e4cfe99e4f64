"""A recording being written: whole after every line, continued where it was cut, and never in somebody's way."""

from __future__ import annotations

import gzip
import os
import random
import tracemalloc
import zlib
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gpulse.errors import RecordingError
from gpulse.model.codec import from_line, to_line
from gpulse.model.snapshot import Problem, Snapshot
from gpulse.store.recorder import RecordingFile
from gpulse.store.recording import read_recording
from tests.unit.recordings import frames, numbers, recorded, text_of, write
from tests.unit.snapshots import snapshots

NAMES = ("run.ndjson", "run.ndjson.gz")


@pytest.fixture(params=NAMES)
def path(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    name: str = request.param
    return tmp_path / name


def record(path: Path, samples: list[Snapshot], append: bool = False, force: bool = False) -> None:
    file = RecordingFile(str(path), append=append, force=force)
    for sample in samples:
        file.write(sample)
    file.close()


def read(path: Path) -> list[Snapshot]:
    return list(read_recording(str(path)))


def test_each_sample_can_be_read_as_soon_as_it_is_written(path: Path) -> None:
    file = RecordingFile(str(path))
    for count, sample in enumerate(frames(5), 1):
        file.write(sample)
        assert read(path) == frames(count)
        assert file.size == path.stat().st_size
    file.close()
    assert read(path) == frames(5)


def test_a_plain_file_holds_the_lines_and_nothing_else(tmp_path: Path) -> None:
    record(tmp_path / "x", frames(3))
    assert (tmp_path / "x").read_text() == recorded(frames(3))


def test_any_gzip_reads_a_packed_one_with_its_checksum(tmp_path: Path) -> None:
    record(tmp_path / "x.gz", frames(50))
    assert gzip.decompress((tmp_path / "x.gz").read_bytes()).decode() == recorded(frames(50))


@settings(max_examples=30, deadline=None)
@given(samples=st.lists(snapshots(), min_size=1, max_size=4), name=st.sampled_from(NAMES))
def test_any_samples_come_back_as_they_were(
    tmp_path_factory: pytest.TempPathFactory, samples: list[Snapshot], name: str
) -> None:
    path = tmp_path_factory.mktemp("any") / name
    record(path, samples)
    assert read(path) == [from_line(to_line(sample)) for sample in samples]


@settings(max_examples=40, deadline=None)
@given(keep=st.floats(0, 1), name=st.sampled_from(NAMES), more=st.integers(0, 3))
def test_one_that_was_cut_anywhere_has_all_whole_lines_and_can_be_continued(
    tmp_path_factory: pytest.TempPathFactory, keep: float, name: str, more: int
) -> None:
    path = tmp_path_factory.mktemp("cut") / name
    file = RecordingFile(str(path))
    ends = [0]
    for sample in frames(12):
        file.write(sample)
        ends.append(file.size)
    left = int(keep * file.size)
    os.truncate(path, left)  # as after a kill: the end of the file is never written
    file._packer = None
    file.close()
    whole = max(count for count, end in enumerate(ends) if end <= left)
    assert len(read(path)) in (whole, whole + 1)  # the last line may be there but for its end
    there = read(path)
    assert there == frames(12)[: len(there)]
    record(path, frames(more), append=True)
    assert read(path)[:whole] == frames(whole)
    assert len(read(path)) - more in (whole, whole + 1)
    assert numbers(read(path))[len(read(path)) - more :] == list(range(more))


@pytest.mark.parametrize("left", range(12))
def test_a_packed_one_that_was_cut_within_its_header_can_be_continued(tmp_path: Path, left: int) -> None:
    path = tmp_path / "x.gz"
    record(path, frames(1))
    os.truncate(path, left)
    assert read(path) == []
    record(path, frames(2), append=True)
    assert read(path) == frames(2)


def test_continuing_a_packed_one_that_was_killed_ends_it_properly(tmp_path: Path) -> None:
    path = tmp_path / "x.gz"
    file = RecordingFile(str(path))
    for sample in frames(3):
        file.write(sample)
    end = file.size
    file.write(frames(4)[3])
    file.close()
    os.truncate(path, end + 5)
    record(path, frames(1), append=True)
    assert gzip.decompress(path.read_bytes()).decode() == recorded(frames(3)) + recorded(frames(1))


def test_continuing_a_packed_one_holds_little_of_it_in_memory(tmp_path: Path) -> None:
    path = tmp_path / "x.gz"
    file = RecordingFile(str(path))
    chance = random.Random(5)
    for sample in frames(40):
        noise = Problem("noise", chance.randbytes(100_000).hex())
        file.write(sample.replace(problems=(noise,)))
    file._packer = None
    file.close()
    tracemalloc.start()
    record(path, frames(1), append=True)
    most = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert path.stat().st_size > 4_000_000
    assert most < 2_000_000
    assert len(read(path)) == 41


def test_members_with_a_name_a_comment_and_padding_are_read_and_continued(tmp_path: Path) -> None:
    path = tmp_path / "x.gz"
    raw = zlib.compressobj(wbits=-15)
    text = text_of(frames(3)).encode()
    body = raw.compress(text) + raw.flush()
    ends = zlib.crc32(text).to_bytes(4, "little") + len(text).to_bytes(4, "little")
    head = b"\x1f\x8b\x08\x1c" + bytes(6) + b"\x05\x00extra" + b"run.ndjson\0" + b"x" * 1500 + b"\0"
    path.write_bytes(head + body + ends + bytes(3000))
    assert gzip.decompress(head + body + ends) == text
    assert read(path) == frames(3)
    record(path, frames(1), append=True)
    assert numbers(read(path)) == [0, 1, 2, 0]


def test_a_packed_one_is_continued_again_and_again(tmp_path: Path) -> None:
    path = tmp_path / "x.gz"
    for _ in range(4):
        record(path, frames(2), append=True)
    assert numbers(read(path)) == [0, 1] * 4


def test_packed_is_continued_packed_whatever_its_name(tmp_path: Path) -> None:
    path = Path(write(tmp_path / "x.ndjson", text_of(frames(2)), packed=True))
    record(path, frames(1), append=True)
    assert numbers(read(path)) == [0, 1, 0]


def test_a_last_line_without_its_end_is_kept_when_it_is_whole(tmp_path: Path) -> None:
    path = Path(write(tmp_path / "x", text_of(frames(2)).rstrip("\n")))
    record(path, frames(1), append=True)
    assert numbers(read(path)) == [0, 1, 0]


def test_a_packed_one_of_another_program_that_was_cut_is_left_as_it_is(tmp_path: Path) -> None:
    path = tmp_path / "x.gz"
    stream = zlib.compressobj(wbits=31)
    content = stream.compress(text_of(frames(400)).encode()) + stream.flush()
    path.write_bytes(content[:-400])
    with pytest.raises(RecordingError, match="cannot be continued"):
        RecordingFile(str(path), append=True)
    assert path.read_bytes() == content[:-400]


def test_one_that_is_there_is_not_touched_unless_asked(path: Path) -> None:
    record(path, frames(2))
    before = path.read_bytes()
    with pytest.raises(RecordingError, match="already exists"):
        RecordingFile(str(path))
    assert path.read_bytes() == before
    record(path, frames(1), force=True)
    assert numbers(read(path)) == [0]


def test_an_empty_file_is_nothing_to_lose(path: Path) -> None:
    path.touch()
    record(path, frames(2))
    assert numbers(read(path)) == [0, 1]


@pytest.mark.parametrize("content", [b"hello\n", b"hello", b'{"schema": 2}\n', b"\x1f\x8bnonsense"])
def test_what_is_no_recording_is_not_continued(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "x"
    path.write_bytes(content)
    with pytest.raises(RecordingError):
        RecordingFile(str(path), append=True)
    assert path.read_bytes() == content


def test_a_second_writer_is_kept_out_and_spoils_nothing(path: Path) -> None:
    file = RecordingFile(str(path))
    file.write(frames(1)[0])
    with pytest.raises(RecordingError, match="another recorder"):
        RecordingFile(str(path), force=True)
    file.close()
    assert numbers(read(path)) == [0]


def test_a_link_is_not_followed(tmp_path: Path) -> None:
    (tmp_path / "x").symlink_to(tmp_path / "precious")
    with pytest.raises(RecordingError, match="symbolic link"):
        RecordingFile(str(tmp_path / "x"))
    assert not (tmp_path / "precious").exists()


def test_a_full_disk_is_one_sentence_with_what_to_do() -> None:
    file = RecordingFile("/dev/full")
    with pytest.raises(RecordingError, match=r"No space left on device\. Free some space"):
        file.write(frames(1)[0])
    file.close()
    file.close()
