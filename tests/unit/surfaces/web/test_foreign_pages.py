"""What pages of other servers can do: nothing, on any path that the server has."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

pytest.importorskip("starlette")

from gpulse.live.fleet import FleetHub
from gpulse.model.serving import Tariff
from gpulse.remote.fleet import Fleet
from gpulse.surfaces.web.access import Hosts
from gpulse.surfaces.web.gate import Gate, ServerSettings
from gpulse.surfaces.web.server import make_fleet_app
from tests import page_requests
from tests.unit.surfaces.web.asking import TOKEN, Answer, app_of, ask

OWN = "http://localhost:9440"
READS = {"GET", "HEAD"}
LET_IN = (404, 422)  # what was sent is read, and is no request


def fleet_app() -> Gate:
    return make_fleet_app(FleetHub(Fleet([], 5.0), Tariff()), ServerSettings(TOKEN, Hosts(["localhost"])))


APPS: list[Callable[[], Gate]] = [app_of, fleet_app]
CHANGES = [
    pytest.param(make, path, method, id=f"{make.__name__} {method} {path}")
    for make in APPS
    for path, methods in make().methods.items()
    for method in sorted(methods - READS)
]
PATHS = [pytest.param(make, path, id=f"{make.__name__} {path}") for make in APPS for path in make().methods]


def named(headers: dict[str, dict[str, Any]]) -> list[Any]:
    return [pytest.param(value, id=key or "none") for key, value in headers.items()]


def sent(app: Gate, path: str, method: str, headers: dict[str, Any]) -> Answer:
    more: dict[str, Any] = page_requests.at(headers, OWN)
    return ask(app, path, method, body="[]", **more)


def session(app: Gate) -> str:
    return ask(app, f"/?token={TOKEN}", known=False).headers["set-cookie"].partition(";")[0]


def test_the_table_has_what_can_be_changed() -> None:
    assert {path for path, methods in app_of().methods.items() if methods - READS} == {"/api/alerts"}
    assert not [path for path, methods in fleet_app().methods.items() if methods - READS]


def test_a_change_needs_the_token_and_a_small_body() -> None:
    assert ask(app_of(), "/api/alerts", "POST", known=False, body="[]").status == 401
    assert ask(app_of(token=None), "/api/alerts", "POST", known=False, body="[]").status == 403
    assert ask(app_of(), "/api/alerts", "POST", body=" " * 5000).status == 413


@pytest.mark.parametrize(("make", "path", "method"), CHANGES)
@pytest.mark.parametrize("headers", named(page_requests.TAKEN))
def test_own_pages_and_programs_may_change_things(
    make: Callable[[], Gate], path: str, method: str, headers: dict[str, Any]
) -> None:
    assert sent(make(), path, method, headers).status in LET_IN


@pytest.mark.parametrize(("make", "path", "method"), CHANGES)
@pytest.mark.parametrize("known", ["token", "session"])
@pytest.mark.parametrize("headers", named(page_requests.FOREIGN))
def test_other_pages_may_not(
    make: Callable[[], Gate], path: str, method: str, known: str, headers: dict[str, Any]
) -> None:
    app = make()
    more = {"authorization": f"Bearer {TOKEN}"} if known == "token" else {"cookie": session(app)}
    answer = ask(app, path, method, known=False, body="[]", **more, **page_requests.at(headers, OWN))
    assert (answer.status, answer.json["status"]) == (403, 403)
    assert "another server" in answer.json["detail"]


@pytest.mark.parametrize(("make", "path", "method"), CHANGES)
@pytest.mark.parametrize("headers", named(page_requests.WRONG_TYPES))
def test_a_change_is_sent_as_json(make: Callable[[], Gate], path: str, method: str, headers: dict[str, Any]) -> None:
    answer = sent(make(), path, method, headers)
    assert answer.status == 415
    assert "application/json" in answer.json["detail"]


@pytest.mark.parametrize(("make", "path"), PATHS)
@pytest.mark.parametrize(
    "headers", named({key: page_requests.FOREIGN[key] for key in ("another port", "cross-site", "same-site")})
)
def test_other_pages_cannot_load_anything_either(make: Callable[[], Gate], path: str, headers: dict[str, Any]) -> None:
    more: dict[str, Any] = page_requests.at(headers, OWN)
    assert ask(make(), path, **more).status == 403


def test_a_link_on_another_page_opens_ours_but_no_frame() -> None:
    link: dict[str, Any] = {"sec_fetch_site": "cross-site", "sec_fetch_mode": "navigate"}
    assert ask(app_of(), "/", **link, sec_fetch_dest="document").status == 200
    assert ask(app_of(), "/", **link, sec_fetch_dest="iframe").status == 403


def test_the_session_lets_a_browser_in_and_the_token_is_no_session() -> None:
    app = app_of()
    assert ask(app, "/api/snapshot", known=False, cookie=session(app)).status == 200
    name = session(app).partition("=")[0]
    for cookie in (f"{name}={TOKEN}", f"gpulse_token={TOKEN}", session(app_of(server="next door"))):
        assert ask(app, "/api/snapshot", known=False, cookie=cookie).status == 401


BEHIND: list[Any] = [
    pytest.param({"host": "gpus.example"}, "https://gpus.example", 404, id="Host"),
    pytest.param({"host": "gpus.example:8443"}, "https://gpus.example:8443", 404, id="Host with its port"),
    pytest.param({"host": "gpus.example"}, "https://gpus.example:443", 404, id="the usual port"),
    pytest.param({"host": "gpus.example"}, "https://gpus.example:8443", 403, id="Host without its port"),
    pytest.param(
        {"host": "gpus.example", "sec_fetch_site": "same-origin"}, "https://gpus.example:8443", 404, id="without its port, a browser tells"
    ),
    pytest.param(
        {"host": "localhost:9440", "x_forwarded_host": "gpus.example:8443"}, "https://gpus.example:8443", 404, id="X-Forwarded-Host"
    ),
    pytest.param({"host": "localhost:9440"}, "https://gpus.example", 403, id="Host of the proxy's own"),
    pytest.param({"host": "localhost:9440", "x_forwarded_host": "evil.example"}, "http://evil.example", 403, id="a rebound name forwarded"),
    pytest.param({"host": "localhost:9440", "sec_fetch_site": "same-origin"}, "https://gpus.example", 404, id="its own, a browser tells"),
    pytest.param({"host": "localhost:9440", "sec_fetch_site": "same-origin"}, "https://evil.example", 403, id="a rebound name"),
    pytest.param({"host": "gpus.example", "x_forwarded_proto": "https"}, "http://gpus.example", 403, id="the same without TLS"),
    pytest.param({"host": "evil.example"}, "http://evil.example", 400, id="a name pointed here"),
]  # fmt: skip


@pytest.mark.parametrize(("headers", "origin", "status"), BEHIND)
def test_the_page_behind_a_proxy(headers: dict[str, Any], origin: str, status: int) -> None:
    app = app_of(hosts=Hosts(["localhost", "gpus.example"]), base_path="/x/")
    answer = ask(app, "/x/api/alerts", "POST", body="[]", origin=origin, **headers)
    assert answer.status == status
