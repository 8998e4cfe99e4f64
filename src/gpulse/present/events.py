"""Events as sentences: the same words in the live screen, the page, the history, reports, alerts and training logs."""

from __future__ import annotations

import time

from ..model.catalog import GPU_METRICS, HOST_METRICS
from ..model.condition import LASTING, of_event, of_verdict
from ..units import duration_text, size_text
from .cells import severity_style, throttle_words, value_text, xid_remedy, xid_text
from .decisions import DECISIONS
from .quantities import rate_text, seconds_text
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

_STUCK = 300  # characters of a sentence about where a program is stuck; `values` have all of it


def event_text(event: Event) -> str:
    """Return an event as one sentence that is safe to print: "GPU 3 throttled: too hot". How long it lasted is told apart."""
    return "".join(clean(part) if isinstance(part, Untrusted) else part for part in event_parts(event))


def event_parts(event: Event) -> Parts:
    """Return the sentence in parts; what processes and drivers chose is Untrusted, for documents that have markup of their own."""
    table = _CLEARED if event.alert == "clear" else _SENTENCES
    sentence = table.get(event.kind) or _SENTENCES.get(event.kind)
    parts = (Untrusted(event.note or event.kind),) if sentence is None else sentence(event)
    return ("resolved: ", *parts) if event.alert == "clear" and event.kind not in _CLEARED else parts


def ended_text(last: Event, now: Event, ago: str) -> str:
    """Return what held until some time ago, and what is the case now: "GPU 5 memory was 99 % full 3 min ago, now 41 %"."""
    measured = _MEASURED.get(last.kind)
    if measured is None or last.kind != now.kind:
        return f"{event_text(last)}; last seen {ago}"
    (*where, verb), value = measured(last)
    name = "".join(clean(part) if isinstance(part, Untrusted) else part for part in where)
    return f"{name} {verb} {value} {ago}, now {measured(now)[1].removesuffix(' full')}"


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


def _number(event: Event, key: str = "") -> float:
    value = event.values.get(key) if key else event.value
    return float(value) if isinstance(value, (int, float)) else 0.0


def _where(event: Event) -> str:
    """Return what a GPU is called, or a MIG instance, whose name comes from the driver."""
    return Untrusted(event.note) if event.note else gpus_text(event.gpus)


def _of_gpu(words: str) -> Callable[[Event], Parts]:
    return lambda event: (f"{gpus_text(event.gpus)} {words}",)


def _fixed(words: str) -> Callable[[Event], Parts]:
    return lambda event: (words,)


def _lost(event: Event) -> Parts:
    code = f", XID {event.value:.0f}" if event.value is not None else ""
    return (f"{gpus_text(event.gpus)} is lost (fell off the bus{code})",)


def _xid(event: Event) -> Parts:
    remedy = xid_remedy(_number(event))
    times = f" {count:.0f} times" if (count := _number(event, "count")) > 1 else ""
    return (f"{gpus_text(event.gpus)} reported {xid_text(_number(event))}{times}{f': {remedy}' if remedy else ''}",)


def _memory_errors(event: Event) -> Parts:
    plural = "" if event.value == 1 else "s"
    return (f"{gpus_text(event.gpus)}: {_number(event):.0f} new uncorrected memory error{plural}",)


def _throttled(event: Event) -> Parts:
    return (f"{gpus_text(event.gpus)} throttled: ", *throttle_words(event.reasons))


def _out_of_memory(event: Event) -> Parts:
    held = f": it held {size_text(_number(event))}" if event.value is not None else ""
    return (*process_parts(event.process), f" ended on {gpus_text(event.gpus)}, probably out of memory{held}")


def _started(event: Event) -> Parts:
    return (*process_parts(event.process), f" started on {gpus_text(event.gpus)}")


def _ended(event: Event) -> Parts:
    ran = event.process.running_time if event.process is not None else None
    after = "" if ran is None else f" after {duration_text(ran)}"
    peak = "" if event.value is None else f", peak memory {size_text(event.value)}"
    more = _number(event, "more")
    others = f" and {more:.0f} more" if more else ""
    return (*process_parts(event.process), f"{others} ended on {gpus_text(event.gpus)}{after}{peak}")


def _heated(event: Event) -> str:
    return f"{gpus_text(event.gpus)} memory" if event.note == "memory" else gpus_text(event.gpus)


def _hot(event: Event) -> Parts:
    return (f"{_heated(event)} is at {_number(event):.0f} °C (limit {_number(event, 'above'):.0f} °C)",)


def _cooled(event: Event) -> Parts:
    return (f"{_heated(event)} has cooled down to {_number(event):.0f} °C",)


def _nearly_full(event: Event) -> Parts:
    full = (_where(event), f" memory is {_number(event):.0f} % full")
    if event.process is None:
        return full
    return (*full, "; ", *process_parts(event.process), f" holds {size_text(event.process.memory_used or 0.0)}")


def _has_room(event: Event) -> Parts:
    return (_where(event), f" memory is down to {_number(event):.0f} %")


def _growing(event: Event) -> Parts:
    rate = f" on {gpus_text(event.gpus)} grows by {size_text(60 * _number(event))} per minute"
    if "full_in_low" not in event.values:
        return (*process_parts(event.process), rate)
    first, last = (duration_text(_number(event, key)) for key in ("full_in_low", "full_in_high"))
    full = f"; memory will be full in {first}" + (f" to {last}" if last != first else "")
    return (*process_parts(event.process), rate + full)


def _no_longer_growing(event: Event) -> Parts:
    return (*process_parts(event.process), f" on {gpus_text(event.gpus)} no longer grows")


def _idle(event: Event) -> Parts:
    held = f" holds {size_text(_number(event))} on {gpus_text(event.gpus)}"
    return (*process_parts(event.process), f"{held} but has been idle for {duration_text(_number(event, 'idle'))}")


def _no_longer_idle(event: Event) -> Parts:
    return (*process_parts(event.process), f" on {gpus_text(event.gpus)} is no longer idle")


def _unused(event: Event) -> Parts:
    user = event.values.get("user")
    owner = (" of ", Untrusted(str(user))) if user else ()
    unused = f"{gpus_text(event.gpus)} has not been used for {duration_text(_number(event, 'idle'))}, although "
    return (unused, Untrusted(event.note or "a job"), *owner, " has it")


def _no_longer_unused(event: Event) -> Parts:
    return (f"{gpus_text(event.gpus)} is no longer held by ", Untrusted(event.note or "a job"), " without being used")


def _served(event: Event) -> Parts:
    """Return which server: model server Qwen3-32B on GPU 6."""
    name = (event.note or "?").rstrip("/").rpartition("/")[2]
    return ("model server ", Untrusted(name), f" on {gpus_text(event.gpus)}" if event.gpus else "")


def _stalled(event: Event) -> Parts:
    idle = duration_text(_number(event, "idle"))
    return (*process_parts(event.process), f" has not used {gpus_text(event.gpus)} for {idle}", *_stuck(event))


def _no_longer_stalled(event: Event) -> Parts:
    return (*process_parts(event.process), f" uses {gpus_text(event.gpus)} again")


def _free(event: Event) -> Parts:
    total = "" if event.value is None else f" ({size_text(event.value)})"
    return (_where(event), f"{total} is free")


def _threshold(event: Event, cleared: bool = False) -> Parts:
    side = "above" if "above" in event.values else "below"
    limit = "" if cleared else f", {side} {_measure_text(event, _number(event, side))}"
    return (*_measured(event), f" is {_measure_text(event, event.value)}{limit}")


def _measured(event: Event) -> Parts:
    """Return what a rule of the user's measures: GPU 3: Temperature."""
    metric, key = _metric_of(event), str(event.values.get("metric", ""))
    title = Untrusted(key or "a metric") if metric is None else metric.title
    return (_where(event) if event.gpus else "host", ": ", title)


def _measure_text(event: Event, value: float | None) -> str:
    metric = _metric_of(event)
    return f"{value or 0.0:g}" if metric is None else value_text(metric, value)


def _metric_of(event: Event) -> Metric | None:
    return (GPU_METRICS if event.gpus else HOST_METRICS).get(str(event.values.get("metric", "")))


def _link_errors(event: Event) -> Parts:
    metric = GPU_METRICS.get(str(event.values.get("metric", "")))
    title = "link errors" if metric is None else metric.title
    return (f"{gpus_text(event.gpus)}: {_number(event):.0f} new {title}; check slot, riser and bridge",)


def _gap(event: Event) -> Parts:
    lasted = 0.0 if event.until is None else event.until - event.time
    return (f"no samples for {duration_text(max(1.0, lasted))}",)


def _clock(event: Event) -> Parts:
    way = "forward" if _number(event) > 0 else "back"
    return (f"the system clock was set {way} by {duration_text(abs(_number(event)))}",)


def _verdict(event: Event) -> Parts:
    if event.note:
        return (f"{gpus_text(event.gpus)}: ", Untrusted(event.note))
    key = str(event.values.get("verdict", ""))
    found = of_verdict(key)
    return (f"{gpus_text(event.gpus)}: ", Untrusted(key) if found is None else found.title, *_stuck(event))


def _stuck(event: Event) -> Parts:
    """Return where a program that hangs is, and which rank others wait for, as far as that was read."""
    texts = [str(event.values.get(key, "")) for key in ("behind", "stacks")]
    return tuple(part for text in texts if text for part in ("; ", Untrusted(fit(text, _STUCK))))


def _dropped(event: Event) -> Parts:
    if event.note:
        return ("a sample could not be kept: ", Untrusted(event.note))
    return (f"{_number(event):.0f} samples were lost while the disk was full",)


def _history_damaged(event: Event) -> Parts:
    start, end = (time.localtime(moment) for moment in (event.time, event.until or event.time))
    form = "%H:%M:%S" if start[:3] == end[:3] else "%Y-%m-%d %H:%M:%S"
    whose = f"of {gpus_text(event.gpus)} " if event.gpus else ""
    return (f"history {whose}damaged from {time.strftime(form, start)} to {time.strftime(form, end)}",)


def _degraded(event: Event) -> Parts:
    return (f"{gpus_text(event.gpus)}: the link is below its maximum under load: {link_text(event.values)}",)


def _nvlinks(event: Event) -> Parts:
    up, before = _number(event), _number(event, "before")
    return (
        f"{gpus_text(event.gpus)}: {up:.0f} of {before:.0f} NVLinks are up; check the bridge, the switch and the kernel log",
    )


def _fabric(event: Event) -> Parts:
    why = Untrusted(str(event.values.get("why", "")).replace("_", " "))
    return (
        f"{gpus_text(event.gpus)}: the NVLink fabric is not ready",
        *((" (", why, ")") if why else ()),
        "; CUDA may not start",
    )


def _port_flaps(event: Event) -> Parts:
    over = duration_text(_number(event, "seconds"))
    return (
        "network port ",
        Untrusted(event.note or "?"),
        f" went down {_number(event):.0f} times within {over}; check cable and switch",
    )


def _slower(event: Event) -> Parts:
    metric = GPU_METRICS.get(str(event.values.get("metric", "")))
    if metric is None:
        return (f"{gpus_text(event.gpus)} is slower than the other GPUs of its model",)
    own, others = value_text(metric, event.value), value_text(metric, _number(event, "peers"))
    return (f"{gpus_text(event.gpus)}: {metric.title} is {own} ({others} on other GPUs of the same model)",)


_SENTENCES: dict[str, Callable[[Event], Parts]] = {
    "lost": _lost,
    "timeout": _of_gpu("is not responding"),
    "xid": _xid,
    "memory-errors": _memory_errors,
    "out-of-memory": _out_of_memory,
    "throttled": _throttled,
    "hot": _hot,
    "pcie-degraded": _degraded,
    "link-errors": _link_errors,
    "nvlink-down": _nvlinks,
    "fabric-not-ready": _fabric,
    "port-flaps": _port_flaps,
    "slower-than-peers": _slower,
    "memory-nearly-full": _nearly_full,
    "memory-growth": _growing,
    "idle-allocation": _idle,
    "allocation-unused": _unused,
    **DECISIONS,
    "stalled": _stalled,
    "serving-stuck": lambda event: (
        *_served(event),
        f" is stuck: it has requests and has made no token for {duration_text(_number(event))}",
    ),
    "serving-queue-long": lambda event: (*_served(event), f" has {_number(event):.0f} requests waiting"),
    "serving-slow": lambda event: (*_served(event), f" needs {seconds_text(_number(event))} to the first token (p95)"),
    "serving-errors": lambda event: (*_served(event), f" fails {rate_text(_number(event))} requests per second"),
    "threshold": _threshold,
    "verdict": _verdict,
    "gap": _gap,
    "dropped": _dropped,
    "history-damaged": _history_damaged,
    "removed": _of_gpu("disappeared"),
    "added": _of_gpu("appeared"),
    "back": _of_gpu("is responding again"),
    "gpu-free": _free,
    "instance-removed": _fixed("the MIG instance was removed"),
    "asleep": _of_gpu("is asleep"),
    "process-end": _ended,
    "process-start": _started,
    "suspend": lambda event: (f"the machine was suspended for {duration_text(_number(event))}",),
    "clock": _clock,
    "boot": _fixed("the machine booted"),
    "start": _fixed("recording started"),
    "stop": _fixed("recording stopped"),
}
# Conditions whose present value says more than that they are over: of what, the verb for the past, and the value.
_MEASURED: dict[str, Callable[[Event], tuple[Parts, str]]] = {
    "hot": lambda event: ((_heated(event), "was at"), f"{_number(event):.0f} °C"),
    "memory-nearly-full": lambda event: ((_where(event), " memory", "was"), f"{_number(event):.0f} % full"),
    "threshold": lambda event: ((*_measured(event), "was"), _measure_text(event, event.value)),
}
_CLEARED: dict[str, Callable[[Event], Parts]] = {
    "lost": _of_gpu("is responding again"),
    "timeout": _of_gpu("is responding again"),
    "removed": _of_gpu("is responding again"),
    "xid": lambda event: (f"{gpus_text(event.gpus)}: no new XID since XID {_number(event):.0f}",),
    "memory-errors": _of_gpu("has no new memory errors"),
    "throttled": _of_gpu("is no longer throttled"),
    "hot": _cooled,
    "pcie-degraded": _of_gpu("PCIe link is at its maximum again"),
    "link-errors": _of_gpu("has no new link errors"),
    "nvlink-down": lambda event: (f"{gpus_text(event.gpus)}: all {_number(event, 'before'):.0f} NVLinks are up again",),
    "fabric-not-ready": lambda event: (f"{gpus_text(event.gpus)}: the NVLink fabric is ready",),
    "port-flaps": lambda event: ("network port ", Untrusted(event.note or "?"), " has been stable again"),
    "slower-than-peers": _of_gpu("is as fast as other GPUs of its model again"),
    "memory-nearly-full": _has_room,
    "memory-growth": _no_longer_growing,
    "idle-allocation": _no_longer_idle,
    "allocation-unused": _no_longer_unused,
    "stalled": _no_longer_stalled,
    "serving-stuck": lambda event: (*_served(event), " makes tokens again"),
    "serving-queue-long": lambda event: (*_served(event), f" has only {_number(event):.0f} requests waiting"),
    "serving-slow": lambda event: (*_served(event), " answers in time again"),
    "serving-errors": lambda event: (*_served(event), " no longer fails requests"),
    "process-end": _ended,
    "threshold": lambda event: _threshold(event, cleared=True),
}
