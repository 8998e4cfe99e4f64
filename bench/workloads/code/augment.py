"""Two loader workers augment images in Python and do not keep up."""

from __future__ import annotations

import random
from typing import Any


def flip(pixels: list[int]) -> list[int]:
    return [255 - pixel for pixel in reversed(pixels) if random.random() < 0.9]  # guilty


class Images:
    def __len__(self) -> int:
        return 1_000_000

    def __getitem__(self, at: int) -> int:
        return len(flip([at % 255] * 500_000))


def main(gpu: Any, guilty: Any) -> None:
    from torch.utils.data import DataLoader

    batches = iter(DataLoader(Images(), batch_size=8, num_workers=2))
    for _ in gpu.steps():
        with guilty:
            next(batches)  # guilty where workers are not seen
        gpu.step().item()
