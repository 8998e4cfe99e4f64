"""The live judge: a judgement every ten seconds over the last minute, at a bounded cost."""

from __future__ import annotations

from gpulse.analysis.diagnosis.judge import diagnose
from gpulse.analysis.diagnosis.running import LiveDiagnosis
from tests.unit.analysis.diagnosis.machines import QUIET, keys, samples


def test_it_judges_every_ten_seconds() -> None:
    live = LiveDiagnosis()
    times = [one.time - 1_700_000_000.0 for one in samples({}, seconds=60, interval=1.0) if live.add(one)]
    assert times == [8.0, 18.0, 28.0, 38.0, 48.0, 58.0]
    assert live.latest[0].key == "healthy"
    assert live.verdict("GPU-0") is live.latest[0]
    assert live.verdict("GPU-9") is None


def test_its_verdict_is_that_of_the_same_samples_at_once() -> None:
    live, seen = LiveDiagnosis(), samples({"dram_active": 88, "tensor_active": 0}, seconds=59, interval=1.0)
    for one in seen:
        live.add(one)
    assert [one.replace(since=None) for one in live.latest] == [*diagnose(seen)]


def test_what_is_older_than_a_minute_is_forgotten() -> None:
    live = LiveDiagnosis()
    for one in samples(
        {key: (lambda second, calm=calm: calm if second > 70 else 95.0) for key, calm in QUIET.items()}
        | {
            "processes": lambda second: ({},) if second < 70 else (),
            "memory_used": lambda second: 20e9 if second < 70 else 0.0,
        },
        seconds=160,
        interval=1.0,
    ):
        live.add(one)
    assert live.latest[0].key == "idle"
    assert live.latest.samples <= 160
    assert live.latest.end - live.latest.start <= 61


def test_a_clock_that_is_set_back_begins_anew() -> None:
    live = LiveDiagnosis()
    seen = samples({}, seconds=30, interval=1.0)
    for one in [*seen, *seen]:
        live.add(one)
    assert live.latest[0].key == "healthy"
    assert live.latest.end - live.latest.start <= 30


def test_faster_samples_are_thinned() -> None:
    live = LiveDiagnosis()
    for one in samples({}, seconds=60, interval=0.1):
        live.add(one)
    assert live.latest.samples <= 241


def test_an_xid_that_ended_a_program_is_told_for_a_minute() -> None:
    live = LiveDiagnosis()
    told: dict[float, list[str]] = {}
    crash: dict[str, object] = {
        "xid_last": lambda second: 31 if second >= 30 else None,
        "processes": lambda second: ({},) if second < 31 else ({"pid": 5000},),
    }
    for at, one in enumerate(samples(crash, seconds=130, interval=1.0)):
        if live.add(one):
            told[at] = keys(live.latest[0])
    assert all(("xid" in told[at]) is (30 <= at < 90) for at in told)
    assert any(30 <= at < 90 for at in told)
