"""2,000 idle connections to `gpulse serve` that may open 1,024 files: how long `/healthz` takes, and what samples lack.

python -m bench.crowd
"""

from __future__ import annotations

import os
import resource
import socket
import sys
import time
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from bench.machine import machine
from tests.e2e.serving import Serving, plain_environment

CROWD = 2000
ROUNDS = 30


def main() -> int:
    """Print the figures with no connections and with the crowd."""
    hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    resource.setrlimit(resource.RLIMIT_NOFILE, (min(hard, 8192), hard))
    with TemporaryDirectory() as place, machine("dgx-h100x8", 8, 24) as scripted:
        folder = Path(place)
        driver = {key: text for key, text in scripted.items() if key.startswith(("FAKE_NVML_", "LD_LIBRARY_PATH"))}
        with Serving(folder, environ=plain_environment(folder, **driver), source="", files=1024) as server:
            server.until("/readyz", 200)
            time.sleep(2.5)  # rates need two samples
            measure("no connections", server)
            crowd: list[socket.socket] = []
            try:
                crowd.extend(server.connect() for _ in range(CROWD))
                measure(f"{CROWD} idle connections", server)
            finally:
                for client in crowd:
                    client.close()
            print(f"stderr: {len(server.err.splitlines())} lines, Traceback: {'Traceback' in server.err}")
    return 0


def measure(name: str, server: Serving) -> None:
    """Ask for health again and again, and look at what the samples of that time hold."""
    times = []
    files = 0
    missing: set[str] = set()
    for _ in range(ROUNDS):
        start = time.perf_counter()
        status = server.get("/healthz")[0]
        times.append(1000 * (time.perf_counter() - start))
        if status != 200:
            missing.add(f"/healthz {status}")
        missing |= lacking(server.json("/api/snapshot"))
        files = max(files, len(os.listdir(f"/proc/{server.pid}/fd")))
        time.sleep(0.2)  # all of it within 10 s: idle connections are closed then
    times.sort()
    print(
        f"{name}: /healthz median {times[ROUNDS // 2]:.1f} ms, most {times[-1]:.1f} ms of {ROUNDS}; "
        f"at most {files} descriptors; missing: {', '.join(sorted(missing)) or 'nothing'}",
        flush=True,
    )


def lacking(plain: dict[str, Any]) -> set[str]:
    """Return the values of the host, the GPUs and the processes that a sample should have and has not."""
    found = {f"error: {error['message']}" for error in plain["errors"]}
    found |= {f"host {key}" for key in ("cpu_percent", "memory_used", "load") if plain["host"].get(key) is None}
    for gpu in plain["gpus"]:
        found |= {f"GPU {key}" for key in ("utilization", "memory_used", "power_draw") if gpu.get(key) is None}
        found |= set() if gpu["processes"] else {"processes"}
        for process in gpu["processes"]:
            found |= {f"process {key}" for key in ("user", "name", "host_memory") if process.get(key) is None}
    return found


if __name__ == "__main__":
    sys.exit(main())
