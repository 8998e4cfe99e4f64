"""The questions of the API: each with its parameters, the shape of its answer, and what answers it, in a worker thread."""

from __future__ import annotations

import json
import time
from itertools import islice

from .._version import __version__
from ..errors import GpulseError, UnknownGpu, UsageError
from ..model.catalog import GPU_METRICS, HOST_METRICS, SERVER_METRICS
from ..model.codec import to_plain
from ..model.condition import CONDITIONS, KINDS
from ..model.select import choose_parts
from ..model.stacks import CodeLine
from ..model.verdict import Budget
from ..monitor.presence import folder_of, presence_of
from ..monitor.run_record import result
from ..monitor.stack_requests import ask_stacks
from ..present.code import advised, code_sentence
from ..present.program import running_parts
from ..present.runs import command_text, gpus_of, limit_text, run_facts, speed_text
from ..present.text import clean
from ..present.verdicts import budget_row
from ..store.history import OWNERS
from ..store.runs import EMPTY, KeptRun, kept_flame, kept_runs, run_named
from ..units import parse_duration
from ..value import Value
from . import wire
from .parameters import Parameter, Refusal, choice, count, timestamp, words
from .past import HOST, SERVER

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from typing import Any

    from ..model.snapshot import Snapshot
    from ..model.verdict import Diagnosis
    from .hub import Hub
    from .past import Past

POINTS = 5000  # of one series, at most
_SPAN = 3600.0  # seconds shown when nobody says since when
_SHOWN = ("utilization", "memory_used", "power_draw", "temperature")
_METRICS = (
    "state",
    *GPU_METRICS,
    *(f"{HOST}{key}" for key in HOST_METRICS),
    *(f"{SERVER}{key}" for key in SERVER_METRICS),
)
_KINDS = tuple(dict.fromkeys((*KINDS, "alert", *CONDITIONS)))
_DECISIONS = (
    'send {"action": "silence", "for": "2h", "rule": "hot", "gpus": ["3"], "user": "ada", "reason": "..."}, '
    '{"action": "unsilence", "id": "1a2b3c"} or {"action": "acknowledge", "ids": ["1a2b3c"]}.'
)
LARGEST_DECISION = 4096  # bytes of a request
_MOST_RUNS = 100
_NO_RUNS = "No runs yet: `gpulse run -- COMMAND` and programs with a Monitor are listed here."
_FACTS_APART = ("code", "time", "verdict")  # facts that a page shows elsewhere
_WORDED = ("throttle_reasons:",)  # of these, the share of time in which one word applied can be asked for


class Question(Value):
    """One path below /api/. `find` gets the parameters by name and returns plain data, or JSON as bytes; it may block."""

    path: str
    summary: str
    find: Callable[[Any, Mapping[str, Any]], Any]
    shape: str
    parameters: Sequence[Parameter] = ()
    statuses: Sequence[int] = ()

    def answer(self, asked: Any, given: Mapping[str, Any]) -> bytes:
        """Return the answer as JSON; raise Refusal if there is none."""
        found = self.find(asked, given)
        return found if isinstance(found, bytes) else wire.compact(found)


class ApiRequest:
    """What questions are answered from."""

    def __init__(self, hub: Hub, past: Past | None) -> None:
        self.hub = hub
        self.past = past
        self._snapshot: tuple[int, bytes] = (-1, b"")

    def latest(self) -> Snapshot:
        """Return the latest snapshot; 503 when there is none yet."""
        if self.hub.latest is None:
            raise Refusal(503, "no sample has been taken yet.", {"retry-after": "1"})
        return self.hub.latest

    def snapshot(self) -> bytes:
        """Return the latest snapshot as text, made once however many ask."""
        number = self.hub.number
        if self._snapshot[0] != number or number == 0:
            hub, snapshot = self.hub, self.latest()
            text = self._written(snapshot, hub.active_alerts(), hub.verdicts.found, hub.problems, hub.verdicts.latest)
            self._snapshot = (number, text)
        return self._snapshot[1]

    def snapshot_at(self, at: float) -> bytes:
        """Return the machine as it was at a time; 404 if nothing was recorded then."""
        then = self.remembered().state_at(at)
        if then.snapshot is None:
            raise Refusal(404, "nothing was recorded at that time.")
        seen = self.hub.concealed(then.snapshot)
        return self._written(seen, then.alerts, then.verdicts, then.problems, then.diagnosis)

    def _written(self, snapshot: Snapshot, alerts: Any, verdicts: Any, problems: Any, diagnosis: Diagnosis) -> bytes:
        """Return a snapshot as text. One format of time in the whole API; that of recordings is text."""
        hub = self.hub
        server = {
            "version": __version__,
            "started": round(hub.started, 3),
            "interval": hub.interval,
            "commands": hub.commands,
            "history": self.past is not None,
        }
        if hub.idle_interval is not None:
            server["idle_interval"] = hub.idle_interval
        told = {"alerts": alerts, "verdicts": verdicts, "problems": problems, "time": round(snapshot.time, 3)}
        plain = to_plain(snapshot)
        pairs = zip(plain["gpus"], snapshot.gpus, strict=True)
        gpus = [values | wire.words_of(gpu, snapshot.time, diagnosis) for values, gpu in pairs]
        return wire.compact(plain | told | {"gpus": gpus, "server": server})

    def uuids(self) -> set[str]:
        """Return the UUIDs of the GPUs and MIG instances there now."""
        latest = self.hub.latest
        gpus = () if latest is None else latest.gpus
        return {part.uuid for gpu in gpus for part in (gpu, *gpu.instances) if part.uuid}

    def named(self, words: Sequence[str] | None) -> list[str] | None:
        """Return the UUIDs of the GPUs that words name, None for all; a word that names none now may be a UUID of the past."""
        if words is None or [*words] == ["all"]:
            return None
        gpus = () if self.hub.latest is None else self.hub.latest.gpus
        live, found = self.uuids(), []
        for word in words:
            try:
                chosen = [] if word in live or word.lower() == "visible" else choose_parts(gpus, [word], {})
            except UnknownGpu:
                chosen = []
            found += [part or gpus[at].uuid or word for at, part in chosen] or [word]
        return list(dict.fromkeys(found))

    def remembered(self) -> Past:
        """Return the history; 404 when this server records none."""
        if self.past is None:
            raise Refusal(404, "this server does not record a history.")
        return self.past


def stretch(given: Mapping[str, Any], span: float = _SPAN) -> tuple[float, float]:
    """Return the period that was asked for, the last `span` seconds by default; 422 if it is none."""
    end = time.time() if given["to"] is None else given["to"]
    start = max(0.0, end - span) if given["from"] is None else given["from"]
    if start >= end:
        raise Refusal(422, "from: must be earlier than to.")
    return start, end


def _history(asked: ApiRequest, given: Mapping[str, Any]) -> bytes:
    gpus = asked.named(given["gpus"])
    return asked.remembered().series(given["metrics"], gpus, *stretch(given), given["points"], asked.uuids())


def _usage(asked: ApiRequest, given: Mapping[str, Any]) -> Any:
    past, gpus = asked.remembered(), asked.named(given["gpus"])
    return past.usage(*stretch(given), given["by"], given["points"], gpus, asked.hub.commands, asked.uuids())


def _compare(asked: ApiRequest, given: Mapping[str, Any]) -> Any:
    b = stretch(given)
    start = max(0.0, 2 * b[0] - b[1]) if given["a_from"] is None else given["a_from"]
    end = b[0] if given["a_to"] is None else given["a_to"]
    if start >= end:
        raise Refusal(422, "a_from: must be earlier than a_to.")
    return asked.remembered().comparison((start, end), b, asked.named(given["gpus"]), asked.uuids())


def _events(asked: ApiRequest, given: Mapping[str, Any]) -> Any:
    start, end = stretch(given)
    kinds = given["kinds"]
    for kind in kinds or ():
        if kind not in _KINDS:
            raise Refusal(400, f"kinds: unknown kind {kind[:60]!r}; choose from {', '.join((*KINDS, 'alert'))}.")
    if asked.past is not None:
        found = asked.past.events(start, end, kinds)
    else:
        kept = asked.hub.events.between(start, end)
        found = [wire.event(event) for event in kept if kinds is None or event.is_named(kinds)]
    return {"events": found}


def _alerts(asked: ApiRequest, given: Mapping[str, Any]) -> Any:
    alerts, now = asked.hub.alerts, asked.latest().time
    found = {"alerts": [], "silences": []} if alerts is None else alerts.to_plain(now)
    return {"time": round(now, 3), **found}


def decide(asked: ApiRequest, body: bytes, by: str) -> bytes:
    """Do what somebody decided about alerts; refuse what is no decision. It is in force from the next sample on."""
    alerts = asked.hub.alerts
    if alerts is None:
        raise Refusal(404, "this server has no alerts.")
    try:
        plain = json.loads(body)
        action = plain["action"]
        texts = [plain.get(name, "") for name in ("for", "rule", "user", "reason", "id")]
        if not all(isinstance(text, str) for text in (*texts, *plain.get("gpus", ()), *plain.get("ids", ()))):
            raise TypeError("texts")
        if action == "silence":
            given = {name: plain.get(name, "") for name in ("rule", "user", "reason")}
            made = alerts.silence(by, parse_duration(plain["for"]), gpus=plain.get("gpus", ()), **given)
            return wire.compact({"id": made.id, "until": round(made.until, 3)})
        if action == "acknowledge":
            alerts.acknowledge(list(plain["ids"]), by)
        elif action == "unsilence":
            alerts.unsilence(plain["id"], by)
        else:
            raise KeyError(action)
    except GpulseError as error:
        raise Refusal(422, str(error)) from None
    except (ValueError, TypeError, KeyError, AttributeError, RecursionError):
        raise Refusal(422, _DECISIONS) from None
    return wire.compact({"ok": True})


def _processes(asked: ApiRequest, given: Mapping[str, Any]) -> Any:
    if given["from"] is None and given["to"] is None:
        return wire.process_list(asked.latest())
    uses = asked.remembered().uses(*stretch(given), asked.hub.commands)
    return {"time": round(time.time(), 3), "uses": uses}


def _runs(asked: ApiRequest, given: Mapping[str, Any]) -> Any:
    """Return the newest runs as text; none where they may not be shown, with the reason."""
    if reason := _runs_hidden(asked.hub):
        return {"runs": [], "note": reason}
    found = [_run_row(run) for run in islice(kept_runs(), _MOST_RUNS)]
    return {"runs": found, "note": "" if found else _NO_RUNS}


def _run(asked: ApiRequest, given: Mapping[str, Any]) -> Any:
    """Return one run, the newest if none is named, or the running program with a Monitor of this PID.

    With facts, lines of code with advice, and the tree of frames.
    """
    reason, run, pid = _runs_hidden(asked.hub), given["run"], given["pid"]
    if run is None and pid is None:
        newest = None if reason else next(kept_runs(), None)
        return _kept_run(KeptRun(EMPTY)) | {"title": reason or _NO_RUNS} if newest is None else _kept_run(newest)
    if reason:
        raise Refusal(404, reason)
    try:
        return _kept_run(run_named(run)) if pid is None else _running_program(pid)
    except UsageError as error:
        raise Refusal(404, error.message) from None


def _runs_hidden(hub: Hub) -> str:
    if not hub.real:
        return "A machine that is not this computer has no runs."
    return "" if hub.tells_programs else "This server hides command lines, and with them the runs."


def _run_row(run: KeptRun) -> dict[str, Any]:
    texts = {"command": command_text(run), "gpus": gpus_of(run), "speed": speed_text(run), "limit": limit_text(run)}
    return {"id": clean(run.id), "start": round(run.start, 3), "seconds": run.seconds, "result": result(run), **texts}


def _kept_run(run: KeptRun) -> dict[str, Any]:
    budget = Budget.from_plain(run.plain.get("budget"))
    told = [clean(str(text)) for text in run.list("code_text")]
    verdicts = [clean(str(one.get("text", ""))) for one in run.list("verdict") if isinstance(one, dict)]
    facts = [fact for fact in run_facts(run, result(run), time.time()) if fact[0] not in _FACTS_APART]
    return {
        "id": clean(run.id),
        "title": command_text(run),
        "facts": facts,
        "verdicts": verdicts,
        "budget": [] if budget is None else budget_row(budget),
        "code": told,
        "flame": kept_flame(run),
    }


def _running_program(pid: int) -> dict[str, Any]:
    present = None if folder_of(pid) is None else presence_of(pid)
    if present is None:
        raise Refusal(404, f"process {pid} has no running Monitor of the server's user.")
    lines = [CodeLine(**line) for line in present.code]
    sentence = code_sentence(lines)
    return {
        "id": present.run,
        "title": f"Process {pid}",
        "facts": [fact for fact in running_parts(present) if fact[0] not in ("", "GPU waits in")],
        "verdicts": [],
        "budget": [],
        "code": [text for text in (sentence, *advised(lines)) if text],
        "flame": ask_stacks(pid),
    }


def _is_metric(word: str) -> bool:
    prefix, colon, rest = word.partition(":")
    return word in _METRICS or (prefix + colon in _WORDED and 0 < len(rest) < 60 and rest.isascii())


_NAME = {"type": "string", "pattern": "^[A-Za-z0-9/:._-]{1,100}$"}
_METRIC = {"anyOf": [{"enum": list(_METRICS)}, {"type": "string", "pattern": "^throttle_reasons:[a-z_]{1,40}$"}]}
_FROM = timestamp("from", "Start time (default: one hour before `to`).")
_TO = timestamp("to", "End time (default: now).")


def _run_id(text: str) -> str:
    if not 1 <= len(text) <= 100:
        raise ValueError("must be an id of a run.")
    return text


def _is_name(word: str) -> bool:
    return 0 < len(word) <= 100 and word.isascii() and all(char.isalnum() or char in "/:._-" for char in word)


_GPUS = words(
    "gpus", "Index (0), range (0-3), UUID or its beginning, PCI bus id, or `all` (default: all).", _NAME, _is_name
)
_RUN = Parameter(
    "run",
    "Id of a run, the beginning of one, `last` or `last~1`, as in `gpulse runs`.",
    {"type": "string", "minLength": 1, "maxLength": 100},
    _run_id,
)
QUESTIONS = (
    Question("/api/snapshot", "Current values, as in `gpulse status --json`; with `at`, those recorded at that time.",
             lambda asked, given: asked.snapshot() if given["at"] is None else asked.snapshot_at(given["at"]), "Snapshot",
             (timestamp("at", "Time (default: now)."),), (404, 422, 503)),
    Question("/api/history", "Recorded metrics: minimum, mean and maximum per interval; null if unknown.", _history,
             "History", (
                 words("metrics", "Catalog keys; prefix those of the host with `host.`.", _METRIC, _is_metric, _SHOWN),
                 _GPUS, _FROM, _TO,
                 count("points", "Maximum number of intervals (default: 600); fewer if the response would be too large.", 1, POINTS, 600),
             ), (404, 422, 503)),
    Question("/api/processes", "Current processes on GPUs; with `from` or `to`, the processes in that period as `uses`.", _processes,
             "Processes", (_FROM, _TO), (404, 422, 503)),
    Question("/api/problems", "What is wrong now: verdicts and active alerts as one list, the worst and costliest first.",
             lambda asked, given: {"time": round(asked.latest().time, 3), "problems": asked.hub.problems}, "Problems", (), (503,)),
    Question("/api/alerts", "Active alerts with what people decided about each, and the silences in force.", _alerts,
             "Alerts", (), (503,)),
    Question("/api/events", "Events: faults, throttling, alerts, processes that started and ended.", _events, "Events",
             (_FROM, _TO, words("kinds", "Kinds of events to return (default: all).", {"enum": list(_KINDS)})), (422, 503)),
    Question("/api/usage", "Who used what: GPU hours, memory and energy per owner, in total and over time.", _usage, "Usage", (
        choice("by", "Owner (default: user).", OWNERS, "user"), _GPUS, _FROM, _TO,
        count("points", "Number of intervals (default: 120).", 1, 1000, 120)), (404, 422, 503)),
    Question("/api/compare", "Two periods of the history and their differences, as in `gpulse report --compare`.", _compare,
             "Comparison", (
                 timestamp("a_from", "Start time of the first period (default: as long before `from` as the second period is)."),
                 timestamp("a_to", "End time of the first period (default: `from`)."),
                 _FROM, _TO, _GPUS), (404, 422, 503)),
    Question("/api/runs", "Runs of the server's user, the newest first, as in `gpulse runs`.", _runs, "Runs"),
    Question("/api/run", "One run, or a running program with a Monitor: facts, lines of code at which the GPU waited, and its flame graph.",
             _run, "Run", (_RUN, count("pid", "PID of a running program with a Monitor, instead of `run`.", 1, 1 << 31)),
             (404, 422)),
    Question("/api/metrics-catalog", "All metrics with unit and meaning.", lambda asked, given: wire.catalog(asked.hub.details),
             "Catalog"),
)  # fmt: skip
