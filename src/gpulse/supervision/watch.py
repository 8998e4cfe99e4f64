"""Sample a command's processes and the GPUs they use while it runs, and find the lines of its code at which the GPUs waited.

`gpulse why` needs only the second, and so what the first needs is imported when it starts.
"""

from __future__ import annotations

import linecache
import threading
from collections import deque

from ..analysis.lost_time import CodeTally
from ..analysis.own_lines import LOADS, call_in, code_lines, library_of, own_line
from ..model.snapshot import Cadence
from ..sources.processes import LinuxMachine
from ..sources.py_spy import StacksUnavailable, check_own, program
from ..sources.stack_recorder import StackRecorder

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable

    from ..analysis.summary import Summary
    from ..analysis.tally import ServedRun
    from ..model.catalog import Gpu
    from ..model.event import Event
    from ..model.snapshot import Snapshot
    from ..model.stacks import Frames, Stack, TimedStack
    from ..monitor.messages import AgentSample, Request

_MUTE = ("lost", "timeout")  # the processes on such a GPU are unknown; one may be the command
_LAST_SAMPLE = 0.2  # seconds to wait for it


class CommandWatch:
    """Samples a command until stopped, in its own threads. `record` is called with every sample, in one of them, `tell` if it hangs.

    `problem`: why sampling failed. `code_problem`: why the lines of code at which its GPUs waited are not known, once stopped.
    """

    def __init__(
        self,
        request: Request,
        record: Callable[[AgentSample], None] | None = None,
        code: CodeWatch | None = None,
        tell: Callable[[str], None] | None = None,
    ) -> None:
        from ..analysis.tally import ServingTally
        from ..monitor.ledger import Ledger
        from ..monitor.link import Link

        self._answered = False
        self.problem = ""
        self.code_problem = ""
        self._seen_cpu = 0.0
        self._serving = ServingTally()
        self._cadence = Cadence()
        self._ledger = Ledger()
        self._record = record
        self._code = code
        self._tell = tell
        self._over = threading.Event()
        try:
            self._link = Link(request, self._note, threaded=True)
            threading.Thread(target=self._listen, name="gpulse-run", daemon=True).start()
        except (OSError, RuntimeError) as error:  # no more files or threads available; the command is already running
            self._note(f"{error}.")

    def stop(self, cpu: float = 0.0, seconds: float = 0.0) -> Summary:
        """Take a last sample if that is quick, and return the summary of the command's GPUs, and of those whose processes are unknown.

        `cpu` is the CPU time that the command used in `seconds`, as the kernel reports it at the end.
        """
        if self._ledger.latest is not None:
            self._link.stop()
            self._over.wait(_LAST_SAMPLE)
        self._ledger.end()
        summary = self._ledger.summary()
        if self._code is not None:
            summary.stacks = self._code.stop()
            summary.code = [*code_lines(summary.stacks)]
            self.code_problem = self._code.problem
        if seconds > 0 and (known := summary.program.get("tree_cpu_percent")) is not None:
            # the kernel leaves out descendants that nobody waited for, samples what happened before the first and after the last
            mean = 100.0 * max(cpu, self._seen_cpu) / seconds
            summary.program = {**summary.program, "tree_cpu_percent": known.with_mean(mean)}
        summary.gpus = tuple(gpu for gpu in summary.gpus if gpu.own.used is not False or gpu.state in _MUTE)
        if not self._answered and not summary.gpus:
            summary.samples = 0  # no GPU ever responded, not even with its name
        return summary

    @property
    def serving(self) -> list[ServedRun]:
        """What model servers did meanwhile on the GPUs of the command."""
        return self._serving.sorted()

    def _listen(self) -> None:
        from ..monitor.messages import AgentSample

        try:
            for message in self._link:
                if isinstance(message, AgentSample):
                    self._tell_hangs(message.alerts, _own_gpus(message))
                    if message.program is not None:
                        self._seen_cpu = max(self._seen_cpu, message.program.tree_cpu_time or 0.0)
                    self._answered |= any(gpu.state not in _MUTE for gpu in message.snapshot.gpus)
                    self._ledger.add(message)
                    self._serving.add(_of_command(message), max(self._cadence.next(message.snapshot.time)[0], 1e-6))
                    if self._code is not None:
                        self._code.add(message.snapshot.time, message.snapshot.gpus, message.own)
                    if self._record is not None:
                        self._record(message)
        except Exception as error:  # noqa: BLE001  # the command continues, whatever happens here
            self._note(f"{error or type(error).__name__}")
        self._over.set()

    def _tell_hangs(self, events: Iterable[Event], used: set[str] | None) -> None:
        """Say that the command hangs, and where, when it does: who waits for its end would wait for long."""
        from ..analysis.alerts.rule_set import hangs
        from ..monitor.listener import alert_of

        for event in events:
            own = used is None or not used.isdisjoint(event.uuids)
            if event.alert == "fire" and hangs(event) and own and self._tell is not None:
                self._tell(alert_of(event, {}).text)

    def _note(self, sentence: str) -> None:
        self.problem = self.problem or sentence


def _own_gpus(message: AgentSample) -> set[str] | None:
    """Return the UUIDs of the GPUs and instances that the command uses; None if processes cannot be told apart."""
    own = message.own
    if own is None:
        return None
    parts = [part for gpu in message.snapshot.gpus for part in (gpu, *gpu.instances)]
    return {part.uuid or "" for part in parts if any(process.pid in own for process in part.processes)}


def _of_command(message: AgentSample) -> Snapshot:
    """Return a snapshot with only the model servers on GPUs that the command uses."""
    snapshot, used = message.snapshot, _own_gpus(message)
    if used is None or not snapshot.serving:
        return snapshot
    return snapshot.replace(serving=tuple(one for one in snapshot.serving if not used.isdisjoint(one.gpus or ())))


_PROCESSES = 8  # of a program: py-spy takes up to 5 % of a core for each in the first minute, then a sixth of that
_WORKERS = 2  # of each process; they all do the same
_WAITING = 0.1  # of the time that the main thread must wait for its workers for them to be read
_STRETCH = 10.0  # by how much stacks are stretched to the seconds of the GPU, since there are pauses between them
_LATE = 15.0  # seconds for which samples wait for the stacks of their time


class CodeWatch:
    """Joins samples of GPUs with the stacks of the processes on them, which py-spy reads meanwhile.

    `root` is the process that counts where the processes on the GPUs cannot be told. `problem` is why there are no lines.
    """

    def __init__(self, root: int) -> None:
        self.problem = ""
        self._root = root
        self._lock = threading.Lock()
        self._machine = LinuxMachine()
        self._recorder = StackRecorder(self._take)
        self._processes: dict[int, _ReadProcess] = {}
        self._owners: dict[int, int] = {}  # of workers, the process that they work for
        try:
            program()
        except StacksUnavailable as error:
            self.problem = str(error)

    def add(self, time: float, gpus: Iterable[Gpu], own: Collection[int] | None) -> None:
        """Take a sample, at a time in seconds since 1970; `own` are the processes of the program on them, None if that is unknown."""
        if self.problem:
            return
        gpus = [*gpus]
        for pid in [self._root] if own is None else sorted(own)[:_PROCESSES]:
            self._follow(pid)
        with self._lock:
            for process in self._processes.values():
                process.samples.append((time, gpus, None if own is None else {process.pid}))
                process.settle(time - _LATE)

    def stop(self) -> list[TimedStack]:
        """Stop reading and return the stacks of all processes with the seconds in which their GPUs waited and computed."""
        self._recorder.stop()
        with self._lock:
            stacks: list[TimedStack] = []
            for process in self._processes.values():
                process.settle(float("inf"))
                stacks += process.tally.stacks()
        lines = code_lines(stacks)
        waits = bool(lines) and lines[0].call in LOADS
        self.problem = self.problem or self._recorder.problem or (self._recorder.worker_problem if waits else "")
        return stacks

    def _follow(self, pid: int) -> None:
        if pid in self._processes or len(self._processes) >= _PROCESSES:
            return
        try:
            check_own(pid)
        except StacksUnavailable as error:
            self.problem = str(error)
            return
        with self._lock:
            self._processes[pid] = _ReadProcess(pid)
        self._recorder.follow(pid)

    def _take(self, pid: int, readings: list[list[Stack]], until: float) -> None:
        """Take what one process did, in the thread that reads it."""
        workers: list[int] = []
        with self._lock:
            process = self._processes[self._owners.get(pid, pid)]
            waited = process.take(pid, readings, until)
            if readings and pid == process.pid and waited >= _WAITING * len(readings):
                workers = self._machine.family(pid)[1:]
                alive = [one for one in workers if one in process.known_until]
                workers = [one for one in workers if one not in process.known_until][: max(0, _WORKERS - len(alive))]
                for worker in workers:
                    self._owners[worker] = pid
                    process.known_until[worker] = readings[-1][0].time
        for worker in workers:
            self._recorder.follow(worker, "worker")


class _ReadProcess:
    """One process: its tally, the samples that wait for stacks, and up to when the stacks of it and its workers are known."""

    def __init__(self, pid: int) -> None:
        self.pid = pid
        self.tally = CodeTally(_STRETCH)
        self.samples: deque[tuple[float, list[Gpu], set[int] | None]] = deque()
        self.known_until: dict[int, float] = {pid: 0.0}

    def take(self, pid: int, readings: list[list[Stack]], until: float) -> int:
        """Take stacks of the process or a worker; return at how many readings the main thread waited for workers."""
        waited = 0
        for reading in readings:
            stacks = [stack._replace(frames=with_call(stack.frames)) for stack in reading]
            self.tally.add_stacks(stacks)
            main = next((stack for stack in stacks if stack.role == "main"), None)
            line = None if main is None else own_line(main.frames)
            waited += line is not None and line.call in LOADS
        self.known_until[pid] = until
        self.settle(min(self.known_until.values()))
        return waited

    def settle(self, until: float) -> None:
        """Hand on the samples whose stacks are known."""
        while self.samples and self.samples[0][0] <= until:
            self.tally.add_sample(*self.samples.popleft())


def with_call(frames: Frames) -> Frames:
    """Return a stack in which the innermost line of the program itself names the call it is in, as far as its source tells."""
    for at in range(len(frames) - 1, -1, -1):
        frame = frames[at]
        if library_of(frame.file) is None:
            called = frame._replace(call=call_in(linecache.getline(frame.file, frame.line)))
            return (*frames[:at], called, *frames[at + 1 :])
    return frames
