"""Pushing to a receiver that is not there yet; alerts through a real Alertmanager."""

from __future__ import annotations

import http.server
import json
import re
import subprocess
import sys
import threading
import time
import urllib.parse
import urllib.request
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.e2e.lab import environment
from tests.e2e.serving import PATIENCE, Serving, plain_environment
from tests.fake_nvml import Scenario
from tests.ports import free_port
from tests.unit.surfaces.exporter.collector import Collector, decoded


def fetch(url: str) -> bytes:
    """Return a body; empty while nobody answers with one."""
    try:
        with urllib.request.urlopen(url, timeout=10) as response:
            return bytes(response.read()) or b"ok"
    except OSError:
        return b""


def until(true: Callable[[], bool]) -> None:
    end = time.monotonic() + PATIENCE
    while not true():
        assert time.monotonic() < end
        time.sleep(0.05)


def figure(server: Serving, name: str) -> float:
    """A figure about pushing; 0 if there is none."""
    page = server.get("/metrics")[2].decode()
    found = re.search(rf"^gpulse_otlp_{name} (\S+)$", page, re.MULTILINE)
    return float(found[1]) if found else 0.0


def test_a_receiver_that_was_down_gets_the_samples_taken_before_it_came_up(tmp_path: Path) -> None:
    pytest.importorskip("opentelemetry.proto")
    port = free_port()
    environ = plain_environment(tmp_path, OTEL_RESOURCE_ATTRIBUTES="service.instance.id=box", no_proxy="*")
    options = ("--no-history", "--interval", "0.1", "--otlp", f"http://127.0.0.1:{port}/api/v1/otlp/v1/metrics")
    with Serving(tmp_path, *options, environ=environ) as server:
        until(lambda: figure(server, "retries_total") >= 1)
        assert figure(server, "pending_requests") >= 1
        assert f"pushing to http://127.0.0.1:{port}/*** failed: Connection refused" in server.err
        with Collector(port=port) as collector:
            until(lambda: figure(server, "requests_total") >= 1 and not figure(server, "pending_requests"))
            assert figure(server, "last_success_timestamp_seconds") > 0
            until(lambda: "works again; 0 samples were lost" in server.err)
    resource = decoded(collector.bodies[0])
    pushed = {metric.name: metric for scope in resource.scope_metrics for metric in scope.metrics}
    assert len(pushed["hw.gpu.memory.usage"].sum.data_points) >= 8
    for point in pushed["gpulse_gpu_memory_used_bytes"].gauge.data_points:
        labels = {pair.key: pair.value.string_value for pair in point.attributes}
        assert (labels["job"], labels["instance"], {"gpu", "uuid"} <= labels.keys()) == ("gpulse", "box", True)


def test_alerts_of_the_rules_reach_alertmanager_by_the_routes_that_are_shipped(tmp_path: Path) -> None:
    """An XID of a lost GPU goes from the driver through gpulse, Prometheus and Alertmanager to a receiver."""
    command = [sys.executable, "-m", "gpulse", "fleet", "init", "deploy"]
    subprocess.run(command, cwd=tmp_path, env=plain_environment(tmp_path), check=True, capture_output=True, timeout=60)
    folder = tmp_path / "deploy/prometheus"
    routes = folder / "alertmanager.yml"
    for words in (
        ("check-config", str(routes)),
        ("config", "routes", "test", f"--config.file={routes}", "--verify.receivers=urgent", "severity=critical"),
        ("config", "routes", "test", f"--config.file={routes}", "--verify.receivers=usual", "severity=warning"),
    ):
        done = subprocess.run(["amtool", *words], capture_output=True, text=True, timeout=60, check=False)
        assert done.returncode == 0, done.stdout + done.stderr
    hook = _Hook()
    ports = {"prometheus": free_port(), "alertmanager": free_port()}
    quick = routes.read_text().replace("group_wait: 30s", "group_wait: 1s")
    routes.write_text(re.sub(r"url: \S+", f"url: http://127.0.0.1:{hook.port}/", quick))
    started = []
    (tmp_path / "server").mkdir()
    history = {"GPULSE_HISTORY": str(tmp_path / "history.db")}
    environ = environment(Scenario.load("lost"), tmp_path / "fake", **history)
    try:
        with Serving(tmp_path / "server", "--no-history", source="", environ=environ) as server:
            (tmp_path / "token").write_text(server.token)
            _configure(folder, server.port, ports["alertmanager"], tmp_path / "token")
            started.append(
                subprocess.Popen(
                    [
                        *("prometheus-alertmanager", f"--config.file={routes}", f"--storage.path={tmp_path}/alerts"),
                        *(f"--web.listen-address=127.0.0.1:{ports['alertmanager']}", "--cluster.listen-address="),
                    ],
                    stdout=subprocess.DEVNULL,
                    stderr=subprocess.DEVNULL,
                )
            )
            started.append(
                subprocess.Popen(
                    [
                        *("prometheus", f"--config.file={folder}/scrape.yml", f"--storage.tsdb.path={tmp_path}/data"),
                        f"--web.listen-address=127.0.0.1:{ports['prometheus']}",
                    ],
                    stdout=subprocess.DEVNULL,
                    stderr=subprocess.DEVNULL,
                )
            )
            until(lambda: "GpulseXid" in hook.alerts)
    finally:
        for process in started:
            process.terminate()
            process.wait(30)
        hook.close()
    alert = hook.alerts["GpulseXid"]
    assert (alert["labels"]["xid"], alert["labels"]["severity"]) == ("79", "critical")
    assert alert["annotations"]["summary"] == "GPU 2 of gpu-box reported XID 79"


def _configure(folder: Path, server: int, alertmanager: int, token: Path) -> None:
    """Make the shipped configuration quick, and point it at this server and this Alertmanager."""
    config = yaml.safe_load((folder / "scrape.yml").read_text())
    (job,) = config["scrape_configs"]
    job["scrape_interval"] = "1s"
    job["authorization"]["credentials_file"] = str(token)
    job["relabel_configs"] = [{"target_label": "instance", "replacement": "gpu-box"}]
    config["alerting"] = {"alertmanagers": [{"static_configs": [{"targets": [f"127.0.0.1:{alertmanager}"]}]}]}
    config["global"] = {"evaluation_interval": "1s"}
    (folder / "scrape.yml").write_text(json.dumps(config))
    (folder / "gpulse-targets.json").write_text(json.dumps([{"targets": [f"127.0.0.1:{server}"]}]))


class _Hook:
    """Takes what Alertmanager posts; `alerts` are the firing ones by name."""

    def __init__(self) -> None:
        self.alerts: dict[str, Any] = {}
        alerts = self.alerts

        class Handler(http.server.BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
                for alert in body["alerts"]:
                    alerts[alert["labels"]["alertname"]] = alert
                self.send_response(200)
                self.send_header("Content-Length", "0")
                self.end_headers()

            def log_message(self, *_: object) -> None:
                pass

        self._server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.port = self._server.server_port
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.05,))
        self._thread.start()

    def close(self) -> None:
        self._server.shutdown()
        self._thread.join()
        self._server.server_close()
