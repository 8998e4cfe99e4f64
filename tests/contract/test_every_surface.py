"""Every machine on every surface: an answer or a reason, never an exception, a 500 or a traceback."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.contract.test_sources import RECORDED
from tests.e2e.lab import Forking, environment
from tests.fake_nvml import Clock, Scenario
from tests.fake_nvml.build import SONAME
from tests.unit.sources.amd.cards import radeon
from tests.unit.sources.intel.cards import arc

WITHOUT_GPUS = ("init-hang", "mismatch", "not-loaded")  # machines without a GPU that can be read
OTHERS = (*RECORDED, "demo", "demo:mixed", "auto")


@pytest.fixture(scope="module")
def surfaces() -> Iterator[Forking]:
    """The program that has imported every surface."""
    with Forking("tests.contract.surfaces", 250.0) as program:
        yield program


@pytest.mark.parametrize("machine", [*Scenario.names(), *OTHERS])
def test_every_surface_answers_or_says_why_not(machine: str, surfaces: Forking, tmp_path: Path) -> None:
    if machine in Scenario.names():
        scenario = Scenario.load(machine)
        if machine == "fleet64":
            scenario = scenario.driver(gpus=24)  # more than fit on a screen
        env = environment(scenario, tmp_path / "machine", GPULSE_SOURCE="nvidia")
        if machine == "lost":
            env |= Clock(tmp_path, 3.0).environment  # after it happened
        library = str(Path(env.pop("LD_LIBRARY_PATH").split(os.pathsep)[0]) / SONAME)
    else:
        env = environment(Scenario(), tmp_path / "machine", GPULSE_SOURCE=machine)
        env.pop("LD_LIBRARY_PATH")
        library = ""
        if machine in RECORDED:
            env["GPULSE_SOURCE"] = RECORDED[machine](tmp_path / "recorded")
        if machine == "auto":
            env["GPULSE_ROOT"] = str(arc(radeon(tmp_path / "recorded")))
    config = tmp_path / "config.toml"
    config.write_text("[alerts]\nlog = false\n")
    env["GPULSE_CONFIG"] = str(config)
    question = {
        "environment": env,
        "library": library,
        "folder": str(tmp_path),
        "gpus": machine not in WITHOUT_GPUS,
        "without": ["terminal"] if machine == "flaky" else [],  # what fails there differs from one sample to the next
    }
    problems = json.loads(surfaces.ask(question))
    assert not problems, "\n".join(f"{name}:\n{said}" for name, said in problems.items())
