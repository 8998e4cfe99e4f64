"""Workloads limited by device memory: its bandwidth, its latency, or its size."""

from __future__ import annotations

import time

import torch

from .run import Run, say
from .training import trainer

GIB = 1 << 30


def optimizer_step(run: Run) -> None:
    """Run Adam, unfused, over 1 billion parameters: elementwise kernels over large tensors."""
    tensors = [torch.nn.Parameter(torch.randn(run.size(1 << 26, 64), device=run.device)) for _ in range(16)]
    for tensor in tensors:
        tensor.grad = torch.randn_like(tensor)
    optimizer = torch.optim.Adam(tensors, lr=1e-3, foreach=False)
    optimizer.step()
    run.wait()
    for _ in run.steps():
        optimizer.step()
        run.wait()


def gather_words(run: Run) -> None:
    """Follow random indices through a table of 32 GiB, 8 bytes at a time."""
    rows = run.size(1 << 32, 1 << 10)
    table = torch.empty(rows, dtype=torch.int64, device=run.device)
    for at in range(0, rows, 1 << 28):
        part = table[at : at + (1 << 28)]
        torch.randint(0, rows, (len(part),), device=run.device, out=part)
    index = table[: run.size(1 << 26, 64)].clone()
    run.wait()
    for _ in run.steps():
        for _ in range(4):
            index = table[index]
        run.wait()


def embedding_bag(run: Run) -> None:
    """Sum random embedding rows of 256 bytes from a table of 64 GiB, as recommenders do."""
    rows = run.size(1 << 28, 1 << 10)
    table = torch.zeros(rows, 128, dtype=torch.bfloat16, device=run.device)
    index = torch.randint(0, rows, (run.size(1 << 16, 8), 64), device=run.device)
    run.wait()
    for _ in run.steps():
        for _ in range(20):
            torch.nn.functional.embedding_bag(index, table, mode="sum")
        run.wait()


def memory_full(run: Run) -> None:
    """Train with all but 4 GiB of the memory taken."""
    step = trainer(run)
    kept = []
    if run.on_gpu:
        free = torch.cuda.mem_get_info()[0]  # what the step needs is cached by now
        kept.append(torch.empty(free - 4 * GIB, dtype=torch.uint8, device=run.device))
    for _ in run.steps():
        step()


def slow_leak(run: Run) -> None:
    """Train while a list keeps 200 MiB more every half second."""
    step = trainer(run)
    kept: list[torch.Tensor] = []
    due = time.monotonic()
    for _ in run.steps():
        step()
        if time.monotonic() >= due:
            due += 0.5
            kept.append(torch.ones(run.size(200 << 20, 64), dtype=torch.uint8, device=run.device))


def out_of_memory(run: Run) -> None:
    """Grow the batch every half second until the device runs out of memory; ends with torch's error."""
    torch.backends.cuda.matmul.allow_tf32 = True
    model = torch.nn.Sequential(*(torch.nn.Linear(4096, 4096) for _ in range(8))).to(run.device)
    batch = run.size(1 << 17, 8)
    for number in run.steps():
        model(torch.randn(int(batch * 1.25**number), 4096, device=run.device)).sum().backward()
        run.wait()
        time.sleep(run.share(0.5, 0.05))
        if number == 3 and not run.on_gpu:
            say(event="error", text="dry run: no such error")
            return
