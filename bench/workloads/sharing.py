"""Two programs on one GPU."""

from __future__ import annotations

import subprocess
import sys
import time

import torch

from .run import Run
from .training import trainer


def two_jobs(run: Run) -> None:
    """Train a transformer beside a second process that runs small inferences."""
    command = [
        sys.executable,
        "-m",
        "bench.workloads",
        "light",
        "--seconds",
        str(run.seconds + 6),
        "--device",
        run.device,
    ]
    step = trainer(run)
    with subprocess.Popen(command, stdout=subprocess.PIPE) as other:
        assert other.stdout is not None
        other.stdout.readline()  # its workload has begun
        for _ in run.steps():
            step()
        other.terminate()


def light(run: Run) -> None:
    """Run a batch of matrix products of about 10 ms, 20 times a second."""
    size = run.size(8192, 64)
    a, b = (torch.randn(size, size, device=run.device, dtype=torch.bfloat16) for _ in range(2))
    for _ in run.steps():
        for _ in range(6):
            a @ b
        run.wait()
        time.sleep(0.04)
