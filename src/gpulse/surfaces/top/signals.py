"""Send signals to processes, but never to another process that has reused the PID."""

from __future__ import annotations

import os

from ...sources.files import read_bytes
from ...sources.processes import parse_stat
from ...value import Value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

# The name without SIG, and what a process usually does; in the order of their numbers on most systems.
SIGNALS = (
    ("HUP", "reload or end"),
    ("INT", "interrupt, as Ctrl-C"),
    ("QUIT", "end with a core dump"),
    ("ILL", "illegal instruction"),
    ("TRAP", "trap of a debugger"),
    ("ABRT", "abort with a core dump"),
    ("BUS", "bus error"),
    ("FPE", "arithmetic error"),
    ("KILL", "end at once, without cleanup"),
    ("USR1", "defined by the program"),
    ("SEGV", "segmentation fault"),
    ("USR2", "defined by the program"),
    ("PIPE", "write to a closed pipe"),
    ("ALRM", "alarm"),
    ("TERM", "end"),
    ("CHLD", "a child has ended"),
    ("CONT", "continue"),
    ("STOP", "pause"),
    ("TSTP", "pause, as Ctrl-Z"),
    ("TTIN", "read from the background"),
    ("TTOU", "write from the background"),
    ("URG", "urgent data"),
    ("XCPU", "CPU time limit"),
    ("XFSZ", "file size limit"),
    ("VTALRM", "alarm of CPU time"),
    ("PROF", "alarm of a profiler"),
    ("WINCH", "window size changed"),
    ("IO", "data can be read or written"),
    ("PWR", "power failure"),
    ("SYS", "bad system call"),
)
USUAL = [name for name, _ in SIGNALS].index("TERM")


def signal_number(name: str) -> int:
    """Return the number of a signal in SIGNALS on this system."""
    import signal

    return int(getattr(signal, f"SIG{name}"))


class Target(Value):
    """A process as it was when selected: `started` is the result of `identify` at that time."""

    pid: int
    started: float | None


def identify(pid: int) -> float | None:
    """Return the start time of a process, in clock ticks since boot; None if it does not exist.

    PID and start time together identify a process, because the kernel reuses PIDs only after a long time.
    """
    stat = parse_stat(read_bytes(f"/proc/{pid}/stat", 4096) or b"")
    return None if stat is None else float(stat.started)


def target(pid: int) -> Target:
    """Return the target for a process as it is now."""
    return Target(pid, identify(pid))


def send(targets: Sequence[Target], signal: str, foreign: bool = False) -> list[str]:
    """Send a signal by its name in SIGNALS; return one sentence per target: what was done, or why not.

    `foreign`: the PIDs belong to another PID namespace and are other processes here, so nothing is sent.
    """
    if signal not in [name for name, _ in SIGNALS]:
        return [f"signal {signal} is not supported" for _ in targets]
    return [_refusal(one, foreign) or _sent(one, signal) for one in targets]


def _refusal(one: Target, foreign: bool) -> str:
    if foreign:
        return f"{one.pid} is outside this container: not signaled"
    if one.pid <= 1:
        return f"{one.pid} is a system process: not signaled"
    if one.pid == os.getpid():
        return f"{one.pid} is gpulse itself: press q to quit"
    if one.started is None:
        return f"{one.pid} could not be identified when it was selected: not signaled"
    return ""


def _sent(one: Target, signal: str) -> str:
    import signal as signals  # loads enum, which is only needed for sending

    number = getattr(signals, f"SIG{signal}")
    handle = _hold(one.pid)
    try:
        # Open the handle first, then check: from here on, the PID cannot be reused unnoticed.
        now = identify(one.pid)
        if now is None:
            return f"{one.pid} has already ended"
        if now != one.started:
            return f"{one.pid} is a different process now: not signaled"
        if handle is None:
            os.kill(one.pid, number)
        else:
            signals.pidfd_send_signal(handle, number)
    except ProcessLookupError:
        return f"{one.pid} has already ended"
    except PermissionError:
        return f"{one.pid} belongs to another user: not permitted"
    except OSError as error:
        return f"{one.pid} could not be signaled: {error.strerror or error}"
    finally:
        if handle is not None:
            os.close(handle)
    return f"sent {signal} to {one.pid}"


def _hold(pid: int) -> int | None:
    """Return a pidfd of a process, or None before Linux 5.3 or if it does not exist."""
    try:
        return os.pidfd_open(pid)
    except (OSError, AttributeError):
        return None
