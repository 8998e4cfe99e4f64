"""`gpulse trace`: ask a running program for a profiler trace of its next steps."""

from __future__ import annotations

import sys

from ...errors import GpulseError, UsageError
from ..options import DEMO_REFUSED, HELP, Arguments, Option, Verb, refuse_demo, seconds, whole

TYPE_CHECKING = False
if TYPE_CHECKING:
    from ...monitor.traces import TraceRequest

_PATIENCE = 300.0
_POLL = 0.1
_ANSWERS = 10.0  # seconds within which a Monitor takes a request


class TraceTimeout(GpulseError):
    """A trace that was not written in time."""

    exit_code = 124


def run(arguments: Arguments) -> int:
    """Ask, wait until the trace is written, and print its path."""
    refuse_demo("trace", arguments)
    from ...monitor.traces import ask

    request = ask(_pid(arguments.pid), arguments.steps)
    try:
        path = _wait(request, arguments.timeout)
    except KeyboardInterrupt:
        request.withdraw()
        raise
    sys.stdout.write(f"{path}\n")
    sys.stderr.write(
        "gpulse: open it at https://ui.perfetto.dev; "
        f"`gpulse report RECORDING --format perfetto --trace {path} -o both.json` adds the GPU's counters.\n"
    )
    return 0


def _wait(request: TraceRequest, patience: float) -> str:
    """Return the path of the trace; say on standard error what is waited for."""
    from ...sampling.clock import SystemClock

    clock, said = SystemClock(), ""
    began = clock.monotonic()
    while True:
        state, text = request.answer()
        waited = clock.monotonic() - began
        if state == "done":
            return text
        if state == "failed":
            raise GpulseError(f"process {request.pid} wrote no trace: {text}.")
        if waited > _ANSWERS and not request.taken:
            request.withdraw()
            raise TraceTimeout(f"the Monitor of process {request.pid} does not answer.", "Is the process stopped?")
        if waited > patience:
            message = f"process {request.pid} has not finished its steps in {patience:.0f} s ({state})."
            raise TraceTimeout(message, "Does it count steps, with monitor.batches or monitor.step? Try --timeout 30m.")
        if state != said:
            said = state
            words = {"waiting": "waiting for the next step", "tracing": "tracing", "writing": "writing the trace"}
            sys.stderr.write(f"gpulse: {words[state]} …\n")
        clock.sleep(_POLL)


def _pid(text: str | None) -> int:
    """Return the process; without one, the only one of this user that has a Monitor."""
    from ...monitor.presence import folder_of, presences

    if text is not None:
        return whole("trace", 1, (1 << 31) - 1, "a process id", "write it as gpulse trace 4242.")(text)
    there = {pid: one for pid, one in presences().items() if folder_of(pid) is not None}
    if len(there) == 1:
        return next(iter(there))
    if not there:
        raise GpulseError("no program with a gpulse Monitor is running here.", "Use gpulse.Monitor in your program.")
    listed = ", ".join(f"{pid} (step {one.step or 0})" for pid, one in sorted(there.items())[:8])
    raise UsageError(f"trace: {len(there)} programs have a Monitor;", f"name one: {listed}.")


def _steps(text: str) -> int:
    from ...monitor.traces import MOST_STEPS

    return whole("--steps", 1, MOST_STEPS, f"a number of steps from 1 to {MOST_STEPS}", "try --steps 20.")(text)


VERB = Verb(
    "trace",
    (
        Option("pid", value="[PID]", help="Process with a Monitor, of this user (default: the only one there is)"),
        Option("--steps", value="N", default=20, parse=_steps, help="Number of steps to trace (default: 20)"),
        Option("--timeout", value="TIME", default=_PATIENCE, parse=seconds("--timeout", 1, 86_400),
               help="Time to wait for the trace (default: 5m)"),
        *(DEMO_REFUSED, HELP),
    ),
    run,
    (
        ("gpulse trace", "trace the next 20 steps of the program that has a Monitor"),
        ("gpulse trace 4242 --steps 5", "trace five steps of a process"),
    ),
)  # fmt: skip
