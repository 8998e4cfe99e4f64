"""Many machines: a real sshd, real servers and a real Prometheus."""

from __future__ import annotations

import http.server
import json
import os
import socket
import subprocess
import sys
import threading
import time
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.e2e.serving import PATIENCE, Serving, plain_environment
from tests.e2e.sshd import Sshd, gpulse
from tests.e2e.terminal import CommandTerminal
from tests.ports import free_port
from tests.unit.sources.trees import card, under, write_tree

_LOG = """<?xml version="1.0" ?><nvidia_smi_log><driver_version>550.54</driver_version><attached_gpus>1</attached_gpus>
<gpu id="00000000:01:00.0"><product_name>NVIDIA A10</product_name><uuid>GPU-1</uuid>
<fb_memory_usage><total>23028 MiB</total><reserved>500 MiB</reserved><used>1024 MiB</used><free>21504 MiB</free></fb_memory_usage>
<utilization><gpu_util>42 %</gpu_util></utilization></gpu></nvidia_smi_log>"""


def fleet(folder: Path, *options: str, path: str = "") -> subprocess.CompletedProcess[str]:
    """Run `gpulse fleet` without anything personal; `path` comes first in PATH."""
    environ = plain_environment(
        folder, PATH=f"{path}:{os.environ['PATH']}" if path else os.environ["PATH"], COLUMNS="140"
    )
    command = [sys.executable, "-m", "gpulse", "fleet", *options]
    return subprocess.run(command, env=environ, capture_output=True, text=True, timeout=120, check=False)


def hosts(done: subprocess.CompletedProcess[str]) -> dict[str, Any]:
    assert done.returncode == 0, done.stderr
    return {host["name"]: host for host in json.loads(done.stdout)["hosts"]}


@pytest.fixture(scope="module")
def sshd(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Sshd]:
    greeting = "echo 'Welcome to \x1b]0;owned\x07'; "
    server = Sshd(
        tmp_path_factory.mktemp("sshd"),
        {
            "training": {"gpulse": gpulse("--demo")},
            "greets": {"gpulse": greeting + gpulse("--demo", "mixed")},
            "old": {"nvidia-smi": f"cat <<'LOG'\n{_LOG}\nLOG"},
            "bare": {},
            "amd": {},
            "evil": {"gpulse": "printf '\\033[2J\\033]0;owned\\007 no such thing\\n' >&2; exit 7"},
        },
    )
    device = {**card("amdgpu", "1002:740F", "0000:03:00.0"), "vendor": "0x1002\n", "gpu_busy_percent": "37\n"}
    write_tree(server.folder / "bin-amd/root", under("sys/class/drm/card1/device", device))
    hanging = socket.create_server(("127.0.0.1", 0))
    server.add("stranger", server.port("training"), "stranger")
    server.add("dead", free_port())
    server.add("hangs", hanging.getsockname()[1])
    yield server
    hanging.close()
    server.close()


def test_every_host_over_ssh_is_named_with_its_gpus_or_its_state(sshd: Sshd, tmp_path: Path) -> None:
    names = "training,greets,old,amd,bare,evil,stranger,dead,hangs"
    found = hosts(
        fleet(tmp_path, "--ssh", names, "--json", "--timeout", "60", "--interval", "1", path=str(sshd.folder))
    )
    assert list(found) == names.split(",")
    assert {name: (host["state"], len(host["gpus"])) for name, host in found.items()} == {
        "training": ("ok", 8),
        "greets": ("ok", 4),
        "old": ("ok", 1),
        "amd": ("ok", 1),
        "bare": ("no_gpu", 0),
        "evil": ("failed", 0),
        "stranger": ("denied", 0),
        "dead": ("unreachable", 0),
        "hangs": ("unreachable", 0),
    }
    assert found["training"]["host"]["name"]
    gpu = found["old"]["gpus"][0]
    assert (gpu["name"], gpu["utilization"], gpu["memory_used"]) == ("NVIDIA A10", 42, 1 << 30)
    assert (found["amd"]["gpus"][0]["vendor"], found["amd"]["gpus"][0]["utilization"]) == ("amd", 37)
    assert "Permission denied" in found["stranger"]["reason"]


def test_text_of_other_machines_reaches_no_terminal_as_it_is(sshd: Sshd, tmp_path: Path) -> None:
    done = fleet(tmp_path, "--ssh", "evil,greets", "--timeout", "60", path=str(sshd.folder))
    assert done.returncode == 0, done.stderr
    assert "\x1b" not in done.stdout
    assert "no such thing" in done.stdout


def test_a_host_that_hangs_does_not_hold_the_others(sshd: Sshd, tmp_path: Path) -> None:
    """A screen is there while one machine has not answered yet."""
    environ = plain_environment(tmp_path, PATH=f"{sshd.folder}:{os.environ['PATH']}")
    command = [
        sys.executable,
        "-m",
        "gpulse",
        "fleet",
        "--ssh",
        "training,hangs",
        "--json",
        "--watch",
        "--interval",
        "1",
    ]
    with subprocess.Popen(command, env=environ, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        states = []
        for line in process.stdout:
            states.append({host["name"]: host["state"] for host in json.loads(line)["hosts"]})
            if states[-1]["training"] == "ok":
                break
        process.terminate()
    assert states[-1] == {"training": "ok", "hangs": "connecting"}


def test_the_screen_shows_tables_filters_opens_a_machine_and_leaves_the_terminal_as_it_was(
    sshd: Sshd, tmp_path: Path
) -> None:
    environ = plain_environment(tmp_path, PATH=f"{sshd.folder}:{os.environ['PATH']}", TERM="xterm")
    command = [sys.executable, "-m", "gpulse", "fleet", "--ssh", "training,dead", "--interval", "1"]
    with CommandTerminal(environ, *command, columns=120, rows=30) as terminal:
        terminal.until(b"H100 80GB HBM3")
        terminal.until(b"unreachable")
        terminal.press(b"3")
        terminal.until(b"USER")
        terminal.press(b"/")
        terminal.until(b"filter:")
        terminal.press(b"user:ada\r")
        terminal.until(b"(Esc clears)")
        terminal.press(b"1")
        terminal.until(b"2 \xc3\x97 H100")
        terminal.press(b"\r")
        terminal.until(b"read only")  # top
        terminal.press(b"q")
        terminal.until(b"(Esc clears)", 2)
        terminal.press(b"\x1b")
        terminal.until(b"Enter open", 2)
        terminal.press(b"q")
        assert terminal.wait() == 0
    assert terminal.raw.count(b"\x1b[?1049h") == terminal.raw.count(b"\x1b[?1049l") == 3


def test_ctrl_c_ends_a_watch_and_its_connections(sshd: Sshd, tmp_path: Path) -> None:
    environ = plain_environment(tmp_path, PATH=f"{sshd.folder}:{os.environ['PATH']}")
    command = [sys.executable, "-m", "gpulse", "fleet", "--ssh", "training", "--watch", "--interval", "1"]
    with subprocess.Popen(command, env=environ, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        for line in process.stdout:
            if line.startswith("training"):
                break
        process.send_signal(2)
        assert process.wait(30) == 0
    # that no ssh is left is checked at the end of the suite


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ((), "no machines were named"),
        (("--ssh=-oProxyCommand=id",), "is not a host name"),
        (("--ssh", "@/nonexistent"), "cannot be read"),
        (("--url", "ftp://box"), "is not the address"),
        (("--url", "http://box", "--token-file", "/nonexistent"), "cannot be read"),
    ],
)
def test_a_wrong_command_line_is_one_sentence(options: tuple[str, ...], words: str, tmp_path: Path) -> None:
    done = fleet(tmp_path, *options)
    assert (done.returncode, done.stdout, done.stderr.count("\n")) == (2, "", 1)
    assert words in done.stderr


def test_servers_are_read_with_a_token_and_refuse_without(tmp_path: Path) -> None:
    (tmp_path / "server").mkdir()
    with Serving(tmp_path / "server", "--no-history") as server:
        token = tmp_path / "token"
        token.write_text(server.token)
        url = f"http://127.0.0.1:{server.port}"
        with socket.create_server(("127.0.0.1", 0)) as hanging:
            silent = f"127.0.0.1:{hanging.getsockname()[1]}"
            urls = f"{url},{silent},127.0.0.1:{free_port()}"
            allowed = fleet(tmp_path, "--url", urls, "--token-file", str(token), "--json", "--timeout", "30")
            assert [(host["state"], len(host["gpus"])) for host in hosts(allowed).values()] == [
                ("ok", 8),
                ("unreachable", 0),
                ("unreachable", 0),
            ]
        refused = hosts(fleet(tmp_path, "--url", url, "--json", "--timeout", "30"))
        assert [(host["state"], host["reason"]) for host in refused.values()] == [
            ("denied", "the token is wrong or missing")
        ]


def _page() -> str:
    """Return the pages of three exporters: DCGM's of two machines, nvidia_gpu_exporter's, AMD's."""
    lines = []
    for host in ("dgx1", "dgx2"):
        for index in range(2):
            labels = f'gpu="{index}",UUID="GPU-{host}{index}",modelName="NVIDIA A100",Hostname="{host}"'
            lines += [
                f"DCGM_FI_DEV_GPU_UTIL{{{labels}}} {50 + index}",
                f"DCGM_FI_PROF_SM_ACTIVE{{{labels}}} 0.25",
                f"DCGM_FI_DEV_FB_USED{{{labels}}} 1024",
                f"DCGM_FI_DEV_FB_FREE{{{labels}}} 3072",
                f"DCGM_FI_DEV_POWER_USAGE{{{labels}}} 300",
                f"DCGM_FI_DEV_GPU_TEMP{{{labels}}} 60",
            ]
    lines += [
        'nvidia_smi_utilization_gpu_ratio{uuid="abc",node="desk"} 0.5',
        'nvidia_smi_memory_used_bytes{uuid="abc",node="desk"} 1073741824',
        'nvidia_smi_memory_total_bytes{uuid="abc",node="desk"} 2147483648',
        'nvidia_smi_gpu_info{uuid="abc",name="NVIDIA RTX 4090",node="desk"} 1',
        'gpu_gfx_activity{gpu_id="0",serial_number="s1",hostname="mi1",card_model="MI300X"} 75',
        'gpu_used_vram{gpu_id="0",serial_number="s1",hostname="mi1",card_model="MI300X"} 2048',
        'gpu_total_vram{gpu_id="0",serial_number="s1",hostname="mi1",card_model="MI300X"} 8192',
    ]
    return "\n".join(lines) + "\n"


class _Exporter(http.server.BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        body = _page().encode()
        self.send_response(200)
        self.send_header("Content-Type", "text/plain; version=0.0.4")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *arguments: object) -> None:
        pass


@pytest.fixture
def prometheus(tmp_path: Path) -> Iterator[str]:
    """A Prometheus that scrapes the demo's server, other exporters, and a machine that is down."""
    exporter = http.server.ThreadingHTTPServer(("127.0.0.1", 0), _Exporter)
    thread = threading.Thread(target=exporter.serve_forever)
    thread.start()
    (tmp_path / "server").mkdir()
    port = free_port()
    with Serving(tmp_path / "server", "--no-history") as server:
        (tmp_path / "scraped").write_text(server.token)
        (tmp_path / "prometheus.yml").write_text(
            json.dumps(
                {
                    "global": {"scrape_interval": "1s", "scrape_timeout": "1s"},
                    "scrape_configs": [
                        {
                            "job_name": "gpulse",
                            "authorization": {"credentials_file": str(tmp_path / "scraped")},
                            "static_configs": [
                                {"targets": [f"127.0.0.1:{server.port}"], "labels": {"instance": "box:9440"}},
                                {"targets": [f"127.0.0.1:{free_port()}"], "labels": {"instance": "down:9440"}},
                            ],
                        },
                        {"job_name": "others", "static_configs": [{"targets": [f"127.0.0.1:{exporter.server_port}"]}]},
                    ],
                }
            )
        )
        command = [
            *("prometheus", f"--config.file={tmp_path}/prometheus.yml", f"--storage.tsdb.path={tmp_path}/data"),
            *(f"--web.listen-address=127.0.0.1:{port}", "--log.level=error"),
        ]
        process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        try:
            _until(f"http://127.0.0.1:{port}/api/v1/query?query=count(up)", '"3"')
            _until(f"http://127.0.0.1:{port}/api/v1/query?query=count(gpulse_gpu_utilization_ratio)", '"8"')
            _until(f"http://127.0.0.1:{port}/api/v1/query?query=count(DCGM_FI_DEV_GPU_UTIL)", '"4"')
            yield f"http://127.0.0.1:{port}"
        finally:
            process.terminate()
            process.wait(30)
            exporter.shutdown()
            thread.join()
            exporter.server_close()


def _until(url: str, text: str) -> None:
    """Wait until an answer has a text."""
    end = time.monotonic() + PATIENCE
    while time.monotonic() < end:
        try:
            with urllib.request.urlopen(url, timeout=5) as response:
                if text in response.read().decode():
                    return
        except OSError:
            pass
        time.sleep(0.1)
    raise AssertionError(f"{url} does not answer {text}")


def test_prometheus_has_the_gpus_of_four_exporters(prometheus: str, tmp_path: Path) -> None:
    found = hosts(fleet(tmp_path, "--prometheus", prometheus, "--json", "--timeout", "30"))
    assert {name: (host["state"], len(host["gpus"])) for name, host in found.items()} == {
        "box": ("ok", 8),
        "desk": ("ok", 1),
        "dgx1": ("ok", 2),
        "dgx2": ("ok", 2),
        "down": ("unreachable", 0),
        "mi1": ("ok", 1),
    }
    gpu = found["dgx1"]["gpus"][1]
    values = [gpu[key] for key in ("index", "utilization", "sm_active", "memory_used", "memory_total", "power_draw")]
    assert values == [1, 51, 25, 1 << 30, 4 << 30, 300]
    assert (found["desk"]["gpus"][0]["name"], found["desk"]["gpus"][0]["utilization"]) == ("NVIDIA RTX 4090", 50)
    assert (found["mi1"]["gpus"][0]["name"], found["mi1"]["gpus"][0]["memory_used"]) == ("MI300X", 2 << 30)
    assert found["desk"]["gpus"][0]["gaps"]["sm_active"] == "unsupported"
    assert {process["user"] for gpu in found["box"]["gpus"] for process in gpu["processes"]} >= {"ada"}
    assert all(0 <= host["age"] < 60 for host in found.values() if host["state"] == "ok")


def test_victoriametrics_answers_as_prometheus_does(tmp_path: Path) -> None:
    port = free_port()
    command = [
        *("victoria-metrics", f"-storageDataPath={tmp_path}/data", f"-httpListenAddr=127.0.0.1:{port}"),
        *("-search.latencyOffset=0s", "-loggerLevel=ERROR"),
    ]
    url = f"http://127.0.0.1:{port}"
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        _until(f"{url}/health", "OK")
        urllib.request.urlopen(f"{url}/api/v1/import/prometheus", data=_page().encode(), timeout=30).close()
        _until(f"{url}/api/v1/query?query=count(DCGM_FI_DEV_GPU_UTIL)", '"4"')
        found = hosts(fleet(tmp_path, "--prometheus", url, "--json", "--timeout", "30"))
    finally:
        process.terminate()
        process.wait(30)
    assert {name: (host["state"], len(host["gpus"])) for name, host in found.items()} == {
        "desk": ("ok", 1),
        "dgx1": ("ok", 2),
        "dgx2": ("ok", 2),
        "mi1": ("ok", 1),
    }
    assert found["dgx2"]["gpus"][0]["memory_total"] == 4 << 30


def test_a_server_that_is_no_prometheus_is_told_as_that(tmp_path: Path) -> None:
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), _Exporter) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        found = hosts(fleet(tmp_path, "--prometheus", f"http://127.0.0.1:{server.server_port}", "--json"))
        server.shutdown()
        thread.join()
    assert [(host["state"], host["reason"]) for host in found.values()] == [
        ("failed", "Prometheus: its answer is not one of Prometheus")
    ]
