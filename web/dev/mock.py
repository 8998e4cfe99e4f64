"""A stand-in for `gpulse serve`: the demo machine with some hours of past, for work on the page without hardware.

    PYTHONPATH=../src python3 dev/mock.py --port 9441 --token t --hours 1

`GET /mock/quiet` stops the samples while the connections stay, `/mock/loud` lets them come again, `/mock/lose?gpu=N` takes a
GPU away; for tests of the page alone.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import queue
import sys
import tempfile
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import parse_qs, urlsplit

from gpulse.analysis.events import EventDetector
from gpulse.live import wire
from gpulse.model.catalog import GPU_METRICS, HOST_METRICS, PROCESS_METRICS
from gpulse.model.codec import to_plain
from gpulse.model.select import EVERYTHING
from gpulse.sampling.clock import ManualClock
from gpulse.sampling.sampler import Sampler
from gpulse.sources.simulated.source import SimulatedSource
from gpulse.store.history import HistoryReader, HistoryWriter

STATIC = os.path.join(os.path.dirname(__file__), "..", "..", "src", "gpulse", "surfaces", "web", "static")
CSP = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; "
    "base-uri 'none'; form-action 'self'; frame-ancestors 'none'"
)
TYPES = {".html": "text/html; charset=utf-8", ".js": "text/javascript", ".css": "text/css", ".svg": "image/svg+xml"}
UNKNOWN = {"processes", "instances", "gaps"}


class HurriedClock(ManualClock):
    """A clock turned by hand through the past, and the real one from then on."""

    live = False

    def now(self) -> float:
        return time.time() if self.live else self._now

    def monotonic(self) -> float:
        return self.now() - self._start


class Machine:
    """The demo machine: a history behind it, the last samples, and who listens."""

    def __init__(self, hours: float, interval: float) -> None:
        self.run = f"{os.getpid():x}{int(time.time()):x}"
        self.interval, self.started = interval, time.time()
        self.number, self.quiet, self.lost = 0, False, -1
        self.ring: list[tuple[int, bytes]] = []
        self.listeners: list[queue.Queue[bytes]] = []
        self.path = os.path.join(tempfile.mkdtemp(), "history.db")
        self.clock = HurriedClock(time.time() - hours * 3600)
        self.sampler = Sampler(SimulatedSource(clock=self.clock.monotonic), EVERYTHING, clock=self.clock).open()
        self.writer = HistoryWriter(self.path, clock=self.clock)
        self.detector = EventDetector()
        while self.clock.now() < time.time():
            self._keep()
            self.clock.sleep(1.0 if time.time() - self.clock.now() < 3700 else 10.0)
        self.clock.live = True
        self._keep()
        self.reader = HistoryReader(self.path)
        threading.Thread(target=self._live, daemon=True).start()

    def _keep(self) -> None:
        snapshot = self.sampler.read()
        self.writer.add(snapshot, self.detector.observe(snapshot))
        self.time = snapshot.time
        self.plain = {**to_plain(snapshot), "time": snapshot.time}

    def _live(self) -> None:
        while True:
            time.sleep(self.interval - time.time() % self.interval)
            if not self.quiet:
                self._keep()
                self._lose()
                self._send()

    def _lose(self) -> None:
        for gpu in self.plain["gpus"]:
            if gpu["index"] == self.lost:
                kept = {key: gpu[key] for key in ("index", "uuid", "name")}
                gpu.clear()
                gpu.update(kept, state="lost", since=self.time - 5, gaps={"utilization": "lost"}, processes=[])

    def _send(self) -> None:
        self.number += 1
        gpus = [{k: v for k, v in g.items() if k not in UNKNOWN and v is not None} for g in self.plain["gpus"]]
        self._say("sample", {"time": self.time, "gpus": gpus, "host": self.plain["host"]})
        if self.number % 3 == 0:
            gpus = [{"uuid": g["uuid"], "processes": g["processes"]} for g in self.plain["gpus"]]
            self._say("processes", {"time": self.time, "gpus": gpus})

    def _say(self, event: str, data: object) -> None:
        text = f"id: {self.run}-{self.number}\nevent: {event}\ndata: {json.dumps(data, separators=(',', ':'))}\n\n"
        if event == "sample":
            self.ring = [*self.ring[-120:], (self.number, text.encode())]
        for listener in list(self.listeners):
            listener.put(text.encode())


def catalog(metrics: object) -> list[dict[str, object]]:
    """Return what the page needs to know of each metric."""
    return [
        {"key": m.key, "title": m.title, "short": m.short, "unit": m.unit.name, "symbol": m.unit.symbol, "kind": m.kind,
         "group": m.group, "help": m.help, "low": m.low, "high": m.high, "warn": m.warn, "critical": m.critical}
        for m in metrics.values()  # type: ignore[attr-defined]
    ]  # fmt: skip


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
            answer = getattr(self, "_" + "_".join(parts).replace("-", "_").replace(".", "_"), None)
            if parts[0] in ("", "static"):
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

    def _api_snapshot(self, asked: dict[str, str]) -> None:
        machine = self.machine
        gpus = machine.plain["gpus"]
        self._json({
            **machine.plain,
            "alerts": [{"time": machine.started, "rule": "hot", "uuid": gpus[6]["uuid"], "state": "fire",
                        "text": "GPU 6 is at 89 °C, its limit"}],
            "verdicts": [{"uuid": gpus[4]["uuid"], "text": "GPU 4 was idle 31 % of the time: preprocessing limits it."},
                         {"uuid": gpus[7]["uuid"], "text": "GPU 7 holds 38.0 GiB and has done nothing for 40 minutes."}],
            "server": {"version": "0.0-mock", "started": machine.started, "interval": machine.interval, "commands": True, "history": True},
        })  # fmt: skip

    def _api_metrics_catalog(self, asked: dict[str, str]) -> None:
        self._json({"gpu": catalog(GPU_METRICS), "host": catalog(HOST_METRICS), "process": catalog(PROCESS_METRICS)})

    def _api_history(self, asked: dict[str, str]) -> None:
        start, end, points = float(asked["from"]), float(asked["to"]), int(asked.get("points", "600"))
        keys = asked["metrics"].split(",")
        mine = [key for key in keys if not key.startswith("host.")]
        hosts = [key[5:] for key in keys if key.startswith("host.")]
        uuids = None if asked.get("gpus", "all") == "all" else asked["gpus"].split(",")
        reader = self.machine.reader
        series = (reader.series(mine, uuids, start, end, points) if mine else []) + (
            reader.host_series(hosts, start, end, points) if hosts else []
        )
        lines = [
            {"uuid": s.uuid, "key": s.key if s.uuid else f"host.{s.key}", "times": s.times,
             **{part: [None if math.isnan(v) else v for v in getattr(s, part)] for part in ("min", "mean", "max")}}
            for s in series
        ]  # fmt: skip
        found = {"from": start, "to": end, "gpus": [
            {"uuid": g.uuid, "index": g.index, "name": g.name, "memory_total": g.memory_total} for g in reader.gpus(start, end)
        ]}  # fmt: skip
        if lines and all(line["times"] == lines[0]["times"] for line in lines):
            found["times"] = lines[0]["times"]
            for line in lines:
                del line["times"]
        self._json({**found, "series": lines})

    def _api_processes(self, asked: dict[str, str]) -> None:
        machine = self.machine
        if "from" in asked:
            uses = machine.reader.processes(float(asked["from"]), float(asked["to"]))
            found = {"uses": [
                {"uuid": u.uuid, "pid": u.pid, "first": u.first, "last": u.last, "memory_most": u.memory_most, **u.text} for u in uses
            ]}  # fmt: skip
        else:
            found = {
                "processes": [
                    {"gpu": g["index"], "uuid": g["uuid"], **p} for g in machine.plain["gpus"] for p in g["processes"]
                ]
            }
        self._json({"time": machine.time, **found})

    def _api_events(self, asked: dict[str, str]) -> None:
        events = self.machine.reader.events(float(asked["from"]), float(asked.get("to", time.time())))
        self._json({"events": [wire.event(event) for event in events]})

    def _api_stream(self, asked: dict[str, str]) -> None:
        machine = self.machine
        mine: queue.Queue[bytes] = queue.Queue()
        run, _, number = self.headers.get("Last-Event-ID", "").partition("-")
        self.send_response(200)
        self.send_header("Content-Type", "text/event-stream")
        self.send_header("Connection", "close")
        self.end_headers()
        if run == machine.run:
            self.wfile.write(b"".join(text for at, text in machine.ring if at > int(number)))
        elif run:
            self.wfile.write(b"event: hole\ndata: {}\n\n")
        machine.listeners.append(mine)
        try:
            while True:
                try:
                    self.wfile.write(mine.get(timeout=15))
                except queue.Empty:
                    self.wfile.write(b": alive\n\n")
        finally:
            machine.listeners.remove(mine)

    def _mock_quiet(self, asked: dict[str, str]) -> None:
        self.machine.quiet = True
        self._json({})

    def _mock_loud(self, asked: dict[str, str]) -> None:
        self.machine.quiet = False
        self._json({})

    def _mock_lose(self, asked: dict[str, str]) -> None:
        self.machine.lost = int(asked.get("gpu", "-1"))
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
    options = parser.parse_args()
    Handler.machine, Handler.token = Machine(options.hours, options.interval), options.token
    server = Server(("127.0.0.1", options.port), Handler)
    sys.stdout.write(f"http://127.0.0.1:{options.port}/?token={options.token}\n")
    sys.stdout.flush()
    server.serve_forever()


if __name__ == "__main__":
    main()
