"""A `gpulse serve` in a process of its own, and raw connections to it."""

from __future__ import annotations

import http.client
import json
import os
import select
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path
from types import TracebackType
from typing import Any

from tests.e2e.lab import ROOT

PATIENCE = 60.0


def plain_environment(folder: Path, **more: str) -> dict[str, str]:
    """Return an environment whose settings and history are in a folder."""
    own = {
        "PYTHONPATH": str(ROOT / "src"),
        "GPULSE_CONFIG": str(folder / "config.toml"),
        "HOME": str(folder),
        "GPULSE_HISTORY": str(folder / "history.db"),
        "GPULSE_CLAIMS": str(folder),
    }
    return os.environ | own | more


class Serving:
    """The server; its token is read from what it prints, or from the file it names. `run` is a program that starts it."""

    def __init__(
        self,
        folder: Path,
        *options: str,
        environ: dict[str, str] | None = None,
        source: str = "--demo",
        files: int | None = None,
        verb: tuple[str, ...] = ("serve",),
        run: tuple[str, ...] = (),
    ) -> None:
        self._err = folder / "err"
        self._folder = folder
        if not (folder / "config.toml").exists():
            (folder / "config.toml").write_text(
                "[alerts]\nlog = false\n"
            )  # the demo machine has some, at its own times
        place = (
            ()
            if any(option in ("--unix-socket", "--port", "--bind", "--listen") for option in options)
            else ("--port", "0")
        )
        limit = [] if files is None else ["sh", "-c", f'ulimit -n {files} && exec "$@"', "sh"]
        with self._err.open("wb") as err:
            self._process = subprocess.Popen(
                [*run, *limit, sys.executable, "-m", "gpulse", *verb, *([source] if source else []), *place, *options],
                env=environ or plain_environment(folder),
                stdout=subprocess.PIPE,
                stderr=err,
                cwd=folder,
                bufsize=0,  # or a line that was read with the one before would not be seen to be there
            )
        self.pid = self._process.pid
        try:
            self._greet("--no-auth" in options)
        except BaseException:
            self.__exit__(None, None, None)
            raise

    def _greet(self, open: bool) -> None:
        """Read where it is, and the token."""
        self.link = self._line().partition(": ")[2]
        self.token = self.link.partition("token=")[2]
        if not self.token and not open:
            said = self._line()
            self.token = (
                Path(said.removeprefix("the token is in ")).read_text().strip()
                if " in " in said
                else said.rpartition(" ")[2]
            )
        address = self.link.partition("://")[2].partition("/")[0]
        self.port = int(address.rpartition(":")[2]) if address else 0

    def __enter__(self) -> Serving:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._process.kill()
        self._process.communicate()

    def _line(self) -> str:
        assert self._process.stdout is not None
        assert select.select([self._process.stdout], [], [], PATIENCE)[0], f"it says nothing; stderr: {self.err}"
        line = self._process.stdout.readline()
        assert line, f"it has ended; stderr: {self.err}"
        return line.decode().rstrip("\n")

    @property
    def err(self) -> str:
        """What it has said on stderr."""
        return self._err.read_text()

    def get(
        self, target: str, *, known: bool = True, method: str = "GET", **headers: str
    ) -> tuple[int, dict[str, str], bytes]:
        """Ask, and return status, headers and body; `known` shows the token."""
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=PATIENCE)
        try:
            shown = {"Authorization": f"Bearer {self.token}"} if known else {}
            connection.request(
                method, target, headers=shown | {key.replace("_", "-"): value for key, value in headers.items()}
            )
            answer = connection.getresponse()
            return answer.status, {key.lower(): value for key, value in answer.getheaders()}, answer.read()
        finally:
            connection.close()

    def post(self, target: str, plain: object, known: bool = True, **headers: str) -> tuple[int, dict[str, str], bytes]:
        """Send JSON, and return status, headers and body; `_` in the name of a header is a dash."""
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=PATIENCE)
        try:
            shown = {"Authorization": f"Bearer {self.token}"} if known else {}
            sent = shown | {"Content-Type": "application/json"}
            sent |= {key.replace("_", "-").title(): value for key, value in headers.items()}
            connection.request("POST", target, json.dumps(plain), sent)
            answer = connection.getresponse()
            return answer.status, {key.lower(): value for key, value in answer.getheaders()}, answer.read()
        finally:
            connection.close()

    def json(self, target: str) -> Any:
        """Ask for JSON."""
        status, _, body = self.get(target)
        assert status == 200, body
        return json.loads(body)

    def until(self, target: str, status: int) -> None:
        """Wait until a path answers with a status."""
        end = time.monotonic() + PATIENCE
        while self.get(target)[0] != status:
            assert time.monotonic() < end, f"{target} never answers {status}"
            time.sleep(0.02)

    def connect(self, small: bool = False) -> socket.socket:
        """Return a bare connection; a `small` one takes little before it is full."""
        client = socket.socket()
        if small:
            client.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        client.settimeout(PATIENCE)
        client.connect(("127.0.0.1", self.port))
        return client

    def stream(self, last: str = "", small: bool = False) -> Stream:
        """Return a client of the stream."""
        client = self.connect(small)
        more = f"Last-Event-ID: {last}\r\n" if last else ""
        client.sendall(
            f"GET /api/stream HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer {self.token}\r\n{more}\r\n".encode()
        )
        return Stream(client)

    def memory(self) -> float:
        """Return its resident memory in MB."""
        return int(Path(f"/proc/{self.pid}/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE") / 1e6

    def end(self, number: signal.Signals = signal.SIGTERM) -> int:
        """Send a signal; return the exit code."""
        self._process.send_signal(number)
        return self._process.wait(PATIENCE)


class Stream:
    """A client that reads events one by one."""

    def __init__(self, connection: socket.socket) -> None:
        self.connection = connection
        self._file = connection.makefile("rb")
        self._chunks = b""
        self._head()

    def _head(self) -> None:
        while self._file.readline() not in (b"\r\n", b""):
            pass

    def events(self, enough: int, kind: str = "") -> list[tuple[str, str, Any]]:
        """Return so many events of a kind, as id, event and data."""
        found: list[tuple[str, str, Any]] = []
        while len(found) < enough:
            size = self._file.readline().strip()
            assert size not in (b"", b"0"), "the stream has ended"
            self._chunks += self._file.read(int(size, 16))
            self._file.readline()
            while b"\n\n" in self._chunks:
                block, _, self._chunks = self._chunks.partition(b"\n\n")
                fields = dict(line.split(": ", 1) for line in block.decode().splitlines() if not line.startswith(":"))
                if "event" in fields and kind in ("", fields["event"]):
                    found.append((fields.get("id", ""), fields["event"], json.loads(fields["data"])))
        return found

    def rest(self) -> bytes:
        """Read until the end."""
        return self._file.read()

    def close(self) -> None:
        """Leave."""
        self._file.close()
        self.connection.close()


def refused(folder: Path, *options: str, **environ: str) -> tuple[int, str, str]:
    """Run a server that does not start."""
    command = [sys.executable, "-m", "gpulse", "serve", *options]
    done = subprocess.run(
        command, env=plain_environment(folder, **environ), capture_output=True, text=True, timeout=30, check=False
    )
    return done.returncode, done.stdout, done.stderr


class StreamOf:
    """A stream that is closed in the end."""

    def __init__(self, server: Serving, last: str = "", small: bool = False) -> None:
        self._stream = server.stream(last, small)

    def __enter__(self):  # type: ignore[no-untyped-def]
        return self._stream

    def __exit__(self, *failure: object) -> None:
        self._stream.close()
