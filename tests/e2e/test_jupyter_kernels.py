"""Notebooks on GPUs in a real JupyterLab: an eight-GPU kernel on a machine busy with others, its cells over time, its buttons."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.e2e.browser import Browser, chromium
from tests.e2e.jupyter import (
    NEWEST,
    SIDE,
    TOKEN,
    JupyterServer,
    command,
    install,
    kernel_pid,
    open_lab,
    open_panel,
    shows,
    surroundings,
)
from tests.e2e.lab import ROOT, environment
from tests.e2e.test_jupyter import LABS
from tests.fake_nvml import Clock, Scenario
from tests.packages import require

require("jupyterlab")
pytestmark = pytest.mark.skipif(chromium() is None, reason="no browser")

GIB = 2**30
PANEL = "#gpulse-kernels"
_HOLDS_A_GPU = "exec {python} -m ipykernel_launcher -f {{connection_file}} 9<{device}"
_MODULE = """
import time
from pathlib import Path
from tests.fake_nvml import Clock

clock = Clock(Path({folder!r}))

def live(phase, seconds):
    '''Let the scripted GPUs live through the seconds after 100 * phase.'''
    end = time.monotonic() + seconds
    while (left := end - time.monotonic()) > 0:
        clock.set(100 * phase + seconds - left)
        time.sleep(0.05)
"""
CELLS = (
    "import gpus",
    "gpus.live(0, 2.5)  # nothing is on the GPUs yet",
    "gpus.live(1, 4)  # take the memory",
    "raise ValueError('of the cell')",
    "gpus.live(2, 3)  # free half of it",
)


def scenario(kernel: int, other: int) -> Scenario:
    """From second 100 on the kernel holds 40 GiB of each of eight GPUs, from 200 on 20; somebody else is always there."""
    made = Scenario.load("dgx-h100x8")
    made.process(
        gpu="all", pid=kernel, memory="steps(0:40 GiB, 200s:20 GiB)", sm="steps(0:0, 100s:85, 200s:0)", since="100s"
    )
    return made.process(gpu="all", pid=other, memory="30 GiB", sm=10)


def notebook(*cells: str) -> dict[str, Any]:
    shape: dict[str, Any] = {"cell_type": "code", "outputs": [], "execution_count": None}
    going_on = {"tags": ["raises-exception"]}  # the next cells run all the same
    plain = [shape | {"id": f"cell-{at}", "source": cell, "metadata": going_on} for at, cell in enumerate(cells)]
    spec = {"kernelspec": {"name": "gpu", "display_name": "GPU"}}
    return {"cells": plain, "metadata": spec, "nbformat": 4, "nbformat_minor": 5}


@pytest.fixture(scope="module")
def prefix(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return install(tmp_path_factory.mktemp("wheel"))


@pytest.fixture(scope="module")
def browser(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Browser]:
    browser = Browser(tmp_path_factory.mktemp("profile"))
    yield browser
    browser.close()


class BusyLab:
    """A lab on eight scripted GPUs, with the session of a notebook whose kernel holds what looks like a GPU's device file."""

    def __init__(self, folder: Path, prefix: Path, lab: Path) -> None:
        device = folder / "dev" / "nvidia0"
        device.parent.mkdir()
        device.touch()
        self.other = subprocess.Popen(["sh", "-c", f"exec sleep 3600 9<{device}"])
        self._driver = folder / "driver"
        machine = environment(Scenario.load("dgx-h100x8"), self._driver) | Clock(self._driver).environment
        environ = surroundings(
            prefix, folder, **{key: machine[key] for key in machine if key.startswith(("FAKE_NVML", "LD_"))}
        )
        environ["PYTHONPATH"] += f":{ROOT}"
        spec = prefix / "share/jupyter/kernels/gpu"
        spec.mkdir(parents=True, exist_ok=True)
        argv = ["sh", "-c", _HOLDS_A_GPU.format(python=sys.executable, device=device)]
        (spec / "kernel.json").write_text(json.dumps({"argv": argv, "display_name": "GPU", "language": "python"}))
        self.server = JupyterServer(folder, environ, lab / "bin")

    def __enter__(self) -> BusyLab:
        self.server.__enter__()
        (self.server.root / "gpus.py").write_text(_MODULE.format(folder=str(self._driver)))
        (self.server.root / "train.ipynb").write_text(json.dumps(notebook(*CELLS)))
        about = {"path": "train.ipynb", "name": "train.ipynb", "type": "notebook", "kernel": {"name": "gpu"}}
        self.session = self.server.ask("api/sessions", about)
        self.kernel = self.session["kernel"]["id"]
        made = scenario(kernel_pid(self.server), self.other.pid)
        (self._driver / "scenario.ini").write_text(made.text())
        return self

    def __exit__(self, *error: Any) -> None:
        self.server.__exit__(None, None, None)
        self.other.kill()
        self.other.wait()

    @property
    def row(self) -> dict[str, Any]:
        """The one kernel, as the panel is told."""
        [row] = self.server.ask("gpulse/api/kernels")["kernels"]
        found: dict[str, Any] = row
        return found

    @property
    def cells(self) -> list[dict[str, Any]]:
        """The cells of the kernel, as the panel is told once the browser has reported how the last one ended."""
        for _ in range(100):
            found: list[dict[str, Any]] = self.server.ask(f"gpulse/api/cells?kernel={self.kernel}")["cells"]
            if all(cell["ok"] is not None for cell in found):
                return found
            time.sleep(0.1)
        raise AssertionError(f"a cell does not end: {found}")


@pytest.fixture(scope="module", params=LABS)
def busy(
    request: pytest.FixtureRequest, prefix: Path, browser: Browser, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[BusyLab]:
    with BusyLab(tmp_path_factory.mktemp("lab"), prefix, request.param) as lab:
        yield lab
        browser.open("about:blank")  # a page whose server is gone complains


def show(browser: Browser, busy: BusyLab) -> None:
    """Open the notebook, unless it is open, and the panel beside it as a tab."""
    if not shows(browser, busy.server, ".jp-Notebook .jp-CodeCell"):
        browser.open(busy.server.page("lab/tree/train.ipynb", "&reset"), 1500, 1000)
        browser.until(f"document.querySelector('{SIDE}')", 60)
        browser.until("document.querySelector('.jp-Notebook .jp-CodeCell')", 60)
        browser.until("document.querySelector('.jp-Notebook-ExecutionIndicator')?.dataset.status === 'idle'", 60)
    open_panel(browser, "kernels")
    browser.until(f"document.querySelector('{PANEL} [data-kernel]')")


def tab(browser: Browser, name: str) -> None:
    """Bring a tab of the main area to the front."""
    tabs = ".lm-DockPanel-tabBar .lm-TabBar-tab"
    named = f"e => e.innerText.includes({json.dumps(name)})"
    at = browser.until(f"1 + [...document.querySelectorAll('{tabs}')].findIndex({named})") - 1
    browser.click(tabs, at)
    browser.until(f"[...document.querySelectorAll('{tabs}.lm-mod-current')].some({named})")


def control(browser: Browser, key: str, code: int) -> None:
    """Press a key with Control."""
    for kind in ("rawKeyDown", "keyUp"):
        browser.call("Input.dispatchKeyEvent", type=kind, key=key, windowsVirtualKeyCode=code, modifiers=2)


def runs_ended(browser: Browser, count: int) -> None:
    browser.until(
        f"[...document.querySelectorAll('{PANEL} .runs li')].filter(e => !e.innerText.includes('running')).length >= {count}",
        60,
    )


def test_the_cells_of_a_kernel_are_bands_that_say_what_they_took(browser: Browser, busy: BusyLab) -> None:
    show(browser, busy)
    tab(browser, "train.ipynb")
    browser.click(".jp-Notebook .jp-CodeCell")
    command(browser, "Run All Cells")
    tab(browser, "Notebooks on GPUs")
    runs_ended(browser, len(CELLS))

    cells = busy.cells
    assert [(cell["cell"], cell["ok"]) for cell in cells] == [(f"cell-{at}", at != 3) for at in range(len(CELLS))]
    took = cells[2]
    assert (took["before"], took["peak"]) == (0, 320 * GIB)
    assert took["held"] == 160 * GIB, "half of it was freed by a later cell"
    browser.until(f"document.querySelector('{PANEL} .holders').innerText.includes('[3] took 160 GiB')")
    bands = browser.evaluate(f"[...document.querySelectorAll('{PANEL} .lane .band')].map(e => e.className)")
    assert bands[2:4] == ["band holds", "band failed"]
    assert browser.evaluate(f"document.querySelectorAll('{PANEL} .cells canvas').length") == 3

    browser.click(f"{PANEL} .lane .band.holds")
    browser.until(
        "document.querySelector('.jp-Notebook .jp-Cell.jp-mod-active')?.innerText.includes('take the memory')"
    )
    assert not [said for said in browser.complaints if "gpulse" in said.lower()]


def test_one_row_has_the_total_and_opens_its_gpus(browser: Browser, busy: BusyLab) -> None:
    show(browser, busy)
    browser.until(f"document.querySelector('{PANEL} .facts').innerText.includes('160 GiB')")
    facts = browser.evaluate(f"document.querySelector('{PANEL} .facts').innerText")
    assert "8 GPUs" in facts
    assert "Host memory" in facts
    browser.until(
        f"document.querySelector('{PANEL} .facts').innerText.includes('idle for')"
    )  # the last cell has just ended
    assert browser.evaluate(f"document.querySelectorAll('{PANEL} button.stop').length") == 1
    uses = browser.until(
        f"(u => u.length === 8 && u.map(e => e.innerText))([...document.querySelectorAll('{PANEL} .use')])"
    )
    assert all("20.0 GiB" in use for use in uses), "not the 30 GiB of somebody else"
    assert busy.row["host_memory"] > 0
    assert [busy.row[key] for key in ("name", "session", "id")] == ["train.ipynb", busy.session["id"], busy.kernel]
    browser.click(f"{PANEL} .toggle")
    browser.until(f"!document.querySelector('{PANEL} .use').offsetParent")


def test_the_name_opens_the_notebook(browser: Browser, busy: BusyLab) -> None:
    show(browser, busy)
    browser.click(f"{PANEL} .name")
    browser.until("document.querySelector('.jp-Notebook')?.offsetParent")


def test_a_reload_shows_the_past_cells_and_an_idle_kernel_is_told_where_the_settings_say_so(
    browser: Browser, busy: BusyLab
) -> None:
    settings = "lab/api/settings/gpulse:plugin"
    busy.server.ask(settings, {"raw": '{"idleHours": 0.0002}'}, method="PUT")
    browser.open("about:blank")  # a lab that is open has other settings
    try:
        show(browser, busy)
        toast = "[...document.querySelectorAll('.Toastify__toast')].map(e => e.innerText).find(t => t.includes('idle'))"
        text = browser.until(toast)
        assert "train.ipynb has been idle for" in text
        assert "holds 160 GiB on GPUs 0-7" in text
        runs_ended(browser, len(CELLS))
        text = browser.evaluate(f"document.querySelector('{PANEL} .runs').innerText")
        assert "take the memory" in text
        assert "failed" in text
    finally:
        busy.server.ask(settings, {"raw": "{}"}, method="PUT")
        browser.open("about:blank")


def test_interrupt_restart_and_shut_down_name_what_becomes_free(browser: Browser, busy: BusyLab) -> None:
    show(browser, busy)
    before, ended = kernel_pid(busy.server), len(busy.cells)
    button = f"{PANEL} .actions button:nth-child(%d)"
    tab(browser, "train.ipynb")
    running = "document.querySelectorAll('.jp-Notebook .jp-InputPrompt')[4].innerText.includes('*')"
    for _ in range(30):  # a lab that has just opened a notebook loses the first keys
        browser.click(".jp-Notebook .jp-CodeCell .cm-content", 4)
        control(browser, "a", 65)
        browser.call("Input.insertText", text="import time; time.sleep(300)")
        control(browser, "Enter", 13)
        if browser.evaluate(f"new Promise(done => setTimeout(() => done({running}), 500))"):
            break
    tab(browser, "Notebooks on GPUs")
    browser.until(f"document.querySelector('{PANEL} .state').innerText === 'busy'")
    browser.click(button % 1)
    runs_ended(browser, ended + 1)
    assert busy.cells[-1]["ok"] == "interrupted", "the cell was interrupted"

    browser.click(button % 2)
    browser.until("document.querySelector('.jp-Dialog')?.innerText.includes('Restart the kernel of train.ipynb?')")
    assert "160 GiB on GPUs 0-7" in browser.evaluate("document.querySelector('.jp-Dialog').innerText")
    browser.click(".jp-Dialog button.jp-mod-warn")
    browser.until(f"document.querySelector('{PANEL} .facts').innerText.includes('no GPU')")
    assert kernel_pid(busy.server, other_than=before)
    assert len(busy.cells) == ended + 1, "a restart keeps the past"

    browser.click(button % 3)
    browser.until("document.querySelector('.jp-Dialog')?.innerText.includes('Shut down the kernel of train.ipynb?')")
    assert busy.server.ask("api/kernels"), "nothing may end before it is confirmed"
    browser.click(".jp-Dialog button.jp-mod-warn")
    browser.until(f"document.querySelector('{PANEL}').innerText.includes('No kernels are running')")
    assert busy.server.ask("api/kernels") == []


def test_in_the_narrow_panel_of_notebook_7_nothing_is_cut_off(browser: Browser, prefix: Path, tmp_path: Path) -> None:
    require("notebook")
    with BusyLab(tmp_path, prefix, NEWEST) as busy:
        (busy.server.root / "train.ipynb").write_text(json.dumps(notebook("%load_ext gpulse", *CELLS)))
        browser.open(busy.server.page("notebooks/train.ipynb"), 1500, 1000)
        browser.until("document.querySelector('.jp-Notebook .jp-CodeCell')", 60)
        browser.until("document.querySelector('.jp-Notebook-ExecutionIndicator')?.dataset.status === 'idle'", 60)
        command(browser, "Open Notebooks on GPUs")
        browser.until(f"document.querySelector('{PANEL} [data-kernel]')?.offsetParent")
        browser.click(".jp-Notebook .jp-CodeCell")
        command(browser, "Run All Cells")
        runs_ended(browser, len(CELLS))
        assert browser.evaluate(f"document.querySelector('{PANEL}').clientWidth") < 400
        wide = f"[...document.querySelectorAll('{PANEL}, {PANEL} *')].filter(e => e.offsetParent && e.getBoundingClientRect().right"
        assert browser.evaluate(f"{wide} > innerWidth + 1).map(e => e.className)") == []
        assert len({cell["id"] for cell in busy.cells}) == len(busy.cells), (
            "kernel and browser report each cell, it is one"
        )
        recorded = [*Path(busy.server.root.parent).rglob("gpulse-cells-*.jsonl")]
        assert len(recorded) == 1
        browser.open("about:blank")


def test_behind_a_gateway_the_panel_says_that_kernels_are_elsewhere(
    browser: Browser, prefix: Path, tmp_path: Path
) -> None:
    far, near = tmp_path / "far", tmp_path / "near"
    for folder in (far, near):
        folder.mkdir()
    machine = environment(Scenario.load("h200-busy"), near / "driver")
    environ = surroundings(
        prefix, near, **{key: machine[key] for key in machine if key.startswith(("FAKE_NVML", "LD_"))}
    )
    with JupyterServer(far, surroundings(prefix, far, GPULSE_SOURCE="demo"), NEWEST / "bin") as gateway:
        words = (f"--GatewayClient.url={gateway.address.rstrip('/')}", f"--GatewayClient.auth_token={TOKEN}")
        with JupyterServer(near, environ, NEWEST / "bin", *words) as server:
            server.ask("api/kernels", {"name": "python3"})
            [row] = server.ask("gpulse/api/kernels")["kernels"]
            assert (row["pid"], row["gpus"]) == (None, [])
            assert row["elsewhere"] == f"behind the gateway {gateway.address.rstrip('/')}"
            open_lab(browser, server, width=1500)
            open_panel(browser, "kernels")
            text = browser.until(
                f"document.querySelector('{PANEL} .elsewhere')?.offsetParent && document.querySelector('{PANEL}').innerText"
            )
            assert f"Runs behind the gateway {gateway.address.rstrip('/')}. This panel shows " in text
            browser.open("about:blank")
