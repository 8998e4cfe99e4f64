"""The rules that an agent applies: which, with which settings, and how many lines an incident is."""

from __future__ import annotations

from pathlib import Path

import pytest

from gpulse.analysis.diagnosis.judge import diagnose
from gpulse.model.catalog import Gpu, Host
from gpulse.model.event import Event
from gpulse.model.snapshot import Snapshot
from gpulse.monitor.listener import alert_of
from gpulse.monitor.training_rules import RULES, TrainingRules
from tests.unit.analysis.alerts.machines import GIB, START, gpu, process
from tests.unit.analysis.diagnosis.machines import samples
from tests.unit.analysis.diagnosis.test_jobs import SPINNING, rank

HOT = ("hw_thermal_slowdown",)


def found(rules: TrainingRules, make: object, seconds: int, step: float = 1.0) -> list[Event]:
    events = []
    for at in range(int(seconds / step)):
        gpus: tuple[Gpu, ...] = make(at * step)  # type: ignore[operator]
        events += rules.observe(1000.0 + at * step, Snapshot(START + at * step, gpus, Host({})))
    return events


def settings(folder: Path, text: str) -> TrainingRules:
    (folder / "config.toml").write_text(text)
    return TrainingRules({"GPULSE_CONFIG": str(folder / "config.toml")})


@pytest.fixture
def rules(tmp_path: Path) -> TrainingRules:
    return settings(tmp_path, "")


def sentences(events: list[Event]) -> list[str]:
    return [alert_of(event, {}).text for event in events if event.alert == "fire"]


def test_a_lost_gpu_with_its_xid_is_one_line(rules: TrainingRules) -> None:
    events = found(rules, lambda at: (gpu(state="lost" if at >= 5 else "ok", xid_last=79 if at >= 5 else None),), 60)
    assert sentences(events) == ["GPU 0 is lost (fell off the bus, XID 79)"]


def test_all_gpus_of_a_hot_room_are_one_line(rules: TrainingRules) -> None:
    events = found(rules, lambda at: tuple(gpu(at, throttle_reasons=HOT) for at in range(4)), 30)
    assert sentences(events) == ["GPUs 0-3 throttled: too hot"]
    assert events[0].uuids == ("GPU-0", "GPU-1", "GPU-2", "GPU-3")


def test_throttling_that_comes_and_goes_is_few_lines(rules: TrainingRules) -> None:
    events = found(rules, lambda at: (gpu(throttle_reasons=HOT if at % 2 else ()),), 3600)
    assert len(sentences(events)) == 1


def test_the_power_cap_is_no_alert(rules: TrainingRules) -> None:
    assert found(rules, lambda at: (gpu(throttle_reasons=("sw_power_cap",)),), 60) == []


def test_a_full_gpu_is_told_later_than_elsewhere_as_frameworks_keep_memory(rules: TrainingRules) -> None:
    def filled(percent: float) -> tuple[Gpu, ...]:
        return (gpu(memory_used=percent * GIB, processes=[process(held=percent * GIB)]),)

    events = found(rules, lambda at: filled(20 + min(at, 77) if at < 200 else 99), 300)
    assert sentences(events) == ["GPU 0 memory is 99 % full; ada's python (pid 42) holds 99.0 GiB"]
    assert events[0].time == START + 210


def test_only_samples_with_process_lists_are_judged(rules: TrainingRules) -> None:
    lost = Gpu({"uuid": "GPU-1", "index": 1}, state="lost")
    skipped = Gpu({"uuid": "GPU-0", "index": 0}, {"processes": "skipped"})
    read = Gpu({"uuid": "GPU-0", "index": 0})
    assert rules.observe(1000.0, Snapshot(START, (read, Gpu({"uuid": "GPU-1", "index": 1})), Host({}))) == []
    assert rules.observe(1001.0, Snapshot(START + 1, (skipped, lost), Host({}))) == []
    assert [event.rule for event in rules.observe(1001.1, Snapshot(START + 1.1, (read, lost), Host({})))] == ["lost"]


def test_samples_of_a_measured_program_are_judged_once_per_second(rules: TrainingRules) -> None:
    calls = [len(rules.observe(at / 10, Snapshot(START + at / 10, (), Host({})))) for at in range(30)]
    assert calls == [0] * 30
    assert rules._rule_set._time.now == pytest.approx(2.7)


@pytest.mark.parametrize(
    ("text", "kept"),
    [
        ("", RULES),
        ("[alerts]\ndisable = ['throttled', 'stalled']\n", ("lost", "xid", "ecc", "memory", "leak")),
        ("[alerts]\nenable = ['lost', 'gpu_free']\n", ("lost", "stalled")),
        ("[alerts]\nenable = 'nonsense'\n", RULES),
        ("not toml", RULES),
    ],
)
def test_the_settings_decide_which_rules_there_are(tmp_path: Path, text: str, kept: tuple[str, ...]) -> None:
    assert tuple(rule.name for rule in settings(tmp_path, text)._rule_set._rules) == (
        *kept,
        "diagnosis",
    )  # that one for hangs


def test_the_settings_change_thresholds(tmp_path: Path) -> None:
    rules = settings(tmp_path, "[alerts.memory]\nabove = 50\nfor = '1s'\n[alerts.diagnosis]\nfor = '1m'\n")
    events = found(rules, lambda at: (gpu(memory_used=60 * GIB, processes=[process(held=(20 + at) * GIB)]),), 10)
    assert len(sentences(events)) == 1


def test_command_lines_of_processes_are_not_read_for_it(rules: TrainingRules) -> None:
    assert "command" not in (rules.wanted.process or ())
    assert {"xid_last", "throttle_reasons", "utilization", "ecc_uncorrected"} <= rules.wanted.gpu


def test_a_gpu_with_another_number_in_the_program_gets_both() -> None:
    event = Event(START, "throttled", ("3", "5"), uuids=("GPU-3", "GPU-5"), reasons=HOT, rule="throttled", alert="fire")
    assert alert_of(event, {"GPU-3": 0, "GPU-5": 1}).text == "GPUs 3, 5 throttled: too hot (gpu0, gpu1 in this program)"
    assert alert_of(event, {"GPU-3": 3, "GPU-5": 5}).text == "GPUs 3, 5 throttled: too hot"
    assert alert_of(event, {}).severity == "critical"


def test_a_job_that_hangs_is_told_after_two_minutes_with_where_it_is(tmp_path: Path) -> None:
    def where(event: Event, snapshot: Snapshot) -> dict[str, float | str]:
        return {"behind": "rank 3 is at AllReduce 60, others at 64"}

    (tmp_path / "config.toml").write_text("")
    rules = TrainingRules({"GPULSE_CONFIG": str(tmp_path / "config.toml")}, where)
    shown = samples(*(rank(number, **SPINNING) for number in range(4)), seconds=260, interval=1.0)
    events = [event for at, snapshot in enumerate(shown) for event in rules.observe(1000.0 + at, snapshot)]
    (text,) = sentences(events)
    assert "GPUs 0-3" in text
    assert "hang" in text
    assert "rank 3 is at AllReduce 60" in text
    assert 120 <= events[0].time - shown[0].time <= 200


def test_a_hang_is_not_told_where_verdicts_are_disabled(tmp_path: Path) -> None:
    rules = settings(tmp_path, '[alerts]\ndisable = ["diagnosis"]\n')
    shown = samples(*(rank(number, **SPINNING) for number in range(4)), seconds=260, interval=1.0)
    assert [event for at, snapshot in enumerate(shown) for event in rules.observe(1000.0 + at, snapshot)] == []


def test_other_verdicts_are_no_alert_in_a_training(rules: TrainingRules) -> None:
    waits = {"utilization": 20, "graphics_active": 18, "sm_active": 15, "tensor_active": 3}
    one = {"pid": 5000, "job": "slurm:7", "cpu_percent": 99.0, "tree_cpu_percent": 99.0, "thread_state": "running"}
    shown = samples(*({"processes": (one,), **waits} for _ in range(2)), seconds=400, interval=1.0)
    assert {verdict.key for verdict in diagnose(shown)} == {"host_bound"}
    assert [event for at, snapshot in enumerate(shown) for event in rules.observe(1000.0 + at, snapshot)] == []
