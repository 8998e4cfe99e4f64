"""A recording as a table: one row per sample and GPU, whole numbers as whole numbers."""

from __future__ import annotations

from ...errors import UsageError
from ...model.catalog import GPU_METRICS
from ...model.codec import time_text
from ...model.select import choose_gpus, metric_named
from ...model.snapshot import Snapshot
from ...store.pipe import is_pipe
from ...store.recording import read_recording
from ...units import BYTES, COUNT, MEGAHERTZ

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
    from typing import Any

_HEAD = ("time", "gpu", "uuid", "state")
_SQLITE = b"SQLite format 3\0"


def is_recording(path: str) -> bool:
    """Return whether a file holds something that is not a database of the history; a pipe never is one."""
    if is_pipe(path):
        return True
    try:
        with open(path, "rb") as file:
            start = file.read(len(_SQLITE))
    except OSError:
        return False  # opening it as a history reports why it cannot be read
    return bool(start) and start != _SQLITE


class RecordedTable:
    """Samples as rows: those that `samples` yields each time it is called; `metrics` chooses columns, all that occur if empty.

    `path` is what errors call their origin.
    """

    def __init__(self, path: str, samples: Callable[[], Iterable[Snapshot]], metrics: Sequence[str] = ()) -> None:
        self._path = path
        self._samples = samples
        self.keys = [metric_named(name).key for name in metrics] or self._occurring()

    def csv_lines(self) -> Iterator[str]:
        """Yield a header and the rows; an empty cell is no value."""
        import csv
        import io

        out = io.StringIO()
        writer = csv.writer(out, lineterminator="\n")
        writer.writerow((*_HEAD, *self.keys))
        for row in self.rows():
            writer.writerow(["" if cell is None else cell for cell in row])
            if out.tell() > 1 << 16:
                yield out.getvalue().rstrip("\n")
                out.seek(0)
                out.truncate()
        if text := out.getvalue().rstrip("\n"):
            yield text

    def rows(self) -> Iterator[list[Any]]:
        """Yield time, number, UUID and state of the GPU, and its values."""
        whole = [_is_whole(key) for key in self.keys]
        for snapshot in self._samples():
            for gpu in snapshot.gpus:
                head = [time_text(snapshot.time), gpu.index, gpu.uuid, gpu.state]
                yield head + [_cell(gpu.get(key), integer) for key, integer in zip(self.keys, whole, strict=True)]

    def columns(self) -> dict[str, list[Any]]:
        """Return the rows as columns."""
        rows = [*self.rows()]
        return {name: [row[at] for row in rows] for at, name in enumerate((*_HEAD, *self.keys))}

    def _occurring(self) -> list[str]:
        found = {key for snapshot in self._samples() for gpu in snapshot.gpus for key, _ in gpu.items()}
        known = [key for key, metric in GPU_METRICS.items() if key in found and metric.kind != "identity"]
        if not known:
            raise UsageError(f"{self._path} contains no samples of a GPU;", "name another file.")
        return known


def samples_of(
    path: str,
    start: float | None,
    end: float | None,
    words: Sequence[str],
    environ: Mapping[str, str],
    damaged: list[int] | None = None,
) -> Iterator[Snapshot]:
    """Yield the samples of a recording between two times with the GPUs that `words` name; `damaged` as in `read_lines`."""
    for snapshot in read_recording(path, damaged):
        if (start is not None and snapshot.time < start) or (end is not None and snapshot.time >= end):
            continue
        gpus = snapshot.gpus
        if words:
            gpus = tuple(gpus[at] for at in choose_gpus(gpus, words, environ))
        yield Snapshot(snapshot.time, gpus)


def _is_whole(key: str) -> bool:
    """Return whether a metric counts something: a history gives such values as floats."""
    return getattr(GPU_METRICS.get(key), "unit", None) in (BYTES, COUNT, MEGAHERTZ)


def _cell(value: Any, integer: bool) -> Any:
    """Return a value as one cell; several words are separated by spaces."""
    if isinstance(value, (tuple, list)):
        return " ".join(map(str, value))
    return int(value) if integer and isinstance(value, float) and value.is_integer() else value
