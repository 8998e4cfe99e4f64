"""Asking model servers: CPU of the thread that asks 8 of them once a second, and how far off tokens per joule are.

`python -m bench.serving` prints a table. The servers run in a process of their own, and answer as vLLM does with 40 KB.
"""

from __future__ import annotations

import multiprocessing
import sys
import threading
import time
from multiprocessing.connection import Connection

SERVERS = 8
SECONDS = 20
TOKENS = 1234.5  # per second and server
WATTS = 400.0


def body(start: float) -> bytes:
    """Return an answer of the size that vLLM's has: most of it is histograms and series that nobody asks for."""
    from tests.unit.serving import answers

    text = answers.vllm(generated=TOKENS * (time.monotonic() - start))
    bounds = [str(2.0**power) for power in range(-10, 9)] + ["+Inf"]
    others = [f"vllm:other_{number}_seconds" for number in range(18)]
    return (
        text
        + "".join(answers.histogram(name, 'model_name="acme/tiny-7b"', range(20), bounds) + "\n" for name in others)
    ).encode()


def serve(ports: Connection) -> None:
    """Run the servers until the parent ends."""
    from tests.unit.serving.scripted_server import ScriptedServer

    start = time.monotonic()
    ports.send([ScriptedServer(lambda: body(start)).port for _ in range(SERVERS)])
    threading.Event().wait()


def measure() -> tuple[float, float, float]:
    """Return the share of a core in percent, the largest error of tokens per joule in percent, and the longest call in ms."""
    from gpulse.model.catalog import Gpu
    from gpulse.model.serving import ServerSample
    from gpulse.serving.settings import ServingSettings
    from gpulse.serving.tracking import ServingTracker
    from gpulse.serving.watch import ServingWatch

    ours, theirs = multiprocessing.Pipe()
    child = multiprocessing.Process(target=serve, args=(theirs,), daemon=True)
    child.start()
    endpoints = [f"127.0.0.1:{port}" for port in ours.recv()]
    watch, tracker = ServingWatch(ServingSettings({"endpoints": endpoints})), ServingTracker()
    start, longest, worst = time.monotonic(), 0.0, 0.0
    for second in range(SECONDS + 3):
        if second == 3:  # the first answers load modules and recognize the servers
            began = time.process_time()
        now = time.monotonic()
        samples, problems = watch.observe(())
        longest = max(longest, time.monotonic() - now) if second >= 3 else 0.0
        assert not problems, problems
        placed = [
            ServerSample(one.server, one.model, one.endpoint, one.at, counts=one.counts, gpus=("GPU-0",))
            for one in samples
        ]
        if second % 5 == 0:  # the counter is read every 5 s, and repeated in between
            energy = WATTS * now
        gpu = Gpu({"uuid": "GPU-0", "power_draw": WATTS, "energy": energy})
        for server in tracker.readings(placed, [gpu], now):
            if second > 8 and server.tokens_per_joule is not None:
                worst = max(worst, abs(server.tokens_per_joule / (TOKENS / WATTS) - 1))
        time.sleep(max(0.0, start + second + 1 - time.monotonic()))
    share = (time.process_time() - began) / SECONDS
    watch.close()
    child.terminate()
    child.join()
    return 100 * share, 100 * worst, 1000 * longest


def table() -> list[str]:
    """Return the measurements as Markdown."""
    share, worst, longest = measure()
    return [
        f"| {SERVERS} servers, asked once a second, {len(body(0.0)) // 1000} KB each | measured |",
        "| --- | --- |",
        f"| % of a core | {share:.2f} |",
        f"| longest call of the sampler, ms | {longest:.2f} |",
        f"| error of tokens per joule, % | {worst:.2f} |",
    ]


if __name__ == "__main__":
    print("\n".join(table()))
    sys.exit(0)
