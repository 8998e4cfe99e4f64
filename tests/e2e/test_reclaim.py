"""`gpulse reclaim` on a scripted driver and a recorded history: who is warned, who is told, and which process ends."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from gpulse.model.catalog import Gpu, Process
from gpulse.model.snapshot import Snapshot
from gpulse.store.history import HistoryWriter
from tests.e2e.lab import environment
from tests.fake_nvml import Scenario
from tests.unit.delivery.mail_server import mail_server

pytestmark = pytest.mark.skipif(os.geteuid() != 0, reason="only root can own the machine's settings")


@pytest.fixture
def sleeper() -> Iterator[subprocess.Popen[bytes]]:
    with subprocess.Popen(["sleep", "600"]) as process:
        yield process
        process.kill()


def recorded(path: Path, uuid: str, pid: int, busy: bool = False) -> None:
    """Record two minutes of a GPU that a process holds."""
    now = time.time()
    with HistoryWriter(str(path)) as writer:
        for at in range(125, -1, -1):
            figures = {"pid": pid, "memory_used": 4 << 30, "running_time": 200.0 - at, "cpu_percent": 0.0}
            process = Process({"name": "sleep", "user": "root", "type": "C", **figures})
            use = 50 if busy and at == 60 else 0
            gpu = Gpu({"uuid": uuid, "index": 0, "utilization": use, "memory_total": 80 << 30}, processes=(process,))
            writer.add(Snapshot(now - at, (gpu,)))


class Machine:
    """A machine with one GPU, its settings, its history and a mail server."""

    def __init__(self, folder: Path, pid: int, port: int, more: str = "") -> None:
        scenario = Scenario.load("h200-idle").process(gpu=0, pid=pid, memory="4 GiB")
        machine = folder / "machine.toml"
        machine.write_text(
            f'[reclaim]\nidle = "1m"\nadmin_after = "1m"\ngrace = "5m"\nterminal = false\nowner_mail = "{{user}}@example.org"\n'
            f'admins = ["ops@example.org"]\nexempt_users = []\n{more}\n[mail]\nserver = "127.0.0.1:{port}"\n'
        )
        machine.chmod(0o644)
        self.settings = machine
        self.history = folder / "history.db"
        self.environ = environment(scenario, folder / "fake", GPULSE_MACHINE_CONFIG=str(machine), GPULSE_HISTORY=str(self.history),
                                   GPULSE_CONFIG=str(folder / "none.toml"))  # fmt: skip
        shown = json.loads(self.run("status", "--json", verb=""))
        self.uuid = shown["gpus"][0]["uuid"]

    def run(self, *words: str, verb: str = "reclaim", code: int = 0) -> str:
        command = [sys.executable, "-m", "gpulse", *([verb] if verb else []), *words]
        done = subprocess.run(command, env=self.environ, capture_output=True, text=True, timeout=60, check=False)
        assert done.returncode == code, done.stderr
        return done.stdout if code == 0 else done.stderr

    def age(self, seconds: float) -> None:
        """Have everything that was done so far be done earlier."""
        path = self.history.with_name("alerts.json")
        document = json.loads(path.read_text())
        for record in document["reclaim"].values():
            record.update({key: value - seconds for key, value in record.items() if key in ("warned", "reported")})
        path.write_text(json.dumps(document))


def test_warned_then_told_then_ended(tmp_path: Path, sleeper: subprocess.Popen[bytes]) -> None:
    with mail_server() as box:
        machine = Machine(tmp_path, sleeper.pid, box.port, "terminate = true")
        recorded(machine.history, machine.uuid, sleeper.pid)
        shown = machine.run("--dry-run")
        assert "warn root" in shown
        assert box.messages == []
        machine.run("--act")
        assert box.recipients == [["root@example.org"]]
        assert "has been idle for 1m00s" in box.messages[0]["Subject"]
        assert "Otherwise it is ended after" in box.messages[0].get_content()
        assert "owner warned" in machine.run()
        machine.run("--act")
        assert len(box.messages) == 1
        machine.age(60)
        assert "told the administrators" in machine.run("--act")
        assert box.recipients[1] == ["ops@example.org"]
        assert sleeper.poll() is None
        machine.age(300)
        plain = json.loads(machine.run("--json"))
        assert [one["action"] for one in plain["processes"]] == ["end"]
        assert sleeper.poll() is None  # a dry run does nothing
        assert "sent TERM" in machine.run("--act")
        assert sleeper.wait(20) == -15
        document = json.loads(machine.history.with_name("alerts.json").read_text())
        assert [event["kind"] for event in document["events"]] == [
            "reclaim-warned",
            "reclaim-reported",
            "reclaim-ended",
        ]
        assert {event["values"]["by"] for event in document["events"]} == {"root"}


def test_no_evidence_no_act(tmp_path: Path, sleeper: subprocess.Popen[bytes]) -> None:
    with mail_server() as box:
        machine = Machine(tmp_path, sleeper.pid, box.port)
        recorded(machine.history, machine.uuid, sleeper.pid, busy=True)
        assert "nothing: it has worked" in machine.run()
        machine.run("--act")
        assert box.messages == []
        machine.settings.chmod(0o666)
        assert "can be changed by others than root" in machine.run("--act", code=2)
        machine.settings.unlink()
        assert "which only root can write" in machine.run("--act", code=2)


def test_the_demo_shows_what_would_be_done(tmp_path: Path) -> None:
    environ = {**os.environ, "GPULSE_CONFIG": str(tmp_path / "none"), "GPULSE_MACHINE_CONFIG": str(tmp_path / "none")}
    command = [sys.executable, "-m", "gpulse", "reclaim", "--demo"]
    done = subprocess.run(command, env=environ, capture_output=True, text=True, timeout=60, check=True)
    assert "warn noor" in done.stdout
