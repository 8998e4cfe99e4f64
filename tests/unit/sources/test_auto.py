"""All vendors as one source: what is there is opened, numbered through, and nothing else is loaded."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from gpulse.errors import SourceUnavailable, UsageError
from gpulse.model.select import EVERYTHING
from gpulse.sampling.sampler import Sampler
from gpulse.sources.registry import AutoSource, card_drivers, make_source, present
from tests.e2e.lab import environment
from tests.fake_nvml import Scenario
from tests.unit.sources.amd.cards import radeon
from tests.unit.sources.intel.cards import arc
from tests.unit.sources.jetson.boards import ORIN
from tests.unit.sources.trees import write_tree


def test_a_mixed_machine_lists_all_and_numbers_them_through(tmp_path: Path) -> None:
    arc(radeon(tmp_path))
    sampler = Sampler(AutoSource(str(tmp_path)), EVERYTHING).open()
    snapshot = sampler.read()
    sampler.close()
    assert [(gpu.index, gpu.vendor) for gpu in snapshot.gpus] == [(0, "amd"), (1, "intel")]
    assert snapshot.gpus[0].utilization == 97
    assert snapshot.problems == ()


def test_devices_stay_the_same_object_from_sample_to_sample(tmp_path: Path) -> None:
    """The sampler takes another object for other GPUs, and forgets what it knew."""
    source = AutoSource(str(arc(radeon(tmp_path))))
    source.open()
    before = source.devices
    source.refresh()
    assert source.devices is before


def test_an_nvidia_card_without_its_library_is_a_problem_beside_the_others(tmp_path: Path) -> None:
    radeon(tmp_path)
    write_tree(
        tmp_path, {"sys/class/drm/card4/device/uevent": "DRIVER=nvidia\nPCI_ID=10DE:2204\nPCI_SLOT_NAME=0000:65:00.0\n"}
    )
    sampler = Sampler(AutoSource(str(tmp_path)), EVERYTHING).open()
    snapshot = sampler.read()
    sampler.close()
    assert [gpu.vendor for gpu in snapshot.gpus] == ["amd"]
    assert [problem.source for problem in snapshot.problems] == ["nvidia"]


def test_a_jetson_without_nvml_is_read_from_the_kernel(tmp_path: Path) -> None:
    source = AutoSource(str(write_tree(tmp_path, ORIN)))
    source.open()
    assert [device.identity["name"] for device in source.devices] == ["NVIDIA Jetson AGX Orin Developer Kit"]


def test_a_machine_without_any_says_what_was_looked_for(tmp_path: Path) -> None:
    with pytest.raises(SourceUnavailable) as caught:
        AutoSource(str(tmp_path)).open()
    assert "NVIDIA" in caught.value.message
    assert "AMD" in caught.value.message
    assert "Intel" in caught.value.message


def test_drivers_are_told_by_link_or_by_uevent(tmp_path: Path) -> None:
    write_tree(tmp_path, {
        "sys/class/drm/card0/device/driver": "->../../../bus/pci/drivers/amdgpu",
        "sys/class/drm/card1/device/uevent": "DRIVER=xe\n", "sys/class/drm/card1-DP-1/device/uevent": "DRIVER=radeon\n",
        "sys/class/drm/card2/device/uevent": "DRIVER=ast\n",
    })  # fmt: skip
    drivers = card_drivers(str(tmp_path))
    assert drivers == {"amdgpu", "xe", "ast"}
    assert present(drivers) == ["amd", "intel"]


@pytest.mark.parametrize(
    "name", ["amd:", "intel:", "smi:", "auto:x", "nothing", "jetson:", "amd:/no/such", "demo:none"]
)
def test_a_source_that_is_not_one_is_refused(name: str) -> None:
    with pytest.raises(UsageError):
        make_source(name)


def test_nvidia_and_others_stand_side_by_side(tmp_path: Path) -> None:
    arc(radeon(tmp_path / "root"))
    env = environment(Scenario.load("h200-busy"), tmp_path / "fake") | {"GPULSE_ROOT": str(tmp_path / "root")}
    code = """
import gpulse, sys
snapshot = gpulse.snapshot()
print([(int(gpu.index), gpu.vendor) for gpu in snapshot.gpus], dict(snapshot.driver).get("version"))
assert gpulse.snapshot().gpus[1].utilization == 97
"""
    done = subprocess.run(
        [sys.executable, "-c", code], env=env, capture_output=True, text=True, check=False, timeout=30
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.strip() == "[(0, 'nvidia'), (1, 'amd'), (2, 'intel')] 580.159.04"
