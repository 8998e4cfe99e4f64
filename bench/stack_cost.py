"""What sampling stacks costs: a launch-bound loop with it against without, in turns, and the CPU time of the agent.

    python -m bench.stack_cost [--seconds 120]

The loop is small operations of torch (on the GPU where there is one), else Python alone. The driver is the machine's own, or scripted
with the latencies of an H200.
"""

from __future__ import annotations

import argparse
import os
import statistics
import sys
import time
from typing import Any

_WINDOW = 0.25  # seconds with, or without


def loop_cost(seconds: float) -> tuple[float, float, float]:
    """Return the speed with stacks over that without, half its 95 % interval, and microseconds per sample."""
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

        until = time.monotonic() + seconds
        while time.monotonic() < until:
            speeds: dict[bool, float] = {}
            for on in (True, False, False, True):  # ABBA: a drift counts for both
                link.beside = timed if on else None
                speeds[on] = speeds.get(on, 0.0) + _speed(step)
            ratios.append(speeds[True] / speeds[False])
        link.beside = tick
    half = 1.96 * statistics.stdev(ratios) / len(ratios) ** 0.5
    return statistics.mean(ratios), half, 1e6 * spent[1] / max(1, spent[0])


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


def _speed(step: Any) -> float:
    count, start = 0, time.perf_counter()
    while time.perf_counter() - start < _WINDOW:
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
    seconds = parser.parse_args().seconds
    from bench.workloads.code.gpu import open_gpu

    os.environ.setdefault("FAKE_NVML_LATENCY", "h200")
    open_gpu(0.0)
    ratio, half, each = loop_cost(seconds)
    print(f"launch-bound loop with stacks against without: {ratio:.4f} ± {half:.4f}; {each:.0f} µs of CPU per sample")
    on, off = agent_cost(seconds / 4)
    print(f"agent: {on:.2f} % of a core with stacks, {off:.2f} % without: {on - off:+.2f} %")
    return 0


if __name__ == "__main__":
    sys.exit(main())
