"""Recordings through pipes, and files that are no recordings: one clear sentence, and never more memory than a line takes."""

from __future__ import annotations

import gzip
import os
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from gpulse.errors import RecordingError
from gpulse.model.select import EVERYTHING
from gpulse.sampling.sampler import Sampler
from gpulse.sources.registry import make_source
from gpulse.store import recording
from gpulse.store.recording import Frames, read_pipe, read_recording
from tests.unit.recordings import frames, numbers, recorded


@contextmanager
def fed(folder: Path, *pieces: bytes) -> Iterator[str]:
    """Yield a FIFO that a thread writes these pieces to."""
    path = folder / "fifo"
    os.mkfifo(path)

    def feed() -> None:
        with open(path, "wb", buffering=0) as file:
            for piece in pieces:
                file.write(piece)

    thread = threading.Thread(target=feed)
    thread.start()
    try:
        yield str(path)
    finally:
        thread.join()


def test_samples_come_through_a_pipe_however_it_is_cut(tmp_path: Path) -> None:
    text = recorded(frames(5)).encode()
    with fed(tmp_path, *(text[at : at + 100] for at in range(0, len(text), 100))) as path:
        assert numbers([*read_pipe(path)]) == [0, 1, 2, 3, 4]


@pytest.mark.parametrize("packed", [False, True])
def test_a_pipe_can_be_read_as_a_file_as_often_as_wanted(tmp_path: Path, packed: bool) -> None:
    text = recorded(frames(5)).encode()
    with fed(tmp_path, gzip.compress(text) if packed else text) as path:
        assert numbers([*read_recording(path)]) == numbers([*read_recording(path)]) == [0, 1, 2, 3, 4]


def test_a_source_shows_the_newest_sample_of_a_pipe_and_ends_with_it(tmp_path: Path) -> None:
    with fed(tmp_path, recorded(frames(5)).encode()) as path:
        sampler = Sampler(make_source(f"replay:{path}"), EVERYTHING).open()
        seen = [snapshot.gpus[0].utilization or 0.0 for snapshot in sampler.stream(0.01)]
        assert (seen[-1], sorted(set(seen))) == (4, list(dict.fromkeys(seen)))


def test_a_damaged_line_in_a_pipe_is_left_out(tmp_path: Path) -> None:
    with fed(tmp_path, recorded(frames(2)).encode(), b"{half\n", recorded(frames(1)).encode()) as path:
        assert numbers([*read_pipe(path)]) == [0, 1, 0]


@pytest.mark.parametrize(
    ("written", "says"),
    [
        (b"", "ended before a sample came."),
        (b"\x00\xff\n" * 1000, "line 1: this line is not JSON"),
        (b"x" * 1000, "ended before a sample came."),
    ],
)
def test_what_is_no_recording_is_said_in_one_sentence(tmp_path: Path, written: bytes, says: str) -> None:
    with fed(tmp_path, written) as path, pytest.raises(RecordingError) as raised:
        [*read_pipe(path)]
    assert says in str(raised.value)


def test_a_pipe_without_a_writer_is_given_up(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(recording, "_NO_WRITER", 0.05)
    path = str(tmp_path / "fifo")
    os.mkfifo(path)
    for read in (read_pipe, read_recording, lambda path: [Frames(path)]):
        with pytest.raises(RecordingError, match="nothing came through this pipe"):
            [*read(path)]


def test_a_late_sample_is_said_to_be_late(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("gpulse.sources.replay._LATE", 0.0)
    with fed(tmp_path, recorded(frames(1)).encode()) as path:
        sampler = Sampler(make_source(f"replay:{path}"), EVERYTHING).open()
        (problem,) = sampler.read().problems
        assert "no new sample has come" in problem.message


@pytest.mark.parametrize("packed", [False, True])
def test_a_line_longer_than_any_sample_is_not_read_whole(
    tmp_path: Path, packed: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(recording, "LONGEST", 1 << 16)
    path = tmp_path / "run.ndjson"
    path.write_bytes(gzip.compress(b"x" * (1 << 17)) if packed else b"x" * (1 << 17))
    with pytest.raises(RecordingError, match="is not a recording: it has a line of more than"):
        [*read_recording(str(path))]
    found = Frames(str(path))
    with pytest.raises(RecordingError, match="is not a recording"):
        found.find(0.0)
    found.close()


def test_an_archive_of_nothing_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "run.ndjson.gz"
    path.write_bytes(gzip.compress(b"\n" * (5 << 20)))
    with pytest.raises(RecordingError, match="unpacks to more than 1000 times its size"):
        [*read_recording(str(path))]


@pytest.mark.parametrize("device", ["/dev/zero", "/dev/urandom"])
def test_a_device_without_an_end_is_no_recording(device: str) -> None:
    with pytest.raises(RecordingError, match=f"{device}(, line 1: this line| is not a recording)"):
        [*read_recording(device)]
