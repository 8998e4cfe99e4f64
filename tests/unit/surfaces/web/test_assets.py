"""The files of the page: packed, tagged, and nothing else of the disk."""

from __future__ import annotations

import gzip
import re
from pathlib import Path

import pytest

pytest.importorskip("starlette")

from gpulse.surfaces.web import server
from gpulse.surfaces.web.answers import read_assets
from tests.unit.surfaces.web.asking import app_of, ask

SCRIPT = b"export const answer = 42;\n" * 100


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    static = tmp_path / "static"
    (static / "fonts").mkdir(parents=True)
    (static / "index.html").write_text("<!doctype html><script src=static/app.js></script>")
    (static / "app.js").write_bytes(SCRIPT)
    (static / "app.js.map").write_text("{}")
    (static / ".secret").write_text("hidden")
    (static / "fonts" / "a.woff2").write_bytes(b"\x00\x01")
    (tmp_path / "outside.txt").write_text("outside")
    monkeypatch.setattr(server, "read_assets", lambda: read_assets(str(static)))
    return static


def test_the_page_and_its_files_are_served() -> None:
    assert ask(app_of(), "/").body.startswith(b"<!doctype html><script")
    answer = ask(app_of(), "/static/app.js")
    assert (answer.status, answer.body) == (200, SCRIPT)
    assert answer.headers["content-type"] == "text/javascript; charset=utf-8"
    assert ask(app_of(), "/static/fonts/a.woff2").body == b"\x00\x01"


def test_files_are_packed_for_those_who_can_unpack() -> None:
    answer = ask(app_of(), "/static/app.js", accept_encoding="br, gzip")
    assert gzip.decompress(answer.raw) == SCRIPT
    assert answer.headers["vary"] == "Accept-Encoding"
    for refusing in ("identity", "gzip;q=0", ""):
        assert ask(app_of(), "/static/app.js", accept_encoding=refusing).raw == SCRIPT


def test_a_file_that_the_browser_has_is_not_sent_again(folder: Path) -> None:
    tag = ask(app_of(), "/static/app.js").headers["etag"]
    for known in (tag, f"W/{tag}", f'"other", {tag}'):
        answer = ask(app_of(), "/static/app.js", if_none_match=known)
        assert (answer.status, answer.body) == (304, b"")
    (folder / "app.js").write_bytes(SCRIPT + b"//")
    assert ask(app_of(), "/static/app.js", if_none_match=tag).status == 200


@pytest.mark.parametrize(
    "path",
    ["/static/../outside.txt", "/static/%2e%2e/outside.txt", "/static//etc/passwd", "/static/../../etc/passwd", "/static/..%2foutside.txt",
     "//etc/passwd", "/static/.secret", "/static/app.js.map", "/static/fonts/../../outside.txt", "/static/", "/static", "/static/app.js/",
     "/static/app.js%00", "/static/..\\outside.txt", "/index.html"],
)  # fmt: skip
def test_nothing_else_of_the_disk_can_be_named(path: str) -> None:
    answer = ask(app_of(), path)
    assert answer.status == 404
    assert b"outside" not in answer.body


def test_a_page_that_was_not_built_is_said(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(server, "read_assets", lambda: read_assets(str(tmp_path / "nowhere")))
    answer = ask(app_of(), "/")
    assert answer.status == 200
    assert b"has not been built" in answer.body


def test_what_the_page_preloads_is_built() -> None:
    built = read_assets()
    for name in ("index.html", "fleet.html"):
        named = re.findall(r'(?:href|src)="static/([^"]+)"', built[name].data.decode())
        assert len(named) >= 4
        assert set(named) <= set(built)
