"""The queue on disk: one small file per waiting request, running claim or reservation. The file's owner is whose it is (decision 0012)."""

from __future__ import annotations

import fcntl
import os
import time
from functools import cache

from ..value import Value
from .claims import claims_folder, try_lock
from .claims import user_name as user_name

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
    from typing import Any, Literal, TypeAlias

    Kind: TypeAlias = Literal["waiting", "running", "reserved", "done"]

PREFIX = "gpulse-queue-"
KEPT = 7 * 86400.0  # seconds for which a finished claim counts as recent use
_KINDS = ("waiting", "running", "reserved", "done")
_LARGEST = 1 << 16  # bytes of a file that are read
_LONGEST = 200  # characters of a text
_MOST = 10_000  # files remembered
# What files say, by path, inode, time and size: 100 who wait would read and parse 100 files at each change.
_known: dict[tuple[str, int, int, int], Mapping[str, Any]] = {}


class Entry(Value):
    """A request that waits, a claim that runs, or a reservation; times in seconds since 1970, lengths in seconds.

    `gpus` are the UUIDs it has, `among` those it can use (None: any). `arrived` is when it came, by the clock that counts since boot
    and is never set. `since` is when it came to wait, run or be reserved. `begins` and `until` are those of a reservation. `shortest`
    and `longest` are how long the command took before, None if that is not known. `memory` is what a `share` of a GPU needs.
    """

    id: str
    kind: Kind
    user: str
    uid: int = -1
    count: int = 1
    gpus: Sequence[str] = ()
    among: Collection[str] | None = None
    memory: float | None = None
    share: bool = False
    arrived: float = 0.0
    since: float = 0.0
    begins: float | None = None
    until: float | None = None
    shortest: float | None = None
    longest: float | None = None
    program: str = ""
    reason: str = ""
    pid: int | None = None
    path: str = ""
    stopped: bool = False
    cancelled: bool = False


class QueuePlace:
    """The entry of this process, as long as the process lives or until `leave`; what it says is written whole or not at all.

    `keep`: a claim stays as done when it ends, for those who count recent use.
    """

    def __init__(self, entry: Entry, folder: str | None = None, keep: bool = False) -> None:
        self.folder = folder or queue_folder()
        self.entry = entry
        self._keep = keep
        self._handle: int | None = None

    def write(self, **parts: Any) -> None:
        """Change the entry, and put it into the queue if it is not there; raises OSError if it cannot be written."""
        self.entry = self.entry.replace(**parts, pid=os.getpid(), path=_path(self.folder, self.entry.id))
        before, self._handle = self._handle, _written(self.entry, self.folder, process=True)
        if before is not None:
            os.close(before)

    @property
    def state(self) -> Literal["there", "gone", "cancelled"]:
        """Whether the entry is still in the queue."""
        found = _read(self.entry.path, self.folder)
        return "gone" if found is None else "cancelled" if found.cancelled else "there"

    def leave(self) -> None:
        """Take the entry out of the queue. Safe to call twice."""
        if self._handle is None:
            return
        os.close(self._handle)
        self._handle = None
        if not self._keep or self.entry.kind != "running":
            _remove(self.entry.path)
            return
        try:
            reserve(self.entry.replace(kind="done", until=time.time()), self.folder)
        except OSError:
            _remove(self.entry.path)

    close = leave


def queue_folder(environ: Mapping[str, str] = os.environ) -> str:
    """Return where the queue is: $GPULSE_CLAIMS, else /var/tmp, which a reboot leaves alone, else where the lock files are."""
    if stated := environ.get("GPULSE_CLAIMS"):
        return stated
    try:
        status = os.stat("/var/tmp")
    except OSError:
        return claims_folder(environ)
    return "/var/tmp" if status.st_mode & 0o1777 == 0o1777 and status.st_uid == 0 else claims_folder(environ)


def entries(folder: str | None = None, now: float | None = None) -> list[Entry]:
    """Return what is in the queue: who waits and runs and still lives, reservations that are not over, and recent claims."""
    folder = folder or queue_folder()
    try:
        names = [name for name in os.listdir(folder) if name.startswith(PREFIX)]
    except OSError:
        return []
    now = time.time() if now is None else now
    found = [_read(os.path.join(folder, name), folder) for name in names if "." not in name]
    return [entry for entry in found if entry is not None and not entry.cancelled and _lasts(entry, now)]


def in_force(entry: Entry, now: float) -> bool:
    """Return whether a reservation holds now."""
    return entry.kind == "reserved" and (entry.begins or 0.0) <= now < (entry.until or 0.0)


def holder_now(uuid: str, entries: Iterable[Entry], now: float) -> Entry | None:
    """Return who holds a GPU: the reservation in force, else a claim."""
    found = [entry for entry in entries if uuid in entry.gpus]
    reserved = [entry for entry in found if in_force(entry, now)]
    return next(iter([*reserved, *(entry for entry in found if entry.kind == "running")]), None)


def holders(told: Callable[[str, int], str]) -> dict[str, tuple[str, float | None]]:
    """Return for whom GPUs are held, by UUID, and until when for those that are reserved. Without a queue it costs one listing.

    `told` returns how a user is told, by name and number.
    """
    found, now = entries(), time.time()
    held = {uuid: holder_now(uuid, found, now) for entry in found for uuid in entry.gpus}
    return {
        uuid: (told(one.user, one.uid), round(one.until) if one.kind == "reserved" and one.until else None)
        for uuid, one in held.items()
        if one is not None
    }


def changed_at(folder: str) -> int:
    """Return a number that changes when an entry comes or goes: what a waiting program looks at, in some microseconds."""
    try:
        return os.stat(folder).st_mtime_ns
    except OSError:
        return 0


def new_entry(kind: Kind, **parts: Any) -> Entry:
    """Return an entry of this user with an id of its own; it is in no queue yet."""
    uid = os.getuid()
    return Entry(
        os.urandom(3).hex(), kind, user_name(uid), **{"uid": uid, "arrived": uptime(), "since": time.time()} | parts
    )


def reserve(entry: Entry, folder: str | None = None) -> None:
    """Write a reservation, or change one; it needs no process. Raises OSError if it cannot be written."""
    os.close(_written(entry, folder or queue_folder(), process=False))


def cancel(entry: Entry) -> None:
    """Take an entry of this user out of the queue, as root anybody's; the program that waits there is told. Raises OSError."""
    if entry.kind != "waiting":
        os.unlink(entry.path)
        return
    os.close(_replaced(entry.path, {"schema": 1, "cancelled": True}, entry.uid))


def tidy(folder: str | None = None) -> None:
    """Remove the files of this user, as root of everybody, that stand for nothing any more."""
    folder = folder or queue_folder()
    alive = {entry.path for entry in entries(folder)}
    try:
        names = [name for name in os.listdir(folder) if name.startswith(PREFIX)]
    except OSError:
        return
    for path in (os.path.join(folder, name) for name in names):
        try:
            status = os.lstat(path)
        except OSError:
            continue
        # a file that was made just now may be one that is being written
        if path not in alive and os.geteuid() in (0, status.st_uid) and time.time() - status.st_ctime > 60:
            _remove(path)


def uptime() -> float:
    """Return the seconds since the machine started: a clock that nobody sets, the same for all processes."""
    return time.clock_gettime(time.CLOCK_BOOTTIME)


@cache
def boot_id() -> str:
    """Return the id of this boot; empty where the kernel does not tell."""
    try:
        with open("/proc/sys/kernel/random/boot_id", encoding="ascii") as file:
            return file.read().strip()
    except OSError:
        return ""


def _path(folder: str, id: str) -> str:
    return os.path.join(folder, f"{PREFIX}{id}")


def _written(entry: Entry, folder: str, process: bool) -> int:
    """Write an entry and return its file, locked, so that others see whether the process lives even where they cannot see processes."""
    path = _path(folder, entry.id)
    plain = dict(_to_plain(entry), folder=os.path.realpath(folder))
    if process:
        pid = os.getpid()
        plain |= {"pid": pid, "start": (_stat(pid) or ("", 0))[1], "boot": boot_id(), "space": _pid_space()}
    return _replaced(path, plain)


def _replaced(path: str, plain: Mapping[str, Any], owner: int = -1) -> int:
    """Write a file whole and return it, locked; root gives it to its `owner`. Who waits sees that the folder has changed."""
    import json

    from .lines import replaced

    with replaced(path, 0o644, always=True) as file:
        os.fchmod(file.fileno(), 0o644)  # others must be able to read whose turn it is, whatever the umask
        if os.geteuid() == 0:
            os.fchown(file.fileno(), owner, -1)
        file.write(json.dumps(plain, allow_nan=False).encode("utf-8", "backslashreplace"))
        file.flush()  # a full disk is told before there is a second descriptor, which keeps the lock
        try_lock(file.fileno())
        return os.dup(file.fileno())


def _to_plain(entry: Entry) -> dict[str, Any]:
    left = ("id", "user", "uid", "path", "pid", "stopped", "cancelled")
    plain: dict[str, Any] = {name: getattr(entry, name) for name in sorted(entry._fields) if name not in left}
    plain["gpus"] = list(entry.gpus)
    plain["among"] = None if entry.among is None else sorted(entry.among)
    return {"schema": 1, **{key: value for key, value in plain.items() if value not in (None, "", [])}}


def _read(path: str, folder: str) -> Entry | None:
    """Return the entry in a file; None if it is no entry, or not whose it says it is.

    A file that others can write proves nothing, nor one that was written for another folder and moved here.
    """
    from .lines import open_foreign  # without a queue, a glance does not pay for it

    if (opened := open_foreign(path)) is None:
        return None
    handle, status = opened
    try:
        if status.st_nlink > 1 or status.st_mode & 0o022:
            return None
        key = (path, status.st_ino, status.st_ctime_ns, status.st_size)
        if (plain := _known.get(key)) is None:
            if len(_known) > _MOST:
                _known.clear()
            plain = _known[key] = _plain(os.read(handle, _LARGEST))
        if plain.get("cancelled"):
            return Entry(path.rpartition("-")[2], "waiting", "", cancelled=True, path=path)
        if plain.get("folder") != os.path.realpath(folder) or plain.get("kind") not in _KINDS:
            return None
        return _entry(plain, path, status.st_uid, handle)
    finally:
        os.close(handle)


def _entry(plain: Mapping[str, Any], path: str, uid: int, handle: int) -> Entry | None:
    running = plain["kind"] in ("waiting", "running")
    life = _life(plain, handle) if running else ("", 0)
    if life is None:
        return None
    numbers: dict[str, Any] = {
        key: _number(plain.get(key)) for key in ("memory", "begins", "until", "shortest", "longest")
    }
    # nobody has waited for longer than their process has lived
    arrived = max(_number(plain.get("arrived")) or 0.0, life[1] / os.sysconf("SC_CLK_TCK"))
    return Entry(
        path.rpartition("-")[2], plain["kind"], user_name(uid), uid=uid, path=path, **numbers,
        count=int(_number(plain.get("count")) or 1), arrived=arrived, share=plain.get("share") is True,
        since=_number(plain.get("since")) or 0.0,
        gpus=_words(plain.get("gpus")), among=None if plain.get("among") is None else _words(plain["among"]),
        program=str(plain.get("program", ""))[:_LONGEST], reason=str(plain.get("reason", ""))[:_LONGEST],
        pid=plain["pid"] if running else None, stopped=life[0] in ("T", "t"),
    )  # fmt: skip


def _lasts(entry: Entry, now: float) -> bool:
    if entry.kind == "done":
        return now - (entry.until or 0.0) < KEPT
    return entry.kind != "reserved" or (entry.until or 0.0) > now


def _life(plain: Mapping[str, Any], handle: int) -> tuple[str, int] | None:
    """Return the state of an entry's process and when it began, in ticks; None if it is gone.

    The lock holds where processes of others are hidden or have other numbers; the process counts where it can be seen, because
    anybody who can read a file can lock it.
    """
    pid, start = plain.get("pid"), plain.get("start")
    if not isinstance(pid, int) or not isinstance(start, int) or pid <= 0 or plain.get("boot") != boot_id():
        return None
    if try_lock(handle, fcntl.LOCK_SH):
        return None  # nobody holds it
    if plain.get("space") != _pid_space():
        return "", start
    if (seen := _stat(pid)) is not None:
        return seen if seen[1] == start and seen[0] not in ("Z", "X") else None
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return None
    except OSError:
        pass  # it is there, and hidden
    return "", start


def _stat(pid: int) -> tuple[str, int] | None:
    """Return the state of a process and when it began, in ticks since boot; None if it cannot be seen."""
    try:
        with open(f"/proc/{pid}/stat", "rb") as file:
            words = file.read(4096).rpartition(b")")[2].split()
        return words[0].decode("ascii", "replace"), int(words[19])
    except (OSError, IndexError, ValueError):
        return None


@cache
def _pid_space() -> str:
    try:
        return os.readlink("/proc/self/ns/pid")
    except OSError:
        return ""


def _plain(data: bytes) -> Mapping[str, Any]:
    import json

    try:
        plain = json.loads(data)
    except (ValueError, RecursionError):
        return {}
    return plain if isinstance(plain, dict) and plain.get("schema") == 1 else {}


def _number(value: Any) -> float | None:
    fine = isinstance(value, (int, float)) and not isinstance(value, bool) and 0 <= value < 1e15
    return float(value) if fine else None


def _words(value: Any) -> tuple[str, ...]:
    return tuple(word[:_LONGEST] for word in value if isinstance(word, str)) if isinstance(value, list) else ()


def _remove(path: str) -> None:
    from .lines import remove

    remove(path)


def reservations(folder: str | None = None) -> Iterator[Entry]:
    """Yield the reservations of this user, the oldest first."""
    mine = [entry for entry in entries(folder) if entry.kind == "reserved" and entry.uid == os.getuid()]
    yield from sorted(mine, key=lambda entry: (entry.begins or 0.0, entry.id))
