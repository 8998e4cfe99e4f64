"""How the panels look and what they cost: narrow places, many GPUs, GPUs that fail, and how often the driver is asked."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from tests.e2e.browser import Browser, chromium
from tests.e2e.jupyter import (
    NEWEST,
    SIDE,
    JupyterServer,
    install,
    kernel_pid,
    moves,
    open_lab,
    surroundings,
    write_gpu_kernel,
)
from tests.e2e.lab import environment
from tests.fake_nvml import Clock, Scenario
from tests.packages import require

require("jupyterlab")
pytestmark = pytest.mark.skipif(chromium() is None, reason="no browser")

LabOf = Callable[..., JupyterServer]
_STREAMS = "window.sockets.filter(one => one.url.includes('gpulse') && one.readyState < 2).length"
_COUNT_SOCKETS = """(() => {
    window.sockets = [];
    const Plain = window.WebSocket;
    window.WebSocket = class extends Plain { constructor(...given) { super(...given); window.sockets.push(this); } };
})()"""


@pytest.fixture(scope="module")
def prefix(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return install(tmp_path_factory.mktemp("wheel"))


@pytest.fixture(scope="module")
def browser(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Browser]:
    browser = Browser(tmp_path_factory.mktemp("profile"))
    browser.call("Page.addScriptToEvaluateOnNewDocument", source=_COUNT_SOCKETS)
    yield browser
    browser.close()


@pytest.fixture
def lab_of(prefix: Path, browser: Browser, tmp_path: Path) -> Iterator[LabOf]:
    """Starts a lab on a scripted driver, or on the simulated machine; the scenario of a driver can be written until it is asked."""
    with ExitStack() as stack:

        def start(scenario: Scenario | None, *words: str, **more: str) -> JupyterServer:
            machine = {"GPULSE_SOURCE": "demo"}
            if scenario is not None:
                whole = environment(scenario, tmp_path / "driver")
                machine = {key: whole[key] for key in whole if key.startswith(("FAKE_NVML", "LD_"))}
            environ = surroundings(prefix, tmp_path, **machine, **more)
            return stack.enter_context(JupyterServer(tmp_path, environ, NEWEST / "bin", *words))

        yield start
        browser.open("about:blank")  # a page whose server is gone complains


def write_notebook(server: JupyterServer, name: str, kernel: str = "python3") -> None:
    spec = {"name": kernel, "display_name": kernel}
    plain = {"cells": [], "metadata": {"kernelspec": spec}, "nbformat": 4, "nbformat_minor": 5}
    (server.root / name).write_text(json.dumps(plain))


def is_loaded(server: JupyterServer) -> bool:
    """Return whether the server has opened the driver's library."""
    return "libnvidia-ml" in Path(f"/proc/{server.pid}/maps").read_text()


def tick(browser: Browser, clock: Clock, condition: str, start: float) -> None:
    """Let the driver's time pass, half a second at a time, until something is the case on the page."""
    for step in range(120):
        clock.set(start + step / 2)
        if browser.evaluate(f"new Promise(done => setTimeout(() => done({condition}), 500))"):
            return
    raise AssertionError(f"not in time: {condition}")


def test_the_status_item_sums_eight_gpus_up_and_asks_slowly(
    browser: Browser, prefix: Path, lab_of: LabOf, tmp_path: Path
) -> None:
    write_gpu_kernel(prefix, tmp_path)
    server = lab_of(Scenario.load("dgx-h100x8"))
    open_lab(browser, server, width=1024)
    assert not is_loaded(server), "nothing may be sampled before something shows it"
    write_notebook(server, "train.ipynb", "gpu")
    session = {"path": "train.ipynb", "name": "train.ipynb", "type": "notebook", "kernel": {"name": "gpu"}}
    server.ask("api/sessions", session)
    scenario = Scenario.load("dgx-h100x8").process(gpu="all", pid=kernel_pid(server), memory="40 GiB", sm=41)
    (tmp_path / "driver" / "scenario.ini").write_text(
        scenario.gpu("0-3", utilization__gpu=54).gpu("4-7", utilization__gpu=100).text()
    )
    browser.evaluate("jupyterapp.commands.execute('docmanager:open', {path: 'train.ipynb'}).then(() => true)")
    item = "document.querySelector('.gpulse-status')"
    browser.until(f"{item}?.innerText === '8 GPUs · 77 % · kernel 320 GiB'", 60)
    assert browser.evaluate(f"{item}.getBoundingClientRect().width") < 300
    lines = browser.evaluate(f"{item}.title").splitlines()
    assert lines[0] == "train.ipynb on 8 GPUs: mean utilization 77 % by all processes, 320 GiB held by this kernel"
    assert lines[1:] == [f"GPU {at}: {54 if at < 4 else 100} %, 40.0 GiB" for at in range(8)]
    assert browser.evaluate(_STREAMS) == 0, "every sample is sent although only the item shows"
    browser.click(SIDE)
    browser.until(f"{_STREAMS} === 1")
    browser.click(SIDE)
    browser.until(f"{_STREAMS} === 0")
    assert browser.evaluate(f"{item}.innerText").startswith("8 GPUs")


def test_a_gpu_that_fails_or_is_freed_keeps_no_verdict(browser: Browser, lab_of: LabOf, tmp_path: Path) -> None:
    jobs = [subprocess.Popen(["sleep", "600"]) for _ in range(4)]
    try:
        small: dict[str, int | str] = {"utilization__gpu": 96, "gpm__sm": 8, "gpm__tensor": 2, "power": "220 W"}
        machine = Scenario.load("dgx-h100x8")
        for at, job in enumerate(jobs):
            machine = machine.gpu(at, **small).process(
                gpu=at, pid=job.pid, memory="40 GiB", sm=90, until="100s" if at == 1 else "9999s"
            )
        machine = machine.gpu(
            1,
            utilization__gpu="steps(0:96, 100s:0)",
            gpm__sm="steps(0:8, 100s:0)",
            memory__used=f"steps(0:{40 * 2**30}, 100s:0)",
        )
        machine = machine.fault(function="*", gpu=2, code="GPU_IS_LOST", since="100s")
        machine = machine.fault(function="nvmlDeviceGet*", gpu=3, hang="600s", since="100s")
        (tmp_path / "driver").mkdir()
        clock = Clock(tmp_path / "driver")
        settings = {"raw": '{"sidebar": "cards"}'}
        server = lab_of(machine, **clock.environment)
        server.ask("lab/api/settings/gpulse:plugin", settings, method="PUT")
        open_lab(browser, server)
        browser.click(SIDE)
        found = "[...document.querySelectorAll('#gpulse-side .card')].slice(0, 4).map(e => e.querySelector('.finding').textContent)"
        tick(browser, clock, f"{found}.join() === Array(4).fill('batch too small').join()", 0)
        silent = "[...document.querySelectorAll('#gpulse-side .card .state')].slice(2, 4).map(e => e.textContent.split(' for ')[0])"
        tick(browser, clock, f"[...{found}, ...{silent}].join() === 'batch too small,,,,lost,not responding'", 100)
        lines = "[...document.querySelectorAll('#gpulse-side .problems .brief')].map(e => e.textContent.replaceAll(/ +/g, ' ').trim())"
        wrong = browser.evaluate(lines)
        assert wrong[:2] == ["Critical GPU 2 lost", "Critical GPU 3 not responding"]
        assert [text for text in wrong if "batch" in text] == ["Warning GPU 0 batch too small"]
    finally:
        for job in jobs:
            job.kill()
            job.wait()


_HOLES = """(() => {
    const canvas = document.querySelector('#gpulse-side .spark');
    const { width, height } = canvas;
    if (!width) return undefined;
    const data = canvas.getContext('2d').getImageData(0, 0, width, height).data;
    const painted = [...Array(width).keys()].map(x => [...Array(height).keys()].some(y => data[4 * (y * width + x) + 3] > 0));
    const [first, last] = [painted.indexOf(true), painted.lastIndexOf(true)];
    return { wide: last - first, holes: painted.slice(first, last).filter(there => !there).length };
})()"""


def test_slow_samples_while_nobody_watched_leave_no_hole_in_a_curve(browser: Browser, lab_of: LabOf) -> None:
    server = lab_of(None, "--GpulseExtension.idle_interval=7")
    server.ask("lab/api/settings/gpulse:plugin", {"raw": '{"sidebar": "cards"}'}, method="PUT")
    open_lab(browser, server)
    browser.click(SIDE)
    browser.until(f"{_HOLES}?.wide > 12", 60)
    browser.open("about:blank")  # nobody watches
    asked = "gpulse/api/history?metrics=utilization&gpus=0&points=300"
    for _ in range(60):
        answer = server.ask(asked)
        times = answer["times"]
        if answer["gaps"] and times[-1] - times[-2] > 6:
            break
        browser.evaluate("new Promise(done => setTimeout(done, 500))")
    assert answer["gaps"], "the recorder takes no slow sample for a gap, so nothing is tested"
    open_lab(browser, server)
    browser.click(SIDE)
    drawn = browser.until(f"{_HOLES}?.wide > 10 && {_HOLES}", 60)
    assert drawn["holes"] == 0


_OUTSIDE = """(() => {
    const place = document.querySelector('#gpulse-%s');
    const edge = place.getBoundingClientRect().right + 1;
    const all = [...place.querySelectorAll('button, td, p, summary, canvas, li')];
    const shown = all.filter(e => e.checkVisibility() && !e.closest('thead, .mark'));
    const outside = shown.filter(e => e.getBoundingClientRect().right > edge).map(e => e.outerHTML.slice(0, 80));
    return { over: place.scrollWidth - place.clientWidth, outside, width: place.clientWidth };
})()"""
_NARROW = {
    "overview": "GPUs busy",
    "processes": "slurm:48213",
    "events": "What happened",
    "why": "Evidence",
    "resources": "Utilization",
    "machine": "CPU",
    "pcie": "PCIe in",
}


def test_everything_is_within_reach_in_the_narrow_panel_of_notebook_7(browser: Browser, lab_of: LabOf) -> None:
    require("notebook")
    server = lab_of(None, "--JupyterNotebookApp.expose_app_in_browser=True")
    write_notebook(server, "beside.ipynb")
    browser.open(server.page("notebooks/beside.ipynb"), 1024, 800)
    browser.until("document.querySelector('#gpulse-side')", 60)
    browser.until("document.querySelector('.jp-Notebook')")
    for name, text in _NARROW.items():
        browser.evaluate(f"jupyterapp.commands.execute('gpulse:open', {{name: '{name}'}}).then(() => true)")
        browser.until(f"document.querySelector('#gpulse-{name}')?.innerText.includes({json.dumps(text)})", 60)
        browser.evaluate("new Promise(done => requestAnimationFrame(() => requestAnimationFrame(done)))")
        found = browser.evaluate(_OUTSIDE % name)
        assert found["width"] < 340
        assert found["over"] <= 0, name
        assert found["outside"] == [], name
        if name == "resources":
            moves(browser, "gpulse-resources")


@pytest.mark.parametrize(("count", "lines"), [(1, 0), (64, 64)])
def test_many_gpus_are_lines_in_the_sidebar_those_with_a_problem_first(
    browser: Browser, lab_of: LabOf, count: int, lines: int
) -> None:
    scenario = Scenario.load("fleet64").driver(gpus=count).lose(gpu=count - 1, since="4s")
    server = lab_of(scenario)
    open_lab(browser, server)
    browser.click(SIDE)
    browser.until("document.querySelector('#gpulse-side .problems')?.innerText.includes('lost')", 60)
    shape = "[document.querySelectorAll('#gpulse-side .lines article').length, document.querySelectorAll('#gpulse-side .card').length]"
    assert browser.evaluate(shape) == [lines, count - lines]
    if lines:
        browser.until(f"document.querySelector('#gpulse-side .lines article a').textContent === '{count - 1}'")
        assert browser.evaluate("document.querySelector('#gpulse-side .lines article').offsetHeight") <= 30


def test_a_panel_says_so_where_the_server_extension_is_disabled(browser: Browser, lab_of: LabOf) -> None:
    server = lab_of(None, "--ServerApp.jpserver_extensions={'gpulse.surfaces.jupyter': False}")
    open_lab(browser, server)
    browser.click(SIDE)
    browser.until("document.querySelector('#gpulse-side')?.innerText.includes('jupyter server extension list')")
