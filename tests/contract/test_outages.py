"""A GPU that is lost or hangs at a known sample: every surface gives the same begin and the same duration, at any moment."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from gpulse.analysis.alerts import RuleSet, rules_from
from gpulse.analysis.concerns import concerns
from gpulse.analysis.diagnosis.running import LiveDiagnosis, RunningDiagnosis
from gpulse.analysis.events import EventDetector
from gpulse.live import wire
from gpulse.live.hub import Verdicts
from gpulse.model.select import Wanted
from gpulse.present.concerns import facts
from gpulse.present.verdicts import title
from gpulse.present.words import silence
from gpulse.sampling.clock import ManualClock
from gpulse.units import duration_text
from tests.unit.scripted import VALUES, ScriptedDevice, sample, sampler_of

if TYPE_CHECKING:
    from collections.abc import Iterator

    from gpulse.model.catalog import State
    from gpulse.model.event import Event
    from gpulse.model.snapshot import Snapshot
    from gpulse.model.verdict import Verdict
    from gpulse.sources.base import DeviceSample

WHEN = 73.0  # seconds after the first sample at which the GPU is lost
BACK = 200.0
KEYS: dict[State, str] = {"lost": "lost", "timeout": "driver_unresponsive"}


def watched(state: State, interval: float) -> Iterator[Snapshot]:
    """Yield samples of a machine whose only GPU is down from WHEN to BACK."""
    clock, first, last = ManualClock(), round(WHEN / interval) + 1, round(BACK / interval) + 1

    def script(snap: int, keys: frozenset[str]) -> DeviceSample:
        answer = sample({key: value for key, value in VALUES.items() if key in keys})
        if first <= snap < last:
            answer = sample({})
            answer.state = state
        return answer

    sampler = sampler_of(ScriptedDevice(0, script), wanted=Wanted(gpu=VALUES), clock=clock)
    for _ in range(round((BACK + 20) / interval)):
        yield sampler.read()
        clock.sleep(interval)


class Surfaces:
    """Everything that says since when a GPU is down."""

    def __init__(self) -> None:
        self.live, self.whole, self.page = LiveDiagnosis(), RunningDiagnosis(), Verdicts(programs=False)
        self.rules = RuleSet(rules_from({"enable": ["lost"], "lost": {"for": 10.0}}))
        self.detector = EventDetector()
        self.events: dict[object, Event] = {}

    def add(self, snapshot: Snapshot) -> None:
        self.live.add(snapshot)
        self.whole.add(snapshot)
        self.page.add(snapshot)
        self.rules.observe(snapshot)
        self.events |= {event.key: event for event in self.detector.observe(snapshot)}

    def check(self, snapshot: Snapshot, key: str, began: float) -> None:
        """Compare all of them with when it began."""
        lasted, now = snapshot.time - began, snapshot.time
        text = duration_text(lasted)
        for verdict in (self.live.latest[0], self.whole.diagnosis()[0]):
            check_verdict(verdict, key, began, lasted)
        (concern,) = concerns(self.live.latest, self.rules.active, now)
        assert concern.since == pytest.approx(began)
        assert concern.lost == pytest.approx(lasted)
        assert f"for {text}" in facts(concern)
        assert text in title(self.live.latest[0])
        assert [row["since"] for row in self.page.found] == [pytest.approx(began)]
        assert text in self.page.found[0]["text"]
        (problem,) = wire.problems(self.page.latest, self.rules.active, now)
        assert problem["lost"] == pytest.approx(lasted, abs=0.1)
        assert text in problem["text"]
        assert f"for {text}" in silence(snapshot.gpus[0], now)[0]
        for alert in self.rules.active:
            assert alert.since == pytest.approx(began)
        (event,) = (event for event in self.events.values() if event.kind in KEYS)
        assert event.time == pytest.approx(began)
        assert event.until is None


def check_verdict(verdict: Verdict, key: str, began: float, lasted: float) -> None:
    assert verdict.key == key
    assert verdict.values["start_time"] == pytest.approx(began)
    assert verdict.evidence[0].value == pytest.approx(lasted, abs=1e-3)


@pytest.mark.parametrize("interval", [0.2, 1.0])
@pytest.mark.parametrize("state", ["lost", "timeout"])
def test_every_surface_gives_the_same_begin_and_duration(state: State, interval: float) -> None:
    surfaces, began, start, checked = Surfaces(), None, None, 0
    for snapshot in watched(state, interval):
        start = snapshot.time if start is None else start
        surfaces.add(snapshot)
        gpu = snapshot.gpus[0]
        if gpu.state == state and began is None:
            began = snapshot.time
            assert began - start == pytest.approx(WHEN)
        if began is not None and gpu.state == state and snapshot.time - began >= 1.0:
            surfaces.check(snapshot, KEYS[state], began)
            checked += 1
    assert checked > 100
    assert began is not None
    lasted = BACK - WHEN
    for verdict in (surfaces.whole.diagnosis()[0], surfaces.live.latest[0]):
        check_verdict(verdict, KEYS[state], began, lasted)
        assert verdict.values["end_time"] == pytest.approx(began + lasted)
    (event,) = (event for event in surfaces.events.values() if event.kind == state)
    assert event.until == pytest.approx(began + lasted)
    assert concerns(surfaces.live.latest, surfaces.rules.active) == ()
