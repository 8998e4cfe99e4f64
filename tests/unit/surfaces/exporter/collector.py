"""A collector for OpenTelemetry: takes pushes over real HTTP, and decodes them by the protocol's own messages."""

from __future__ import annotations

import gzip
import importlib
import ssl
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

PATIENCE = 30.0


class Collector(ThreadingHTTPServer):
    """Keeps the bodies of all requests; answers with `answers`, the last one forever, once `gate` is set.

    An answer is a status, or the body of a success. The collector may be closed and another one opened on its port.
    """

    daemon_threads = True

    def __init__(self, *answers: int | bytes, port: int = 0, tls: ssl.SSLContext | None = None) -> None:
        super().__init__(("127.0.0.1", port), _Handler)
        self.answers = list(answers) or [200]
        self.bodies: list[bytes] = []
        self.headers: list[dict[str, str]] = []
        self.missing = 0  # bytes that an answer announces and never sends
        self.closing = threading.Event()
        self.gate = threading.Event()
        self.gate.set()
        self._changed = threading.Condition()
        self.url = f"http{'s' if tls else ''}://127.0.0.1:{self.server_port}/v1/metrics"
        if tls is not None:
            self.socket = tls.wrap_socket(self.socket, server_side=True)
        self._thread = threading.Thread(target=self.serve_forever, args=(0.01,), daemon=True)
        self._thread.start()

    def handle_error(self, *_: object) -> None:
        """Say nothing of a sender that gave up."""

    def take(self, body: bytes, headers: dict[str, str]) -> int | bytes:
        """Keep a request and return the answer to it."""
        with self._changed:
            self.bodies.append(body)
            self.headers.append(headers)
            self._changed.notify_all()
        self.gate.wait(PATIENCE)
        return self.answers.pop(0) if len(self.answers) > 1 else self.answers[0]

    def until(self, count: int) -> None:
        """Wait for so many requests."""
        with self._changed:
            assert self._changed.wait_for(lambda: len(self.bodies) >= count, PATIENCE), len(self.bodies)

    def close(self) -> None:
        self.gate.set()
        self.closing.set()
        self.shutdown()
        self.server_close()
        self._thread.join()

    def __exit__(self, *_: object) -> None:
        self.close()


class _Handler(BaseHTTPRequestHandler):
    def do_POST(self) -> None:
        assert isinstance(self.server, Collector)
        body = self.rfile.read(int(self.headers["Content-Length"]))
        body = gzip.decompress(body) if self.headers.get("Content-Encoding") == "gzip" else body
        answer = self.server.take(body, dict(self.headers))
        code, text = (answer, b"out of \x1b[31morder\nmore") if isinstance(answer, int) else (200, answer)
        text = b"" if code == 200 and isinstance(answer, int) else text
        self.send_response(code)
        self.send_header("Content-Type", "application/x-protobuf")
        self.send_header("Content-Length", str(len(text) + self.server.missing))
        self.end_headers()
        self.wfile.write(text)
        if self.server.missing:
            self.server.closing.wait(PATIENCE)

    def log_message(self, *_: object) -> None:
        pass


def messages() -> Any:
    """Return the protocol's own messages."""
    return importlib.import_module("opentelemetry.proto.collector.metrics.v1.metrics_service_pb2")


def decoded(body: bytes) -> Any:
    """Return the one resource of a push, with its metrics."""
    (resource,) = messages().ExportMetricsServiceRequest.FromString(body).resource_metrics
    return resource
