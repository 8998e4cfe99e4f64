"""The thread between a monitor and its agent, the workers that it hands samples to, and the keeper of the run's record.

The thread keeps the ledger and tells the agent how the program is getting on. Each sink has its own queue and thread, so that one that
fails or hangs loses only its own samples. The record for `gpulse runs` costs nothing to a program that only tries something out.
"""

from __future__ import annotations

import os
import sys
import threading
import time

from ..queue_worker import QueueWorker
from ..sources.registry import make_source
from .link import Link
from .messages import PART_OF, AgentSample, Greeting
from .process import doubts, world_size
from .worker_stacks import WorkerStacks

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
    from typing import Any

    from ..analysis.summary import Summary
    from ..model.event import Event
    from ..sinks.base import Alert, Sample, Sink
    from .job import JobFile
    from .ledger import Ledger
    from .messages import Request
    from .presence import Teller
    from .run_record import RunRecord
    from .samples import Samples

_HASTE = 0.1  # seconds between samples while something is measured: the activity counters do not latch faster
_LINGER = 2.0  # seconds to keep that rate, since measurements are often repeated
_PUNCTUAL = 0.9  # share of the interval after which a sample counts as the next one for sinks


class Listener:
    """Receives the samples of one run.

    `say` is called with what is wrong, `show` with a line for the user, `tick` about once per second.
    """

    def __init__(
        self,
        ledger: Ledger,
        request: Request,
        outlets: Sequence[Outlet],
        say: Callable[[str], None],
        show: Callable[[str], None],
        *,
        threaded: bool,
        every_rank: bool,
        tick: Callable[[], None] | None,
    ) -> None:
        self._ledger = ledger
        self._request = request
        self._outlets = outlets
        self._say = say
        self._show = show
        self._every_rank = every_rank
        self._tick = tick
        self._over = threading.Event()
        self._hasty = False
        self._hasty_until = 0.0
        self._edges = EdgeBudget()
        self._teller: Teller | None = None
        self.job: JobFile | None = None
        self.link = Link(request, say, self._status, threaded)
        ledger.workers = WorkerStacks() if request.stacks else None
        threading.Thread(target=self._listen, name="gpulse-monitor", daemon=True).start()

    def sample_now(self) -> None:
        """Ask for a sample at the edge of a window, unless there were many lately."""
        if self._edges.take(time.monotonic()):
            self.link.tell("sample")

    def hasten(self) -> None:
        """Sample ten times per second while something is measured and shortly after; sinks keep their interval."""
        self._hasty_until = time.monotonic() + _LINGER
        if not self._hasty:
            self._hasty = True
            self._tell_haste()

    def stop(self, seconds: float) -> None:
        """Wait for the last sample, at most this long."""
        self.link.stop()
        self._over.wait(seconds)

    def _listen(self) -> None:
        ledger, request = self._ledger, self._request
        ledger.watched = True
        try:
            from .samples import Samples

            stacks = any(outlet.sink.stacks for outlet in self._outlets)
            if ledger.workers is not None:
                from .stack_sampler import StackSampler

                ledger.code = StackSampler(ledger.workers)
                self.link.beside = self._sample_stacks

            samples = Samples(ledger, request.interval * _PUNCTUAL, request.metrics, request.run, stacks)
            for message in self.link:
                if isinstance(message, Greeting):
                    samples.greet(message.uuids)
                    ledger.ordinals = {uuid: at for at, uuid in enumerate(message.uuids or ())}
                    for doubt in doubts(message, self._every_rank, os.environ):
                        self._say(doubt)
                    if self._hasty:  # an agent that replaces another only knows the default interval
                        self._tell_haste()
                elif isinstance(message, AgentSample):
                    ledger.add(message)
                    self._relax()
                    self._hand_on(message, samples)
        except Exception as error:  # noqa: BLE001  # a bug of ours ends the monitoring, never the training
            self._say(f"{type(error).__name__}: {error}; this program continues without monitoring.")
        finally:
            ledger.unwatched()
            if ledger.workers is not None:
                ledger.workers.close()
            self._over.set()

    def _sample_stacks(self) -> float:
        code = self._ledger.code
        if code is None:
            return 1.0
        try:
            return code.tick()
        except Exception as error:  # noqa: BLE001  # the samples of the GPUs go on
            self._ledger.code = None
            self._say(f"stacks cannot be sampled ({type(error).__name__}: {error}).")
            return 1.0

    def _hand_on(self, taken: AgentSample, samples: Samples) -> None:
        """Print the alerts that fired, one line each, and give the sinks a sample if one is due."""
        alerts = [alert_of(event, self._ledger.ordinals) for event in taken.alerts]
        for alert in alerts:
            if alert.state == "fire":
                self._show(f"gpulse: {alert.text}")
        if self._outlets and (sample := samples.due(taken, alerts, self.link.stopping)) is not None:
            for outlet in self._outlets:
                outlet.put(sample)

    def _tell_haste(self) -> None:
        self.link.tell(f"measure {min(self._request.interval, _HASTE)}")

    def _relax(self) -> None:
        if self._hasty and time.monotonic() > self._hasty_until and not self._ledger.measuring:
            self._hasty = False
            self.link.tell(f"pace {self._request.interval}")

    def _status(self) -> Iterator[str]:
        """Yield the commands that tell the agent how the run is getting on; none if it was told a moment ago."""
        import json

        if self._teller is None:
            from .presence import Teller

            self._teller = Teller(self._ledger, self._request.run)
        if (told := self._teller.due()) is not None:
            if self._tick is not None:
                self._tick()
            if self.job is None and world_size(os.environ) > 1:  # a program may join its job long after it started
                from .job import JobFile

                self.job = JobFile(self._ledger, self._request.shared)
            if self.job is not None:
                told |= {"job": self.job.folder, "leads": self.job.leads}
            yield f"status {json.dumps(told, default=str)}"
            if self._request.report:
                yield from (f"progress {json.dumps(part)}" for part in self._teller.progress())


class EdgeBudget:
    """How many more samples the edges of windows may trigger: exact for phases that change occasionally, bounded for those that repeat."""

    __slots__ = ("_at", "_last", "_left")

    MOST = 8.0  # samples in a row, enough for the phases around an epoch's end
    REFILL = 0.6  # seconds until one more: with 8 GPUs a sample costs 15 ms of CPU
    CLOSEST = 0.05  # seconds between two of them; nothing can be told apart within less

    def __init__(self) -> None:
        self._left = self.MOST
        self._at = 0.0
        self._last = float("-inf")

    def take(self, now: float) -> bool:
        """Return whether a sample may be taken at this time, and count it."""
        if now - self._last < self.CLOSEST:
            return False
        self._left = min(self.MOST, self._left + (now - self._at) / self.REFILL)
        self._at = now
        if self._left < 1.0:
            return False
        self._left -= 1.0
        self._last = now
        return True


def alert_of(event: Event, ordinals: Mapping[str, int]) -> Alert:
    """Return an alert for sinks, in the words of all surfaces; a GPU that has another number in this program gets both."""
    from ..present.events import event_text
    from ..sinks.base import Alert

    known = [
        (number, ordinals[uuid]) for number, uuid in zip(event.gpus, event.uuids, strict=False) if uuid in ordinals
    ]
    others = ", ".join(f"gpu{ordinal}" for number, ordinal in known if number != str(ordinal))
    text = event_text(event) + (f" ({others} in this program)" if others else "")
    return Alert(event.time, event.rule, event.alert, event.severity, text, event)


_WAITING = 600  # samples that a slow sink may be behind: ten minutes at one per second
_FLUSH = 10.0  # seconds between flushes


def opened(sinks: Iterable[Sink], say: Callable[[str], None], source: str) -> list[Outlet]:
    """Open sinks and return the workers of those that could be opened; `say` is called with what is wrong with the others.

    `source` names where the samples come from.
    """
    outlets = []
    for sink in sinks:
        try:
            if sink.real_only and not make_source(source).machine.real:
                say(f"data of {source} is not written to this machine's history; name another file: {sink.name}:FILE.")
                continue
            sink.open()
            outlet = Outlet(sink, say)
            outlet.start()
            outlets.append(outlet)
        except Exception as error:  # noqa: BLE001  # a missing logger must not prevent the training from starting
            say(f"{sink.name}: {str(error) or type(error).__name__} (this program continues without this sink).")
    return outlets


def close_all(outlets: Iterable[Outlet], deadline: float, say: Callable[[str], None], summary: Summary) -> None:
    """Hand sinks the lines of code, close them and wait for them until a monotonic time; `say` is called with those that are late."""
    from ..present.code import code_markdown

    waiting, text = [*outlets], code_markdown(summary.code, summary.seconds)
    for outlet in waiting:
        outlet.summary = text
        outlet.close()
    late = [outlet.sink.name for outlet in waiting if not outlet.join(deadline - time.monotonic())]
    if late:
        say(f"{', '.join(late)} did not finish in time; its last samples may be missing.")


class Outlet(QueueWorker):
    """The worker of one sink. `dropped` counts samples it was too slow for, `failed` those that raised; `say` reports the first."""

    def __init__(self, sink: Sink, say: Callable[[str], None]) -> None:
        super().__init__(sink.name, _WAITING, say)
        self.sink = sink
        self.summary = ""  # what the sink is handed before it is closed
        self._flushed = time.monotonic()

    def handle(self, sample: Sample) -> None:
        self.sink.write(sample)
        if time.monotonic() - self._flushed > _FLUSH:
            self._flushed = time.monotonic()
            self.sink.flush()

    def finish(self) -> None:
        if self.summary:
            self._try(self.sink.summarize, self.summary)
        self.sink.close()

    def complaint(self, error: Exception) -> str:
        return (
            f"{self.sink.name}: {str(error) or type(error).__name__} (reported once; other samples are still written)."
        )


_TRIAL = 5.0  # seconds below which a run is a trial that nobody wants listed


class RunKeeper:
    """Writes the record of a run once it has lasted long enough, if it is to be `kept`, and its stacks when somebody asks for them.

    `failure` is the exception that ended it.
    """

    def __init__(self, run: str, ledger: Ledger, sinks: Sequence[Sink], kept: bool) -> None:
        self._run = run
        self._ledger = ledger
        self._sinks = sinks
        self._kept = kept
        self._part = os.environ.get(PART_OF) == run
        self._record: RunRecord | None = None
        self._folder = ""  # where stacks are asked for
        self.failure = ""

    def tick(self) -> None:
        """Write how the run is getting on, if it is time; called about once per second, in the listener's thread."""
        self._show_stacks()
        if self._kept and self._ledger.seconds >= _TRIAL:
            self._begun().tick(self._ledger)

    def end(self, summary: Summary, seconds: float) -> str:
        """Write how it ended; return how it compares with the last run of the same command, empty if that takes too long."""
        if not self._kept or (summary.seconds < _TRIAL and not self._part):
            return ""
        recording = next((getattr(sink, "path", None) for sink in self._sinks if sink.name == "jsonl"), None)
        told = {"failure": self.failure, "recording": recording and os.path.abspath(recording)}
        return self._begun().end_in_time(max(0.5, seconds), summary, **told)

    def _show_stacks(self) -> None:
        from .stack_requests import forget, show_stacks

        pid = os.getpid()
        if not self._folder:
            from .presence import private_folder

            try:
                folder = self._folder = private_folder(os.environ)
            except OSError:
                return
            self._ledger.at_stop = (*self._ledger.at_stop, lambda: forget(pid, folder))
        show_stacks(pid, self._folder, self._tree)

    def _tree(self) -> dict[str, Any]:
        from ..analysis.own_lines import flame_of

        code = self._ledger.code
        return flame_of([] if code is None else code.stacks()).to_plain()

    def _begun(self) -> RunRecord:
        from .run_record import RunRecord  # with the words of verdicts, which a short program need not load

        if self._record is None:
            self._record = RunRecord(self._run, sys.orig_argv, os.getpid(), self._ledger.started, part=self._part)
        return self._record
