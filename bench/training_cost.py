"""What a Monitor costs a training step by step: its sampling process is stopped and resumed in turn; needs torch, best with a GPU.

Two loops run, one limited by the GPU (large matrix products), one by launching (small kernels, forward only, one thread). For each
loop several monitors exist at once, all of their processes stopped but one, and windows with each and without any take
turns. Every window is compared with the mean of the two windows without a monitor in the same round. A process that is resumed
takes a complete sample at once, so a window has more of them than its length would give, and "x none" overstates the loss: at
0.1 s about twice the activity reads. "At its interval" is the ratio at the nominal rate for a monitor whose only cost is its
samples: the loss, times the samples that the interval gives, divided by those that were taken.

    python -m bench.training_cost [--seconds 142] [--window 0.18] [--long 0.5] [--loops launch,compute] [--device cuda]
"""

from __future__ import annotations

import argparse
import json
import os
import random
import signal
import statistics
import sys
import time
from contextlib import ExitStack

import gpulse
from gpulse.sinks import CallableSink

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

_LAUNCHES = 400  # per step of the launch-bound loop, about 2 ms: 500 steps per second
_SHARE = {"launch": 0.54, "compute": 0.46}  # of the time for each loop
_NONE = ("none", "none again")


def ignore(*_: object) -> None:
    """Take a sample as a sink and do nothing with it."""


class Watched:
    """One monitor, whose sampling process is stopped except in its own windows."""

    def __init__(self, name: str, interval: float, phases: bool, window: float, source: str | None) -> None:
        self.name = name
        self.window = window
        self.phases = phases
        self.monitor = gpulse.Monitor(CallableSink(ignore), interval=interval, source=source).start()
        self.samples = 0

    def ready(self) -> None:
        """Wait for the first samples, then stop the process."""
        end = time.monotonic() + 20
        while self.monitor.latest is None and time.monotonic() < end:
            time.sleep(0.05)
        time.sleep(0.3)
        self.pid = self.monitor.agent_pid
        assert self.pid is not None, "there is no sampling process"
        os.kill(self.pid, signal.SIGSTOP)

    def resume(self) -> None:
        """Let the process sample."""
        assert self.pid is not None
        self._before = self._count()
        os.kill(self.pid, signal.SIGCONT)

    def pause(self) -> None:
        """Stop the process, and count its samples."""
        assert self.pid is not None
        os.kill(self.pid, signal.SIGSTOP)
        self.samples += self._count() - self._before

    def end(self) -> None:
        """End the process."""
        if self.pid is not None:
            os.kill(self.pid, signal.SIGCONT)
        self.monitor.stop()

    def _count(self) -> int:
        ledger = self.monitor.ledger
        return 0 if ledger is None else ledger._whole.tally.samples


def launch_bound(device: str) -> Callable[[], None]:
    """Return a step of many small kernels."""
    import torch

    x = torch.ones(256, device=device)

    def step() -> None:
        for _ in range(_LAUNCHES):
            x.mul_(0.999)

    return step


def compute_bound(device: str) -> Callable[[], None]:
    """Return a step of about 2 ms that only the GPU limits."""
    import torch

    size = 6144 if device != "cpu" else 256
    kind = torch.bfloat16 if device != "cpu" else torch.float32
    a = torch.randn(size, size, device=device, dtype=kind)
    b, out = torch.randn_like(a), torch.empty_like(a)

    def step() -> None:
        for _ in range(3):
            torch.mm(a, b, out=out)

    return step


def wait_for(device: str) -> Callable[[], None]:
    """Return what waits for the device."""
    import torch

    return torch.cuda.synchronize if device != "cpu" else (lambda: None)


def speed(step: Callable[[], None], sync: Callable[[], None], watched: Watched | None, seconds: float) -> float:
    """Return steps per second of one window; every step is a phase if the monitor wants it."""
    monitor = watched.monitor if watched is not None and watched.phases else None
    sync()
    steps, start = 0, time.perf_counter()
    while time.perf_counter() - start < seconds:
        for _ in range(8):
            if monitor is None:
                step()
            else:
                with monitor.phase("step"):
                    step()
        sync()
        steps += 8
    return steps / (time.perf_counter() - start)


def turns(
    step: Callable[[], None], sync: Callable[[], None], kinds: list[Watched], window: float, until: float
) -> dict[str, list[float]]:
    """Return the speeds of every window, by name, in rounds whose order rotates."""
    names = ["none", *[kind.name for kind in kinds], "none again"]
    by_name = {kind.name: kind for kind in kinds}
    speeds: dict[str, list[float]] = {name: [] for name in names}
    turn = 0
    while time.monotonic() < until:
        order = names[turn % len(names) :] + names[: turn % len(names)]
        found = {}
        for name in order if turn % 2 else order[::-1]:
            kind = by_name.get(name)
            if kind is not None:
                kind.resume()
            found[name] = speed(step, sync, kind, window if kind is None else kind.window)
            if kind is not None:
                kind.pause()
        for name, value in found.items():
            speeds[name].append(value)
        turn += 1
    return speeds


def bounds(ratios: list[float]) -> tuple[float, float]:
    """Return the interval in which the mean of the middle half lies with 95 % confidence, by resampling."""
    chance = random.Random(1)
    found = sorted(middle(chance.choices(ratios, k=len(ratios))) for _ in range(2000))
    return found[50], found[1950]


def middle(ratios: list[float]) -> float:
    """Return the mean without the lowest and highest quarter, which outliers do not move."""
    ordered = sorted(ratios)
    quarter = len(ordered) // 4
    return statistics.fmean(ordered[quarter : len(ordered) - quarter])


def rows(speeds: dict[str, list[float]], kinds: list[Watched]) -> list[str]:
    """Return the Markdown rows of one loop."""
    base = [(one + other) / 2 for one, other in zip(speeds["none"], speeds["none again"], strict=True)]
    by_name = {kind.name: kind for kind in kinds}
    lines = []
    for name, values in speeds.items():
        held = speeds[_NONE[name == "none"]] if name in _NONE else base
        ratios = [value / other for value, other in zip(values, held, strict=True)]
        low, high = bounds(ratios)
        kind = by_name.get(name)
        extra = "|  |  |"
        if kind is not None and kind.samples:
            taken = kind.samples / len(values)
            share = kind.window / kind.monitor.interval / taken
            nominal = [1 - (1 - ratio) * share for ratio in (middle(ratios), low, high)]
            at_interval = "" if kind.phases else f"{nominal[0]:.4f} ({nominal[1]:.4f}–{nominal[2]:.4f})"
            extra = f"| {taken:.1f} | {at_interval} |"
        lines.append(
            f"| {name} | {statistics.median(values):.1f} | {middle(ratios):.4f} | {low:.4f}–{high:.4f} {extra}"
        )
    return lines


def parsed() -> argparse.Namespace:
    """Return the arguments."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seconds", type=float, default=142.0, help="time for everything (default: 142)")
    parser.add_argument("--window", type=float, default=0.18, help="length of a window in seconds (default: 0.18)")
    parser.add_argument("--long", type=float, default=0.5, help="the same for samples every 0.1 s (default: 0.5)")
    parser.add_argument("--loops", default="launch,compute", help="which loops to run (default: launch,compute)")
    parser.add_argument("--device", default="cuda", help="torch device (default: cuda)")
    parser.add_argument("--source", default=None, help="source of the monitors (default: as for Monitor)")
    parser.add_argument("--out", default="", help="file for the table and all speeds")
    return parser.parse_args()


def one_loop(name: str, arguments: argparse.Namespace, until: float) -> tuple[list[str], dict[str, list[float]]]:
    """Run one loop and return its table and speeds."""
    step, sync = {"launch": launch_bound, "compute": compute_bound}[name](arguments.device), wait_for(arguments.device)
    with ExitStack() as stack:
        kinds = []
        plans = [("`Monitor(interval=0.1)`", 0.1, False), ("`Monitor()`", 1.0, False)]
        if name == "launch":
            plans.append(("`Monitor()`, every step a phase", 1.0, True))
        for title, interval, phases in plans:
            length = arguments.long if interval < 1 else arguments.window
            kinds.append(Watched(title, interval, phases, length, arguments.source))
            stack.callback(kinds[-1].end)
        for _ in range(50):
            step()
        for kind in kinds:
            kind.ready()
        speeds = turns(step, sync, kinds, arguments.window, until)
    count = len(speeds["none"])
    columns = ("steps/s", "x none", "95 %", "samples per window", "at its interval (95 %)")
    head = [f"| {name}-bound, {count} windows each | {' | '.join(columns)} |", "| --- | --- | --- | --- | --- | --- |"]
    return head + rows(speeds, kinds), speeds


def main() -> int:
    """Print one table per loop."""
    arguments = parsed()
    os.environ.setdefault("OMP_NUM_THREADS", "1")
    if (os.cpu_count() or 1) > 8:
        os.sched_setaffinity(
            0, {2, 3, 4, 5}
        )  # a loop that moves between all CPUs varies more; the agents use all of them
    loops = arguments.loops.split(",")
    whole = sum(_SHARE[name] for name in loops)
    found: dict[str, dict[str, list[float]]] = {}
    text = ""
    for name in loops:
        until = time.monotonic() + arguments.seconds * _SHARE[name] / whole
        table, found[name] = one_loop(name, arguments, until)
        text += "\n".join(table) + "\n\n"
        print("\n".join(table) + "\n", flush=True)
    if arguments.out:
        with open(arguments.out, "w", encoding="utf-8") as file:
            file.write(text + json.dumps(found) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
