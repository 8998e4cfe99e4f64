"""Training loops limited by arithmetic: what a healthy run looks like, and the same without tensor cores."""

from __future__ import annotations

import time
from collections.abc import Callable
from contextlib import nullcontext

import torch
from torch.nn import functional

from .models import Transformer, convnet
from .run import Run


def trainer(run: Run, batch: int = 16, *, bf16: bool = True) -> Callable[[], None]:
    """Return one training step of a 12-layer transformer, warmed up; each call waits for the step before last at most."""
    model = Transformer(run.size(12, 1), run.size(1536, 32), run.size(12, 2), run.size(32000, 64)).to(run.device)
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4, fused=run.on_gpu)
    tokens = torch.randint(0, run.size(32000, 64), (run.size(batch, 2), run.size(1024, 8)), device=run.device)
    cast = torch.autocast(run.device, dtype=torch.bfloat16) if bf16 else nullcontext()

    def step() -> None:
        with cast:
            logits = model(tokens)
            loss = functional.cross_entropy(logits.flatten(0, 1), tokens.flatten())
        loss.backward()
        optimizer.step()
        optimizer.zero_grad(set_to_none=True)
        run.wait()

    for _ in range(3):
        step()
    return step


def busy(step: Callable[[], None], seconds: float) -> None:
    """Train for this time."""
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        step()


def train_bf16(run: Run) -> None:
    """Train a transformer in bf16."""
    step = trainer(run)
    for _ in run.steps():
        step()


def train_fp32(run: Run) -> None:
    """Train the same transformer in fp32 with TF32 off."""
    torch.backends.cuda.matmul.allow_tf32 = False
    step = trainer(run, batch=4, bf16=False)
    for _ in run.steps():
        step()


def conv_large(run: Run) -> None:
    """Train a convnet in bf16, channels last, batch 256."""
    _conv(run, 256, bf16=True)


def conv_batch2(run: Run) -> None:
    """Train the same convnet with a batch of 2, eagerly."""
    _conv(run, 2, bf16=True)


def _conv(run: Run, batch: int, *, bf16: bool) -> None:
    torch.backends.cudnn.benchmark = True
    model = convnet(run.size(256, 4), run.size(24, 4)).to(run.device, memory_format=torch.channels_last)
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-3)
    images = torch.randn(run.size(batch, 2), 3, run.size(128, 16), run.size(128, 16), device=run.device)
    images = images.to(memory_format=torch.channels_last)
    targets = torch.randint(0, 1000, (len(images),), device=run.device)

    def step() -> None:
        with torch.autocast(run.device, dtype=torch.bfloat16, enabled=bf16):
            loss = functional.cross_entropy(model(images), targets)
        loss.backward()
        optimizer.step()
        optimizer.zero_grad(set_to_none=True)

    for _ in range(3):
        step()
    run.wait()
    for number in run.steps():
        step()
        if number % 10 == 0:
            run.wait()


def conv_batch2_graph(run: Run) -> None:
    """Run the convnet forward with a batch of 2 inside a CUDA graph: no launch cost is left, the kernels stay small."""
    model = convnet(run.size(128, 4), run.size(24, 4)).to(run.device, memory_format=torch.channels_last).eval()
    images = torch.randn(2, 3, run.size(64, 16), run.size(64, 16), device=run.device)
    images = images.to(memory_format=torch.channels_last)
    with torch.inference_mode():
        for _ in range(3):
            model(images)
        replay = _captured(run, lambda: [model(images) for _ in range(20)])
        for _ in run.steps():
            replay()


def _captured(run: Run, work: Callable[[], object]) -> Callable[[], None]:
    """Return a call that replays this work from a CUDA graph and waits for it; on a CPU, the work itself."""
    if not run.on_gpu:

        def again() -> None:
            work()

        return again
    run.wait()
    stream = torch.cuda.Stream()
    with torch.cuda.stream(stream):
        work()
    run.wait()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        work()

    def replay() -> None:
        graph.replay()
        run.wait()

    return replay


def matmul_tf32(run: Run) -> None:
    """Multiply 8192 × 8192 matrices in TF32."""
    torch.backends.cuda.matmul.allow_tf32 = True
    _multiply(run, torch.float32)


def matmul_fp64(run: Run) -> None:
    """Multiply 8192 × 8192 matrices in fp64, as simulations do."""
    _multiply(run, torch.float64)


def _multiply(run: Run, dtype: torch.dtype) -> None:
    size = run.size(8192, 64)
    a, b = (torch.randn(size, size, device=run.device, dtype=dtype) for _ in range(2))
    out = torch.empty_like(a)
    torch.mm(a, b, out=out)
    run.wait()
    for _ in run.steps():
        for _ in range(4):
            torch.mm(a, b, out=out)
        run.wait()


def tiny_eager(run: Run) -> None:
    """Run elementwise kernels of 1024 elements, launched one by one from Python."""
    x = torch.ones(1024, device=run.device)
    for number in run.steps():
        for _ in range(100):
            x = x * 0.999 + 0.001
        if number % 10 == 0:
            run.wait()


def tiny_graph(run: Run) -> None:
    """Run the same kernels inside a CUDA graph of 2000."""
    x = torch.ones(1024, device=run.device)

    def work() -> None:
        for _ in range(run.size(1000, 10)):
            x.mul_(0.999)
            x.add_(0.001)

    replay = _captured(run, work)
    for _ in run.steps():
        replay()


def item_sync(run: Run) -> None:
    """Train a small network and read its loss and every gradient norm back in each step."""
    layers = [layer for _ in range(24) for layer in (torch.nn.Linear(512, 512), torch.nn.ReLU())]
    model = torch.nn.Sequential(*layers).to(run.device)
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-4)
    x = torch.randn(64, 512, device=run.device)
    total = 0.0
    for _ in run.steps():
        loss = model(x).square().mean()
        loss.backward()
        total += loss.item() + sum(parameter.grad.norm().item() for parameter in model.parameters())
        optimizer.step()
        optimizer.zero_grad(set_to_none=True)
