"""Torch's memory snapshot at an out-of-memory error, with a stand-in for torch below the calls that are made."""

from __future__ import annotations

import pickle
import sys
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

import gpulse
from gpulse.analysis.out_of_memory import largest_lines
from gpulse.monitor.out_of_memory import MemorySnapshot, snapshot_path
from gpulse.sinks import CallableSink, CsvSink
from tests.unit.analysis.test_out_of_memory import TORCH_211_DEMAND

GIB = 1 << 30
TORCH = "/usr/lib/python3/site-packages/torch/nn/modules/linear.py"


def block(size: int, *frames: tuple[str, int, str], state: str = "active_allocated") -> dict[str, Any]:
    """Return a block as torch 2.13 describes it, with its frames innermost first."""
    named = [{"filename": file, "line": line, "name": name} for file, line, name in frames]
    return {"size": size + 512, "requested_size": size, "address": 1, "state": state, "frames": named}


FORWARD = ((TORCH, 125, "forward"), ("/home/ada/model.py", 84, "forward"), ("/home/ada/train.py", 30, "main"))
OPTIMIZER = (("/home/ada/train.py", 12, "build"),)
SNAPSHOT = {
    "segments": [
        {"device": 0, "blocks": [block(2 * GIB, *FORWARD), block(GIB, *FORWARD), block(9 * GIB, state="inactive")]},
        {"device": 0, "blocks": [block(GIB, *OPTIMIZER), block(GIB)]},
        {"device": 1, "blocks": [block(50 * GIB, *OPTIMIZER)]},
    ],
    "device_traces": [],
}


class Cuda:
    """What gpulse uses of torch.cuda, and what it was asked for."""

    def __init__(self, initialized: bool = True, on: bool = False) -> None:
        self.initialized, self.on = initialized, on
        self.calls: list[Any] = []
        self.observers: list[Callable[..., None]] = []
        self.memory = self

    def is_initialized(self) -> bool:
        return self.initialized

    def current_device(self) -> int:
        return 0

    def memory_allocated(self, device: int) -> int:
        return 0

    memory_reserved = memory_allocated

    def _record_memory_history(self, enabled: str | None = "all", **named: object) -> None:
        self.calls.append(enabled)
        self.on = enabled is not None

    def _snapshot(self) -> dict[str, Any]:
        return SNAPSHOT

    def _dump_snapshot(self, path: str) -> None:
        Path(path).write_bytes(pickle.dumps(SNAPSHOT))


@pytest.fixture
def put(monkeypatch: pytest.MonkeyPatch) -> Callable[[Cuda], Cuda]:
    def put(cuda: Cuda) -> Cuda:
        c = SimpleNamespace(
            _cuda_isHistoryEnabled=lambda: cuda.on, _cuda_attach_out_of_memory_observer=cuda.observers.append
        )
        monkeypatch.setitem(sys.modules, "torch", SimpleNamespace(cuda=cuda, _C=c))
        return cuda

    return put


def test_the_first_error_writes_one_snapshot(tmp_path: Path, put: Callable[[Cuda], Cuda]) -> None:
    cuda = put(Cuda())
    said: list[str] = []
    memory = MemorySnapshot(str(tmp_path / "run-oom.pickle"), said.append)
    (observer,) = cuda.observers
    observer(0, GIB, GIB, 0)
    observer(0, GIB, GIB, 0)
    assert pickle.loads((tmp_path / "run-oom.pickle").read_bytes()) == SNAPSHOT
    assert [str(tmp_path / "run-oom.pickle") in line for line in said] == [True]
    assert [*tmp_path.iterdir()] == [tmp_path / "run-oom.pickle"]
    memory.close()
    assert cuda.calls == ["all", None]


def test_a_recording_of_the_program_is_left_alone(tmp_path: Path, put: Callable[[Cuda], Cuda]) -> None:
    cuda = put(Cuda(on=True))
    MemorySnapshot(str(tmp_path / "a"), print).close()
    assert cuda.calls == []


def test_recording_begins_once_cuda_is_initialized(tmp_path: Path, put: Callable[[Cuda], Cuda]) -> None:
    cuda = put(Cuda(initialized=False))
    memory = MemorySnapshot(str(tmp_path / "a"), print)
    assert cuda.calls == []
    cuda.initialized = True
    memory._wait()  # as its thread does
    assert "all" in cuda.calls
    memory.close()


def test_after_the_end_nothing_is_written(tmp_path: Path, put: Callable[[Cuda], Cuda]) -> None:
    cuda = put(Cuda())
    MemorySnapshot(str(tmp_path / "a"), print).close()
    cuda.observers[0](0, GIB, GIB, 0)
    assert [*tmp_path.iterdir()] == []


def test_an_error_of_torch_does_not_reach_the_program(tmp_path: Path, put: Callable[[Cuda], Cuda]) -> None:
    cuda = put(Cuda())
    cuda._dump_snapshot = None  # type: ignore[assignment, method-assign]
    memory = MemorySnapshot(str(tmp_path / "a"), print)
    memory.write()
    memory.close()
    assert [*tmp_path.iterdir()] == []


def test_a_place_that_cannot_be_written_does_not_reach_the_program(tmp_path: Path, put: Callable[[Cuda], Cuda]) -> None:
    cuda = put(Cuda())
    (tmp_path / "a").mkdir()
    memory = MemorySnapshot(str(tmp_path / "a"), print)
    cuda.observers[0](0, GIB, GIB, 0)  # torch would raise this instead of its own error
    memory.close()


def test_an_error_that_cannot_be_printed_passes(tmp_path: Path, put: Callable[[Cuda], Cuda]) -> None:
    class Silent(Exception):
        def __str__(self) -> str:
            raise ValueError

    put(Cuda())
    with pytest.raises(Silent), gpulse.Monitor(str(tmp_path / "gpu.csv"), source="demo", memory_snapshot=True):
        raise Silent


def test_a_monitor_writes_it_beside_its_files(tmp_path: Path, put: Callable[[Cuda], Cuda]) -> None:
    put(Cuda())
    monitor = gpulse.Monitor(str(tmp_path / "gpu.csv"), source="demo", run="a run", memory_snapshot=True)
    with pytest.raises(RuntimeError), monitor:
        raise RuntimeError(TORCH_211_DEMAND)
    assert (tmp_path / "a_run-oom.pickle").exists()


def test_the_place_of_a_snapshot(tmp_path: Path) -> None:
    assert (
        snapshot_path([CallableSink(print), CsvSink(tmp_path / "x" / "a.csv")], "r/1", 3)
        == f"{tmp_path}/x/r_1-rank3-oom.pickle"
    )
    assert snapshot_path([], "r", None) == f"{Path.cwd()}/r-oom.pickle"


def test_the_largest_lines_are_those_of_the_program() -> None:
    found = [(line.file, line.line, line.function, line.bytes, line.blocks) for line in largest_lines(SNAPSHOT, 0)]
    assert found == [("/home/ada/model.py", 84, "forward", 3 * GIB, 2), ("/home/ada/train.py", 12, "build", GIB, 1)]
    assert [line.bytes for line in largest_lines(SNAPSHOT, None)] == [51 * GIB, 3 * GIB]


def test_older_versions_of_torch_kept_the_frames_in_a_history() -> None:
    frames = block(GIB, *FORWARD)["frames"]
    old = {"size": GIB, "state": "active_allocated", "history": [{"addr": 1, "real_size": GIB, "frames": frames}]}
    assert [line.line for line in largest_lines({"segments": [{"blocks": [old]}]}, 0)] == [84]
    assert largest_lines({}, 0) == []


def test_the_account_names_the_lines_if_torch_recorded_them(put: Callable[[Cuda], Cuda]) -> None:
    put(Cuda(on=True))
    report = gpulse.explain_oom(RuntimeError(TORCH_211_DEMAND), source="demo")
    assert report is not None
    assert report.to_plain()["allocations"][0]["line"] == 84
    rows = [line.split() for line in str(report).splitlines()]
    assert ["model.py:84", "forward", "3.0", "GiB", "2"] in rows


def test_the_account_says_how_to_record_them(put: Callable[[Cuda], Cuda]) -> None:
    put(Cuda())
    with gpulse.testing.scripted([{"memory_total": 80 * GIB, "memory_used": 78 * GIB}]):
        report = gpulse.explain_oom(RuntimeError(TORCH_211_DEMAND))
    assert report is not None
    assert (report.cause, "memory_snapshot=True" in str(report)) == ("demand", True)
