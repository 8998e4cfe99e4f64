"""The command of `gpulse run`: it keeps its terminal, its signals and its exit code."""

from __future__ import annotations

import errno
import os
import signal
import time

from ..errors import GpulseError
from ..present.text import clean
from ..sampling.clock import SystemClock

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from typing import NoReturn, TypeAlias

    Mask: TypeAlias = set[int | signal.Signals]

# Signals to us that are meant for the command. We stop only after it: a shell that we gave the terminal back to would share its input with
# a command that has not stopped yet, or does not stop.
_FORWARDED = {
    signal.SIGINT,
    signal.SIGQUIT,
    signal.SIGTERM,
    signal.SIGHUP,
    signal.SIGUSR1,
    signal.SIGUSR2,
    signal.SIGALRM,
    signal.SIGTSTP,
}
_BLOCKED = _FORWARDED | {signal.SIGCHLD}
_TERMINAL = {signal.SIGINT, signal.SIGQUIT, signal.SIGHUP, signal.SIGTSTP}
_BY_KERNEL = 0x80  # si_code of a signal from a terminal, which the command also receives
_POLL = 1.0  # seconds after which to check without a signal: another thread may have taken it
_JOB_CONTROL = (signal.SIGTSTP, signal.SIGTTIN, signal.SIGTTOU)
_PR_SET_PTRACER = 0x59616D61
_PYTHONS = {signal.SIGPIPE, signal.SIGXFSZ}  # Python ignores these; a command expects their default


class NotStarted(GpulseError):
    """A command that cannot be started; the exit code is that of a shell."""

    exit_code = 126


class BlockedSignals(SystemClock):
    """Blocks signals that may be meant for a command; as a clock, it lets them in during sleeps.

    It must be created before any thread: a thread that hangs in a driver would take a signal and end gpulse while the command runs.
    """

    def __init__(self) -> None:
        if signal.getsignal(signal.SIGCHLD) == signal.SIG_IGN:
            signal.signal(signal.SIGCHLD, signal.SIG_DFL)  # if it were ignored, the command's exit code would be lost
        self.before = signal.pthread_sigmask(signal.SIG_BLOCK, _BLOCKED)

    def sleep(self, seconds: float) -> None:
        """Sleep with signals enabled: there is no command yet that they could be meant for."""
        signal.pthread_sigmask(signal.SIG_SETMASK, self.before)
        super().sleep(seconds)
        signal.pthread_sigmask(signal.SIG_BLOCK, _BLOCKED)


class Child:
    """A running command. Signals to gpulse are held until `wait`, which forwards them.

    Afterwards `seconds` is its duration, and `cpu` the CPU time of the command and of all descendants that were waited for.
    """

    def __init__(
        self, command: Sequence[str], environ: Mapping[str, str], signals: BlockedSignals, readable: bool = False
    ) -> None:
        """Start it; raise NotStarted with a shell's exit code if that fails. `readable`: it allows us and our children to read it."""
        self.seconds = 0.0
        self.cpu = 0.0
        self._started = time.monotonic()
        try:
            self.pid = _spawned(command, environ, signals.before, _started_readable if readable else _started)
        except OSError as error:
            raise _not_started(command[0], error) from None

    def wait(self) -> int:
        """Wait for the command to end and return its status, as os.waitpid does."""
        while True:
            done, status, used = os.wait4(self.pid, os.WNOHANG | os.WUNTRACED)
            if done and not os.WIFSTOPPED(status):
                self.cpu = used.ru_utime + used.ru_stime
                self.seconds = time.monotonic() - self._started
                return status
            if done and os.WSTOPSIG(status) in _JOB_CONTROL:
                self._stop_too()
            found = signal.sigtimedwait(_BLOCKED, _POLL)
            if found is not None and found.si_signo != signal.SIGCHLD and not self._has_it(found):
                try:
                    os.kill(self.pid, found.si_signo)
                except ProcessLookupError:
                    pass

    def _stop_too(self) -> None:
        """Stop like the command, otherwise the shell would wait for us forever; unless a shell has just stopped and resumed both."""
        time.sleep(0.02)
        if os.waitid(os.P_PID, self.pid, os.WCONTINUED | os.WNOHANG) is None:
            os.kill(os.getpid(), signal.SIGSTOP)

    def _has_it(self, found: signal.struct_siginfo) -> bool:
        """Return whether the command has received the signal, too: from a terminal, or because it was sent to the process group."""
        return found.si_pid == self.pid or (found.si_signo in _TERMINAL and found.si_code == _BY_KERNEL)


def started_with() -> dict[str, str]:
    """Return the environment as gpulse received it: if no locale is set, Python sets LC_CTYPE (PEP 538)."""
    environ = {**os.environ}
    if "LC_CTYPE" in environ:
        try:
            with open("/proc/self/environ", "rb") as file:
                stated = [entry for entry in file.read().split(b"\0") if entry.startswith(b"LC_CTYPE=")]
        except OSError:
            return environ
        if stated:
            environ["LC_CTYPE"] = os.fsdecode(stated[0].partition(b"=")[2])
        else:
            del environ["LC_CTYPE"]
    return environ


def end_like(status: int) -> NoReturn:
    """Exit with the exit code of a command, or by the signal that ended it, so that a shell sees no difference.

    Exits immediately, without Python's cleanup, because one of our threads may be inside a driver and could crash.
    """
    if not os.WIFSIGNALED(status):
        os._exit(os.waitstatus_to_exitcode(status))
    import resource

    number = os.WTERMSIG(status)
    hard = resource.getrlimit(resource.RLIMIT_CORE)[1]
    # the command has dumped its core; ours is useless. 1 and not 0, which a core_pattern with a pipe ignores
    resource.setrlimit(resource.RLIMIT_CORE, (1 if hard else 0, hard))
    if number != signal.SIGKILL:
        signal.signal(number, signal.SIG_DFL)
        signal.pthread_sigmask(signal.SIG_UNBLOCK, {number})
    os.kill(os.getpid(), number)
    os._exit(128 + number)


def _spawned(command: Sequence[str], environ: Mapping[str, str], mask: Mask, start: Callable[..., int]) -> int:
    if not command[0]:
        raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT))
    try:
        return start([*command], environ, mask)
    except OSError as error:
        if error.errno != errno.ENOEXEC:
            raise
    import shutil

    # a script without #!, which shells and execvp run with sh
    return start(["/bin/sh", shutil.which(command[0]) or command[0], *command[1:]], environ, mask)


def _started(command: list[str], environ: Mapping[str, str], mask: Mask) -> int:
    return os.posix_spawnp(command[0], command, environ, setsigmask=mask, setsigdef=_PYTHONS)


def _started_readable(command: list[str], environ: Mapping[str, str], mask: Mask) -> int:
    """Start a command that allows this process and its children to read it, where Yama allows that only to ancestors.

    It has to allow that itself, between fork and exec, which posix_spawn has no place for. Its own children have to say it again.
    """
    import ctypes
    import subprocess

    prctl, us = ctypes.CDLL(None).prctl, os.getpid()

    def allow() -> None:
        prctl(_PR_SET_PTRACER, ctypes.c_ulong(us), ctypes.c_ulong(0), ctypes.c_ulong(0), ctypes.c_ulong(0))
        signal.pthread_sigmask(signal.SIG_SETMASK, mask)

    started = subprocess.Popen(command, env=environ, preexec_fn=allow, close_fds=False, restore_signals=True)
    started.returncode = 0  # `wait` asks the kernel itself
    return started.pid


def _not_started(program: str, error: OSError) -> NotStarted:
    missing = isinstance(error, FileNotFoundError)
    cure = "Check its spelling and PATH." if missing else "Check that it is an executable program."
    found = NotStarted(f"'{clean(program)}' cannot be started: {error.strerror}.", cure)
    if missing:
        found.exit_code = 127
    return found
