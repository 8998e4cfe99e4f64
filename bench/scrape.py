"""A scrape of 8 GPUs: CPU of writing the page, beside prometheus_client's own writer, and of serving it, beside nvitop-exporter.

`python -m bench.scrape` prints the tables. Run as a child on a scripted machine, `serve` serves pages and prints its port.
"""

from __future__ import annotations

import subprocess
import sys
import threading
import time
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from statistics import median

GPUS, PROCESSES = 8, 16
ROUNDS, SCRAPES, IDLE = 7, 100, 6.0
PAGES = (
    ("gpulse's own series", False, False, False),
    ("the same as OpenMetrics", True, False, False),
    ("with DCGM's names", False, False, True),
    ("with DCGM's names and each process", False, True, True),
)


def cpu_ms(work: Callable[[], object], times: int) -> float:
    """Return CPU milliseconds of one call, the median of some rounds."""
    rounds = []
    for _ in range(ROUNDS):
        start = time.process_time()
        for _ in range(times):
            work()
        rounds.append(1000 * (time.process_time() - start) / times)
    return median(rounds)


def writing() -> list[str]:
    """Return lines on what a page costs to write, in this process, on the driver that is there."""
    from gpulse.sampling.sampler import Sampler
    from gpulse.sources.nvidia.source import NvidiaSource
    from gpulse.surfaces.exporter.exporter import Exporter, wanted

    sampler = Sampler(NvidiaSource(), wanted(processes=True, dcgm=True)).open()
    exporter = Exporter()
    for _ in range(3):
        snapshot = sampler.read()
        exporter.add(snapshot)
        time.sleep(0.2)
    out = ["| a page of 8 GPUs | CPU ms | series | KiB |", "| --- | --- | --- | --- |"]
    taking = cpu_ms(lambda: exporter.add(snapshot), 200)
    out.append(f"| taking a sample in | {taking:.3f} | | |")
    for title, openmetrics, processes, dcgm in PAGES:

        def anew(asked: tuple[bool, bool, bool] = (openmetrics, processes, dcgm)) -> bytes:
            exporter.add(snapshot)
            return exporter.text(*asked)

        page = anew()
        series = sum(not line.startswith(b"#") for line in page.splitlines())
        out.append(f"| {title} | {cpu_ms(anew, 30) - taking:.2f} | {series} | {len(page) / 1024:.0f} |")
    out.append(f"| a page that another scrape had written | {cpu_ms(exporter.text, 5000):.4f} | | |")
    out.append(f"| prometheus_client, the first page again | {cpu_ms(_client(exporter.text()), 10):.2f} | | |")
    sampler.close()
    return out


def _client(page: bytes) -> Callable[[], bytes]:
    """Return prometheus_client's writer with the families of a page ready made."""
    from prometheus_client import CollectorRegistry, generate_latest
    from prometheus_client.parser import text_string_to_metric_families
    from prometheus_client.registry import Collector

    families = list(text_string_to_metric_families(page.decode()))

    class Ready(Collector):
        def collect(self) -> Iterator[object]:  # type: ignore[override]
            return iter(families)

    registry = CollectorRegistry()
    registry.register(Ready())
    return lambda: generate_latest(registry)


def serve() -> None:
    """Serve the page of one sample per second with a minimal server, until killed."""
    from gpulse.sampling.bus import Bus
    from gpulse.sampling.sampler import Sampler
    from gpulse.sources.nvidia.source import NvidiaSource
    from gpulse.surfaces.exporter.exporter import Exporter, wanted

    exporter = Exporter()
    bus = Bus(Sampler(NvidiaSource(), wanted(processes=True)).open(), 1.0)
    samples = bus.subscribe()

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            body = exporter.text(processes=True)
            self.send_response(200)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_: object) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", int(sys.argv[2])), Handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    bus.start()
    for snapshot in samples:
        exporter.add(snapshot)


@contextmanager
def running(command: list[str], env: dict[str, str], url: str) -> Iterator[int]:
    """Run a server and give its pid once it answers."""
    process = subprocess.Popen(command, env=env, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        end = time.monotonic() + 60
        while True:
            try:
                _get(url)
                break
            except OSError:
                assert process.poll() is None, f"{command} has ended"
                assert time.monotonic() < end, f"{command} does not answer"
                time.sleep(0.1)
        time.sleep(2.0)
        yield process.pid
    finally:
        process.kill()
        process.wait()


def served(command: list[str], env: dict[str, str], url: str) -> tuple[float, float, int]:
    """Return CPU ms of a scrape, CPU ms of a second without one, and the bytes of the page."""
    with running(command, env, url) as pid:
        start, before = time.perf_counter(), _spent(pid)
        time.sleep(IDLE)
        idle = (_spent(pid) - before) / (time.perf_counter() - start)
        start, before = time.perf_counter(), _spent(pid)
        for _ in range(SCRAPES):
            size = len(_get(url))
            time.sleep(0.1)
        scraping = _spent(pid) - before - idle * (time.perf_counter() - start)
    return 1000 * scraping / SCRAPES, 1000 * idle, size


def tables() -> list[str]:
    """Return the Markdown lines of one run on the scripted machine."""
    from bench.machine import BIN, ROOT, install, machine

    install()
    if not (BIN / "nvitop-exporter").exists():
        subprocess.run([BIN / "pip", "install", "--quiet", "nvitop-exporter"], check=True)
    with machine("dgx-h100x8", GPUS, PROCESSES) as env:
        ours = env | {"PYTHONPATH": str(ROOT)}
        here = [str(BIN / "python"), "-m", "bench.scrape"]
        out = subprocess.run([*here, "write"], env=ours, cwd=ROOT, check=True, capture_output=True, text=True).stdout
        lines = out.splitlines()
        lines += [
            "",
            f"| {GPUS} GPUs, {PROCESSES} processes, a sample and ten scrapes a second | CPU ms a scrape | CPU ms a second without | KiB |",
        ]
        lines.append("| --- | --- | --- | --- |")
        for title, command, port in (
            ("gpulse's page, http.server", [*here, "serve", "9461"], 9461),
            ("nvitop-exporter", [str(BIN / "nvitop-exporter"), "--port", "9462"], 9462),
        ):
            scrape, idle, size = served(command, ours, f"http://127.0.0.1:{port}/metrics")
            lines.append(f"| {title} | {scrape:.2f} | {idle:.1f} | {size / 1024:.0f} |")
    return lines


def _get(url: str) -> bytes:
    with urllib.request.urlopen(url, timeout=10) as answer:
        body: bytes = answer.read()
        return body


def _spent(pid: int) -> float:
    """Return the CPU seconds of a process with all its threads, the ended ones too: its clock, as clock_getcpuclockid(3) makes it."""
    return time.clock_gettime(~pid << 3 | 2)


if __name__ == "__main__":
    if sys.argv[1:2] == ["serve"]:
        serve()
    else:
        print("\n".join(writing() if sys.argv[1:2] == ["write"] else tables()))
