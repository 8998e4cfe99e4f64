"""The loss is read in each step, so that the launches of the next one cannot run ahead."""

from __future__ import annotations

from typing import Any


def main(gpu: Any, guilty: Any) -> None:
    total = 0.0
    for _ in gpu.steps():
        with guilty:
            loss = gpu.small_step()
        total += loss.item()  # guilty
