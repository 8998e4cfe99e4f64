"""gpulse in a real JupyterLab, the oldest and the newest that it supports, in a real browser."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest

from tests.e2e.browser import Browser, chromium
from tests.e2e.jupyter import (
    NEWEST,
    OLDEST,
    SIDE,
    JupyterServer,
    command,
    empty_lab,
    install,
    moves,
    open_lab,
    open_panel,
    surroundings,
)
from tests.e2e.lab import environment
from tests.fake_nvml import Scenario
from tests.packages import require

require("jupyterlab")
pytestmark = pytest.mark.skipif(chromium() is None, reason="no browser")

LABS = [
    pytest.param(NEWEST, id="newest"),
    pytest.param(OLDEST, id="oldest", marks=pytest.mark.skipif(not OLDEST.exists(), reason="no old JupyterLab")),
]


@pytest.fixture(scope="module")
def prefix(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return install(tmp_path_factory.mktemp("wheel"))


@pytest.fixture(scope="module")
def browser(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Browser]:
    browser = Browser(tmp_path_factory.mktemp("profile"))
    yield browser
    browser.close()


@pytest.fixture(scope="module", params=LABS)
def server(
    request: pytest.FixtureRequest, prefix: Path, browser: Browser, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[JupyterServer]:
    folder = tmp_path_factory.mktemp("lab")
    environ = surroundings(prefix, folder, GPULSE_SOURCE="demo")
    with JupyterServer(folder, environ, request.param / "bin") as server:
        yield server
        browser.open("about:blank")  # a page whose server is gone complains


def test_installing_enables_it(prefix: Path, tmp_path: Path) -> None:
    environ = surroundings(prefix, tmp_path)
    for words in (("labextension", "list"), ("server", "extension", "list")):
        done = subprocess.run(
            [str(NEWEST / "bin" / "jupyter"), *words],
            env=environ,
            capture_output=True,
            text=True,
            timeout=60,
            check=True,
        )
        lines = [line for line in (done.stdout + done.stderr).splitlines() if "gpulse" in line]
        assert any("enabled" in line for line in lines), done.stdout + done.stderr
        assert any("OK" in line for line in (done.stdout + done.stderr).splitlines())


def test_the_icon_opens_cards_and_a_panel_whose_chart_moves(browser: Browser, server: JupyterServer) -> None:
    open_lab(browser, server)
    browser.click(SIDE)
    assert browser.until("document.querySelectorAll('#gpulse-side .lines article').length") == 8
    open_panel(browser, "utilization")
    moves(browser, "gpulse-utilization")
    titles = browser.evaluate("[...document.querySelectorAll('#gpulse-utilization h3')].map(e => e.textContent)")
    assert titles[:2] == ["Utilization", "SM active"]
    painted = """(() => {
        const canvas = document.querySelector('#gpulse-utilization canvas');
        const data = canvas.getContext('2d').getImageData(0, 0, canvas.width, canvas.height).data;
        const seen = new Set();
        for (let at = 0; at < data.length; at += 4) if (data[at + 3] > 200) seen.add(data.slice(at, at + 3).join());
        return seen.size;
    })()"""
    assert browser.evaluate(painted) > 5
    asked = {urlsplit(address).hostname for address in browser.requests if address.startswith("http")}
    assert asked == {"127.0.0.1"}
    assert not [said for said in browser.complaints if "gpulse" in said.lower()]


def test_a_panel_docked_elsewhere_is_there_after_a_reload(browser: Browser, server: JupyterServer) -> None:
    empty_lab(browser, server)
    open_panel(browser, "memory")
    open_panel(browser, "power")
    box = "(b => [b.x, b.y, b.width, b.height])(document.querySelector(%s).getBoundingClientRect())"
    tab = browser.until(box % "'.lm-DockPanel-tabBar .lm-TabBar-tab.lm-mod-current'")
    before = browser.evaluate(box % "'#gpulse-power'")
    browser.point(tab[0] + 30, tab[1] + 10, "mousePressed", button="left", buttons=1, clickCount=1)
    end = (before[0] + before[2] - 40, before[1] + before[3] / 2)
    for step in range(1, 11):
        x, y = (start + (to - start) * step / 10 for start, to in zip((tab[0] + 30, tab[1] + 10), end, strict=True))
        browser.point(x, y, "mouseMoved", button="left", buttons=1)
    browser.until("document.querySelector('.lm-DockPanel-overlay:not(.lm-mod-hidden)')")
    browser.point(*end, "mouseReleased", button="left", clickCount=1)
    browser.until(f"{box % json.dumps('#gpulse-power')}[0] > {before[0] + 100}")
    saved = sum("workspaces/default" in address for address in browser.requests)
    for _ in range(50):  # the lab saves its layout once nothing has moved for a while
        browser.evaluate("new Promise(done => setTimeout(done, 100))")
        if sum("workspaces/default" in address for address in browser.requests) > saved:
            break
    open_lab(browser, server, "")
    browser.until("document.querySelector('#gpulse-power .gpulse .view')")
    browser.until(f"{box % json.dumps('#gpulse-power')}[0] > {before[0] + 100}")
    moves(browser, "gpulse-power")


def test_it_follows_the_theme_of_the_lab(browser: Browser, server: JupyterServer) -> None:
    empty_lab(browser, server)
    open_panel(browser, "memory")
    find = "document.querySelector('#gpulse-memory .gpulse')"
    color = f"getComputedStyle({find}).getPropertyValue('--surface').trim()"
    assert browser.until(f"{find}.dataset.theme") == "light"
    light = browser.evaluate(color)
    command(browser, "Theme: JupyterLab Dark")
    browser.until(f"{find}.dataset.theme === 'dark'")
    browser.until(f"{color} !== {json.dumps(light)}")
    command(browser, "Theme: JupyterLab Light")
    browser.until(f"{find}.dataset.theme === 'light'")


def test_ranges_pause_and_the_palette(browser: Browser, server: JupyterServer) -> None:
    empty_lab(browser, server)
    open_panel(browser, "resources")
    moves(browser, "gpulse-resources")
    browser.click("#gpulse-resources .ranges button:nth-child(6)")
    browser.until("document.querySelector('#gpulse-resources .ranges button:nth-child(6)').ariaPressed === 'true'")
    browser.click("#gpulse-resources .pause")
    browser.until("document.querySelector('#gpulse-resources .pause').textContent === 'Back to live'")
    command(browser, "Why is my GPU slow")
    browser.until("document.querySelector('#gpulse-why .verdicts')")


def test_settings_choose_the_gpus_and_the_interval(browser: Browser, server: JupyterServer) -> None:
    path = "lab/api/settings/gpulse:plugin"
    server.ask(path, {"raw": '{"interval": 0.5, "gpus": ["1", "3"]}'}, method="PUT")
    try:
        open_lab(browser, server)
        browser.click(SIDE)
        browser.until("document.querySelectorAll('#gpulse-side .card').length === 2")
        open_panel(browser, "memory")
        moves(browser, "gpulse-memory")
        assert server.ask("gpulse/api/snapshot")["server"]["interval"] == 0.5
    finally:
        server.ask(path, {"raw": "{}"}, method="PUT")
        browser.open("about:blank")  # this lab has the settings


def test_the_server_lets_nobody_in_without_its_token(server: JupyterServer) -> None:
    for path in ("snapshot", "kernels", "history", "demo/snapshot", "stream"):
        assert server.refusal(f"gpulse/api/{path}", token="") in (401, 403)
        assert server.refusal(f"gpulse/api/{path}", token="wrong") in (401, 403)
    assert server.refusal("gpulse/api/history?points=none") == 422
    assert server.refusal("gpulse/api/nonsense") == 404


def test_without_a_gpu_it_says_so_and_offers_the_demo(browser: Browser, prefix: Path, tmp_path: Path) -> None:
    machine = environment(Scenario.load("not-loaded"), tmp_path / "driver")
    environ = surroundings(
        prefix, tmp_path, LD_LIBRARY_PATH=machine["LD_LIBRARY_PATH"], FAKE_NVML_SCENARIO=machine["FAKE_NVML_SCENARIO"]
    )
    with JupyterServer(tmp_path, environ, NEWEST / "bin") as server:
        assert server.refusal("gpulse/api/snapshot") == 503
        open_lab(browser, server)
        browser.click(SIDE)
        browser.until("document.querySelector('#gpulse-side .nothing button')")
        told = browser.evaluate("document.querySelector('#gpulse-side .nothing').innerText")
        assert "driver" in told.lower()
        browser.click("#gpulse-side .nothing button")
        assert browser.until("document.querySelectorAll('#gpulse-side .lines article').length") == 8
        assert browser.until("document.querySelector('#gpulse-side .demo').offsetParent && true")
        browser.open("about:blank")  # a page whose server is gone complains


def test_the_widget_moves_while_its_cell_runs(browser: Browser, server: JupyterServer) -> None:
    require("anywidget")
    if "oldest" in server.log:
        pytest.skip("anywidget is in the newest environment only")
    busy = "import time\nend = time.monotonic() + 300\nwhile time.monotonic() < end:\n    time.sleep(0.001)\nprint('the cell has ended')"
    code = f"import gpulse\nfrom IPython.display import display\nw = gpulse.widget(interval=0.2)\ndisplay(w)\n{busy}"
    cell: dict[str, Any] = {
        "cell_type": "code",
        "id": "a",
        "metadata": {},
        "source": code,
        "outputs": [],
        "execution_count": None,
    }
    spec = {"kernelspec": {"name": "python3", "display_name": "Python 3"}}
    plain = {"cells": [cell], "metadata": spec, "nbformat": 4, "nbformat_minor": 5}
    (server.root / "live.ipynb").write_text(json.dumps(plain))
    try:
        browser.open(server.page("lab/tree/live.ipynb", "&reset"))
        browser.until("document.querySelector('.jp-Notebook .jp-CodeCell')", 60)
        # once it has a kernel: a lab that has just opened a notebook loses clicks on its buttons
        browser.until("!!jupyterapp.shell.currentWidget?.sessionContext")
        browser.evaluate("jupyterapp.shell.currentWidget.sessionContext.ready")
        browser.evaluate("void jupyterapp.commands.execute('notebook:run-cell')")  # ends with the cell
        ticks = "Number(document.querySelector('.gpulse.widget')?.dataset.ticks ?? 0)"
        first = browser.until(f"{ticks} > 2 && {ticks}", 60)
        browser.until(f"{ticks} > {first + 3}")
        ended = (
            "[...document.querySelectorAll('.jp-OutputArea-output pre')].some(e => e.innerText.includes('has ended'))"
        )
        assert not browser.evaluate(ended), "it must move while the cell runs"
        still = "document.querySelector('[data-gpulse-still]:has(img)')"
        assert browser.until(f"{still} && getComputedStyle({still}).display") == "none", "only for the saved notebook"
    finally:
        browser.open("about:blank")
        for kernel in server.ask("api/kernels"):
            server.ask(f"api/kernels/{kernel['id']}", method="DELETE")


HOSTS = [
    pytest.param('<body data-vscode-theme-kind="vscode-dark" style="background:#1e1e1e">', "dark", id="VS Code"),
    pytest.param('<html theme="light"><body>', "light", id="Colab"),
]


@pytest.mark.parametrize(("opening", "theme"), HOSTS)
def test_the_widget_needs_nothing_but_the_protocol_of_anywidget(
    browser: Browser, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, opening: str, theme: str
) -> None:
    pytest.importorskip("anywidget")
    import gpulse

    monkeypatch.setenv("GPULSE_SOURCE", "demo")
    shown = gpulse.widget(["utilization", "power_draw"], interval=0.2)
    traits = ("start", "metrics", "seconds", "still")
    given = {
        "module": shown._esm,
        "style": shown._css,
        "state": {key: value for key, value in shown.get_state().items() if key in traits},
    }
    shown.close()
    plain = json.dumps(given).replace("<", "\\u003c")
    (tmp_path / "host.html").write_text(
        f'''<!doctype html><meta charset="utf-8">{opening}<div data-gpulse-still="{shown.still}">still</div><div id="output"></div>
        <script type="application/json" id="given">{plain}</script>
        <script>
        const {{module, style, state}} = JSON.parse(document.getElementById("given").textContent), heard = [];
        document.head.append(Object.assign(document.createElement("style"), {{textContent: style}}));
        window.model = {{
            get: name => state[name], set() {{}}, save_changes() {{}}, send() {{}},
            on: (event, call) => void (event === "msg:custom" && heard.push(call)), off() {{}},
        }};
        window.send = message => heard.forEach(call => call(message, []));
        import(URL.createObjectURL(new Blob([module], {{type: "text/javascript"}}))).then(
            found => {{ window.end = found.default.render({{model, el: document.getElementById("output")}}); }});
        </script>'''
    )
    browser.open(tmp_path / "host.html", 900, 700)
    browser.until("document.querySelectorAll('.gpulse.widget canvas').length === 2")
    assert browser.evaluate("document.querySelector('.gpulse.widget').dataset.theme") == theme
    assert browser.evaluate("getComputedStyle(document.querySelector('[data-gpulse-still]')).display") == "none"
    ticks = "Number(document.querySelector('.gpulse.widget').dataset.ticks)"
    before = browser.evaluate(ticks)
    browser.evaluate("(s => send({sample: {...s, time: s.time + 1}}))(model.get('start').samples.at(-1))")
    browser.until(f"{ticks} > {before}")
    browser.evaluate("send({ended: 7})")
    browser.until("document.querySelector('.gpulse.widget').innerText.includes('Stopped after 7s')")
    browser.evaluate("end()")
    assert not browser.evaluate("document.querySelector('.gpulse.widget')")
    assert browser.evaluate("getComputedStyle(document.querySelector('[data-gpulse-still]')).display") != "none"
    assert browser.complaints == []
