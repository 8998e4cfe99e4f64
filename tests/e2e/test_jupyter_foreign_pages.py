"""Pages of other servers against every path of the JupyterLab extension, with the token, which Jupyter itself takes from any page."""

from __future__ import annotations

import http.client
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

pytest.importorskip("jupyterlab")

from tornado.web import RequestHandler

from gpulse.surfaces.jupyter.handlers import GpulseExtension, StreamHandler
from tests import page_requests
from tests.e2e.jupyter import BASE, NEWEST, TOKEN, JupyterServer, install, surroundings

METHODS = ("post", "put", "patch", "delete")
LET_IN = (400, 404, 422)  # what was sent is read, and is no request
UPGRADE = {
    "Connection": "Upgrade",
    "Upgrade": "websocket",
    "Sec-WebSocket-Version": "13",
    "Sec-WebSocket-Key": "AAAAAAAAAAAAAAAAAAAAAA==",
}


def routes() -> list[tuple[str, Any]]:
    """Return a path of each route of the extension, and its handler."""
    found: Any = SimpleNamespace(handlers=[])
    GpulseExtension.initialize_handlers(found)
    plain = [
        (pattern.replace("(demo/)?", "demo/").replace("([a-z-]+)", "alerts"), handler)
        for pattern, handler in found.handlers
    ]
    assert not [path for path, _ in plain if set(path) & set("()[]?")], "write here what stands for it"
    return plain


CHANGES = [
    pytest.param(path, method.upper(), id=f"{method.upper()} {path}")
    for path, handler in routes()
    for method in METHODS
    if getattr(handler, method) is not getattr(RequestHandler, method)
]


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[JupyterServer]:
    prefix = install(tmp_path_factory.mktemp("wheel"))
    folder: Path = tmp_path_factory.mktemp("lab")
    with JupyterServer(folder, surroundings(prefix, folder, GPULSE_SOURCE="demo"), NEWEST / "bin") as server:
        yield server


def status(server: JupyterServer, path: str, method: str, headers: dict[str, str]) -> int:
    """Send a request with the token, and return the status."""
    own = page_requests.at(headers, f"http://127.0.0.1:{server.port}")
    connection = http.client.HTTPConnection("127.0.0.1", server.port, timeout=60)
    try:
        connection.request(
            method,
            f"{BASE}{path.lstrip('/')}",
            None if method == "GET" else "[]",
            {"Authorization": f"token {TOKEN}"} | own,
        )
        return connection.getresponse().status
    finally:
        connection.close()


def named(headers: dict[str, dict[str, str]]) -> list[Any]:
    return [pytest.param(value, id=key or "none") for key, value in headers.items()]


def test_the_table_has_what_can_be_changed() -> None:
    assert {"POST /gpulse/api/demo/cells", "POST /gpulse/api/demo/alerts"} <= {one.id for one in CHANGES}


@pytest.mark.parametrize(("path", "method"), CHANGES)
@pytest.mark.parametrize("headers", named(page_requests.TAKEN))
def test_own_pages_and_programs_may_change_things(
    server: JupyterServer, path: str, method: str, headers: dict[str, str]
) -> None:
    assert status(server, path, method, headers) in LET_IN


@pytest.mark.parametrize(("path", "method"), CHANGES)
@pytest.mark.parametrize("headers", named(page_requests.FOREIGN))
def test_other_pages_may_not(server: JupyterServer, path: str, method: str, headers: dict[str, str]) -> None:
    assert status(server, path, method, headers) == 403


@pytest.mark.parametrize(("path", "method"), CHANGES)
@pytest.mark.parametrize("headers", named(page_requests.WRONG_TYPES))
def test_a_change_is_sent_as_json(server: JupyterServer, path: str, method: str, headers: dict[str, str]) -> None:
    assert status(server, path, method, headers) == 415


@pytest.mark.parametrize("path", [path for path, handler in routes() if handler is not StreamHandler])
def test_other_pages_cannot_read(server: JupyterServer, path: str) -> None:
    for headers in ({"Origin": "http://127.0.0.1:1"}, {"Sec-Fetch-Site": "same-site", "Sec-Fetch-Mode": "no-cors"}):
        assert status(server, path, "GET", headers) == 403
    assert status(server, path, "GET", {}) != 403


@pytest.mark.parametrize("headers", named(page_requests.FOREIGN))
def test_other_pages_do_not_get_the_stream(server: JupyterServer, headers: dict[str, str]) -> None:
    kept = {name: value for name, value in headers.items() if name != "content-type"}
    if kept.get("sec-fetch-mode") == "navigate":
        kept["sec-fetch-mode"] = "websocket"
    assert status(server, f"/gpulse/api/demo/stream?token={TOKEN}", "GET", kept | UPGRADE) == 403


@pytest.mark.parametrize(
    "headers", [{}, {"Origin": page_requests.OWN}, {"Origin": page_requests.OWN, "Sec-Fetch-Site": "same-origin"}]
)
def test_own_pages_and_programs_get_the_stream(server: JupyterServer, headers: dict[str, str]) -> None:
    assert status(server, "/gpulse/api/demo/stream", "GET", headers | UPGRADE) == 101
