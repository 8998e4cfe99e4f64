"""The scripted machine and the environment that peers and gpulse share in a run."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory

from tests.fake_nvml.scenario import Scenario

ROOT = Path(__file__).parent.parent
VENV = ROOT / "build/bench"
BIN = VENV / "bin"
PEERS = ("gpustat", "nvitop", "nvidia-ml-py")


def install() -> None:
    """Make an environment with the peers and a gpulse installed as users have it: from a wheel, compiled."""
    if not (BIN / "nvitop").exists():
        subprocess.run([sys.executable, "-m", "venv", VENV], check=True)
        subprocess.run([BIN / "pip", "install", "--quiet", *PEERS], check=True)
    subprocess.run([BIN / "pip", "install", "--quiet", "--force-reinstall", "--no-deps", ROOT], check=True)


@contextmanager
def machine(
    scenario: str, gpus: int, processes: int, latency: str = "h200", activity: bool = True
) -> Iterator[dict[str, str]]:
    """Give the environment of a machine with these numbers of GPUs and live processes, with or without activity counters."""
    children = [subprocess.Popen(["sleep", "3600"]) for _ in range(processes)]
    try:
        with TemporaryDirectory() as folder:
            scripted = Scenario.load(scenario).driver(gpus=gpus)
            if not activity:
                scripted.gpu(slice(0, gpus), gpm=0)
            for at, child in enumerate(children):
                scripted.process(gpu=at % gpus, pid=child.pid, memory="12 GiB", sm=30, mem=10)
            env = os.environ | scripted.write(Path(folder)) | {"FAKE_NVML_LATENCY": latency, "TERM": "xterm-256color"}
            for name in ("PYTHONPATH", "FAKE_NVML_CALLS", "PYTHONDONTWRITEBYTECODE"):
                env.pop(name, None)
            yield env
    finally:
        for child in children:
            child.kill()
            child.wait()
