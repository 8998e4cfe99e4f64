"""Trainings that stop now and then: checkpoints and evaluations."""

from __future__ import annotations

import os
import time

import numpy
import torch

from .run import Run, say
from .training import busy, trainer


def checkpoint(run: Run) -> None:
    """Train for 4 s, then write a checkpoint of a few GiB to disk and wait for it; over and over."""
    step = trainer(run)
    path = os.path.join(run.folder, "checkpoint.pt")
    state = {"weights": torch.ones(run.size(256 << 20, 64), dtype=torch.uint8, device=run.device)}
    taken = _save(state, path)
    if run.on_gpu:  # as large as this disk takes about 2 s for
        size = int(min(6 << 30, max(64 << 20, (256 << 20) * 2.0 / taken)))
        state = {"weights": torch.ones(size, dtype=torch.uint8, device=run.device)}
    for _ in run.steps():
        busy(step, run.share(4.0))
        say(event="checkpoint", seconds=_save(state, path), bytes=os.path.getsize(path))
    os.unlink(path)


def _save(state: dict[str, torch.Tensor], path: str) -> float:
    start = time.monotonic()
    with open(path, "wb") as file:
        torch.save(state, file)
        file.flush()
        os.fsync(file.fileno())
    return time.monotonic() - start


def evaluation(run: Run) -> None:
    """Train for 5 s, then compute metrics on one CPU core for 2 s; over and over."""
    step = trainer(run)
    scores = numpy.random.default_rng(1).random(run.size(1 << 20, 1 << 10))
    for _ in run.steps():
        busy(step, run.share(5.0))
        end = time.monotonic() + run.share(2.0)
        while time.monotonic() < end:
            numpy.sort(scores)
