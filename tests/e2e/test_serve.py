"""`gpulse serve` as its users run it: a real process, a real port."""

from __future__ import annotations

import json
import resource
import signal
import socket
import ssl
import subprocess
import sys
import urllib.request
from collections.abc import Iterator
from pathlib import Path

import pytest

pytest.importorskip("starlette")
pytest.importorskip("uvicorn")

from tests.e2e.lab import environment
from tests.e2e.serving import Serving, StreamOf, plain_environment, refused
from tests.fake_nvml import Scenario


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Serving]:
    with Serving(tmp_path_factory.mktemp("serve"), "--interval", "0.2") as server:
        server.until("/readyz", 200)
        yield server


def test_the_link_opens_the_page_and_leaves_a_cookie(server: Serving) -> None:
    assert server.link.startswith("http://127.0.0.1:")
    status, headers, _ = server.get(f"/?token={server.token}", known=False)
    assert (status, headers["location"]) == (303, "./")
    cookie = headers["set-cookie"].partition(";")[0]
    status, headers, body = server.get("/", known=False, cookie=cookie)
    assert status == 200
    assert headers["content-type"].startswith("text/html")
    assert b"gpulse" in body.lower()
    assert server.get("/", known=False)[0] == 401


def test_now_is_in_the_snapshot_and_before_in_the_history(server: Serving) -> None:
    plain = server.json("/api/snapshot")
    assert len(plain["gpus"]) == 8
    assert plain["server"]["history"] is True
    with StreamOf(server) as stream:
        stream.events(12, "sample")
    history = server.json("/api/history?metrics=utilization,host.cpu_percent&points=100")
    assert {series["uuid"] for series in history["series"]} == {"", *(gpu["uuid"] for gpu in plain["gpus"])}
    assert any(value is not None for series in history["series"] for value in series["mean"])


def test_samples_stream_and_go_on_where_they_were(server: Serving) -> None:
    with StreamOf(server) as stream:
        samples = stream.events(3, "sample")
    run, _, number = samples[-1][0].rpartition("-")
    assert [int(id.rpartition("-")[2]) for id, _, _ in samples] == list(range(int(number) - 2, int(number) + 1))
    assert len(samples[0][2]["gpus"]) == 8
    with StreamOf(server, samples[0][0]) as stream:
        again = stream.events(3, "sample")
    assert [id for id, _, _ in again[:2]] == [f"{run}-{int(number) - 1}", f"{run}-{number}"]


def test_a_client_of_another_run_is_told_of_the_hole(server: Serving) -> None:
    with StreamOf(server, "0a0a0a0a-77") as stream:
        assert stream.events(1)[0][1] == "hole"


def test_scrapers_need_no_token_on_loopback(server: Serving) -> None:
    for path in ("/metrics", "/healthz", "/readyz"):
        assert server.get(path, known=False)[0] == 200
    body = server.get("/metrics", known=False)[2]
    assert b"gpulse_gpu_up" in body


@pytest.mark.parametrize("host", ["evil.example", "evil.example:9440", "127.0.0.1.nip.io"])
def test_a_rebound_name_is_refused(server: Serving, host: str) -> None:
    assert server.get("/api/snapshot", host=host)[0] == 400


@pytest.mark.parametrize(
    "target",
    ["/static/../../../../etc/passwd", "/static/%2e%2e/%2e%2e/etc/passwd", "//etc/passwd", "/static//etc/passwd"],
)
def test_no_file_of_the_machine_is_served(server: Serving, target: str) -> None:
    with server.connect() as client:
        client.sendall(
            f"GET {target} HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer {server.token}\r\nConnection: close\r\n\r\n".encode()
        )
        answer = client.makefile("rb").read()
    assert answer.startswith(b"HTTP/1.1 404")
    assert b"root:" not in answer


@pytest.mark.parametrize(
    "request_text",
    [
        b"GET / HTTP/1.1\r\nHost: localhost\r\nX: " + b"a" * 600_000 + b"\r\n\r\n",
        b"GET /" + b"a" * 600_000 + b" HTTP/1.1\r\nHost: localhost\r\n\r\n",
        b"GET / HTTP/1.1\r\nHost: localhost\r\nHost: evil\r\n\r\n",
        b"GET / HTTP/1.1\r\n\r\n",
        b"nonsense\r\n\r\n",
        b"\x16\x03\x01\x00\xa5\x01\x00\r\n\r\n",
    ],
)
def test_requests_that_are_none_get_a_400_and_harm_nobody(server: Serving, request_text: bytes) -> None:
    with server.connect() as client:
        try:
            client.sendall(request_text)
        except (BrokenPipeError, ConnectionResetError):
            pass  # it had seen enough
        try:
            answer = client.recv(100)
        except ConnectionResetError:
            answer = b""
    assert answer == b"" or answer.startswith(b"HTTP/1.1 400")
    assert server.get("/healthz")[0] == 200
    assert server.err == ""


def test_200_clients_that_do_not_read_cost_little_and_block_nobody(tmp_path: Path) -> None:
    with Serving(tmp_path, "--interval", "0.1", "--no-history") as server:
        before = server.memory()
        stalled = [server.stream(small=True) for _ in range(200)]
        with StreamOf(server) as stream:
            samples = stream.events(50, "sample")  # 500 kB for each that does not read, more than a socket holds
        numbers = [int(id.rpartition("-")[2]) for id, _, _ in samples]
        assert numbers == list(range(numbers[0], numbers[0] + 50))
        assert server.get("/healthz")[0] == 200
        assert server.memory() - before < 60
        assert (server.end(), server.err) == (0, "")
        for client in stalled:
            client.close()


def test_who_connects_and_asks_nothing_is_shown_the_door(tmp_path: Path) -> None:
    code = (
        "import sys, gpulse.surfaces.web.running as running\n"
        "running._HEADERS = 0.3\n"
        "from gpulse.cli.main import main\n"
        "sys.exit(main(['serve', '--demo', '--port', '0', '--no-history']))"
    )
    process = subprocess.Popen(
        [sys.executable, "-c", code], env=plain_environment(tmp_path), stdout=subprocess.PIPE, text=True
    )
    try:
        assert process.stdout is not None
        port = int(process.stdout.readline().partition("127.0.0.1:")[2].partition("/")[0])
        silent, slow, used = (socket.create_connection(("127.0.0.1", port), timeout=30) for _ in range(3))
        slow.sendall(b"GET /healthz HTTP/1.1\r\nHost: local")
        used.sendall(b"GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n")
        answer = b""
        while not answer.endswith(b"ok\n"):
            answer += used.recv(4000)
        used.sendall(b"GET /")
        for client in (silent, slow, used):
            try:
                assert client.recv(100) == b""
            except ConnectionResetError:
                pass  # the same, said in another way
            client.close()
    finally:
        process.kill()
        process.communicate()


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_a_signal_ends_streams_and_server_with_exit_0_and_no_word(tmp_path: Path, number: signal.Signals) -> None:
    with Serving(tmp_path) as server:
        streams = [server.stream() for _ in range(3)]
        for stream in streams:
            stream.events(1, "sample")
        assert (server.end(number), server.err) == (0, "")
        for stream in streams:
            assert stream.rest().endswith(b"0\r\n\r\n")  # the end of it, not of the connection
            stream.close()


def test_the_history_is_whole_after_the_end_and_another_server_only_reads_meanwhile(tmp_path: Path) -> None:
    file = tmp_path / "history.db"
    (tmp_path / "second").mkdir()
    with Serving(tmp_path, "--interval", "0.1", "--history", str(file)) as server:
        with StreamOf(server) as stream:
            stream.events(15, "sample")
        with Serving(tmp_path / "second", "--history", str(file)) as second:
            assert "this server only reads it" in second.err
            assert second.err.count("\n") == 1
            assert second.json("/api/history?metrics=utilization")["series"]
        assert server.end() == 0
    from gpulse.store.history import HistoryReader

    with HistoryReader(str(file)) as reader:
        assert len(reader.gpus(0, 1e11)) == 8
        assert [event.kind for event in reader.events(0, 1e11)][-1] == "stop"


def test_command_lines_are_off_everywhere(tmp_path: Path) -> None:
    file = tmp_path / "history.db"
    with Serving(
        tmp_path, "--no-commands", "--interval", "0.1", "--history", str(file), "--processes-metrics"
    ) as server:
        with StreamOf(server) as stream:
            texts = [json.dumps(data) for _, _, data in stream.events(12)]
        texts += [
            server.get(path)[2].decode()
            for path in ("/api/snapshot", "/api/processes", "/metrics", "/api/events", "/api/history")
        ]
        assert json.loads(texts[12])["server"]["commands"] is False
        assert any('"pid"' in text for text in texts)
        assert not [text for text in texts if "torchrun" in text or '"command"' in text]
        server.end()
    assert b"torchrun" not in file.read_bytes()


def test_a_socket_file_serves_its_owner(tmp_path: Path) -> None:
    path = tmp_path / "gpulse.sock"
    with Serving(tmp_path, "--unix-socket", str(path)) as server:
        assert path.stat().st_mode & 0o777 == 0o600
        for token, status in ((server.token, b"200"), ("wrong", b"401")):
            with socket.socket(socket.AF_UNIX) as client:
                client.settimeout(30)
                client.connect(str(path))
                client.sendall(
                    f"GET /api/openapi.json HTTP/1.1\r\nHost: any\r\nAuthorization: Bearer {token}\r\nConnection: close\r\n\r\n".encode()
                )
                assert client.makefile("rb").read().startswith(b"HTTP/1.1 " + status)
        assert server.end() == 0
    assert not path.exists()


@pytest.fixture(scope="module")
def certificate(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    folder = tmp_path_factory.mktemp("tls")
    cert, key = folder / "cert.pem", folder / "key.pem"
    try:
        subprocess.run(
            ["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-keyout", key, "-out", cert, "-days", "2",
             "-subj", "/CN=localhost",
             "-addext", "subjectAltName=DNS:localhost,IP:127.0.0.1"], check=True, capture_output=True
        )  # fmt: skip
    except FileNotFoundError:
        pytest.skip("openssl is not here")
    return cert, key


def test_tls_with_certificate_files(tmp_path: Path, certificate: tuple[Path, Path]) -> None:
    cert, key = certificate
    with Serving(tmp_path, "--cert", str(cert), "--key", str(key)) as server:
        assert server.link.startswith("https://")
        trusting = ssl.create_default_context(cafile=str(cert))

        class Stay(urllib.request.HTTPRedirectHandler):
            def redirect_request(self, *request: object) -> None:
                return None

        opener = urllib.request.build_opener(urllib.request.HTTPSHandler(context=trusting), Stay)
        with pytest.raises(urllib.error.HTTPError) as answer:
            opener.open(server.link, timeout=30)
        with answer.value:
            assert answer.value.code == 303
            assert answer.value.headers["set-cookie"].endswith("; Secure")
        with socket.create_connection(("127.0.0.1", server.port), timeout=30) as bare:
            bare.sendall(b"GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n")
            assert not bare.recv(100).startswith(b"HTTP/1.1 200")
        assert server.end() == 0
        assert server.err == ""


def test_a_certificate_that_is_none_is_one_sentence(tmp_path: Path, certificate: tuple[Path, Path]) -> None:
    bad = tmp_path / "bad.pem"
    bad.write_text("nonsense")
    for options in (["--cert", str(bad)], ["--cert", str(certificate[0])], ["--cert", str(tmp_path / "none.pem")]):
        code, out, err = refused(tmp_path, "--demo", "--port", "0", *options)
        assert (code, out) == (1, "")
        assert "certificate" in err
        assert err.count("\n") == 1


def test_a_port_in_use_is_one_sentence_and_exit_1(tmp_path: Path, server: Serving) -> None:
    code, out, err = refused(tmp_path, "--demo", "--port", str(server.port))
    assert (code, out) == (1, "")
    assert f"--port {server.port + 1}" in err
    assert err.count("\n") == 1


def test_a_gpu_that_hangs_holds_up_nobody(tmp_path: Path) -> None:
    scenario = Scenario().driver(gpus=2).fault(function="nvmlDeviceGetPowerUsage", gpu="1", hang="600s")
    env = environment(scenario, tmp_path / "fake", GPULSE_CONFIG=str(tmp_path / "none.toml"))
    with Serving(tmp_path, "--no-history", environ=env, source="") as server:
        server.until("/readyz", 200)
        for path in ("/healthz", "/metrics", "/api/snapshot"):
            assert server.get(path)[0] == 200
        assert [gpu["state"] for gpu in server.json("/api/snapshot")["gpus"]] == ["ok", "timeout"]
        assert server.end() == 0
        assert "Traceback" not in server.err


def test_two_thousand_idle_connections_at_a_limit_of_1024_files_keep_nobody_out(tmp_path: Path) -> None:
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if hard < 4096:
        pytest.skip("this test opens 2,000 connections itself")
    resource.setrlimit(resource.RLIMIT_NOFILE, (max(soft, 4096), hard))
    crowd: list[socket.socket] = []
    try:
        with Serving(tmp_path, "--interval", "0.2", files=1024) as server:
            crowd.extend(server.connect() for _ in range(2000))
            assert server.get("/healthz")[0] == 200
            assert server.get("/readyz")[0] == 200
            stream = server.stream()
            samples = stream.events(3, "sample")
            stream.close()
            assert all(not data.get("errors") for _, _, data in samples)
            assert server.err.count("too many connections") == 1
            assert "Traceback" not in server.err
    finally:
        for client in crowd:
            client.close()
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


def test_as_many_streams_as_there_may_be_leave_room_for_scrapers(tmp_path: Path) -> None:
    with Serving(
        tmp_path, "--interval", "0.2", files=512
    ) as server:  # 384 descriptors for 256 connections, 128 of them streams
        streams = [server.stream() for _ in range(128)]
        try:
            assert all(stream.events(1) for stream in streams)
            assert server.get("/api/stream")[0] == 503
            for target in ("/metrics", "/healthz", "/readyz", "/api/snapshot", "/"):
                assert server.get(target)[0] == 200, target
        finally:
            for stream in streams:
                stream.close()
