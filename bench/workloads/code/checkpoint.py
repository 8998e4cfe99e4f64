"""A checkpoint every few steps."""

from __future__ import annotations

import tempfile
from typing import Any


def main(gpu: Any, guilty: Any) -> None:
    import torch

    state = {f"layer{at}": torch.randn(1000, 1000) for at in range(60)}
    with tempfile.TemporaryDirectory(dir="/dev/shm") as folder:
        for step in gpu.steps():
            gpu.step().item()
            if step % 4 == 3:
                with guilty:
                    torch.save(state, f"{folder}/last.pt")  # guilty
