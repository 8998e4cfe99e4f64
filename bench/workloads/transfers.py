"""Workloads limited by copies between host and device."""

from __future__ import annotations

import torch

from .run import Run

_BYTES = 256 << 20


def h2d_pinned(run: Run) -> None:
    """Copy 256 MiB from pinned memory in each step, asynchronously on a stream of its own."""
    host = [_host(run, pinned=True) for _ in range(2)]
    device = [torch.empty_like(part, device=run.device) for part in host]
    stream = torch.cuda.Stream() if run.on_gpu else None
    for number in run.steps():
        with torch.cuda.stream(stream):
            device[number % 2].copy_(host[number % 2], non_blocking=True)
        device[1 - number % 2].mul_(0.5)
        run.wait()


def h2d_pageable(run: Run) -> None:
    """Copy 256 MiB from ordinary memory in each step."""
    host = _host(run, pinned=False)
    for _ in run.steps():
        host.to(run.device).mul_(0.5)
        run.wait()


def d2h_steps(run: Run) -> None:
    """Copy the 256 MiB output of each step to the host."""
    x = torch.randn(run.size(_BYTES // 4, 64), device=run.device)
    for _ in run.steps():
        (x * 0.5).cpu()


def _host(run: Run, *, pinned: bool) -> torch.Tensor:
    tensor = torch.ones(run.size(_BYTES // 4, 64))
    return tensor.pin_memory() if pinned and run.on_gpu else tensor
