"""A recording played as a source, at any speed and from any moment."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from gpulse.errors import RecordingError, UsageError
from gpulse.model.catalog import Gpu
from gpulse.model.select import EVERYTHING
from gpulse.model.snapshot import Snapshot
from gpulse.sampling.clock import ManualClock
from gpulse.sampling.sampler import Sampler
from gpulse.sources.replay import ReplaySource, parse_spec, rivals
from tests.unit.recordings import START, frames, numbers, text_of, write
from tests.unit.sources.trees import write_tree


@pytest.fixture
def path(tmp_path: Path) -> str:
    return write(tmp_path / "x.ndjson", text_of(frames(5)))


def _played(spec: str, interval: float) -> Iterator[Snapshot]:
    clock = ManualClock()
    source = ReplaySource(spec, clock.monotonic)
    sampler = Sampler(source, EVERYTHING, clock=clock).open()
    yield from sampler.stream(interval)
    sampler.close()


def test_it_plays_at_the_pace_it_was_recorded(path: str) -> None:
    assert numbers(list(_played(path, 1.0))) == [0, 1, 2, 3, 4]


def test_a_slower_reader_sees_fewer(path: str) -> None:
    assert numbers(list(_played(path, 2.0))) == [0, 2, 4]


def test_a_faster_reader_sees_some_twice(path: str) -> None:
    assert numbers(list(_played(path, 0.5)))[:5] == [0, 0, 1, 1, 2]


def test_speed_multiplies_time(path: str) -> None:
    assert numbers(list(_played(f"{path}*2", 1.0))) == [0, 2, 4]
    assert numbers(list(_played(f"{path}*0.5", 1.0)))[:5] == [0, 0, 1, 1, 2]


def test_max_gives_every_line_in_turn_whatever_the_time(path: str) -> None:
    assert numbers(list(_played(f"{path}*max", 100.0))) == [0, 1, 2, 3, 4]


def test_it_can_begin_later(path: str) -> None:
    assert numbers(list(_played(f"{path}@3s", 1.0))) == [3, 4]
    assert numbers(list(_played(f"{path}@1*2", 1.0))) == [1, 3, 4]
    assert numbers(list(_played(f"{path}@2*max", 1.0))) == [2, 3, 4]


def test_a_start_after_the_end_shows_the_last(path: str) -> None:
    assert numbers(list(_played(f"{path}@1h", 1.0))) == [4]


def test_it_says_who_its_gpus_are(path: str) -> None:
    source = ReplaySource(path)
    source.open()
    assert [device.identity["index"] for device in source.devices] == [0]
    source.close()


def test_instances_can_be_chosen_by_name(tmp_path: Path) -> None:
    gpu = Gpu({"index": 0}, instances=(Gpu({"uuid": "MIG-1"}),))
    source = ReplaySource(write(tmp_path / "x", text_of([Snapshot(START, (gpu,))])))
    source.open()
    assert [part["uuid"] for part in source.devices[0].parts()] == ["MIG-1"]
    source.close()


def test_recordings_without_a_memory_share_get_it(path: str) -> None:
    assert [frame.gpus[0].memory_percent for frame in _played(f"{path}*max", 1.0)] == [30.0] * 5


def test_instances_without_a_memory_share_get_it_too(tmp_path: Path) -> None:
    gpu = Gpu({"index": 0}, instances=(Gpu({"memory_used": 1, "memory_total": 4}),))
    path = write(tmp_path / "x", text_of([Snapshot(START, (gpu,))]))
    assert [part.memory_percent for frame in _played(path, 1.0) for part in frame.gpus[0].instances] == [25.0]


def test_a_recorded_memory_share_stays(tmp_path: Path) -> None:
    gpu = Gpu({"memory_used": 1, "memory_total": 4, "memory_percent": 0.0})
    path = write(tmp_path / "x", text_of([Snapshot(START, (gpu,))]))
    assert [frame.gpus[0].memory_percent for frame in _played(path, 1.0)] == [0.0]


def test_a_recording_of_nothing_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(RecordingError, match="contains no samples"):
        ReplaySource(write(tmp_path / "x", "")).open()


def test_a_recording_that_is_not_there_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(RecordingError, match="missing"):
        ReplaySource(str(tmp_path / "missing")).open()


@pytest.mark.parametrize(
    ("spec", "parsed"),
    [
        ("a.gz", ("a.gz", 0.0, 1.0)),
        ("a.gz*4", ("a.gz", 0.0, 4.0)),
        ("a.gz*max", ("a.gz", 0.0, None)),
        ("a.gz@90", ("a.gz", 90.0, 1.0)),
        ("a.gz@5m*0.5", ("a.gz", 300.0, 0.5)),
    ],
)
def test_a_spec_is_file_start_and_speed(spec: str, parsed: tuple[str, float, float | None]) -> None:
    assert parse_spec(spec) == parsed


@pytest.mark.parametrize(
    "spec", ["a*0", "a*-1", "a*fast", "a*", "a*nan", "a*inf", "a@soon", "a@", "a@-1", "a@1*x", "a@x*2"]
)
def test_a_wrong_spec_is_refused(spec: str) -> None:
    with pytest.raises(UsageError):
        parse_spec(spec)


def test_a_file_may_have_signs_in_its_name(tmp_path: Path) -> None:
    path = write(tmp_path / "me@host*2.ndjson", text_of(frames(3)))
    assert parse_spec(path) == (path, 0.0, 1.0)
    assert numbers(list(_played(f"{path}*max", 1.0))) == [0, 1, 2]


@pytest.mark.parametrize(("added", "meant"), [("@1*2", (1.0, 2.0)), ("@1s*max", (1.0, None)), ("*2", (0.0, 2.0))])
def test_start_and_speed_of_a_file_that_is_there(path: str, added: str, meant: tuple[float, float | None]) -> None:
    assert parse_spec(path + added) == (path, *meant)


@pytest.mark.parametrize(
    ("name", "group", "terminal", "told"),
    [("ssh", 7, "/dev/pts/3", 1), ("ssh", 8, "/dev/pts/3", 0), ("ssh", 7, "/dev/null", 0), ("cat", 7, "/dev/pts/3", 0)],
)
def test_an_ssh_of_the_pipeline_that_takes_keys_is_told(
    tmp_path: Path, name: str, group: int, terminal: str, told: int
) -> None:
    stat = f"12 ({name}) S 1 {group} 5 0\n"
    write_tree(tmp_path, {"proc/12/stat": stat, "proc/12/fd/0": f"->{terminal}", "proc/self": "x"})
    assert len(rivals(7, str(tmp_path))) == told
