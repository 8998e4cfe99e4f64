"""All rules together: over anything a machine may show, over traces of a real H200, and when one of them fails."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gpulse.analysis.alerts import RuleSet, Transition, rules_from
from gpulse.analysis.alerts.rule import AlertRule, RuleInput
from gpulse.model.catalog import GPU_METRICS, HOST_METRICS, PROCESS_METRICS
from gpulse.model.snapshot import Snapshot
from gpulse.present.alerts import alert_plain, alert_text
from gpulse.store.recording import read_recording
from tests.unit.analysis.alerts.machines import GIB, START, book, gpu, process, turns, watch
from tests.unit.snapshots import snapshots

TRACES = Path(__file__).parents[5] / "shared" / "h200" / "traces"
HEALTHY = (
    *("contention", "elementwise", "h2d", "input_cpu_0", "input_cpu_16", "launch"),
    *("lm_tiny_batch", "lm_train", "matmul_bf16", "matmul_fp32"),
)
NEWS = ("job_finished", "gpu_free")
needs_traces = pytest.mark.skipif(not TRACES.is_dir(), reason="the traces are not here")


def turned(name: str, stretch: float) -> list[Transition]:
    """What all rules say of a trace, as if it had taken `stretch` times as long."""
    rules, found = RuleSet(rules_from({})), []
    for snapshot in read_recording(str(TRACES / f"{name}.ndjson.gz")):
        time = START + (snapshot.time - START) * stretch
        found += rules.observe(Snapshot(time, snapshot.gpus, snapshot.host))
    return found


class TestTraces:
    @needs_traces
    @pytest.mark.parametrize("name", [*HEALTHY, "idle_alloc", "leak", "oom"])
    def test_seconds_of_any_work_fire_nothing(self, name: str) -> None:
        assert turned(name, 1) == []

    @needs_traces
    @pytest.mark.parametrize("stretch", [30, 120])
    @pytest.mark.parametrize("name", HEALTHY)
    def test_long_healthy_runs_bring_news_and_no_alarm(self, name: str, stretch: float) -> None:
        assert {one.rule for one in turned(name, stretch)} <= set(NEWS)

    @needs_traces
    def test_the_leak_is_found(self) -> None:
        found = [one for one in turned("leak", 60) if one.rule not in NEWS]
        assert [(one.rule, one.state) for one in found] == [("leak", "fire"), ("leak", "clear")]

    @needs_traces
    def test_the_idle_allocation_is_found(self) -> None:
        found = [one for one in turned("idle_alloc", 120) if one.rule not in NEWS]
        assert [(one.rule, one.state) for one in found] == [("idle_allocation", "fire"), ("idle_allocation", "clear")]
        assert found[1].time - found[0].time > 450  # only when it works to end itself


class TestBook:
    @settings(max_examples=60, deadline=None)
    @given(st.lists(snapshots(believable=True), max_size=12))
    def test_whatever_a_machine_shows_alerts_take_turns(self, samples: list[Snapshot]) -> None:
        rules = RuleSet(
            rules_from({name: {"for": 0, "clear_for": 0} for name in ("lost", "throttled", "hot", "memory")})
        )
        active: set[tuple[str, str, str]] = set()
        for sample in samples:
            for one in rules.observe(sample):
                assert alert_text(one).isprintable()
                assert one.time == sample.time
                if one.once:
                    continue
                assert (one.key in active) == (one.state == "clear")
                active ^= {one.key}
            assert {one.key for one in rules.active} == active

    @settings(max_examples=30, deadline=None)
    @given(st.lists(snapshots(), max_size=6))
    def test_numbers_that_nobody_would_believe_break_nothing(self, samples: list[Snapshot]) -> None:
        rules = RuleSet(rules_from({}))
        for sample in samples:
            rules.observe(sample)

    def test_active_is_what_lasts_oldest_first(self) -> None:
        rules = book("hot", "lost", "gpu_free")
        watch(rules, lambda at: (gpu(0, temperature=99), gpu(1, state="lost" if at > 50 else "ok")), 60)
        assert [(one.rule, one.uuid) for one in rules.active] == [("hot", "GPU-0"), ("lost", "GPU-1")]

    def test_alerts_go_by_uuid_not_by_number(self) -> None:
        rules = book("hot")
        watch(rules, lambda at: (gpu(0, uuid="GPU-a", temperature=99), gpu(1, uuid="GPU-b", temperature=40)), 60)
        found = watch(
            rules,
            lambda at: (gpu(0, uuid="GPU-b", temperature=40), gpu(1, uuid="GPU-a", temperature=99)),
            600,
            start=60,
        )
        assert found == []
        assert [one.uuid for one in rules.active] == ["GPU-a"]

    def test_a_clock_that_jumps_fires_nothing_by_itself(self) -> None:
        rules, found = book("idle_allocation"), []
        for at, time in enumerate([*range(60), *range(90_000, 90_060), *range(30, 90)]):
            found += rules.observe(Snapshot(START + time, (gpu(utilization=0, processes=[process(held=GIB)]),)))
            assert found == [], at

    def test_a_rule_that_fails_is_told_and_the_others_go_on(self) -> None:
        class Broken(AlertRule):
            name = "broken"

            def observe(self, sample: RuleInput) -> Iterator[Transition]:
                raise ZeroDivisionError("by design")

        told: list[tuple[str, str]] = []
        rules = RuleSet(
            [Broken(), *rules_from({"enable": ["lost"]})], lambda name, error: told.append((name, str(error)))
        )
        assert turns(watch(rules, lambda at: gpu(state="lost"), 2)) == [("lost", "fire", 0.0)]
        assert told == [("broken", "by design")] * 2

    def test_only_what_the_catalog_has_is_wanted(self) -> None:
        wanted = RuleSet(rules_from({})).wanted
        assert wanted.gpu <= GPU_METRICS.keys()
        assert wanted.process is not None
        assert wanted.process <= PROCESS_METRICS.keys()
        assert (wanted.host or frozenset()) <= HOST_METRICS.keys()

    def test_names_cannot_act_on_a_terminal(self) -> None:
        evil = process(held=20 * GIB, name="a\x1b]0;x\x07\n\u202eb", user="\r\ud800")
        found = watch(book("job_finished"), lambda at: gpu(processes=[evil] if at < 400 else []), 500)
        assert [alert_text(one) for one in found] == [
            "\\x0d\\ud800's a\\x1b]0;x\\x07\\x0a\\u202eb (pid 42) ended on GPU 0, peak memory 20.0 GiB"
        ]

    def test_plain_is_all_there_is_to_know(self) -> None:
        import json

        found = watch(book("hot"), lambda at: gpu(3, temperature=99), 60)
        assert json.loads(json.dumps(alert_plain(found[0]))) == {
            "id": found[0].id,
            "time": START + 30,
            "rule": "hot",
            "state": "fire",
            "severity": "warn",
            "gpu": "3",
            "uuid": "GPU-3",
            "what": "",
            "text": "GPU 3 is at 99 °C (limit 89 °C)",
            "values": {"temperature": 99, "above": 89},
            "once": False,
            "last_true": START + 30,
            "repeats": 1,
        }
