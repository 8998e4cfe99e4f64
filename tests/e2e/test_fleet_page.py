"""The page of a fleet in a real Chromium: machines over ssh, from their servers and from a real Prometheus; some dead, one hostile."""

from __future__ import annotations

import json
import os
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.e2e.browser import Browser, chromium
from tests.e2e.lab import ROOT
from tests.e2e.serving import Serving, plain_environment
from tests.e2e.sshd import Sshd, gpulse
from tests.e2e.test_fleet import prometheus
from tests.ports import free_port

__all__ = ["prometheus"]
pytestmark = pytest.mark.skipif(chromium() is None, reason="no Chromium")
_AXE = ROOT / "web/node_modules/axe-core/axe.min.js"
_EVIL = "<img src=x onerror=document.title='owned'>"


def _hostile() -> str:
    """Return a sample whose texts would like to be something else."""
    process = {
        "pid": 1,
        "user": _EVIL,
        "name": "\x1b[2J",
        "command": "</td><script>x()</script>",
        "memory_used": 1 << 30,
    }
    gpu = {"index": 0, "uuid": _EVIL, "name": _EVIL, "state": "ok", "utilization": 50.0, "memory_used": 1 << 30,
           "memory_total": 1 << 34, "processes": [process]}  # fmt: skip
    return json.dumps({"schema": 1, "time": "2026-11-15T10:00:00Z", "host": {"name": _EVIL}, "gpus": [gpu]})


@pytest.fixture
def page(prometheus: str, tmp_path: Path) -> Iterator[tuple[Serving, Browser]]:
    folder = tmp_path / "fleet"
    folder.mkdir()
    (folder / "sample").write_text(_hostile() + "\n")
    evil = f"while cat {folder / 'sample'}; do sleep 1; done"
    sshd = Sshd(folder, {"training": {"gpulse": gpulse("--demo")}, "evil": {"gpulse": evil}})
    try:
        yield from _opened(prometheus, folder, sshd)
    finally:
        sshd.close()


def _opened(prometheus: str, folder: Path, sshd: Sshd) -> Iterator[tuple[Serving, Browser]]:
    sshd.add("dead", free_port())
    environ = plain_environment(folder, PATH=f"{sshd.folder}:{os.environ['PATH']}")
    (folder / "url").mkdir()
    with Serving(folder / "url", "--no-auth") as other:
        words = ("--ssh", "training,evil,dead", "--url", other.link, "--prometheus", prometheus, "--interval", "1")
        prices = ("--gpu-price", "2.5", "--listen", "127.0.0.1:0")
        with Serving(folder, *words, *prices, environ=environ, source="", verb=("fleet", "serve")) as server:
            browser = Browser(folder / "profile")
            try:
                yield server, browser
            finally:
                browser.close()


def _rows(browser: Browser, table: str = "main table") -> list[list[str]]:
    found: list[list[str]] = browser.evaluate(
        f"[...document.querySelectorAll('{table} tbody tr:not(.pad)')].map(r => [...r.cells].map(c => c.textContent))"
    )
    return found


def _findings(browser: Browser) -> list[str]:
    """Return what axe finds wrong with the page as it is shown now."""
    browser.evaluate(_AXE.read_text())
    found: list[Any] = browser.evaluate(
        "axe.run(document, {resultTypes: ['violations']}).then(r => r.violations.map(v => v.id + ' ' + v.nodes[0].html))"
    )
    return found


def _go(browser: Browser, hash: str, until: str) -> None:
    browser.evaluate(f"location.hash = {json.dumps(hash)}")
    browser.until(until)


def test_the_page_shows_a_mixed_fleet(page: tuple[Serving, Browser]) -> None:
    server, browser = page
    end = time.monotonic() + 60
    while True:  # until every machine has answered or failed
        if server.get("/api/overview")[0] == 200 and "c" not in server.json("/api/overview")["states"]:
            break
        assert time.monotonic() < end, server.json("/api/table?by=host")
        time.sleep(0.2)
    assert server.get("/", known=False)[0] == 401
    browser.open(server.link)
    browser.until("document.querySelector('.funnel b')?.textContent > 20")
    assert browser.evaluate("location.search") == ""  # the token is in a cookie now

    # what is wrong: the machine that is dead, over ssh and in Prometheus
    browser.until("document.querySelectorAll('.problems li').length > 1")
    problems = browser.evaluate("document.querySelector('.problems').textContent")
    assert "dead" in problems
    assert "down" in problems

    # the map, by mouse and by keyboard
    pixels = "c.getContext('2d').getImageData(0, 0, c.width, c.height).data"
    browser.until(f"(c => c.width && {pixels}.some(v => v > 0))(document.querySelector('.fleetmap canvas'))")
    browser.evaluate("document.querySelector('.fleetmap').focus()")
    for key in ("ArrowRight", "End"):
        browser.call("Input.dispatchKeyEvent", type="keyDown", key=key)
    assert ":" in browser.until("document.querySelector('.underhead .reading').textContent")
    if _AXE.exists():
        assert _findings(browser) == []

    # hosts with their states; sort and filter
    _go(browser, "#/hosts", "document.querySelectorAll('main tbody tr:not(.pad)').length >= 9")
    states = {row[0]: row[1] for row in _rows(browser)}
    assert states["training"] == "ok"
    assert states["box"] == "ok"
    assert "unreachable" in states["dead"]
    assert "unreachable" in states["down"]
    dead = next(row for row in _rows(browser) if row[0] == "dead")
    assert "0" not in dead[2:]  # unknown is not zero
    browser.click("th:nth-child(7) button")
    browser.until("document.querySelector('th[aria-sort=descending]')")
    browser.until("document.querySelector('main tbody tr:not(.pad)').cells[6].textContent.includes('W')")
    _go(browser, "#/gpus?filter=user%3Aada", "document.querySelectorAll('main tbody tr:not(.pad)').length >= 4")
    assert all("ada" in row[9] for row in _rows(browser))
    if _AXE.exists():
        assert _findings(browser) == []

    # text of a machine is text
    _go(browser, "#/host/evil", "document.querySelectorAll('main tbody tr').length > 1")
    browser.until("document.querySelector('main').textContent.includes('<img src=x')")
    assert browser.evaluate("document.querySelectorAll('main img, main script').length") == 0
    assert "owned" not in browser.evaluate("document.title")
    assert "\x1b" not in browser.evaluate("document.body.textContent")

    # one machine: its own page, and its history from Prometheus
    name = browser.evaluate(
        "fetch('api/table?by=host').then(r => r.json()).then(a => a.rows.find(r => r.source === 'url').name)"
    )
    _go(browser, f"#/host/{name}", "document.querySelector('a.own:not([hidden])')")
    assert browser.evaluate("document.querySelector('a.own').href") == server_link(browser, name)
    _go(browser, "#/host/box?range=1h", "document.querySelector('.history').textContent.includes('From Prometheus')")
    browser.until("document.querySelectorAll('.history .chart canvas').length >= 4")

    # free GPUs and usage
    _go(browser, "#/free", "document.querySelector('main table')")
    _go(
        browser,
        "#/usage",
        "[...document.querySelectorAll('main tbody tr')].some(r => r.cells[0].textContent === 'ada')",
    )
    assert "since this server was started" in browser.evaluate("document.querySelector('main').textContent")
    assert any(
        "Cost" in head for head in browser.evaluate("[...document.querySelectorAll('th')].map(h => h.textContent)")
    )
    _go(browser, "#/overview?map=time&range=1h", "document.querySelector('.overtime canvas')")
    assert "machines read over ssh and HTTP" in browser.until(
        "document.querySelector('main .plain .faint')?.textContent"
    )

    _ask_for_the_past(server)

    # a phone, in the dark
    assert browser.complaints == []
    browser.open("about:blank")
    browser.open(server.link.partition("?")[0] + "#/overview", width=390, height=844, dark=True)
    browser.until("document.querySelector('.funnel b')?.textContent > 20")
    assert browser.evaluate("document.documentElement.scrollWidth") <= 390
    if _AXE.exists():
        assert _findings(browser) == []
    assert browser.complaints == []


def server_link(browser: Browser, name: str) -> str:
    """Return the address of a machine's own page, as the API tells it."""
    link: str = browser.evaluate(f"fetch('api/host?name={name}').then(r => r.json()).then(a => a.host.link)")
    return link


def _ask_for_the_past(server: Serving) -> None:
    """What Prometheus holds is told by the API: values of one machine, the map over time, and GPU hours."""
    end = time.monotonic() + 60
    asked = "/api/history?name={}&from=-1m"
    for name in ("dgx1", "box"):
        while not server.json(asked.format(name))["series"]:
            assert time.monotonic() < end
            time.sleep(0.5)
    found = server.json(asked.format("box"))
    assert found["source"] == "prometheus"
    assert {series["key"] for series in found["series"]} >= {"utilization", "sm_active", "memory_used", "power_draw"}
    assert len(found["gpus"]) == 8
    assert "dgx1" in server.json("/api/heat?from=-1m")["hosts"]
    while not (rows := {row["name"]: row for row in server.json("/api/usage?by=host&from=-1m")["rows"]}).get("box"):
        assert time.monotonic() < end
        time.sleep(0.5)
    assert rows["dgx1"]["gpu_hours"] > 0
    assert 40 < rows["dgx1"]["idle_share"] < 60
    assert any(row["name"].startswith("slurm:") for row in server.json("/api/usage?by=job&from=-1m")["rows"])
