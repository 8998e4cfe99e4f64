"""Write samples to a file of JSON lines, which is also a recording."""

from __future__ import annotations

import os

from ..errors import GpulseError, RecordingError
from ..model.catalog import GPU_METRICS, HOST_METRICS, PROCESS_METRICS
from ..store.lines import LineFile, first_line
from .base import Sink

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from .base import Mark, Sample


class JsonlSink(Sink):
    """Writes every sample as a complete snapshot (schema 1) with elapsed, step, phase and the id of the run.

    `marks`, `program` (the monitored process), `values` (values that are in neither the snapshot nor the program) and
    `progress` (seconds, calls and steps of each phase since the previous line) are included if not empty, and every half minute
    `stacks` (what the program executed meanwhile, and how long the GPU waited and computed).
    `gpulse --source replay:FILE` and `read_recording` read the file; only its owner may, for it holds command lines. An
    existing recording is continued; any other file is rejected.
    """

    name = "jsonl"
    stacks = True

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self.path = os.fspath(path)
        self._file: LineFile | None = None

    def open(self) -> None:
        from ..model.codec import from_line

        if (line := first_line(self.path)) is not None:
            try:
                from_line(line)
            except RecordingError:
                raise GpulseError(f"{self.path} exists and is not a recording.", "Choose another name.") from None
        self._file = LineFile(self.path, keep=True)

    def write(self, sample: Sample) -> None:
        import json

        from ..store.lines import with_check

        assert self._file is not None
        self._file.write(with_check(json.dumps(_plain(sample), allow_nan=False).encode()).decode())

    def continued(self) -> str:
        return f"jsonl:{os.path.abspath(self.path)}"

    def close(self) -> None:
        if self._file is not None:
            self._file.close_or_remove()
            self._file = None


def _plain(sample: Sample) -> dict[str, Any]:
    from ..model.codec import to_plain

    plain = to_plain(sample.snapshot)
    plain.update(elapsed=sample.elapsed, step=sample.step, phase=sample.phase)
    if sample.run:
        plain["run"] = sample.run
    if sample.marks:
        plain["marks"] = [_mark_to_plain(mark) for mark in sample.marks]
    if sample.program is not None:
        plain["program"] = dict(sample.program.items())
    if values := {tag: value for tag, value in sample.values.items() if _adds(tag, sample)}:
        plain["values"] = values
    if progress := {name: each.to_plain() for name, each in sample.progress.items()}:
        plain["progress"] = {name: each for name, each in progress.items() if each}
    if sample.stacks is not None:
        plain["stacks"] = sample.stacks
    return plain


def _mark_to_plain(mark: Mark) -> dict[str, Any]:
    value = mark.value
    if isinstance(value, float) and not abs(value) < float("inf"):
        value = str(value)  # a loss can be NaN, which JSON does not support
    return {"name": mark.name, "value": value, "time": mark.time}


def _adds(tag: str, sample: Sample) -> bool:
    """Whether a tag is not already in the rest of the line."""
    place, _, key = tag.partition("/")
    if place == "host":
        return key not in HOST_METRICS
    if place == "process":
        return sample.program is None or key not in PROCESS_METRICS
    return place.rstrip("0123456789") != "gpu" or key not in GPU_METRICS
