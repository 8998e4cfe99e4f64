"""Presence: one small private file per running Monitor, so that another terminal can show its phase, step and waits.

The files are in a folder that only the user can read. A reader trusts a file only if it belongs to the user who runs the process that it
names, and ignores one whose process has ended.
"""

from __future__ import annotations

import json
import os
import stat

from ..present.text import clean
from ..sources.files import effective_capabilities, link, names, read_bytes
from ..sources.processes import parse_stat
from ..store.lines import open_foreign, remove, replaced
from ..value import Value
from .process import global_rank
from .rhythm import RhythmRates

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator, Mapping
    from typing import Any

    from ..sinks.base import PhaseProgress
    from .ledger import Ledger

_CAP_DAC_READ_SEARCH = 2
# seconds between two states: with the time until the next chance, what is known of a killed program is at most 1 s old
_OFTEN = 0.75
_ENDING = ".json"
VARIABLE = "GPULSE_PRESENCE"  # names the folder
WORKERS = ".workers"  # ending of the pipe to which spawned loader workers write
_LARGEST = 1 << 16  # bytes of a file that are read
_LONGEST = 200  # characters of a text
_PHASES = 8  # phases in one message: a pipe takes 4096 bytes at once or not at all
_LINES = 20  # lines of code that are read
_TOLD = 5  # lines of code that are written: more would not fit into one write to a pipe
_NUMBERS = ("time", "seconds", "step", "steps_per_second", "step_p50", "step_p95", "step_max", "data_wait")
_TEXTS = ("run", "phase")


class Presence(Value):
    """What a running Monitor reports about itself.

    `run` is its id, `rank` its rank in a job or None. `time` is when this was written (seconds since 1970), `seconds` how long it has run.
    `phase`, `step` (None before the first), `steps_per_second` and `data_wait` (percent) are those of the last second or so;
    `step_p50`, `step_p95` and `step_max` are seconds per step since the start. `code` are the lines of the program where the GPU
    waited longest, as `CodeLine` has them.
    """

    pid: int
    run: str = ""
    phase: str = ""
    rank: int | None = None
    time: float = 0.0
    seconds: float = 0.0
    step: int | None = None
    steps_per_second: float | None = None
    step_p50: float | None = None
    step_p95: float | None = None
    step_max: float | None = None
    data_wait: float | None = None
    code: tuple[dict[str, Any], ...] = ()


class Teller:
    """Says how a run goes, about once per second; used by one thread."""

    def __init__(self, ledger: Ledger, run: str) -> None:
        self._ledger = ledger
        self._run = run
        self._rates = RhythmRates(ledger.rhythm)
        self._at = ledger.started
        self._progress: dict[str, PhaseProgress] = {}

    def due(self, now: bool = False) -> dict[str, Any] | None:
        """Return the present state as plain data; None if it is too early and need not be `now`."""
        at = self._ledger.clock.monotonic()
        if at - self._at < _OFTEN and not now:
            return None
        rates, ledger = self._rates.since(at - self._at), self._ledger
        self._at = at
        times = ledger.step_time
        told = {
            "run": self._run,
            "rank": global_rank(os.environ),
            "time": ledger.clock.now(),
            "seconds": at - ledger.started,
            "phase": ledger.phase()[:_LONGEST],
            "step": ledger.rhythm.reached,
            "steps_per_second": rates.get("train/steps_per_second"),
            "step_mean": times and times.mean,
            "step_min": times and times.min,
            "step_p50": times and times.p50,
            "step_p95": times and times.p95,
            "step_max": times and times.max,
            "data_wait": rates.get("train/data_wait"),
            "code": [] if ledger.code is None else [line._asdict() for line in ledger.code.recent()[:_TOLD]],
        }
        return {key: round(value, 6) if isinstance(value, float) else value for key, value in told.items()}

    def progress(self) -> Iterator[dict[str, Any]]:
        """Yield what the run and its `phases` went through since the last call, up to a time `at`, in parts that fit into one write."""
        at = self._ledger.clock.monotonic()
        before, self._progress = self._progress, self._ledger.progress(at)
        part: dict[str, dict[str, float]] = {}
        for name, each in self._progress.items():
            if values := each.since(before.get(name)).to_plain():
                part[name[:_LONGEST]] = values
            if len(part) == _PHASES:
                yield {"at": at, "phases": part}
                part = {}
        if part:
            yield {"at": at, "phases": part}


class PresenceFile:
    """The file of one running Monitor; whatever fails, the Monitor goes on without it."""

    def __init__(self, pid: int, environ: Mapping[str, str] = os.environ) -> None:
        self._pid = pid
        self._proof = {"schema": 1, "pid": pid, "started": started_ticks(pid), "namespace": _namespace()}
        self.path: str | None = None
        try:
            self.path = os.path.join(private_folder(environ), f"{pid}{_ENDING}")
        except OSError:
            pass

    def write(self, told: Mapping[str, Any]) -> None:
        """Replace the file at once."""
        if self.path is None:
            return
        try:
            with replaced(self.path) as file:
                file.write(json.dumps({**told, **self._proof}, separators=(",", ":"), default=str).encode())
        except (OSError, ValueError):
            pass

    def remove(self) -> None:
        """Remove the file, and the pipe of the program's loader workers, which a killed program leaves behind."""
        if self.path is not None:
            remove(self.path)
            remove(self.path.removesuffix(_ENDING) + WORKERS)


def presences(environ: Mapping[str, str] = os.environ) -> dict[int, Presence]:
    """Return the running Monitors of this user by PID, for root those of all users; remove files of processes that have ended."""
    found = {}
    for folder in _folders(environ):
        for name in names(folder):
            writer = name.rpartition(".")[0].rpartition(".")[2]
            if name.endswith((".part", WORKERS)) and writer.isdecimal() and started_ticks(int(writer)) is None:
                remove(os.path.join(folder, name))  # its writer was killed meanwhile
            pid = name.removesuffix(_ENDING)
            if pid.isdecimal() and name.endswith(_ENDING) and (one := _read(folder, int(pid))) is not None:
                found[one.pid] = one
    return found


def presence_of(pid: int, environ: Mapping[str, str] = os.environ) -> Presence | None:
    """Return what the Monitor in a process reports about itself; None if it has none or belongs to another user."""
    return next((one for folder in _folders(environ) if (one := _read(folder, pid)) is not None), None)


def folder_of(pid: int, environ: Mapping[str, str] = os.environ) -> str | None:
    """Return the folder with the file of a process of this user, where it also looks for requests; None if it has no Monitor."""
    if _user(pid) != os.geteuid():
        return None
    return next((folder for folder in _folders(environ) if _read(folder, pid) is not None), None)


def presence_folders(environ: Mapping[str, str] = os.environ) -> tuple[str, str]:
    """Return where the files of this user are, the preferred place first; the other is for jobs without a login session.

    $GPULSE_PRESENCE takes the place of both.
    """
    if own := environ.get(VARIABLE):
        return own, own
    user = os.geteuid()
    stated = environ.get("XDG_RUNTIME_DIR", "")
    runtime = stated if os.path.isabs(stated) else f"/run/user/{user}"
    return os.path.join(runtime, "gpulse"), f"/tmp/gpulse-{user}"


def private_folder(environ: Mapping[str, str]) -> str:
    """Return the first place that is, or can be made, a folder of this user alone; raise OSError if there is none."""
    for folder in presence_folders(environ):
        try:
            os.mkdir(folder, 0o700)
        except FileExistsError:
            pass
        except OSError:
            continue  # no login session, or a read-only file system
        if _owner(folder) == os.geteuid():
            return folder
    raise PermissionError("no private folder")


def _folders(environ: Mapping[str, str]) -> Iterator[str]:
    """Yield the folders that can be trusted: those of this user, and those of everybody for who may read them all."""
    own = presence_folders(environ)
    places: Iterable[str] = own
    if everybody := _reads_everything() and VARIABLE not in environ:
        others = [f"/run/user/{user}/gpulse" for user in names("/run/user")]
        others += [f"/tmp/{name}" for name in names("/tmp") if name.startswith("gpulse-") and name[7:].isdecimal()]
        places = dict.fromkeys((*own, *others))
    for folder in places:
        if (owner := _owner(folder)) is not None and (everybody or os.geteuid() == owner):
            yield folder


def _reads_everything() -> bool:
    """Return whether this process may read the files of all users: root's, and a service with the capability CAP_DAC_READ_SEARCH."""
    return os.geteuid() == 0 or bool(effective_capabilities() >> _CAP_DAC_READ_SEARCH & 1)


def _owner(folder: str) -> int | None:
    """Return whose folder it is; None if it is not a folder, or others may enter it: anybody can have made it in /tmp before us."""
    try:
        status = os.lstat(folder)
    except OSError:
        return None
    return status.st_uid if stat.S_ISDIR(status.st_mode) and not status.st_mode & 0o077 else None


def _read(folder: str, pid: int) -> Presence | None:
    path, owner = os.path.join(folder, f"{pid}{_ENDING}"), _owner(folder)
    plain = None if owner is None else read_private(path, {owner})
    if plain is None or plain.get("pid") != pid or plain.get("namespace") != _namespace():
        return None  # a container has other PIDs
    if plain.get("started") != started_ticks(pid):
        remove(path)  # the process has ended, and its PID may be another's by now
        return None
    return _checked(pid, plain) if _user(pid) == owner else None


def read_private(path: str, owners: Collection[int], most: int = _LARGEST) -> dict[str, Any] | None:
    """Return the object of JSON in a small file of one of these users; None if there is none that can be trusted."""
    if (opened := open_foreign(path)) is None:
        return None
    handle, status = opened
    try:
        if status.st_uid not in owners:
            return None
        plain = json.loads(os.read(handle, most))
    except (OSError, ValueError, RecursionError):
        return None
    finally:
        os.close(handle)
    return plain if isinstance(plain, dict) else None


def _checked(pid: int, plain: dict[str, Any]) -> Presence:
    """Return only what is of the right type, with texts that are harmless on a terminal."""
    told: dict[str, Any] = {key: _text(plain.get(key)) for key in _TEXTS}
    told |= {key: value for key in (*_NUMBERS, "rank") if (value := _number(plain.get(key))) is not None}
    told |= {key: int(told[key]) for key in ("rank", "step") if key in told}
    lines = plain.get("code")
    known = [_line(one) for one in (lines if isinstance(lines, list) else ())[:_LINES] if isinstance(one, dict)]
    told["code"] = tuple(known)
    return Presence(pid, **told)


def _line(plain: dict[str, Any]) -> dict[str, Any]:
    texts = {key: _text(plain.get(key)) for key in ("file", "function")}
    texts |= {key: _text(plain[key]) for key in ("call", "within", "role", "caller") if key in plain}
    return texts | {key: _number(plain.get(key)) or 0 for key in ("line", "waited", "computed")}


def _text(value: object) -> str:
    return clean(value[:_LONGEST]) if isinstance(value, str) else ""


def _number(value: object) -> float | None:
    return value if isinstance(value, (int, float)) and abs(value) < 1e15 else None  # NaN is not smaller


def started_ticks(pid: int) -> int | None:
    """Return when a process was started, in ticks since the machine was; None if there is none."""
    content = read_bytes(f"/proc/{pid}/stat")
    found = None if content is None else parse_stat(content)
    return None if found is None or found.state in "ZX" else found.started


def _namespace() -> str:
    return link("/proc/self/ns/pid")


def _user(pid: int) -> int | None:
    try:
        return os.stat(f"/proc/{pid}").st_uid
    except OSError:
        return None
