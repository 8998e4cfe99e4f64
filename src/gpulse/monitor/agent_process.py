"""The main function of an agent in a separate process."""

from __future__ import annotations

import json
import os
import select
import signal
import sys

from .agent import Agent, ParentGone, is_alive
from .request import AgentSample, AlertMessage, Birth, Greeting, Request, Trouble
from .wire import encode

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from .last_words import LastWords

_ALL_CPUS = 1024


def main(plain: str, stderr: int) -> None:
    """Sample for the program named in a JSON request; return when the program stops the agent or ends.

    `stderr` is the program's, for a report if the program is killed; -1 if there is none.
    """
    if os.fork():
        os._exit(0)  # a program that waits for all its children must not see one it did not start
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT, signal.SIGUSR1, signal.SIGUSR2):
        signal.signal(number, signal.SIG_IGN)  # meant for the program, which may still stop us properly
    _leave_its_cores()
    _name_ourselves()
    pipe = Pipe(sys.stdout.fileno(), (request := Request(**json.loads(plain))).pid)
    sys.path.extend(request.path)  # at the end: nothing there may stand in for a module of ours
    try:
        pipe.send(Birth(os.getpid()))
        agent = Agent(request, sys.stdin.fileno(), pipe.send, last_words=_last_words(request, stderr))
        pipe.gone = agent.parent_is_gone
        agent.run()
    except ParentGone:
        pass
    except Exception as error:  # noqa: BLE001  # the program is the only place to report it
        pipe.send(Trouble(f"{type(error).__name__}: {error}"))
    os._exit(0)  # a thread that hangs in the driver must not block the exit


def _last_words(request: Request, stderr: int) -> LastWords | None:
    if not request.report and not request.files:
        return None
    from .last_words import LastWords

    words = LastWords(request, stderr)
    signal.signal(signal.SIGTERM, words.terminate)  # ignored, but worth telling
    return words


class Pipe:
    """The pipe to the program; blocks while the program does not read, but not if it has ended."""

    def __init__(self, descriptor: int, parent: int) -> None:
        self._descriptor = descriptor
        self._poll = select.poll()
        self._poll.register(descriptor, select.POLLOUT)
        os.set_blocking(descriptor, False)
        self.gone: Callable[[], bool] = lambda: not is_alive(parent)

    def send(self, message: Birth | Greeting | AgentSample | AlertMessage | Trouble) -> None:
        """Write a complete message; raise ParentGone if the program no longer reads."""
        rest = memoryview(encode(message))
        while rest:
            try:
                rest = rest[os.write(self._descriptor, rest) :]
            except BrokenPipeError:
                raise ParentGone from None
            except BlockingIOError:
                if not self._poll.poll(1000.0) and self.gone():
                    raise ParentGone from None


def _name_ourselves() -> None:
    """Set a recognizable process name."""
    try:
        with open("/proc/self/comm", "w", encoding="ascii") as comm:
            comm.write("gpulse-agent")
    except OSError:
        pass  # keep the name python


def _leave_its_cores() -> None:
    """Allow all CPUs: otherwise the agent would share the core that a program is pinned to."""
    try:
        os.sched_setaffinity(0, range(_ALL_CPUS))
    except (OSError, ValueError, AttributeError):
        pass  # keep the current CPUs
