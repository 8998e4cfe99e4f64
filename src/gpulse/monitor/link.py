"""The program's connection to its agent: starts it, receives its messages, restarts it if it dies or hangs, and finally gives up."""

from __future__ import annotations

import os
import sys
import threading
import time
from collections import deque

from .messages import Birth, Trouble
from .process import reap

TYPE_CHECKING = False
if TYPE_CHECKING:
    import subprocess
    from collections.abc import Callable, Iterable, Iterator

    from .messages import Message, Request

_TRIES = 3  # restarts before giving up
_HEALTHY = 300.0  # seconds that an agent must live for earlier restarts to be forgotten
_SILENCE = 10.0  # seconds beyond the interval without a message after which an agent counts as hanging
_TURN = 0.25  # seconds after which a stop is noticed, and a status that is due is told
_FAREWELL = 2.0  # seconds that an agent has for its last sample


class Link:
    """Yields the messages of an agent until stopped; used by one thread, `tell` and `stop` by any.

    `say` is called with a message for the user; `status` is called at least four times
    per second; the commands it returns are sent to the agent. `beside` is called whenever the thread has nothing else to do;
    it returns in how many seconds it wants to be called again.
    """

    def __init__(
        self,
        request: Request,
        say: Callable[[str], None],
        status: Callable[[], Iterable[str]] | None = None,
        threaded: bool = False,
    ) -> None:
        """Start the agent: in a separate process, or in a thread, where each sample uses the program's interpreter."""
        self._request = request
        self._say = say
        self._status = status
        self._threaded = threaded
        self._agent = self._start(request)
        self._stopping = 0.0
        self._stopped = threading.Event()
        self.beside: Callable[[], float] | None = None

    def __iter__(self) -> Iterator[Message]:
        tries = 0
        while True:
            began = time.monotonic()
            yield from self._hear()
            self._agent.end()
            if self._stopping or self._agent.program_ended:
                return
            tries = 1 if time.monotonic() - began >= _HEALTHY else tries + 1
            if tries > _TRIES:
                self._say("the sampling process died repeatedly; this program continues without monitoring.")
                return
            if self._stopped.wait(min(5.0, 0.2 * 4 ** (tries - 1))):
                return
            self._agent = self._start(self._request)

    @property
    def agent_pid(self) -> int | None:
        """The agent's process id; None for a thread."""
        return self._agent.pid

    @property
    def stopping(self) -> bool:
        """Whether the last sample has been requested."""
        return bool(self._stopping)

    def tell(self, command: str) -> None:
        """Send a command; one that cannot be sent is lost."""
        self._agent.tell(command)

    def stop(self) -> None:
        """Request a last sample, after which the iteration ends; waits at most two seconds."""
        self._stopping = self._stopping or time.monotonic()
        self._stopped.set()
        self._agent.tell("stop")

    def disown(self) -> None:
        """Release the pipes in a forked child: they belong to its parent."""
        self._agent.disown()

    def _tell_status(self) -> None:
        if self._status is not None and not self._stopping:
            for command in self._status():
                self._agent.tell(command)

    def _start(self, request: Request) -> ChildAgent | ThreadAgent:
        return (ThreadAgent if self._threaded else ChildAgent)(request)

    def _hear(self) -> Iterator[Message]:
        patience = self._request.interval + _SILENCE
        heard = time.monotonic()
        while True:
            message = self._agent.next(_TURN if self.beside is None else min(_TURN, self.beside()))
            now = time.monotonic()
            self._tell_status()
            if message is not None:
                heard = now
                if isinstance(message, Trouble):
                    self._say(message.message)
                    if message.fatal:
                        self._stopping = self._stopping or now
                else:
                    yield message
            elif self._agent.over or (now - (self._stopping or now) > _FAREWELL) or now - heard > patience:
                return


class _Agent:
    """The program's side of an agent: `over` once there will be no more messages, `program_ended` if the sampled program has."""

    over = False
    program_ended = False
    pid: int | None = None  # of its process; None for a thread
    _to = -1

    def __init__(self) -> None:
        # held while the pipe is written or closed: its number may be that of a file of the program at once, which must get no command
        self._lock = threading.RLock()

    def tell(self, command: str) -> None:
        """Write a command without blocking."""
        try:
            with self._lock:
                os.write(self._to, f"{command}\n".encode())
        except OSError:
            pass  # it has ended or does not read; the listener will notice


class ChildAgent(_Agent):
    """An agent in a separate process, started without multiprocessing, so that no code of the program runs twice.

    `pid` is not that of the process we start, which exits immediately.
    """

    def __init__(self, request: Request) -> None:
        import json
        import subprocess

        super().__init__()
        home = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
        # -I -S: neither the user's folder nor site packages may provide another json or an import hook
        code = (
            "import sys; sys.path.append(sys.argv[1]); from gpulse.monitor.agent import main;"
            "main(sys.argv[2], int(sys.argv[3]))"
        )
        stderr = _duplicate(request.stderr) if request.report else -1
        try:
            self._process: subprocess.Popen[bytes] = subprocess.Popen(
                [sys.executable, "-I", "-S", "-c", code, home, json.dumps(request.to_plain()), str(stderr)],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.DEVNULL,
                bufsize=0,
                start_new_session=True,  # Ctrl-C in a terminal is meant for the program
                pass_fds=(stderr,) if stderr >= 0 else (),
            )
        finally:  # also if no process can be started
            if stderr >= 0:
                os.close(stderr)
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._to, self._from = self._process.stdin.fileno(), self._process.stdout.fileno()
        os.set_blocking(self._to, False)
        self._rest = b""
        self._lines: deque[bytes] = deque()

    def next(self, timeout: float) -> Message | None:
        """Return the next message; None if none arrived in time or, if `over` is set, there will be no more."""
        import select

        from .messages import decode  # here, in the listening thread, so that the program does not wait for it

        while True:
            while self._lines:
                message = decode(self._lines.popleft())
                if isinstance(message, Birth):
                    self.pid = message.pid
                    self._process.wait()
                elif message is not None:
                    return message
            if not select.select([self._from], [], [], timeout)[0]:
                return None
            chunk = os.read(self._from, 1 << 16)
            if not chunk:
                self.over = True
                return None
            *lines, self._rest = (self._rest + chunk).split(b"\n")
            self._lines.extend(lines)

    def end(self) -> None:
        """Make sure that it ends; a process stuck in the kernel is abandoned."""
        import signal
        import subprocess

        try:
            if self.pid is not None and not self.over:  # if its pipe has ended, its PID may have been reused
                os.kill(self.pid, signal.SIGKILL)
            self._process.kill()
            self._process.wait(1.0)
        except (OSError, subprocess.TimeoutExpired):
            pass
        self._close()
        if self.pid is not None:
            reap(self.pid)  # if this program is process 1, as in a container, nobody else does

    def disown(self) -> None:
        """Close our ends in a forked child, and forget the process: only the parent may wait for it."""
        self._lock = threading.RLock()  # a thread that does not exist here may hold the other
        self._close()
        self._process.returncode = 0

    def _close(self) -> None:
        # close the streams: otherwise they would close the descriptors again when collected, even if they have been reused
        with self._lock:
            self._to = self._from = -1
            for stream in (self._process.stdin, self._process.stdout):
                if stream is not None:
                    stream.close()


def _duplicate(descriptor: int) -> int:
    try:
        return os.dup(descriptor)
    except OSError:
        return -1


class ThreadAgent(_Agent):
    """An agent in a thread."""

    def __init__(self, request: Request) -> None:
        from queue import SimpleQueue

        super().__init__()
        self._from, self._to = os.pipe()
        os.set_blocking(self._to, False)
        self._messages: SimpleQueue[Message | None] = SimpleQueue()  # None is the last
        self._request = request
        threading.Thread(target=self._run, name="gpulse-agent", daemon=True).start()

    def next(self, timeout: float) -> Message | None:
        """Return the next message; None if none arrived in time or, if `over` is set, there will be no more."""
        from queue import Empty

        try:
            return self._messages.get(timeout=timeout)
        except Empty:
            return None

    def end(self) -> None:
        """Tell the thread to end; a thread that hangs in the driver is abandoned."""
        with self._lock:
            handle, self._to = self._to, -1
            if handle >= 0:
                os.close(handle)

    def disown(self) -> None:
        """Close the pipe in a forked child, which does not have the thread."""
        self._lock = threading.RLock()
        self.end()
        self._close()

    def _run(self) -> None:
        from .agent import Agent, ParentGone

        try:
            Agent(self._request, self._from, self._messages.put, outlives=self._request.pid != os.getpid()).run()
        except ParentGone:
            self.program_ended = True
        except Exception as error:  # noqa: BLE001  # the listener reports it
            self._messages.put(Trouble.from_error(error))
        self._close()
        self.over = True
        self._messages.put(None)

    def _close(self) -> None:
        handle, self._from = self._from, -1
        if handle >= 0:
            os.close(handle)
