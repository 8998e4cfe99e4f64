"""Stacks of other processes, read with py-spy without pausing them, and why that is not possible."""

from __future__ import annotations

import os
import select
import signal
import sys
import threading
import time

from ..errors import GpulseError
from ..model.snapshot import Check
from ..model.stacks import Frame, Stack
from ..plugins import extra_command
from .files import read_bytes, read_text

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence
    from typing import Any

_PATIENCE = 10.0  # seconds for one dump: 11 ms of CPU, but the machine may be overloaded
_LONGEST = 1 << 26  # bytes of one answer
_DEEPEST = 200  # frames of one stack
_LONGEST_NAME = 300  # characters of a file, function or thread
_ENDED = ("Z", "X")  # the kernel's letters for a zombie and for a process that is being removed
MISSING = "py-spy is not installed, so the lines of code that keep a GPU waiting are not named"
_SCOPES = {
    1: (
        "the kernel only lets a process read its own children (kernel.yama.ptrace_scope is 1)",
        "Start the program with `gpulse run`, use sudo, or run `sudo sysctl kernel.yama.ptrace_scope=0`.",
    ),
    2: (
        "the kernel only lets root read other processes (kernel.yama.ptrace_scope is 2)",
        "Use sudo, or run `sudo sysctl kernel.yama.ptrace_scope=0`.",
    ),
    3: (
        "the kernel does not let anyone read other processes (kernel.yama.ptrace_scope is 3)",
        "Set kernel.yama.ptrace_scope to 0 or 1 in /etc/sysctl.d and reboot.",
    ),
}
_CONTAINER = (
    "the kernel refuses it, as in a container without the capability SYS_PTRACE",
    "Start the container with --cap-add SYS_PTRACE.",
)


class StacksUnavailable(GpulseError):
    """The stacks of a process cannot be read; `lasting` is whether that will stay so for every process of this user."""

    def __init__(self, message: str, remedy: str = "", *, lasting: bool = False) -> None:
        super().__init__(message, remedy)
        self.lasting = lasting


def program(environ: Mapping[str, str] | None = None) -> str:
    """Return the path of py-spy: of this Python's environment, else of PATH; raise StacksUnavailable without one."""
    import shutil

    beside = os.path.join(os.path.dirname(sys.executable), "py-spy")
    path = (os.environ if environ is None else environ).get("PATH", os.defpath)
    found = beside if os.access(beside, os.X_OK) else shutil.which("py-spy", path=path)
    if found is None:
        raise StacksUnavailable(f"{MISSING}.", f"Install it with `{extra_command('stacks')}`.", lasting=True)
    return found


def examine(root: str = "") -> Check:
    """Return the check for `gpulse doctor`: whether the stacks of this user's processes can be read."""
    try:
        program()
    except StacksUnavailable as error:
        return Check("note", "stacks", error.message, error.remedy)
    why, remedy = _SCOPES.get(ptrace_scope(root), ("", ""))
    if why and os.geteuid() != 0:
        return Check("note", "stacks", f"py-spy is installed, but {why}.", remedy)
    return Check("ok", "stacks", "py-spy can read your own processes.")


def owner_of(pid: int) -> int | None:
    """Return the user id of a process; None if it has ended."""
    try:
        return os.stat(f"/proc/{pid}").st_uid
    except OSError:
        return None


def is_own(pid: int, environ: Mapping[str, str] | None = None) -> bool:
    """Return whether a process belongs to the user: ours, or that of the user who called sudo. Root does not own everything."""
    environ = os.environ if environ is None else environ
    sudo = environ.get("SUDO_UID", "") if os.geteuid() == 0 else ""
    return owner_of(pid) in (os.geteuid(), int(sudo) if sudo.isdecimal() else os.geteuid())


def check_own(pid: int) -> None:
    """Raise StacksUnavailable if a process has ended or belongs to somebody else."""
    owner = owner_of(pid)
    if owner is None:
        raise StacksUnavailable(f"process {pid} does not exist.", "See `gpulse status --processes`.")
    if not is_own(pid):
        from ..store.claims import user_name

        raise StacksUnavailable(f"process {pid} belongs to {user_name(owner)}; only your own processes are read.")


class PySpy:
    """A running py-spy that writes its answer to file descriptor 3, or to `output`; raises StacksUnavailable if it cannot be started.

    It has a process group of its own, so that Ctrl-C in the terminal does not end it, and takes all signals, whatever we block.
    """

    def __init__(self, arguments: Sequence[str], output: int = 3) -> None:
        path = program()
        self._lock = threading.Lock()
        self._code: int | None = None
        self.cpu = 0.0  # seconds that it used, once it has ended
        (self._answer, answer), (self._errors, errors) = os.pipe(), os.pipe()
        null = os.open(os.devnull, os.O_RDWR | os.O_CLOEXEC)
        actions = [(os.POSIX_SPAWN_DUP2, null, 0), (os.POSIX_SPAWN_DUP2, null, 1), (os.POSIX_SPAWN_DUP2, errors, 2)]
        actions.append((os.POSIX_SPAWN_DUP2, answer, output))
        environ = {key: value for key, value in os.environ.items() if not key.startswith("RUST_")}  # no backtraces
        try:
            self.pid = os.posix_spawn(
                path,
                [path, *arguments],
                environ,
                file_actions=actions,
                setpgroup=0,
                setsigmask=(),
                setsigdef=[signal.SIGINT],
            )
        except OSError as error:
            os.close(self._answer)
            os.close(self._errors)
            raise StacksUnavailable(
                f"py-spy cannot be started: {error.strerror}.", "Reinstall it.", lasting=True
            ) from None
        finally:
            for one in (answer, errors, null):
                os.close(one)

    def stop(self, number: int = signal.SIGINT) -> None:
        """Tell it to write what it has and to end; does nothing once it has ended."""
        with self._lock:
            if self._code is None:
                os.kill(self.pid, number)

    def finish(self, patience: float) -> tuple[int, bytes, str]:
        """Wait until it ends, and return its exit code, its answer and its errors; it is killed after `patience` seconds."""
        parts: dict[int, bytearray] = {self._answer: bytearray(), self._errors: bytearray()}
        until = time.monotonic() + patience
        poll = select.poll()
        for one in parts:
            poll.register(one, select.POLLIN)
        open_ends = set(parts)
        try:
            while open_ends and (left := until - time.monotonic()) > 0 and len(parts[self._answer]) < _LONGEST:
                for one, _ in poll.poll(1000 * left):
                    piece = os.read(one, 1 << 16)
                    parts[one] += piece
                    if not piece:
                        poll.unregister(one)
                        open_ends.discard(one)
        finally:
            late = bool(open_ends)
            if late:
                self.stop(signal.SIGKILL)
            _, status, used = os.wait4(self.pid, 0)
            with self._lock:
                self._code = os.waitstatus_to_exitcode(status)
            self.cpu = used.ru_utime + used.ru_stime
            os.close(self._answer)
            os.close(self._errors)
        if late:
            raise StacksUnavailable(f"py-spy did not answer within {patience:.0f} s.", "Try again.")
        return self._code, bytes(parts[self._answer]), parts[self._errors][:4096].decode("utf-8", "replace")


def read_stacks(pid: int, *, native: bool = False, patience: float = _PATIENCE) -> list[Stack]:
    """Return what each thread of a process executes now, the main thread first.

    `native` adds frames of C and C++, and pauses the process for that. Raises StacksUnavailable with the reason and what to do.
    """
    import json

    how = "--native" if native else "--nonblocking"
    now = time.time()
    code, text, errors = PySpy(["dump", "--json", how, "--pid", str(pid)], output=1).finish(patience)
    if code:
        raise refusal(pid, code, errors)
    try:
        threads = json.loads(text)
    except ValueError:
        threads = None
    if not isinstance(threads, list):
        raise StacksUnavailable(
            "py-spy answered with something else than stacks.", "Update it: `pip install -U py-spy`."
        )
    return sorted(stacks_of(threads, pid, now), key=lambda stack: stack.role)


def stacks_of(threads: Iterable[Any], pid: int, now: float) -> list[Stack]:
    """Return the stacks in what `py-spy dump --json` printed; whatever has another form is left out."""
    found = []
    for thread in threads:
        frames = thread.get("frames") if isinstance(thread, dict) else None
        if not isinstance(frames, list):
            continue
        known = [
            frame_of(frame.get("name"), frame.get("filename"), frame.get("line"))
            for frame in frames[:_DEEPEST]
            if isinstance(frame, dict)
        ]
        name = thread.get("thread_name")
        name = name[:_LONGEST_NAME] if isinstance(name, str) else ""
        main = name == "MainThread" or thread.get("os_thread_id") == pid
        found.append(Stack(now, tuple(reversed(known)), 0.0, "main" if main else "thread", name, pid))
    if not any(stack.role == "main" for stack in found):  # py-spy does not always know their names and numbers
        found = [stack._replace(role="main") if runs_module(stack.frames) else stack for stack in found]
    return found


def frame_of(name: object, file: object, line: object) -> Frame:
    """Return one frame of py-spy; names are shortened, and a method is called by its own name, as Python calls it."""
    return Frame(
        file[-_LONGEST_NAME:] if isinstance(file, str) else "",
        line if isinstance(line, int) and not isinstance(line, bool) and line >= 0 else 0,
        name.rpartition(".")[2][:_LONGEST_NAME] if isinstance(name, str) else "",
    )


def runs_module(frames: Sequence[Frame]) -> bool:
    """Tell whether a stack begins with a module, as that of the main thread does."""
    return bool(frames) and frames[0].function == "<module>"


def refusal(pid: int, code: int, errors: str, root: str = "") -> StacksUnavailable:
    """Return why py-spy failed on a process: what it printed, together with what the kernel allows."""
    from .processes import parse_stat

    stat = parse_stat(read_bytes(f"/proc/{pid}/stat", 4096) or b"")
    if stat is None or stat.state in _ENDED:
        return StacksUnavailable(f"process {pid} has ended.")
    if "executable name" in errors and "ermission" in errors:  # only of this process: it has rights that we do not have
        remedy = "" if os.geteuid() == 0 else "Use sudo."
        return StacksUnavailable(f"the kernel does not permit this user to read process {pid}.", remedy)
    if "ermission" in errors or "not permitted" in errors:
        why, remedy = _SCOPES.get(ptrace_scope(root), _CONTAINER)
        return StacksUnavailable(f"the stacks of process {pid} cannot be read: {why}.", remedy, lasting=True)
    # a thread of the kernel has no executable
    if "executable name" in errors or "python version" in errors or "Failed to find" in errors:
        return StacksUnavailable(f"process {pid} is not a Python program.")
    if code < 0:
        return StacksUnavailable(f"py-spy was ended by signal {-code}.")
    first = next((line.strip() for line in errors.splitlines() if line.strip()), f"exit code {code}")
    return StacksUnavailable(f"py-spy cannot read process {pid}: {first.removeprefix('Error: ')[:200]}")


def only_ancestors() -> bool:
    """Return whether only ancestors may read a process, unless it allows others: py-spy, a sibling, could not read a command of ours."""
    return ptrace_scope() == 1 and os.geteuid() != 0


def ptrace_scope(root: str = "") -> int:
    """Return how far Yama restricts reading other processes: 0 is not at all, also where the kernel has no Yama."""
    text = (read_text(f"{root}/proc/sys/kernel/yama/ptrace_scope", 16) or "").strip()
    return int(text) if text.isdecimal() else 0
