"""What watching costs a training: steps a second with each kind of watcher beside none, interleaved; needs a GPU and torch.

Two loops: one limited by the GPU (large products of matrices), one by Python (24 small layers, forward, backward, SGD). Every
round runs all watchers once, in an order that rotates, and each is held against the mean of the round's two runs without any.
"""

from __future__ import annotations

import contextlib
import os
import random
import shutil
import signal
import statistics
import subprocess
import sys
import time

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    Watcher = Callable[[], contextlib.AbstractContextManager[Callable[[], None]]]

ROUNDS = int(os.environ.get("ROUNDS", "12"))
SECONDS = float(os.environ.get("SECONDS", "3"))
PAIRS = int(os.environ.get("PAIRS", "60"))
_OTHER = {"none": "none again", "none again": "none"}  # what each run without a watcher is held against
SETTLE = 0.6  # seconds at the start of a run that do not count: a watcher starts within them


def nothing() -> None:
    """Do nothing after a step."""


@contextlib.contextmanager
def alone() -> Iterator[Callable[[], None]]:
    """No watcher."""
    yield nothing


@contextlib.contextmanager
def in_process() -> Iterator[Callable[[], None]]:
    """gpulse.Monitor with all defaults, 1 Hz, its steps counted."""
    import gpulse

    with gpulse.Monitor() as monitor:
        yield monitor.step


@contextlib.contextmanager
def in_thread() -> Iterator[Callable[[], None]]:
    """The same in a thread of the program."""
    import gpulse

    with gpulse.Monitor(mode="thread") as monitor:
        yield monitor.step


@contextlib.contextmanager
def nvitop() -> Iterator[Callable[[], None]]:
    """nvitop's collector at 1 Hz, in its thread."""
    from nvitop import Device, ResourceMetricCollector

    go_on = [True]
    collector = ResourceMetricCollector(devices=Device.all(), interval=1.0)
    thread = collector.daemonize(lambda metrics: go_on[0], interval=1.0)
    yield nothing
    go_on[0] = False
    if hasattr(thread, "join"):
        thread.join(2.0)


@contextlib.contextmanager
def smi() -> Iterator[Callable[[], None]]:
    """nvidia-smi once a step."""
    command = ["nvidia-smi", "--query-gpu=utilization.gpu,memory.used", "--format=csv,noheader"]

    def ask() -> None:
        subprocess.run(command, capture_output=True, check=False)

    yield ask


def compute_bound() -> Callable[[], None]:
    """Return a step of about 10 ms that only the GPU limits."""
    import torch

    a = torch.randn(8192, 8192, device="cuda", dtype=torch.bfloat16)
    b = torch.randn(8192, 8192, device="cuda", dtype=torch.bfloat16)
    out = torch.empty_like(a)

    def step() -> None:
        for _ in range(6):
            torch.mm(a, b, out=out)
        torch.cuda.synchronize()

    return step


def launch_bound() -> Callable[[], None]:
    """Return a step that only Python limits: 24 small layers."""
    import torch

    model = torch.nn.Sequential(*(torch.nn.Sequential(torch.nn.Linear(128, 128), torch.nn.ReLU()) for _ in range(24)))
    model.to("cuda")
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-4)
    x = torch.randn(32, 128, device="cuda")

    def step() -> None:
        optimizer.zero_grad(set_to_none=True)
        model(x).square().mean().backward()
        optimizer.step()

    return step


def run(step: Callable[[], None], after: Callable[[], None], seconds: float) -> float:
    """Return the steps per second over a period, in seconds."""
    import torch

    steps, start = 0, time.perf_counter()
    while time.perf_counter() - start < seconds:
        step()
        after()
        steps += 1
    torch.cuda.synchronize()
    return steps / (time.perf_counter() - start)


def speed(step: Callable[[], None], watcher: Watcher) -> float:
    """Return steps a second beside a watcher."""
    with watcher() as after:
        run(step, after, SETTLE)
        return run(step, after, SECONDS)


def interval(ratios: list[float]) -> tuple[float, float]:
    """Return the bounds within which the median lies with 95 % confidence, by resampling."""
    chance = random.Random(1)
    medians = sorted(statistics.median(chance.choices(ratios, k=len(ratios))) for _ in range(4000))
    return medians[100], medians[3900]


def compare(step: Callable[[], None], watchers: dict[str, Watcher]) -> list[str]:
    """Return the Markdown rows of one loop."""
    speeds: dict[str, list[float]] = {name: [] for name in watchers}
    ratios: dict[str, list[float]] = {name: [] for name in watchers}
    names = list(watchers)
    for turn in range(ROUNDS):
        order = names[turn % len(names) :] + names[: turn % len(names)]
        found = {name: speed(step, watchers[name]) for name in order}
        base = (found["none"] + found["none again"]) / 2
        for name, value in found.items():
            speeds[name].append(value)
            ratios[name].append(value / (found[_OTHER[name]] if name in _OTHER else base))
    rows = []
    for name in names:
        low, high = interval(ratios[name])
        rows.append(
            f"| {name} | {statistics.median(speeds[name]):.1f} | {statistics.median(ratios[name]):.4f} | "
            f"{low:.4f}–{high:.4f} |"
        )
    return rows


def paired(step: Callable[[], None]) -> str:
    """Return the row of the finest comparison: second by second, with the sampler's process stopped and let go in turn."""
    import gpulse

    ratios, speeds = [], []
    with gpulse.Monitor() as monitor:
        run(step, monitor.step, 2.0)
        pid = monitor.agent_pid
        assert pid is not None
        for turn in range(PAIRS):
            found = {}
            for watched in (True, False) if turn % 2 else (False, True):
                os.kill(pid, signal.SIGCONT if watched else signal.SIGSTOP)
                found[watched] = run(step, monitor.step, 1.0)
            os.kill(pid, signal.SIGCONT)
            speeds.append(found[True])
            ratios.append(found[True] / found[False])
    low, high = interval(ratios)
    name = f"`gpulse.Monitor()`, {PAIRS} pairs of seconds"
    return f"| {name} | {statistics.median(speeds):.1f} | {statistics.median(ratios):.4f} | {low:.4f}–{high:.4f} |"


def main() -> int:
    """Print one table a loop; LOOPS=gpu or LOOPS=python for only one of them."""
    # a loop that Python limits varies by a tenth from second to second when it wanders over the processors
    os.sched_setaffinity(0, sorted(os.sched_getaffinity(0))[:4])
    watchers: dict[str, Watcher] = {
        "none": alone,
        "`gpulse.Monitor()`": in_process,
        "`gpulse.Monitor(mode=\"thread\")`": in_thread,
        "none again": alone,
    }  # fmt: skip
    try:
        import nvitop as _

        watchers["nvitop's collector"] = nvitop
    except ImportError:
        print("nvitop is not installed", file=sys.stderr)
    if shutil.which("nvidia-smi"):
        watchers["nvidia-smi each step"] = smi
    loops = {
        "gpu": ("limited by the GPU", compute_bound),
        "python": ("limited by Python, 24 small layers", launch_bound),
    }
    for title, make in (loops[name] for name in os.environ.get("LOOPS", "gpu,python").split(",")):
        step = make()
        for _ in range(20):
            step()
        print(f"\n| {title}, {ROUNDS} rounds of {SECONDS:g} s | steps/s | x none, median | 95 % |")
        print("| --- | --- | --- | --- |", flush=True)
        print(paired(step), flush=True)
        print("\n".join(compare(step, watchers)), flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
