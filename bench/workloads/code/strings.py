"""A log is built as one long text in each step."""

from __future__ import annotations

from typing import Any


def describe(step: int, values: list[int]) -> str:
    text = ""
    for at, value in enumerate(values):  # guilty
        text += f"step {step}: value {at} is {value:.4f}; "  # guilty
    return text


def main(gpu: Any, guilty: Any) -> None:
    values = [at % 7 for at in range(120_000)]
    for step in gpu.steps():
        gpu.step().item()
        with guilty:
            describe(step, values)
