"""The log as text: nvidia-smi -q, and -q -d with only some of its sections."""

from __future__ import annotations

import time

from ...present.text import clean
from .log_line import NOTHING, Clocks, Group, Instances, LogLine, Processes, plain
from .log_table import TABLE

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from ...model.catalog import Gpu
    from ...model.snapshot import Snapshot
    from .log_line import LogEntry, ValueOf

_COLON = 55
_PROCESS_COLON = 42
_PROCESS_LABELS = (
    (2, "GPU instance ID"),
    (2, "Compute instance ID"),
    (2, "Process ID"),
    (3, "Type"),
    (3, "Name"),
    (3, "Used GPU Memory"),
)


def log_text(snapshot: Snapshot, value: ValueOf, sections: tuple[str, ...] = ()) -> list[str]:
    """Return the lines of a log; no sections means the whole of it."""
    lines = ["", "==============NVSMI LOG==============", ""]
    lines += [_line(0, label, text) for label, text in header(snapshot)]
    lines += ["", _line(0, "Attached GPUs", attached(snapshot, value))]
    shown = [entry for entry in TABLE if entry.chosen(sections, xml=False)]
    for gpu in snapshot.gpus:
        lines += [f"GPU {plain(value(gpu, 'pci.bus_id'))[0]}", *_entries(shown, gpu, value, 1), ""]
    return lines if snapshot.gpus else [*lines, ""]


def header(snapshot: Snapshot) -> tuple[tuple[str, str], ...]:
    """Return what stands above the GPUs: when, which driver, which CUDA."""
    return (
        ("Timestamp", time.asctime(time.localtime(snapshot.time))),
        ("Driver Version", clean(snapshot.driver.get("version", "")) or NOTHING),
        ("CUDA Version", clean(snapshot.driver.get("cuda", "")) or NOTHING),
    )


def attached(snapshot: Snapshot, value: ValueOf) -> str:
    """Return how many GPUs the machine has, which can be more than are shown."""
    count = value(snapshot.gpus[0], "count") if snapshot.gpus else ""
    return count if count.isdecimal() else str(len(snapshot.gpus))


def _line(depth: int, label: str, text: str, colon: int = _COLON) -> str:
    return f"{'    ' * depth + label:<{colon}}: {text}"


def _entries(entries: Iterable[LogEntry], gpu: Gpu, value: ValueOf, depth: int) -> Iterator[str]:
    for entry in entries:
        if not entry.label or not entry.fits(gpu):
            continue
        if isinstance(entry, LogLine):
            yield _line(depth + entry.deeper, entry.label, entry.read(gpu, value)[0])
        elif isinstance(entry, Instances):
            for part in gpu.instances:
                yield "    " * depth + entry.label
                yield from _entries(entry.entries, part, value, depth + 1)
        elif isinstance(entry, Group):
            yield from _group(entry, gpu, value, depth)
        elif isinstance(entry, Clocks):
            yield from _clocks(entry, gpu, depth)
        elif isinstance(entry, Processes):
            yield from _processes(entry, gpu, depth)


def _group(group: Group, gpu: Gpu, value: ValueOf, depth: int) -> Iterator[str]:
    reason = group.folded(gpu, value)
    if reason is not None:
        yield _line(depth, group.label, reason)
        return
    yield "    " * depth + group.label
    yield from _entries(group.entries, gpu, value, depth + 1)


def _clocks(entry: Clocks, gpu: Gpu, depth: int) -> Iterator[str]:
    rows = entry.rows(gpu)
    if not rows:
        yield _line(depth, entry.label, entry.reason(gpu))
        return
    yield "    " * depth + entry.label
    for memory, graphics in rows:
        yield _line(depth + 1, "Memory", memory)
        yield from (_line(depth + 2, "Graphics", clock) for clock in graphics)


def _processes(entry: Processes, gpu: Gpu, depth: int) -> Iterator[str]:
    rows = entry.rows(gpu)
    if not rows:
        yield _line(depth, entry.label, "None")
        return
    yield "    " * depth + entry.label
    for row in rows:
        for (deep, label), text in zip(_PROCESS_LABELS, row, strict=True):
            yield _line(deep, label, text, _PROCESS_COLON)
