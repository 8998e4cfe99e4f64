"""A model server behind a real socket, with the faults that servers have; run as a process it looks like one of its kind.

`python scripted_server.py KIND FAULT [--port PORT]` prints its port and serves until it is ended.
"""

from __future__ import annotations

import socket
import sys
import threading
import time

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

FAULTS = (
    "none", "chunked", "closing", "hang", "large", "large_chunked", "html", "denied", "redirect", "missing", "loris",
    "garbage", "nothing", "broken", "other",
)  # fmt: skip


class ScriptedServer:
    """Serves what `body` returns at each request, with a fault; at the paths in `pages` that body and fault.

    Counts connections and requests; closed by its creator.
    """

    def __init__(self, body: Callable[[], bytes], fault: str = "none", host: str = "127.0.0.1", port: int = 0) -> None:
        self.fault = fault
        self.requests: list[bytes] = []
        self.connections = 0
        self.pages: dict[bytes, tuple[bytes, str]] = {}
        self._body = body
        self._closed = threading.Event()
        self._listener = socket.create_server((host, port))
        self.port = self._listener.getsockname()[1]
        self._threads: list[threading.Thread] = []
        self._sockets: list[socket.socket] = []
        self._thread = threading.Thread(target=self._accept, daemon=True)
        self._thread.start()

    def close(self) -> None:
        """End it, with all its connections."""
        self._closed.set()
        for one in (self._listener, *self._sockets):
            try:
                one.shutdown(socket.SHUT_RDWR)
            except OSError:
                pass
            one.close()
        for thread in (self._thread, *self._threads):
            thread.join(5)

    def _accept(self) -> None:
        while not self._closed.is_set():
            try:
                client, _ = self._listener.accept()
            except OSError:
                return
            self.connections += 1
            self._sockets.append(client)
            thread = threading.Thread(target=self._serve, args=(client,), daemon=True)
            self._threads.append(thread)
            thread.start()

    def _serve(self, client: socket.socket) -> None:
        try:
            while True:
                request = b""
                while b"\r\n\r\n" not in request:
                    piece = client.recv(4096)
                    if not piece:
                        return
                    request += piece
                self.requests.append(request)
                if not self._answer(client, request.split()[1]):
                    return
        except OSError:
            return
        finally:
            client.close()

    def _answer(self, client: socket.socket, path: bytes) -> bool:
        """Send one answer; return whether the connection stays."""
        body, fault = self.pages.get(path) or (self._body(), self.fault)
        head = b"HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\n"
        whole = head + b"Content-Length: %d\r\n\r\n" % len(body) + body
        if fault == "none":
            client.sendall(whole)
        elif fault == "chunked":
            half = len(body) // 2
            client.sendall(head + b"Transfer-Encoding: chunked\r\n\r\n")
            for part in (body[:half], body[half:]):
                client.sendall(b"%x\r\n" % len(part) + part + b"\r\n")
            client.sendall(b"0\r\n\r\n")
        elif fault == "closing":
            client.sendall(b"HTTP/1.0 200 OK\r\n\r\n" + body)
            return False
        elif fault == "hang":
            self._closed.wait(60)
        elif fault == "large":
            client.sendall(head + b"Content-Length: 10485760\r\n\r\n" + b"x 1\n" * 2621440)
        elif fault == "large_chunked":
            client.sendall(head + b"Transfer-Encoding: chunked\r\n\r\n")
            while not self._closed.is_set():
                client.sendall(b"10000\r\n" + b"y" * 65536 + b"\r\n")
        elif fault == "html":
            client.sendall(b"HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nContent-Length: 6\r\n\r\n<html>")
        elif fault in ("denied", "redirect", "missing", "broken"):
            status = {"denied": 401, "redirect": 302, "missing": 404, "broken": 500}[fault]
            client.sendall(b"HTTP/1.1 %d No\r\nLocation: http://127.0.0.1:1/\r\nContent-Length: 0\r\n\r\n" % status)
        elif fault == "loris":
            for at in range(len(whole)):
                if self._closed.wait(0.02):
                    return False
                client.sendall(whole[at : at + 1])
        elif fault == "garbage":
            client.sendall(b"\x00\xff" * 20000)
            return False
        elif fault == "nothing":
            return False
        elif fault == "other":
            client.sendall(head + b"Content-Length: 9\r\n\r\nup_time 1")
        return True


def main() -> None:
    from tests.unit.serving import answers

    kind, fault = sys.argv[1:3]
    port = int(sys.argv[sys.argv.index("--port") + 1]) if "--port" in sys.argv else 0
    start = time.monotonic()

    def body() -> bytes:
        if kind == "vllm":
            return answers.vllm(generated=1000.0 * (time.monotonic() - start)).encode()
        made = getattr(answers, kind.upper() if kind == "ollama" else kind.replace(".", "_"))
        return (made if isinstance(made, str) else made()).encode()

    server = ScriptedServer(body, fault, port=port)
    print(server.port, flush=True)
    threading.Event().wait()


if __name__ == "__main__":
    main()
