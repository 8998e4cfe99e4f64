"""Machines over ssh: one long-lived connection each, all read by one thread."""

from __future__ import annotations

import heapq
import os
import selectors
import subprocess
import threading
import time

from .samples import SCRIPT as AMD
from .samples import SampleReader, TooMuch

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import IO

    from ..model.fleet import HostState
    from .fleet import Fleet

CONNECT = 8  # seconds for a connection
_SILENT = 20.0  # seconds until the first sample
_AT_ONCE = 48  # connections being made: a handshake costs both ends some 10 ms of CPU
_AGAIN, _LONGEST = 2.0, 60.0  # seconds before the next try, doubled up to the longest
_BLOCK = 1 << 16
_NO_GPU = 3  # the exit code of `gpulse record` where there is no GPU, and ours where there is no program
_STATES: tuple[tuple[str, HostState], ...] = (
    ("permission denied", "denied"),
    ("host key verification failed", "denied"),
    ("remote host identification has changed", "denied"),
    ("too many authentication failures", "denied"),
    ("could not resolve hostname", "unreachable"),
    ("connection refused", "unreachable"),
    ("no route to host", "unreachable"),
    ("timed out", "unreachable"),
    ("connection closed", "unreachable"),
    ("connection reset", "unreachable"),
)
# Reads only, and works in every login shell: it has no quotes inside and nothing that a shell expands outside of sh.
# gpulse where it is installed, else nvidia-smi in a loop, else the files of AMD's driver.
_COMMAND = (
    "exec sh -c '"
    "PATH=$PATH:$HOME/.local/bin:/usr/local/bin:/opt/gpulse/bin; "
    "if command -v gpulse >/dev/null 2>&1; then exec gpulse record -o - --processes -m screen --interval INTERVAL; fi; "
    "if command -v nvidia-smi >/dev/null 2>&1; then "
    "while nvidia-smi -q -x; do sleep INTERVAL; done; exit 1; fi; "
    + AMD
    + "echo gpulse: neither gpulse nor nvidia-smi nor an AMD GPU was found >&2; exit 3'"
)


def command(interval: float) -> str:
    """Return what a machine is asked to run."""
    return _COMMAND.replace("INTERVAL", f"{interval:g}")


class SshFeed:
    """Reads machines with the system's ssh, which knows the user's keys, agents and jump hosts; it never asks for a password.

    `program` is the command that connects, for tests and wrappers.
    """

    def __init__(self, hosts: Sequence[str], interval: float = 5.0, program: Sequence[str] = ("ssh",)) -> None:
        self._hosts = tuple(hosts)
        self._words = (*program, *_options(), "--")
        self._command = command(interval)
        self._patience = max(_SILENT, 3 * interval)
        self._lines: dict[str, _Line] = {}
        self._due: list[tuple[float, int, str, str, float]] = []  # when to connect, a number, name, host, next delay
        self._number = 0
        self._connecting: set[str] = set()
        self._stop, self._wake = os.pipe2(os.O_CLOEXEC | os.O_NONBLOCK)
        self._selector = selectors.DefaultSelector()
        self._thread = threading.Thread(target=self._run, name="gpulse-ssh", daemon=True)
        self._fleet: Fleet | None = None

    past = None  # nothing is recorded on the way

    def start(self, fleet: Fleet) -> None:
        self._fleet = fleet
        now = time.monotonic()
        for host in self._hosts:
            self._plan(fleet.expect(host, "ssh"), host, now, _AGAIN)
        self._selector.register(self._stop, selectors.EVENT_READ)
        self._thread.start()

    def close(self) -> None:
        """End all connections; what runs on the machines ends with them."""
        os.write(self._wake, b"x")
        if self._thread.is_alive():
            self._thread.join()
        for line in self._lines.values():
            line.kill()  # all of them before the first is waited for
        for line in self._lines.values():
            line.end()
        self._selector.close()
        os.close(self._stop)
        os.close(self._wake)

    def _plan(self, name: str, host: str, at: float, delay: float) -> None:
        self._number += 1
        heapq.heappush(self._due, (at, self._number, name, host, delay))

    def _run(self) -> None:
        while True:
            now = time.monotonic()
            self._connect(now)
            self._give_up(now)
            soonest = min((line.until for line in self._lines.values()), default=now + 60)
            if self._due and len(self._connecting) < _AT_ONCE:
                soonest = min(soonest, self._due[0][0])
            for key, _ in self._selector.select(max(0.0, soonest - time.monotonic())):
                if key.fd == self._stop:
                    return
                self._take(*key.data)

    def _connect(self, now: float) -> None:
        """Start the connections that are due, some at a time."""
        assert self._fleet is not None
        while self._due and self._due[0][0] <= now and len(self._connecting) < _AT_ONCE:
            _, _, name, host, delay = heapq.heappop(self._due)
            try:
                line = _Line(host, delay, [*self._words, host, self._command], now + self._patience)
            except OSError as error:
                self._fleet.fail(name, "failed", f"ssh cannot be run ({error.strerror})")
                self._plan(name, host, now + delay, min(_LONGEST, 2 * delay))
                continue
            self._lines[name] = line
            self._connecting.add(name)
            for stream in (line.output, line.errors):
                os.set_blocking(stream.fileno(), False)
                self._selector.register(stream, selectors.EVENT_READ, (name, stream is line.errors))

    def _take(self, name: str, complaint: bool) -> None:
        """Read what a machine has printed; the end of its output ends the connection."""
        line = self._lines.get(name)
        if line is None:
            return
        stream = line.errors if complaint else line.output
        try:
            piece = os.read(stream.fileno(), _BLOCK)
        except BlockingIOError:
            return
        except OSError:
            piece = b""
        if complaint:
            line.said = (line.said + piece)[-4096:]
            if not piece:
                self._selector.unregister(stream)
            return
        if not piece:
            self._lost(name, line)
            return
        assert self._fleet is not None
        try:
            for snapshot in line.reader.feed(piece):
                line.until = time.monotonic() + self._patience
                line.delay = _AGAIN
                self._connecting.discard(name)
                self._fleet.put(name, snapshot)
        except TooMuch:
            self._lost(name, line, "it prints something else than samples")
        except Exception as error:  # noqa: BLE001  # one machine must not end the thread that reads all of them
            self._lost(name, line, f"what it prints cannot be read ({type(error).__name__})")

    def _give_up(self, now: float) -> None:
        for name, line in [(name, line) for name, line in self._lines.items() if line.until <= now]:
            self._lost(name, line, f"no sample for {self._patience:.0f} s")

    def _lost(self, name: str, line: _Line, reason: str = "") -> None:
        """Close a connection, say why, and plan the next one."""
        assert self._fleet is not None
        for stream in (line.output, line.errors):
            if stream.fileno() in self._selector.get_map():
                self._selector.unregister(stream)
        line.said += line.rest()
        if reason:
            line.kill()
        code = line.end()
        del self._lines[name]
        self._connecting.discard(name)
        self._fleet.fail(name, *_told(line.said.decode("utf-8", "replace"), code, reason))
        self._plan(name, line.host, time.monotonic() + line.delay, min(_LONGEST, 2 * line.delay))


class _Line:
    """One connection: the process of ssh and what it has printed."""

    def __init__(self, host: str, delay: float, words: Sequence[str], until: float) -> None:
        self.host = host
        self.delay = delay
        self.until = until
        self.said = b""
        self.reader = SampleReader(host)
        # In a session of its own it has no terminal to ask for a password, and Ctrl-C does not end it before us.
        self._process = subprocess.Popen(
            words, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, start_new_session=True
        )
        assert self._process.stdout is not None
        assert self._process.stderr is not None
        self.output: IO[bytes] = self._process.stdout
        self.errors: IO[bytes] = self._process.stderr

    def rest(self) -> bytes:
        """Return the complaints that have not been read yet."""
        try:
            return os.read(self.errors.fileno(), 4096) or b""
        except OSError:
            return b""

    def kill(self) -> None:
        """End the connection without waiting for it."""
        self._process.kill()

    def end(self) -> int:
        """End the connection and return its exit code, below 0 if it had to be killed."""
        try:  # its output has ended: its exit code is on the way
            code = self._process.wait(0.2)
        except subprocess.TimeoutExpired:
            self._process.kill()
            code = self._process.wait()
        self.output.close()
        self.errors.close()
        self.reader.close()
        return code


def _options() -> list[str]:
    """Return the options of ssh: no questions, no forwarding, no terminal, a limit in time, and an end when the network is gone."""
    settings = (
        "BatchMode=yes",
        f"ConnectTimeout={CONNECT}",
        "ConnectionAttempts=1",
        "ServerAliveInterval=5",
        "ServerAliveCountMax=3",
        "ForwardAgent=no",
        "ForwardX11=no",
        "ClearAllForwardings=yes",
        "ControlMaster=no",  # a master of the user's is used; ours would take the user's sessions with it when it ends
        "LogLevel=ERROR",
    )
    return ["-T", *(word for setting in settings for word in ("-o", setting))]


def _told(said: str, code: int, reason: str) -> tuple[HostState, str]:
    """Return the state of a machine that was lost, and why."""
    lines = [line.strip() for line in said.splitlines() if line.strip()]
    last = lines[-1] if lines else ""
    lowered = said.lower()
    for words, state in _STATES:
        if words in lowered:
            return state, last
    if reason:
        return "unreachable" if not last else "failed", f"{reason}: {last}" if last else reason
    if code == _NO_GPU:
        return "no_gpu", last
    if code == 255:
        return "unreachable", last or "ssh failed without a message"
    return "failed", last or f"the remote command ended with code {code}"
