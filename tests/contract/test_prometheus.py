"""A real Prometheus scrapes the page, and answers every question that the dashboard, the rules and others' dashboards ask."""

from __future__ import annotations

import json
import shutil
import subprocess
import threading
import time
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

from gpulse.model.catalog import Gpu
from gpulse.sampling.clock import ManualClock
from gpulse.sampling.sampler import Sampler
from gpulse.sources.simulated.source import SimulatedSource
from gpulse.surfaces.exporter.exporter import OPENMETRICS, TEXT, Exporter, prefers_openmetrics, wanted
from tests.ports import free_port
from tools.dashboards import ROOT, files
from tools.rules import alerts, records

pytestmark = pytest.mark.skipif(shutil.which("prometheus") is None, reason="prometheus is not installed")
RULES = ROOT / "deploy/prometheus/gpulse.rules.yml"
DASHBOARD = ROOT / "deploy/grafana/gpulse.json"
ENOUGH = 5  # scrapes
RATE = 3_000_000  # bytes a second that the counted GPU moves
# The panels of grafana.com's dashboard 12239, with its variables filled in.
FOREIGN = (
    'DCGM_FI_DEV_GPU_TEMP{instance=~".*", gpu=~".*"}',
    'avg(DCGM_FI_DEV_GPU_TEMP{instance=~".*", gpu=~".*"})',
    'DCGM_FI_DEV_POWER_USAGE{instance=~".*", gpu=~".*"}',
    'sum(DCGM_FI_DEV_POWER_USAGE{instance=~".*", gpu=~".*"})',
    'DCGM_FI_DEV_SM_CLOCK{instance=~".*", gpu=~".*"} * 1000000',
    'DCGM_FI_DEV_GPU_UTIL{instance=~".*", gpu=~".*"}',
    'DCGM_FI_PROF_PIPE_TENSOR_ACTIVE{instance=~".*", gpu=~".*"}',
    'DCGM_FI_DEV_FB_USED{instance=~".*", gpu=~".*"}',
)


class Pages(ThreadingHTTPServer):
    """Serves the demo and one counted GPU, as they are at each scrape, in the text that the scraper asks for."""

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.exporter = Exporter()
        self.scraped: list[bool] = []
        self._clock = ManualClock(time.time())
        asked = wanted(processes=True, dcgm=True)
        self._sampler = Sampler(SimulatedSource(clock=self._clock.monotonic), asked, clock=self._clock).open()
        threading.Thread(target=self.serve_forever, daemon=True).start()

    def page(self, openmetrics: bool) -> bytes:
        """Move on to now, whenever that is: the sums must fit the time that Prometheus measures."""
        self._clock.sleep(time.time() - self._clock.now())
        seen = self._sampler.read()
        counted = Gpu({"index": 8, "uuid": "GPU-counted", "pcie_rx": RATE, "throttle_reasons": ("hw_slowdown",)})
        self.exporter.add(seen.replace(gpus=(*seen.gpus, counted)))
        self.scraped.append(openmetrics)
        return self.exporter.text(openmetrics, processes=True, dcgm=True)


class _Handler(BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        assert isinstance(self.server, Pages)
        openmetrics = prefers_openmetrics(self.headers.get("Accept", ""))
        body = self.server.page(openmetrics)
        self.send_response(200)
        self.send_header("Content-Type", OPENMETRICS if openmetrics else TEXT)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: object) -> None:
        pass


class Prometheus:
    """A Prometheus of our own that scrapes one target every second."""

    def __init__(self, folder: Path, target: int) -> None:
        self.url = f"http://127.0.0.1:{free_port()}"
        config = folder / "prometheus.yml"
        config.write_text(
            "global: {scrape_interval: 1s, evaluation_interval: 1s}\n"
            f"rule_files: [{json.dumps(str(RULES))}]\n"
            "scrape_configs:\n- job_name: gpulse\n"
            f"  static_configs: [{{targets: ['127.0.0.1:{target}']}}]\n"
        )
        words = [f"--config.file={config}", f"--storage.tsdb.path={folder / 'data'}"]
        words += [f"--web.listen-address={self.url.removeprefix('http://')}", "--log.level=error"]
        self._log = (folder / "log").open("wb")
        self._process = subprocess.Popen(["prometheus", *words], stdout=self._log, stderr=self._log)

    def ask(self, path: str, **query: str) -> Any:
        """Return the data of an answer of the API; raise AssertionError with Prometheus' own words when it refuses."""
        try:
            with urllib.request.urlopen(f"{self.url}{path}?{urllib.parse.urlencode(query)}", timeout=60) as answer:
                return json.load(answer)["data"]
        except urllib.error.HTTPError as error:
            if error.code == 503:  # it still starts
                raise ConnectionRefusedError(error.reason) from None
            raise AssertionError(f"{query}: {error.read().decode()}") from None

    def query(self, expression: str) -> list[Any]:
        """Return what an expression gives now."""
        result = self.ask("/api/v1/query", query=expression)["result"]
        assert isinstance(result, list)
        return result

    def wait(self, expression: str) -> list[Any]:
        """Return what an expression gives, once it gives something."""
        end = time.monotonic() + 60
        while time.monotonic() < end:
            try:
                if found := self.query(expression):
                    return found
            except OSError:  # not listening yet
                assert self._process.poll() is None, "prometheus has ended"
            time.sleep(0.1)
        raise AssertionError(f"{expression} gave nothing")

    def close(self) -> None:
        self._process.terminate()
        self._process.wait(30)
        self._log.close()


@pytest.fixture(scope="module")
def pages() -> Iterator[Pages]:
    server = Pages()
    yield server
    server.shutdown()
    server.server_close()


@pytest.fixture(scope="module")
def prometheus(pages: Pages, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Prometheus]:
    made = Prometheus(tmp_path_factory.mktemp("prometheus"), pages.server_address[1])
    try:
        made.wait(f"gpulse_samples_total >= {ENOUGH}")
        yield made
    finally:
        made.close()


def panels() -> list[dict[str, Any]]:
    rows = json.loads(DASHBOARD.read_text())["panels"]
    return [panel for row in rows for panel in (row, *row.get("panels", [])) if panel["type"] != "row"]


def filled(query: str) -> str:
    for variable, text in (("$instance", ".*"), ("$gpu", ".*"), ("$__rate_interval", "1m"), ("$__range", "1h")):
        query = query.replace(variable, text)
    return query


def test_the_made_files_are_up_to_date() -> None:
    assert {path: path.read_text() for path in files()} == files()


def test_every_sample_arrives(prometheus: Prometheus, pages: Pages) -> None:
    (up,) = prometheus.query("up")
    assert up["value"][1] == "1"
    assert all(pages.scraped)  # this Prometheus asks for OpenMetrics
    (kept,) = prometheus.query("scrape_samples_scraped")
    (stored,) = prometheus.query("scrape_samples_post_metric_relabeling")
    assert int(kept["value"][1]) == int(stored["value"][1]) > 800
    assert len(prometheus.query("gpulse_gpu_utilization_ratio")) == 8
    assert len(prometheus.query("gpulse_gpu_up")) == 9
    assert not prometheus.query('{exported_job!=""}')
    assert not prometheus.query('{exported_instance!=""}')


def test_the_classic_text_is_accepted_too(pages: Pages) -> None:
    checked = subprocess.run(
        ["promtool", "check", "metrics"], input=pages.exporter.text(processes=True), capture_output=True, check=False
    )
    assert (checked.returncode, checked.stdout + checked.stderr) == (0, b"")


def test_rates_of_counters_are_the_rates_that_were(prometheus: Prometheus) -> None:
    # a scrape on a busy machine comes late by some of a second, so rates are taken by the time of the samples
    clock = "on (instance) group_left () irate(gpulse_last_sample_timestamp_seconds[1m])"
    (moved,) = prometheus.query(f'irate(gpulse_gpu_pcie_rx_bytes_total{{uuid="GPU-counted"}}[1m]) / {clock}')
    assert float(moved["value"][1]) == pytest.approx(RATE, rel=1e-4)
    (share,) = prometheus.query(f'irate(gpulse_gpu_throttle_seconds_total{{uuid="GPU-counted"}}[1m]) / {clock}')
    assert float(share["value"][1]) == pytest.approx(1.0, rel=1e-4)
    prometheus.wait("count(increase(gpulse_gpu_energy_joules_total[1m]) > 0) == 8")
    prometheus.wait("count(increase(gpulse_gpu_nvlink_rx_bytes_total[1m]) > 0) >= 2")


def test_owners_can_be_joined(prometheus: Prometheus) -> None:
    joined = prometheus.query("gpulse_gpu_power_draw_watts * on (uuid) group_left (user, job_id) gpulse_gpu_job_info")
    assert {"ada", "grace"} <= {series["metric"]["user"] for series in joined}


@pytest.mark.parametrize("panel", panels(), ids=lambda panel: str(panel["id"]))
def test_every_panel_has_an_answer(prometheus: Prometheus, panel: dict[str, Any]) -> None:
    quiet = {"XID errors", "Fan speed", "Fan speed in rpm"}  # the demo has no errors, and no fans
    quiet |= {"Video utilization", "Hotspot temperature", "XGMI in", "XGMI out"}  # which only AMD's GPUs have
    quiet |= {"Cost per million tokens"}  # no price is set
    for target in panel["targets"]:
        found = prometheus.query(filled(target["expr"]))
        assert found or panel["title"] in quiet, target["expr"]


@pytest.mark.parametrize("query", FOREIGN)
def test_a_dashboard_made_for_dcgm_exporter_has_its_answers(prometheus: Prometheus, query: str) -> None:
    found = prometheus.query(query)
    assert len(found) == (1 if "(" in query.partition("{")[0] else 8)


def test_its_variables_are_filled(prometheus: Prometheus) -> None:
    names = prometheus.ask("/api/v1/label/gpu/values", **{"match[]": "DCGM_FI_DEV_GPU_TEMP"})
    assert names == [str(index) for index in range(8)]


def test_prometheus_takes_the_rules(prometheus: Prometheus) -> None:
    groups = prometheus.ask("/api/v1/rules")["groups"]
    assert {rule["name"] for group in groups for rule in group["rules"]} == {
        *(alert.name for alert in alerts()),
        *(record for record, _ in records()),
    }
    for group in groups:
        for rule in group["rules"]:
            assert not rule.get("lastError"), rule
            if rule["type"] == "alerting":
                assert rule["annotations"].keys() == {"summary", "description"}
                assert rule["labels"]["severity"] in ("critical", "warning", "info")
                prometheus.query(rule["query"])


GPU = 'instance="box",gpu="0",uuid="GPU-1"'
# What happens to a GPU, minute by minute, the alert that must come of it, and when it must (None: never).
STORIES: tuple[tuple[str, dict[str, str], str, int | None], ...] = (
    ("GpulseGpuLost", {f"gpulse_gpu_up{{{GPU}}}": "1x5 0x20"}, "5m", None),
    ("GpulseGpuLost", {f"gpulse_gpu_up{{{GPU}}}": "1x5 0x20"}, "8m", 1),
    ("GpulseXid", {f'gpulse_gpu_xid_errors_total{{{GPU},xid="79"}}': "_x10 1x60"}, "12m", 1),
    ("GpulseXid", {f'gpulse_gpu_xid_errors_total{{{GPU},xid="79"}}': "_x10 1x60"}, "40m", None),
    ("GpulseXid", {f'gpulse_gpu_xid_errors_total{{{GPU},xid="79"}}': "1x40 2x60"}, "45m", 1),
    ("GpulseEccUncorrected", {f"gpulse_gpu_ecc_uncorrected_total{{{GPU}}}": "3x90"}, "80m", None),
    ("GpulseEccUncorrected", {f"gpulse_gpu_ecc_uncorrected_total{{{GPU}}}": "3x10 4x90"}, "15m", 1),
    ("GpulseThrottled", {f'gpulse_gpu_throttle_seconds_total{{{GPU},reason="sw_power_cap"}}': "0+60x30"}, "20m", None),
    ("GpulseThrottled", {f'gpulse_gpu_throttle_seconds_total{{{GPU},reason="hw_slowdown"}}': "0+6x30"}, "20m", 1),
    ("GpulseNearlyOutOfMemory", {f"gpulse_gpu_memory_ratio{{{GPU}}}": "0.96x10"}, "8m", None),
    ("GpulseNearlyOutOfMemory", {f"gpulse_gpu_memory_ratio{{{GPU}}}": "0.98x10"}, "8m", 1),
    ("GpulseMemoryLeak", {
        f"gpulse_gpu_memory_used_bytes{{{GPU}}}": "0+10x80", f"gpulse_gpu_memory_total_bytes{{{GPU}}}": "900x80",
        f"gpulse_gpu_memory_ratio{{{GPU}}}": "0+0.01x80",
    }, "79m", 1),
    ("GpulseMemoryLeak", {
        f"gpulse_gpu_memory_used_bytes{{{GPU}}}": "900x80", f"gpulse_gpu_memory_total_bytes{{{GPU}}}": "1000x80",
        f"gpulse_gpu_memory_ratio{{{GPU}}}": "0.9x80",
    }, "79m", None),
    ("GpulseIdleAllocation", {
        f"gpulse_gpu_utilization_ratio{{{GPU}}}": "0x60", f"gpulse_gpu_memory_used_bytes{{{GPU}}}": "6e8x60",
        f"gpulse_gpu_processes{{{GPU}}}": "1x60",
    }, "50m", 1),
    ("GpulseIdleAllocation", {
        f"gpulse_gpu_utilization_ratio{{{GPU}}}": "0x60", f"gpulse_gpu_memory_used_bytes{{{GPU}}}": "6e8x60",
        f"gpulse_gpu_processes{{{GPU}}}": "0x60",
    }, "50m", None),
    ("GpulseHot", {f"gpulse_gpu_temperature_celsius{{{GPU}}}": "91x20"}, "10m", 1),
    ("GpulseHot", {f"gpulse_gpu_temperature_celsius{{{GPU}}}": "90x20"}, "10m", None),
    ("GpulseHot", {f"gpulse_gpu_memory_temperature_celsius{{{GPU}}}": "101x20"}, "10m", 1),
    ("GpulseHot", {
        f"gpulse_gpu_temperature_celsius{{{GPU}}}": "82x20", f"gpulse_gpu_temperature_limit_celsius{{{GPU}}}": "83x20",
    }, "10m", 1),
    ("GpulseStale", {'gpulse_last_sample_timestamp_seconds{instance="box"}': "0x20"}, "10m", 1),
    ("GpulseStale", {'gpulse_last_sample_timestamp_seconds{instance="box"}': "0+60x20"}, "10m", None),
    ("GpulseDown", {'up{instance="box",job="gpulse"}': "0x20"}, "10m", 1),
    ("GpulseSilent", {'gpulse_up{instance="box"}': "1x5 _x20"}, "15m", 1),
    ("GpulseSilent", {'gpulse_up{instance="box"}': "1x20"}, "15m", None),
    ("GpulseSilent", {'gpulse_up{instance="box"}': "1x5 _x20", 'up{instance="box",job="gpulse"}': "1x5 0x20"}, "15m", None),
)  # fmt: skip


@pytest.mark.parametrize(("alert", "series", "at", "fires"), STORIES)
def test_an_alert_comes_when_it_should_and_not_before(
    alert: str, series: dict[str, str], at: str, fires: int | None, tmp_path: Path
) -> None:
    told = [{"series": name, "values": values} for name, values in series.items()]
    count = {"expr": f'count(ALERTS{{alertname="{alert}",alertstate="firing"}})', "eval_time": at}
    expected = [] if fires is None else [{"labels": "{}", "value": fires}]
    tests = [{"interval": "1m", "input_series": told, "promql_expr_test": [{**count, "exp_samples": expected}]}]
    story = tmp_path / "story.yml"
    story.write_text(json.dumps({"rule_files": [str(RULES)], "evaluation_interval": "1m", "tests": tests}))
    run = subprocess.run(["promtool", "test", "rules", str(story)], capture_output=True, text=True, check=False)
    assert run.returncode == 0, run.stdout + run.stderr


def test_each_alert_has_a_story() -> None:
    assert {alert.name for alert in alerts()} == {name for name, *_ in STORIES}
