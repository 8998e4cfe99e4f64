"""Monitor: sample GPUs in the background of a training program."""

from __future__ import annotations

import atexit
import os
import sys
import time

from ..sources.registry import default_source, is_built_in, is_local
from . import process
from .arguments import check_run, check_values, checked_keys, listed, sinks_of
from .ledger import Ledger
from .listener import Listener, RunKeeper, close_all, opened
from .messages import PART_OF, Request, descriptor_of, new_run
from .reported import ReportedNumbers, text
from .rhythm import Batches, Collector, counted_by_program
from .windows import phase_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence
    from typing import Literal, TextIO, TypeVar

    from typing_extensions import Self

    from ..analysis.summary import Summary
    from ..model.snapshot import Snapshot
    from .arguments import Given
    from .flops import StepFlops
    from .job import JobFile
    from .listener import Outlet
    from .out_of_memory import MemorySnapshot
    from .windows import PhaseContext

    T = TypeVar("T")

_GOODBYE = 2.5  # maximum seconds for stopping, whatever hangs

running: list[Monitor] = []  # the monitors of this process, the most recently started last


class Monitor:
    """Samples the GPUs this program can see in the background and passes every sample to its sinks.

    Use it in a `with`, or call `start()` and `stop()`; it also stops when the program ends. Once created, it never raises into the
    program and never waits for a GPU: an error is printed once to stderr and counted. In a forked child and in the workers of a data
    loader it does nothing. Under torchrun, Slurm or MPI only the first process of a machine samples (`ranks="all"`: every process); the
    others only count their steps. `shared` is a folder of all machines of a job, for one report. `gpus` is "visible", "all", or a list
    of indices and UUIDs. `mode="thread"` samples in a thread of the program instead of a separate process. `report=True` prints the
    summary at the end. `memory_snapshot=True` writes torch's memory snapshot beside the run when memory runs out. A GPU that is lost,
    throttled, running out of memory or no longer used is reported in one line on stderr and as an alert in the sinks that have alerts,
    unless `alerts=False`. Ten times per second it looks at what the program executes, to tell at which lines of code the GPU waits
    (`summary().code`), unless `stacks=False`. Instead of a sink you can pass a function, a path ("gpu.csv", "gpu.jsonl", or "./runs", a
    folder for TensorBoard), or a name: `"csv:gpu.csv"`, `"wandb"`. `run` is the id of the run (default: a new one); to continue a run,
    pass its id and, as `initial_step`, the steps it already has. `flops_per_step` are the floating-point operations of one step of this
    process, or "count" to have torch count those of the second step; with `dtype`, the type they are computed in, they give the model
    FLOPs utilization (MFU).
    """

    def __init__(
        self,
        sinks: Given | Iterable[Given] = (),
        *,
        interval: float = 1.0,
        metrics: Sequence[str] | None = None,
        gpus: str | int | Sequence[str | int] = "visible",
        mode: Literal["process", "thread"] = "process",
        ranks: Literal["one", "all"] = "one",
        shared: str | os.PathLike[str] | None = None,
        report: bool = False,
        alerts: bool = True,
        stacks: bool = True,
        memory_snapshot: bool = False,
        flops_per_step: float | Literal["count"] | None = None,
        dtype: object = None,
        source: str | None = None,
        run: str | None = None,
        initial_step: int = 0,
        stderr: TextIO | None = None,
    ) -> None:
        check_values(
            interval, mode, ranks, source, report=report, alerts=alerts, stacks=stacks, memory_snapshot=memory_snapshot
        )
        check_run(run, initial_step, shared)
        self.interval = interval
        self.errors = 0
        self._sinks = sinks_of(sinks)
        self._metrics = None if metrics is None else checked_keys(metrics)
        self._gpus = gpus if isinstance(gpus, str) and gpus in ("visible", "all") else listed(gpus)
        self._source = source or default_source()
        # what only this process has, no other can sample; a frozen program is its own interpreter: starting it would run it twice
        self._threaded = mode == "thread" or is_local(self._source) or hasattr(sys, "frozen") or not sys.executable
        self._every_rank = ranks == "all"
        self._shared = None if shared is None else os.path.abspath(shared)
        self._job: JobFile | None = None
        self._report, self._alerts, self._snapshots = report, alerts, memory_snapshot
        self._memory: MemorySnapshot | None = None
        self._flops = None if flops_per_step is None and dtype is None else (flops_per_step, dtype)
        self._step_flops()  # raises for a value that cannot be used
        self._stacks = stacks and os.environ.get("GPULSE_STACKS", "1") not in ("0", "false", "no")
        self.run = run or os.environ.get(PART_OF, "") or new_run()
        self._quiet = False  # whether it only serves measurements
        self._initial_step, self._stderr = initial_step, stderr
        self._told: set[str] = set()
        self._numbers = ReportedNumbers(self._say)
        self._pid = 0
        self._ledger: Ledger | None = None
        self._outlets: list[Outlet] = []
        self._collector = Collector(self._metrics)
        self._listener: Listener | None = None
        self._cell: int | None = None
        self._keeper: RunKeeper | None = None  # of a run that `gpulse runs` lists

    # --- start and end

    def start(self) -> Self:
        """Start sampling and return immediately. Does nothing if it is already running."""
        if self._is_ours() or process.is_helper():
            return self
        self._cell = process.cell_number()
        process.EARLIER_CELLS.replace(running, self._cell, self._print)
        self._pid = os.getpid()
        ledger = self._ledger = Ledger(self._sample_now, self._initial_step)
        if (flops := self._step_flops()) is not None:
            flops.follow(ledger, self._say)
        running.append(self)
        process.at_fork(_disown_all)
        process.at_end(self.stop)
        self._attempt("sampling", self._begin, ledger)
        self._attempt("the memory snapshot", self._begin_snapshot)
        return self

    def stop(self) -> Summary | None:
        """Take a last sample, close the sinks and return the summary; takes a few seconds at most, even if a driver or a sink hangs.

        Returns None if it was not started in this process.
        """
        if not self._is_ours() or self._ledger is None:
            return None
        try:
            return self._finish(self._ledger)
        except Exception as error:  # noqa: BLE001  # a bug of ours costs the summary, never the training
            self._say(f"no summary: {type(error).__name__}: {error}.")
            return None
        finally:  # on Ctrl-C meanwhile, too: nothing may go on
            if self._listener is not None:
                self._listener.link.stop()
            for outlet in self._outlets:
                outlet.close()
            self._pid, self._listener, self._job, self._outlets = 0, None, None, []

    def _finish(self, ledger: Ledger) -> Summary:
        deadline = time.monotonic() + _GOODBYE
        for call in ledger.at_stop:
            call()
        atexit.unregister(self.stop)  # a finalizer of multiprocessing that stays calls `stop`, which then does nothing
        if self._memory is not None:
            self._memory.close()
        if self in running:
            running.remove(self)
        if self._listener is not None:
            self._listener.stop(deadline - time.monotonic())
        ledger.end()
        summary, report = ledger.summary(), self._report
        close_all(self._outlets, deadline, self._say, summary)
        compared = "" if self._keeper is None else self._keeper.end(summary, deadline - time.monotonic())
        job = self._job if self._listener is None else self._listener.job
        if job is not None:
            report = job.finish(summary, deadline, report) and report
        if report:
            from .report import report_text

            self._print("\n".join([report_text(summary, os.environ), *([f"  {compared}"] if compared else [])]))
        return summary

    def __enter__(self) -> Self:
        return self.start()

    def __reduce__(self) -> tuple[type[Monitor], tuple[()]]:
        return Monitor, ()  # one that is pickled to another process, for example with a data set, does nothing there

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        if error is not None:
            self.mark("interrupted" if isinstance(error, KeyboardInterrupt) else "failed", type(error).__name__)
            if self._keeper is not None:
                self._keeper.failure = type(error).__name__
            if self._memory is not None:
                self._memory.failed(error)
        self.stop()

    # --- reported by the program

    def phase(self, name: str) -> PhaseContext:
        """Return a phase of the program (train, eval, save), for `with` or as a decorator. Phases can be nested and repeated.

        Beyond 200 names, further ones are counted together.
        """
        return phase_of(self, name)

    def mark(self, name: str, value: object = None) -> None:
        """Record a mark: `mark("epoch", 3)`. A number is logged as mark/epoch.

        A tensor or array with one element is converted to a number at once, which waits for a GPU that still computes it.
        """
        if (ledger := self.ledger) is not None:
            ledger.marks.add(text(name), value)

    def step(self, count: int = 1, items: float = 0, tokens: float = 0) -> None:
        """Count a step and what it processed, `items` (samples) and `tokens`, for throughput and the steps of sinks.

        Inside a loop over `batches` it replaces the step that the loop would count for the current batch.
        """
        steps, done, read = self._numbers.step(count, items, tokens)
        if steps:
            counted_by_program(self)
        if (ledger := self.ledger) is not None:
            ledger.step(steps, done, read)

    def resume(self, step: int) -> None:
        """Say that the run continues after this many steps, as a checkpoint tells: later ones count on from there."""
        if (reached := self._numbers.read("resume: step", step)) is not None:
            self._initial_step = int(reached)
            if (ledger := self.ledger) is not None:
                ledger.rhythm.resume(self._initial_step)

    def waited(self, seconds: float) -> None:
        """Add time that the program spent waiting for data; callbacks and `batches` do this automatically."""
        if (ledger := self.ledger) is not None:
            ledger.waited(self._numbers.wait(seconds, ledger.seconds))

    def batches(
        self,
        loader: Iterable[T],
        *,
        items: float | Callable[[T], float] = 0,
        tokens: float | Callable[[T], float] = 0,
        steps: bool = True,
    ) -> Batches[T]:
        """Iterate over the batches of a loader; measure how long each took to load, and count each as a step.

        `items` and `tokens` are the numbers of samples and of tokens in a batch, or functions that return them: `items=len`. With
        `steps=False` only the waiting is measured, and the program calls `step` itself. `len()` of the result is the loader's.
        """
        return Batches(self, loader, items, steps, tokens)

    # --- results

    @property
    def latest(self) -> Snapshot | None:
        """The newest snapshot, of the monitored GPUs only; None before the first."""
        if self._ledger is None or (latest := self._ledger.latest) is None:
            return None
        return self._ledger.last_values.complete(latest.snapshot)

    def collect(self) -> dict[str, float]:
        """Return the newest values by tag (`gpu0/utilization`, `host/cpu_percent`, …), for programs that log them themselves.

        Returns immediately: the values are those of the last sample. Missing values are left out, so the result is empty before
        the first sample, and on a rank that does not sample it has only the program's own progress.
        """
        return {} if self._ledger is None else self._collector.values(self._ledger, self.interval)

    def summary(self) -> Summary | None:
        """Return the statistics of the run and of each phase so far; None before the start."""
        return None if self._ledger is None else self._ledger.summary()

    @property
    def ledger(self) -> Ledger | None:
        """The ledger for the windows of measurements; None if not running in this process."""
        return self._ledger if self._is_ours() else None

    @property
    def samples(self) -> bool:
        """Whether this monitor has a sampler: not on other ranks, not after a fork, not if it could not start."""
        return self._is_ours() and self._listener is not None

    @property
    def agent_pid(self) -> int | None:
        """The PID of the sampling process, or None."""
        return None if self._listener is None else self._listener.link.agent_pid

    def __repr__(self) -> str:
        if not self._is_ours():
            state = "not running"
        elif self._listener is None:
            state = "running, not sampling"  # another rank samples, or no agent could be started
        else:
            latest = self.latest
            state = "running" if latest is None else f"running, {len(latest.gpus)} GPUs"
        sinks = f", sinks: {', '.join(str(sink.name) for sink in self._sinks)}" if self._sinks else ""
        return f"<Monitor {state}, every {self.interval:g} s{sinks}>"

    def hasten(self, name: str = "") -> None:
        """Sample ten times per second while something is measured, unless calls of this name are too short; sinks keep their interval."""
        if self._listener is not None and not (self._ledger is not None and self._ledger.is_brief(name)):
            self._listener.hasten()

    # --- internal

    def _attempt(self, what: str, begin: Callable[..., None], *given: object) -> None:
        try:
            begin(*given)
        except Exception as error:  # noqa: BLE001  # no process or thread is left, or the current folder is gone
            self._say(f"{what} could not be started ({error}); this program continues without it.")

    def _begin(self, ledger: Ledger) -> None:
        if not self._every_rank and process.local_rank(os.environ):
            from .job import JobFile

            self._job = JobFile(ledger, self._shared, presence=self.run)
            return
        if not self._quiet:  # no notebook is kept, and of a job only the first rank
            kept = self._cell is None and not process.global_rank(os.environ)
            self._keeper = RunKeeper(self.run, ledger, self._sinks, kept)
        self._outlets = opened(self._sinks, self._say, self._source)
        self._listener = Listener(  # if it cannot be started, an agent that did start notices the end of its pipe
            ledger,
            self._request(),
            self._outlets,
            self._say,
            self._print,
            threaded=self._threaded,
            every_rank=self._every_rank,
            tick=None if self._keeper is None else self._keeper.tick,
        )

    def _begin_snapshot(self) -> None:
        if self._snapshots:
            from .out_of_memory import MemorySnapshot, snapshot_path

            path = snapshot_path(self._sinks, self.run, process.global_rank(os.environ))
            self._memory = MemorySnapshot(path, self._print)

    def _is_ours(self) -> bool:
        return self._pid == os.getpid()

    def _step_flops(self) -> StepFlops | None:
        if self._flops is None:
            return None
        from .flops import StepFlops

        return StepFlops(*self._flops, processes=1 if self._every_rank else process.local_size(os.environ))

    def _request(self) -> Request:
        from ..torch import ordinals

        return Request(
            pid=os.getpid(),
            run=self.run,
            shared=self._shared,
            root=None if self._every_rank else process.launcher(os.environ),
            interval=self.interval,
            metrics=self._metrics,
            gpus=self._gpus,
            uuids=ordinals() if self._gpus == "visible" else None,
            source=self._source,
            path=[] if is_built_in(self._source) else [*map(str, sys.path)],  # a plug-in is imported by the agent, too
            alerts=self._alerts,
            without_gpus=True,
            started=0.0 if self._ledger is None else self._ledger.started,
            report=self._report,
            files=[name for outlet in self._outlets if (name := outlet.sink.continued())],
            stderr=descriptor_of(self._stderr or sys.stderr) if self._report else -1,
            stacks=self._stacks,
            processes=sorted({key for sink in self._sinks for key in sink.processes}),
        )

    def _sample_now(self) -> None:
        if self._listener is not None:
            self._listener.sample_now()

    def _disown(self) -> None:
        """In a forked child: release everything that belongs to the parent."""
        if self._listener is not None:
            self._listener.link.disown()
        if self._ledger is not None and self._ledger.workers is not None:
            self._ledger.workers.start()
        self._listener, self._job, self._outlets, self._ledger, self._pid = None, None, [], None, 0

    def _say(self, sentence: str) -> None:
        """Print a message once, and count it as an error."""
        self.errors += 1
        if sentence not in self._told:
            self._told.add(sentence)
            self._print(f"gpulse: {sentence}")

    def _print(self, text: str) -> None:
        process.tell(text, self._stderr)


def _disown_all() -> None:
    process.forget_half_imported()
    for monitor in running:
        monitor._disown()
    running.clear()
