"""Answers to the tools: small plain data, rounded, with texts of processes cleaned and cut."""

from __future__ import annotations

from ...model.catalog import SERVER_METRICS
from ...present.serving import serving_text
from ...present.text import clean

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from typing import Any

    from ...analysis.free import Availability
    from ...model.catalog import Gpu
    from ...model.event import Event
    from ...model.snapshot import Snapshot
    from ...model.verdict import Diagnosis
    from ...store.history import GpuIdentity, HistorySeries

GPU_KEYS = (
    *("index", "name", "utilization", "sm_active", "tensor_active", "dram_active", "memory_used", "memory_total"),
    *("temperature", "power_draw", "power_limit", "clock_sm", "throttle_reasons", "pcie_rx", "pcie_tx", "xid_last"),
)
HOST_KEYS = ("name", "cpu_percent", "iowait", "memory_used", "memory_total", "disk_read", "disk_write")
PROCESS_KEYS = (
    *("pid", "name", "user", "command", "memory_used", "sm_utilization", "cpu_percent", "tree_cpu_percent"),
    *("host_memory", "running_time", "container", "job"),
)
_USUAL = (None, "skipped", "pending")  # gaps that say nothing about the GPU
_TEXT = 160  # characters of a text that a process chose
MOST_PROCESSES = 40
MOST_EVENTS = 60


def snapshot_answer(snapshot: Snapshot, keys: Sequence[str]) -> dict[str, Any]:
    """Return one sample: values that are there, and the reason for each that is missing."""
    gpus = []
    for gpu in snapshot.gpus:
        plain = _values(gpu, keys) | {"state": gpu.state}
        if missing := {key: reason for key in keys if (reason := gpu.gaps.get(key)) not in _USUAL}:
            plain["missing"] = missing
        plain["processes"] = len([*gpu.all_processes()])
        gpus.append(plain)
    problems = [clean(problem.message)[:_TEXT] for problem in snapshot.problems]
    answer = {"time": _time(snapshot.time), "host": _values(snapshot.host, HOST_KEYS), "gpus": gpus}
    if snapshot.serving:
        answer["serving"] = [
            _values(server, SERVER_METRICS) | {"summary": clean(serving_text(server))[:_TEXT]}
            for server in snapshot.serving
        ]
    return answer | {"problems": problems}


def processes_answer(gpus: Iterable[Gpu]) -> dict[str, Any]:
    """Return the processes of all GPUs, largest memory first; commands are masked where they are read."""
    found: list[dict[str, Any]] = []
    for gpu in gpus:
        where = None if gpu.index is None else int(gpu.index)
        found += [{"gpu": where} | _values(process, PROCESS_KEYS) for process in gpu.all_processes()]
    found.sort(key=lambda process: -(process.get("memory_used") or 0))
    return {"processes": found[:MOST_PROCESSES], "not_shown": max(0, len(found) - MOST_PROCESSES)}


def why_answer(diagnosis: Diagnosis) -> dict[str, Any]:
    """Return what is wrong, the worst first, and the verdict on each GPU: a sentence, how sure it is, evidence and advice in words."""
    from ...analysis.concerns import concerns
    from ...present.concerns import worded

    gpus = []
    for verdict in diagnosis:
        plain = verdict.to_plain()
        gpus.append(
            {
                "index": plain["index"],
                **({"instance": plain["instance"]} if "instance" in plain else {}),
                "verdict": plain["verdict"],
                "title": plain["title"],
                "confidence": plain["confidence"],
                "evidence": [one["text"] for one in plain["evidence"]],
                "also": [one["title"] for one in plain["also"]],
                "advice": plain["advice"],
            }
        )
    problems = []
    for one in worded(concerns(diagnosis)):
        known = {name: value for name, value in one.to_plain().items() if value not in (None, "", [])}
        problems.append(known | {name: _time(known[name]) for name in ("since", "expected") if name in known})
    window = {"from": _time(diagnosis.start), "to": _time(diagnosis.end), "samples": diagnosis.samples}
    return {"problems": problems, "gpus": gpus, **window}


def history_answer(series: Iterable[HistorySeries], gpus: Sequence[GpuIdentity]) -> dict[str, Any]:
    """Return the means of each interval, one list per GPU and metric, None where nothing was recorded."""
    names = {gpu.uuid: gpu.index for gpu in gpus}
    found = [*series]
    times = [_time(time) for time in found[0].times] if found else []
    rows = [
        {
            "gpu": names.get(each.uuid),
            "metric": each.key,
            "mean": [_number(value) for value in each.mean],
            "max": _number(max((value for value in each.max if value == value), default=float("nan"))),
        }
        for each in found
    ]
    return {"times": times, "series": rows}


def events_answer(events: Sequence[Event], texts: Sequence[str]) -> dict[str, Any]:
    """Return what happened, newest last, as sentences."""
    shown = [*zip(events, texts, strict=True)][-MOST_EVENTS:]
    rows = [
        {"time": _time(event.time), "kind": event.category, "severity": event.severity, "text": text[:_TEXT]}
        for event, text in shown
    ]
    return {"events": rows, "not_shown": len(events) - len(rows)}


def free_answer(verdicts: Iterable[Availability]) -> dict[str, Any]:
    """Return each GPU with whether it is free, and why not."""
    rows = []
    for verdict in verdicts:
        gpu = verdict.gpu
        plain = _values(gpu, ("index", "name", "memory_free", "memory_total", "utilization"))
        rows.append(plain | {"uuid": gpu.uuid, "free": not verdict.why, "why_not": clean(verdict.why) or None})
    return {"gpus": rows, "free": [row.get("index") for row in rows if row["free"]]}


def _values(reading: Any, keys: Iterable[str]) -> dict[str, Any]:
    return {key: _plain(value) for key in keys if (value := reading.get(key)) is not None}


def _plain(value: object) -> object:
    if isinstance(value, bool):
        return value
    if isinstance(value, (int, float)):
        return _number(value)
    if isinstance(value, str):
        return clean(value)[:_TEXT]
    return [_plain(each) for each in value] if isinstance(value, (tuple, list)) else clean(str(value))[:_TEXT]


def _number(value: float) -> float | int | None:
    """Return a number with one decimal, whole where it is; None for no number."""
    if value - value:  # NaN or infinite
        return None
    rounded = round(value, 1)
    return int(rounded) if rounded == int(rounded) else rounded


def _time(moment: float | None) -> str | None:
    from ...model.codec import time_text

    return None if moment is None else time_text(moment)
