"""gpulse in JupyterLab: what an open panel costs the Jupyter server and the browser, beside NVDashboard where that is installed.

    python -m bench.jupyter [--nvdashboard VENV] [--seconds 20]

Runs on the scripted driver with the latencies of an H200, eight GPUs, in a real Chromium. VENV is an environment with JupyterLab and
jupyterlab-nvdashboard.
"""

from __future__ import annotations

import argparse
import statistics
import sys
import tempfile
import time
import zipfile
from pathlib import Path

from tests.e2e.browser import Browser
from tests.e2e.jupyter import JupyterServer, install, surroundings
from tests.e2e.lab import ROOT
from tests.fake_nvml import Scenario

_REQUESTS = 200
_PAINTED = """(() => {
    const canvas = document.querySelector('#gpulse-resources canvas');
    if (!canvas || !canvas.width) return false;
    const data = canvas.getContext('2d').getImageData(0, 0, canvas.width, canvas.height).data;
    const seen = new Set();
    for (let at = 0; at < data.length; at += 16) if (data[at + 3] > 200) seen.add(data[at] << 16 | data[at + 1] << 8 | data[at + 2]);
    return seen.size > 3;
})()"""

_TIMED = f"""(window.painted = new Promise((done) => {{
    let began;
    document.addEventListener('pointerdown', () => (began ??= performance.now()), true);
    const look = () => (began && {_PAINTED} ? done(performance.now() - began) : requestAnimationFrame(look));
    look();
}}), true)"""


def main() -> int:
    """Measure, and print a table."""
    parser = argparse.ArgumentParser(description="Cost of an open panel in JupyterLab.")
    parser.add_argument("--nvdashboard", type=Path, help="environment with JupyterLab and jupyterlab-nvdashboard")
    parser.add_argument("--seconds", type=float, default=20.0, help="how long to watch the browser (default: 20)")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="gpulse-bench-") as name:
        folder = Path(name)
        prefix = install(folder)
        print(
            f"wheel: {_wheel_size(folder) / 1024:.0f} KB, of which Jupyter's files {_jupyter_size(prefix) / 1024:.0f} KB packed"
        )
        browser = Browser(folder / "profile")
        try:
            _gpulse(folder, prefix, browser, options.seconds)
            if options.nvdashboard:
                _nvdashboard(folder, options.nvdashboard, browser, options.seconds)
        finally:
            browser.close()
    return 0


def _gpulse(folder: Path, prefix: Path, browser: Browser, seconds: float) -> None:
    place = folder / "gpulse"
    place.mkdir()
    environ = surroundings(prefix, place, **_driver(folder / "driver-gpulse"))
    with JupyterServer(place, environ, Path(sys.prefix) / "bin") as server:
        before = _latency(server)
        browser.open(server.page("lab", "&reset"))
        browser.until("document.querySelector('.jp-Launcher')", 60)
        idle = _busy(browser, seconds)
        browser.click(".lm-TabBar-tab[data-id=gpulse-side]")
        browser.until("document.querySelector('#gpulse-side .tile')", 60)
        browser.click(".lm-TabBar-tab[data-id=gpulse-side]")  # closed again: the panel alone is measured
        side = ".lm-TabBar-tab[data-id=gpulse-side]"
        browser.click(side)
        browser.click("#gpulse-side .panels summary")
        browser.evaluate(_TIMED)
        browser.click("#gpulse-side [data-panel=resources]")
        first = browser.evaluate("window.painted")
        browser.click(side)
        time.sleep(3)
        busy = _busy(browser, seconds)
        during = _latency(server)
        _print("gpulse", before, during, idle, busy)
        print(f"  first chart {first:.0f} ms after the click")
        browser.open("about:blank")


def _nvdashboard(folder: Path, venv: Path, browser: Browser, seconds: float) -> None:
    place = folder / "nvdashboard"
    place.mkdir()
    empty = folder / "empty"
    (empty / "lib/python3/site-packages").mkdir(parents=True)
    environ = surroundings(empty, place, **_driver(folder / "driver-nvdashboard"))
    environ.pop("PYTHONPATH")
    with JupyterServer(place, environ, venv / "bin") as server:
        before = _latency(server)
        browser.open(server.page("lab", "&reset"))
        browser.until("document.querySelector('.jp-Launcher')", 60)
        idle = _busy(browser, seconds)
        tab = "[...document.querySelectorAll('.jp-SideBar .lm-TabBar-tab')].find(e => /nvdashboard|gpu/i.test(e.dataset.id + e.title))"
        browser.until(tab)
        spot = browser.evaluate(f"(b => [b.x + b.width / 2, b.y + b.height / 2])({tab}.getBoundingClientRect())")
        for kind in ("mouseMoved", "mousePressed", "mouseReleased"):
            browser.point(spot[0], spot[1], kind, button="none" if kind == "mouseMoved" else "left", clickCount=1)
        button = (
            "[...document.querySelectorAll('button')].find(e => /GPU Resources/i.test(e.textContent) && e.offsetParent)"
        )
        browser.until(button)
        browser.evaluate(f"({button}.click(), true)")
        time.sleep(5)
        busy = _busy(browser, seconds)
        during = _latency(server)
        _print("NVDashboard", before, during, idle, busy)
        browser.open("about:blank")


def _driver(folder: Path) -> dict[str, str]:
    machine = Scenario.load("dgx-h100x8").write(folder)
    return {key: value for key, value in machine.items() if key.startswith(("FAKE_NVML", "LD_"))} | {
        "FAKE_NVML_LATENCY": "h200"
    }


def _latency(server: JupyterServer) -> list[float]:
    """Return the milliseconds that requests to Jupyter's own API take, asked at moments that no sampler knows."""
    taken = []
    for at in range(_REQUESTS):
        time.sleep(0.02 + 0.013 * (at % 5))
        began = time.perf_counter()
        server.ask("api/status")
        taken.append(1000 * (time.perf_counter() - began))
    return sorted(taken)


def _busy(browser: Browser, seconds: float) -> float:
    """Return the share of time in which the browser's main thread was busy, in per cent."""
    browser.call("Performance.enable")

    def spent() -> tuple[float, float]:
        found = {one["name"]: one["value"] for one in browser.call("Performance.getMetrics")["metrics"]}
        return found["TaskDuration"], found["Timestamp"]

    first, began = spent()
    time.sleep(seconds)
    last, ended = spent()
    return 100 * (last - first) / (ended - began)


def _print(name: str, before: list[float], during: list[float], idle: float, busy: float) -> None:
    p95 = int(0.95 * len(during))
    print(f"{name}: GPU resources panel")
    print(
        f"  another request: median {statistics.median(before):.1f} ms before, {statistics.median(during):.1f} ms with it open"
    )
    print(
        f"  another request: 95th percentile {before[p95]:.1f} ms before, {during[p95]:.1f} ms with it open, worst {during[-1]:.0f} ms"
    )
    print(f"  browser's main thread: {idle:.1f} % without, {busy:.1f} % with it open")


def _wheel_size(folder: Path) -> int:
    import subprocess

    command = [
        sys.executable,
        "-m",
        "pip",
        "wheel",
        "--quiet",
        "--no-deps",
        "--no-build-isolation",
        "-w",
        str(folder),
        str(ROOT),
    ]
    subprocess.run(command, check=True, timeout=120)
    return next(folder.glob("*.whl")).stat().st_size


def _jupyter_size(prefix: Path) -> int:
    """Return the packed size of everything that is there for Jupyter and notebooks only."""
    archive = prefix.parent / "jupyter.zip"
    packages = next(prefix.glob("lib/python*/site-packages"))
    with zipfile.ZipFile(archive, "w", zipfile.ZIP_DEFLATED) as packed:
        for room in (
            prefix / "share/jupyter",
            packages / "gpulse/surfaces/jupyter",
            packages / "gpulse/surfaces/notebook",
        ):
            for path in sorted(room.rglob("*")):
                if path.is_file() and "__pycache__" not in path.parts:
                    packed.write(path, path.relative_to(prefix))
    return archive.stat().st_size


if __name__ == "__main__":
    sys.exit(main())
