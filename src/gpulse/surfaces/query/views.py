"""What a query prints: a view knows what it needs, its header, and the lines of a snapshot."""

from __future__ import annotations

import json

from ...model.catalog import GPU_METRICS, PROCESS_METRICS, Gpu
from ...model.codec import to_line, to_plain
from ...model.metric import Number
from ...model.select import Wanted
from ...model.snapshot import Snapshot
from ...present.text import aligned, clean
from .field import ProcessField, QueryRow

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from ...model.metric import Metric
    from .field import Field

    Asked = Sequence[tuple[str, Field]]

_IDENTITY = frozenset(key for key, metric in GPU_METRICS.items() if metric.kind == "identity")


class View:
    """A way to print snapshots. `wanted` is what it must be given; `head` is written once, `lines` for each snapshot.

    `smi` says here, too, which GPUs to sample (None: all), how many seconds apart (None: once), how often, and the file to write to.
    `compares` tells whether values cover the time since the previous sample.
    """

    wanted: Wanted
    ids: Sequence[str] | None = None
    interval: float | None = None
    count: int | None = None
    filename: str | None = None
    compares = False

    def head(self) -> list[str]:
        """Return the lines before the first snapshot."""
        return []

    def note(self, snapshot: Snapshot) -> None:
        """Take a sample only to compare the next one with."""

    def lines(self, snapshot: Snapshot) -> list[str]:
        """Return the lines of one snapshot."""
        raise NotImplementedError


class LinesView(View):
    """A view that is only a function from snapshots to lines."""

    def __init__(self, lines: Callable[[Snapshot], list[str]], wanted: Wanted | None = None) -> None:
        self._lines = lines
        self.wanted = wanted or Wanted()

    def lines(self, snapshot: Snapshot) -> list[str]:
        return self._lines(snapshot)


class Csv(View):
    """nvidia-smi's CSV, one line per GPU, or with `apps` one per compute process."""

    def __init__(self, asked: Asked, *, header: bool = True, units: bool = True, apps: bool = False) -> None:
        self._asked = asked
        self._header = header
        self._units = units
        self._apps = apps
        self.wanted = wanted_of(asked, apps)

    def head(self) -> list[str]:
        return [", ".join(field.header() for _, field in self._asked)] if self._header else []

    def lines(self, snapshot: Snapshot) -> list[str]:
        return [", ".join(cells) for cells in self._cells(snapshot)]

    def _cells(self, snapshot: Snapshot) -> list[list[str]]:
        return [[clean(field.text(row, self._units)) for _, field in self._asked] for row in self._rows(snapshot)]

    def _rows(self, snapshot: Snapshot) -> list[QueryRow]:
        return rows(snapshot, self._apps)


class TableView(Csv):
    """The same in aligned columns, for people."""

    def head(self) -> list[str]:
        return []

    def lines(self, snapshot: Snapshot) -> list[str]:
        titles = [name for name, _ in self._asked]
        right = [isinstance(_metric(field), Number) for _, field in self._asked]
        return aligned([titles, *self._cells(snapshot)], right=right)


class Json(View):
    """The snapshot in gpulse's own shape: one line, or written out for people."""

    def __init__(self, asked: Asked, *, compact: bool, apps: bool = False) -> None:
        self._compact = compact
        self._apps = apps
        self._keys = {key for _, field in asked for key in field.keys} | _IDENTITY
        self.wanted = wanted_of(asked, apps) | Wanted(host=("name",))

    def lines(self, snapshot: Snapshot) -> list[str]:
        only = self._only_asked(snapshot)
        return [to_line(only) if self._compact else json.dumps(to_plain(only), indent=2, allow_nan=False)]

    def _only_asked(self, snapshot: Snapshot) -> Snapshot:
        """Return the snapshot without what came along unasked: a call may answer more, a filter may need more."""
        gpus = tuple(self._gpu(gpu) for gpu in snapshot.gpus)
        return snapshot.replace(gpus=gpus)

    def _gpu(self, gpu: Gpu) -> Gpu:
        return Gpu(
            {key: value for key, value in gpu.items() if key in self._keys},
            {key: gap for key, gap in gpu.gaps.items() if key in self._keys},
            state=gpu.state,
            since=gpu.since,
            processes=gpu.processes if self._apps else (),
            instances=tuple(self._gpu(part) for part in gpu.instances),
        )


class Prometheus(View):
    """Prometheus text of the metrics asked for."""

    def __init__(self, asked: Asked) -> None:
        self._keys = [key for _, field in asked for key in field.keys]
        self.wanted = wanted_of(asked, False)

    def lines(self, snapshot: Snapshot) -> list[str]:
        from ...present.exposition import exposition

        return exposition(snapshot, self._keys)


class ListingView(View):
    """nvidia-smi -L: one line per GPU, with its UUID."""

    wanted = Wanted({"index", "name", "uuid", "mig_mode"})

    def lines(self, snapshot: Snapshot) -> list[str]:
        out = []
        for gpu in snapshot.gpus:
            out.append(f"GPU {_number(gpu)}: {clean(gpu.name or 'Unknown')} (UUID: {clean(gpu.uuid or 'N/A')})")
            for part in gpu.instances:
                name = clean(part.name or "MIG")
                out.append(f"  {name:<15} Device {_number(part):>2}: (UUID: {clean(part.uuid or 'N/A')})")
        return out


def _metric(field: Field) -> Metric | None:
    return (PROCESS_METRICS if isinstance(field, ProcessField) else GPU_METRICS).get(field.key)


def rows(snapshot: Snapshot, apps: bool) -> list[QueryRow]:
    """Return what a query has lines for: GPUs, or compute processes."""
    if not apps:
        return [QueryRow(snapshot, gpu) for gpu in snapshot.gpus]
    return [
        QueryRow(snapshot, gpu, process)
        for gpu in snapshot.gpus
        for process in gpu.all_processes()
        if "C" in (process.type or "C") or "M" in (process.type or "")
    ]


def wanted_of(asked: Asked, apps: bool) -> Wanted:
    """Return the catalog keys that fields need."""
    gpu = {"index", "uuid", *(key for _, field in asked if not isinstance(field, ProcessField) for key in field.keys)}
    process = {"pid", "type", *(key for _, field in asked if isinstance(field, ProcessField) for key in field.keys)}
    return Wanted(gpu, process if apps else None)


def _number(gpu: Gpu) -> str:
    return "?" if gpu.index is None else f"{gpu.index:.0f}"
