"""The process table: every process on every GPU, with its command line."""

from __future__ import annotations

from ...model.catalog import Process
from ...present.cells import value_text
from ...present.line import Line, table_lines
from ...present.words import heading, label

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

    from ...model.metric import Metric
    from ...model.process_filter import ProcessFilter
    from ...model.snapshot import Snapshot
    from ...present.theme import Theme

_COLUMNS = (Process.pid, Process.user, Process.type, Process.memory_used, Process.sm_utilization, Process.cpu_percent)
_MORE = (Process.host_memory, Process.running_time, Process.container, Process.job)
_RIGHT = frozenset({"pid", "memory_used", "sm_utilization", "cpu_percent", "host_memory", "running_time"})


def process_table(snapshot: Snapshot, theme: Theme, columns: int, wanted: ProcessFilter | None = None) -> list[Line]:
    """Return a header line and a line for each process that the filter matches; empty columns are left out."""
    everyone = list(_rows(snapshot))
    rows = [(place, process) for place, at, process in everyone if wanted is None or wanted.fits(process, at)]
    if not rows:
        return [Line().add("no process matches the filter" if everyone else "no process uses a GPU", "label")]
    shown = [
        metric for metric in (*_COLUMNS, *_MORE) if any(process.get(metric.key) is not None for _, process in rows)
    ]
    if columns < 90:
        shown = [metric for metric in shown if metric not in _MORE]
    rows_of_cells = [
        [
            (place, "accent"),
            *((_text(metric, process), _style(metric)) for metric in shown),
            (_command(process), "label"),
        ]
        for place, process in rows
    ]
    titles = ["GPU", *(heading(metric, snapshot.gpus).upper() for metric in shown), "COMMAND"]
    return table_lines(titles, rows_of_cells, [False, *(metric.key in _RIGHT for metric in shown), False])


def _text(metric: Metric, process: Process) -> str:
    return value_text(metric, process.get(metric.key))


def _style(metric: Metric) -> str:
    return "user" if metric is Process.user else "calm"


def _command(process: Process) -> str:
    return value_text(Process.command, process.command or process.name)


def _rows(snapshot: Snapshot) -> Iterator[tuple[str, tuple[int, int], Process]]:
    """Yield each process with the label of its GPU or instance, and the same in numbers."""
    for at, gpu in enumerate(snapshot.gpus):
        index = at if gpu.index is None else int(gpu.index)
        for process in gpu.processes:
            yield label(gpu), (index, -1), process
        for inner, instance in enumerate(gpu.instances):
            number = inner if instance.index is None else int(instance.index)
            for process in instance.processes:
                yield f"{label(gpu)}:{label(instance)}", (index, number), process
