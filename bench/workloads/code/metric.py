"""A metric in Python after each step."""

from __future__ import annotations

from typing import Any

LABELS = [at % 7 for at in range(1_200_000)]


def compute_f1(predicted: list[int], labels: list[int]) -> float:
    hits = 0
    for one, other in zip(predicted, labels, strict=True):  # guilty
        if one == other:  # guilty
            hits += 1  # guilty
    return 2 * hits / (len(predicted) + len(labels))


def main(gpu: Any, guilty: Any) -> None:
    for _ in gpu.steps():
        loss = gpu.step()
        loss.item()
        with guilty:
            compute_f1(LABELS, LABELS)
