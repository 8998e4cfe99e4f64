"""What reading a fleet costs: `python -m bench.fleet [prometheus|victoria|ssh]`.

prometheus, victoria: 1,000 hosts with 8 GPUs each in a real server, read as `gpulse fleet --prometheus` does.
ssh: 200 hosts, 10 of them dead and 10 hanging, behind a real sshd on this machine, whose own work counts against neither.
"""

from __future__ import annotations

import http.server
import json
import resource
import shutil
import socket
import subprocess
import sys
import tempfile
import threading
import time
import urllib.request
from pathlib import Path

from gpulse.remote.fleet import Fleet
from gpulse.remote.prometheus import PrometheusFeed
from gpulse.remote.urls import Url

HOSTS, GPUS = 1000, 8
_SERIES = {
    "gpulse_gpu_utilization_ratio": 0.75,
    "gpulse_gpu_sm_active_ratio": 0.5,
    "gpulse_gpu_memory_used_bytes": 6e10,
    "gpulse_gpu_memory_total_bytes": 8.5e10,
    "gpulse_gpu_memory_free_bytes": 2.5e10,
    "gpulse_gpu_power_draw_watts": 600.0,
    "gpulse_gpu_temperature_celsius": 60.0,
}


def page(hosts: int = HOSTS) -> bytes:
    """Return the series of a fleet as one page."""
    lines = []
    for host in range(hosts):
        for gpu in range(GPUS):
            labels = f'instance="gpu{host:04d}:9440",gpu="{gpu}",uuid="GPU-{host:08d}-{gpu}"'
            lines += [f"{name}{{{labels}}} {value * (1 - gpu / 100)}" for name, value in _SERIES.items()]
            lines.append(f'gpulse_gpu_info{{{labels},name="NVIDIA H100 80GB HBM3",vendor="nvidia"}} 1')
            lines.append(f'gpulse_gpu_job_info{{{labels},user="user{host % 40}",scheduler="slurm",job_id="{host}"}} 1')
    return ("\n".join(lines) + "\n").encode()


class _Page(http.server.BaseHTTPRequestHandler):
    body = b""

    def do_GET(self) -> None:
        self.send_response(200)
        self.send_header("Content-Type", "text/plain; version=0.0.4")
        self.send_header("Content-Length", str(len(self.body)))
        self.end_headers()
        self.wfile.write(self.body)

    def log_message(self, format: str, *arguments: object) -> None:
        pass


def _port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def _read(url: str) -> None:
    """Read the fleet in this process, eight times, and print what each refresh cost."""
    feed = PrometheusFeed(Url(url), 3600.0)
    fleet = Fleet([], 3600.0)
    feed._server = fleet.expect(url, "prometheus")
    rounds = []
    for _ in range(8):
        before, asked, begun = time.process_time(), feed.queries, time.monotonic()
        feed._refresh(fleet)
        rounds.append((time.process_time() - before, time.monotonic() - begun, feed.queries - asked))
    gpus = sum(1 for _ in fleet.read().gpus())
    memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    own, whole, queries = sorted(rounds[1:])[len(rounds) // 2 - 1]
    print(f"{len(fleet.read().hosts)} hosts, {gpus} GPUs: {own:.2f} s of CPU, {whole:.2f} s in all")
    print(f"{queries} queries (the first time {rounds[0][2]}), {memory:.0f} MB")


def prometheus() -> None:
    """Let a real Prometheus scrape the page, and read it."""
    _Page.body = page()
    exporter = http.server.ThreadingHTTPServer(("127.0.0.1", 0), _Page)
    threading.Thread(target=exporter.serve_forever, daemon=True).start()
    with tempfile.TemporaryDirectory() as folder:
        config = {
            "global": {"scrape_interval": "15s", "scrape_timeout": "15s"},
            "scrape_configs": [
                {
                    "job_name": "gpulse",
                    "honor_labels": True,
                    "static_configs": [{"targets": [f"127.0.0.1:{exporter.server_port}"]}],
                }
            ],
        }
        Path(folder, "prometheus.yml").write_text(json.dumps(config))
        port = _port()
        server = subprocess.Popen(
            [
                *("prometheus", f"--config.file={folder}/prometheus.yml", f"--storage.tsdb.path={folder}/data"),
                *(f"--web.listen-address=127.0.0.1:{port}", "--log.level=error"),
            ]
        )
        try:
            _whole(f"http://127.0.0.1:{port}")
            _apart(f"http://127.0.0.1:{port}")
        finally:
            server.terminate()
            server.wait()


def victoria() -> None:
    """Put the page into a real VictoriaMetrics, and read it."""
    program = shutil.which("victoria-metrics") or "victoria-metrics"
    with tempfile.TemporaryDirectory() as folder:
        port = _port()
        server = subprocess.Popen(
            [
                *(program, f"-storageDataPath={folder}", f"-httpListenAddr=127.0.0.1:{port}"),
                *("-search.latencyOffset=0s", "-loggerLevel=ERROR", "-search.maxUniqueTimeseries=1000000"),
            ],
            stderr=subprocess.DEVNULL,
        )
        try:
            for _ in range(100):
                try:
                    request = urllib.request.Request(f"http://127.0.0.1:{port}/api/v1/import/prometheus", data=page())
                    urllib.request.urlopen(request, timeout=120).read()
                    break
                except OSError:
                    time.sleep(0.1)
            _whole(f"http://127.0.0.1:{port}")
            _apart(f"http://127.0.0.1:{port}")
        finally:
            server.terminate()
            server.wait()


def _whole(url: str) -> None:
    """Wait until a server has all series."""
    end = time.monotonic() + 180
    while time.monotonic() < end:
        try:
            query = f"{url}/api/v1/query?query=count(gpulse_gpu_job_info)"
            with urllib.request.urlopen(query, timeout=30) as response:
                if f'"{HOSTS * GPUS}"' in response.read().decode():
                    return
        except OSError:
            pass
        time.sleep(0.5)
    raise SystemExit(f"{url} does not have all series")


def _apart(url: str) -> None:
    """Read in a process of its own, whose memory is only that."""
    subprocess.run([sys.executable, "-m", "bench.fleet", "read", url], check=True)


def ssh(hosts: int = 200, dead: int = 10, hanging: int = 10) -> None:
    """Read hosts over ssh: when the live ones are there, and what a minute at an interval of 5 s costs."""
    from gpulse.remote.ssh import SshFeed
    from tests.e2e.sshd import Sshd

    with tempfile.TemporaryDirectory() as folder, socket.create_server(("127.0.0.1", 0), backlog=64) as silent:
        record = Path(folder, "sample.ndjson")
        words = [sys.executable, "-m", "gpulse", "record", "--demo", "-o", "-", "--processes", "--count", "2"]
        record.write_bytes(subprocess.run(words, check=True, stdout=subprocess.PIPE).stdout)
        # A shell that repeats a recorded sample stands for gpulse: 180 of these would measure this machine.
        machine = {"gpulse": f"while :; do tail -n 1 {record}; sleep 5; done"}
        server = Sshd(Path(folder), {"live": machine})
        try:
            names = []
            for number in range(hosts):
                name = f"gpu{number:03d}"
                kind = "dead" if number < dead else "hangs" if number < dead + hanging else "live"
                port = {"dead": _port(), "hangs": silent.getsockname()[1], "live": server.port("live")}[kind]
                server.add(name, port)
                names.append(name)
            feed = SshFeed(names, 5.0, (str(server.ssh),))
            children = resource.getrusage(resource.RUSAGE_CHILDREN)
            before, begun = time.process_time(), time.monotonic()
            there: list[float] = []
            with Fleet([feed], 5.0) as fleet:
                while time.monotonic() - begun < 60:
                    ok = sum(host.state == "ok" for host in fleet.read().hosts)
                    if len(there) < 1 and ok == hosts - dead - hanging:
                        there.append(time.monotonic() - begun)
                        start, cpu = time.monotonic(), time.process_time()
                        first = cpu - before
                    time.sleep(0.2)
                shown = sum(host.state == "ok" for host in fleet.read().hosts)
                passed, own = time.monotonic() - start, time.process_time() - cpu
            after = resource.getrusage(resource.RUSAGE_CHILDREN)
            clients = after.ru_utime + after.ru_stime - children.ru_utime - children.ru_stime
            print(f"{shown} of {hosts} hosts; all live ones after {there[0]:.1f} s ({first:.1f} s of own CPU)")
            print(f"then {100 * own / passed:.1f} % of a core; ssh clients {clients:.1f} s of CPU in all")
        finally:
            server.close()


if __name__ == "__main__":
    words = sys.argv[1:]
    if words[:1] == ["read"]:
        _read(words[1])
    else:
        for name in words or ["prometheus", "victoria", "ssh"]:
            print(f"{name}:")
            {"prometheus": prometheus, "victoria": victoria, "ssh": ssh}[name]()
