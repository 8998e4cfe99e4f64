"""The hub: one encoding of each sample, kept for those who come back."""

from __future__ import annotations

import gc
import json
import sys
import threading
from typing import Any

import pytest

pytest.importorskip("starlette")

from gpulse.delivery.alerts import Alerts
from gpulse.live import wire
from gpulse.live.hub import Hub, wanted
from gpulse.live.wire import KEPT, REPLAYED
from gpulse.model.catalog import Gpu, Host
from gpulse.model.event import Event
from gpulse.model.select import Wanted
from gpulse.model.snapshot import Snapshot
from gpulse.model.verdict import Diagnosis
from gpulse.present.events import event_text
from gpulse.sampling.sampler import Sampler
from tests.unit.analysis.diagnosis.machines import QUIET, samples
from tests.unit.analysis.diagnosis.machines import START as MACHINE_START
from tests.unit.scripted import ScriptedDevice, ScriptedSource
from tests.unit.surfaces.web.asking import START, hub_of, sample


def events_of(text: bytes) -> list[tuple[str, str, Any]]:
    """Return the messages of a piece of a stream: id, event, data."""
    found = []
    for block in text.decode("ascii").split("\n\n"):
        fields = dict(line.split(": ", 1) for line in block.splitlines() if line and not line.startswith(":"))
        if "event" in fields:
            found.append((fields.get("id", ""), fields["event"], json.loads(fields["data"])))
    return found


def test_everything_recorded_is_wanted_and_no_detail() -> None:
    asked = wanted()
    assert {"utilization", "energy", "name"} <= asked.gpu
    assert "pci_domain" not in asked.gpu
    assert asked.process is not None
    assert "command" in asked.process


def test_command_lines_that_nobody_may_see_are_not_read_either() -> None:
    for asked in (wanted(False), wanted(False, wanted())):
        assert asked.process is not None
        assert "command" not in asked.process
        assert "name" in asked.process


def test_a_sample_is_encoded_once_however_many_listen(monkeypatch: pytest.MonkeyPatch) -> None:
    encoded = []
    real = wire.sample

    def counted(snapshot: Snapshot, diagnosis: Diagnosis) -> dict[str, Any]:
        encoded.append(snapshot)
        return real(snapshot, diagnosis)

    monkeypatch.setattr(wire, "sample", counted)
    hub = hub_of(3)
    texts = [[entry.data for entry in hub.after(0)] for _ in range(50)]
    assert len(encoded) == 3
    assert all(one is other for text in texts for one, other in zip(text, texts[0], strict=True))


def test_the_stream_has_flat_values_and_a_number_that_grows() -> None:
    hub = hub_of(2)
    first, second = hub.after(0)
    sample = [one for one in events_of(first.data) if one[1] == "sample"]
    id, _, data = sample[0]
    assert id == f"{hub.run}-1"
    assert events_of(second.data)[-1][0] == f"{hub.run}-2"
    assert data["time"] == START
    gpu = data["gpus"][0]
    assert (gpu["uuid"], gpu["index"], gpu["state"], gpu["utilization"], gpu["temperature"]) == (
        "GPU-0",
        0,
        "ok",
        0.0,
        40,
    )
    assert "power_draw" not in gpu
    assert gpu["gaps"] == {"power_draw": "denied"}
    assert "serial" not in gpu
    assert data["host"] == {"cpu_percent": 12.346}
    assert "processes" not in gpu


def test_processes_come_every_few_seconds_and_first_of_all() -> None:
    hub = hub_of(12)
    times = [
        data["time"] - START for entry in hub.after(0) for _, kind, data in events_of(entry.data) if kind == "processes"
    ]
    assert times == [0, 5, 10]
    _, text = hub.greeting()
    kinds = [kind for _, kind, _ in events_of(text)]
    assert kinds == ["processes", "sample"]


def test_events_and_alerts_come_before_the_sample_they_belong_to() -> None:
    kept: list[Event] = []
    alerts = Alerts({"enable": ["lost"], "lost": {"for": 0}}, lambda _: None)
    hub = Hub(None, 1.0, alerts=alerts, keep=lambda _, events: kept.extend(events))
    hub.add(sample(0))
    gone = sample(1)
    hub.add(Snapshot(gone.time, gone.gpus[1:], gone.host))
    messages = events_of(hub.after(1)[0].data)
    assert [kind for _, kind, _ in messages] == ["event", "alert", "problems", "sample"]
    text = "GPU 0 disappeared"
    assert messages[0][2] == {
        "time": START + 1, "uuid": "GPU-0", "uuids": ["GPU-0"], "kind": "removed", "level": "critical", "text": text,
    }  # fmt: skip
    assert (messages[1][2]["text"], messages[1][2]["rule"], messages[1][2]["state"]) == (text, "lost", "fire")
    assert messages[1][2]["level"] == "critical"
    assert [id for id, _, _ in messages] == ["", "", "", f"{hub.run}-2"]
    assert [(event.category, event.alert) for event in kept] == [("removed", ""), ("alert", "fire")]
    assert hub.events.between(START, START + 10) == kept
    alerts.close()


def test_the_texts_of_active_alerts_follow_the_values() -> None:
    rule = {"name": "busy", "metric": "utilization", "above": 50, "for": 0}
    alerts = Alerts({"enable": [], "log": False, "rule": [rule]}, lambda _: None)
    hub = Hub(None, 1.0, alerts=alerts)
    for number in (10, 60, 70, 70):
        hub.add(sample(number))
    told = [[(kind, data) for _, kind, data in events_of(entry.data)] for entry in hub.after(0)]
    assert [[kind for kind, _ in messages if kind.startswith("alert")] for messages in told] == [
        [], ["alert", "alert"], ["alerts"], [],
    ]  # fmt: skip
    texts = [alert["text"] for kind, data in told[2] if kind == "alerts" for alert in data]
    assert texts[0] == "GPU 0: Utilization is 70 %, above 50 %"
    alerts.close()


def test_the_last_minutes_are_kept_and_no_more() -> None:
    hub = hub_of(KEPT + 30)
    assert [entry.number for entry in hub.after(0)] == list(range(31, KEPT + 31))
    assert [entry.number for entry in hub.after(hub.number - 2)] == [hub.number - 1, hub.number]
    assert hub.after(hub.number) == []
    assert hub.after(hub.number + 5) == []


@pytest.fixture(scope="module")
def hub_with_200() -> Hub:
    return hub_of(200)


def test_who_comes_back_in_time_misses_nothing(hub_with_200: Hub) -> None:
    hub = hub_with_200
    assert hub.resume(f"{hub.run}-{200 - REPLAYED}") == (200 - REPLAYED, None)
    assert hub.resume(f"{hub.run}-200") == (200, None)


def test_who_comes_back_too_late_has_a_hole_from_about_then() -> None:
    hub = hub_of(300)
    hub.started = START
    at, hole = hub.resume(f"{hub.run}-100")
    assert at == 299
    assert hole == START + 99


@pytest.mark.parametrize(
    "given", ["other-5", "-5", "x", "other-", "99", "{run}-x", "{run}-201", "{run}--1", "{run}-" + "9" * 20, "ü-1"]
)
def test_an_id_of_another_run_is_a_hole_since_the_start(hub_with_200: Hub, given: str) -> None:
    hub = hub_with_200
    assert hub.resume(given.replace("{run}", hub.run)) == (199, hub.started)


def test_two_runs_have_different_names() -> None:
    assert hub_of().run != hub_of().run


def test_command_lines_are_taken_out_before_anybody_sees_them() -> None:
    seen: list[Snapshot] = []
    hub = Hub(None, 1.0, commands=False, watchers=[seen.append])
    hub.add(sample(0, command="python --password=hunter2"))
    assert hub.latest is not None
    for snapshot in (seen[0], hub.latest):
        process = snapshot.gpus[0].processes[0]
        assert process.command is None
        assert process.name == "python"
    assert b"hunter2" not in hub.greeting()[1]


def test_a_watcher_that_fails_is_told_once_and_harms_nobody() -> None:
    told: list[Exception] = []
    seen: list[Snapshot] = []

    def bad(snapshot: Snapshot) -> None:
        raise ValueError("no")

    hub = Hub(None, 1.0, watchers=[bad, seen.append], failed=told.append)
    hub.add(sample(0))
    hub.add(sample(1))
    assert [str(error) for error in told] == ["no"]
    assert len(seen) == hub.number == 2


def test_it_is_ready_while_samples_are_fresh() -> None:
    hub = Hub(None, 1.0)
    assert not hub.ready
    hub.add(sample(0))
    assert hub.ready
    hub._seen -= 8.1
    assert not hub.ready


def test_a_sampler_feeds_it_until_it_is_closed() -> None:
    sampler = Sampler(ScriptedSource((ScriptedDevice(0),)), Wanted(("uuid", "utilization"))).open()  # on the real clock
    hub = Hub(sampler, 0.001)
    enough, over = threading.Event(), threading.Event()

    def told() -> None:
        if hub.number >= 3:
            enough.set()
        if hub.over:
            over.set()

    hub.listen(told)
    hub.start()
    assert enough.wait(20)
    hub.close()
    assert over.is_set()
    assert hub.latest is not None
    assert hub.latest.gpus[0].utilization == 50
    sampler.close()


def test_what_is_wrong_is_told_when_it_changes_and_with_every_judgement() -> None:
    hub = Hub(None, 1.0)
    hot = {"throttle_reasons": ("hw_thermal_slowdown",), "temperature": 92}
    told: list[tuple[float, list[dict[str, Any]]]] = []
    for one in samples(hot, {}, seconds=31, interval=1.0):
        hub.add(one)
        (entry,) = hub.after(hub.number - 1)
        told += [(one.time - MACHINE_START, data) for _, kind, data in events_of(entry.data) if kind == "problems"]
    assert [round(at) for at, _ in told] == [8, 18, 28]
    assert [(one["key"], one["severity"], one["gpus"]) for one in hub.problems] == [
        ("thermal_throttled", "critical", ["0"])
    ]
    assert told[-1][1] == hub.problems
    assert hub.problems[0]["text"]


def test_the_verdicts_come_with_the_judgement_that_a_lost_gpu_causes() -> None:
    hub = Hub(None, 1.0)
    busy = {"utilization": 96.0, "tensor_active": 0.0, "fp32_active": 60.0}
    told: list[tuple[int, dict[str, str]]] = []
    for one in samples(
        {**busy, "state": lambda second: "lost" if second >= 25 else "ok"}, busy, seconds=40, interval=1.0
    ):
        hub.add(one)
        (entry,) = hub.after(hub.number - 1)
        at = round(one.time - MACHINE_START)
        news = [data for _, kind, data in events_of(entry.data) if kind == "verdicts"]
        told += [(at, {row["gpu"]: row["verdict"] for row in data}) for data in news]
    first = next(at for at, verdicts in told if verdicts["0"] == "lost")
    assert 25 <= first <= 26
    assert all(verdicts["0"] == "lost" for at, verdicts in told if at > first)
    assert told[-1][1]["1"] == "fp32_no_tensor"
    assert {one["key"] for one in hub.problems if "0" in one["gpus"]} == {"lost"}


def test_a_mig_instance_is_named_in_verdicts_problems_and_events() -> None:
    hub = Hub(None, 1.0)
    for one in samples({"tensor_active": 0.0, "fp32_active": 60.0}, seconds=40, interval=1.0):
        part = Gpu({**dict(one.gpus[0].items()), "uuid": "MIG-1", "gpu_instance": 1}, processes=one.gpus[0].processes)
        hub.add(Snapshot(one.time, (Gpu({"uuid": "GPU-0", "index": 0}, instances=(part,)),), one.host))
    assert [(entry["uuid"], entry["gpu"], entry["verdict"]) for entry in hub.verdicts.found] == [
        ("MIG-1", "0:1", "fp32_no_tensor")
    ]
    assert [(problem["key"], problem["gpus"], problem["uuids"]) for problem in hub.problems] == [
        ("fp32_no_tensor", ["0:1"], ["MIG-1"])
    ]
    (event,) = [event for event in hub.events.between(0.0, 1e12) if event.kind == "verdict"]
    assert event_text(event).startswith("GPU 0 MIG 1: ")


def test_verdicts_are_given_after_some_seconds_and_their_change_is_an_event() -> None:
    hub = Hub(None, 1.0)
    for one in samples(
        {"tensor_active": 0, "dram_active": 88}, QUIET | {"processes": (), "memory_used": 0}, seconds=30, interval=1.0
    ):
        hub.add(one)
        assert bool(hub.verdicts.found) == (one.time >= MACHINE_START + 8)
    assert [(entry["uuid"], entry["verdict"], entry["level"]) for entry in hub.verdicts.found] == [
        ("GPU-0", "memory_bandwidth", "label")
    ]
    assert hub.verdicts.found[0]["evidence"]
    assert hub.verdicts.found[0]["advice"]
    events = [event for event in hub.events.between(0.0, 1e12) if event.kind == "verdict"]
    assert [event_text(event).split(":")[1].strip() for event in events] == ["Limited by memory bandwidth"]


def test_memory_does_not_grow_with_time() -> None:
    hub = hub_of(600)  # more than it keeps
    before = allocated()
    for number in range(600, 1600):
        hub.add(sample(number))
    assert allocated() - before < 300, "objects after 1,000 more samples"


def allocated() -> int:
    gc.collect()
    return sys.getallocatedblocks()


@pytest.mark.parametrize(("states", "ready"), [(("ok", "lost"), True), (("timeout", "lost"), False), ((), True)])
def test_a_hub_is_ready_while_one_gpu_responds(states: tuple[Any, ...], ready: bool) -> None:
    hub = Hub(None, 1.0)
    gpus = tuple(Gpu({"index": at}, state=state) for at, state in enumerate(states))
    hub.add(Snapshot(START, gpus, Host({}), {}, ()))
    assert hub.ready is ready
