"""A report as plain data, ready for JSON."""

from __future__ import annotations

from ...model.codec import time_text
from ...present.events import event_text
from ...present.verdicts import worded
from .comparison import differences, speed

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from .run import Run


def run_to_plain(run: Run) -> dict[str, Any]:
    """Return one run: figures in the catalog's units, times as RFC 3339 in UTC."""
    return {
        "schema": 1,
        "name": run.name,
        **({} if run.job is None else {"job": run.job.to_plain()}),
        "start": time_text(run.start),
        "end": time_text(run.end),
        "interval": run.interval,
        "missing_seconds": run.missing,
        "host": {key: run.last.host.get(key) for key in ("name", "cpu_count", "memory_total")},
        "driver": dict(run.last.driver),
        "energy_estimated": run.estimated,
        "cost": None if run.cost is None else run.cost.to_plain(),
        "summary": run.summary.to_plain(),
        "code": [line.to_plain() for line in run.summary.code],
        "verdict": ["".join(parts) for parts in run.verdict],
        "diagnosis": worded(run.diagnosis).to_plain(),
        "budget": [
            {"index": one.index, "uuid": one.uuid, **one.budget.to_plain()}
            for one in run.diagnosis
            if one.budget is not None
        ],
        "serving": [served.to_plain() for served in run.serving],
        "instances": [span.to_plain() for span in run.instances],
        "processes": [_timed(use.to_plain(), "first_seen", "last_seen") for use in run.uses],
        "events": [
            {
                "time": time_text(event.time),
                "until": None if event.until is None else time_text(event.until),
                "kind": event.kind,
                "severity": event.severity,
                "gpus": list(event.gpus),
                "pid": None if event.process is None else event.process.pid,
                "text": event_text(event),
            }
            for event in run.events
        ],
        "phases": [{"start": time_text(a), "end": time_text(b), "name": name} for a, b, name in run.bands],
        "marks": [{"time": time_text(mark.time), "name": mark.name, "value": mark.value} for mark in run.marks],
        "problems": [{"source": source, "message": message} for source, message in run.problems],
    }


def comparison_to_plain(first: Run, second: Run) -> dict[str, Any]:
    """Return two runs and their differences."""
    found = speed(first, second)
    return {
        "schema": 1,
        "speed": None if found is None else found.to_plain(),
        "a": run_to_plain(first),
        "b": run_to_plain(second),
        "differences": [
            {"figure": each.title, "a": each.before, "b": each.after, "noise": each.noise, "matters": each.matters}
            for each in differences(first, second)
        ],
    }


def _timed(plain: dict[str, Any], *keys: str) -> dict[str, Any]:
    return plain | {key: time_text(plain[key]) for key in keys}
