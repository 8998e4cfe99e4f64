"""The queue on disk: one small file per waiting request, running claim or reservation. The file's owner is whose it is (decision 0012).

Any user can write anything into a file of their own, so readers decide what counts. The file system says whose a file is and when it was
last changed (ctime, which nobody can set); the file must name itself and its folder, and its process must live and be its owner's.
"""

from __future__ import annotations

import os
import time

from .claims import claims_folder, user_name
from .entry import Entry, first_come, holder_now
from .liveness import lock_for_life, signature, state_of, uptime, viewpoint

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from typing import Any, Literal

    from .entry import Kind
    from .liveness import Viewpoint

PREFIX = "gpulse-queue-"
LONGEST = 7 * 86400.0  # seconds of a reservation where the machine's settings say nothing
AHEAD = 60 * 86400.0  # seconds from now until which a reservation can begin
_KINDS = ("waiting", "running", "reserved")
_ID = 6  # hexadecimal digits
_LARGEST = 1 << 16  # bytes; a larger file is no entry
_TEXT = 200  # characters of a text
_GPUS = 1024  # GPUs of an entry
_YEAR = 366 * 86400.0
_EACH = 200  # entries of one user that count: nobody can make the queue slow for all
_MOST = 10_000  # files remembered


class Queue:
    """The queue in a folder, as one reader sees it. The reader remembers what files say: 100 who wait need not parse 100 files again."""

    def __init__(self, folder: str | None = None) -> None:
        self.folder = folder or queue_folder()
        self._known: dict[tuple[str, int, int, int], Mapping[str, Any]] = {}
        self._names: dict[int, str] = {}
        self._longest: tuple[tuple[int, ...], float] = ((), LONGEST)

    def entries(self, now: float | None = None) -> list[Entry]:
        """Return what counts, the oldest first: who waits and runs and still lives, and reservations that are not over."""
        if not (names := self._files()):
            return []
        now, view = time.time() if now is None else now, viewpoint()
        counts: dict[int, int] = {}
        found: list[Entry] = []
        for name in names:
            entry = self._read(os.path.join(self.folder, name), view, counts)
            if entry is not None and not entry.cancelled:
                found.append(entry)
        return [entry for entry in first_come(found) if entry.kind != "reserved" or (entry.until or 0.0) > now]

    def owns(self, entry: Entry) -> bool:
        """Return whether an entry is this user's."""
        return entry.uid == os.getuid()

    def reservations(self) -> list[Entry]:
        """Return the reservations of this user, the first to begin first."""
        mine = [entry for entry in self.entries() if entry.kind == "reserved" and self.owns(entry)]
        return sorted(mine, key=lambda entry: (entry.begins or 0.0, entry.id))

    def reserve(self, entry: Entry) -> None:
        """Write a reservation, or change one; it needs no process. Raises OSError if it cannot be written."""
        os.close(_replaced(self._path(entry.id), _to_plain(entry, self.folder)))

    def cancel(self, entry: Entry) -> None:
        """Take an entry of this user out of the queue, as root anybody's; the program that waits there ends. Raises OSError."""
        if entry.kind != "waiting":
            os.unlink(entry.path)
            return
        plain = {**_identity(entry.id, self.folder), "cancelled": True}
        os.close(_replaced(entry.path, plain, entry.uid))

    def tidy(self) -> None:
        """Delete stale files of this user, as root of everybody."""
        alive = {entry.path for entry in self.entries()}
        for path in (os.path.join(self.folder, name) for name in self._files(parts=True)):
            try:
                status = os.lstat(path)
            except OSError:
                continue
            # a file that was made just now may be one that is being written
            if path not in alive and os.geteuid() in (0, status.st_uid) and time.time() - status.st_ctime > 60:
                _remove(path)

    def changed_at(self) -> int:
        """Return a number that changes when an entry comes or goes: what a waiting program looks at, in some microseconds."""
        try:
            return os.stat(self.folder).st_mtime_ns
        except OSError:
            return 0

    def holders(self, shown: Callable[[str, int], str]) -> dict[str, tuple[str, float | None]]:
        """Return for whom GPUs are held, by UUID, and until when for those that are reserved. Without a queue it costs one listing.

        `shown` returns how a user is shown, from name and number.
        """
        found, now = self.entries(), time.time()
        held = {uuid: holder_now(uuid, found, now) for entry in found for uuid in entry.gpus}
        return {
            uuid: (shown(one.user, one.uid), round(one.until) if one.kind == "reserved" and one.until else None)
            for uuid, one in held.items()
            if one is not None
        }

    def find(self, id: str, uid: int) -> Entry | None:
        """Return the entry of a user with this id, also one that was cancelled; None if there is none."""
        entry = self._read(self._path(id), viewpoint(), {})
        return entry if entry is not None and entry.uid == uid else None

    def _files(self, parts: bool = False) -> list[str]:
        try:
            names = [name for name in os.listdir(self.folder) if name.startswith(PREFIX)]
        except OSError:
            return []
        return names if parts else [name for name in names if _is_id(name[len(PREFIX) :])]

    def _path(self, id: str) -> str:
        return os.path.join(self.folder, f"{PREFIX}{id}")

    def _read(self, path: str, view: Viewpoint, counts: dict[int, int]) -> Entry | None:
        """Return the entry in a file; None if it does not count.

        A file that others can write proves nothing, nor does one that was written under another name or for another folder.
        """
        from .lines import open_foreign  # without a queue, a glance does not pay for it

        if (opened := open_foreign(path)) is None:
            return None
        handle, status = opened
        try:
            uid = status.st_uid
            counts[uid] = counts.get(uid, 0) + 1
            if status.st_mode & 0o022 or status.st_size > _LARGEST or counts[uid] > _EACH:
                return None
            plain = self._plain(path, handle, status)
            if any(plain.get(key) != value for key, value in _identity(path[-_ID:], self.folder).items()):
                return None
            if plain.get("cancelled"):
                return Entry(path[-_ID:], "waiting", "", uid=uid, cancelled=True, path=path)
            return self._entry(plain, path, status, handle, view)
        finally:
            os.close(handle)

    def _plain(self, path: str, handle: int, status: os.stat_result) -> Mapping[str, Any]:
        key = (path, status.st_ino, status.st_ctime_ns, status.st_size)
        if (plain := self._known.get(key)) is None:
            if len(self._known) > _MOST:
                self._known.clear()
            plain = self._known[key] = _parsed(os.read(handle, _LARGEST))
        return plain

    def _entry(
        self, plain: Mapping[str, Any], path: str, status: os.stat_result, handle: int, view: Viewpoint
    ) -> Entry | None:
        kind, changed = plain.get("kind"), status.st_ctime_ns / 1e9
        if kind not in _KINDS:
            return None
        times, state = _times(plain), ""
        if kind == "reserved":
            times |= self._reserved(times, changed)
            if times["until"] is None:
                return None
        elif (found := state_of(plain, handle, status.st_uid, view)) is None:
            return None
        else:
            state = found
        # what a file says of its arrival can only be later than the file itself, which is when a clock was set meanwhile
        arrived = max(_number(plain.get("arrived")) or 0.0, uptime() - (time.time() - changed))
        return Entry(
            path[-_ID:], kind, self._name(status.st_uid), uid=status.st_uid, path=path, **times,
            count=max(1, int(_number(plain.get("count")) or 1)), share=plain.get("share") is True,
            memory=_number(plain.get("memory")), arrived=arrived, since=changed,
            gpus=() if kind == "waiting" else _words(plain.get("gpus")) or (),
            among=_words(plain.get("among")), program=_text(plain.get("program")), reason=_text(plain.get("reason")),
            pid=None if kind == "reserved" else plain["pid"], stopped=state in ("T", "t"),
        )  # fmt: skip

    def _reserved(self, times: Mapping[str, float | None], changed: float) -> dict[str, float | None]:
        """Return begin and end of a reservation: it ends when the longest that is allowed is over; without an end it does not count."""
        begins, until = times["begins"] or 0.0, times["until"]
        if until is None or begins > changed + AHEAD + 60:
            return {"until": None}
        return {"begins": begins, "until": min(until, begins + self.longest)}

    @property
    def longest(self) -> float:
        """How long a reservation lasts at most on this machine, in seconds."""
        from .place import machine_path

        try:
            status = os.stat(machine_path(os.environ))
        except OSError:
            return LONGEST
        key = (status.st_ino, status.st_mtime_ns, status.st_size)
        if self._longest[0] != key:
            self._longest = key, longest_reservation()[0]
        return self._longest[1]

    def _name(self, uid: int) -> str:
        if uid not in self._names:
            self._names[uid] = user_name(uid)
        return self._names[uid]


class QueuePlace:
    """The entry of this process, as long as the process lives or until `leave`; what it says is written whole or not at all."""

    def __init__(self, entry: Entry, queue: Queue | None = None) -> None:
        self.queue = queue or Queue()
        self.entry = entry
        self._handle: int | None = None

    def write(self, **parts: Any) -> None:
        """Change the entry, and put it into the queue if it is not there; raises OSError if it cannot be written."""
        path = self.queue._path(self.entry.id)
        self.entry = self.entry.replace(**parts, pid=os.getpid(), path=path)
        plain = _to_plain(self.entry, self.queue.folder) | signature(viewpoint())
        before, self._handle = self._handle, _replaced(path, plain)
        if before is not None:
            os.close(before)

    @property
    def state(self) -> Literal["there", "gone", "cancelled"]:
        """Whether the entry is still in the queue."""
        found = self.queue.find(self.entry.id, os.geteuid())
        return "gone" if found is None else "cancelled" if found.cancelled else "there"

    def leave(self) -> None:
        """Take the entry out of the queue. Safe to call twice."""
        if self._handle is not None:
            os.close(self._handle)
            self._handle = None
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


def new_entry(kind: Kind, **parts: Any) -> Entry:
    """Return an entry of this user with an id of its own; it is in no queue yet."""
    uid = os.getuid()
    return Entry(
        os.urandom(_ID // 2).hex(),
        kind,
        user_name(uid),
        **{"uid": uid, "arrived": uptime(), "since": time.time()} | parts,
    )


def longest_reservation(environ: Mapping[str, str] = os.environ) -> tuple[float, str]:
    """Return how long a reservation lasts at most, in seconds, and why the machine's settings do not count, empty if they do."""
    from ..errors import ConfigError, UsageError
    from ..units import parse_duration
    from .config import read_machine_config

    try:
        table = read_machine_config(environ).get("queue", {})
        given = table.get("longest_reservation") if isinstance(table, dict) else None
        return LONGEST if given is None else parse_duration(str(given)), ""
    except (ConfigError, UsageError) as error:
        return LONGEST, f"the [queue] settings of this machine are ignored: {error}"


def _is_id(text: str) -> bool:
    return len(text) == _ID and all(char in "0123456789abcdef" for char in text)


def _identity(id: str, folder: str) -> dict[str, Any]:
    """Return what a file says about itself, so that a copy, a link or a moved file is none."""
    return {"schema": 1, "id": id, "folder": os.path.realpath(folder)}


def _to_plain(entry: Entry, folder: str) -> dict[str, Any]:
    left = ("id", "user", "uid", "path", "pid", "since", "stopped", "cancelled")
    plain: dict[str, Any] = {name: getattr(entry, name) for name in sorted(entry._fields) if name not in left}
    plain["gpus"] = list(entry.gpus)
    plain["among"] = None if entry.among is None else sorted(entry.among)
    return _identity(entry.id, folder) | {key: value for key, value in plain.items() if value not in (None, "", [])}


def _replaced(path: str, plain: Mapping[str, Any], owner: int = -1) -> int:
    """Write a file whole and return it, locked; root gives it to its `owner`. Who waits sees that the folder has changed."""
    import json

    from .lines import replaced

    with replaced(path, 0o644, always=True) as file:
        os.fchmod(file.fileno(), 0o644)  # others must be able to read whose turn it is, whatever the umask
        if os.geteuid() == 0:
            os.fchown(file.fileno(), owner, -1)
        file.write(json.dumps(plain, allow_nan=False).encode("utf-8", "backslashreplace"))
        file.flush()  # a full disk is noticed before there is a second descriptor, which keeps the lock
        lock_for_life(file.fileno())
        return os.dup(file.fileno())


def _parsed(data: bytes) -> Mapping[str, Any]:
    import json

    try:
        plain = json.loads(data)
    except (ValueError, RecursionError):
        return {}
    return plain if isinstance(plain, dict) else {}


def _times(plain: Mapping[str, Any]) -> dict[str, Any]:
    """Return the times and lengths; a length above a year is none."""
    found = {key: _number(plain.get(key)) for key in ("begins", "until", "shortest", "longest")}
    return found | {key: None for key in ("shortest", "longest") if (found[key] or 0.0) > _YEAR}


def _number(value: Any) -> float | None:
    fine = isinstance(value, (int, float)) and not isinstance(value, bool) and 0 <= value < 1e15
    return float(value) if fine else None


def _text(value: Any) -> str:
    return value[:_TEXT].encode("utf-8", "replace").decode() if isinstance(value, str) else ""


def _words(value: Any) -> tuple[str, ...] | None:
    if not isinstance(value, list):
        return None
    return tuple(dict.fromkeys(_text(word) for word in value[:_GPUS] if isinstance(word, str)))


def _remove(path: str) -> None:
    from .lines import remove

    remove(path)
