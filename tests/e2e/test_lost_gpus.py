"""A GPU that is lost or hangs when `gpulse serve` starts is one GPU through loss and return: its alert clears and is sent once."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from gpulse.store.history import HistoryReader
from tests.e2e.serving import Serving, plain_environment
from tests.e2e.test_alerts import alerts, kinds, until
from tests.fake_nvml import Clock, Scenario
from tests.unit.delivery.servers import server

if TYPE_CHECKING:
    from tests.unit.delivery.servers import Taken

OVER = 100  # seconds of the scripted driver's clock after which its faults end


def lost() -> Scenario:
    return _two_gpus().fault(function="*", gpu=1, code="GPU_IS_LOST", until=OVER)


def unopened() -> Scenario:
    return _two_gpus().fault(function="nvmlDeviceGetHandleByIndex*", gpu=1, code="GPU_IS_LOST", until=OVER)


def hung() -> Scenario:
    return _two_gpus().fault(function="*", gpu=1, hang="3600s", until=OVER)


def _two_gpus() -> Scenario:
    return Scenario.parse("include boards/h100\n[driver]\ngpus = 2\n")


class Machine:
    """A machine whose server is started again and again, and somebody who is told of alerts."""

    def __init__(self, folder: Path, taken: Taken) -> None:
        self.folder, self.taken = folder, taken
        (folder / "config.toml").write_text(
            "[serve]\ninterval = 0.1\n[alerts]\nenable = ['lost']\nlog = false\ngroup_wait = 0\n"
            f'[alerts.lost]\nfor = 0\n[alerts.webhook]\nurl = "{taken.url}"\nretries = 0\n'
        )

    def serve(self, scenario: Scenario, seconds: float = 0.0) -> tuple[Serving, Clock]:
        """Start the server while the driver's clock shows so many seconds."""
        clock = Clock(self.folder, seconds)
        environ = scenario.write(self.folder) | clock.environment
        scripted = {key: environ[key] for key in environ if key.startswith(("FAKE_NVML_", "LD_"))}
        serving = Serving(self.folder, environ=plain_environment(self.folder, no_proxy="*", **scripted), source="")
        until(lambda: serving.get("/api/alerts")[0] == 200)
        return serving, clock

    @property
    def told(self) -> list[tuple[str, list[str]]]:
        """Which messages were sent, with the ids of their alerts."""
        return [(body["kind"], [alert["id"] for alert in body["alerts"]]) for body in self.taken.bodies]

    @property
    def active(self) -> list[dict[str, Any]]:
        """The alerts in the file."""
        found: list[dict[str, Any]] = json.loads(alerts(self.folder, "--json"))["alerts"]
        return found

    def acknowledge(self) -> str:
        """Acknowledge the one alert; return its id."""
        until(lambda: len(self.active) == 1)
        (alert,) = self.active
        alerts(self.folder, "ack", alert["id"])
        until(lambda: self.active[0]["acknowledged"])
        return str(alert["id"])


@pytest.mark.parametrize("scenario", [lost, unopened])
def test_a_gpu_that_is_lost_at_start_and_comes_back_is_the_same_gpu(tmp_path: Path, scenario: Any) -> None:
    with server() as taken:
        machine = Machine(tmp_path, taken)
        serving, clock = machine.serve(scenario())
        with serving:
            id = machine.acknowledge()
            clock.set(OVER)
            until(lambda: not machine.active)
            until(lambda: len(machine.told) == 2)
            uuids = [gpu["uuid"] for gpu in serving.json("/api/snapshot")["gpus"]]
            until(lambda: "back" in kinds(serving))
            happened = kinds(serving)
        assert machine.told == [("fire", [id]), ("clear", [id])]
        assert taken.bodies[-1]["alerts"][0]["uuid"] == uuids[1]
        assert "lost" in happened
        assert not {"added", "removed"} & happened
        with HistoryReader(str(tmp_path / "history.db")) as reader:
            assert [gpu.uuid for gpu in reader.gpus(0.0, 1e11)] == uuids


@pytest.mark.parametrize("scenario", [lost, hung])
def test_an_alert_of_a_gpu_that_could_not_tell_its_uuid_clears_after_a_restart(tmp_path: Path, scenario: Any) -> None:
    with server() as taken:
        machine = Machine(tmp_path, taken)
        with machine.serve(scenario())[0]:
            id = machine.acknowledge()
        with machine.serve(_two_gpus())[0]:
            until(lambda: not machine.active)
            until(lambda: len(machine.told) == 2)
    assert machine.told == [("fire", [id]), ("clear", [id])]


@pytest.mark.parametrize("scenario", [lost, hung])
def test_what_was_acknowledged_stays_acknowledged_through_restarts(tmp_path: Path, scenario: Any) -> None:
    with server() as taken:
        machine = Machine(tmp_path, taken)
        serving, _ = machine.serve(scenario(), OVER)
        with serving:  # healthy: the UUIDs are remembered
            uuids = [gpu["uuid"] for gpu in serving.json("/api/snapshot")["gpus"]]
            assert machine.active == []
        for _ in range(2):
            serving, _ = machine.serve(scenario())
            with serving:
                until(lambda: len(machine.active) == 1)
                id = machine.active[0]["id"] if machine.active[0]["acknowledged"] else machine.acknowledge()
                assert [gpu["uuid"] for gpu in serving.json("/api/snapshot")["gpus"]] == uuids
                assert machine.active[0]["uuid"] == uuids[1]
        with machine.serve(_two_gpus())[0]:
            until(lambda: not machine.active)
            until(lambda: len(machine.told) == 2)
    assert machine.told == [("fire", [id]), ("clear", [id])]


def test_an_alert_kept_by_place_in_an_older_file_is_resolved_at_the_next_start(tmp_path: Path) -> None:
    event = {
        "time": 1.7e9,
        "kind": "lost",
        "severity": "critical",
        "gpus": ["1"],
        "uuids": ["at 1"],
        "rule": "lost",
        "alert": "fire",
    }
    row = {
        "told": 1.7e9,
        "acknowledged": None,
        "event": event,
        "what": "",
        "once": False,
        "last_true": 1.7e9,
        "repeats": 1,
    }
    (tmp_path / "alerts.json").write_text(json.dumps({"schema": 1, "time": 1.7e9, "active": [row]}))
    with server() as taken:
        machine = Machine(tmp_path, taken)
        id = machine.active[0]["id"]
        with machine.serve(_two_gpus())[0]:
            until(lambda: not machine.active)
            until(lambda: machine.told)
    assert machine.told == [("clear", [id])]
