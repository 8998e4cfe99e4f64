"""Texts are tokenized in `collate_fn`, in the training process."""

from __future__ import annotations

from typing import Any

TEXT = "the quick brown fox jumps over the lazy dog " * 40


def tokenize(texts: list[str]) -> list[list[int]]:
    vocabulary: dict[str, int] = {}
    return [[vocabulary.setdefault(word, len(vocabulary)) for word in text.lower().split()] for text in texts]  # guilty


def main(gpu: Any, guilty: Any) -> None:
    from torch.utils.data import DataLoader

    loader = DataLoader([TEXT] * 100_000, batch_size=1500, collate_fn=tokenize)
    batches = iter(loader)
    for _ in gpu.steps():
        with guilty:
            batch = next(batches, None)
            if batch is None:
                batches = iter(loader)
        gpu.step().item()
