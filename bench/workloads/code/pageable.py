"""Batches are copied from pageable memory."""

from __future__ import annotations

from typing import Any


def main(gpu: Any, guilty: Any) -> None:
    batch = gpu.batch()
    for _ in gpu.steps():
        gpu.step().item()
        with guilty:
            batch.to("cuda")  # guilty
