"""The gate: who gets in, under which name, and with which headers out."""

from __future__ import annotations

import pytest

pytest.importorskip("starlette")

from gpulse.surfaces.web.answers import page
from tests.unit.surfaces.web.asking import TOKEN, app_of, ask, hub_of

PRIVATE = [
    "/",
    "/static/app.js",
    "/api/snapshot",
    "/api/stream",
    "/api/history",
    "/api/openapi.json",
    "/nothing",
    "/docs",
]
OPEN = ["/metrics", "/healthz", "/readyz"]


@pytest.mark.parametrize("path", PRIVATE)
@pytest.mark.parametrize(
    "headers",
    [{}, {"authorization": "Bearer wrong"}, {"cookie": "gpulse_token=wrong"}, {"authorization": "Bearer ünï"}],
)
def test_without_the_token_there_is_nothing_to_see(path: str, headers: dict[str, str]) -> None:
    answer = ask(app_of(), path, known=False, **headers)
    assert answer.status == 401
    assert answer.headers["www-authenticate"].startswith("Bearer")
    assert b"GPU-" not in answer.body


def test_a_query_with_the_token_is_nothing_but_a_way_to_the_cookie() -> None:
    answer = ask(app_of(), f"/api/snapshot?token={TOKEN}", known=False)
    assert answer.status == 401


@pytest.mark.parametrize("path", OPEN)
def test_programs_on_the_same_machine_need_no_token(path: str) -> None:
    assert ask(app_of(), path, known=False).status == 200


@pytest.mark.parametrize(("path", "status"), [("/metrics", 401), ("/healthz", 200), ("/readyz", 200)])
def test_programs_elsewhere_need_it_for_metrics_and_not_for_probes(path: str, status: int) -> None:
    app = app_of(open_metrics=False)
    assert ask(app, path, known=False).status == status
    assert ask(app, path, known=False, x_forwarded_for="10.0.0.1").status == status
    assert ask(app, path).status == 200


@pytest.mark.parametrize("header", ["x_forwarded_for", "forwarded", "x_real_ip"])
def test_whoever_a_proxy_lets_through_is_elsewhere(header: str) -> None:
    assert ask(app_of(), "/metrics", known=False, **{header: "10.0.0.1"}).status == 401


def test_a_link_becomes_a_cookie_and_the_same_address_without_the_token() -> None:
    answer = ask(app_of(), f"/?kiosk=&token={TOKEN}&a=1%202", known=False)
    assert (answer.status, answer.headers["location"]) == (303, "./?kiosk=&a=1+2")
    cookie = answer.headers["set-cookie"]
    assert cookie.endswith("; Path=/; HttpOnly; SameSite=Strict")
    assert TOKEN not in cookie
    assert ask(app_of(), "/", known=False, cookie=cookie.partition(";")[0]).status == 200


@pytest.mark.parametrize("given", ["wrong", "", "%C3%BC", "%FF", f"{TOKEN}x", "%3Cscript%3E"])
def test_a_wrong_link_is_told_so_and_sets_no_cookie(given: str) -> None:
    answer = ask(app_of(), f"/?token={given}", known=False)
    assert answer.status == 401
    assert "set-cookie" not in answer.headers
    assert b"Wrong token" in answer.body
    assert b"<script" not in answer.body


def test_the_page_that_asks_for_the_token_has_a_form_and_no_script() -> None:
    answer = ask(app_of(), "/", known=False)
    assert answer.headers["content-type"].startswith("text/html")
    assert b"name=token" in answer.body
    assert b"script" not in answer.body
    policy = answer.headers["content-security-policy"]
    assert "default-src 'none'" in policy
    assert "unsafe" not in policy


def test_no_page_of_ours_takes_text_for_markup() -> None:
    assert bytes(page("<i>", "<b>&").body).count(b"<i>") == 0
    assert b"&lt;b&gt;&amp;" in bytes(page("<i>", "<b>&").body)


def test_without_a_token_everybody_is_let_in() -> None:
    assert ask(app_of(token=None), "/api/snapshot", known=False).status == 200


@pytest.mark.parametrize("host", ["evil.example", "localhost.evil.example:9440", "", "127.0.0.1.nip.io"])
@pytest.mark.parametrize("path", ["/", "/api/snapshot", "/metrics"])
def test_a_name_that_was_pointed_here_is_refused_even_with_the_token(host: str, path: str) -> None:
    answer = ask(app_of(), path, host=host)
    assert (answer.status, answer.json["status"]) == (400, 400)


def test_on_a_unix_socket_any_name_will_do() -> None:
    assert ask(app_of(hosts=None), "/healthz", host="whatever").status == 200


@pytest.mark.parametrize("method", ["POST", "PUT", "DELETE", "PATCH", "OPTIONS", "TRACE", "BREW"])
def test_there_is_nothing_to_change(method: str) -> None:
    answer = ask(app_of(), "/api/snapshot", method)
    assert (answer.status, answer.headers["allow"]) == (405, "GET, HEAD")


@pytest.mark.parametrize("length", ["65537", "99999999999999999999", "-1", "x"])
def test_a_body_is_not_read(length: str) -> None:
    assert ask(app_of(), "/api/snapshot", content_length=length).status == 413


@pytest.mark.parametrize(
    "path", ["/", "/api/snapshot", "/api/nothing", "/metrics", "/static/x", "/api/history?points=0"]
)
@pytest.mark.parametrize("known", [True, False])
def test_every_answer_has_the_headers_that_keep_browsers_in_check(path: str, known: bool) -> None:
    headers = ask(app_of(), path, known=known, origin="http://evil.example").headers
    assert "default-src 'none'" in headers["content-security-policy"]
    assert headers["x-content-type-options"] == "nosniff"
    assert headers["referrer-policy"] == "no-referrer"
    assert "cache-control" in headers
    assert not [name for name in headers if name.startswith("access-control")]


def test_scripts_come_from_the_server_alone() -> None:
    policy = ask(app_of(), "/api/snapshot").headers["content-security-policy"]
    assert "script-src 'self'" in policy
    assert "unsafe" not in policy
    assert "http" not in policy


@pytest.mark.parametrize("path", ["/x/healthz", "/healthz"])
def test_below_a_base_path_a_proxy_may_or_may_not_take_it_away(path: str) -> None:
    assert ask(app_of(base_path="/x/"), path, known=False).status == 200


def test_a_base_path_is_in_the_cookie_and_in_no_link() -> None:
    app = app_of(base_path="/x/")
    answer = ask(app, f"/x/?token={TOKEN}", known=False)
    assert answer.headers["location"] == "./"
    assert "Path=/x/;" in answer.headers["set-cookie"]
    assert "Secure" not in answer.headers["set-cookie"]
    assert ask(app, "/x", known=False).headers["location"] == "x/"


def test_a_proxy_is_believed_about_tls_only_below_a_base_path() -> None:
    def secure(app: object) -> bool:
        answer = ask(app, f"/?token={TOKEN}", known=False, x_forwarded_proto="https")  # type: ignore[arg-type]
        return "Secure" in answer.headers["set-cookie"]

    assert secure(app_of(base_path="/x/"))
    assert not secure(app_of())


def test_a_mistake_of_ours_is_a_500_and_a_line(capsys: pytest.CaptureFixture[str]) -> None:
    def scrape(accept: str) -> tuple[bytes, str]:
        raise RuntimeError("no ink")

    answer = ask(app_of(metrics=scrape), "/metrics")
    assert (answer.status, answer.headers["content-type"]) == (500, "application/problem+json")
    assert b"ink" not in answer.body
    assert capsys.readouterr().err == "gpulse: '/metrics' failed: RuntimeError('no ink')\n"


def test_the_access_log_has_a_line_a_request_without_the_query(capsys: pytest.CaptureFixture[str]) -> None:
    ask(app_of(access_log=True), f"/?token={TOKEN}", known=False)
    ask(app_of(access_log=True), "/a%0Ab%1b")
    lines = capsys.readouterr().err.splitlines()
    assert [line.split(" ", 1)[1] for line in lines] == ["127.0.0.1 GET / 303", r"127.0.0.1 GET /a\nb\x1b 404"]


def test_nothing_is_logged_unless_asked_for(capsys: pytest.CaptureFixture[str]) -> None:
    ask(app_of(hub_of()), "/api/snapshot")
    assert capsys.readouterr().err == ""
