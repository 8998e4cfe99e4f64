"""The main function of an agent that is a process of its own, beside the program it serves."""

from __future__ import annotations

import json
import os
import select
import signal
import sys

from .agent import Agent, ParentGone, is_alive
from .request import AgentSample, Birth, Greeting, Request, Trouble
from .wire import encode

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

_ALL_CPUS = 1024


def main(plain: str) -> None:
    """Sample for the program that a request, as JSON, names; returns when the program stops us or ends."""
    if os.fork():
        os._exit(0)  # a program that waits for its own children must not find one it never started
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT):
        signal.signal(number, signal.SIG_IGN)  # meant for the program, which may want to say goodbye first
    _leave_its_cores()
    _name_ourselves()
    pipe = Pipe(sys.stdout.fileno(), (request := Request(**json.loads(plain))).pid)
    try:
        pipe.send(Birth(os.getpid()))
        agent = Agent(request, sys.stdin.fileno(), pipe.send)
        pipe.gone = agent.parent_is_gone
        agent.run()
    except (ParentGone, BrokenPipeError):
        pass
    except Exception as error:  # noqa: BLE001  # there is nobody else to tell it to
        pipe.send(Trouble(f"{type(error).__name__}: {error}"))
    os._exit(0)  # a lane that hangs in the driver must not hold us


class Pipe:
    """The way to the program; waits while the program does not read, but not for one that has ended."""

    def __init__(self, descriptor: int, parent: int) -> None:
        self._descriptor = descriptor
        self._poll = select.poll()
        self._poll.register(descriptor, select.POLLOUT)
        os.set_blocking(descriptor, False)
        self.gone: Callable[[], bool] = lambda: not is_alive(parent)

    def send(self, message: Birth | Greeting | AgentSample | Trouble) -> None:
        """Write a message whole; raise ParentGone when there is nobody left to read it."""
        rest = memoryview(encode(message))
        while rest:
            try:
                rest = rest[os.write(self._descriptor, rest) :]
            except BlockingIOError:
                if not self._poll.poll(1000.0) and self.gone():
                    raise ParentGone from None


def _name_ourselves() -> None:
    """Be found in a list of processes."""
    try:
        with open("/proc/self/comm", "w", encoding="ascii") as comm:
            comm.write("gpulse-agent")
    except OSError:
        pass  # python, then


def _leave_its_cores() -> None:
    """Run wherever this machine lets us: a program pinned to a core would share that one with us."""
    try:
        os.sched_setaffinity(0, range(_ALL_CPUS))
    except (OSError, ValueError, AttributeError):
        pass  # as it was, then
