"""Pictures are logged every other step."""

from __future__ import annotations

import zlib
from typing import Any

PIXELS = bytes(range(256)) * 3000


class Writer:
    def __init__(self) -> None:
        self.files: list[bytes] = []

    def add_image(self, tag: str, pixels: bytes) -> None:
        rows = [pixels[at : at + 3072] for at in range(0, len(pixels), 3072)]
        self.files = [tag.encode() + zlib.compress(b"\0".join(rows), 9)]  # guilty


def main(gpu: Any, guilty: Any) -> None:
    writer = Writer()
    for step in gpu.steps():
        gpu.step().item()
        if step % 2:
            with guilty:
                for at in range(30):
                    writer.add_image(f"sample {at}", PIXELS)
