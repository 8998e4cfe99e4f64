"""Who may take which GPU: one lock file per GPU, which the kernel unlocks when its holders have died."""

from __future__ import annotations

import fcntl
import os
import stat
import time

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

_NOTE = 200  # bytes of a lock file that are read: a pid and a name
_PATIENCE = 0.01  # seconds; a reader that asks who holds a lock has it itself for some microseconds


class Claim:
    """A GPU taken until `close`, or until this process and all it has forked since are gone. Advice: only askers respect it."""

    __slots__ = ("_handle", "uuid")

    def __init__(self, uuid: str, handle: int) -> None:
        self.uuid = uuid
        self._handle: int | None = handle

    def pass_on(self) -> int:
        """Let a program started from here hold the claim too, until it ends; return the file it must be left with."""
        if self._handle is None:
            raise ValueError("the claim is closed")
        os.set_inheritable(self._handle, True)
        return self._handle

    def close(self) -> None:
        """Release it; a program that it was passed on to still holds it. Safe to call twice."""
        if self._handle is not None:
            os.close(self._handle)  # not LOCK_UN, which would take it from the others as well
            self._handle = None

    def __enter__(self) -> Claim:
        return self

    def __exit__(self, *why: object) -> None:
        self.close()


def claim(uuid: str, folder: str | None = None, share: bool = False) -> Claim | None:
    """Take a GPU by UUID, or return None when somebody has it or has put something else in the place of its lock file.

    Several can `share` a GPU; whether there is memory for all is for the queue to say. Raises OSError where no lock file can be made.
    """
    path = lock_path(uuid, folder)
    handle = _opened(path)
    if handle is None:
        return None
    if not _lock_or_close(handle, fcntl.LOCK_SH if share else fcntl.LOCK_EX, _PATIENCE):
        return None
    if not _is_at(handle, path):  # somebody cleaned up between our opening and our locking
        os.close(handle)
        return None
    sign(handle, f"{user_name(os.getuid())}, pid {os.getpid()}")
    return Claim(uuid, handle)


def claimed(uuids: Iterable[str], folder: str | None = None) -> dict[str, str]:
    """Return those of these GPUs that somebody has, with who: `ada, pid 12345`, as they wrote it, or nothing."""
    found = {}
    for uuid in uuids:
        if (who := _holder(lock_path(uuid, folder))) is not None:
            found[uuid] = who
    return found


def claims_folder(environ: Mapping[str, str] = os.environ) -> str:
    """Return where lock files are: $GPULSE_CLAIMS, else /run/lock where everybody may write there, else /tmp.

    Everybody on a machine must come to the same answer, so what counts is the folder's mode and not who asks.
    """
    if stated := environ.get("GPULSE_CLAIMS"):
        return stated
    try:
        shared = os.stat("/run/lock").st_mode & 0o1777 == 0o1777
    except OSError:
        shared = False
    return "/run/lock" if shared else "/tmp"


def lock_path(uuid: str, folder: str | None = None) -> str:
    """Return the lock file of a GPU."""
    name = "".join(char if char.isascii() and (char.isalnum() or char == "-") else "_" for char in uuid[:100])
    return os.path.join(folder or claims_folder(), f"gpulse-{name}.lock")


def _opened(path: str) -> int | None:
    """Open the lock file, created if it does not exist; None when it is another user's who does not share it, or no lock file.

    The kernel refuses O_CREAT on a file of another user in a folder like /tmp (fs.protected_regular), so making and
    opening are two steps. No link is followed and no pipe waited for.
    """
    flags = os.O_RDWR | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
    if not _is_lock(path):
        return None
    try:
        handle = os.open(path, flags)
    except PermissionError:
        return None
    except FileNotFoundError:
        try:
            handle = os.open(path, flags | os.O_CREAT | os.O_EXCL, 0o666)
        except FileExistsError:  # made by another just now: the race is theirs
            return _opened(path)
        os.fchmod(handle, 0o666)  # whatever the umask takes away, others must be able to ask
    if not stat.S_ISREG(os.fstat(handle).st_mode):
        os.close(handle)
        return None
    return handle


def _is_lock(path: str) -> bool:
    """Return whether a path is free or a plain file; a link, pipe or folder there costs its GPU, not all of them."""
    try:
        status = os.lstat(path)
    except OSError:
        return True
    return stat.S_ISREG(status.st_mode)


def _holder(path: str) -> str | None:
    if not _is_lock(path):
        return f"{path}, which is not a lock file of gpulse"
    try:
        return lock_holder(path)
    except PermissionError:
        return ""  # somebody keeps it to themselves


def lock_holder(path: str) -> str | None:
    """Return what the holder of a lock file says in it, None if nobody holds it; raise PermissionError if that cannot be tried."""
    try:
        handle = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    except PermissionError:
        raise
    except OSError:
        return None
    try:
        if not stat.S_ISREG(os.fstat(handle).st_mode) or try_lock(handle, fcntl.LOCK_SH):
            return None
        return os.pread(handle, _NOTE, 0).decode("utf-8", "replace").strip()
    finally:
        os.close(handle)


def try_lock(handle: int, kind: int = fcntl.LOCK_EX, patience: float = 0.0) -> bool:
    """Lock a file, also by waiting some seconds; return False if somebody else keeps it locked. Raises OSError where there are no locks."""
    until = time.monotonic() + patience
    while True:
        try:
            fcntl.flock(handle, kind | fcntl.LOCK_NB)
            return True
        except BlockingIOError:
            if time.monotonic() >= until:
                return False
        time.sleep(0.002)


def open_locked(path: str, mode: int, patience: float = 0.0) -> int | None:
    """Open a lock file, made if it is missing, and lock it until its descriptor is closed; None if somebody else keeps it locked."""
    handle = os.open(path, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC, mode)
    return handle if _lock_or_close(handle, fcntl.LOCK_EX, patience) else None


def _lock_or_close(handle: int, kind: int, patience: float) -> bool:
    locked = False
    try:
        locked = try_lock(handle, kind, patience)
    finally:
        if not locked:
            os.close(handle)
    return locked


def _is_at(handle: int, path: str) -> bool:
    try:
        return os.path.samestat(os.fstat(handle), os.lstat(path))
    except FileNotFoundError:
        return False


def sign(handle: int, who: str) -> None:
    """Write who has it, for those who ask; the lock alone counts, so a full disk is no reason not to have it.

    A file with a second name is not written to: it may be another file that somebody linked here. Locking it harms nobody, and
    refusing it would let everybody take a GPU away for good with a link.
    """
    try:
        if os.fstat(handle).st_nlink > 1:
            return
        os.ftruncate(handle, 0)
        os.pwrite(handle, f"{who}\n".encode(), 0)
    except OSError:
        pass


def user_name(uid: int) -> str:
    """Return the name of a user, or the number where there is no name: a container need not know all users."""
    import pwd

    try:
        return pwd.getpwuid(uid).pw_name
    except KeyError:
        return str(uid)
