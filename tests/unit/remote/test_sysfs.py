"""AMD machines without gpulse: the real shell prints a made-up machine's files, and they read as they do there."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gpulse.model.snapshot import Snapshot
from gpulse.remote.samples import _WANTED, SampleReader, parse
from gpulse.remote.ssh import command
from gpulse.sampling.sampler import Sampler
from gpulse.sources.amd.source import AmdSource
from tests.unit.sources.trees import card, packed, under, write_tree

SHELLS = [shell for shell in ("sh", "bash", "dash", "busybox") if shutil.which(shell)]
_DRM = "sys/class/drm"


def machine(root: Path) -> Path:
    """Write two GPUs, one of them asleep, and a card of another vendor."""
    files: dict[str, str | bytes] = {
        **card("amdgpu", "1002:740F", "0000:03:00.0"),
        "vendor": "0x1002\n",
        "device": "0x740f\n",
        "gpu_busy_percent": "37\n",
        "unique_id": "abcdef0123456789\n",
        "mem_info_vram_used": f"{5 << 30}\n",
        "mem_info_vram_total": f"{64 << 30}\n",
        "power/runtime_status": "active\n",
        "pp_dpm_sclk": "0: 500Mhz\n1: 1700Mhz *\n",
        "hwmon/hwmon3/name": "amdgpu\n",
        "serial_number": "a:b:c\n",
        "hwmon/hwmon3/temp1_label": "edge\n",
        "hwmon/hwmon3/temp1_input": "61000\n",
        "hwmon/hwmon3/power1_average": "250000000\n",
        "hwmon/hwmon3/power1_cap": "300000000\n",
        "gpu_metrics": packed((1, 3), 120, {4: ("H", 60)}),
        "pcie_bw": "never read this: it takes a second\n",
    }
    asleep: dict[str, str | bytes] = {
        **card("amdgpu", "1002:73BF", "0000:04:00.0"),
        "vendor": "0x1002\n",
        "power/runtime_status": "suspended\n",
        "gpu_busy_percent": "wakes it\n",
    }
    other = {**card("i915", "8086:56A0", "0000:05:00.0"), "vendor": "0x8086\n"}
    host = {
        "sys/kernel/hostname": "box\n",
        "meminfo": "MemTotal: 1024 kB\nMemAvailable: 512 kB\n",
        "loadavg": "1 2 3 1/2 3\n",
    }
    for number, device in enumerate((files, asleep, other)):
        write_tree(root, under(f"{_DRM}/card{number}/device", device))
    return write_tree(root, under("proc", host))


class Printer:
    """A machine that prints its files, and what is read of them."""

    def __init__(self, root: Path, shell: str = "sh") -> None:
        words = ["busybox", "sh", "-c"] if shell == "busybox" else [shell, "-c"]
        environ = {"PATH": "/usr/bin:/bin", "HOME": "/nonexistent", "GPULSE_ROOT": str(root)}
        self._process = subprocess.Popen([*words, command(0.05)], env=environ, stdout=subprocess.PIPE)
        self._reader = SampleReader("box")

    def __iter__(self) -> Iterator[Snapshot]:
        assert self._process.stdout is not None
        while piece := os.read(self._process.stdout.fileno(), 1000):
            yield from self._reader.feed(piece)

    def close(self) -> None:
        self._process.kill()
        self._process.communicate()
        self._reader.close()


@pytest.fixture
def root(tmp_path: Path) -> Path:
    return machine(tmp_path / "machine")


@pytest.mark.parametrize("shell", SHELLS)
def test_a_machine_reads_over_a_shell_as_it_does_itself(root: Path, shell: str) -> None:
    printer = Printer(root, shell)
    try:
        told = next(iter(printer))
    finally:
        printer.close()
    sampler = Sampler(AmdSource(str(root)), _WANTED).open()
    own = sampler.read()
    sampler.close()
    assert [dict(gpu.items()) for gpu in told.gpus] == [dict(gpu.items()) for gpu in own.gpus]
    first, second = told.gpus
    assert (first.utilization, first.temperature, first.power_draw) == (37, 61, 250)
    assert (second.state, first.gaps["processes"]) == ("asleep", "skipped")
    assert (told.host.name, told.host.memory_total) == ("box", 1 << 20)


def test_values_change_and_a_gpu_that_is_gone_is_lost(root: Path) -> None:
    printer = Printer(root)
    try:
        samples = iter(printer)
        assert next(samples).gpus[0].utilization == 37
        (root / _DRM / "card0/device/gpu_busy_percent").write_text("99\n")
        assert any(sample.gpus[0].utilization == 99 for sample, _ in zip(samples, range(50), strict=False))
        shutil.rmtree(root / _DRM / "card0")
        assert any(sample.gpus[0].state == "lost" for sample, _ in zip(samples, range(50), strict=False))
    finally:
        printer.close()


def test_nothing_is_written_outside_of_the_folders() -> None:
    paths = [
        *("/etc/passwd", "../x", "sys/class/drm/card0/../../x", "proc/../../x", "sys/class/drm/card0/device/.."),
        *("sys/class/drm/card0", "etc/x", "sys/class/drm/card0//x", "sys/class/drm/card0/\x00"),
    ]
    assert parse([f"{path}:1".encode() for path in paths] + [f"hex {path}".encode() for path in paths] + [b" 00"]) == {}
    assert parse([b"sys/class/drm/card0/device/uevent:A=1:2"]) == {"sys/class/drm/card0/device/uevent": b"A=1:2\n"}


@given(st.lists(st.binary(max_size=40)))
def test_any_lines_are_no_error(lines: list[bytes]) -> None:
    assert all(not path.startswith("/") and ".." not in path for path in parse(lines))
