"""Who has GPUs locked, as the kernel knows it: the process that took the lock, or one that inherited it and outlived that process."""

from __future__ import annotations

import os

from ..value import Value
from .claims import claimed, claims_folder, lock_path, user_name
from .entry import Entry
from .liveness import began_at, users_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator, Sequence

_START, _END = "gpulse-", ".lock"
_LARGEST = 1 << 20  # bytes of /proc/locks


class Lock(Value):
    """A GPU that is locked. `pid` and `uid` are those of a process that has the lock, None if the kernel does not show them.

    `note` is what the lock file says, which any user can write.
    """

    uuid: str
    pid: int | None = None
    uid: int | None = None
    note: str = ""


def locked_entries(uuids: Collection[str] | None, entries: Iterable[Entry]) -> list[Entry]:
    """Return GPUs that are locked although no entry of the queue claims them, one entry per process that has the locks.

    So a job goes on after its `gpulse run` was killed. Without `uuids` all GPUs count that have a lock file.
    """
    claimed = {uuid for entry in entries if entry.kind == "running" for uuid in entry.gpus}
    by_process: dict[int | str, list[Lock]] = {}
    for lock in locks(uuids):
        if lock.uuid not in claimed:
            by_process.setdefault(lock.pid or lock.note, []).append(lock)
    return [_entry(some) for some in by_process.values()]


def _entry(some: Sequence[Lock]) -> Entry:
    one, gpus = some[0], tuple(lock.uuid for lock in some)
    name, uid = ("", -1) if one.uid is None else (user_name(one.uid), one.uid)
    note = one.note if one.pid is None else ""
    return Entry(f"locked {gpus[0]}", "locked", name, uid=uid, gpus=gpus, count=len(gpus), pid=one.pid, reason=note)


def locks(uuids: Collection[str] | None = None, folder: str | None = None) -> list[Lock]:
    """Return which of these GPUs are locked, or of all that have a lock file. Reads the descriptors of processes only if one is."""
    folder = folder or claims_folder()
    notes = claimed(_known(folder) if uuids is None else uuids, folder)
    takers = _takers() if notes else {}
    found: dict[str, tuple[int, int]] = {}
    for uuid in notes:
        if (holder := _taker(lock_path(uuid, folder), takers)) is not None:
            found[uuid] = holder
    rest = {os.path.realpath(lock_path(uuid, folder)): uuid for uuid in notes if uuid not in found}
    for path, pid in _inheritors(rest.keys()) if rest else ():
        found.setdefault(rest[path], (pid, min(users_of(pid), default=-1)))
    return [_lock(uuid, found.get(uuid), note) for uuid, note in notes.items()]


def _lock(uuid: str, holder: tuple[int, int] | None, note: str) -> Lock:
    return Lock(uuid, note=note) if holder is None else Lock(uuid, holder[0], holder[1], note)


def _known(folder: str) -> list[str]:
    """Return the GPUs that have a lock file."""
    try:
        names = sorted(os.listdir(folder))
    except OSError:
        return []
    words = [name[len(_START) : -len(_END)] for name in names if name.startswith(_START) and name.endswith(_END)]
    return [word for word in words if word != "queue"]


def _takers() -> dict[tuple[int, int, int], int]:
    """Return which process took each lock of the machine, by device and inode; /proc/locks shows those of all users."""
    found = {}
    try:
        with open("/proc/locks", encoding="ascii", errors="replace") as file:
            lines = file.read(_LARGEST).splitlines()
    except OSError:
        return {}
    for words in (line.split() for line in lines):
        if len(words) >= 6 and words[1] == "FLOCK":
            major, minor, inode = words[5].split(":")
            found[int(major, 16), int(minor, 16), int(inode)] = int(words[4])
    return found


def _taker(path: str, takers: dict[tuple[int, int, int], int]) -> tuple[int, int] | None:
    """Return the process that took a lock and its user; None if it is gone, and another may have its PID."""
    try:
        status = os.stat(path, follow_symlinks=False)
    except OSError:
        return None
    pid = takers.get((os.major(status.st_dev), os.minor(status.st_dev), status.st_ino), 0)
    began = began_at(pid) if pid > 0 else None
    if began is None or began > status.st_mtime + 1:  # the taker wrote its name into the file
        return None
    return next(((pid, uid) for uid in sorted(users_of(pid))), None)


def _inheritors(paths: Collection[str]) -> Iterator[tuple[str, int]]:
    """Yield locked files and the processes that hold the lock, as far as this user may see their descriptors."""
    for pid in sorted(int(name) for name in os.listdir("/proc") if name.isdecimal()):
        try:
            descriptors = os.listdir(f"/proc/{pid}/fd")
        except OSError:
            continue  # of another user, or gone
        for descriptor in descriptors:
            if (path := _target(pid, descriptor)) in paths and _has_lock(pid, descriptor):
                yield path, pid


def _target(pid: int, descriptor: str) -> str:
    try:
        return os.readlink(f"/proc/{pid}/fd/{descriptor}")
    except OSError:
        return ""


def _has_lock(pid: int, descriptor: str) -> bool:
    try:
        with open(f"/proc/{pid}/fdinfo/{descriptor}", "rb") as file:
            return b"FLOCK" in file.read(4096)
    except OSError:
        return False
