"""Past runs: one small private file for each, the newest few hundred, written whole so that a kill never leaves half of one."""

from __future__ import annotations

import json
import os
import re

from ..errors import GpulseError, UsageError
from ..model.codec import parse_time
from .lines import open_foreign, remove, replaced
from .place import state_folder

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from typing import Any

VARIABLE = "GPULSE_RUNS"  # another folder, or "off"
MOST = 500
_LARGEST = 1 << 18  # bytes of a file that are read
_NAME = re.compile(r"\d{15}-[\w.-]{1,80}\.json")
_RECENT = re.compile(r"last(?:~(\d{1,6}))?")
# The document of a run, with what it has before anything is known; times in seconds, energy in joules, shares in percent.
EMPTY: dict[str, Any] = {
    "schema": 1, "id": "", "state": "", "start": None, "seconds": None, "command": "", "folder": "", "host": "", "git": None,
    "process": None, "exit_code": None, "signal": None, "failure": None, "gpus": [], "verdict": [], "budget": None,
    "throughput": {}, "peak_memory": None, "cost": None, "step_time": None, "step_blocks": [], "phases": [], "code": [],
    "code_text": [], "report": None, "recording": None,
}  # fmt: skip
_ORIGIN = ("id", "start", "command", "folder", "host", "git", "process")  # who begins a run says this of it


class KeptRun:
    """A run as it is kept: `plain` is the JSON document of `gpulse runs show --json`.

    The start is in seconds since 1970, `seconds` None while it is running. `same` tells whether another run had the same command in the
    same folder.
    """

    __slots__ = ("path", "plain")

    def __init__(self, plain: Mapping[str, Any], path: str = "") -> None:
        self.plain = plain
        self.path = path

    @property
    def id(self) -> str:
        """Its full id; the part after the last dash is enough to name it."""
        return self.text("id")

    @property
    def short(self) -> str:
        """The part of its id that tells it from others."""
        return self.id.rpartition("-")[2] or self.id

    @property
    def start(self) -> float:
        """When it began, in seconds since 1970."""
        try:
            return parse_time(self.text("start"))
        except GpulseError:
            return 0.0

    @property
    def seconds(self) -> float | None:
        """How long it took; None if it has not ended, or nobody could tell."""
        return self.number("seconds")

    def same(self, other: KeptRun) -> bool:
        """Return whether the other run had the same command in the same folder."""
        return all(self.text(key) == other.text(key) for key in ("command", "folder"))

    def text(self, key: str) -> str:
        """Return a text; empty if there is none."""
        value = self.plain.get(key)
        return value if isinstance(value, str) else ""

    def number(self, key: str, part: str = "") -> float | None:
        """Return a number, of a part of the document if one is named; None if there is none."""
        value = (self.part(part) if part else self.plain).get(key)
        return float(value) if isinstance(value, (int, float)) and not isinstance(value, bool) else None

    def part(self, key: str) -> Mapping[str, Any]:
        """Return a part of the document; empty if there is none."""
        value = self.plain.get(key)
        return value if isinstance(value, dict) else {}

    def list(self, key: str) -> list[Any]:
        """Return a list; empty if there is none."""
        value = self.plain.get(key)
        return value if isinstance(value, list) else []


def runs_folder(environ: Mapping[str, str] = os.environ) -> str | None:
    """Return where runs are kept: $GPULSE_RUNS, else runs in the user's state folder; None if they are not to be kept."""
    stated = environ.get(VARIABLE, "")
    if stated.lower() in ("off", "0"):
        return None
    return os.path.expanduser(stated) or os.path.join(state_folder(environ), "runs")


def keep(run: Mapping[str, Any], folder: str | None = None) -> str | None:
    """Keep a run, or add to what is kept of it; return the file, None if runs are not kept. Raises OSError if it cannot be written.

    What is empty adds nothing, and who began the run says where it came from: `gpulse run` and a Monitor inside write one file.
    """
    folder = folder or runs_folder()
    if folder is None:
        return None
    os.makedirs(folder, mode=0o700, exist_ok=True)
    path = _path_of(folder, str(run["id"]))
    if path is None:
        began = int(parse_time(str(run["start"])) * 1000)
        path = os.path.join(folder, f"{began:015d}-{_file_word(str(run['id']))}.json")
    elif (before := read_run(path)) is not None:
        run = _joined(before.plain, run)
    with replaced(path) as file:
        file.write(json.dumps(run, separators=(",", ":"), allow_nan=False).encode("utf-8", "backslashreplace"))
    for name in _names(folder)[MOST:]:
        for old in (os.path.join(folder, name), _flame_path(os.path.join(folder, name))):
            remove(old)
    return path


def keep_flame(path: str, flame: Mapping[str, Any]) -> None:
    """Keep where a run lost GPU time, as a tree of frames, beside its file. Raises OSError if it cannot be written."""
    with replaced(_flame_path(path)) as file:
        file.write(json.dumps(flame, separators=(",", ":")).encode("utf-8", "backslashreplace"))


def kept_flame(run: KeptRun) -> dict[str, Any] | None:
    """Return where a run lost GPU time, as a tree of frames; None if that was not recorded."""
    return _read(_flame_path(run.path)) if run.path else None


def free_id(run: str, folder: str | None = None) -> str:
    """Return an id that no kept run has: this one, or with a number for a run that is continued."""
    folder, number, free = folder or runs_folder(), 1, run
    while folder is not None and _path_of(folder, free) is not None:
        number += 1
        free = f"{run}.{number}"
    return free


def kept_runs(folder: str | None = None) -> Iterator[KeptRun]:
    """Yield the runs, the newest first; files that are damaged are left out."""
    folder = folder or runs_folder()
    for name in () if folder is None else _names(folder):
        if (run := read_run(os.path.join(folder or "", name))) is not None:
            yield run


def run_named(word: str, folder: str | None = None) -> KeptRun:
    """Return the run that a word names: an id, the beginning of one, `last` or `last~1`; raise UsageError if there is none."""
    if recent := _RECENT.fullmatch(word):
        back = int(recent[1] or 0)
        for at, run in enumerate(kept_runs(folder)):
            if at == back:
                return run
        raise UsageError(f"there is no run {word!r}.", option="See `gpulse runs`.")
    found = [run for run in kept_runs(folder) if word and (run.id.startswith(word) or run.short.startswith(word))]
    exact = [run for run in found if word in (run.id, run.short)]
    if not found:
        raise UsageError(f"no run has an id that starts with {word!r}.", option="See `gpulse runs`.")
    if len(exact or found) > 1:
        some = ", ".join(run.short if run.short.startswith(word) else run.id for run in found[:4])
        raise UsageError(f"{len(found)} runs have an id that starts with {word!r};", f"write more of it: {some}.")
    return (exact or found)[0]


def run_recorded(path: str, folder: str | None = None) -> KeptRun | None:
    """Return the newest run that wrote this recording; None if there is none."""
    whole = os.path.abspath(path)
    return next((run for run in kept_runs(folder) if run.text("recording") == whole), None)


def earlier(run: KeptRun, folder: str | None = None) -> list[KeptRun]:
    """Return the runs of the same command in the same folder before this one, the newest first."""
    return [one for one in kept_runs(folder) if one.id != run.id and one.start <= run.start and one.same(run)]


def past_lengths(command: str, where: str, folder: str | None = None) -> tuple[float | None, float | None]:
    """Return the least and the most time, in seconds, that a command is expected to take in a folder; None each if that is not known.

    From the runs that succeeded, if there are at least two; the most has a quarter on top.
    """
    same = [run for run in kept_runs(folder) if run.text("command") == command and run.text("folder") == where]
    took = [run.seconds for run in same if run.seconds and run.number("exit_code") == 0]
    return (min(took), 1.25 * max(took)) if len(took) >= 2 else (None, None)


def _joined(before: Mapping[str, Any], after: Mapping[str, Any]) -> dict[str, Any]:
    joined = dict(before)
    for key, value in after.items():
        if value in (None, "", [], {}) or (key in _ORIGIN and before.get(key)):
            continue
        old = before.get(key)
        both = isinstance(old, dict) and isinstance(value, dict)
        joined[key] = _joined(old, value) if both else value  # type: ignore[arg-type]
    return joined


def _names(folder: str) -> list[str]:
    """Return the files of runs, the newest first: names begin with the time."""
    try:
        return sorted(filter(_NAME.fullmatch, os.listdir(folder)), reverse=True)
    except OSError:
        return []


def _path_of(folder: str, run: str) -> str | None:
    ending = f"-{_file_word(run)}.json"
    return next((os.path.join(folder, name) for name in _names(folder) if name[15:] == ending), None)


def _file_word(run: str) -> str:
    """Return an id as part of a file name; a program may choose any text as its id."""
    if re.fullmatch(r"[\w-][\w.-]{0,63}", run, re.ASCII):
        return run
    import hashlib

    return hashlib.sha256(run.encode("utf-8", "backslashreplace")).hexdigest()[:16]


def read_run(path: str) -> KeptRun | None:
    """Return the run in a file; None if it is gone or damaged."""
    plain = _read(path)
    return KeptRun(plain, path) if plain is not None and isinstance(plain.get("id"), str) else None


def _read(path: str) -> dict[str, Any] | None:
    if (opened := open_foreign(path)) is None:
        return None
    try:
        with open(opened[0], "rb") as file:
            plain = json.loads(file.read(_LARGEST))
    except (OSError, ValueError, RecursionError):
        return None
    return plain if isinstance(plain, dict) else None


def _flame_path(path: str) -> str:
    return f"{path.removesuffix('.json')}.flame"
