"""The agent: samples for a program, in a separate process or thread, and stops when the program does.

In a separate process it never imports the program's code, never touches CUDA, and ignores signals meant for the program.
"""

from __future__ import annotations

import json
import os
import select
import signal
import sys

from ..errors import GpulseError
from ..model.select import Wanted, by_uuid, order_is_certain, visible
from ..sampling.assemble import ProcessFamily, Program
from ..sampling.sampler import Sampler
from ..sources.registry import make_source
from .messages import HOST, SELDOM, AgentSample, Birth, Greeting, Request, Trouble, encode

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from .last_words import LastWords
    from .messages import Message
    from .presence import PresenceFile


_CLOSEST = 0.005  # minimum seconds between two requested samples
_SLOWEST = 1.0  # seconds between two samples that also read the slow counters: energy costs 3 ms per GPU


class ParentGone(Exception):
    """The program has ended, for whatever reason."""


class Agent:
    """Takes samples at an interval and on command; `emit` receives a Greeting, then AgentSamples with what the rules
    for alerts find in them, or one Trouble.

    Commands are lines on the descriptor `commands`: `sample`, `pace SECONDS`, `measure SECONDS` (the same, with the process
    lists in every sample), `status JSON` and `progress JSON`
    (how the program is getting on), `stop`. End of file means stop, too.
    """

    def __init__(
        self,
        request: Request,
        commands: int,
        emit: Callable[[Message], None],
        outlives: bool = False,
        last_words: LastWords | None = None,
    ) -> None:
        """Prepare; an agent that `outlives` its program, or has `last_words` for it, takes a last sample after it has ended."""
        self._request = request
        self._outlives = outlives or last_words is not None
        self._last_words = last_words
        self._emit = emit
        self._commands = Commands(commands, request.pid)
        self._program = Program(request.pid)
        self._family = ProcessFamily(request.root or request.pid)
        self._wanted = Wanted(request.asked, request.asked_of_processes, HOST, request.serving)
        self._rules = None
        source = make_source(request.source)
        if request.alerts:
            from .training_rules import TrainingRules, WhereStuck

            self._rules = TrainingRules(explain=WhereStuck() if source.machine.real else None)
            self._wanted |= self._rules.wanted
        self._sampler = Sampler(source, self._wanted)
        self._uuids: list[str] | None = None
        self._presence: PresenceFile | None = None
        self._slow_at = float("-inf")
        self._owes_slow = False  # whether a window has ended too soon after the slow counters were read

    def run(self) -> None:
        """Sample until stopped; raise ParentGone if the program has ended."""
        try:
            self._sampler.open()
            self._choose()
        except GpulseError as error:
            self._emit(Trouble(str(error), fatal=not self._request.without_gpus))
            if not self._request.without_gpus:
                return
            self._do_without_gpus()
        try:
            self._sampler.stay()
            self._sampler.settle()
            self._loop(self._request.interval)
        except StopIteration:
            self._emit(Trouble("the recording has ended, so no more samples follow."))
        except ParentGone:
            if self._outlives:
                self._end_alone()
            raise
        finally:
            self._sampler.close()
            if self._presence is not None:
                self._presence.remove()

    def _do_without_gpus(self) -> None:
        from ..sources.registry import NoGpuSource

        self._sampler.close()
        self._sampler = Sampler(NoGpuSource(), self._wanted).open()
        self._emit(Greeting(None))

    def parent_is_gone(self) -> bool:
        """Return whether the program has ended."""
        return self._commands.gone()

    def _choose(self) -> None:
        gpus, request = self._sampler.identities(), self._request
        certain = True
        known = [] if request.uuids is None else [gpu.uuid for gpu in by_uuid(gpus, request.uuids) if gpu.uuid]
        if request.uuids is not None and (len(known) == len(request.uuids) or request.gpus != "visible"):
            self._uuids = known
        elif request.gpus == "visible":
            self._uuids = [gpu.uuid for gpu in visible(gpus, os.environ) if gpu.uuid]
            certain = order_is_certain(gpus, os.environ)
        elif request.gpus != "all":
            self._sampler.choose([*request.gpus])
        if self._uuids is not None:
            self._sampler.choose([gpu.uuid for gpu in gpus if gpu.uuid and by_uuid([gpu], self._uuids)])
        if self._last_words is not None:
            self._last_words.greet(self._uuids)
        self._emit(Greeting(self._uuids, certain))

    def _loop(self, pace: float) -> None:
        clock = self._sampler.clock
        due = last = clock.monotonic()
        self._spare(pace, False)
        while True:
            last = clock.monotonic()
            self._sample(last)
            due = due + pace if due + pace > last else last + pace  # no second sample at once after a long stop
            while True:  # at least once: commands must be read even if samples take longer than the interval
                for command in self._commands.wait(due - clock.monotonic()):
                    word, _, value = command.partition(" ")
                    if word == "stop":
                        self._last_sample()
                        return
                    if word in ("pace", "measure"):
                        pace = float(value)
                        self._spare(pace, word == "measure")
                        due = min(due, last + pace)
                    elif word in ("status", "progress"):
                        self._note(word, value)
                    elif word == "sample":
                        self._hurry(clock.monotonic(), _SLOWEST)
                        due = min(due, last + _CLOSEST)
                if clock.monotonic() >= due:
                    break

    def _end_alone(self) -> None:
        """Take the last sample of a program that has ended, and say what it no longer can."""
        try:
            self._last_sample()
        except ParentGone:
            pass  # nobody reads the pipe any more
        if self._last_words is not None:
            self._last_words.speak(self._commands.death)

    def _note(self, word: str, plain: str) -> None:
        """Keep how the program is getting on, and let other programs of the user see it."""
        try:
            told = json.loads(plain)
        except ValueError:
            return
        if self._last_words is not None:
            (self._last_words.status if word == "status" else self._last_words.progress)(told)
        if word != "status":
            return
        if self._presence is None:
            from .presence import PresenceFile

            self._presence = PresenceFile(self._request.pid)
        self._presence.write(told)

    def _spare(self, pace: float, measuring: bool) -> None:
        """Read what costs the GPU most less often if samples come often; a measurement needs the process lists."""
        self._sampler.costly_every = self._request.costly_every if pace < SELDOM else 0.0
        self._sampler.lists_every = 0.0 if measuring else None

    def _last_sample(self) -> None:
        now = self._sampler.clock.monotonic()
        self._hurry(now, 0.0)
        self._sample(now)

    def _hurry(self, now: float, apart: float) -> None:
        self._owes_slow = now - self._slow_at < apart
        self._sampler.hurry(slow=not self._owes_slow)

    def _sample(self, at: float) -> None:
        if self._owes_slow and at - self._slow_at >= _SLOWEST:
            self._hurry(at, _SLOWEST)
        slow = self._sampler.slow_is_due
        if slow:
            self._slow_at = at
        snapshot = self._sampler.read()
        if self._uuids is not None:
            gpus = tuple(by_uuid(snapshot.gpus, self._uuids))
            snapshot = snapshot.replace(gpus=gpus)
        alerts = () if self._rules is None else self._rules.observe(at, snapshot)
        sample = AgentSample(at, snapshot, self._program.read(slow), self._family.members(snapshot), slow, alerts)
        if self._last_words is not None:
            self._last_words.sample(sample)
        self._emit(sample)


class Commands:
    """The commands that a program writes to its agent; waiting for them also detects the program's end."""

    def __init__(self, descriptor: int, parent: int) -> None:
        self._descriptor = descriptor
        self._parent = parent
        self._rest = b""
        self._poll = select.poll()
        self._poll.register(descriptor, select.POLLIN)
        self.death = _death_of(parent)
        if self.death >= 0:
            self._poll.register(self.death, select.POLLIN)

    def wait(self, seconds: float) -> list[str]:
        """Return the commands that arrive within this number of seconds; raise ParentGone if the program has ended."""
        # without a pidfd, check every second whether the program still exists
        for handle, _ in self._poll.poll(max(0.0, seconds if self.death >= 0 else min(seconds, 1.0)) * 1000.0):
            if handle == self.death:
                raise ParentGone
            chunk = os.read(self._descriptor, 4096)
            if not chunk:
                raise ParentGone
            *lines, self._rest = (self._rest + chunk).split(b"\n")
            return [line.decode("ascii", "replace") for line in lines]
        if self.death < 0 and not is_alive(self._parent):
            raise ParentGone
        return []

    def gone(self) -> bool:
        """Return whether the program has ended."""
        if self.death >= 0:
            return bool(select.select([self.death], [], [], 0)[0])
        return not is_alive(self._parent)


def is_alive(pid: int) -> bool:
    """Return whether a process exists."""
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        pass  # it exists, but belongs to another user
    return True


def _death_of(pid: int) -> int:
    """Return a descriptor that becomes readable when the process ends; -1 if unsupported, or in that process itself.

    The end of the pipe is not enough: workers forked by the program hold it open.
    """
    if pid == os.getpid() or not hasattr(os, "pidfd_open"):
        return -1
    try:
        return os.pidfd_open(pid)
    except OSError:
        return -1


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
        pipe.send(Trouble.from_error(error))
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

    def send(self, message: Message) -> None:
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
