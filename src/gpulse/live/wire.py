"""What clients are sent: snapshots, processes and the catalog as plain data, and the last minutes of the stream as numbered text."""

from __future__ import annotations

import json
import secrets
import threading
import time
from collections import deque

from ..analysis.concerns import concerns, standing_of
from ..analysis.readings import activity
from ..model.catalog import GPU_METRICS, HOST_METRICS, PROCESS_METRICS, SERVER_METRICS, TRACES, Gpu, Process
from ..model.snapshot import Snapshot
from ..model.verdict import Concern
from ..present.alerts import alert_plain
from ..present.concerns import worded
from ..present.cost import serving_pieces
from ..present.events import event_style, event_text
from ..present.text import clean
from ..present.words import hold_note, remarks, silence
from ..store.history.columns import SERVING
from ..value import Value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
    from typing import Any

    from ..analysis.alerts import Transition
    from ..model.catalog import Server
    from ..model.event import Event
    from ..model.metric import Metric, Reading
    from ..model.snapshot import Problem
    from ..model.verdict import Diagnosis

_ENDLESS = 1e300  # the catalog's word for no upper bound
# What never changes is in /api/snapshot; a stream repeats only what a client finds a GPU by. Traces are for the diagnosis.
_MOVING = (
    frozenset(key for key, metric in GPU_METRICS.items() if metric.cost != "static") | {"uuid", "index"}
) - TRACES
_MOVING_HOST = frozenset(key for key, metric in HOST_METRICS.items() if metric.cost != "static")
_USUAL = ("unsupported", "skipped")  # gaps that are the same in every sample


def compact(plain: object) -> bytes:
    """Return plain data as JSON in ASCII, without spaces and line ends."""
    return json.dumps(plain, ensure_ascii=True, allow_nan=False, separators=(",", ":")).encode()


def message(event: str, plain: object, id: str = "") -> bytes:
    """Return one event of a stream."""
    head = f"id: {id}\n" if id else ""
    return f"{head}event: {event}\ndata: ".encode() + compact(plain) + b"\n\n"


def event(event: Event) -> dict[str, Any]:
    """Return an event as pages show it: its sentence, how bad it is, and from when to when."""
    plain: dict[str, Any] = {
        "time": round(event.time, 3),
        "uuid": event.uuids[0] if event.uuids else "",
        "uuids": list(event.uuids),
        "kind": event.category,
        "level": event_style(event),
        "text": event_text(event),
    }
    if event.until is not None:
        plain["until"] = round(event.until, 3)
    if event.rule:
        plain |= {"rule": event.rule, "state": event.alert}
    return plain


def alert(transition: Transition) -> dict[str, Any]:
    """Return a transition of an alert as pages show it: as programs are given it, and how bad it is."""
    return alert_plain(transition) | {"level": event_style(transition.event)}


def problems(
    diagnosis: Diagnosis,
    alerts: Iterable[Transition],
    now: float,
    standing: Callable[[Transition, float], dict[str, Any]] | None = None,
) -> list[dict[str, Any]]:
    """Return what is wrong now, the worst first, as text; `standing` tells what people decided about an alert."""
    active = {alert.id: alert for alert in alerts}
    found = [one.to_plain() for one in worded(concerns(diagnosis, active.values(), now))]
    for plain in found if standing is not None else ():
        assert standing is not None
        plain["alerts"] = [
            {"id": id, "rule": active[id].rule, **standing(active[id], now)} for id in plain["alerts"] if id in active
        ]
    return found


def history_problems(found: Iterable[Problem], now: float) -> list[dict[str, Any]]:
    """Return what is wrong with the history, in the shape of `problems`."""
    return [
        Concern(
            "history-unwritable",
            "critical",
            now,
            title="history not written",
            text=clean(one.message),
            remedy=one.remedy,
        ).to_plain()
        for one in found
    ]


def same_problems(found: Sequence[Mapping[str, Any]], before: Sequence[Mapping[str, Any]]) -> bool:
    """Return whether nothing but what problems have cost so far differs, which always grows."""
    return [{**one, "lost": 0} for one in found] == [{**one, "lost": 0} for one in before]


def sample(snapshot: Snapshot, diagnosis: Diagnosis | None = None) -> dict[str, Any]:
    """Return the values of a snapshot that can change, without processes; `diagnosis` is the last judgement, if there is any."""
    return {
        "time": round(snapshot.time, 3),
        "gpus": [_gpu(gpu) | words_of(gpu, snapshot.time, diagnosis) for gpu in snapshot.gpus],
        "host": _values(snapshot.host, _MOVING_HOST),
    } | ({"serving": [_server(server) for server in snapshot.serving]} if snapshot.serving else {})


def _server(server: Server) -> dict[str, Any]:
    """Return a model server: its values, the name of its series in the history, and its line as text."""
    plain = _values(server, SERVER_METRICS)
    plain["key"] = f"{SERVING}{server.key}"
    plain["activity"] = activity(server)
    plain["pieces"] = [[text, style] for text, style in serving_pieces(server)]
    return plain


def processes(snapshot: Snapshot) -> dict[str, Any]:
    """Return the processes of a snapshot under their GPUs, those in MIG instances under these."""
    found = [{"uuid": gpu.uuid or "", "processes": [*map(_process, gpu.processes)]} for _, gpu in _parts(snapshot)]
    return {"time": round(snapshot.time, 3), "gpus": found}


def process_list(snapshot: Snapshot) -> dict[str, Any]:
    """Return the processes of a snapshot in one list, each with the number and UUID of its GPU."""
    found = [
        {"gpu": whole.index, "uuid": gpu.uuid or "", **_process(process)}
        for whole, gpu in _parts(snapshot)
        for process in gpu.processes
    ]
    return {"time": round(snapshot.time, 3), "processes": found}


def _parts(snapshot: Snapshot) -> Iterator[tuple[Gpu, Gpu]]:
    """Yield each GPU and each MIG instance, with the GPU it belongs to before it."""
    return ((whole, gpu) for whole in snapshot.gpus for gpu in (whole, *whole.instances))


def catalog(details: Collection[str] = ()) -> dict[str, list[dict[str, Any]]]:
    """Return the metrics that a server has: all but the details, of which it samples only these."""
    things = {"gpu": GPU_METRICS, "host": HOST_METRICS, "process": PROCESS_METRICS, "serving": SERVER_METRICS}
    return {
        thing: [_metric(metric) for metric in metrics.values() if metric.group != "details" or metric.key in details]
        for thing, metrics in things.items()
    }


def without_commands(snapshot: Snapshot, of: str | None = None) -> Snapshot:
    """Return a snapshot without the command lines of its processes; those of the user `of` stay."""

    def hidden(process: Process) -> bool:
        return process.command is not None and (of is None or process.user != of)

    def bare(gpu: Gpu) -> Gpu:
        shown = tuple(process.replace(command=None) if hidden(process) else process for process in gpu.processes)
        return gpu.replace(processes=shown, instances=tuple(map(bare, gpu.instances)))

    if not any(hidden(process) for gpu in snapshot.gpus for process in gpu.all_processes()):
        return snapshot
    return snapshot.replace(gpus=tuple(map(bare, snapshot.gpus)))


def words_of(gpu: Gpu, now: float, diagnosis: Diagnosis | None = None) -> dict[str, Any]:
    """Return what the terminal says of a GPU beside its values, as texts with their styles.

    `standing` is healthy, idle, problem or unjudged, missing without a `diagnosis`. `silence` is why it shows no values, `notes`
    what they do not say; either is missing where there is nothing to say.
    """
    quiet, notes = silence(gpu, now), [[text, style] for text, style, _ in remarks(gpu)]
    standing = {} if diagnosis is None else {"standing": standing_of(gpu, diagnosis)}
    return standing | ({"silence": [*quiet]} if quiet[0] else {}) | ({"notes": notes} if notes else {})


def _gpu(gpu: Gpu) -> dict[str, Any]:
    plain = _values(gpu, _MOVING)
    plain["state"] = gpu.state
    if held := hold_note(gpu):
        plain["held"] = held
    if gpu.since is not None:
        plain["since"] = round(gpu.since, 3)
    if gaps := {key: gap for key, gap in gpu.gaps.items() if gap not in _USUAL}:
        plain["gaps"] = gaps
    if gpu.instances:
        plain["instances"] = [_gpu(part) for part in gpu.instances]
    return plain


def _process(process: Reading) -> dict[str, Any]:
    plain = _values(process, PROCESS_METRICS)
    if process.gaps:
        plain["gaps"] = dict(process.gaps)
    return plain


def _values(reading: Reading, keys: frozenset[str] | Mapping[str, Metric]) -> dict[str, Any]:
    return {key: _short(value) for key, value in reading.items() if key in keys}


def _short(value: Any) -> Any:
    """Return a value with three digits after the point: more is noise, and 50 clients would pay for it every second."""
    if isinstance(value, float):
        return round(value, 3)
    return [_short(part) for part in value] if isinstance(value, tuple) else value


def _metric(metric: Metric) -> dict[str, Any]:
    return {
        "key": metric.key,
        "title": metric.title,
        "short": metric.short,
        "type": type(metric).__name__.lower(),
        "unit": metric.unit.name,
        "symbol": metric.unit.symbol,
        "kind": metric.kind,
        "group": metric.group,
        "help": metric.help,
        "low": metric.low,
        "high": None if metric.high >= _ENDLESS else metric.high,
        "warn": metric.warn,
        "critical": metric.critical,
        "whole": metric.whole or None,
        "limit": metric.limit or None,
    }


REPLAYED = 120  # samples that a client which comes back is given again
KEPT = REPLAYED + 64  # one that has begun to read these may be slow for so long


class StreamEntry(Value):
    """One sample: its number, from 1 on, its time in seconds since 1970, and the text of the stream for it."""

    number: int
    time: float
    data: bytes


class StreamLog:
    """What streams are served from. One thread appends; any thread may read, and never waits for a driver or a disk."""

    def __init__(self, interval: float, kept: int = KEPT) -> None:
        self.run = secrets.token_hex(4)
        self.started = time.time()
        self.interval = interval
        self.number = 0
        self.over = False
        self._seen = float("-inf")  # when the latest came, on the clock that cannot be set
        self._listeners: list[Callable[[], None]] = []
        self._lock = threading.Lock()
        self._arrived = threading.Condition(self._lock)
        self._entries: deque[StreamEntry] = deque(maxlen=kept)
        self._replayed = min(REPLAYED, kept)
        self._reported: set[str] = set()  # errors

    @property
    def age(self) -> float:
        """Seconds since the latest sample came; infinite when there is none."""
        return time.monotonic() - self._seen

    @property
    def trouble(self) -> str:
        """Why it is not ready to be asked, in a sentence; empty if it is."""
        if not self.number:
            return "no sample has been taken yet."
        return "" if self.age < 3 * self.interval + 5 else f"the last sample is {self.age:.0f} s old."

    @property
    def unready(self) -> str:
        """Why it does not do all that it should, in a sentence; empty if it does."""
        return self.trouble

    @property
    def ready(self) -> bool:
        """Whether it can be asked: the latest sample is fresh."""
        return not self.trouble

    def listen(self, listener: Callable[[], None]) -> None:
        """Have a function called, in the appending thread, whenever there is something new."""
        self._listeners.append(listener)

    def after(self, number: int) -> list[StreamEntry]:
        """Return the entries that follow a number, the oldest first; those that are gone are missing."""
        with self._lock:
            count = min(self.number - number, len(self._entries))
            return [self._entries[at] for at in range(-count, 0)] if count > 0 else []

    def greeting(self) -> tuple[int, bytes]:
        """Return what a new client is given at once, and the number of its last sample; 0 when there is none yet."""
        with self._lock:
            return self.number, self._before_latest() + self._entries[-1].data if self._entries else b""

    def resume(self, last_id: str) -> tuple[int, float | None]:
        """Return the number that a client with this Last-Event-ID goes on from, and where a hole in its samples begins.

        None where all it missed is still here. The beginning of a hole is an estimate: a client knows better what it has.
        """
        run, _, digits = last_id.rpartition("-")
        number = int(digits) if digits.isascii() and digits.isdecimal() and len(digits) < 16 else -1
        with self._lock:
            newest, latest = self.number, self._entries[-1] if self._entries else None
        if run == self.run and 0 <= newest - number <= self._replayed:
            return number, None
        since = self.started
        if run == self.run and 0 <= number < newest and latest is not None:
            since = max(since, latest.time - (newest - number) * self.interval)
        return max(0, newest - 1), since

    def _before_latest(self) -> bytes:
        """Return what a new client needs beside the latest entry."""
        return b""

    def _next_id(self) -> str:
        return f"{self.run}-{self.number + 1}"

    def _append(self, time_: float, data: bytes, also: Callable[[], None] = lambda: None) -> None:
        """Add an entry and wake those who listen; `also` is called under the same lock."""
        with self._lock:
            also()
            self.number, self._seen = self.number + 1, time.monotonic()
            self._entries.append(StreamEntry(self.number, time_, data))
            self._arrived.notify_all()
        self._tell()

    def _tell(self) -> None:
        for listener in self._listeners:
            listener()

    def _report(self, error: Exception, failed: Callable[[Exception], None] | None) -> None:
        """Report an error, once for each message and not without end."""
        if failed is not None and repr(error) not in self._reported and len(self._reported) < 100:
            self._reported.add(repr(error))
            failed(error)
