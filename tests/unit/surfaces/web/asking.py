"""Asking an app without a network: one request in, one answer out."""

from __future__ import annotations

import asyncio
import gzip
import json
from collections.abc import Awaitable, Callable
from typing import Any

from gpulse.live.hub import Hub
from gpulse.model.catalog import Gpu, Host, Process
from gpulse.model.snapshot import Snapshot
from gpulse.surfaces.web.access import Hosts
from gpulse.surfaces.web.gate import Gate, ServerSettings
from gpulse.surfaces.web.server import make_app

TOKEN = "0123456789abcdefghijklmnop"
START = 1_700_000_000.0
UUIDS = ("GPU-0", "GPU-1")


class Answer:
    """What came back."""

    def __init__(self, status: int, headers: list[tuple[bytes, bytes]], body: bytes) -> None:
        self.status = status
        self.headers = {key.decode().lower(): value.decode("latin-1") for key, value in headers}
        self.raw = body
        self.body = gzip.decompress(body) if self.headers.get("content-encoding") == "gzip" else body

    @property
    def json(self) -> Any:
        """The JSON value in it."""
        return json.loads(self.body)


def scope_of(target: str, method: str = "GET", **headers: str) -> dict[str, Any]:
    """Return the scope of a request; `_` in the name of a header is a dash."""
    from urllib.parse import unquote

    path, _, query = target.partition("?")
    named = {"host": "localhost:9440", **{key.replace("_", "-"): value for key, value in headers.items()}}
    return {
        "type": "http",
        "http_version": "1.1",
        "method": method,
        "scheme": "http",
        "path": unquote(path),
        "raw_path": path.encode(),
        "query_string": query.encode(),
        "root_path": "",
        "headers": [(key.encode(), value.encode("utf-8")) for key, value in named.items() if value is not None],
        "server": ("127.0.0.1", 9440),
        "client": ("127.0.0.1", 50_000),
    }


def ask(
    app: Callable[..., Awaitable[None]],
    target: str,
    method: str = "GET",
    *,
    known: bool = True,
    body: str = "",
    **headers: str,
) -> Answer:
    """Ask once; `known` shows the token. What is sent is JSON, unless the headers name another type."""
    if known:
        headers.setdefault("authorization", f"Bearer {TOKEN}")
    if method == "POST":
        headers.setdefault("content-type", "application/json")
    started: dict[str, Any] = {}
    parts: list[bytes] = []

    async def receive() -> dict[str, Any]:
        return {"type": "http.request", "body": body.encode(), "more_body": False}

    async def send(message: dict[str, Any]) -> None:
        if message["type"] == "http.response.start":
            started.update(message)
        else:
            parts.append(message.get("body", b""))

    async def once() -> None:
        await app(scope_of(target, method, **headers), receive, send)

    asyncio.run(once())
    return Answer(started["status"], list(started["headers"]), b"".join(parts))


def sample(number: int = 0, command: str = "python train.py", name: str = "python") -> Snapshot:
    """Return a look at a machine with two GPUs and a process, `number` seconds after START."""
    process = Process({"pid": 42, "name": name, "user": "ada", "command": command, "memory_used": 1 << 30})
    gpus = tuple(
        Gpu(
            {"index": index, "uuid": uuid, "name": "Scripted", "serial": "S1", "utilization": float(number % 100), "memory_total": 8 << 30,
             "temperature": 40 + index, "throttle_reasons": ()},
            {"power_draw": "denied", "fan_speed": "unsupported"},
            processes=(process,) if index == 0 else (),
        )
        for index, uuid in enumerate(UUIDS)
    )  # fmt: skip
    return Snapshot(START + number, gpus, Host({"name": "box", "cpu_percent": 12.34567}), {"version": "1.0"})


def hub_of(count: int = 1, **more: Any) -> Hub:
    """Return a hub without a sampler that has taken so many samples."""
    hub = Hub(None, 1.0, **more)
    for number in range(count):
        hub.add(sample(number))
    return hub


def app_of(hub: Hub | None = None, *, past: Any = None, metrics: Any = None, **more: Any) -> Gate:
    """Return an app as it is on loopback, with a token."""
    settings = {"token": TOKEN, "hosts": Hosts(["localhost", "127.0.0.1", "::1", "box"]), **more}
    return make_app(hub or hub_of(), ServerSettings(**settings), past=past, metrics=metrics)
