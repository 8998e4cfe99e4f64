"""Whether the process that a file names still lives and belongs to the file's owner: PID, start time, user, boot and a lock."""

from __future__ import annotations

import fcntl
import os
import struct
import time

from ..value import Value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

_FLOCK = "hhqqi4x"  # struct flock: type, whence, start, length, pid


class Viewpoint(Value):
    """What a reader needs to judge processes: the id of this boot, and the PID namespace, without which a PID means nothing."""

    boot: str
    space: str


def viewpoint() -> Viewpoint:
    """Return the viewpoint of this process; reads two files of /proc."""
    return Viewpoint(boot_id(), _pid_space())


def signature(view: Viewpoint) -> dict[str, Any]:
    """Return what a file says about the process that writes it."""
    pid = os.getpid()
    return {"pid": pid, "start": (_stat(pid) or ("", 0))[1], "boot": view.boot, "space": view.space}


def state_of(signed: Mapping[str, Any], handle: int, owner: int, view: Viewpoint) -> str | None:
    """Return the state letter of the process that signed an open file, empty if it is hidden; None if it does not count.

    It counts if the file is locked by somebody who can write it, which proves that a process of the `owner` lives, and if the
    process can be seen, if it is the owner's and began when the file says.
    """
    pid, start = signed.get("pid"), signed.get("start")
    if not isinstance(pid, int) or not isinstance(start, int) or pid <= 0 or signed.get("boot") != view.boot:
        return None
    if not locked_by_writer(handle):
        return None
    if signed.get("space") != view.space:
        return ""  # in another container
    if (seen := _stat(pid)) is not None:
        lives = seen[1] == start and seen[0] not in ("Z", "X") and owner in users_of(pid)
        return seen[0] if lives else None
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return None
    except OSError:
        pass  # it is there, and hidden
    return ""


def lock_for_life(handle: int) -> bool:
    """Lock a file until its last descriptor is closed, also by death; needs write access, so no other user can do it.

    Everybody who can read a file can flock() it; a write lock of this kind (F_OFD_SETLK) is refused to readers.
    """
    try:
        fcntl.fcntl(handle, fcntl.F_OFD_SETLK, struct.pack(_FLOCK, fcntl.F_WRLCK, os.SEEK_SET, 0, 0, 0))
    except BlockingIOError:
        return False
    return True


def locked_by_writer(handle: int) -> bool:
    """Return whether somebody who can write a file has locked it with `lock_for_life`."""
    asked = struct.pack(_FLOCK, fcntl.F_RDLCK, os.SEEK_SET, 0, 0, 0)
    kind: int = struct.unpack(_FLOCK, fcntl.fcntl(handle, fcntl.F_OFD_GETLK, asked))[0]
    return kind == fcntl.F_WRLCK


def uptime() -> float:
    """Return the seconds since the machine started: a clock that nobody sets, the same for all processes."""
    return time.clock_gettime(time.CLOCK_BOOTTIME)


def began_at(pid: int) -> float | None:
    """Return when a process began, in seconds since 1970; None if it is gone or hidden."""
    seen = _stat(pid)
    return None if seen is None else time.time() - uptime() + seen[1] / os.sysconf("SC_CLK_TCK")


def boot_id() -> str:
    """Return the id of this boot; empty where the kernel does not tell."""
    try:
        with open("/proc/sys/kernel/random/boot_id", encoding="ascii") as file:
            return file.read().strip()
    except OSError:
        return ""


def _pid_space() -> str:
    try:
        return os.readlink("/proc/self/ns/pid")
    except OSError:
        return ""


def _stat(pid: int) -> tuple[str, int] | None:
    """Return the state of a process and when it began, in ticks since boot; None if it cannot be seen."""
    try:
        with open(f"/proc/{pid}/stat", "rb") as file:
            words = file.read(4096).rpartition(b")")[2].split()
        return words[0].decode("ascii", "replace"), int(words[19])
    except (OSError, IndexError, ValueError):
        return None


def users_of(pid: int) -> set[int]:
    """Return the real and the effective user of a process; empty if it is gone or hidden.

    The owner of /proc/PID would be root for some programs of others.
    """
    try:
        with open(f"/proc/{pid}/status", "rb") as file:
            line = next(line for line in file if line.startswith(b"Uid:"))
        return {int(word) for word in line.split()[1:3]}
    except (OSError, StopIteration, ValueError):
        return set()
