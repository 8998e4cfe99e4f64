"""Workloads that wait for their input: preprocessing in the program, in workers, on all cores, or storage."""

from __future__ import annotations

import mmap
import os
import time
from collections.abc import Iterator

import numpy
import torch
from torch.utils.data import DataLoader, IterableDataset

from .models import convnet
from .run import Run, say
from .text import pieces, sample_text, tokenize
from .training import trainer

_CHUNK = 1 << 20


class Images(IterableDataset):  # type: ignore[misc]  # torch is not required for type checks
    """Endless random images that cost about `passes` × 4 ms of CPU each."""

    def __init__(self, side: int, passes: int) -> None:
        self.side, self.passes = side, passes

    def __iter__(self) -> Iterator[torch.Tensor]:
        torch.set_num_threads(1)
        chance = numpy.random.default_rng(os.getpid())
        while True:
            image = chance.integers(0, 255, (self.side, self.side, 3), dtype=numpy.uint8)
            for _ in range(self.passes):
                image = numpy.ascontiguousarray(image[::-1].transpose(1, 0, 2))
                image = numpy.clip(image.astype(numpy.float32) * 1.01 - 0.5, 0, 255).astype(numpy.uint8)
            yield torch.from_numpy(image).permute(2, 0, 1)


def workers_0(run: Run) -> None:
    """Train a vision model with num_workers=0 and costly transforms."""
    _vision(run, 0, passes=3)


def workers_2(run: Run) -> None:
    """The same with num_workers=2."""
    _vision(run, 2, passes=3)


def workers_16(run: Run) -> None:
    """The same with num_workers=16 and transforms that saturate every core."""
    _vision(run, 16, passes=12)


def workers_enough(run: Run) -> None:
    """A loader that keeps up: 8 workers with cheap transforms before a model that takes longer."""
    _vision(run, 8, passes=1, depth=64, batch=64)


def _vision(run: Run, workers: int, passes: int, depth: int = 12, batch: int = 64) -> None:
    torch.set_num_threads(1)
    torch.backends.cudnn.benchmark = True
    dataset = Images(run.size(224, 16), passes)
    workers = workers if run.on_gpu else min(workers, 2)
    loader = DataLoader(dataset, run.size(batch, 2), num_workers=workers, pin_memory=run.on_gpu)
    model = convnet(run.size(256, 4), run.size(depth, 4)).to(run.device, memory_format=torch.channels_last)
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-3)
    batches = iter(loader)

    def step() -> None:
        images = next(batches).to(run.device, non_blocking=True).float().div_(255)
        with torch.autocast(run.device, dtype=torch.bfloat16):
            loss = model(images.contiguous(memory_format=torch.channels_last)).square().mean()
        loss.backward()
        optimizer.step()
        optimizer.zero_grad(set_to_none=True)
        run.wait()

    for _ in range(3):
        step()
    for _ in run.steps():
        step()


def tokenize_main(run: Run) -> None:
    """Train a language model and tokenize each batch in the main thread."""
    text = sample_text()
    vocabulary = pieces(text)
    step = trainer(run, batch=4)
    for _ in run.steps():
        for _ in range(run.size(6, 1)):
            tokenize(text[: run.size(len(text), 200)], vocabulary)
        step()


class Blocks(IterableDataset):  # type: ignore[misc]
    """Endless samples of a file, read past the page cache at random places."""

    def __init__(self, path: str, sample: int) -> None:
        self.path, self.sample = path, sample

    def __iter__(self) -> Iterator[torch.Tensor]:
        chance = numpy.random.default_rng(os.getpid())
        chunks = os.path.getsize(self.path) // _CHUNK
        buffer = mmap.mmap(-1, _CHUNK)
        handle = open_direct(self.path)
        while True:
            for _ in range(self.sample // _CHUNK):
                at = int(chance.integers(0, chunks)) * _CHUNK
                os.preadv(handle, [buffer], at)
                os.posix_fadvise(handle, at, _CHUNK, os.POSIX_FADV_DONTNEED)
            yield torch.frombuffer(bytearray(buffer[:65536]), dtype=torch.uint8).float()


def open_direct(path: str) -> int:
    """Open a file past the page cache where the file system allows it."""
    try:
        handle = os.open(path, os.O_RDONLY | os.O_DIRECT)
        os.preadv(handle, [mmap.mmap(-1, 4096)], 0)
        return handle
    except OSError:
        return os.open(path, os.O_RDONLY)


def storage_bound(run: Run) -> None:
    """Train on samples of 1 GiB that 2 workers read from disk past the page cache."""
    path = os.path.join(run.folder, "samples.bin")
    _fill(path, run.size(4 << 30, 8 << 20), run.share(15.0))
    loader = DataLoader(Blocks(path, run.size(1 << 30, 1 << 20)), 1, num_workers=run.size(2, 1))
    step = trainer(run, batch=4)
    batches = iter(loader)
    next(batches)
    for _ in run.steps():
        next(batches).to(run.device)
        step()
    os.unlink(path)


def _fill(path: str, size: int, most: float) -> None:
    """Write a file of this size, or as much as can be written in `most` seconds."""
    block = os.urandom(_CHUNK) * 16
    start = time.monotonic()
    with open(path, "wb") as file:
        while file.tell() < size and time.monotonic() - start < most:
            file.write(block)
        file.flush()
        os.fsync(file.fileno())
        os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)
        say(event="file", bytes=file.tell(), seconds=time.monotonic() - start)
