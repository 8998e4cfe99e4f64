"""Real trainings in a process of their own: how a test runs one, and what the training tells about its monitor."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from gpulse import Monitor
    from gpulse.sinks import Sample

from gpulse.sinks import Sink
from gpulse.sources.processes import parse_stat

ROOT = Path(__file__).parents[2]
SLEEP = 0.05  # seconds a slow loader takes for a batch


def run(code: str, folder: Path, *needs: str) -> Any:
    """What a program says as JSON on the last line of its output; skips where a framework is missing."""
    for name in needs:
        if find_spec(name) is None:
            pytest.skip(f"needs {name}")
    plain = {
        key: value for key, value in os.environ.items() if not key.startswith(("GPULSE_", "CUDA_", "LOCAL_", "SLURM_"))
    }
    environ = plain | {
        "GPULSE_SOURCE": "demo",
        "GPULSE_CONFIG": str(Path(__file__).with_name("quiet.toml")),  # no alerts
        "PYTHONPATH": f"{ROOT / 'src'}:{ROOT}",
        "KERAS_BACKEND": "torch",
        "HF_HUB_OFFLINE": "1",
        "OMP_NUM_THREADS": "1",
    }
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=folder, env=environ, capture_output=True, text=True, timeout=120, check=False
    )
    assert done.returncode == 0, done.stderr
    assert "gpulse:" not in done.stderr, done.stderr
    return json.loads(done.stdout.splitlines()[-1])


class Watch(Sink):
    """Keeps the samples of a training and lets it wait for them."""

    name = "watch"

    def __init__(self) -> None:
        self.samples: list[Sample] = []
        self._changed = threading.Condition()

    def write(self, sample: Sample) -> None:
        with self._changed:
            self.samples.append(sample)
            self._changed.notify_all()

    def wait(self, more: int = 2) -> None:
        """Return once so many more samples have come."""
        with self._changed:
            wanted = len(self.samples) + more
            assert self._changed.wait_for(lambda: len(self.samples) >= wanted, timeout=20)

    def marks(self) -> list[tuple[str, object]]:
        return [(mark.name, mark.value) for sample in self.samples for mark in sample.marks]


def told(monitor: Monitor) -> dict[str, Any]:
    """What is left to say when a training is over."""
    summary = monitor.summary()
    assert summary is not None
    return {
        "samples": summary.samples,
        "steps": summary.steps,
        "waited": summary.waited,
        "phases": {phase.name: {"steps": phase.steps, "waited": phase.waited} for phase in summary.phases},
        "runs": monitor.samples,
        "agents": agents(),
        "errors": monitor.errors,
    }


def agents() -> int:
    """How many samplers are children of this process, ended ones that nobody has waited for included."""
    mine = 0
    for entry in Path("/proc").iterdir():
        try:
            stat = parse_stat((entry / "stat").read_bytes() if entry.name.isdecimal() else b"")
            words = (entry / "cmdline").read_bytes() if stat else b""
        except OSError:
            continue
        if stat and stat.parent == os.getpid():
            mine += b"gpulse" in words or not words
    return mine


def tell(**answers: object) -> None:
    """Print what the test asks for."""
    print()
    print(json.dumps(answers))
