"""A recording as a table: one row per sample and GPU, whole numbers as whole numbers."""

from __future__ import annotations

from ...errors import GpulseError, UsageError
from ...model.catalog import GPU_METRICS
from ...model.codec import time_text
from ...model.select import choose_gpus, metric_named
from ...store.recording import read_recording

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence
    from typing import Any

    from ...model.snapshot import Snapshot

_HEAD = ("time", "gpu", "uuid", "state")
_SQLITE = b"SQLite format 3\0"


def is_recording(path: str) -> bool:
    """Return whether a file holds something that is not a database of the history."""
    try:
        with open(path, "rb") as file:
            start = file.read(len(_SQLITE))
    except OSError:
        return False  # whoever opens it as a history says why it cannot be read
    return bool(start) and start != _SQLITE


class RecordedTable:
    """The samples of a recording between two times; `words` choose GPUs and `metrics` columns, all that occur if empty."""

    def __init__(
        self,
        path: str,
        start: float | None,
        end: float | None,
        metrics: Sequence[str],
        words: Sequence[str],
        environ: Mapping[str, str],
    ) -> None:
        self._path, self._start, self._end = path, start, end
        self._words, self._environ = words, environ
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
        for snapshot in read_recording(self._path):
            if (self._start is not None and snapshot.time < self._start) or (
                self._end is not None and snapshot.time >= self._end
            ):
                continue
            for at in self._chosen(snapshot):
                gpu = snapshot.gpus[at]
                head = [time_text(snapshot.time), gpu.index, gpu.uuid, gpu.state]
                yield head + [_cell(gpu.get(key)) for key in self.keys]

    def write_parquet(self, path: str) -> None:
        """Write the rows as Parquet; raise GpulseError when pyarrow is missing."""
        try:
            arrow = __import__("pyarrow")
            parquet = __import__("pyarrow.parquet", fromlist=["write_table"])
        except ImportError:
            raise GpulseError("Parquet needs pyarrow, which is not installed.", "Run `pip install pyarrow`.") from None
        from ...model.codec import parse_time

        rows = [*self.rows()]
        columns = {name: [row[at] for row in rows] for at, name in enumerate((*_HEAD, *self.keys))}
        moments = [round(parse_time(text) * 1_000_000) for text in columns["time"]]
        columns["time"] = arrow.array(moments, type=arrow.timestamp("us", tz="UTC"))
        try:
            parquet.write_table(arrow.table(columns), path)
        except OSError as error:
            raise GpulseError(f"{path} cannot be written: {error.strerror or error}.") from None

    def _chosen(self, snapshot: Snapshot) -> Sequence[int]:
        return choose_gpus(snapshot.gpus, self._words, self._environ) if self._words else range(len(snapshot.gpus))

    def _occurring(self) -> list[str]:
        found = {key for snapshot in read_recording(self._path) for gpu in snapshot.gpus for key, _ in gpu.items()}
        known = [key for key, metric in GPU_METRICS.items() if key in found and metric.kind != "identity"]
        if not known:
            raise UsageError(f"{self._path} contains no samples of a GPU;", "name another file.")
        return known


def _cell(value: Any) -> Any:
    """Return a value as one cell; several words are separated by spaces."""
    return " ".join(map(str, value)) if isinstance(value, (tuple, list)) else value
