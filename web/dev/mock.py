"""A stand-in for `gpulse serve`: the demo machine with some hours of past, for work on the page without hardware.

    PYTHONPATH=../src python3 dev/mock.py --port 9441 --token t --hours 1 --gpus 8

The API is the server's own; only HTTP is done here. `GET /mock/quiet` stops the samples while the connections stay, `/mock/loud` lets
them come again, `/mock/lose?gpu=N` takes a GPU away, `/mock/listeners` says how many
streams are open; for tests of the page alone.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import tempfile
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import parse_qs, urlsplit

from gpulse.analysis.events import EventDetector
from gpulse.delivery.alerts import Alerts
from gpulse.live import STATIC
from gpulse.live.api import QUESTIONS, ApiRequest
from gpulse.live.hub import Hub, wanted
from gpulse.live.parameters import Refusal, read
from gpulse.live.past import Past
from gpulse.model.catalog import Gpu
from gpulse.model.snapshot import Snapshot
from gpulse.sampling.clock import ManualClock
from gpulse.sampling.sampler import Sampler
from gpulse.sources.simulated.source import SimulatedSource
from gpulse.store.history import HistoryWriter

CSP = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; "
    "base-uri 'none'; form-action 'self'; frame-ancestors 'none'"
)
TYPES = {".html": "text/html; charset=utf-8", ".js": "text/javascript", ".css": "text/css", ".svg": "image/svg+xml"}
JUDGED = 90  # seconds of the past that the hub is given too, so that it has verdicts and alerts


class HurriedClock(ManualClock):
    """A clock turned by hand through the past, and the real one from then on."""

    live = False

    def now(self) -> float:
        return time.time() if self.live else self._now

    def monotonic(self) -> float:
        return self.now() - self._start


class Machine:
    """The demo machine: a history behind it, a hub for those who listen, and faults that tests ask for."""

    def __init__(self, hours: float, interval: float, gpus: int, hole: tuple[float, float]) -> None:
        self.interval, self.gpus = interval, gpus
        self.quiet, self.lost, self.lost_since, self.listeners = False, -1, 0.0, 0
        self.news = threading.Condition()
        path = os.path.join(tempfile.mkdtemp(), "history.db")
        self.clock = HurriedClock(time.time() - hours * 3600)
        self.sampler = Sampler(SimulatedSource(clock=self.clock.monotonic), wanted(), clock=self.clock).open()
        self.writer = HistoryWriter(path, clock=self.clock)
        alerts = Alerts({"log": False}, lambda text: None)
        self.hub = Hub(None, interval, alerts=alerts, keep=self.writer.add)
        self.hub.listen(self._tell)
        self._recall(hole)
        self.api = ApiRequest(self.hub, Past(path))
        threading.Thread(target=self._live, daemon=True).start()

    def _recall(self, hole: tuple[float, float]) -> None:
        """Write the past, without the stretch between two numbers of seconds ago."""
        detector = EventDetector()
        while (left := time.time() - self.clock.now()) > 0:
            if not hole[1] < left < hole[0]:
                snapshot = self._read()
                if left < JUDGED:
                    self.hub.add(snapshot)
                else:
                    self.writer.add(snapshot, detector.observe(snapshot))
            self.clock.sleep(1.0 if left < 3700 else 10.0)
        self.clock.live = True
        self.hub.add(self._read())

    def _read(self) -> Snapshot:
        snapshot = self.sampler.read()
        some = len(snapshot.gpus)
        gpus = [self._copy(snapshot.gpus[at % some], at, some) for at in range(self.gpus)]
        return Snapshot(snapshot.time, tuple(gpus), snapshot.host, snapshot.driver, snapshot.problems)

    def _copy(self, gpu: Gpu, at: int, some: int) -> Gpu:
        if at == self.lost:
            known = {"index": at, "uuid": self._uuid(gpu, at, some), "name": gpu.name}
            return Gpu(known, {"utilization": "lost"}, state="lost", since=self.lost_since)
        if at < some:
            return gpu
        values = dict(gpu.items()) | {"index": at, "uuid": self._uuid(gpu, at, some)}
        return Gpu(values, gpu.gaps, state=gpu.state, since=gpu.since, processes=gpu.processes)

    @staticmethod
    def _uuid(gpu: Gpu, at: int, some: int) -> str:
        return f"{gpu.uuid}" if at < some else f"GPU-{at:08d}{(gpu.uuid or '')[12:]}"

    def _live(self) -> None:
        while True:
            time.sleep(self.interval - time.time() % self.interval)
            if not self.quiet:
                self.hub.add(self._read())

    def _tell(self) -> None:
        with self.news:
            self.news.notify_all()


class Handler(BaseHTTPRequestHandler):
    """One request; `machine` and `token` are set on the class."""

    protocol_version = "HTTP/1.1"
    machine: Machine
    token: str

    def log_message(self, *args: object) -> None:
        pass

    def do_GET(self) -> None:
        url = urlsplit(self.path)
        asked = {key: values[0] for key, values in parse_qs(url.query).items()}
        try:
            if asked.get("token") == self.token and url.path == "/":
                return self._redirect()
            if not self._known():
                return self._problem(401, "A token is needed.")
            parts = url.path.strip("/").split("/")
            answer = getattr(self, "_" + "_".join(parts), None)
            question = next((one for one in QUESTIONS if one.path == url.path), None)
            if question is not None:
                self._api(question, asked)
            elif parts[0] in ("", "static"):
                self._file("index.html" if parts[0] == "" else parts[-1])
            elif answer is None:
                self._problem(404, "There is no such page.")
            else:
                answer(asked)
        except (BrokenPipeError, ConnectionResetError):
            self.close_connection = True

    def _known(self) -> bool:
        bearer = self.headers.get("Authorization") == f"Bearer {self.token}"
        return not self.token or bearer or f"gpulse_token={self.token}" in self.headers.get("Cookie", "")

    def _redirect(self) -> None:
        self.send_response(303)
        self.send_header("Location", self.path.replace(f"token={self.token}", "").rstrip("?&") or "/")
        self.send_header("Set-Cookie", f"gpulse_token={self.token}; HttpOnly; SameSite=Strict")
        self.send_header("Content-Length", "0")
        self.end_headers()

    def _body(self, status: int, kind: str, body: bytes) -> None:
        self.send_response(status)
        for name, value in (
            ("Content-Type", kind),
            ("Content-Length", str(len(body))),
            ("Content-Security-Policy", CSP),
        ):
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(body)

    def _json(self, data: object, status: int = 200, kind: str = "application/json") -> None:
        self._body(status, kind, json.dumps(data, separators=(",", ":")).encode())

    def _problem(self, status: int, detail: str) -> None:
        self._json(
            {"type": "about:blank", "title": "Problem", "status": status, "detail": detail},
            status,
            "application/problem+json",
        )

    def _file(self, name: str) -> None:
        with open(os.path.join(STATIC, os.path.basename(name)), "rb") as file:
            self._body(200, TYPES[os.path.splitext(name)[1]], file.read())

    def _api(self, question: object, asked: dict[str, str]) -> None:
        try:
            body = question.answer(self.machine.api, read(question.parameters, asked))  # type: ignore[attr-defined]
        except Refusal as refusal:
            self._problem(refusal.status, refusal.detail)
        else:
            self._body(200, "application/json", body)

    def _api_stream(self, asked: dict[str, str]) -> None:
        machine = self.machine
        self.send_response(200)
        self.send_header("Content-Type", "text/event-stream")
        self.send_header("Connection", "close")
        self.end_headers()
        last = self.headers.get("Last-Event-ID", "")
        at, hole = machine.hub.resume(last) if last else (0, None)
        if not last:
            at, text = machine.hub.greeting()
            self.wfile.write(text)
        elif hole is not None:
            self.wfile.write(b'event: hole\ndata: {"from":%d}\n\n' % hole)
        machine.listeners += 1
        try:
            while True:
                for entry in machine.hub.after(at):
                    self.wfile.write(entry.data)
                    at = entry.number
                with machine.news:
                    if not machine.news.wait(5):
                        self.wfile.write(b": alive\n\n")
        finally:
            machine.listeners -= 1

    def _api_monitors(self, asked: dict[str, str]) -> None:
        self._json({"monitors": []})

    def _mock_listeners(self, asked: dict[str, str]) -> None:
        self._json({"listeners": self.machine.listeners})

    def _mock_quiet(self, asked: dict[str, str]) -> None:
        self.machine.quiet = True
        self._json({})

    def _mock_loud(self, asked: dict[str, str]) -> None:
        self.machine.quiet = False
        self._json({})

    def _mock_lose(self, asked: dict[str, str]) -> None:
        self.machine.lost, self.machine.lost_since = int(asked.get("gpu", "-1")), time.time() - 5
        self._json({})


class Server(ThreadingHTTPServer):
    """Says nothing of clients that go away."""

    daemon_threads = True

    def handle_error(self, request: object, client_address: object) -> None:
        pass


def main() -> None:
    """Fill the past and serve until stopped."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--port", type=int, default=9441)
    parser.add_argument("--token", default="")
    parser.add_argument("--hours", type=float, default=1.0)
    parser.add_argument("--interval", type=float, default=1.0)
    parser.add_argument("--gpus", type=int, default=8)
    parser.add_argument("--hole", default="0:0", help="outage in the past, from:to in seconds ago, for example 300:240")
    options = parser.parse_args()
    first, _, last = options.hole.partition(":")
    hole = (float(first), float(last))
    Handler.machine, Handler.token = Machine(options.hours, options.interval, options.gpus, hole), options.token
    server = Server(("127.0.0.1", options.port), Handler)
    sys.stdout.write(f"http://127.0.0.1:{options.port}/?token={options.token}\n")
    sys.stdout.flush()
    server.serve_forever()


if __name__ == "__main__":
    main()
