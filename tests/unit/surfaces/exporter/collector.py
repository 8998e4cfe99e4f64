"""A collector for OpenTelemetry: takes pushes over real HTTP, and decodes them by the protocol's own messages."""

from __future__ import annotations

import importlib
import threading
from http.server import BaseHTTPRequestHandler, HTTPServer
from typing import Any


class Collector(HTTPServer):
    """Keeps the bodies of all requests."""

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.bodies: list[bytes] = []
        threading.Thread(target=self.serve_forever, daemon=True).start()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_address[1]}/v1/metrics"


class _Handler(BaseHTTPRequestHandler):
    def do_POST(self) -> None:
        import gzip

        assert isinstance(self.server, Collector)
        body = self.rfile.read(int(self.headers["Content-Length"]))
        self.server.bodies.append(gzip.decompress(body) if self.headers.get("Content-Encoding") == "gzip" else body)
        self.send_response(200)
        self.send_header("Content-Type", "application/x-protobuf")
        self.send_header("Content-Length", "0")
        self.end_headers()

    def log_message(self, *_: object) -> None:
        pass


def decoded(body: bytes) -> Any:
    """Return the one resource of a push, with its metrics."""
    service = importlib.import_module("opentelemetry.proto.collector.metrics.v1.metrics_service_pb2")
    (resource,) = service.ExportMetricsServiceRequest.FromString(body).resource_metrics
    return resource
