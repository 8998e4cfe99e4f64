"""One incident, one account: every surface tells it in the same words and says that it is as bad."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from gpulse.analysis.alerts import Notice
from gpulse.delivery.alerts import Alerts
from gpulse.delivery.post import json_shape
from gpulse.live.api import ApiRequest
from gpulse.live.hub import Hub
from gpulse.live.past import Past
from gpulse.model.catalog import Gpu, Host, Process
from gpulse.model.codec import to_line
from gpulse.model.condition import CONDITIONS, of_event, xid_of
from gpulse.model.event import Event
from gpulse.model.select import EVERYTHING
from gpulse.model.snapshot import Snapshot
from gpulse.model.verdict import Verdict
from gpulse.present.alerts import alert_plain, alert_text
from gpulse.present.events import event_style, event_text
from gpulse.present.theme import Theme
from gpulse.present.verdicts import short, style
from gpulse.present.words import remarks
from gpulse.sampling.sampler import Sampler
from gpulse.sources.simulated.source import SimulatedSource
from gpulse.store.history import HistoryReader, HistoryWriter
from gpulse.surfaces import doctor
from gpulse.surfaces.history.tables import events_list
from gpulse.surfaces.report.account import account
from gpulse.surfaces.report.comparison import run_to_plain
from gpulse.surfaces.report.document import to_markdown
from gpulse.surfaces.report.pages import run_document
from gpulse.surfaces.report.recorded_samples import recorded, remembered
from gpulse.surfaces.status.view import glance
from gpulse.surfaces.top.app import App
from gpulse.surfaces.top.history import History
from gpulse.surfaces.top.state import ScreenSettings, State
from tests.unit.analysis.test_free import why

if TYPE_CHECKING:
    from gpulse.model.metric import Value

START = 1_700_000_000.0 // 3600 * 3600
GIB = 1 << 30
SENTENCES = {
    "lost": "GPU 3 is lost (fell off the bus, XID 79)",
    "xid": "GPU 3 reported XID 79 (GPU has fallen off the bus): restart the machine; check power and slot if this comes back",
    "timeout": "GPU 4 is not responding",
    "memory-errors": "GPU 1: 3 new uncorrected memory errors",
    "out-of-memory": "ada's python3 (pid 1224) ended on GPU 0, probably out of memory: it held 78.5 GiB",
    "throttled": "GPU 2 throttled: too hot",
}
_ALERTS = {"lost": ("lost", "timeout"), "xid": ("xid",), "ecc": ("memory-errors",), "throttled": ("throttled",)}


def machine(at: int) -> Snapshot:
    """Return the machine at a second: the incidents begin at 20, 30, 40, 50 and 60."""
    size = int((70 if at < 17 else 78.5) * GIB)
    held = Process({"pid": 1224, "name": "python3", "user": "ada", "memory_used": size, "running_time": 1000.0 + at})
    full = {"memory_used": int(79 * GIB), "memory_percent": 98.75}
    gpus = (
        Gpu(_values(0, **full if at < 20 else {"memory_used": 0}), processes=(held,) if at < 20 else ()),
        Gpu(_values(1, ecc_uncorrected=0 if at < 30 else 3)),
        Gpu(_values(2, throttle_reasons=("hw_thermal_slowdown", "hw_slowdown") if at >= 40 else ())),
        Gpu(_values(3), state="ok") if at < 50 else Gpu(_values(3, xid_last=79), {"utilization": "lost"}, state="lost"),
        Gpu(_values(4), state="ok" if at < 60 else "timeout"),
    )
    return Snapshot(START + at, gpus, Host({"name": "box"}))


def _values(index: int, **more: Value) -> dict[str, Value]:
    return {
        "index": index,
        "uuid": f"GPU-{index}",
        "name": "NVIDIA H200",
        "memory_total": 80 * GIB,
        "utilization": 50,
        **more,
    }


@pytest.fixture(scope="module")
def samples() -> list[Snapshot]:
    return [machine(at) for at in range(120)]


class Watched:
    """A server that watched the incidents: what it streamed, alerted and kept."""

    def __init__(self, path: str, samples: list[Snapshot]) -> None:
        self.path = path
        self.alerts = Alerts({"log": False}, lambda _: None)
        self.writer = HistoryWriter(path)
        self.hub = Hub(None, 1.0, alerts=self.alerts, keep=self.writer.add)
        for snapshot in samples:
            self.hub.add(snapshot)
        self.writer.close()
        self.alerts.close()


@pytest.fixture(scope="module")
def watched(tmp_path_factory: pytest.TempPathFactory, samples: list[Snapshot]) -> Watched:
    return Watched(str(tmp_path_factory.mktemp("account") / "h.db"), samples)


def test_the_live_stream(watched: Watched) -> None:
    lines = b"".join(entry.data for entry in watched.hub.after(0)).decode().split("\n\n")
    told = [json.loads(line.partition("data: ")[2]) for line in lines if line.startswith("event: event\n")]
    assert {event["kind"]: event["text"] for event in told if event["kind"] in SENTENCES} == SENTENCES
    levels = {event["kind"]: event["level"] for event in told if event["kind"] in SENTENCES}
    assert {kind for kind, level in levels.items() if level == "warn"} == {"out-of-memory"}
    assert {kind for kind, level in levels.items() if level == "critical"} == {
        "lost",
        "xid",
        "timeout",
        "memory-errors",
        "throttled",
    }


def test_the_events_of_the_api(watched: Watched) -> None:
    past = Past(watched.path)
    told = past.events(START - 1, START + 1000, None)
    past.close()
    assert {event["kind"]: event["text"] for event in told if event["kind"] in SENTENCES} == SENTENCES


def test_the_history_on_the_command_line(watched: Watched) -> None:
    with HistoryReader(watched.path) as reader:
        lines = events_list(reader.events(START, START + 1000), START + 120)
    for kind, sentence in SENTENCES.items():
        (line,) = [line for line in lines if f"  {kind}  " in line]
        assert line.endswith(sentence)


def test_the_report_of_the_history(watched: Watched) -> None:
    told = run_to_plain(account(remembered(START, START + 1000, watched.path), "history"))["events"]
    assert {event["kind"]: event["text"] for event in told if event["kind"] in SENTENCES} == SENTENCES


def test_the_report_of_a_recording(tmp_path: Path, samples: list[Snapshot]) -> None:
    path = tmp_path / "run.ndjson"
    path.write_text("".join(f"{to_line(snapshot)}\n" for snapshot in samples))
    run = account(recorded(str(path)), "run")
    told = run_to_plain(run)["events"]
    assert {event["kind"]: event["text"] for event in told if event["kind"] in SENTENCES} == SENTENCES
    text = to_markdown(run_document(run)).replace("`", "").replace("\\", "")
    assert all(sentence in text for sentence in SENTENCES.values())


def test_the_live_screen(samples: list[Snapshot]) -> None:
    state = State(ScreenSettings(), History([]), Theme(0))
    app = App(Sampler(SimulatedSource(), EVERYTHING), state)
    told: dict[str, str] = {}
    for snapshot in samples:
        app._take(snapshot)
        told |= {event.kind: event_text(event) for event in state.events}
    assert {kind: text for kind, text in told.items() if kind in SENTENCES} == SENTENCES


def test_alerts_and_what_is_kept_of_them(watched: Watched) -> None:
    with HistoryReader(watched.path) as reader:
        kept = reader.events(START, START + 1000, {"alert"})
    for rule, kinds in _ALERTS.items():
        told = {event.kind: event_text(event) for event in kept if event.rule == rule and event.alert == "fire"}
        assert told == {kind: SENTENCES[kind] for kind in kinds}
    texts = {alert_text(transition) for transition in watched.alerts.recent}
    assert {SENTENCES[kind] for kinds in _ALERTS.values() for kind in kinds} <= texts
    posted = [
        json.loads(json.dumps(json_shape(Notice("fire", 0.0, (transition,)), "box", "")))["text"]
        for transition in watched.alerts.recent
    ]
    assert {SENTENCES["lost"], SENTENCES["throttled"]} <= set(posted)


def test_what_lasts_has_its_end_in_the_history(tmp_path: Path) -> None:
    from gpulse.analysis.events import EventDetector

    detector, path = EventDetector(), str(tmp_path / "h.db")
    with HistoryWriter(path) as writer:
        for at in range(200):
            snapshot = machine(at if at < 100 else 0)
            snapshot = Snapshot(START + at, snapshot.gpus, snapshot.host)
            writer.add(snapshot, detector.observe(snapshot))
    with HistoryReader(path) as reader:
        ends = {event.kind: event.until for event in reader.events(START, START + 1000) if event.until is not None}
        later = reader.events(START + 60, START + 70, {"lost"})
    assert ends == {"lost": START + 100, "timeout": START + 100, "throttled": START + 99}
    assert [event.time for event in later] == [START + 50]  # it had begun before and still lasted


# A second machine, sampled every ten seconds: what a program did to itself, a notice, a silent GPU, a full one, a leak, a slow link.
TOLD = {
    "GPU 0 reported XID 31 (memory page fault): restart the program; usually a bug in it": ("xid", "xid", "warn"),
    "GPU 1 reported XID 63 (a memory row was remapped): nothing to do now; it takes effect at the next reset": (
        "xid",
        "xid",
        "info",
    ),
    "GPU 2 is not responding": ("timeout", "lost", "critical"),
}
ALERTED = {
    "GPU 3 memory is 98 % full; ada's python3 (pid 77) holds 78.0 GiB": ("memory-nearly-full", "memory", "warn"),
    "GPU 4: the link is below its maximum under load: PCIe x4 of x16": ("pcie-degraded", "pcie_degraded", "warn"),
    "bob's leaky (pid 78) on GPU 5 grows by 600 MiB per minute": ("memory-growth", "leak", "warn"),
}


def second_machine(at: int) -> Snapshot:
    held = (
        min(78, 8 + at) if at < 100 else 20
    )  # GiB; a step at a time, since a program that takes all at once reserves it
    own = Process({"pid": 77, "name": "python3", "user": "ada", "memory_used": held * GIB, "running_time": 900.0 + at})
    grown = 10 * GIB + at * (100 << 20)
    leaky = Process({"pid": 78, "name": "leaky", "user": "bob", "memory_used": grown, "running_time": 900.0 + 10 * at})
    gpus = (
        Gpu(_values(0, **({"xid_last": 31} if at >= 20 else {}))),
        Gpu(_values(1, **({"xid_last": 63} if at >= 20 else {}))),
        Gpu(_values(2), state="ok" if at < 20 else "timeout"),
        Gpu(_values(3, memory_used=held * GIB, memory_percent=98.0 if held == 78 else held), processes=(own,)),
        Gpu(_values(4, utilization=99, pcie_width=4, pcie_width_max=16)),
        Gpu(_values(5, memory_used=grown, memory_percent=100 * grown / (80 * GIB)), processes=(leaky,)),
    )
    return Snapshot(START + 10 * at, gpus, Host({"name": "box"}))


@pytest.fixture(scope="module")
def second(tmp_path_factory: pytest.TempPathFactory) -> Watched:
    path = str(tmp_path_factory.mktemp("second") / "h.db")
    return Watched(path, [second_machine(at) for at in range(120)])


def test_an_incident_is_as_bad_in_the_stream_as_in_the_alert(second: Watched) -> None:
    lines = b"".join(entry.data for entry in second.hub.after(0)).decode().split("\n\n")
    told = [
        (line.partition("\n")[0], json.loads(line.partition("data: ")[2]))
        for line in lines
        if line.startswith(("event: event\n", "event: alert\n"))
    ]
    events = {one["text"]: (one["kind"], one["level"]) for name, one in told if name == "event: event"}
    styles = {"info": "label"}
    assert {text: events.get(text) for text in TOLD} == {
        text: (kind, styles.get(level, level)) for text, (kind, _, level) in TOLD.items()
    }
    fired = {one["text"]: (one["rule"], one["severity"]) for name, one in told if one.get("state") == "fire"}
    for text, (_, rule, level) in (TOLD | ALERTED).items():
        (found,) = [value for sentence, value in fired.items() if sentence.startswith(text)]
        assert found == (rule, level), text


def test_it_is_as_bad_in_the_history_and_the_report(second: Watched) -> None:
    with HistoryReader(second.path) as reader:
        kept = reader.events(START, START + 10_000)
    for text, (kind, rule, level) in (TOLD | ALERTED).items():
        same = [event for event in kept if event_text(event).startswith(text) and event.alert != "clear"]
        assert {event.severity for event in same} == {level}
        assert {event.kind for event in same} == {kind}
        assert {event.rule for event in same} <= {"", rule}
    report = run_to_plain(account(remembered(START, START + 10_000, second.path), "history"))["events"]
    assert {event["text"]: event["severity"] for event in report if event["text"] in TOLD} == {
        text: level for text, (_, _, level) in TOLD.items()
    }


def test_the_api_says_what_is_true_now(second: Watched) -> None:
    plain = json.loads(ApiRequest(second.hub, None).snapshot())
    alerts = {(one["rule"], one["uuid"]): one for one in plain["alerts"]}
    assert alerts["lost", "GPU-2"]["state"] == "firing"
    assert alerts["pcie_degraded", "GPU-4"]["text"].endswith("PCIe x4 of x16")
    assert ("memory", "GPU-3") not in alerts  # the memory was freed 20 samples ago
    earlier = Alerts({"log": False}, lambda _: None)
    for at in range(102):
        earlier.add(second_machine(at))
    full = next(alert_plain(one) for one in earlier.active if one.rule == "memory")
    earlier.close()
    assert (full["state"], full["text"]) == ("ended", "GPU 3 memory was 98 % full seconds ago, now 20 %")
    assert full["last_true"] == START + 990


def test_status_pick_and_doctor_use_the_same_words(second: Watched) -> None:
    snapshot = second_machine(110)
    lost, silent = machine(119).gpus[3:5]
    text = "\n".join(glance(Snapshot(START, (lost, silent, *snapshot.gpus[:2])), Theme(0), 120))
    assert "not responding" in text
    assert "lost (XID 79)" in text
    notes = {gpu.index: style for gpu in snapshot.gpus for note, style, *_ in remarks(gpu) if note.startswith("XID")}
    assert notes == {0: "warn", 1: "label"}
    assert [why(gpu) for gpu in (lost, silent)] == ["it is lost", "it is not responding"]
    said = [check.found for gpu in (lost, silent) for check in doctor._gpu(gpu)]
    assert said == ["NVIDIA H200: lost (fell off the bus).", "NVIDIA H200: not responding."]


@pytest.mark.parametrize(("code", "free"), [(31, True), (63, True), (79, False), (74, False), (999, False)])
def test_pick_refuses_a_gpu_whose_xid_is_critical(code: int, free: bool) -> None:
    assert (xid_of(code).severity != "critical") is free
    assert (why(Gpu(_values(0, xid_last=code, memory_used=0, utilization=0))) == "") is free


@pytest.mark.parametrize(
    ("key", "values", "kind", "value"),
    [
        ("xid", {"xid": 31.0}, "xid", 31.0),
        ("xid", {"xid": 63.0}, "xid", 63.0),
        ("xid", {"xid": 79.0}, "xid", 79.0),
        ("lost", {}, "lost", None),
        ("driver_unresponsive", {}, "timeout", None),
        ("memory_errors", {}, "memory-errors", 3.0),
        ("out_of_memory", {}, "out-of-memory", None),
        ("memory_pressure", {}, "memory-nearly-full", 98.0),
        ("memory_leak", {}, "memory-growth", 1.0),
        ("pcie_degraded", {}, "pcie-degraded", None),
        ("idle_allocation", {}, "idle-allocation", None),
        ("thermal_throttled", {}, "throttled", None),
    ],
)
def test_a_verdict_is_as_bad_as_the_event(key: str, values: dict[str, float], kind: str, value: float | None) -> None:
    verdict = Verdict(key, "high", values=values)
    assert style(verdict) == event_style(Event(START, kind, ("0",), value=value))
    assert short(verdict) == (of_event(kind) or CONDITIONS["unknown"]).title
