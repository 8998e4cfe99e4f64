"""Pages of other servers against real servers: in a real Chromium, on another port of the same host, and through a reverse proxy."""

from __future__ import annotations

import http.client
import json
import threading
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("starlette")
pytest.importorskip("uvicorn")

from tests.e2e.browser import Browser, chromium
from tests.e2e.serving import Serving, plain_environment

SILENCE = {"action": "silence", "for": "24h", "reason": "page"}
needs_browser = pytest.mark.skipif(chromium() is None, reason="no Chromium")


@contextmanager
def listening(handler: type[BaseHTTPRequestHandler]) -> Iterator[int]:
    """Run a server of another program on this host; return its port."""
    server = ThreadingHTTPServer(("127.0.0.1", 0), handler)
    server.daemon_threads = True
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    try:
        yield server.server_port
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


class Evil(BaseHTTPRequestHandler):
    """A page of somebody else, which keeps the cookies that it gets."""

    cookies: list[str]

    def do_GET(self) -> None:
        self.cookies.append(self.headers.get("Cookie", ""))
        self.send_response(200)
        self.send_header("Content-Type", "text/html")
        self.end_headers()
        self.wfile.write(b"<!doctype html><title>evil</title>")

    def log_message(self, format: str, *words: Any) -> None:
        pass


def proxy_to(port: int, host: str) -> type[BaseHTTPRequestHandler]:
    """Return the handler of a proxy that calls the server behind it by the name `host`, as nginx's $host or $proxy_host."""

    class Proxy(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            connection = http.client.HTTPConnection("127.0.0.1", port, timeout=60)
            body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
            kept = {name: value for name, value in self.headers.items() if name.lower() != "connection"}
            more = {"Host": host, "X-Forwarded-For": "10.0.0.1", "X-Forwarded-Proto": "http"}
            connection.request(self.command, self.path, body, kept | more)
            answer = connection.getresponse()
            self.send_response_only(answer.status)
            for name, value in answer.getheaders():
                if name.lower() not in ("transfer-encoding", "connection"):
                    self.send_header(name, value)
            self.end_headers()
            try:
                while data := answer.read1(65_536):
                    self.wfile.write(data)
            except (OSError, http.client.IncompleteRead):
                pass  # the page or the server has gone
            finally:
                connection.close()

        do_POST = do_GET  # noqa: N815

        def log_message(self, format: str, *words: Any) -> None:
            pass

    return Proxy


@pytest.fixture
def browser(tmp_path: Path) -> Iterator[Browser]:
    with closing(Browser(tmp_path / "profile")) as browser:
        yield browser


def served(folder: Path, *options: str) -> Serving:
    folder.mkdir()
    return Serving(folder, *options, environ=plain_environment(folder, no_proxy="*"))


def silences(server: Serving) -> list[str]:
    """Return the reasons of all silences, once the one that is added last is there: they are taken in order."""
    assert server.post("/api/alerts", SILENCE | {"reason": "last"})[0] == 200
    end = time.monotonic() + 60
    while "last" not in (found := [one["reason"] for one in server.json("/api/alerts")["silences"]]):
        assert time.monotonic() < end
        time.sleep(0.05)  # taken with the next sample
    return [reason for reason in found if reason != "last"]


def from_page(browser: Browser, address: str, kind: str, mode: str) -> str:
    """Let the page that is open send a request to silence all alerts; return what its script learns."""
    request = {
        "method": "POST",
        "mode": mode,
        "credentials": "include",
        "headers": {"Content-Type": kind},
        "body": json.dumps(SILENCE),
    }
    code = f"fetch({json.dumps(address)}, {json.dumps(request)}).then(a => `${{a.type}} ${{a.status}}`, e => e.name)"
    found: str = browser.evaluate(code)
    return found


@needs_browser
def test_a_page_on_another_port_can_neither_act_nor_read_nor_learn_the_token(tmp_path: Path, browser: Browser) -> None:
    Evil.cookies = []
    with served(tmp_path / "a") as first, served(tmp_path / "b") as second, listening(Evil) as evil:
        for server in (first, second):
            server.until("/readyz", 200)
            browser.open(server.link)
        for server in (first, second):  # neither has taken the other's cookie away
            browser.open(f"http://127.0.0.1:{server.port}/api/alerts")
            assert '"silences"' in browser.evaluate("document.body.textContent")
        alerts = f"http://127.0.0.1:{first.port}/api/alerts"
        browser.open(f"http://127.0.0.1:{evil}/")
        for kind, mode in (("text/plain", "no-cors"), ("text/plain", "cors"), ("application/json", "cors")):
            assert from_page(browser, alerts, kind, mode) == "TypeError"
        reading = f"fetch({alerts!r}, {{credentials: 'include'}}).then(a => a.text(), e => e.name)"
        assert browser.evaluate(reading) == "TypeError"
        stream = f"new EventSource('http://127.0.0.1:{first.port}/api/stream', {{withCredentials: true}})"
        opened = f"(s => new Promise(done => {{ s.onopen = () => done(true); s.onerror = () => (s.close(), done(false)); }}))({stream})"
        assert browser.evaluate(opened) is False
        name = json.dumps(SILENCE)[:-1] + ',"x":"'
        form = f"<iframe name=f></iframe><form method=post enctype=text/plain target=f action={alerts}><input name='{name}' value='\"}}'>"
        submit = "new Promise(done => { document.querySelector('iframe').onload = done; document.forms[0].submit(); })"
        browser.evaluate(f"(document.body.innerHTML = {json.dumps(form)}, {submit}.then(() => true))")
        assert silences(first) == silences(second) == []
        sent = " ".join(Evil.cookies)
        assert sent.count("gpulse_") >= 2, "this browser sends cookies to every port, which the test is about"
        assert first.token not in sent
        assert second.token not in sent


@needs_browser
def test_the_page_itself_may_silence(tmp_path: Path, browser: Browser) -> None:
    with served(tmp_path / "a") as server:
        server.until("/readyz", 200)
        browser.open(server.link)
        assert from_page(browser, "api/alerts", "application/json", "cors") == "basic 200"
        assert from_page(browser, "api/alerts", "text/plain", "cors") == "basic 415"
        assert silences(server) == ["page"]


@needs_browser
@pytest.mark.parametrize("host", ["127.0.0.1", "localhost:1"])
def test_the_page_behind_a_proxy_may_silence(tmp_path: Path, browser: Browser, host: str) -> None:
    """The first is nginx's $host, which has no port; the second is what a proxy sends that is not told to pass the name."""
    with served(tmp_path / "a", "--base-path", "/gpulse/") as server, listening(proxy_to(server.port, host)) as proxy:
        server.until("/readyz", 200)
        browser.open(f"http://127.0.0.1:{proxy}/gpulse/?token={server.token}")
        browser.until("document.querySelector('article')")
        assert browser.evaluate("location.search") == ""
        assert from_page(browser, "api/alerts", "application/json", "cors") == "basic 200"
        assert silences(server) == ["page"]


def test_what_a_stolen_cookie_is_not(tmp_path: Path) -> None:
    """Whoever gets the cookie of one server has neither its token nor a way into another server with the same token."""
    token = tmp_path / "token"
    with (
        served(tmp_path / "a", "--token-file", str(token)) as first,
        served(tmp_path / "b", "--token-file", str(token)) as second,
    ):
        assert first.token == second.token
        cookie = first.get(f"/?token={first.token}", known=False)[1]["set-cookie"].partition(";")[0]
        value = cookie.partition("=")[2]
        assert first.get("/api/alerts", known=False, cookie=cookie)[0] == 200
        assert first.get("/api/alerts", known=False, Authorization=f"Bearer {value}")[0] == 401
        assert second.get("/api/alerts", known=False, cookie=cookie)[0] == 401
        name = second.get(f"/?token={first.token}", known=False)[1]["set-cookie"].partition("=")[0]
        assert second.get("/api/alerts", known=False, cookie=f"{name}={value}")[0] == 401
