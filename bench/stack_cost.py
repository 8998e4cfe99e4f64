"""What sampling stacks costs: a launch-bound loop with it against without, in turns, and the CPU time of the agent.

    python -m bench.stack_cost [--seconds 120] [--window 0.25] [--keep FILE]

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
from typing import Any


def loop_cost(seconds: float, window: float) -> tuple[list[float], float]:
    """Return speeds with stacks over those without, one ratio for four windows, and microseconds per sample."""
    from gpulse import Monitor

    step = _step()
    ratios: list[float] = []
    with Monitor(source="nvidia") as monitor:
        assert monitor.ledger is not None
        assert monitor._listener is not None
        while monitor.ledger.code is None:
            time.sleep(0.05)
        link, code = monitor._listener.link, monitor.ledger.code
        tick, spent = link.beside, [0, 0.0]

        def timed() -> float:
            start = time.thread_time()
            wait = code.tick()
            if time.thread_time() - start > 1e-5:
                spent[0] += 1
                spent[1] += time.thread_time() - start
            return wait

        allowed = os.sched_getaffinity(0)
        os.sched_setaffinity(0, {max(allowed)})  # this thread only: a loop that moves between cores varies more
        until = time.monotonic() + seconds
        while time.monotonic() < until:
            speeds: dict[bool, float] = {}
            for on in (True, False, False, True):  # ABBA: a drift counts for both
                link.beside = timed if on else None
                speeds[on] = speeds.get(on, 0.0) + _speed(step, window)
            ratios.append(speeds[True] / speeds[False])
        link.beside = tick
        os.sched_setaffinity(0, allowed)
    return ratios, 1e6 * spent[1] / max(1, spent[0])


def interval(ratios: list[float]) -> tuple[float, float]:
    """Return the mean of the middle 80 % of ratios, and half its 95 % interval: other work on the machine makes outliers."""
    ordered = sorted(ratios)
    cut = len(ordered) // 10
    kept = ordered[cut : len(ordered) - cut]
    capped = [ordered[cut]] * cut + kept + [ordered[-1 - cut]] * cut
    return statistics.mean(kept), 1.96 * statistics.stdev(capped) / (0.8 * len(ratios) ** 0.5)


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


def _speed(step: Any, window: float) -> float:
    count, start = 0, time.perf_counter()
    while time.perf_counter() - start < window:
        for _ in range(20):
            step()
        count += 20
    return count / (time.perf_counter() - start)


def _cpu(pid: int | None) -> float:
    with open(f"/proc/{pid}/stat", encoding="ascii") as file:
        fields = file.read().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=120.0)
    parser.add_argument("--window", type=float, default=0.25, help="seconds with, or without, stacks")
    parser.add_argument(
        "--agent", type=float, help="seconds for which the agent is watched, twice (default: a quarter)"
    )
    parser.add_argument("--keep", help="write all ratios as JSON to this file")
    arguments = parser.parse_args()
    seconds = arguments.seconds
    from bench.workloads.code.gpu import open_gpu

    os.environ.setdefault("FAKE_NVML_LATENCY", "h200")
    open_gpu(0.0)
    ratios, each = loop_cost(seconds, arguments.window)
    ratio, half = interval(ratios)
    if arguments.keep:
        with open(arguments.keep, "w", encoding="ascii") as file:
            json.dump(ratios, file)
    print(
        f"launch-bound loop with stacks against without: {ratio:.4f} ± {half:.4f}; {each:.0f} µs of CPU per sample",
        flush=True,
    )
    on, off = agent_cost(arguments.agent or seconds / 4)
    print(f"agent: {on:.2f} % of a core with stacks, {off:.2f} % without: {on - off:+.2f} %")
    return 0


if __name__ == "__main__":
    sys.exit(main())
