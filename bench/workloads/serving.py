"""Workloads of serving and of interactive use: decoding, rare requests, a notebook left open."""

from __future__ import annotations

import time
from collections.abc import Callable

import torch

from .models import Transformer
from .run import Run

_PROMPT = 512


def decode_1(run: Run) -> None:
    """Decode one sequence with a model of 10 billion parameters in bf16."""
    _decode(run, 1)


def decode_32(run: Run) -> None:
    """Decode 32 sequences at once."""
    _decode(run, 32)


@torch.inference_mode()  # type: ignore[untyped-decorator]
def _decode(run: Run, batch: int) -> None:
    generate = decoder(run, batch)
    for _ in run.steps():
        generate(run.size(16, 2))


def decoder(run: Run, batch: int, layers: int = 12, wide: int = 8192) -> Callable[[int], None]:
    """Return a call that decodes a number of tokens."""
    width, heads, longest = run.size(wide, 32), run.size(wide // 128, 2), run.size(2048, 16)
    dtype = torch.bfloat16
    torch.backends.cuda.enable_cudnn_sdp(False)  # it plans anew for each length: 50 ms of CPU per token
    with torch.device(run.device):
        torch.set_default_dtype(dtype)
        model = Transformer(run.size(layers, 1), width, heads, run.size(32000, 64)).eval()
        torch.set_default_dtype(torch.float32)
    shape = (batch, heads, longest, width // heads)
    caches = [tuple(torch.zeros(shape, dtype=dtype, device=run.device) for _ in "kv") for _ in model.blocks]
    token = torch.zeros(batch, 1, dtype=torch.long, device=run.device)
    place = [min(_PROMPT, longest // 2)]

    def generate(tokens: int) -> None:
        nonlocal token
        for _ in range(tokens):
            token = model.decode(token, caches, place[0])
            place[0] = place[0] + 1 if place[0] + 1 < longest else longest // 2
        run.wait()

    with torch.inference_mode():
        generate(2)
    return generate


@torch.inference_mode()  # type: ignore[untyped-decorator]
def serving_rare(run: Run) -> None:
    """Answer a request every 3 s with 40 tokens: a server that mostly waits."""
    generate = decoder(run, 1)
    for _ in run.steps():
        generate(run.size(40, 2))
        time.sleep(run.share(2.8, 0.1))


def notebook(run: Run) -> None:
    """Compute for 4 s, then hold 6 GiB and do nothing, as a notebook left open does."""
    kept = torch.randn(run.size(6 << 28, 64), device=run.device)
    end = time.monotonic() + run.share(4.0)
    while time.monotonic() < end:
        kept.mul_(0.999)
        run.wait()
    for _ in run.steps():
        time.sleep(0.2)
