"""What reading a fleet costs: `python -m bench.fleet [prometheus|victoria|ssh|peers|serve]`.

prometheus, victoria: 1,000 hosts with 8 GPUs each in a real server, read as `gpulse fleet --prometheus` does; then 12 hours of one host.
serve: the same Prometheus behind `gpulse fleet serve`: what the server and the main thread of a real Chromium use.
ssh: 200 hosts, 10 of them dead and 10 hanging, behind a real sshd on this machine, whose own work counts against neither.
peers: 8 machines on the scripted driver on one fleet screen, and a nvitop on each of them.
"""

from __future__ import annotations

import http.server
import json
import os
import resource
import shlex
import shutil
import socket
import subprocess
import sys
import tempfile
import threading
import time
import urllib.request
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path

from gpulse.remote.fleet import Fleet
from gpulse.remote.prometheus import PrometheusFeed
from gpulse.remote.settings import Url

TYPE_CHECKING = False
if TYPE_CHECKING:
    from bench.live import Screen

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


def _part(name: str, part: float) -> float:
    return 1.0 if "total" in name else part


def page(hosts: int = HOSTS, seed: int = 0) -> bytes:
    """Return the series of a fleet as one page; another seed has other values."""
    lines = []
    for host in range(hosts):
        for gpu in range(GPUS):
            part = 1 - (7 * host + 13 * gpu + 29 * seed) % 100 / 120
            labels = f'instance="gpu{host:04d}:9440",gpu="{gpu}",uuid="GPU-{host:08d}-{gpu}"'
            lines += [f"{name}{{{labels}}} {_part(name, part) * value}" for name, value in _SERIES.items()]
            lines.append(f'gpulse_gpu_info{{{labels},name="NVIDIA H100 80GB HBM3",vendor="nvidia"}} 1')
            lines.append(f'gpulse_gpu_job_info{{{labels},user="user{host % 40}",scheduler="slurm",job_id="{host}"}} 1')
    return ("\n".join(lines) + "\n").encode()


def history() -> str:
    """Return 12 hours of one host in OpenMetrics, one sample per minute."""
    now = int(time.time()) // 60 * 60 - 120
    lines = []
    for name, value in _SERIES.items():
        lines.append(f"# TYPE {name} gauge")
        for gpu in range(GPUS):
            labels = f'instance="gpu0000:9440",gpu="{gpu}",uuid="GPU-{0:08d}-{gpu}"'
            lines += [f"{name}{{{labels}}} {value * (1 - at % 60 / 100)} {now - 60 * at}" for at in range(720, 0, -1)]
    return "\n".join([*lines, "# EOF", ""])


class _Page(http.server.BaseHTTPRequestHandler):
    bodies = [b""]
    served = 0

    def do_GET(self) -> None:
        type(self).served += 1
        self.body = self.bodies[self.served % len(self.bodies)]
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
    step = 120.0
    first = time.time() // step * step - 43_200
    times = [first + step * at for at in range(360)]
    own, whole, values = sorted(_past(feed, times, step) for _ in range(5))[2]
    print(f"12 h of one host, {values} values: {1000 * own:.0f} ms of CPU, {1000 * whole:.0f} ms in all")


def _past(feed: PrometheusFeed, times: list[float], step: float) -> tuple[float, float, int]:
    before, begun = time.process_time(), time.monotonic()
    found = feed.past.history("gpu0000", times, step) or {}
    known = sum(value is not None for values in found.values() for value in values)
    return time.process_time() - before, time.monotonic() - begun, known


@contextmanager
def _prometheus() -> Iterator[str]:
    """Run a real Prometheus that scrapes the page and has the history of one host; yield its address."""
    _Page.bodies = [page(seed=seed) for seed in range(4)]
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
        Path(folder, "history.om").write_text(history())
        words = ["promtool", "tsdb", "create-blocks-from", "openmetrics", f"{folder}/history.om", f"{folder}/data"]
        subprocess.run(words, check=True, stdout=subprocess.DEVNULL)
        port = _port()
        server = subprocess.Popen(
            [
                *("prometheus", f"--config.file={folder}/prometheus.yml", f"--storage.tsdb.path={folder}/data"),
                *(f"--web.listen-address=127.0.0.1:{port}", "--log.level=error"),
            ]
        )
        try:
            _whole(f"http://127.0.0.1:{port}")
            yield f"http://127.0.0.1:{port}"
        finally:
            server.terminate()
            server.wait()
            exporter.shutdown()


def prometheus() -> None:
    """Read a real Prometheus."""
    with _prometheus() as url:
        _apart(url)


def serve(seconds: float = 60.0) -> None:
    """Serve the page of a fleet in a real Prometheus, and look at it with a real Chromium."""
    with _prometheus() as url, tempfile.TemporaryDirectory() as folder:
        token, port = Path(folder, "token"), _port()
        words = [sys.executable, "-m", "gpulse", "fleet", "serve", "--prometheus", url, "--listen", f"127.0.0.1:{port}"]
        server = subprocess.Popen([*words, "--page-token-file", str(token)], stdout=subprocess.PIPE)
        try:
            assert server.stdout is not None
            server.stdout.readline()
            address = f"http://127.0.0.1:{port}/"
            secret = {"Authorization": f"Bearer {token.read_text().strip()}"}
            time.sleep(30)  # the first judgements
            _print_spent(server.pid, seconds, "without a client")
            stream = urllib.request.urlopen(urllib.request.Request(f"{address}api/stream", headers=secret), timeout=60)
            _print_spent(server.pid, seconds, "with one stream")
            stream.close()
            for path in ("overview", "table?by=gpu&sort=-power", "history?name=gpu0000", "heat", "usage"):
                begun = time.monotonic()
                request = urllib.request.Request(f"{address}api/{path}", headers=secret)
                size = len(urllib.request.urlopen(request, timeout=60).read())
                print(f"/api/{path}: {1000 * (time.monotonic() - begun):.0f} ms, {size / 1000:.0f} kB")
            environ = {**os.environ, "GPULSE_URL": address, "GPULSE_TOKEN": token.read_text().strip(), "FLEET": "1"}
            subprocess.run(["npm", "run", "--silent", "figures"], cwd="web", env=environ, check=True)
        finally:
            server.terminate()
            server.wait()


def _print_spent(pid: int, seconds: float, how: str) -> None:
    """Print what a process uses in some seconds."""

    def used() -> float:
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")

    before = used()
    time.sleep(seconds)
    memory = next(line for line in Path(f"/proc/{pid}/status").read_text().splitlines() if line.startswith("VmRSS"))
    print(f"server {how}: {100 * (used() - before) / seconds:.1f} % of a core, {int(memory.split()[1]) / 1024:.0f} MB")


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
                    for body in (page(), _in_milliseconds(history())):
                        request = urllib.request.Request(f"http://127.0.0.1:{port}/api/v1/import/prometheus", data=body)
                        urllib.request.urlopen(request, timeout=120).read()
                    break
                except OSError:
                    time.sleep(0.1)
            _whole(f"http://127.0.0.1:{port}")
            _apart(f"http://127.0.0.1:{port}")
        finally:
            server.terminate()
            server.wait()


def _in_milliseconds(text: str) -> bytes:
    """Return OpenMetrics as VictoriaMetrics wants it."""
    rows = (line.rpartition(" ") for line in text.splitlines() if not line.startswith("#"))
    return "\n".join(f"{head} {1000 * int(at)}" for head, _, at in rows).encode()


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
    """Read hosts over ssh: when the live ones are there, and what an interval of 5 s costs.

    Once with the key exchange that this ssh prefers, once with curve25519, which a line of ~/.ssh/config can ask for.
    """
    _ssh(hosts, dead, hanging, "", 60)
    _ssh(hosts, dead, hanging, "KexAlgorithms ^curve25519-sha256", 20)


def _ssh(hosts: int, dead: int, hanging: int, setting: str, seconds: float) -> None:
    from gpulse.remote.ssh import SshFeed
    from tests.e2e.sshd import Sshd

    with tempfile.TemporaryDirectory() as folder, socket.create_server(("127.0.0.1", 0), backlog=64) as silent:
        record = Path(folder, "sample.ndjson")
        words = [sys.executable, "-m", "gpulse", "record", "--demo", "-o", "-", "--processes", "--count", "2"]
        record.write_bytes(subprocess.run(words, check=True, stdout=subprocess.PIPE).stdout)
        # A shell that repeats a recorded sample stands for gpulse: 180 of these would measure this machine.
        machine = {"gpulse": f"while tail -n 1 {record}; do sleep 5; done"}
        server = Sshd(Path(folder), {"live": machine})
        try:
            names = []
            for number in range(hosts):
                name = f"gpu{number:03d}"
                kind = "dead" if number < dead else "hangs" if number < dead + hanging else "live"
                port = {"dead": _port(), "hangs": silent.getsockname()[1], "live": server.port("live")}[kind]
                server.add(name, port)
                names.append(name)
            server.config.write_text(f"Host *\n{setting}\n{server.config.read_text()}")
            feed = SshFeed(names, 5.0, (str(server.ssh),))
            before, served, whole = time.process_time(), tree_cpu(server.pid), tree_cpu(os.getpid())
            begun = time.monotonic()
            there: list[float] = []
            later: tuple[float, float, float, float] | None = None
            with Fleet([feed], 5.0) as fleet:
                while time.monotonic() - begun < seconds:
                    ok = sum(host.state == "ok" for host in fleet.read().hosts)
                    while len(there) < 3 and ok >= (0.5, 0.9, 1.0)[len(there)] * (hosts - dead - hanging):
                        there.append(time.monotonic() - begun)
                    if len(there) == 3 and later is None:
                        later = time.monotonic(), time.process_time(), tree_cpu(os.getpid()), tree_cpu(server.pid)
                    time.sleep(0.1)
                shown = sum(host.state == "ok" for host in fleet.read().hosts)
                assert later is not None, "not all came"
                passed, own = time.monotonic() - later[0], time.process_time() - later[1]
            print(f"{setting or 'default key exchange'}: {shown} of {hosts} hosts")
            print("half of the live ones after {:.1f} s, 90 % after {:.1f} s, all after {:.1f} s".format(*there))
            first, mine = later[1] - before, later[3] - served
            clients = later[2] - whole - first - mine
            print(f"until then {first:.1f} s of own CPU, ssh {clients:.1f} s, sshd {mine:.1f} s")
            print(f"then {100 * own / passed:.1f} % of a core")
        finally:
            server.close()


def peers(hosts: int = 8, seconds: float = 20.0) -> None:
    """Watch 8 machines with 8 GPUs each: on one fleet screen, beside one nvitop on each."""
    from bench.live import Screen
    from bench.machine import BIN, install, machine
    from tests.e2e.sshd import Sshd

    install()
    with machine("dgx-h100x8", 8, 24) as env, tempfile.TemporaryDirectory() as folder:
        own = [f"{key}={value}" for key, value in env.items() if key.startswith(("FAKE_NVML_", "LD_"))]
        run = f'exec {shlex.join(["env", *own, str(BIN / "gpulse")])} "$@"'
        server = Sshd(Path(folder), {"live": {"gpulse": run}})
        names = [f"gpu{number}" for number in range(hosts)]
        try:
            for name in names:
                server.add(name, server.port("live"))
            path = {"PATH": f"{folder}:{env['PATH']}", "GPULSE_CONFIG": f"{folder}/config.toml"}
            for interval in ("5", "1"):
                words = [str(BIN / "gpulse"), "fleet", "--ssh", ",".join(names), "--interval", interval]
                here, there = _spent([Screen(words, env | path)], server.pid, seconds)
                print(
                    f"gpulse fleet --interval {interval}: {here + there:.1f} % of a core ({here:.1f} here, {there:.1f} there)"
                )
            screens = [Screen([str(BIN / "nvitop"), "-m", "full", "--interval", "1"], env) for _ in names]
            print(f"{hosts} x nvitop --interval 1: {_spent(screens, server.pid, seconds)[0]:.1f} % of a core")
        finally:
            server.close()


def _spent(screens: Sequence[Screen], server: int, seconds: float) -> tuple[float, float]:
    """Return the CPU of screens and of what a server runs, in percent of a core, after some seconds to start in."""
    try:
        with ThreadPoolExecutor(len(screens)) as pool:
            list(pool.map(lambda screen: screen.read(10.0), screens))
            before = sum(tree_cpu(screen.pid) for screen in screens), tree_cpu(server)
            begun = time.monotonic()
            list(pool.map(lambda screen: screen.read(seconds), screens))
            after = sum(tree_cpu(screen.pid) for screen in screens), tree_cpu(server)
            passed = time.monotonic() - begun
    finally:
        for screen in screens:
            screen.end()
    return 100 * (after[0] - before[0]) / passed, 100 * (after[1] - before[1]) / passed


def tree_cpu(root: int) -> float:
    """Return the seconds of CPU that a process and its descendants have used, ended ones included."""
    stats = {}
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            words = (folder / "stat").read_text().rpartition(")")[2].split()
        except OSError:
            continue
        stats[int(folder.name)] = (int(words[1]), sum(map(int, words[11:15])))
    found, ticks = [root], 0
    for pid in found:
        found += [child for child, (parent, _) in stats.items() if parent == pid]
        ticks += stats.get(pid, (0, 0))[1]
    return ticks / os.sysconf("SC_CLK_TCK")


if __name__ == "__main__":
    words = sys.argv[1:]
    if words[:1] == ["read"]:
        _read(words[1])
    else:
        kinds = {"prometheus": prometheus, "victoria": victoria, "ssh": ssh, "peers": peers, "serve": serve}
        for name in words or kinds:
            print(f"{name}:")
            kinds[name]()
