"""What is told of other users' processes, on every surface the same because it is decided where processes are read."""

from __future__ import annotations

import os
import pwd
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from gpulse.sources.privacy import privacy_in_force
from gpulse.sources.processes import LinuxMachine

KEYS = frozenset({"name", "user", "command", "job"})
pytestmark = pytest.mark.skipif(os.geteuid() != 0, reason="only root can start processes of others")


@pytest.fixture
def machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return the machine's settings file, which is empty."""
    monkeypatch.setattr("gpulse.store.place.writable_by_others", lambda path: "")
    monkeypatch.setattr("gpulse.store.config.writable_by_others", lambda path: "")
    file = tmp_path / "machine.toml"
    monkeypatch.setenv("GPULSE_MACHINE_CONFIG", str(file))
    monkeypatch.setenv("GPULSE_CONFIG", str(tmp_path / "own.toml"))
    return file


@pytest.fixture
def others() -> Iterator[int]:
    """Yield the PID of a process of another user."""
    with subprocess.Popen(["sleep", "60"], user=65534, group=65534) as process:
        yield process.pid
        process.kill()


def told(pid: int) -> tuple[object, object, object, dict[str, str]]:
    facts = LinuxMachine().processes([pid], KEYS)[pid]
    return facts.values.get("user"), facts.values.get("name"), facts.values.get("command"), dict(facts.gaps)


@pytest.mark.parametrize(
    ("settings", "user", "name", "command"),
    [
        ("", "nobody", "sleep", "sleep 60"),
        ('[privacy]\ncommands = "full"', "nobody", "sleep", "sleep 60"),
        ('[privacy]\ncommands = "program"', "nobody", "sleep", None),
        ('[privacy]\ncommands = "none"', "nobody", None, None),
        ('[privacy]\ncommands = "nine"', "nobody", None, None),  # a mistake must not show more
        ('[privacy]\nusers = "number"', "65534", "sleep", "sleep 60"),
        ("[privacy", "nobody", None, None),
    ],
)
def test_others_are_told_as_the_machine_says(
    machine: Path, others: int, settings: str, user: str, name: str | None, command: str | None
) -> None:
    machine.write_text(settings)
    found = told(others)
    assert found[:3] == (user, name, command)
    missing = {"name": "denied"} if name is None else {}
    assert found[3] == (missing if command is not None else {**missing, "command": "denied"})


def test_own_processes_are_always_told_in_full(machine: Path) -> None:
    machine.write_text('[privacy]\ncommands = "none"\nusers = "number"')
    user, name, command, gaps = told(os.getpid())
    assert (user, gaps) == (pwd.getpwuid(os.geteuid()).pw_name, {})
    assert name
    assert "python" in str(command)


def test_no_other_way_leads_to_a_command(machine: Path, others: int) -> None:
    machine.write_text('[privacy]\ncommands = "program"')
    found = LinuxMachine()
    assert found.lineage([others])[others].command == ""
    assert found.about(others) == {}
    assert found._user_and_command(others) == ("nobody", "[sleep]")


def test_a_user_can_only_be_stricter(machine: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    machine.write_text('[privacy]\ncommands = "program"')
    (tmp_path / "own.toml").write_text('[privacy]\ncommands = "full"\nusers = "number"')
    policy = privacy_in_force(os.environ)
    assert (policy.commands, policy.users) == ("program", "number")
    monkeypatch.setenv("GPULSE_PRIVACY_COMMANDS", "none")
    assert privacy_in_force(os.environ).commands == "none"
