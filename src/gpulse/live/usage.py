"""Who used what: totals and usage over time by user, job, container, pod, program, GPU or process."""

from __future__ import annotations

from ..present.text import clean
from ..store.history import ProcessNames

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Collection
    from typing import Any

    from ..store.history import GpuIdentity, HistoryReader, ProcessUse, Usage, UsageTimes

_MOST = 200  # owners in one answer
_NAMELESS = {
    "user": "(no user)",
    "job": "(no job)",
    "container": "(no container)",
    "pod": "(no pod)",
    "project": "(no project)",
    "name": "(no name)",
}


def usage_answer(
    reader: HistoryReader,
    start: float,
    end: float,
    by: str,
    points: int,
    uuids: Collection[str] | None,
    commands: bool,
) -> dict[str, Any]:
    """Return the owners, those with the most GPU hours first; `uuids` name GPUs, whose instances count too."""
    gpus = reader.gpus(start, end)
    chosen = None if uuids is None else _with_instances(gpus, uuids)
    times = reader.usage_times(start, end, by, points, chosen)
    totals = _process_totals(reader, start, end, chosen) if by == "process" else _totals(reader, start, end, by, chosen)
    width = (end - start) / points
    rows = [
        _row(one, {"gpu_hours": one.held_seconds / 3600} | totals.get(one.owner, {}), by, gpus, commands)
        for one in times
    ]
    rows.sort(key=lambda row: -row["gpu_hours"])
    return {
        "from": round(start, 3),
        "to": round(end, 3),
        "by": by,
        "times": [round(start + at * width, 3) for at in range(points)],
        "seconds": width,
        "owners": len(rows),
        "usage": rows[:_MOST],
    }


def _with_instances(gpus: list[GpuIdentity], uuids: Collection[str]) -> set[str]:
    return {*uuids, *(gpu.uuid for gpu in gpus if gpu.parent in uuids)}


def _row(times: UsageTimes, total: dict[str, Any], by: str, gpus: list[GpuIdentity], commands: bool) -> dict[str, Any]:
    row: dict[str, Any] = {"owner": times.owner, "label": _label(times, by, gpus), **total, "uuids": times.uuids}
    row["gpus"] = _rounded(times.held, 4)
    if times.watts is not None:
        row["watts"] = _rounded(times.watts, 2)
    if times.pid is not None:
        texts = {name: clean(text) for name, text in times.text.items() if commands or name != "command"}
        row |= {"pid": times.pid, **texts}
    return row


def _rounded(values: list[float | None], digits: int) -> list[float | None]:
    return [None if value is None else round(value, digits) for value in values]


def _label(times: UsageTimes, by: str, gpus: list[GpuIdentity]) -> str:
    """Return what an owner is called: of a process, the PID with its program; of a GPU, its number, of an instance both numbers."""
    if by == "process" and times.pid is not None:
        return f"{times.pid} {clean(times.text.get('name', ''))}".strip()
    if by == "gpu":
        return gpu_label(times.owner or "", gpus)
    return clean(times.owner) if times.owner else _NAMELESS.get(by, "(none)")


def gpu_label(uuid: str, gpus: list[GpuIdentity]) -> str:
    """Return the number of a GPU, "0:1" for the second instance of the first, or a part of the UUID."""
    known = {gpu.uuid: gpu for gpu in gpus}
    gpu = known.get(uuid)
    if gpu is None or gpu.index is None:
        return clean(uuid[:12])
    parent = known.get(gpu.parent)
    return f"{gpu.index}" if not gpu.parent else f"{'?' if parent is None else parent.index}:{gpu.index}"


def _totals(
    reader: HistoryReader, start: float, end: float, by: str, uuids: Collection[str] | None
) -> dict[str | None, dict[str, Any]]:
    return {use.owner: _figures(use) for use in reader.usage(start, end, by, uuids)}


def _figures(use: Usage) -> dict[str, Any]:
    return {
        "gpu_hours": use.gpu_hours,
        "instance_hours": use.instance_hours,
        "busy_hours": use.busy_hours,
        "memory_gib_hours": use.memory_hours,
        "memory_most": use.memory_most,
        "energy": use.energy,
        "processes": use.processes,
    }


def _process_totals(
    reader: HistoryReader, start: float, end: float, uuids: Collection[str] | None
) -> dict[str | None, dict[str, Any]]:
    """Return the figures of each process over all its GPUs."""
    found: dict[str | None, dict[str, Any]] = {}
    names = ProcessNames()
    for use in reader.processes(start, end):
        if uuids is not None and use.uuid not in uuids:
            continue
        key = names.of(use.pid, use.started)
        total = found.setdefault(key, {"first": use.first, "last": use.last})
        total["first"], total["last"] = min(total["first"], use.first), max(total["last"], use.last)
        _add(total, use)
    return found


def _add(total: dict[str, Any], use: ProcessUse) -> None:
    for key, value, scale in (
        ("busy_hours", use.busy_seconds, 1 / 3600),
        ("memory_gib_hours", use.memory_seconds, 1 / 3600 / 2**30),
        ("energy", use.energy, 1.0),
    ):
        before = total.get(key)
        total[key] = before if value is None else (before or 0.0) + value * scale
    if use.memory_most is not None:
        total["memory_most"] = max(total.get("memory_most") or 0.0, use.memory_most)
