"""Remote write: what real bytes say, and what becomes of them when the receiver is down, refuses, hangs or wants them slower."""

from __future__ import annotations

import http.server
import math
import os
import shutil
import ssl
import subprocess
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

import gpulse.testing
from gpulse.cli.main import main
from gpulse.cli.web_server import remote_write_checks
from gpulse.model.catalog import Gpu
from gpulse.model.snapshot import Snapshot
from gpulse.store.spool import Spool
from gpulse.surfaces.exporter.exporter import Exporter
from gpulse.surfaces.exporter.remote_write import Encoder, Receiver, RemoteWrite
from tests.unit.surfaces.exporter.pages import WHO, samples, values

PATIENCE = 30.0


def message_class() -> Any:
    """The message WriteRequest as the protobuf package knows it."""
    pytest.importorskip("google.protobuf")
    from google.protobuf import descriptor_pb2, descriptor_pool, message_factory

    file = descriptor_pb2.FileDescriptorProto(name="remote.proto", package="p", syntax="proto3")
    text, double, integer, inner = 9, 1, 3, 11
    fields: dict[str, list[tuple[str, int, str]]] = {
        "Label": [("name", text, ""), ("value", text, "")],
        "Sample": [("value", double, ""), ("timestamp", integer, "")],
        "TimeSeries": [("labels", inner, ".p.Label"), ("samples", inner, ".p.Sample")],
        "WriteRequest": [("timeseries", inner, ".p.TimeSeries")],
    }
    for name, members in fields.items():
        made = file.message_type.add(name=name)
        for number, (field, kind, of) in enumerate(members, 1):
            made.field.add(name=field, number=number, type=kind, label=3 if of else 1, type_name=of or None)
    pool = descriptor_pool.DescriptorPool()
    pool.Add(file)
    return message_factory.GetMessageClass(pool.FindMessageTypeByName("p.WriteRequest"))


def decoded(message: bytes) -> list[tuple[list[tuple[str, str]], float, int]]:
    """Labels, value and time of each series."""
    request = message_class().FromString(message)
    assert all(len(series.samples) == 1 for series in request.timeseries)
    return [
        ([(label.name, label.value) for label in series.labels], series.samples[0].value, series.samples[0].timestamp)
        for series in request.timeseries
    ]


def test_labels_are_sorted_complete_and_unescaped() -> None:
    text = '{gpu="0",uuid="",name="a \\"b\\" \\\\n",instance="own"}'
    message, count = Encoder({"job": "gpulse", "instance": "box"}).request(1700000000.1234, [("up_ratio", text, 0.5)])
    assert count == 1
    labels = [("__name__", "up_ratio"), ("gpu", "0"), ("instance", "own"), ("job", "gpulse"), ("name", 'a "b" \\n')]
    assert decoded(message) == [(labels, 0.5, 1700000000123)]


def test_a_series_that_ends_gets_a_stale_marker_once() -> None:
    encoder = Encoder({})
    encoder.request(1.0, [("a", "", 1.0), ("b", "", 2.0)])
    second = decoded(encoder.request(2.0, [("a", "", 0.0)])[0])
    assert second[0] == ([("__name__", "a")], 0.0, 2000)
    assert (second[1][0], math.isnan(second[1][1])) == ([("__name__", "b")], True)
    assert encoder.request(3.0, [("a", "", 0.0)])[1] == 1
    assert b"\x02\x00\x00\x00\x00\x00\xf0\x7f" in encoder.request(4.0, [])[0]  # the bits that Prometheus looks for


class Taken:
    """What a receiver was sent; it answers with `answers`, the last for ever, after `gate` is set."""

    def __init__(self, answers: list[int]) -> None:
        self.answers = answers
        self.bodies: list[bytes] = []
        self.headers: list[dict[str, str]] = []
        self.gate = threading.Event()
        self.gate.set()
        self.changed = threading.Condition()
        self.url = ""

    def until(self, count: int) -> None:
        """Wait for so many requests."""
        with self.changed:
            assert self.changed.wait_for(lambda: len(self.bodies) >= count, PATIENCE), len(self.bodies)

    def times(self) -> list[int]:
        """The time of each request."""
        import cramjam

        return [decoded(bytes(cramjam.snappy.decompress_raw(body)))[0][2] for body in self.bodies]


@contextmanager
def receiver(*answers: int, port: int = 0, tls: ssl.SSLContext | None = None, **headers: str) -> Iterator[Taken]:
    taken = Taken(list(answers) or [204])

    class Handler(http.server.BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["Content-Length"]))
            with taken.changed:
                taken.bodies.append(body)
                taken.headers.append(dict(self.headers))
                taken.changed.notify_all()
            taken.gate.wait(PATIENCE)
            code = taken.answers.pop(0) if len(taken.answers) > 1 else taken.answers[0]
            self.send_response(code)
            for name, value in headers.items():
                self.send_header(name.replace("_", "-"), value)
            text = b"" if code == 204 else b"out of \x1b[31morder\nmore"
            self.send_header("Content-Length", str(len(text)))
            self.end_headers()
            self.wfile.write(text)

        def log_message(self, *_: object) -> None:
            pass

    server = http.server.ThreadingHTTPServer(("127.0.0.1", port), Handler)
    server.handle_error = lambda *_: None  # type: ignore[method-assign]  # a sender that gave up is part of the game
    if tls is not None:
        server.socket = tls.wrap_socket(server.socket, server_side=True)
    thread = threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True)
    thread.start()
    taken.url = f"http{'s' if tls else ''}://127.0.0.1:{server.server_port}/api/v1/write"
    try:
        yield taken
    finally:
        taken.gate.set()
        server.shutdown()
        server.server_close()
        thread.join()


class Sender:
    """A push from a folder, and what it says."""

    def __init__(self, folder: Path, url: str, *, limit: int = 1 << 20, **more: Any) -> None:
        self.said: list[str] = []
        self.exporter = Exporter()
        self._time = 1000.0
        headers: Callable[[], dict[str, str]] = more.pop("headers", dict)
        target = Receiver(url, headers, more.pop("ca_file", None), timeout=5.0)
        self.spool = Spool(str(folder), limit)
        self.push = RemoteWrite(
            target, self.spool, self.exporter.series, 0.0, {"job": "gpulse"}, self.said.append, 0.02
        )
        self.push.start()

    def add(self, at: float | None = None) -> None:
        """Add a sample and wait until it is in the spool or left out."""
        self._time = self._time + 1 if at is None else at
        snapshot = Snapshot(self._time, (Gpu({**WHO, "utilization": 5}),))
        self.exporter.add(snapshot)
        self.push.handle(snapshot)

    def end(self) -> None:
        self.push.end(5.0)

    def figures(self) -> dict[tuple[str, str], float]:
        """The series about itself, by name and reason."""
        found: dict[tuple[str, str], float] = {}
        for family in self.push.families():
            found |= {(family.name.removeprefix("gpulse_remote_write_"), text): value for text, value in family.samples}
        return found

    def until(self, name: str, value: float, text: str = "") -> None:
        end = time.monotonic() + PATIENCE
        while self.figures().get((name, text), 0) < value or (
            name == "pending_requests" and self.spool.waiting > value
        ):
            assert time.monotonic() < end, self.figures()
            time.sleep(0.01)


@pytest.fixture(autouse=True)
def _no_proxy(monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("cramjam")
    monkeypatch.setenv("no_proxy", "*")


def test_samples_arrive_once_and_in_order_and_nothing_stays_on_disk(tmp_path: Path) -> None:
    with receiver() as taken:
        sender = Sender(tmp_path, taken.url)
        for _ in range(5):
            sender.add()
        sender.until("requests_total", 5)
        sender.end()
    assert taken.times() == [1001000, 1002000, 1003000, 1004000, 1005000]
    assert taken.headers[0]["Content-Encoding"] == "snappy"
    assert taken.headers[0]["X-Prometheus-Remote-Write-Version"] == "0.1.0"
    assert [path.name for path in tmp_path.iterdir()] == ["queue.lock"]
    assert sender.said == []


def test_what_fails_is_sent_again_in_order_and_said_once(tmp_path: Path) -> None:
    with receiver(503, 500, 429, 204) as taken:
        sender = Sender(tmp_path, taken.url)
        for _ in range(3):
            sender.add()
        sender.until("requests_total", 3)
        sender.end()
    assert taken.times() == [1001000] * 4 + [1002000, 1003000]
    assert len({*taken.bodies[:4]}) == 1  # the very same bytes
    assert len(sender.said) == 2
    assert "status 503; samples are kept" in sender.said[0]
    assert "works again" in sender.said[1]
    assert "api/v1" not in "".join(sender.said)


def test_a_restart_sends_what_was_left_and_only_that(tmp_path: Path) -> None:
    sender = Sender(tmp_path, "http://127.0.0.1:1/write")
    for _ in range(3):
        sender.add()
    sender.until("retries_total", 1)
    sender.end()
    with receiver() as taken:
        again = Sender(tmp_path, taken.url)
        again.add(2000.0)
        again.until("requests_total", 4)
        again.end()
    assert taken.times() == [1001000, 1002000, 1003000, 2000000]


def test_what_is_refused_is_dropped_with_the_reason_and_the_next_is_sent(tmp_path: Path) -> None:
    with receiver(400, 204) as taken:
        sender = Sender(tmp_path, taken.url)
        sender.add()
        sender.add()
        sender.until("requests_total", 1)
        sender.end()
    assert taken.times() == [1001000, 1002000]
    figures = sender.figures()
    assert figures["dropped_samples_total", '{reason="refused"}'] > 5
    assert "status 400: out of \\x1b[31morder" in sender.said[0]
    assert "samples are dropped" in sender.said[0]


def test_a_receiver_that_hangs_delays_no_sample(tmp_path: Path) -> None:
    with receiver() as taken:
        taken.gate.clear()
        sender = Sender(tmp_path, taken.url)
        sender.add()
        taken.until(1)
        for _ in range(3):
            sender.add()
        assert sender.spool.waiting == 4
        taken.gate.set()
        sender.until("requests_total", 4)
        sender.end()
    assert taken.times() == [1001000, 1002000, 1003000, 1004000]


def test_a_full_buffer_drops_the_oldest_and_says_so(tmp_path: Path) -> None:
    sender = Sender(tmp_path, "http://127.0.0.1:1/write", limit=2000)
    for _ in range(20):
        sender.add()
    sender.end()
    assert sender.spool.size <= 2000
    assert sender.figures()["dropped_samples_total", '{reason="full"}'] > 0
    assert [text for text in sender.said if "the oldest are dropped" in text]


def test_a_clock_that_is_set_back_a_little_sends_nothing_until_it_has_caught_up(tmp_path: Path) -> None:
    with receiver() as taken:
        sender = Sender(tmp_path, taken.url)
        for at in (1000.0, 1000.0, 999.0, 1001.0):
            sender.add(at)
        sender.until("requests_total", 2)
        sender.end()
    assert taken.times() == [1000000, 1001000]


def test_a_token_is_read_anew_and_a_missing_file_is_tried_again(tmp_path: Path) -> None:
    from gpulse.store.secret_file import read_secret

    token = tmp_path / "token"
    with receiver() as taken:
        sender = Sender(
            tmp_path / "spool",
            taken.url,
            headers=lambda: {"Authorization": f"Bearer {read_secret(str(token), 'token_file')}"},
        )
        sender.add()
        sender.until("retries_total", 1)
        token.touch()  # an empty file, as while it is being written, is no token either
        sender.until("retries_total", 3)
        token.write_text("one")
        sender.until("requests_total", 1)
        token.write_text("two")
        sender.add()
        sender.until("requests_total", 2)
        sender.end()
    assert [headers["Authorization"] for headers in taken.headers] == ["Bearer one", "Bearer two"]
    assert "token_file" in sender.said[0]


@pytest.mark.skipif(shutil.which("openssl") is None, reason="no openssl to make a certificate with")
def test_a_certificate_is_trusted_if_the_settings_name_it_and_only_then(tmp_path: Path) -> None:
    words = "req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -days 2 -subj /CN=box -keyout key -out certificate"
    names = ("-addext", "subjectAltName=IP:127.0.0.1")
    subprocess.run(["openssl", *words.split(), *names], cwd=tmp_path, check=True, capture_output=True)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(tmp_path / "certificate", tmp_path / "key")
    with receiver(tls=context) as taken:
        stranger = Sender(tmp_path / "spool", taken.url)
        stranger.add()
        stranger.until("retries_total", 1)
        stranger.end()
        assert taken.bodies == []
        assert "certificate verify failed" in stranger.said[0].lower()
        sender = Sender(tmp_path / "spool", taken.url, ca_file=str(tmp_path / "certificate"))
        sender.until("requests_total", 1)
        sender.end()
    assert taken.times() == [1001000]


def test_the_page_tells_how_pushing_goes(tmp_path: Path) -> None:
    sender = Sender(tmp_path, "http://127.0.0.1:1/write")
    exporter = Exporter(more=[sender.push.families])
    sender.add()
    sender.until("retries_total", 1)
    found = samples(exporter)
    assert values(found, "gpulse_remote_write_pending_requests") == {(): 1}
    assert values(found, "gpulse_remote_write_samples_total") == {(): 0}
    assert not values(found, "gpulse_remote_write_last_success_timestamp_seconds")
    sender.end()


def test_the_doctor_tells_that_samples_wait(tmp_path: Path) -> None:
    config = tmp_path / "config.toml"
    environ = {"GPULSE_CONFIG": str(config)}
    assert remote_write_checks(environ) == []
    config.write_text(f'[remote_write]\nurl = "http://127.0.0.1:1/secret"\nfolder = "{tmp_path}/spool"\n')
    (none,) = remote_write_checks(environ)
    assert none.level == "note"
    spool = Spool(str(tmp_path / "spool"), 1000)
    spool.put(b"x", 1)
    (fresh,) = remote_write_checks(environ)
    assert fresh.level == "ok"
    for path in (tmp_path / "spool").glob("*.body"):
        os.utime(path, (time.time() - 720, time.time() - 720))
    (late,) = remote_write_checks(environ)
    assert late.level == "warn"
    assert late.found.startswith("samples have waited for up to 12m0")
    assert "secret" not in late.found
    spool.close()


@pytest.mark.parametrize(
    ("lines", "words"),
    [
        ('url = "ftp://box"', "is not the address"),
        ('url = "http://ada:pw@box"', "a password in an address"),
        ('url = "http://box"\ntoken_file = "/nonexistent"', "token_file /nonexistent cannot be read"),
        ('url = "http://box"\nuser = "ada"', "belong together"),
        ('url = "http://box"\nca_file = "/etc/passwd"', "ca_file /etc/passwd cannot be read"),
        ('url = "http://box"\nlabels = ["1=2"]', "'1=2' is not a label"),
        ('url = "http://box"\nlabels = ["__name__=x"]', "is not a label"),
        ('url = "http://box"\nheaders = ["a: b"]', "'a: b' is not a header"),
        ('url = "http://box"\nfolder = "/proc/none"', "/proc/none: No such file"),
    ],
)
def test_wrong_settings_are_one_sentence(
    lines: str, words: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    pytest.importorskip("uvicorn")
    config = tmp_path / "config.toml"
    config.write_text(f"[remote_write]\n{lines}\n")
    monkeypatch.setenv("GPULSE_CONFIG", str(config))
    monkeypatch.setattr("sys.argv", ["gpulse", "serve", "--no-history", "--port", "0"])
    with gpulse.testing.scripted():  # a demo does not read these settings
        assert main() in (1, 2)
    err = capsys.readouterr().err
    assert words in err
    assert err.count("\n") == 1
