"""`gpulse service`, with a systemctl that writes down what it was asked."""

from __future__ import annotations

import grp
import io
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from gpulse.cli.main import main
from gpulse.surfaces.fleet.service import unit_text


@pytest.fixture
def asked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """What systemctl was asked, one line per call; it fails while a file called `broken` is there."""
    log, systemctl = tmp_path / "asked", tmp_path / "bin/systemctl"
    systemctl.parent.mkdir()
    systemctl.write_text(
        f'#!/bin/sh\necho "$@" >> {log}\n[ ! -e {tmp_path}/broken ] || {{ echo "no bus" >&2; exit 1; }}\n'
    )
    systemctl.chmod(0o755)
    monkeypatch.setenv("PATH", f"{systemctl.parent}:/usr/bin:/bin")
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    return log


def test_install_writes_and_starts_the_unit_and_uninstall_removes_it(
    asked: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    unit = tmp_path / "config/systemd/user/gpulse.service"
    assert main(["service", "install", "--user", "--yes", "--listen", "0.0.0.0:9441"]) == 0
    assert unit.read_text() == unit_text(True, "0.0.0.0:9441")
    assert capsys.readouterr().out.startswith(unit.read_text())  # it shows what it writes
    assert asked.read_text().splitlines() == ["--user daemon-reload", "--user enable --now gpulse.service"]
    assert main(["service", "uninstall", "--user"]) == 0
    assert not unit.exists()
    assert asked.read_text().splitlines()[2:] == ["--user disable --now gpulse.service", "--user daemon-reload"]
    assert main(["service", "uninstall", "--user"]) == 1
    assert "is not there" in capsys.readouterr().err


def test_without_a_terminal_it_asks_for_yes_and_writes_nothing(
    asked: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(sys, "stdin", io.StringIO())
    assert main(["service", "install", "--user"]) == 1
    assert "use --yes" in capsys.readouterr().err
    assert not asked.exists()
    assert not (tmp_path / "config").exists()


def test_what_systemctl_says_is_the_error(asked: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "broken").touch()
    assert main(["service", "install", "--user", "--yes"]) == 1
    assert capsys.readouterr().err == "gpulse: `systemctl --user daemon-reload` failed: no bus\n"


@pytest.mark.parametrize("user", [False, True])
def test_systemd_accepts_the_unit(user: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    if shutil.which("systemd-analyze") is None:
        pytest.skip("systemd-analyze is not installed")
    python = tmp_path / "my env/bin/python"
    python.parent.mkdir(parents=True)
    for program in (python, python.with_name("gpulse")):
        program.write_text("#!/bin/sh\n")
        program.chmod(0o755)
    monkeypatch.setattr(sys, "executable", str(python))
    text = unit_text(user, None)
    assert f'ExecStart="{python.with_name("gpulse")}" serve --token-file ' in text
    (tmp_path / "gpulse.service").write_text(text)
    verify = ["systemd-analyze", "verify", "--man=no", str(tmp_path / "gpulse.service")]
    done = subprocess.run(verify, capture_output=True, text=True, timeout=60, check=False)
    assert (done.returncode, done.stderr) == (0, "")


def settings(monkeypatch: pytest.MonkeyPatch, path: Path, text: str) -> None:
    path.write_text(text)
    monkeypatch.setenv("GPULSE_MACHINE_CONFIG", str(path))
    monkeypatch.setattr("gpulse.store.config.writable_by_others", lambda path: "")


@pytest.fixture
def program(monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A program in a folder that everybody can enter."""
    with tempfile.TemporaryDirectory(prefix="gpulse-test-", dir="/tmp") as folder:
        os.chmod(folder, 0o755)
        python = Path(folder) / "python"
        for path in (python, python.with_name("gpulse")):
            path.write_text("#!/bin/sh\n")
            path.chmod(0o755)
        monkeypatch.setattr(sys, "executable", str(python))
        yield python


def test_the_service_of_the_machine_has_a_user_of_its_own(
    program: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings(monkeypatch, tmp_path / "machine.toml", "")
    lines = unit_text(False, None).splitlines()
    assert "DynamicUser=yes" in lines
    assert not [line for line in lines if line.startswith(("User=", "Group="))]
    assert "Environment=GPULSE_CONFIG=/etc/gpulse/config.toml" in lines
    groups = [line.partition("=")[2].split() for line in lines if line.startswith("SupplementaryGroups=")]
    known = {group.gr_name for group in grp.getgrall()}
    assert groups == ([there] if (there := [name for name in ("video", "render") if name in known]) else [])


def test_it_runs_as_root_where_a_group_may_read_its_history(
    program: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The files of a user that systemd makes up are where only root can enter."""
    settings(monkeypatch, tmp_path / "machine.toml", '[privacy]\nhistory_group = "daemon"\n')
    lines = unit_text(False, None).splitlines()
    assert "Group=daemon" in lines
    assert not [line for line in lines if line.startswith(("DynamicUser=", "SupplementaryGroups="))]


@pytest.mark.parametrize("closed", ["python", "gpulse", "."])
def test_it_runs_as_root_where_only_root_can_run_the_program(
    program: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, closed: str
) -> None:
    settings(monkeypatch, tmp_path / "machine.toml", "")
    (program.parent / closed).chmod(0o700)
    lines = unit_text(False, None).splitlines()
    assert not [line for line in lines if line.startswith(("DynamicUser=", "Group=", "User="))]
