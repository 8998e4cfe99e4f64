"""A real browser without a window, driven over its own debugging pipe: no port, no library."""

from __future__ import annotations

import base64
import errno
import fcntl
import json
import os
import select
import shutil
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

# The pipe has to be at 3 and 4, wherever it is here.
_EXEC = "import os, sys; a, b, *c = sys.argv[1:]; os.dup2(int(a), 3); os.dup2(int(b), 4); os.execv(c[0], c)"
_FLAGS = (
    *("--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--hide-scrollbars"),
    *("--disable-background-networking", "--disable-component-update", "--disable-sync", "--remote-debugging-pipe"),
    *("--disable-dev-shm-usage", "--mute-audio", "--no-default-browser-check", "--disable-extensions"),
)
_PATIENCE = 60.0


def chromium() -> str | None:
    """Return where Chromium is, None where there is none."""
    return shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")


class Browser:
    """One browser with one page. `requests` are all addresses the page asked for, `complaints` all it wrote to its console."""

    def __init__(self, profile: Path) -> None:
        path = chromium()
        if path is None:
            raise FileNotFoundError(errno.ENOENT, "not installed", "chromium")
        reading, to_child = os.pipe()
        from_child, writing = os.pipe()
        ours = [fcntl.fcntl(number, fcntl.F_DUPFD, 20) for number in (reading, writing)]  # away from 3 and 4
        os.close(reading)
        os.close(writing)
        command = [
            sys.executable,
            "-c",
            _EXEC,
            *map(str, ours),
            path,
            *_FLAGS,
            f"--user-data-dir={profile}",
            "about:blank",
        ]
        self._process = subprocess.Popen(
            command, pass_fds=ours, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
        )
        for number in ours:
            os.close(number)
        self._out, self._in = to_child, from_child
        self._buffer = b""
        self._number = 0
        self._session: str | None = None
        self.requests: list[str] = []
        self.complaints: list[str] = []
        self._loaded = False
        target = self.call("Target.createTarget", url="about:blank")["targetId"]
        self._session = self.call("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        for domain in ("Page", "Runtime", "Network", "Log"):
            self.call(f"{domain}.enable")

    def call(self, method: str, **parameters: Any) -> dict[str, Any]:
        """Ask the browser and return its answer."""
        self._number += 1
        number = self._number
        message: dict[str, Any] = {"id": number, "method": method, "params": parameters}
        if self._session is not None:
            message["sessionId"] = self._session
        os.write(self._out, json.dumps(message).encode() + b"\0")
        while True:
            answer = self._next()
            if answer.get("id") == number:
                assert "error" not in answer, answer
                result: dict[str, Any] = answer["result"]
                return result
            self._note(answer)

    def open(self, path: Path | str, width: int = 1400, height: int = 900, dark: bool = False) -> None:
        """Load a file or an address and wait until all of it is there."""
        self.requests.clear()
        self.complaints.clear()
        self.call("Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1, mobile=False)
        scheme = {"name": "prefers-color-scheme", "value": "dark" if dark else "light"}
        self.call("Emulation.setEmulatedMedia", features=[scheme])
        self._loaded = False
        self.call("Page.navigate", url=path if isinstance(path, str) else path.resolve().as_uri())
        while not self._loaded:
            self._note(self._next())
        self.evaluate("new Promise(done => requestAnimationFrame(() => requestAnimationFrame(done)))")

    def evaluate(self, expression: str) -> Any:
        """Return what a piece of JavaScript comes to; waits for a promise."""
        answer = self.call("Runtime.evaluate", expression=expression, awaitPromise=True, returnByValue=True)
        assert "exceptionDetails" not in answer, answer["exceptionDetails"]
        return answer["result"].get("value")

    def until(self, expression: str, patience: float = 60.0) -> Any:
        """Return what a piece of JavaScript comes to once that is true; asked again at every frame."""
        code = f"""new Promise((done, fail) => {{
            const end = performance.now() + {patience * 1000};
            const look = () => {{
                let found;
                try {{ found = {expression}; }} catch {{ found = undefined; }}
                if (found) done(found instanceof Node ? true : found);
                else if (performance.now() > end) fail(new Error({json.dumps("not in time: " + expression)}));
                else setTimeout(look, 30);
            }};
            look();
        }})"""
        return self.evaluate(code)

    def click(self, selector: str, at: int = 0) -> None:
        """Press the mouse on the middle of an element, once it can be seen and no longer moves."""
        find = f"[...document.querySelectorAll({json.dumps(selector)})].filter(e => e.offsetParent !== null)[{at}]"
        self.until(f"{find} && ({find}.scrollIntoView({{block: 'nearest'}}), true)")
        middle = f"(b => [b.x + b.width / 2, b.y + b.height / 2])({find}.getBoundingClientRect())"
        box = self.until(
            f"{find} && (was => (window.boxBefore = {middle}) + '' === was && boxBefore)(window.boxBefore + '')"
        )
        for kind in ("mouseMoved", "mousePressed", "mouseReleased"):
            self.point(
                box[0],
                box[1],
                kind,
                button="none" if kind == "mouseMoved" else "left",
                clickCount=int(kind != "mouseMoved"),
            )

    def point(self, x: float, y: float, kind: str = "mouseMoved", **more: Any) -> None:
        """Move the mouse, or press (mousePressed) and let go (mouseReleased)."""
        self.call("Input.dispatchMouseEvent", type=kind, x=x, y=y, **more)

    def screenshot(self, path: Path) -> None:
        """Write a picture of the whole page."""
        picture = self.call("Page.captureScreenshot", captureBeyondViewport=True)
        path.write_bytes(base64.b64decode(picture["data"]))

    def close(self) -> None:
        """End the browser."""
        os.close(self._out)
        try:
            self._process.wait(5)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        os.close(self._in)

    def _next(self) -> dict[str, Any]:
        end = time.monotonic() + _PATIENCE
        while b"\0" not in self._buffer:
            ready, _, _ = select.select([self._in], [], [], max(0.0, end - time.monotonic()))
            assert ready, "the browser does not answer"
            more = os.read(self._in, 1 << 16)
            assert more, "the browser has ended"
            self._buffer += more
        line, _, self._buffer = self._buffer.partition(b"\0")
        message: dict[str, Any] = json.loads(line)
        return message

    def _note(self, message: dict[str, Any]) -> None:
        what, about = message.get("method"), message.get("params", {})
        if what == "Page.loadEventFired":
            self._loaded = True
        elif what == "Network.requestWillBeSent":
            self.requests.append(about["request"]["url"])
        elif what == "Runtime.consoleAPICalled":
            self.complaints.append(str(about["args"]))
        elif what == "Runtime.exceptionThrown":
            self.complaints.append(str(about["exceptionDetails"]))
        elif what == "Log.entryAdded":
            self.complaints.append(str(about["entry"]))
        elif what == "Page.javascriptDialogOpening":
            if about["type"] != "beforeunload":
                self.complaints.append(f"dialog: {about['message']}")
                return
            self._number += 1  # a page that would rather stay is left; its answer is skipped like any other news
            leave = {"id": self._number, "method": "Page.handleJavaScriptDialog", "params": {"accept": True}}
            os.write(self._out, json.dumps(leave | {"sessionId": self._session}).encode() + b"\0")
