"""The past: series, events and states of the history, as they are sent. Called in worker threads only, since it reads a disk."""

from __future__ import annotations

import os
import threading
from contextlib import contextmanager

from ..analysis.alerts import Transition
from ..analysis.diagnosis.judge import diagnose
from ..analysis.diagnosis.running import WINDOW
from ..model.verdict import Diagnosis
from ..present.events import event_style, event_text
from ..present.verdicts import QUIET, verdict_row
from ..store.history import HistoryBusy, HistoryError, HistoryReader, Recorder
from ..store.history.columns import SERVING
from . import wire
from .parameters import Refusal
from .wire import compact

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
    from contextlib import ExitStack
    from typing import Any

    from ..model.event import Event
    from ..store.history import HistorySeries

HOST = "host."  # before the metrics of the machine
SERVER = "serving."  # before those of model servers
_MOST_VALUES = 300_000  # points of all series of one answer: 10 MB of text
_MOST_EVENTS = 2000


def open_history(
    path: str | None,
    real: bool,
    ends: ExitStack,
    told: Callable[[HistoryError], None],
    failed: Callable[[str], None] | None = None,
) -> tuple[Recorder | None, Past | None]:
    """Open a history to write and to ask, which `ends` closes; a machine that is not this computer has a temporary one by default.

    `told` is given the error if it cannot be written: one that another process writes already is only read. `failed` is given a sentence
    when it cannot be written any more.
    """
    if path is None and not real:
        import tempfile

        folder = ends.enter_context(tempfile.TemporaryDirectory(prefix="gpulse-", ignore_cleanup_errors=True))
        path = os.path.join(folder, "history.db")
    recorder: Recorder | None = None
    try:
        recorder = Recorder(path, told=failed)
        ends.callback(_end, recorder, failed)
        path = recorder.path
    except HistoryError as error:
        told(error)
        if not isinstance(error, HistoryBusy):
            return None, None
    past = Past(path)
    ends.callback(past.close)
    return recorder, past


def _end(recorder: Recorder, failed: Callable[[str], None] | None) -> None:
    """Close a history and tell how many samples are lost, if any are."""
    recorder.close(1.0)
    if recorder.unwritten and failed is not None:
        failed(f"{recorder.unwritten} samples could not be written to {recorder.path} and are lost.")


class Past:
    """A history to ask, opened at the first question. `path` may be written meanwhile by this process or another."""

    def __init__(self, path: str | None) -> None:
        self.path = path
        self._lock = threading.Lock()
        self._reader: HistoryReader | None = None

    def close(self) -> None:
        """Close the file; safe to call twice."""
        if self._reader is not None:
            self._reader.close()

    def series(
        self,
        metrics: Sequence[str],
        gpus: Sequence[str] | None,
        start: float,
        end: float,
        points: int,
        live: Collection[str] = (),
    ) -> bytes:
        """Return series as JSON; `gpus` None means all. Many series have fewer points each, so that the answer stays small.

        Raises Refusal (404) for a GPU that is neither in the history nor among `live`, the UUIDs of those there now.
        """
        with self._asking() as reader:
            known = reader.gpus(start, end)
            _check_known(reader, gpus, live)
            uuids = [gpu.uuid for gpu in known] if gpus is None else list(gpus)
            own = [key for key in metrics if not key.startswith((HOST, SERVER))]
            machine = [key.removeprefix(HOST) for key in metrics if key.startswith(HOST)]
            served = [key.removeprefix(SERVER) for key in metrics if key.startswith(SERVER)]
            servers = [*reader.servers(start, end)] if served else []
            count = len(own) * len(uuids) + len(machine) + len(served) * len(servers)
            points = max(2, min(points, _MOST_VALUES // max(1, count)))
            found = reader.series(own, uuids, start, end, points) if own and uuids else []
            found += reader.host_series(machine, start, end, points) if machine else []
            found += reader.series(served, servers, start, end, points) if servers else []
            missing = reader.recorded(start, end).gaps(start, end)
        told = [
            {"uuid": gpu.uuid, "index": gpu.index, "name": gpu.name, "memory_total": gpu.memory_total}
            for gpu in known
            if gpu.uuid in uuids
        ]
        gaps = [(round(first, 3), round(last, 3)) for first, last in missing]
        return _written({"from": start, "to": end, "gpus": told, "gaps": gaps}, found)

    def events(self, start: float, end: float, kinds: Sequence[str] | None) -> list[dict[str, Any]]:
        """Return what happened, the oldest first; of very much the newest."""
        with self._asking() as reader:
            found = reader.events(start, end, kinds)
        return [wire.event(event) for event in found[-_MOST_EVENTS:]]

    def state_at(self, at: float) -> PastState:
        """Return the machine as it was at a time."""
        with self._asking() as reader:
            return PastState(reader, at)

    def uses(self, start: float, end: float, commands: bool) -> list[dict[str, Any]]:
        """Return who used which GPU and when, the one that came first at the head; of very many the newest."""
        with self._asking() as reader:
            found = sorted(reader.processes(start, end), key=lambda use: use.first)[-_MOST_EVENTS:]
        return [
            {"uuid": use.uuid, "pid": use.pid, "first": use.first, "last": use.last, "memory_most": use.memory_most}
            | {word: text for word, text in use.text.items() if commands or word != "command"}
            for use in found
        ]

    def usage(
        self,
        start: float,
        end: float,
        by: str,
        points: int,
        gpus: Sequence[str] | None,
        commands: bool,
        live: Collection[str] = (),
    ) -> dict[str, Any]:
        """Return who used what, in total and over time."""
        from .periods import usage_answer

        with self._asking() as reader:
            _check_known(reader, gpus, live)
            return usage_answer(reader, start, end, by, points, gpus, commands)

    def comparison(
        self, a: tuple[float, float], b: tuple[float, float], gpus: Sequence[str] | None, live: Collection[str] = ()
    ) -> dict[str, Any]:
        """Return two periods side by side."""
        from .periods import PeriodFigures, comparison_answer

        with self._asking() as reader:
            _check_known(reader, gpus, live)
            return comparison_answer(PeriodFigures(reader, *a, gpus), PeriodFigures(reader, *b, gpus))

    @contextmanager
    def _asking(self) -> Iterator[HistoryReader]:
        try:
            with self._lock:
                if self._reader is None:
                    self._reader = HistoryReader(self.path)
            yield self._reader
        except HistoryError as error:
            raise Refusal(503, str(error)) from None


def _check_known(reader: HistoryReader, gpus: Sequence[str] | None, live: Collection[str]) -> None:
    """Raise Refusal (404) for a GPU that nobody knows."""
    for uuid in reader.unknown([uuid for uuid in gpus or () if uuid not in live]):
        raise Refusal(404, f"unknown GPU {uuid!r}; api/snapshot lists the indices and UUIDs.")


def _written(head: dict[str, Any], found: list[HistorySeries]) -> bytes:
    """Return the answer; written by hand, since it is mostly numbers and these take json three times as long."""
    shared = found[0].times if found and all(series.times == found[0].times for series in found) else None
    parts = [compact(head)[:-1].decode()]
    if shared is not None:
        parts.append(f',"times":{_times(shared)}')
    texts = []
    for series in found:
        owner = HOST if not series.uuid else SERVER if series.uuid.startswith(SERVING) else ""
        name = compact({"uuid": series.uuid, "key": f"{owner}{series.key}"})[:-1].decode()
        own = "" if shared is not None else f',"times":{_times(series.times)}'
        mean = _numbers(series.mean)
        texts.append(f'{name}{own},"min":{_numbers(series.min)},"mean":{mean},"max":{_numbers(series.max)}}}')
    parts.append(f',"series":[{",".join(texts)}]}}')
    return "".join(parts).encode()


def _times(times: Sequence[float]) -> str:
    return f"[{','.join([f'{time:.3f}' for time in times])}]"


def _numbers(values: Sequence[float]) -> str:
    # a value minus itself is 0 unless it is infinite or none at all
    return f"[{','.join(['null' if value - value else f'{value:.9g}' for value in values])}]"


_LOOK_BACK = 86_400.0  # seconds in which an alert that was active at the moment must have fired
_MOMENTARY = ("process-end", "out-of-memory", "gpu-free")  # kinds of alerts that are never cleared


class PastState:
    """What was known at a time. `snapshot` is the last one at or before it, None if nothing was recorded then."""

    __slots__ = ("alerts", "diagnosis", "problems", "snapshot", "verdicts")

    def __init__(self, reader: HistoryReader, at: float) -> None:
        samples = list(reader.snapshots(at - WINDOW, at + 0.001)) if reader.recorded(at, at).holds(at) else []
        self.snapshot = samples[-1] if samples else None
        self.diagnosis = Diagnosis()
        self.verdicts: list[dict[str, Any]] = []
        self.alerts: list[dict[str, Any]] = []
        self.problems: list[dict[str, Any]] = []
        if self.snapshot is not None:
            diagnosis = self.diagnosis = diagnose(samples)
            active = _active(reader.events(at - _LOOK_BACK, at + 0.001, {"alert"}), at)
            self.verdicts = [verdict_row(verdict) for verdict in diagnosis if verdict.key not in QUIET]
            self.alerts = [_alert_row(event) for event in active]
            self.problems = wire.problems(diagnosis, map(Transition, active), at)


def _active(events: Iterable[Event], at: float) -> list[Event]:
    found: dict[tuple[Any, ...], Event] = {}
    for event in events:
        key = (event.rule, event.uuids)
        if event.alert == "clear":
            found.pop(key, None)
        elif event.kind not in _MOMENTARY and (event.until is None or event.until > at):
            found[key] = event
    return [*found.values()]


def _alert_row(event: Event) -> dict[str, Any]:
    return {
        "time": round(event.time, 3),
        "rule": event.rule,
        "state": "fire",
        "severity": event.severity,
        "level": event_style(event),
        "uuid": event.uuids[0] if event.uuids else "",
        "text": event_text(event),
    }
