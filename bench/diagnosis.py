"""What a diagnosis costs: 60 s of 8 GPUs judged at once, and the share of a core that live verdicts take at 1 Hz.

python -m bench.diagnosis
"""

from __future__ import annotations

import time

from gpulse.analysis.diagnosis.judge import diagnose
from gpulse.analysis.diagnosis.running import LiveDiagnosis
from gpulse.analysis.diagnosis.window import WANTED
from gpulse.model.snapshot import Snapshot
from gpulse.sampling.sampler import Sampler
from gpulse.sources.simulated.source import SimulatedSource

SECONDS = 60
ROUNDS = 10


def samples(seconds: int = SECONDS) -> list[Snapshot]:
    """Return that many seconds of the demo machine at 1 Hz, without waiting for them."""
    now = [0.0]
    sampler = Sampler(SimulatedSource(clock=lambda: now[0]), WANTED).open()
    found = []
    for second in range(seconds):
        now[0] = float(second)
        one = sampler.read()
        found.append(Snapshot(1e9 + second, one.gpus, one.host, one.driver, one.problems))
    sampler.close()
    return found


def batch(snapshots: list[Snapshot]) -> float:
    """Return the CPU seconds of one judgement of all snapshots, the best of several."""
    best = float("inf")
    for _ in range(ROUNDS):
        start = time.process_time()
        diagnose(snapshots)
        best = min(best, time.process_time() - start)
    return best


def live(snapshots: list[Snapshot]) -> float:
    """Return the share of a core that live verdicts take over these snapshots."""
    best = float("inf")
    for _ in range(ROUNDS // 2):
        judge = LiveDiagnosis()
        start = time.process_time()
        for snapshot in snapshots:
            judge.add(snapshot)
        best = min(best, time.process_time() - start)
    return best / len(snapshots)


def main() -> None:
    """Print both figures beside their targets."""
    minute = samples()
    print(f"60 s of 8 GPUs at 1 Hz: {1000 * batch(minute):6.1f} ms   (target: under 50 ms)")
    print(f"live, 8 GPUs at 1 Hz:   {100 * live(samples(300)):6.3f} % of a core   (target: under 0.1 %)")


if __name__ == "__main__":
    main()
