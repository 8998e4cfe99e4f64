"""The models that several workloads train or serve: a transformer, a convnet, a decoder with a KV cache."""

from __future__ import annotations

import torch
from torch import nn
from torch.nn import functional


class Block(nn.Module):  # type: ignore[misc]  # torch need not be installed for type checks
    """One pre-norm transformer layer; with a cache it attends to all tokens so far."""

    def __init__(self, width: int, heads: int) -> None:
        super().__init__()
        self.heads = heads
        self.before = nn.LayerNorm(width)
        self.after = nn.LayerNorm(width)
        self.mix = nn.Linear(width, 3 * width, bias=False)
        self.out = nn.Linear(width, width, bias=False)
        self.up = nn.Linear(width, 4 * width, bias=False)
        self.down = nn.Linear(4 * width, width, bias=False)

    def forward(self, x: torch.Tensor, cache: tuple[torch.Tensor, torch.Tensor, int] | None = None) -> torch.Tensor:
        batch, length, width = x.shape
        parts = self.mix(self.before(x)).view(batch, length, 3, self.heads, width // self.heads)
        query, key, value = parts.permute(2, 0, 3, 1, 4)
        if cache is not None:
            keys, values, at = cache
            keys[:, :, at : at + length], values[:, :, at : at + length] = key, value
            key, value = keys[:, :, : at + length], values[:, :, : at + length]
        mixed = functional.scaled_dot_product_attention(query, key, value, is_causal=cache is None)
        x = x + self.out(mixed.transpose(1, 2).reshape(batch, length, width))
        return x + self.down(functional.gelu(self.up(self.after(x))))


class Transformer(nn.Module):  # type: ignore[misc]
    """A decoder-only language model."""

    def __init__(self, layers: int, width: int, heads: int, words: int = 32000) -> None:
        super().__init__()
        self.embed = nn.Embedding(words, width)
        self.blocks = nn.ModuleList(Block(width, heads) for _ in range(layers))
        self.head = nn.Linear(width, words, bias=False)

    def forward(self, tokens: torch.Tensor) -> torch.Tensor:
        x = self.embed(tokens)
        for block in self.blocks:
            x = block(x)
        return self.head(x)

    def decode(self, token: torch.Tensor, caches: list[tuple[torch.Tensor, torch.Tensor]], at: int) -> torch.Tensor:
        """Return the next token of each sequence, greedily."""
        x = self.embed(token)
        for block, (keys, values) in zip(self.blocks, caches, strict=True):
            x = block(x, (keys, values, at))
        return self.head(x).argmax(-1)


def convnet(width: int, depth: int) -> nn.Module:
    """Return a plain convnet: `depth` 3 × 3 layers with batch norm, one stride of two in every fourth."""
    layers: list[nn.Module] = []
    channels = 3
    for at in range(depth):
        stride = 2 if at % 4 == 0 else 1
        layers += [nn.Conv2d(channels, width, 3, stride, 1, bias=False), nn.BatchNorm2d(width), nn.ReLU(inplace=True)]
        channels = width
    return nn.Sequential(*layers, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(width, 1000))
