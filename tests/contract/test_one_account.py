"""One incident, one sentence: every surface tells the same six incidents in the same words."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from gpulse.delivery.alerts import Alerts
from gpulse.delivery.webhook import payload
from gpulse.live.hub import Hub
from gpulse.live.past import Past
from gpulse.model.catalog import Gpu, Host, Process
from gpulse.model.codec import to_line
from gpulse.model.select import EVERYTHING
from gpulse.model.snapshot import Snapshot
from gpulse.present.alerts import alert_text
from gpulse.present.events import event_text
from gpulse.present.theme import Theme
from gpulse.sampling.sampler import Sampler
from gpulse.sources.simulated.source import SimulatedSource
from gpulse.store.history import HistoryReader, HistoryWriter
from gpulse.surfaces.history.tables import events_list
from gpulse.surfaces.report.account import account
from gpulse.surfaces.report.markdown import to_markdown
from gpulse.surfaces.report.pages import run_document
from gpulse.surfaces.report.plain import run_to_plain
from gpulse.surfaces.report.recorded_samples import recorded, remembered
from gpulse.surfaces.top.app import App
from gpulse.surfaces.top.history import History
from gpulse.surfaces.top.settings import ScreenSettings
from gpulse.surfaces.top.state import State

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
    held = Process(
        {"pid": 1224, "name": "python3", "user": "ada", "memory_used": int(78.5 * GIB), "running_time": 1000.0 + at}
    )
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
    assert {kind for kind, level in levels.items() if level == "warn"} == {"out-of-memory", "throttled"}
    assert {kind for kind, level in levels.items() if level == "critical"} == {
        "lost",
        "xid",
        "timeout",
        "memory-errors",
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
        json.loads(json.dumps(payload(transition, "json", "box")))["text"] for transition in watched.alerts.recent
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
