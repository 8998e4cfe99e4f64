"""The GPU of the twelve programs: a real one with torch, or a scripted one whose power follows what the programs give it to do."""

from __future__ import annotations

import inspect
import os
import tempfile
import time
from pathlib import Path
from typing import Any

STEP = 0.12  # seconds of GPU work of a training step
LAUNCH = 0.06  # seconds that the launches of a step with many small kernels take


class Guilty:
    """Adds up how long the guilty line keeps the GPU waiting, between its first and its last work: `with guilty: …`."""

    def __init__(self, gpu: Any) -> None:
        self._gpu = gpu
        self._start = 0.0
        self.stretches: list[tuple[float, float]] = []

    def __enter__(self) -> None:
        self._start = time.monotonic()

    def __exit__(self, *_: object) -> None:
        self.stretches.append((self._start, time.monotonic()))

    @property
    def seconds(self) -> float:
        """Seconds in which the GPU did nothing meanwhile."""
        first, last = self._gpu.launched[0], self._gpu.launched[-1]
        return float(
            self._gpu.idle([(max(a, first), min(b, last)) for a, b in self.stretches if a < last and b > first])
        )


class Gpu:
    """What both have: training goes on for `seconds`."""

    def __init__(self, seconds: float) -> None:
        self.seconds = seconds
        self.launched: list[float] = []  # when the first and the last step were

    def steps(self) -> Any:
        """Yield the numbers of steps until the time is over."""
        until = time.monotonic() + self.seconds
        self.launched = []
        number = 0
        while time.monotonic() < until:
            yield number
            number += 1

    def note(self) -> None:
        """Keep when a step is launched."""
        self.launched = [*self.launched[:1], time.monotonic()]


def as_library(cls: type) -> type:
    """Let the frames of a class look like those of torch, as the calls that it stands for would."""
    for function in vars(cls).values():
        if inspect.isfunction(function):
            function.__code__ = function.__code__.replace(co_filename="/opt/site-packages/torch/scripted.py")
    return cls


@as_library
class ScriptedTensor:
    """The result of a step: reading it waits for the GPU."""

    def __init__(self, gpu: Any) -> None:
        self.gpu = gpu

    def item(self) -> float:
        self.gpu.synchronize()
        return 0.5

    def tolist(self) -> list[int]:
        self.gpu.synchronize()
        return [at % 7 for at in range(2000)]

    def to(self, _device: str) -> ScriptedTensor:
        time.sleep(0.08)  # a copy from pageable memory
        return self


@as_library
class ScriptedGpu(Gpu):
    """A GPU whose work is a queue of seconds; power, SM activity and utilization of a scripted driver follow it."""

    def __init__(self, seconds: float) -> None:
        from tests.fake_nvml import Scenario, Work

        super().__init__(seconds)
        folder = Path(tempfile.mkdtemp(prefix="gpulse-lines-"))
        self.folder = folder
        self.work = Work(folder)
        scenario = (
            Scenario.load("h200-idle")
            .gpu(
                0,
                power="follows(124 W, 690 W)",
                gpm__sm="follows(0, 96)",
                gpm__graphics="follows(0, 99)",
                gpm__tensor="follows(0, 80)",
                utilization__gpu="follows(0, 100)",
            )
            .process(gpu=0, pid=os.getpid(), memory="8 GiB", sm=60)
        )
        os.environ.update(scenario.write(folder) | self.work.environment)

    def step(self) -> ScriptedTensor:
        self.note()
        self.work.add(time.monotonic(), STEP)
        return ScriptedTensor(self)

    def small_step(self) -> ScriptedTensor:
        time.sleep(LAUNCH)
        return self.step()

    def batch(self) -> ScriptedTensor:
        return ScriptedTensor(self)

    def synchronize(self) -> None:
        time.sleep(max(0.0, self.work.until - time.monotonic() - 0.01))
        while time.monotonic() < self.work.until:
            time.sleep(0)  # as the CUDA runtime spins, so that the next launch is not late

    def idle(self, stretches: list[tuple[float, float]]) -> float:
        return sum(end - start for start, end in stretches) - self.work.seconds(stretches)


class RealGpu(Gpu):
    """A CUDA GPU."""

    def __init__(self, seconds: float) -> None:
        import torch

        super().__init__(seconds)
        self.torch = torch
        self.weight = torch.randn(8192, 8192, device="cuda", dtype=torch.bfloat16) / 90
        self.small = torch.nn.Sequential(*(torch.nn.Linear(64, 64) for _ in range(200))).cuda()
        self.few = torch.randn(64, 64, device="cuda")
        self.count = self.many = 10
        for _ in range(3):
            self.small_step().item()
        self.count = max(1, round(10 * STEP / self._seconds(lambda: self.step().item())))
        self.many = max(1, round(10 * LAUNCH / self._seconds(self.launch)))

    def _seconds(self, step: Any) -> float:
        """Return how long one of ten steps takes."""
        start = time.monotonic()
        for _ in range(10):
            step()
        self.synchronize()
        return (time.monotonic() - start) / 10

    def step(self) -> Any:
        self.note()
        x = self.weight
        for _ in range(self.count):
            x = x @ self.weight
        return x.float().mean(1)[:2000].sum()

    def launch(self) -> Any:
        """Launch many small kernels."""
        x = self.few
        with self.torch.no_grad():
            for _ in range(self.many):
                x = self.small(x)
        return x.sum()

    def small_step(self) -> Any:
        return self.launch() * 0 + self.step()

    def batch(self) -> Any:
        return self.torch.ones(300_000_000)  # 1.2 GB in pageable memory

    def synchronize(self) -> None:
        self.torch.cuda.synchronize()

    def idle(self, stretches: list[tuple[float, float]]) -> float:
        return sum(end - start for start, end in stretches)  # the programs wait for the GPU before their guilty lines


def open_gpu(seconds: float) -> Any:
    """Return the machine's GPU, or a scripted one."""
    try:
        import torch

        if torch.cuda.is_available():
            return RealGpu(seconds)
    except ImportError:
        pass
    return ScriptedGpu(seconds)
