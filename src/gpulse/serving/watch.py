"""The thread that asks model servers: found on the GPUs or configured, all at once, none of them able to delay anybody.

The sampler only hands in the processes on its GPUs and takes the newest answers; it never waits. Servers are asked shortly
before the next sample is expected, at most once a second.
"""

from __future__ import annotations

import os
import select
import threading
import time

from ..model.serving import mentions_server
from ..sources.files import read_bytes
from ..sources.processes import parse_stat
from .settings import read_settings, read_tariff
from .tracking import ServingTracker

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from typing import TypeAlias

    from ..model.serving import ServerSample
    from ..model.snapshot import Problem
    from .asked_server import AskedServer, Asking
    from .discovery import FoundServer
    from .settings import ServingSettings

    Answer: TypeAlias = "tuple[tuple[ServerSample, ...], tuple[Problem, ...]]"
    from collections.abc import Sequence

    from ..model.catalog import Gpu, Server
    from ..model.snapshot import Snapshot
    from ..sources.base import Machine


_LEAST = 0.9  # seconds between two requests to a server: once a second, and a little early is fine
_LEAD = 0.15  # seconds before the next sample at which servers are asked
_LONGEST = 60.0  # seconds between samples that are still expected to come at that pace
_APART = 0.25  # seconds between two requests for a single sample, so that it has rates
_SOON, _SELDOM = 10.0, 60.0  # seconds between two looks for servers: while one does not listen yet, and otherwise
_MOST = 32  # servers
_ANCESTORS = 4


class ServingWatch:
    """Asks the servers of one machine. `observe`, `wait` and `close` are for one thread, the sampler's.

    `root` is prefixed to /proc, for tests; without `settings`, those of the user are read.
    """

    def __init__(self, settings: ServingSettings | None = None, root: str = "") -> None:
        self._settings = settings or read_settings(os.environ)
        self._root = root
        self._changed = threading.Condition()
        self._pids: frozenset[int] = frozenset()
        self._looked_for: frozenset[int] | None = None  # pids
        self._look_at = float("-inf")
        self._asked = self._observed = float("-inf")
        self._due: float | None = None  # when all are asked next; None until somebody wants to know
        self._closed = False
        self._thread: threading.Thread | None = None
        self._targets: list[AskedServer] = []
        self._asking: Asking | None = None
        self._unreachable: list[Problem] = []
        self._answer: Answer = ((), ())
        self._waker = -1
        self._process = os.getpid()

    def observe(self, pids: Iterable[int]) -> Answer:
        """Return the newest answers and what is wrong, and have the servers of these processes asked before the next call."""
        if self._process != os.getpid():  # threads and connections stay behind in a fork
            self.__init__(self._settings, self._root)  # type: ignore[misc]
        now = time.monotonic()
        pace = now - self._observed
        with self._changed:
            self._observed, self._pids = now, frozenset(pids)
            expected = now + pace - _LEAD if _LEAST <= pace <= _LONGEST else now
            self._due = max(self._asked + _LEAST, expected)
            if self._thread is None and not self._closed and (self._pids or self._settings.endpoints):
                self._start()
            answer = self._answer
            idle = not self._targets and self._pids == self._looked_for and now < self._look_at
        if not idle:  # waking a thread that has nothing to do costs the sampler up to a millisecond
            self._wake()
        return answer

    def wait(self, seconds: float) -> list[Answer]:
        """Return two answers, so that there are rates, within at most these seconds; one, at once, without servers."""
        if self._thread is None:
            return [self._answer]
        end = time.monotonic() + seconds

        def until(done: Callable[[], bool]) -> bool:
            return self._changed.wait_for(done, max(0.0, end - time.monotonic()))

        with self._changed:
            until(lambda: self._looked_for is not None and all(target.settled for target in self._targets))
            first = self._answer
            if not first[0]:
                return [first]
            moments = {sample.key: sample.at for sample in first[0]}
            self._due = self._asked + _APART
            self._wake()
            until(lambda: all(sample.at > moments.get(sample.key, 0.0) for sample in self._answer[0]))
            return [first, self._answer]

    def close(self) -> None:
        """Stop asking; returns at once."""
        with self._changed:
            self._closed = True
        self._wake()

    def _start(self) -> None:
        reads, self._waker = os.pipe2(os.O_NONBLOCK | os.O_CLOEXEC)
        self._thread = threading.Thread(target=self._run, args=(reads, self._waker), name="gpulse-serving", daemon=True)
        self._thread.start()

    def _wake(self) -> None:
        if self._waker >= 0:
            try:
                os.write(self._waker, b".")
            except OSError:
                pass  # it is full or closed, and either way the thread wakes up

    def _run(self, reads: int, writes: int) -> None:
        while not self._closed:
            now = time.monotonic()
            if self._due is not None and (self._pids != self._looked_for or now >= self._look_at):
                self._look(now)
            if self._targets and self._asking is None:
                from .asked_server import Asking  # takes longer than the rest of a glance at a machine without servers

                self._asking = Asking(self._settings, reads)
            self._begin(now)
            pause = self._pause(time.monotonic())
            if self._asking is None:
                select.select([reads], [], [], pause)
                os.read(reads, 4096)
            elif self._asking.turn(self._targets, pause):
                self._publish()
        if self._asking is not None:
            for target in self._targets:
                self._asking.drop(target)
            self._asking.close()
        self._waker = -1
        os.close(reads)
        os.close(writes)

    def _begin(self, now: float) -> None:
        """Send requests to the servers whose turn it is."""
        everybody = self._due is not None and now >= self._due
        idle = [target for target in self._targets if target.request is None]
        turns = [target for target in idle if target.immediate or (everybody and target.due <= now)]
        if everybody:
            with self._changed:
                self._due, self._asked = None, now
        for target in turns:
            assert self._asking is not None
            self._asking.begin(target, now)
        if any(target.request is None for target in turns):
            self._publish()

    def _pause(self, now: float) -> float | None:
        """Return for how long there is nothing to do; None until somebody calls."""
        moments = [target.deadline for target in self._targets if target.request is not None]
        idle = [target for target in self._targets if target.request is None]
        if any(target.immediate for target in idle):
            return 0.0
        if self._due is not None:
            moments += [max(self._due, target.due) for target in idle]
        return max(0.0, min(moments) - now) if moments else None

    def _look(self, now: float) -> None:
        """Find the servers of the processes on the GPUs; those that are known and still there are kept."""
        pids = self._pids
        found = {(one.pid, one.pids): one for one in self._find(pids)}
        kept: list[AskedServer] = []
        for target in self._targets:
            if target.found is None:
                kept.append(target)
            elif (same := found.get((target.found.pid, target.found.pids))) and target.address in same.addresses:
                kept.append(target)
                del found[same.pid, same.pids]
            elif self._asking is not None:
                self._asking.drop(target)
        if self._looked_for is None and self._settings.endpoints:
            kept += self._configured()
        kept += [self._target(one) for one in found.values() if one.addresses]
        unsettled = any(not one.addresses for one in found.values())
        with self._changed:
            self._targets = kept[:_MOST]
            self._unreachable = _said_of([one for one in found.values() if not one.addresses])
            self._looked_for = pids
            self._look_at = now + (_SOON if unsettled else _SELDOM)
        self._publish()

    def _find(self, pids: frozenset[int]) -> list[FoundServer]:
        """Return the servers of these processes that are not configured anyway."""
        if not self._settings.discover or not any(may_serve(pid, f"{self._root}/proc") for pid in pids):
            return []
        from .discovery import Discovery
        from .kinds import KINDS

        configured = {address.name for address in self._settings.endpoints}
        found = Discovery(self._root, {kind.name: kind.ports for kind in KINDS}).find(pids)
        return [one for one in found if not any(address.name in configured for address in one.addresses)]

    def _configured(self) -> list[AskedServer]:
        from .asked_server import AskedServer

        return [AskedServer([address]) for address in self._settings.endpoints]

    def _target(self, found: FoundServer) -> AskedServer:
        from .asked_server import AskedServer
        from .discovery import model_files

        target = AskedServer(found.addresses, found)
        target.files = model_files(found, self._root)
        return target

    def _publish(self) -> None:
        with self._changed:
            samples = tuple(sample for target in self._targets for sample in target.samples)
            problems = [target.problem for target in self._targets if target.problem is not None]
            self._answer = samples, (*problems, *self._unreachable)
            self._changed.notify_all()


def may_serve(pid: int, proc: str) -> bool:
    """Return whether a process or one above it may be a server; a glance at a machine without one then loads nothing more."""
    for _ in range(_ANCESTORS):
        stat = parse_stat(read_bytes(f"{proc}/{pid}/stat", 4096) or b"")
        if stat is None:
            return False
        command = (read_bytes(f"{proc}/{pid}/cmdline", 4096) or b"").decode("utf-8", "replace")
        if mentions_server(f"{stat.name} {command}"):
            return True
        pid = stat.parent
    return False


def _said_of(found: list[FoundServer]) -> list[Problem]:
    if not found:
        return []
    from .asked_server import unreachable

    return [said for one in found if (said := unreachable(one)) is not None]


class MachineServing:
    """Used by the sampler's thread."""

    def __init__(self, machine: Machine) -> None:
        self._machine = machine
        self._watch = ServingWatch() if machine.real and not machine.root else None
        self._tracker = ServingTracker(lambda: read_tariff(os.environ))
        self._pids: set[int] = set()

    def added_to(self, snapshot: Snapshot, now: float, most: float = 0.0, whole: bool | None = None) -> Snapshot:
        """Return a snapshot with the servers of its GPUs as they last answered; `now` is a monotonic time.

        For a single sample, wait `most` seconds for answers, and only if there are servers to wait for. If GPUs were chosen, servers of
        other GPUs are left out, and `whole` is whether the servers of the chosen ones can use no others.
        """
        answers = self._watch.wait(most) if most and self._watch else [self._answer(snapshot.gpus, now)]
        servers: tuple[Server, ...] = ()
        for samples, _ in answers:
            servers = self._tracker.readings(samples, snapshot.gpus, now, whole is not False)
        problems = tuple(dict.fromkeys((*snapshot.problems, *answers[-1][1])))
        if not servers and problems == snapshot.problems:
            return snapshot
        snapshot = snapshot.replace(serving=servers, problems=problems)
        return snapshot if whole is None else snapshot.with_gpus(snapshot.gpus)

    def look_among(self, pids: Iterable[int], now: float) -> None:
        """Start to look for servers among these processes, before there is a sample."""
        self._pids = set(pids)
        if self._watch is not None:
            self._watch.observe(self._pids)
        else:
            self._tracker.readings(self._answer((), now)[0], (), now)

    def _answer(self, gpus: Sequence[Gpu], now: float) -> Answer:
        if self._watch is None:
            return tuple(self._machine.servers(now)), ()
        listed = {int(process.pid) for gpu in gpus for process in gpu.all_processes() if process.pid is not None}
        if listed or not any("processes" in gpu.gaps for gpu in gpus):  # else the lists were not read this time
            self._pids = listed
        return self._watch.observe(self._pids)

    def close(self) -> None:
        """Stop asking."""
        if self._watch is not None:
            self._watch.close()
