"""The tools: each reads the GPUs or the history once and returns small plain data, rounded, with texts of processes cleaned and cut."""

from __future__ import annotations

import os
import time

from ...api import diagnose, snapshot
from ...errors import UsageError
from ...model.catalog import SERVER_METRICS
from ...model.presets import SUMMARY
from ...model.select import Wanted, metric_named
from ...present.serving import serving_text
from ...present.text import clean
from ...sampling.sampler import Sampler
from ...sources.registry import make_source
from ...units import parse_duration, parse_size

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence
    from typing import Any

    from ...analysis.free import Availability
    from ...model.catalog import Gpu
    from ...model.event import Event
    from ...model.snapshot import Snapshot
    from ...model.verdict import Diagnosis
    from ...store.history import GpuIdentity, HistoryReader, HistorySeries

_WATCH = (2.0, 60.0)  # seconds an assistant may have the GPUs watched
_POINTS = 100
_LONGEST = 90 * 86400.0


class Tools:
    """The tools of one server: `source` is what to read, `history` the file of another history than this machine's."""

    def __init__(self, source: str, history: str | None = None) -> None:
        self._source = source
        self._history = history

    def snapshot(self, gpus: Sequence[str] | None = None, metrics: Sequence[str] | None = None) -> dict[str, Any]:
        """Return one sample of the GPUs and the machine."""
        keys = GPU_KEYS if metrics is None else ("index", "name", *(metric_named(name).key for name in metrics))
        wanted = Wanted(keys, ("pid",), HOST_KEYS, serving=True)
        sampler = Sampler(make_source(self._source), wanted).open()
        try:
            if gpus is not None:
                sampler.choose([str(word) for word in gpus])
            sampler.settle()
            return snapshot_answer(sampler.with_servers(sampler.read()), keys)
        finally:
            sampler.close()

    def processes(self, gpus: Sequence[str] | None = None) -> dict[str, Any]:
        """Return who uses the GPUs."""
        return processes_answer(snapshot(gpus=gpus, source=self._source).gpus)

    def why(self, seconds: float = 10.0, gpus: Sequence[str] | None = None, since: str | None = None) -> dict[str, Any]:
        """Return what limits each GPU."""
        if since is not None:
            now = time.time()
            with self._reader() as reader:
                return why_answer(diagnose(reader.snapshots(now - _back(since), now)))
        long = min(max(float(seconds), _WATCH[0]), _WATCH[1])
        return why_answer(diagnose(seconds=long, gpus=gpus, source=self._source))

    def history(
        self,
        since: str = "2h",
        metrics: Sequence[str] | None = None,
        gpus: Sequence[str] | None = None,
        points: int = 24,
    ) -> dict[str, Any]:
        """Return recorded values, averaged over equal intervals."""
        keys = [*SUMMARY] if metrics is None else [metric_named(name).key for name in metrics]
        now = time.time()
        start = now - _back(since)
        with self._reader() as reader:
            known = [
                gpu for gpu in reader.gpus(start, now) if gpus is None or str(gpu.index) in gpus or gpu.uuid in gpus
            ]
            found = reader.series(keys, [gpu.uuid for gpu in known], start, now, min(max(int(points), 1), _POINTS))
        return history_answer(found, known)

    def events(self, since: str = "24h") -> dict[str, Any]:
        """Return what happened, from the history."""
        from ...present.events import event_text

        now = time.time()
        with self._reader() as reader:
            found = reader.events(now - _back(since), now)
        return events_answer(found, [event_text(event) for event in found])

    def free_gpus(self, free_memory: str | None = None) -> dict[str, Any]:
        """Return which GPUs are free, watched for two seconds."""
        from ...analysis.free import WANTED, Requirement, availability, samples_for

        asked = Requirement(1, None if free_memory is None else parse_size(free_memory))
        interval, size = samples_for()
        sampler = Sampler(make_source(self._source), WANTED).open()
        try:
            samples: Iterator[Any] = sampler.stream(interval)
            return free_answer(next(availability(samples, size, asked, os.environ), []))
        finally:
            sampler.close()

    def _reader(self) -> HistoryReader:
        from ...store.history import HistoryReader

        if self._history is None and not make_source(self._source).machine.real:
            raise UsageError(f"{self._source} has no history of its own;", "start gpulse mcp with --file FILE.")
        return HistoryReader(self._history)


def _back(since: str) -> float:
    """Read how far back to go; raise UsageError if it is not between a second and 90 days."""
    seconds = parse_duration(str(since))
    if not 1.0 <= seconds <= _LONGEST:
        raise UsageError(f"since {since!r} is not between 1s and 90d;", "try 2h.")
    return seconds


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
