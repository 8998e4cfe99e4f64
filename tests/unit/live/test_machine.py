"""A machine is sampled while somebody is in it, slowly for its history while nobody is, and not at all without one."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from gpulse.delivery.alerts import Alerts
from gpulse.live.api import decide
from gpulse.live.machine import SHORTEST, LiveMachine, MachineSettings
from gpulse.live.parameters import Refusal


@pytest.fixture
def machines() -> Iterator[list[LiveMachine]]:
    made: list[LiveMachine] = []
    yield made
    for machine in made:
        machine.close()


@pytest.fixture
def machine(machines: list[LiveMachine]) -> Callable[..., LiveMachine]:
    def make(source: str = "demo", **settings: Any) -> LiveMachine:
        machines.append(LiveMachine(MachineSettings(source, **settings)))
        return machines[-1]

    return make


def number(machine: LiveMachine) -> int:
    assert machine.hub is not None
    return machine.hub.number


def grows(machine: LiveMachine, seconds: float = 10.0) -> bool:
    before, end = number(machine), time.monotonic() + seconds
    while time.monotonic() < end:
        if number(machine) > before:
            return True
        time.sleep(0.01)
    return False


def test_nothing_is_opened_before_somebody_asks(machine: Callable[..., LiveMachine]) -> None:
    assert machine().hub is None


def test_sampling_starts_with_a_client_and_stops_after_the_last(machine: Callable[..., LiveMachine]) -> None:
    watched = machine(history=None)
    watched.enter("one", 0.25)
    watched.enter("two", 60.0)
    hub = watched.open().hub
    assert hub.interval == 60.0 or hub.interval == 1.0
    watched.enter("three", 0.25)
    assert hub.interval == 0.25
    assert grows(watched)
    for client in ("one", "two", "three"):
        watched.leave(client)
    end = time.monotonic() + 20.0
    while grows(watched, 0.6):  # one that was under way may still come
        assert time.monotonic() < end, "it goes on"


def test_an_interval_is_never_shorter_than_the_shortest(machine: Callable[..., LiveMachine]) -> None:
    watched = machine(history=None)
    hub = watched.open().hub
    watched.enter("one", 0.001)
    assert hub.interval == SHORTEST


def test_while_nobody_is_there_the_history_still_gets_samples(
    machine: Callable[..., LiveMachine], tmp_path: Path
) -> None:
    watched = machine(history=str(tmp_path / "history.db"), idle_interval=0.25)
    hub = watched.open().hub
    assert hub.idle_interval == 0.25
    assert grows(watched)
    assert json.loads(watched.ask().snapshot())["server"]["idle_interval"] == 0.25


def test_a_request_to_a_paused_machine_gets_a_fresh_sample(
    machine: Callable[..., LiveMachine], monkeypatch: pytest.MonkeyPatch
) -> None:
    watched = machine(history=None)
    before = watched.ask().latest().time
    assert watched.hub is not None
    monkeypatch.setattr(watched.hub, "_seen", float("-inf"))  # as if its latest sample were old
    assert watched.ask().latest().time > before


def test_the_history_that_another_writes_is_read(machine: Callable[..., LiveMachine], tmp_path: Path) -> None:
    path = str(tmp_path / "history.db")
    first, second = (machine(history=path, idle_interval=0.25) for _ in range(2))
    first.open()
    assert second.open().past is not None
    assert second.open().hub.idle_interval == first.open().hub.idle_interval, (
        "slow samples of the one are no gap in the other"
    )
    end = time.monotonic() + 20.0
    while grows(second, 0.6):
        assert time.monotonic() < end, "it does not write, so nothing is sampled for it"


def test_without_a_gpu_it_refuses_and_can_be_asked_again(machine: Callable[..., LiveMachine], tmp_path: Path) -> None:
    watched = machine("replay:" + str(tmp_path / "none.ndjson"))
    for _ in range(2):
        with pytest.raises(Refusal) as refused:
            watched.ask()
        assert refused.value.status == 503


def test_only_the_users_own_command_lines_are_shown(machine: Callable[..., LiveMachine]) -> None:
    shown = machine(history=None, user="ada").ask().latest()
    commands = {process.user: process.command for gpu in shown.gpus for process in gpu.all_processes()}
    assert commands["ada"]
    assert [user for user, command in commands.items() if command] == ["ada"]


def test_a_closed_machine_refuses_requests(machine: Callable[..., LiveMachine]) -> None:
    watched = machine(history="")
    past = watched.open().past
    assert past is not None
    folder = Path(past.path or "").parent
    assert folder.is_dir()
    watched.close()
    watched.close()
    assert not folder.exists()
    with pytest.raises(Refusal):
        watched.open()


def test_what_a_panel_decides_about_alerts_is_in_force(machine: Callable[..., LiveMachine]) -> None:
    def alerts(history: str | None) -> Alerts:
        return Alerts({"enable": [], "rule": [rule]}, lambda text: None, deliver=False)

    rule = {"name": "cool", "metric": "temperature", "below": 200}
    asked = machine(alerts=alerts, interval=0.25).ask()
    made = json.loads(decide(asked, b'{"action": "silence", "for": "1h", "rule": "cool"}', "ada (lab)"))
    active = asked.hub.active_alerts()
    decide(asked, json.dumps({"action": "acknowledge", "ids": [active[0]["id"]]}).encode(), "ada (lab)")
    for _ in range(10):  # one that was under way may come first
        asked.hub.refresh(10.0)
        if (first := asked.hub.active_alerts()[0])["silenced"] and first["acknowledged"]:
            break
    assert first["silenced"]["id"] == made["id"]
    assert first["acknowledged"]["by"] == "ada (lab)"
    assert {event.kind for event in asked.hub.events.between(0, 1e11)} >= {"alert-silenced", "alert-acknowledged"}
    for body in (b"", b"[]", b'{"action": "x"}', b'{"action": "silence", "for": "1h", "rule": "none"}'):
        with pytest.raises(Refusal) as refusal:
            decide(asked, body, "ada")
        assert refusal.value.status == 422
