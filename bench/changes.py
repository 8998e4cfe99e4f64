"""How soon a live verdict follows the program: python -m bench.changes [NAMES…]; needs a GPU.

Runs workloads one after the other while a sampler feeds the live diagnosis every second, as `top` and `serve` do, and prints when the
verdict became right, in seconds after the workload began its steady work.
"""

from __future__ import annotations

import json
import subprocess
import sys
import threading
import time

from bench.workloads.table import WORKLOADS
from gpulse.analysis.diagnosis.running import LiveDiagnosis
from gpulse.analysis.diagnosis.window import WANTED
from gpulse.sampling.sampler import Sampler
from gpulse.sources.registry import make_source

_SECONDS = 22.0  # that each workload runs


def main(names: list[str]) -> int:
    """Run the workloads and print the delay of the verdict of each."""
    seen: list[tuple[float, str]] = []
    over = threading.Event()
    watcher = threading.Thread(target=_watch, args=(seen, over))
    watcher.start()
    for name in names or ["accumulate", "far_storage"]:
        command = [sys.executable, "-m", "bench.workloads", name, "--seconds", str(_SECONDS)]
        out = subprocess.run(command, capture_output=True, text=True, check=False).stdout
        begun = next((json.loads(line)["time"] for line in out.splitlines() if '"begin"' in line), time.time())
        right = next((at for at, key in seen if at >= begun and key in WORKLOADS[name].verdicts), None)
        told = [f"{at - begun:+.0f} s {key}" for at, key in seen if at >= begun - 2]
        print(name, "never" if right is None else f"right after {right - begun:.1f} s", told, flush=True)
    over.set()
    watcher.join(10)
    return 0


def _watch(seen: list[tuple[float, str]], over: threading.Event) -> None:
    live = LiveDiagnosis()
    sampler = Sampler(make_source("auto"), WANTED).open()
    for snapshot in sampler.stream(1.0):
        if live.add(snapshot) and live.latest.verdicts:
            seen.append((snapshot.time, live.latest[0].key))
        if over.is_set():
            break
    sampler.close()


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
