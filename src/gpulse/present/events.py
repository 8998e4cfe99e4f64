"""Events as sentences: the same words in the live screen, the page, the history, reports, alerts and training logs."""

from __future__ import annotations

import time

from ..model.catalog import GPU_METRICS, HOST_METRICS
from ..model.condition import LASTING, of_event, of_verdict, xid_of
from ..units import count_text, duration_text, size_text
from .cells import moment_text, rate_text, seconds_text, severity_style, throttle_words, value_text, xid_text
from .text import Untrusted, clean, fit
from .words import gpus_text, link_text

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import TypeAlias

    from ..model.catalog import Process
    from ..model.event import Event
    from ..model.metric import Metric

    Parts: TypeAlias = "tuple[str, ...]"

_LONG = 600  # seconds
_STUCK = 300  # characters of a sentence about where a program is stuck; `values` have all of it


def event_text(event: Event) -> str:
    """Return an event as one sentence that is safe to print: "GPU 3 throttled: too hot". How long it lasted is told apart."""
    return _safe(event_parts(event))


def event_parts(event: Event) -> Parts:
    """Return the sentence in parts; what processes and drivers chose is Untrusted, for documents that have markup of their own."""
    cleared = _CLEARED.get(event.kind) if event.alert == "clear" else None
    if cleared is not None:
        return _filled(cleared, event)
    template = _SENTENCES.get(event.kind)
    parts = (Untrusted(event.note or event.kind),) if template is None else _filled(template, event)
    return ("resolved: ", *parts) if event.alert == "clear" else parts


def _filled(template: str, event: Event) -> Parts:
    """Return a sentence with its fields filled in."""
    start, *pieces = template.split("{")
    parts = [start] if start else []
    for piece in pieces:
        name, _, after = piece.partition("}")
        filled = _FIELDS[name](event)
        parts += filled if isinstance(filled, tuple) else (filled,)
        parts.append(after)
    return tuple(part for part in parts if part)


def _safe(parts: Parts) -> str:
    return "".join(clean(part) if isinstance(part, Untrusted) else part for part in parts)


def ended_text(last: Event, now: Event, ago: str) -> str:
    """Return what held until some time ago, and what is the case now: "GPU 5 memory was 99 % full 3 min ago, now 41 %"."""
    measured = _MEASURED.get(last.kind)
    if measured is None or last.kind != now.kind:
        return f"{event_text(last)}; last seen {ago}"
    what, value, full = measured
    return f"{_safe(_filled(what, last))} {_safe(_filled(value, last))}{full} {ago}, now {_safe(_filled(value, now))}"


def kind_title(kind: str) -> str:
    """Return what a list of counts calls events of a kind: not responding, out of memory."""
    about = None if kind == "throttled" else of_event(kind)  # throttling is one kind for several conditions
    return kind if about is None else about.title


def event_style(event: Event) -> str:
    """Return the style that a terminal or page shows an event in: critical, warn, good or label."""
    return "good" if event.alert == "clear" else severity_style(event.severity)


def lasted_text(event: Event, now: float) -> str:
    """Return how long an event has lasted: 12m05s, or 12m05s so far; empty for one that does not last."""
    if event.kind not in (*LASTING, "gap") or event.rule:
        return ""
    end = now if event.until is None else event.until
    return f"{duration_text(max(1.0, end - event.time))}{' so far' if event.until is None else ''}"


def process_parts(process: Process | None) -> Parts:
    """Return whose process it is and what it is called: ada's python3 (pid 1224)."""
    if process is None:
        return ("a process",)
    pid = () if process.pid is None else (f" (pid {process.pid:.0f})",)
    owner = (Untrusted(process.user), "'s ") if process.user else ()
    return (*owner, Untrusted(process.name or "process"), *pid)


def silence_parts(event: Event) -> Parts:
    """Return which alerts a decision is about: hot of ada on GPU 3; all alerts."""
    rule, user = event.values.get("rule"), event.values.get("user")
    whose = (" of ", Untrusted(user)) if user else ()
    return (Untrusted(rule) if rule else "all alerts", *whose, f" on {gpus_text(event.gpus)}" if event.gpus else "")


def _number(event: Event, key: str = "") -> float:
    value = event.values.get(key) if key else event.value
    return float(value) if isinstance(value, (int, float)) else 0.0


def _idle(event: Event) -> str:
    """Return for how long; a long time in whole minutes, so that the text of an alert does not change with each sample."""
    idle = _number(event, "idle")
    return duration_text(idle if idle < _LONG else idle // 60 * 60)


def _where(event: Event) -> str:
    """Return what a GPU is called, or a MIG instance, whose name comes from the driver."""
    return Untrusted(event.note) if event.note else gpus_text(event.gpus)


def _if_known(event: Event, words: str) -> str:
    """Return words with the value as a size, or nothing where the event has none."""
    return "" if event.value is None else words.format(size_text(event.value))


def _ran(event: Event) -> str:
    seconds = event.process.running_time if event.process is not None else None
    return "" if seconds is None else f" after {duration_text(seconds)}"


def _holder(event: Event) -> Parts:
    if event.process is None:
        return ()
    return ("; ", *process_parts(event.process), f" holds {size_text(event.process.memory_used or 0.0)}")


def _full_in(event: Event) -> str:
    if "full_in_low" not in event.values:
        return ""
    first, last = (duration_text(_number(event, key)) for key in ("full_in_low", "full_in_high"))
    return f"; memory will be full in {first}" + (f" to {last}" if last != first else "")


def _server(event: Event) -> Parts:
    """Return which server: model server Qwen3-32B on GPU 6."""
    name = (event.note or "?").rstrip("/").rpartition("/")[2]
    return ("model server ", Untrusted(name), f" on {gpus_text(event.gpus)}" if event.gpus else "")


def metric_of(event: Event) -> Metric | None:
    """Return the metric that an event measures; None where its value is that of none."""
    key = str(event.values.get("metric") or next((key for key in event.values if key in GPU_METRICS), ""))
    return (GPU_METRICS if event.gpus else HOST_METRICS).get(key)


def amount_text(event: Event, value: float | None) -> str:
    """Return a value or a limit of what an event measures, with its unit."""
    metric = metric_of(event)
    return f"{value or 0.0:g}" if metric is None else value_text(metric, value)


def _measured(event: Event) -> Parts:
    """Return what a rule of the user's measures: GPU 3: Temperature."""
    metric, key = metric_of(event), str(event.values.get("metric", ""))
    title = Untrusted(key or "a metric") if metric is None else metric.title
    return (_where(event) if event.gpus else "host", ": ", title)


def _limit(event: Event) -> str:
    side = "above" if "above" in event.values else "below"
    return f", {side} {amount_text(event, _number(event, side))}"


def _errors_title(event: Event) -> str:
    metric = metric_of(event)
    return "link errors" if metric is None else metric.title


def _why(event: Event) -> Parts:
    why = Untrusted(str(event.values.get("why", "")).replace("_", " "))
    return (" (", why, ")") if why else ()


def _slower(event: Event) -> str:
    metric = metric_of(event)
    if metric is None:
        return " is slower than the other GPUs of its model"
    own, others = value_text(metric, event.value), value_text(metric, _number(event, "peers"))
    return f": {metric.title} is {own} ({others} on other GPUs of the same model)"


def _verdict(event: Event) -> Parts:
    if event.note:
        return (Untrusted(event.note),)
    key = str(event.values.get("verdict", ""))
    found = of_verdict(key)
    return (Untrusted(key) if found is None else found.title, *_stuck(event))


def _stuck(event: Event) -> Parts:
    """Return where a program that hangs is, and which rank others wait for, as far as that was read."""
    texts = [str(event.values.get(key, "")) for key in ("behind", "stacks")]
    return tuple(part for text in texts if text for part in ("; ", Untrusted(fit(text, _STUCK))))


def _lost_samples(event: Event) -> Parts:
    if event.note:
        return ("a sample could not be kept: ", Untrusted(event.note))
    lost = _number(event)
    return (f"{count_text(lost, 'sample')} {'was' if lost == 1 else 'were'} lost while the disk was full",)


def _damage(event: Event) -> str:
    start, end = (time.localtime(at) for at in (event.time, event.until or event.time))
    form = "%H:%M:%S" if start[:3] == end[:3] else "%Y-%m-%d %H:%M:%S"
    whose = f"of {gpus_text(event.gpus)} " if event.gpus else ""
    return f"{whose}damaged from {time.strftime(form, start)} to {time.strftime(form, end)}"


def _until(event: Event) -> str:
    until = event.values.get("until")
    return f" until {moment_text(until)}" if isinstance(until, (int, float)) else ""


# What stands for a name in braces: a text, or several of which some are Untrusted.
_FIELDS: dict[str, Callable[[Event], str | Parts]] = {
    "gpus": lambda event: gpus_text(event.gpus),
    "where": _where,
    "heated": lambda event: f"{gpus_text(event.gpus)}{' memory' if event.note == 'memory' else ''}",
    "process": lambda event: process_parts(event.process),
    "note": lambda event: Untrusted(event.note or "?"),
    "job": lambda event: Untrusted(event.note or "a job"),
    "owner": lambda event: (" of ", Untrusted(str(user))) if (user := event.values.get("user")) else (),
    "server": _server,
    "number": lambda event: f"{_number(event):.0f}",
    "memory errors": lambda event: count_text(_number(event), "new uncorrected memory error"),
    "requests": lambda event: count_text(_number(event), "request"),
    "duration": lambda event: duration_text(_number(event)),
    "latency": lambda event: seconds_text(_number(event)),
    "rate": lambda event: rate_text(_number(event)),
    "size": lambda event: size_text(_number(event)),
    "growth": lambda event: size_text(60 * _number(event)),
    "above": lambda event: f"{_number(event, 'above'):.0f}",
    "before": lambda event: f"{_number(event, 'before'):.0f}",
    "idle": _idle,
    "seconds": lambda event: duration_text(_number(event, "seconds")),
    "lasted": lambda event: duration_text(max(1.0, 0.0 if event.until is None else event.until - event.time)),
    "code": lambda event: f", XID {event.value:.0f}" if event.value is not None else "",
    "xid": lambda event: xid_text(_number(event)),
    "times": lambda event: f" {count:.0f} times" if (count := _number(event, "count")) > 1 else "",
    "remedy": lambda event: f": {remedy}" if (remedy := xid_of(_number(event)).remedy) else "",
    "reasons": lambda event: throttle_words(event.reasons),
    "held": lambda event: _if_known(event, ": it held {}"),
    "peak": lambda event: _if_known(event, ", peak memory {}"),
    "total": lambda event: _if_known(event, " ({})"),
    "ran": _ran,
    "others": lambda event: f" and {more:.0f} more" if (more := _number(event, "more")) else "",
    "holder": _holder,
    "full in": _full_in,
    "link": lambda event: link_text(event.values),
    "errors": _errors_title,
    "why": _why,
    "slower": _slower,
    "measured": _measured,
    "measure": lambda event: amount_text(event, event.value),
    "limit": _limit,
    "verdict": _verdict,
    "stuck": _stuck,
    "lost samples": _lost_samples,
    "damage": _damage,
    "way": lambda event: "forward" if _number(event) > 0 else "back",
    "shift": lambda event: duration_text(abs(_number(event))),
    "by": lambda event: Untrusted(event.values.get("by") or "somebody"),
    "alerts": silence_parts,
    "until": _until,
    "reason": lambda event: (": ", Untrusted(reason)) if (reason := event.values.get("reason")) else (),
}
_SENTENCES = {
    "lost": "{gpus} is lost (fell off the bus{code})",
    "timeout": "{gpus} is not responding",
    "xid": "{gpus} reported {xid}{times}{remedy}",
    "memory-errors": "{gpus}: {memory errors}",
    "out-of-memory": "{process} ended on {gpus}, probably out of memory{held}",
    "throttled": "{gpus} throttled: {reasons}",
    "hot": "{heated} is at {number} °C (limit {above} °C)",
    "pcie-degraded": "{gpus}: the link is below its maximum under load: {link}",
    "link-errors": "{gpus}: {number} new {errors}; check slot, riser and bridge",
    "nvlink-down": "{gpus}: {number} of {before} NVLinks are up; check the bridge, the switch and the kernel log",
    "fabric-not-ready": "{gpus}: the NVLink fabric is not ready{why}; CUDA may not start",
    "port-flaps": "network port {note} went down {number} times within {seconds}; check cable and switch",
    "slower-than-peers": "{gpus}{slower}",
    "memory-nearly-full": "{where} memory is {number} % full{holder}",
    "memory-growth": "{process} on {gpus} grows by {growth} per minute{full in}",
    "idle-allocation": "{process} holds {size} on {gpus} but has been idle for {idle}",
    "allocation-unused": "{gpus} has not been used for {idle}, although {job}{owner} has it",
    "alert-silenced": "{by} silenced {alerts}{until}{reason}",
    "alert-unsilenced": "{by} ended the silence of {alerts}",
    "alert-acknowledged": "{by} acknowledged {alerts}",
    "stalled": "{process} has not used {gpus} for {idle}{stuck}",
    "serving-stuck": "{server} is stuck: it has requests and has made no token for {duration}",
    "serving-queue-long": "{server} has {requests} waiting",
    "serving-slow": "{server} needs {latency} to the first token (p95)",
    "serving-errors": "{server} fails {rate} requests per second",
    "threshold": "{measured} is {measure}{limit}",
    "verdict": "{gpus}: {verdict}",
    "gap": "no samples for {lasted}",
    "dropped": "{lost samples}",
    "history-damaged": "history {damage}",
    "removed": "{gpus} disappeared",
    "added": "{gpus} appeared",
    "back": "{gpus} is responding again",
    "gpu-free": "{where}{total} is free",
    "instance-removed": "the MIG instance was removed",
    "server-ended": "{server} has ended",
    "asleep": "{gpus} is asleep",
    "process-end": "{process}{others} ended on {gpus}{ran}{peak}",
    "process-start": "{process} started on {gpus}",
    "suspend": "the machine was suspended for {duration}",
    "clock": "the system clock was set {way} by {shift}",
    "boot": "the machine booted",
    "start": "recording started",
    "stop": "recording stopped",
}
# Conditions whose present value says more than that they are over: of what, the value, and a word that only the past has.
_MEASURED = {
    "hot": ("{heated} was at", "{number} °C", ""),
    "memory-nearly-full": ("{where} memory was", "{number} %", " full"),
    "threshold": ("{measured} was", "{measure}", ""),
}
_CLEARED = {
    "lost": "{gpus} is responding again",
    "timeout": "{gpus} is responding again",
    "removed": "{gpus} is responding again",
    "xid": "{gpus}: no new XID since XID {number}",
    "memory-errors": "{gpus} has no new memory errors",
    "throttled": "{gpus} is no longer throttled",
    "hot": "{heated} has cooled down to {number} °C",
    "pcie-degraded": "{gpus} PCIe link is at its maximum again",
    "link-errors": "{gpus} has no new link errors",
    "nvlink-down": "{gpus}: all {before} NVLinks are up again",
    "fabric-not-ready": "{gpus}: the NVLink fabric is ready",
    "port-flaps": "network port {note} has been stable again",
    "slower-than-peers": "{gpus} is as fast as other GPUs of its model again",
    "memory-nearly-full": "{where} memory is down to {number} %",
    "memory-growth": "{process} on {gpus} no longer grows",
    "idle-allocation": "{process} on {gpus} is no longer idle",
    "allocation-unused": "{gpus} is no longer held by {job} without being used",
    "stalled": "{process} uses {gpus} again",
    "serving-stuck": "{server} makes tokens again",
    "serving-queue-long": "{server} has only {requests} waiting",
    "serving-slow": "{server} answers in time again",
    "serving-errors": "{server} no longer fails requests",
    "process-end": "{process}{others} ended on {gpus}{ran}{peak}",
    "server-ended": "{server} has ended",
    "threshold": "{measured} is {measure}",
}
