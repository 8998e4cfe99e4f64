"""What sampling stacks costs: a launch-bound loop with it against without, in turns, and the CPU time of the agent.

    python -m bench.stack_cost [--seconds 120] [--window 0.5] [--keep FILE]

The loop is small operations of torch (on the GPU where there is one), else Python alone. The driver is the machine's own, or scripted
with the latencies of an H200.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import sys
import time
from bisect import bisect_left
from functools import partial
from itertools import pairwise
from typing import Any

_BATCH = 20  # steps that are timed together
_NEAR = 0.005  # seconds before a sample from which the loop may feel it
_LONG = 0.015  # seconds of the loop around a sample, compared with as many steps before and after


class LoopTimes:
    """A loop of steps: when each batch of them ended, and when stacks were sampled meanwhile."""

    def __init__(self, step: Any) -> None:
        self._step = step
        self.ends: list[float] = []
        self.samples: list[float] = []
        self.cpu = 0.0
        self._on = True
        self._until = 0.0

    def run(self, seconds: float, on: bool) -> float:
        """Run for some seconds, with stacks or without, and return the steps per second."""
        first, start = len(self.ends), time.perf_counter()
        self._on, self._until = on, start + seconds
        while (now := time.perf_counter()) < start + seconds:
            self.ends.append(now)
            for _ in range(_BATCH):
                self._step()
        return _BATCH * (len(self.ends) - first) / (time.perf_counter() - start)

    def timed(self, tick: Any) -> float:
        """Sample the stacks if that is due, and keep when; without stacks, come back when they may be on again."""
        began, start = time.perf_counter(), time.thread_time()
        if not self._on:
            return max(0.001, self._until - began)
        wait: float = tick()
        if (used := time.thread_time() - start) > 1e-5:
            self.samples.append(began)
            self.cpu += used
        return wait

    def lost(self, moments: list[float]) -> list[float]:
        """Return by how many seconds the loop is slower around moments than just before and after them."""
        count = max(2, round(_LONG / statistics.median(b - a for a, b in pairwise(self.ends))))
        found = []
        for moment in moments:
            at = bisect_left(self.ends, moment - _NEAR) - 1
            if count <= at < len(self.ends) - 2 * count:
                a, b, c, d = (self.ends[at + place * count] for place in (-1, 0, 1, 2))
                found.append((c - b) - ((b - a) + (d - c)) / 2)
        return found


def loop_cost(seconds: float, window: float) -> tuple[LoopTimes, list[float]]:
    """Run a loop with and without stacks in turns; return its times, and speeds with over those without, one ratio for four windows."""
    from gpulse import Monitor

    loop, ratios = LoopTimes(_step()), []
    with Monitor(source="nvidia") as monitor:
        assert monitor.ledger is not None
        assert monitor._listener is not None
        while monitor.ledger.code is None:
            time.sleep(0.05)
        link, code = monitor._listener.link, monitor.ledger.code
        tick, link.beside = link.beside, partial(loop.timed, code.tick)
        allowed = os.sched_getaffinity(0)
        os.sched_setaffinity(0, {max(allowed)})  # this thread only: a loop that moves between cores varies more
        loop.run(2.0, on=True)
        until = time.monotonic() + seconds
        while time.monotonic() < until:
            speeds: dict[bool, float] = {}
            for on in (True, False, False, True):  # ABBA: a drift counts for both
                speeds[on] = speeds.get(on, 0.0) + loop.run(window, on)
            ratios.append(speeds[True] / speeds[False])
        link.beside = tick
        os.sched_setaffinity(0, allowed)
    return loop, ratios


def interval(values: list[float]) -> tuple[float, float]:
    """Return the mean of the middle 90 %, and half its 95 % interval: other work on the machine makes outliers."""
    ordered = sorted(values)
    cut = len(ordered) // 20
    kept = ordered[cut : len(ordered) - cut]
    capped = [kept[0]] * cut + kept + [kept[-1]] * cut
    return statistics.mean(kept), 1.96 * statistics.stdev(capped) / (0.9 * len(values) ** 0.5)


def agent_cost(seconds: float) -> tuple[float, float]:
    """Return the CPU time of the agent in per cent of a core, with and without stacks."""
    from gpulse import Monitor

    shares = []
    for stacks in (True, False):
        with Monitor(source="nvidia", stacks=stacks) as monitor:
            time.sleep(3.0)
            start = _cpu(monitor.agent_pid)
            time.sleep(seconds)
            shares.append(100.0 * (_cpu(monitor.agent_pid) - start) / seconds)
    return shares[0], shares[1]


def _step() -> Any:
    try:
        import torch

        device = "cuda" if torch.cuda.is_available() else "cpu"
        x, layer = torch.randn(8, 16, device=device), torch.nn.Linear(16, 16).to(device)
        torch.set_num_threads(1)

        def step() -> None:
            with torch.no_grad():
                layer(x)

        return step
    except ImportError:
        return lambda: sum(range(100))


def _cpu(pid: int | None) -> float:
    with open(f"/proc/{pid}/stat", encoding="ascii") as file:
        fields = file.read().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=120.0)
    parser.add_argument("--window", type=float, default=0.5, help="seconds with, or without, stacks")
    parser.add_argument(
        "--agent", type=float, help="seconds for which the agent is watched, twice (default: a quarter)"
    )
    parser.add_argument("--keep", help="write all ratios as JSON to this file")
    arguments = parser.parse_args()
    seconds = arguments.seconds
    from bench.workloads.code.gpu import open_gpu

    os.environ.setdefault("FAKE_NVML_LATENCY", "h200")
    open_gpu(0.0)
    loop, ratios = loop_cost(seconds, arguments.window)
    each = loop.cpu / max(1, len(loop.samples))
    middles = [(a + b) / 2 for a, b in pairwise(loop.samples) if b - a < 4 * _LONG + 0.1]
    (lost, half), (other, wide) = interval(loop.lost(loop.samples)), interval(loop.lost(middles))
    if arguments.keep:
        with open(arguments.keep, "w", encoding="ascii") as file:
            json.dump({"ratios": ratios, "lost": loop.lost(loop.samples), "middles": loop.lost(middles)}, file)
    ratio, spread = interval(ratios)
    print(f"launch-bound loop with stacks against without, in turns: {ratio:.4f} ± {spread:.4f} ({len(ratios)} turns)")
    share, wide = 10 * (lost - other), 10 * (half**2 + wide**2) ** 0.5
    print(
        f"around {len(loop.samples)} samples: {1e6 * lost:.0f} ± {1e6 * half:.0f} µs lost each, {1e6 * other:.0f} between them"
    )
    print(f"ten per second: {1 - share:.5f} ± {wide:.5f}; {1e6 * each:.0f} µs of CPU per sample", flush=True)
    on, off = agent_cost(arguments.agent or seconds / 4)
    print(f"agent: {on:.2f} % of a core with stacks, {off:.2f} % without: {on - off:+.2f} %")
    return 0


if __name__ == "__main__":
    sys.exit(main())
