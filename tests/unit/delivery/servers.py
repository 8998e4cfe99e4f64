"""Machines that take alerts over HTTP, well or badly, each in a thread of its own."""

from __future__ import annotations

import http.server
import json
import ssl
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any


class Taken:
    """What a server was sent; `answers` are the codes it gives, the last for ever; it waits for `gate` before each."""

    def __init__(self, answers: Sequence[int], headers: dict[str, str]) -> None:
        self.answers = list(answers)
        self.answer_headers = headers
        self.bodies: list[Any] = []
        self.headers: list[dict[str, str]] = []
        self.gate = threading.Event()
        self.gate.set()
        self.asked = threading.Event()
        self.url = ""
        self.paths: list[str] = []


@contextmanager
def server(*answers: int, tls: ssl.SSLContext | None = None, **headers: str) -> Iterator[Taken]:
    """Serve on the loopback until the block ends."""
    taken = Taken(answers or (200,), headers)

    class Handler(http.server.BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["Content-Length"]))
            taken.asked.set()
            taken.gate.wait(30)
            taken.bodies.append(json.loads(body))
            taken.paths.append(self.path)
            taken.headers.append(dict(self.headers))
            code = taken.answers.pop(0) if len(taken.answers) > 1 else taken.answers[0]
            self.send_response(code)
            for name, value in taken.answer_headers.items():
                self.send_header(name.replace("_", "-"), value)
            self.send_header("Content-Length", "0")
            self.end_headers()

        def do_GET(self) -> None:
            taken.bodies.append("GET")
            self.send_response(200)
            self.end_headers()

        def log_message(self, *_: Any) -> None:
            pass

    made = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    made.handle_error = lambda *_: None  # type: ignore[method-assign]  # a client that gave up is part of the game
    if tls is not None:
        made.socket = tls.wrap_socket(made.socket, server_side=True)
    thread = threading.Thread(target=made.serve_forever, args=(0.01,), daemon=True)
    thread.start()
    taken.url = f"http{'s' if tls else ''}://127.0.0.1:{made.server_address[1]}/services/SECRET"
    try:
        yield taken
    finally:
        taken.gate.set()
        made.shutdown()
        made.server_close()
        thread.join()
