"""Programs people really write: loaders, tokenizing, metrics, checkpoints, logging, far storage, queues, simulators."""

from __future__ import annotations

import os
import pickle
import queue
import random
import socket
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor

import numpy
import torch
from torch import multiprocessing
from torch.utils.data import DataLoader, Dataset

from .inputs import open_direct
from .models import convnet
from .run import Run
from .text import pieces, sample_text, tokenize
from .training import busy, trainer


def python_metric(run: Run) -> None:
    """Compute a metric in plain Python after each step."""
    step = trainer(run, batch=8)
    words = [random.random() for _ in range(run.size(60_000, 100))]
    for _ in run.steps():
        step()
        sorted(words, key=lambda value: value * 3 % 1)
        sum(value * value for value in words)


def print_each_step(run: Run) -> None:
    """Read the loss and format a long line for it in each step of a small model."""
    model = torch.nn.Sequential(*(torch.nn.Linear(1024, 1024) for _ in range(8))).to(run.device)
    x = torch.randn(32, 1024, device=run.device)
    kept = []
    for number in run.steps():
        loss = model(x).square().mean()
        loss.backward()
        kept.append(
            " ".join(f"{name}={parameter.grad.norm().item():.6f}" for name, parameter in model.named_parameters())
        )
        kept = kept[-10:] if number % 100 else []


def string_building(run: Run) -> None:
    """Build and parse JSON-like text for each batch in the training thread."""
    import json

    step = trainer(run, batch=4)
    row = {"text": sample_text()[:2000], "numbers": list(range(200))}
    for _ in run.steps():
        for _ in range(run.size(300, 2)):
            json.loads(json.dumps(row))
        step()


class Pictures(Dataset):  # type: ignore[misc]
    """Random images that cost CPU time, or only time, each."""

    def __init__(self, side: int, passes: int, sleep: float = 0.0) -> None:
        self.side, self.passes, self.sleep = side, passes, sleep

    def __len__(self) -> int:
        return 1 << 20

    def __getitem__(self, at: int) -> torch.Tensor:
        torch.set_num_threads(1)
        if self.sleep:
            time.sleep(self.sleep)
        image = numpy.random.default_rng(at).integers(0, 255, (self.side, self.side, 3), dtype=numpy.uint8)
        for _ in range(self.passes):
            image = numpy.clip(image[::-1].transpose(1, 0, 2).astype(numpy.float32) * 1.01 - 0.5, 0, 255).astype(
                numpy.uint8
            )
        return torch.from_numpy(numpy.ascontiguousarray(image)).permute(2, 0, 1)


def _vision(run: Run, workers: int, passes: int, batch: int, sleep: float = 0.0) -> None:
    torch.backends.cudnn.benchmark = True
    loader = DataLoader(
        Pictures(run.size(224, 16), passes, sleep), run.size(batch, 2), num_workers=workers if run.on_gpu else 0
    )
    model = convnet(run.size(192, 4), run.size(12, 4)).to(run.device, memory_format=torch.channels_last)
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-3)
    batches: Iterator[torch.Tensor] = iter(loader)

    def step() -> None:
        images = next(batches).to(run.device).float().div_(255).contiguous(memory_format=torch.channels_last)
        with torch.autocast(run.device, dtype=torch.bfloat16):
            loss = model(images).square().mean()
        loss.backward()
        optimizer.step()
        optimizer.zero_grad(set_to_none=True)

    for _ in range(2):
        step()
    for _ in run.steps():
        step()


def loader_0(run: Run) -> None:
    """Map-style dataset, num_workers=0."""
    _vision(run, 0, 2, 32)


def loader_1(run: Run) -> None:
    """One worker that is always behind."""
    _vision(run, 1, 3, 32)


def loader_4(run: Run) -> None:
    """Four workers, each at 100 % of a core."""
    _vision(run, 4, 4, 32)


def loader_sleep_0(run: Run) -> None:
    """Each sample waits for far storage in the training thread."""
    _vision(run, 0, 0, 16, 0.01)


def loader_sleep_4(run: Run) -> None:
    """Four workers that wait for far storage."""
    _vision(run, 4, 0, 16, 0.04)


def thread_pool(run: Run) -> None:
    """Six threads of the program prepare batches; numpy releases the lock."""
    step = trainer(run, batch=2)

    def prepare(seed: int) -> float:
        chance = numpy.random.default_rng(seed)
        return float(numpy.sort(chance.random(run.size(3_000_000, 100)))[0])

    with ThreadPoolExecutor(6) as pool:
        waiting = [pool.submit(prepare, seed) for seed in range(12)]
        for number in run.steps():
            waiting.pop(0).result()
            waiting.append(pool.submit(prepare, number))
            step()


def tokenize_collate(run: Run) -> None:
    """Tokenize in collate_fn without workers."""
    text = sample_text()
    vocabulary = pieces(text)
    step = trainer(run, batch=8)
    rows = [text[at : at + run.size(60_000, 100)] for at in range(8)]
    loader = DataLoader(range(1 << 20), 1, collate_fn=lambda chosen: tokenize(rows[chosen[0] % 8], vocabulary))
    batches = iter(loader)
    for _ in run.steps():
        next(batches)
        step()


def far_storage(run: Run) -> None:
    """Wait 0.3 s for each batch, as a slow object store makes a program wait."""
    step = trainer(run, batch=8)
    for _ in run.steps():
        time.sleep(run.share(0.3, 0.01))
        step()


def slow_producer(run: Run) -> None:
    """Wait at a queue that another thread fills too slowly."""
    step = trainer(run, batch=8)
    line: queue.Queue[int] = queue.Queue(2)

    def produce() -> None:
        for number in range(1 << 20):
            time.sleep(run.share(0.25, 0.01))
            line.put(number)

    threading.Thread(target=produce, daemon=True).start()
    for _ in run.steps():
        line.get()
        step()


def remote_batches(run: Run) -> None:
    """Receive batches from another process over a socket that is slow to answer."""
    step = trainer(run, batch=8)
    ours, theirs = socket.socketpair()

    def answer() -> None:
        while theirs.recv(1):
            time.sleep(run.share(0.25, 0.01))
            theirs.sendall(b"x" * 65536)

    threading.Thread(target=answer, daemon=True).start()
    for _ in run.steps():
        ours.sendall(b"?")
        left = 65536
        while left:
            left -= len(ours.recv(left))
        step()
    ours.close()


def read_disk(run: Run) -> None:
    """Read each batch from disk past the page cache, in the training thread."""
    import mmap

    path = os.path.join(run.folder, "batches.bin")
    block = os.urandom(1 << 20)
    with open(path, "wb") as file:
        for _ in range(run.size(2048, 4)):
            file.write(block)
        file.flush()
        os.fsync(file.fileno())
    handle, buffer = open_direct(path), mmap.mmap(-1, 1 << 20)
    step = trainer(run, batch=2)
    chunks = os.path.getsize(path) >> 20
    for _ in run.steps():
        for _ in range(run.size(400, 2)):
            os.preadv(handle, [buffer], random.randrange(chunks) << 20)
        step()
    os.close(handle)


def save_torch(run: Run) -> None:
    """Train 3 s, then torch.save 3 GiB; over and over."""
    path = os.path.join(run.folder, "model.pt")
    _saves(run, lambda state: torch.save(state, path), run.size(3 << 28, 64))


def save_pickle(run: Run) -> None:
    """Train 3 s, then pickle the weights into memory on one core; over and over."""

    def save(state: dict[str, torch.Tensor]) -> None:
        pickle.dumps({name: value.cpu().numpy().tolist()[: 1 << 21] for name, value in state.items()})

    _saves(run, save, run.size(1 << 23, 64))


def _saves(run: Run, save: Callable[[dict[str, torch.Tensor]], object], numbers: int) -> None:
    step = trainer(run)
    state = {"weights": torch.ones(numbers, device=run.device)}
    for _ in run.steps():
        busy(step, run.share(3.0))
        save(state)


def validate_python(run: Run) -> None:
    """Train 4 s, then compute metrics in plain Python for 1.8 s; over and over."""
    step = trainer(run)
    values = [random.random() for _ in range(10_000)]
    for _ in run.steps():
        busy(step, run.share(4.2))
        end = time.monotonic() + run.share(1.8)
        while time.monotonic() < end:
            sorted(values)


def reinforcement(run: Run) -> None:
    """Ask a small policy on the GPU for each action of a simulator written in Python."""
    policy = torch.nn.Sequential(torch.nn.Linear(64, 256), torch.nn.Tanh(), torch.nn.Linear(256, 4)).to(run.device)
    state = [0.1] * 64
    with torch.inference_mode():
        for _ in run.steps():
            action = int(policy(torch.tensor(state, device=run.device)).argmax())
            for _ in range(run.size(40, 1)):
                state = [(value * 1.01 + action * 0.001) % 1.0 for value in state]


def big_simulator(run: Run) -> None:
    """Simulate for 0.2 s in Python, then train on what was collected for 0.15 s."""
    step = trainer(run, batch=8)
    state = [0.1] * 256
    for _ in run.steps():
        end = time.monotonic() + run.share(0.2, 0.01)
        while time.monotonic() < end:
            state = [(value * 1.01 + 0.001) % 1.0 for value in state]
        step()


def producer_process(run: Run) -> None:
    """One other process prepares batches at 100 % of a core and hands them over in a queue."""
    context = multiprocessing.get_context("spawn")
    line = context.Queue(2)
    process = context.Process(target=_produce, args=(line, run.size(1_500_000, 100)), daemon=True)
    process.start()
    line.get()
    step = trainer(run, batch=4)
    for _ in run.steps():
        line.get()
        step()
    process.kill()


def _produce(line: queue.Queue[float], size: int) -> None:
    values = [random.random() for _ in range(size)]
    while True:
        line.put(sum(sorted(values)[:10]))


def warm_up(run: Run) -> None:
    """Import, make a context, and compute on the CPU for long before the first steady work."""
    torch.zeros(1, device=run.device)
    values = [random.random() for _ in range(100_000)]
    for _ in run.steps():
        sorted(values)


def load_weights(run: Run) -> None:
    """Copy weights to the GPU tensor by tensor, as a model that is loaded does."""
    kept: list[torch.Tensor] = []
    block = torch.ones(run.size(64 << 20, 64))
    for _ in run.steps():
        if len(kept) < run.size(480, 4):
            kept.append(block.clone().to(run.device))
        else:
            time.sleep(0.05)


def slow_epoch_leak(run: Run) -> None:
    """Keep a tensor of 1 GiB every 2 s of healthy training."""
    step = trainer(run)
    kept = []
    for _ in run.steps():
        busy(step, run.share(2.0))
        kept.append(torch.ones(run.size(1 << 28, 64), device=run.device))


def growing_cache(run: Run) -> None:
    """Train on sequences that become longer, so that the allocator's cache grows quickly, then not at all."""
    model = torch.nn.Sequential(*(torch.nn.Linear(4096, 4096) for _ in range(8))).to(run.device, dtype=torch.bfloat16)
    for number in run.steps():
        rows = min(1024 * (number // 4 + 1), run.size(65536, 64))
        with torch.no_grad():
            model(torch.ones(rows, 4096, device=run.device, dtype=torch.bfloat16))
        run.wait()


def accumulate(run: Run) -> None:
    """Healthy training with a metric on the GPU and one value read back every 50 steps."""
    step = trainer(run, batch=12)
    total = torch.zeros((), device=run.device)
    for number in run.steps():
        step()
        total += 1
        if number % 50 == 0:
            float(total)


def attention_long(run: Run) -> None:
    """Attention over 8192 tokens in bf16."""
    shape = (2, 16, run.size(8192, 8), 128)
    q, k, v = (
        torch.randn(shape, device=run.device, dtype=torch.bfloat16 if run.on_gpu else torch.float32) for _ in range(3)
    )
    for _ in run.steps():
        for _ in range(8):
            torch.nn.functional.scaled_dot_product_attention(q, k, v, is_causal=True)
        run.wait()


def softmax_rows(run: Run) -> None:
    """Layer norm and softmax over large tensors."""
    x = torch.randn(run.size(65536, 8), run.size(4096, 8), device=run.device)
    for _ in run.steps():
        y = torch.softmax(torch.nn.functional.layer_norm(x, x.shape[1:]), -1)
        x.copy_(y).add_(0.1)
        run.wait()


def small_mlp(run: Run) -> None:
    """A small network on tabular data, batch 256, with the default optimizer."""
    model = torch.nn.Sequential(
        torch.nn.Linear(128, 256), torch.nn.ReLU(), torch.nn.Linear(256, 256), torch.nn.ReLU(), torch.nn.Linear(256, 1)
    ).to(run.device)
    optimizer = torch.optim.Adam(model.parameters(), foreach=False)
    x, y = torch.randn(256, 128, device=run.device), torch.randn(256, 1, device=run.device)
    for _ in run.steps():
        loss = (model(x) - y).square().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()


def offload_pinned(run: Run) -> None:
    """Stream the weights of each layer from pinned memory, one layer after the other."""
    _offload(run, pinned=True)


def offload_pageable(run: Run) -> None:
    """The same from ordinary memory."""
    _offload(run, pinned=False)


def _offload(run: Run, *, pinned: bool) -> None:
    side = run.size(8192, 32)
    layers = [torch.randn(side, side, dtype=torch.bfloat16 if run.on_gpu else torch.float32) for _ in range(4)]
    layers = [layer.pin_memory() if pinned and run.on_gpu else layer for layer in layers]
    x = torch.randn(64, side, device=run.device, dtype=layers[0].dtype)
    for _ in run.steps():
        for layer in layers:
            x = torch.tanh(x @ layer.to(run.device, non_blocking=True))
        run.wait()


def results_to_host(run: Run) -> None:
    """Copy 200 MB of results to ordinary memory after each step."""
    step = trainer(run, batch=2)
    results = torch.randn(run.size(50_000_000, 64), device=run.device)
    for _ in run.steps():
        step()
        results.cpu()
        results.cpu()


def api_server(run: Run) -> None:
    """Answer a request of 0.1 s every 1.5 s."""
    step = trainer(run, batch=8)
    for _ in run.steps():
        step()
        time.sleep(run.share(1.4, 0.01))


def fp32_conv(run: Run) -> None:
    """Train a convnet in fp32 with TF32 off."""
    torch.backends.cudnn.allow_tf32 = False
    torch.backends.cudnn.benchmark = True
    model = convnet(run.size(256, 4), run.size(12, 4)).to(run.device)
    x = torch.randn(run.size(64, 2), 3, run.size(128, 16), run.size(128, 16), device=run.device)
    for _ in run.steps():
        model(x).square().mean().backward()
        run.wait()


def decode_small_eager(run: Run) -> None:
    """Generate token by token with a small model, eagerly."""
    from .serving import decoder

    with torch.inference_mode():
        generate = decoder(run, 1, 24, 1024)
        for _ in run.steps():
            generate(run.size(16, 2))


def cpu_beside(run: Run) -> None:
    """A model that stayed on the CPU by mistake, while its context holds the GPU."""
    kept = torch.ones(run.size(1 << 28, 64), device=run.device)
    torch.set_num_threads(1)
    a = torch.randn(run.size(1024, 8), run.size(1024, 8))
    for _ in run.steps():
        a = torch.tanh(a @ a)
    kept.zero_()
