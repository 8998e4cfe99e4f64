"""Commands on a pseudo-terminal of their own."""

from __future__ import annotations

import fcntl
import os
import pty
import select
import struct
import subprocess
import termios
import time
from collections.abc import Callable
from types import TracebackType

from typing_extensions import Self


class CommandTerminal:
    """A command on a terminal of its own; `raw` is all it wrote."""

    patience = 60.0

    def __init__(self, environ: dict[str, str], *command: str, columns: int = 97, rows: int = 31) -> None:
        self._master, slave = pty.openpty()
        fcntl.ioctl(slave, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))
        self.raw = b""
        self.process = subprocess.Popen(
            command,
            env={"TERM": "xterm"} | environ,
            stdin=slave,
            stdout=slave,
            stderr=slave,
            start_new_session=True,
            preexec_fn=lambda: fcntl.ioctl(0, termios.TIOCSCTTY, 0),
        )
        os.close(slave)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.process.kill()
        self.process.wait()
        os.close(self._master)

    def press(self, keys: bytes) -> None:
        """Type some keys."""
        os.write(self._master, keys)

    def until(self, seen: Callable[[], bool] | bytes, times: int = 1) -> None:
        """Read until something is seen, or some bytes so many times."""
        end = time.monotonic() + self.patience
        while not (self.raw.count(seen) >= times if isinstance(seen, bytes) else seen()):
            assert self._read(end - time.monotonic()), f"never seen in:\n{self.shown()}"

    def wait(self) -> int:
        """Read until the command is over and return its exit code."""
        end = time.monotonic() + self.patience
        while self._read(end - time.monotonic()):
            pass
        return self.process.wait(max(0.1, end - time.monotonic()))

    def shown(self) -> str:
        """Return what a person would see, for the message of a test that fails."""
        return repr(self.raw)

    def took(self, data: bytes) -> None:
        """Take what the command wrote."""

    def _read(self, patience: float) -> bool:
        if patience <= 0 or not select.select([self._master], [], [], patience)[0]:
            return False
        try:
            data = os.read(self._master, 65536)
        except OSError:  # the other end is closed
            return False
        self.raw += data
        self.took(data)
        return bool(data)
