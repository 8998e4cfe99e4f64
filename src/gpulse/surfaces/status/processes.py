"""The process table: every process on every GPU, with its command line."""

from __future__ import annotations

from ...model.catalog import Process
from ...present.cells import value_text
from ...present.line import Line
from ...present.text import width
from .lines import label

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

    from ...model.snapshot import Snapshot
    from ...present.theme import Theme

_COLUMNS = (Process.pid, Process.user, Process.type, Process.memory_used, Process.sm_utilization, Process.cpu_percent)
_MORE = (Process.host_memory, Process.running_time, Process.container, Process.job)
_RIGHT = frozenset({"pid", "memory_used", "sm_utilization", "cpu_percent", "host_memory", "running_time"})


def process_table(snapshot: Snapshot, theme: Theme, columns: int) -> list[Line]:
    """Return a header line and a line for each process; columns that nobody has are left out, the command takes the rest."""
    rows = list(_rows(snapshot))
    if not rows:
        return [Line().add("no process uses a GPU", "label")]
    shown = [
        metric for metric in (*_COLUMNS, *_MORE) if any(process.get(metric.key) is not None for _, process in rows)
    ]
    if columns < 90:
        shown = [metric for metric in shown if metric not in _MORE]
    texts = [[value_text(metric, process.get(metric.key)) for metric in shown] for _, process in rows]
    widths = [max(len(metric.short), *(width(text[at]) for text in texts)) for at, metric in enumerate(shown)]
    lines = [Line().add("GPU", "label", 5)]
    for metric, cells in zip(shown, widths, strict=True):
        lines[0].add(metric.short.upper(), "label", cells, metric.key in _RIGHT).add("  ")
    lines[0].add("COMMAND", "label")
    for (place, process), row in zip(rows, texts, strict=True):
        line = Line().add(place, "accent", 5)
        for metric, cells, text in zip(shown, widths, row, strict=True):
            line.add(text, "user" if metric is Process.user else "calm", cells, metric.key in _RIGHT).add("  ")
        lines.append(line.add(value_text(Process.command, process.command or process.name), "label"))
    return lines


def _rows(snapshot: Snapshot) -> Iterator[tuple[str, Process]]:
    for gpu in snapshot.gpus:
        for process in gpu.processes:
            yield label(gpu), process
        for instance in gpu.instances:
            for process in instance.processes:
                yield f"{label(gpu)}:{label(instance)}", process
