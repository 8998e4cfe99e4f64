"""A validation loop counts hits in Python, one by one."""

from __future__ import annotations

from typing import Any

LABELS = [at % 7 for at in range(500_000)]


def validate(gpu: Any, guilty: Any) -> float:
    correct = 0
    for _ in range(4):
        gpu.step().item()
        with guilty:
            correct += sum(int(one) == int(other) for one, other in zip(LABELS, LABELS, strict=True))  # guilty
    return correct / (4 * len(LABELS))


def main(gpu: Any, guilty: Any) -> None:
    for step in gpu.steps():
        gpu.step().item()
        if step % 4 == 3:
            validate(gpu, guilty)
