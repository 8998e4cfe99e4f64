"""A machine recorded: it reads back as it was, without serial numbers, and a sleeping GPU stays asleep."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from gpulse.sources.amd.source import AmdSource
from gpulse.sources.base import Source
from gpulse.sources.capture import Capture, _replaced
from gpulse.sources.intel.source import IntelSource
from tests.unit.sources.amd.cards import kfd_node, radeon
from tests.unit.sources.amd.test_instinct import partitioned
from tests.unit.sources.intel.cards import SLOT, arc, client
from tests.unit.sources.smi.logs import log
from tests.unit.sources.trees import read_one, write_tree


def contents(folder: Path) -> bytes:
    return b"".join(path.read_bytes() for path in sorted(folder.rglob("*")) if path.is_file())


def recorded(root: Path, folder: Path) -> Capture:
    capture = Capture(str(folder), str(root))
    capture.record()
    return capture


@pytest.mark.parametrize(("make", "source"), [(radeon, AmdSource), (partitioned, AmdSource), (arc, IntelSource)])
def test_what_was_recorded_reads_as_the_machine_did(tmp_path: Path, make: object, source: type[Source]) -> None:
    root, folder = tmp_path / "machine", tmp_path / "recorded"
    make(root)  # type: ignore[operator]
    (root / "proc").mkdir()
    capture = recorded(root, folder)
    assert capture.cards
    assert capture.files < 200
    (folder / "proc").mkdir(exist_ok=True)
    before, after = read_one(source(str(root))), read_one(source(str(folder)))  # type: ignore[call-arg]
    assert (after.values, after.gaps) == (before.values, before.gaps)


def test_numbers_of_boards_are_replaced_alike_everywhere(tmp_path: Path) -> None:
    root, folder = tmp_path / "machine", tmp_path / "recorded"
    radeon(root, serial_number="692019010402\n")
    write_tree(root, kfd_node(1, 7, 0x0300, unique_id=0x946D7E1EF9B172DD))
    recorded(root, folder)
    whole = contents(folder)
    assert b"946d7e1ef9b172dd" not in whole
    assert str(0x946D7E1EF9B172DD).encode() not in whole
    assert b"692019010402" not in whole
    assert (folder / "sys/class/drm/card0/device/unique_id").read_text() == "0000000000000002\n"
    assert b"unique_id 2\n" in (folder / "sys/class/kfd/kfd/topology/nodes/1/properties").read_bytes() + b"\n"


def test_processes_are_numbers_and_nothing_else(tmp_path: Path) -> None:
    root, folder = arc(tmp_path / "machine"), tmp_path / "recorded"
    write_tree(
        root,
        {
            **client(80, 4, drm_driver="xe", drm_pdev=SLOT, drm_client_id="9", secret_word="hunter2"),
            "proc/80/cmdline": "train --token=x",
        },
    )
    recorded(root, folder)
    assert [str(path.relative_to(folder)) for path in (folder / "proc").rglob("*") if path.is_file()] == [
        "proc/80/fdinfo/4"
    ]
    assert b"hunter2" not in contents(folder)


def test_a_sleeping_gpu_is_recorded_by_its_identity_alone(tmp_path: Path) -> None:
    root, folder = radeon(tmp_path / "machine", power__runtime_status="suspended\n"), tmp_path / "recorded"
    recorded(root, folder)
    device = folder / "sys/class/drm/card0/device"
    names = {path.name for path in device.rglob("*") if path.is_file()}
    links = {f"{which}_link_{what}" for which in ("current", "max") for what in ("speed", "width")}
    assert names <= {"uevent", "vendor", "device", "revision", "runtime_status"} | links
    assert read_one(AmdSource(str(folder))).state == "asleep"


def test_elements_of_a_log_are_replaced() -> None:
    masked = _replaced(_replaced(log().encode(), b"uuid"), b"process_name")
    assert b"<uuid>GPU-00000001</uuid>" in masked
    assert b"python.exe" not in masked
    assert b"<serial>N/A</serial>" in _replaced(masked, b"serial")


def test_the_command_says_what_it_recorded(tmp_path: Path) -> None:
    folder = tmp_path / "recorded"
    env = {"PATH": "/nonexistent", "GPULSE_ROOT": str(radeon(tmp_path / "machine")), "PYTHONPATH": ":".join(sys.path)}
    command = [sys.executable, "-m", "gpulse", "doctor", "--capture", str(folder)]
    done = subprocess.run(command, env=env, capture_output=True, text=True, check=False, timeout=30)
    assert done.returncode == 0, done.stderr
    assert "card0 (amdgpu)" in done.stdout
    assert "Masked" in done.stdout
    again = subprocess.run(command, env=env, capture_output=True, text=True, check=False, timeout=30)
    assert again.returncode == 2
    assert "already exists" in again.stderr
