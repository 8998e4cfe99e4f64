"""Pushing over real HTTP: what becomes of samples when the receiver is down, refuses, hangs, rejects some or wants them slower."""

from __future__ import annotations

import shutil
import ssl
import subprocess
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest

from gpulse.cli.main import main
from gpulse.model.catalog import Gpu
from gpulse.model.snapshot import Snapshot
from gpulse.surfaces.exporter.exporter import Exporter
from gpulse.surfaces.exporter.otlp_push import OtlpPush, Receiver, start_push
from tests.ports import free_port
from tests.unit.surfaces.exporter.collector import PATIENCE, Collector, decoded, messages
from tests.unit.surfaces.exporter.pages import WHO, samples, values


@pytest.fixture(autouse=True)
def _no_proxy(monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("opentelemetry.proto")
    monkeypatch.setenv("no_proxy", "*")


class Sender:
    """A push of made-up samples, and what it says."""

    def __init__(self, url: str, environ: Mapping[str, str] | None = None, **more: Any) -> None:
        self.said: list[str] = []
        self.exporter = Exporter()
        self._time = 1000.0
        receiver = Receiver(url, environ or {}, timeout=more.pop("timeout", 5.0))
        options = {"interval": 0.0, "pause": 0.02, **more}
        self.push = OtlpPush(receiver, self.exporter.series, self.said.append, **options)
        self.push.start()

    def add(self, at: float | None = None) -> None:
        self._time = self._time + 1 if at is None else at
        snapshot = Snapshot(self._time, (Gpu({**WHO, "utilization": 5}),))
        self.exporter.add(snapshot)
        self.push.add(snapshot)

    def figures(self) -> dict[tuple[str, str], float]:
        """The series about pushing, by name and reason."""
        return {
            (family.name.removeprefix("gpulse_otlp_"), text): value
            for family in self.push.families()
            for text, value in family.samples
        }

    def until(self, name: str, value: float) -> None:
        self._wait(lambda: self.figures().get((name, ""), 0) >= value)

    def until_said(self, count: int) -> None:
        self._wait(lambda: len(self.said) >= count)

    def _wait(self, true: Callable[[], bool]) -> None:
        end = time.monotonic() + PATIENCE
        while not true():
            assert time.monotonic() < end, (self.figures(), self.said)
            time.sleep(0.01)


def times(collector: Collector) -> list[float]:
    """The time of each request, in seconds."""
    found = []
    for body in collector.bodies:
        points = {
            point.time_unix_nano
            for scope in decoded(body).scope_metrics
            for metric in scope.metrics
            for point in (metric.gauge if metric.HasField("gauge") else metric.sum).data_points
        }
        assert len(points) == 1
        found.append(points.pop() / 1e9)
    return found


def test_samples_arrive_once_and_in_order() -> None:
    with Collector() as collector:
        sender = Sender(collector.url)
        for _ in range(5):
            sender.add()
        sender.push.stop()
        sender.push.stop()
    assert times(collector) == [1001.0, 1002.0, 1003.0, 1004.0, 1005.0]
    assert collector.headers[0]["Content-Encoding"] == "gzip"
    assert collector.headers[0]["Content-Type"] == "application/x-protobuf"
    figures = sender.figures()
    assert (figures["requests_total", ""], figures["pending_requests", ""]) == (5, 0)
    assert figures["samples_total", ""] > 50
    assert sender.said == []


def test_what_fails_is_sent_again_in_order_and_said_once() -> None:
    with Collector(503, 500, 429, 200) as collector:
        sender = Sender(collector.url)
        for _ in range(3):
            sender.add()
        sender.until("requests_total", 3)
        sender.push.stop()
    assert times(collector) == [1001.0] * 4 + [1002.0, 1003.0]
    assert len({*collector.bodies[:4]}) == 1  # the very same bytes
    assert sender.figures()["retries_total", ""] == 3
    assert len(sender.said) == 2
    assert "status 503; up to 240 requests are kept in memory" in sender.said[0]
    assert "works again; 0 samples were lost" in sender.said[1]
    assert "v1/metrics" not in "".join(sender.said)


def test_what_is_refused_is_dropped_with_the_reason_and_the_next_is_sent() -> None:
    with Collector(400, 200) as collector:
        sender = Sender(collector.url)
        sender.add()
        sender.add()
        sender.until("requests_total", 1)
        sender.push.stop()
    assert times(collector) == [1001.0, 1002.0]
    lost = sender.figures()["dropped_samples_total", '{reason="refused"}']
    assert lost > 5
    assert f"status 400: out of \\x1b[31morder; {lost:.0f} samples are dropped." in sender.said[0]
    assert f"works again; {lost:.0f} samples were lost." in sender.said[1]


def test_what_a_receiver_rejects_of_a_request_it_took_is_counted_and_said_once() -> None:
    answer = messages().ExportMetricsServiceResponse()
    answer.partial_success.rejected_data_points = 7
    answer.partial_success.error_message = "too \x1b[31mold"
    with Collector(answer.SerializeToString(), answer.SerializeToString(), 200) as collector:
        sender = Sender(collector.url)
        for _ in range(3):
            sender.add()
        sender.until("requests_total", 3)
        sender.push.stop()
    assert sender.figures()["dropped_samples_total", '{reason="refused"}'] == 14
    assert len(sender.said) == 2
    assert "which it rejected: too \\x1b[31mold." in sender.said[0]
    assert "14 samples were lost" in sender.said[1]


def test_a_success_whose_body_never_comes_is_not_sent_again() -> None:
    with Collector() as collector:
        collector.missing = 10
        sender = Sender(collector.url, timeout=0.2)
        sender.add()
        sender.push.stop()
    assert (len(collector.bodies), sender.said) == (1, [])


def test_a_receiver_that_hangs_delays_no_sample_and_has_a_deadline() -> None:
    with Collector() as collector:
        collector.gate.clear()
        sender = Sender(collector.url, timeout=0.2)
        sender.add()
        collector.until(1)
        for _ in range(3):
            sender.add()
        assert sender.figures()["pending_requests", ""] == 4
        sender.until("retries_total", 1)
        collector.gate.set()
        sender.until("requests_total", 4)
        sender.push.stop()
    assert list(dict.fromkeys(times(collector))) == [1001.0, 1002.0, 1003.0, 1004.0]
    assert "no response in time" in sender.said[0]


def test_a_full_queue_drops_the_oldest_counts_it_and_says_so_once() -> None:
    port = free_port()
    sender = Sender(f"http://127.0.0.1:{port}/v1/metrics", size=3)
    sender.add()
    sender.until("retries_total", 1)
    for _ in range(8):
        sender.add()
    sender.until("retries_total", 4)
    figures = sender.figures()
    assert figures["pending_requests", ""] == 4  # one is being sent
    lost = figures["dropped_samples_total", '{reason="full"}']
    assert lost > 5 * 5
    assert [text.partition("*** ")[2].partition(" ")[0] for text in sender.said] == ["failed:", "is"]
    assert "the oldest requests are dropped" in sender.said[1]
    with Collector(port=port) as collector:
        sender.until("requests_total", 4)
        sender.push.stop()
    assert times(collector) == [1001.0, 1007.0, 1008.0, 1009.0]
    assert f"works again; {lost:.0f} samples were lost." in sender.said[2]
    assert len(sender.said) == 3


def test_the_end_says_what_a_receiver_that_is_down_has_not_taken() -> None:
    sender = Sender("http://127.0.0.1:1/v1/metrics", pause=30.0)
    sender.add()
    sender.until("retries_total", 1)
    sender.add()
    sender.push.stop()
    assert sender.push.join(0)
    assert sender.said[-1] == "requests not sent to http://127.0.0.1:1/*** before the end, and lost: 2."


def test_the_last_sample_is_sent_to_a_receiver_that_has_refused_one() -> None:
    with Collector(400, 200) as collector:
        sender = Sender(collector.url, interval=3600.0)
        sender.add()
        sender.until_said(1)
        sender.add()
        sender.push.stop()
    assert times(collector) == [1001.0, 1002.0]
    assert "works again" in sender.said[-1]


def test_the_last_sample_is_sent_at_the_end_though_it_is_not_due() -> None:
    with Collector() as collector:
        sender = Sender(collector.url, interval=3600.0)
        for _ in range(3):
            sender.add()
        sender.push.stop()
    assert times(collector) == [1001.0, 1003.0]


def test_without_a_sample_nothing_is_sent() -> None:
    with Collector() as collector:
        Sender(collector.url).push.stop()
    assert collector.bodies == []


def test_a_clock_that_is_set_back_a_little_sends_nothing_until_it_has_caught_up() -> None:
    with Collector() as collector:
        sender = Sender(collector.url)
        for at in (1000.0, 1000.0, 999.0, 1001.0, 100.0):
            sender.add(at)
        sender.push.stop()
    assert times(collector) == [1000.0, 1001.0, 100.0]


def test_headers_and_the_resource_come_from_the_variables_of_opentelemetry() -> None:
    environ = {
        "OTEL_EXPORTER_OTLP_HEADERS": "Authorization=Bearer%20s3cret, X-Scope-OrgID=lab,",
        "OTEL_EXPORTER_OTLP_METRICS_HEADERS": "X-Scope-OrgID=metrics",
        "OTEL_RESOURCE_ATTRIBUTES": "service.instance.id=box,cluster=Z%C3%BCrich",
    }
    with Collector() as collector:
        sender = Sender(collector.url, environ)
        sender.add()
        sender.push.stop()
    headers = {name.lower(): value for name, value in collector.headers[0].items()}
    assert (headers["authorization"], headers["x-scope-orgid"]) == ("Bearer s3cret", "metrics")
    resource = decoded(collector.bodies[0])
    who = {pair.key: pair.value.string_value for pair in resource.resource.attributes}
    assert (who["service.name"], who["service.instance.id"], who["cluster"]) == ("gpulse", "box", "Zürich")
    (up,) = [metric for scope in resource.scope_metrics for metric in scope.metrics if metric.name == "gpulse_up"]
    (point,) = up.gauge.data_points
    assert {pair.key: pair.value.string_value for pair in point.attributes} == {"job": "gpulse", "instance": "box"}


def test_headers_that_others_can_read_are_said(monkeypatch: pytest.MonkeyPatch) -> None:
    said: list[str] = []
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_HEADERS", "Authorization=x")
    start_push("http://receiver.invalid:1/secret", Exporter().series, said.append).stop()
    assert said == ["the headers for http://receiver.invalid:1/*** are sent unencrypted; use https."]
    start_push("http://127.0.0.1:1/secret", Exporter().series, said.append).stop()
    assert len(said) == 1


@pytest.mark.skipif(shutil.which("openssl") is None, reason="no openssl to make a certificate with")
def test_a_certificate_is_trusted_if_the_variable_names_it_and_only_then(tmp_path: Path) -> None:
    words = "req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -days 2 -subj /CN=box -keyout key -out certificate"
    names = ("-addext", "subjectAltName=IP:127.0.0.1")
    subprocess.run(["openssl", *words.split(), *names], cwd=tmp_path, check=True, capture_output=True)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(tmp_path / "certificate", tmp_path / "key")
    with Collector(tls=context) as collector:
        stranger = Sender(collector.url)
        stranger.add()
        stranger.until("retries_total", 1)
        stranger.push.stop()
        assert collector.bodies == []
        assert "certificate verify failed" in stranger.said[0].lower()
        sender = Sender(collector.url, {"OTEL_EXPORTER_OTLP_CERTIFICATE": str(tmp_path / "certificate")})
        sender.add()
        sender.push.stop()
    assert times(collector) == [1001.0]


def test_the_page_tells_how_pushing_goes() -> None:
    sender = Sender("http://127.0.0.1:1/v1/metrics")
    exporter = Exporter(more=[sender.push.families])
    sender.add()
    sender.until("retries_total", 1)
    found = samples(exporter)
    sender.push.stop()
    assert values(found, "gpulse_otlp_pending_requests") == {(): 1}
    assert values(found, "gpulse_otlp_samples_total") == {(): 0}
    assert values(found, "gpulse_otlp_dropped_samples_total", "reason") == {("refused",): 0, ("full",): 0}
    assert not values(found, "gpulse_otlp_last_success_timestamp_seconds")


@pytest.mark.parametrize(
    ("url", "variable", "words"),
    [
        ("ftp://box", "", "--otlp: 'ftp://box' is not an address; write it as http://host:4318/v1/metrics."),
        ("box:4318", "", "--otlp: 'box:4318' is not an address;"),
        ("http://box:x", "", "is not an address"),
        ("http://ada:pw@box", "", "a password in an address"),
        ("http://box", "OTEL_EXPORTER_OTLP_HEADERS=s3cret", "OTEL_EXPORTER_OTLP_HEADERS: entry 1 is not NAME=VALUE;"),
        ("http://box", "OTEL_EXPORTER_OTLP_HEADERS=a=1,b=s3cret%0A", "entry 2 is not NAME=VALUE;"),
        ("http://box", "OTEL_EXPORTER_OTLP_HEADERS=a=s3cret%C3%BC", "ASCII"),
        ("http://box", "OTEL_EXPORTER_OTLP_CERTIFICATE=/etc/passwd", "CERTIFICATE: /etc/passwd cannot be read"),
    ],
)
def test_a_wrong_address_or_variable_is_one_sentence(
    url: str,
    variable: str,
    words: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    pytest.importorskip("uvicorn")
    if variable:
        monkeypatch.setenv(*variable.split("=", 1))
    monkeypatch.setenv("GPULSE_CONFIG", str(tmp_path / "none.toml"))
    options = ["--demo", "--no-history", "--port", "0", "--otlp", url]
    monkeypatch.setattr("sys.argv", ["gpulse", "serve", *options])
    assert main() == 2
    err = capsys.readouterr().err
    assert words in err
    assert "s3cret" not in err
    assert err.count("\n") == 1
