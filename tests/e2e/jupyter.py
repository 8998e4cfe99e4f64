"""A real JupyterLab with the installed wheel of this checkout, started and stopped by tests."""

from __future__ import annotations

import fcntl
import json
import os
import shutil
import signal
import subprocess
import sys
import time
import urllib.error
import urllib.request
from pathlib import Path
from types import TracebackType
from typing import Any

from tests.e2e.browser import Browser
from tests.e2e.lab import ROOT
from tests.ports import free_port, is_free

NEWEST = Path(sys.prefix)
OLDEST = Path(sys.prefix) / "jupyterlab-oldest"
TOKEN = "a-token-for-tests"
BASE = "/user/ada/"  # as behind a JupyterHub
SIDE = ".lm-TabBar-tab[data-id=gpulse-side]"
_PATIENCE = 60.0
_PORTS: list[int] = []


def install(folder: Path) -> Path:
    """Install this checkout as users do, without its dependencies, and return the prefix; pip does it once for all test processes."""
    run = folder.parents[1] if "PYTEST_XDIST_WORKER" in os.environ else folder.parent
    first = run / "installed"
    with (run / "installed.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not first.exists():
            options = [
                "--quiet",
                "--no-deps",
                "--no-build-isolation",
                "--ignore-installed",
                "--no-warn-script-location",
            ]
            command = [sys.executable, "-m", "pip", "install", *options, f"--prefix={first}", str(ROOT)]
            done = subprocess.run(command, capture_output=True, text=True, timeout=120)
            assert done.returncode == 0, done.stderr
    return Path(shutil.copytree(first, folder / "prefix"))


def surroundings(prefix: Path, folder: Path, **more: str) -> dict[str, str]:
    """Return the environment in which Jupyter finds what was installed."""
    packages = next(prefix.glob("lib/python*/site-packages"))
    return os.environ | {
        "HOME": str(folder),
        "GPULSE_HISTORY": str(folder / "history.db"),
        "JUPYTER_PATH": str(prefix / "share/jupyter"),
        "JUPYTER_CONFIG_DIR": str(prefix / "etc/jupyter"),
        "JUPYTERLAB_SETTINGS_DIR": str(folder / "settings"),
        "JUPYTERLAB_WORKSPACES_DIR": str(folder / "workspaces"),
        "JUPYTER_PLATFORM_DIRS": "0",
        "PYTHONPATH": str(packages),
        **more,
    }


def _port() -> int:
    """Return the last port if it is free again: a browser has cached what it loaded from there, and starts a lab with half the work."""
    if not _PORTS or not is_free(_PORTS[-1]):
        _PORTS.append(free_port())
    return _PORTS[-1]


class JupyterServer:
    """A JupyterLab on a free port, behind a prefix and a token; `executables` is the bin of its environment."""

    def __init__(self, folder: Path, environ: dict[str, str], executables: Path, *words: str) -> None:
        self.root = folder / "notebooks"
        self.root.mkdir(exist_ok=True)
        self.port = _port()
        self.address = f"http://127.0.0.1:{self.port}{BASE}"
        self._log = (folder / "jupyter.log").open("w+b")
        self._process = subprocess.Popen(
            [
                *(str(executables / "jupyter"), "lab", "--no-browser", "--allow-root", f"--ServerApp.port={self.port}"),
                *("--ServerApp.port_retries=0", f"--ServerApp.base_url={BASE}", f"--IdentityProvider.token={TOKEN}"),
                *("--LabApp.expose_app_in_browser=True", "--LabApp.news_url="),
                *("--LabApp.check_for_updates_class=jupyterlab.NeverCheckForUpdate", *words),
            ],
            cwd=self.root,
            env=environ,
            stdin=subprocess.DEVNULL,
            stdout=self._log,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )

    def __enter__(self) -> JupyterServer:
        end = time.monotonic() + _PATIENCE
        while time.monotonic() < end:
            assert self._process.poll() is None, self.log
            try:
                self.ask("api/status")
                return self
            except OSError:
                time.sleep(0.1)
        self.__exit__(None, None, None)
        raise AssertionError(f"Jupyter does not answer\n{self.log}")

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._process.poll() is None:
            self._process.send_signal(signal.SIGTERM)
            try:
                self._process.wait(10)
            except subprocess.TimeoutExpired:
                pass
        try:
            os.killpg(self._process.pid, signal.SIGKILL)  # kernels, where it has left any
        except ProcessLookupError:
            pass
        self._process.wait()
        self._log.close()

    @property
    def pid(self) -> int:
        """Its process."""
        return self._process.pid

    @property
    def log(self) -> str:
        """What it wrote."""
        self._log.flush()
        return Path(self._log.name).read_text(errors="replace")

    def page(self, rest: str = "lab", more: str = "") -> str:
        """Return the address of a page, with the token."""
        return f"{self.address}{rest}?token={TOKEN}{more}"

    def ask(self, path: str, plain: Any = None, method: str | None = None, token: str = TOKEN) -> Any:
        """Return what the server answers to a question, or to plain data sent there."""
        request = urllib.request.Request(
            f"{self.address}{path}",
            None if plain is None else json.dumps(plain).encode(),
            ({"Authorization": f"token {token}"} if token else {}) | {"Content-Type": "application/json"},
            method=method,
        )
        with urllib.request.urlopen(request, timeout=20) as answer:
            text = answer.read()
        return json.loads(text) if text else None

    def refusal(self, path: str, token: str = TOKEN) -> int:
        """Return the status of a question that is refused."""
        try:
            self.ask(path, token=token)
        except urllib.error.HTTPError as error:
            return error.code
        raise AssertionError(f"{path} was answered")


def open_lab(browser: Browser, server: JupyterServer, more: str = "&reset", width: int = 1400) -> None:
    """Open the lab, by default an empty one."""
    browser.open(server.page("lab", more), width, 900)
    browser.until(f"document.querySelector('{SIDE}')", 60)
    browser.until("!document.querySelector('#jupyterlab-splash')")
    if "reset" in more:
        browser.until("document.querySelector('.jp-Launcher')")  # comes after all else, into a lab that is empty


def shows(browser: Browser, server: JupyterServer, element: str = ".jp-LabShell") -> bool:
    """Return whether a lab of this server is open, with an element in it."""
    inside = f"document.querySelector({json.dumps(element)}) && window.jupyterapp"
    return bool(browser.evaluate(f"!!(location.href.startsWith({json.dumps(server.address)}) && {inside})"))


def empty_lab(browser: Browser, server: JupyterServer) -> None:
    """Close everything in the lab that is open, or open one: loading one takes 3 s of CPU time."""
    if not shows(browser, server):
        open_lab(browser, server)
        return
    browser.evaluate("jupyterapp.commands.execute('application:close-all').then(() => true)")
    browser.until("document.querySelector('.jp-Launcher')")


def open_panel(browser: Browser, name: str) -> None:
    """Open a panel from the menu of the sidebar."""
    browser.until("!document.querySelector('#jupyterlab-splash')")  # covers the lab while it changes its theme
    if not browser.evaluate("document.querySelector('#gpulse-side')?.offsetParent != null"):
        browser.click(SIDE)
    menu = "document.querySelector('#gpulse-side .panels').open"
    if not browser.until(f"document.querySelector('#gpulse-side .panels') && {{open: {menu}}}")["open"]:
        browser.click("#gpulse-side .panels summary")
        browser.until(menu)
    browser.click(f"#gpulse-side [data-panel={name}]")
    browser.until(f"document.querySelector('#gpulse-{name} .gpulse .view')")


def command(browser: Browser, text: str) -> None:
    """Run a command from the palette."""
    browser.evaluate("(document.activeElement?.blur(), true)")
    keys = {"key": "C", "code": "KeyC", "windowsVirtualKeyCode": 67, "modifiers": 10}  # ctrl and shift
    palette = "document.querySelector('.lm-CommandPalette-input')?.offsetParent"
    for _ in range(6):  # a lab that has just opened a notebook loses the first keys
        browser.call("Input.dispatchKeyEvent", type="keyDown", **keys)
        browser.call("Input.dispatchKeyEvent", type="keyUp", **keys)
        try:
            browser.until(palette, 5)
            break
        except AssertionError:
            continue
    browser.call("Input.insertText", text=text)
    item = "document.querySelector('.lm-CommandPalette-item.lm-mod-active')?.textContent"
    browser.until(f"{item}?.includes({json.dumps(text)})")
    enter = {"key": "Enter", "code": "Enter", "windowsVirtualKeyCode": 13}
    browser.call("Input.dispatchKeyEvent", type="keyDown", text="\r", **enter)
    browser.call("Input.dispatchKeyEvent", type="keyUp", **enter)
    browser.until("!document.querySelector('.lm-CommandPalette-input')?.offsetParent")


def moves(browser: Browser, panel: str) -> None:
    """Wait until a live chart has drawn two more samples: its clock in the status line has moved on twice."""
    clock = f"document.querySelector('#{panel} .status .text').textContent"
    for _ in range(2):
        before = browser.until(f"{clock}.startsWith('Live') && {clock}")
        browser.until(f"{clock}.startsWith('Live') && {clock} !== {json.dumps(before)}")


def write_gpu_kernel(prefix: Path, folder: Path) -> None:
    """Install a kernel `gpu` that holds what looks like a GPU's device file, by which gpulse knows its processes in a container."""
    device = folder / "dev" / "nvidia0"
    device.parent.mkdir()
    device.touch()
    spec = prefix / "share/jupyter/kernels/gpu"
    spec.mkdir(parents=True, exist_ok=True)
    command = f"exec {sys.executable} -m ipykernel_launcher -f {{connection_file}} 9<{device}"
    plain = {"argv": ["sh", "-c", command], "display_name": "GPU", "language": "python"}
    (spec / "kernel.json").write_text(json.dumps(plain))


def kernel_pid(server: JupyterServer, other_than: int = 0) -> int:
    """Return the process of the one kernel, by its command line and folder; between two kernels, wait for the other one."""
    end = time.monotonic() + 20
    while time.monotonic() < end:
        for folder in Path("/proc").glob("[0-9]*"):
            try:
                words = (folder / "cmdline").read_bytes().split(b"\0")
                ours = b"ipykernel_launcher" in words and os.readlink(folder / "cwd").startswith(str(server.root))
                if ours and int(folder.name) != other_than:
                    return int(folder.name)
            except OSError:
                continue
        time.sleep(0.1)  # a process of the server's: nothing tells when it begins
    raise AssertionError("no kernel runs")
