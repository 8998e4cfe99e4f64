"""The ranks of one job: each keeps a small file with its figures, and the first one reads them all for one report.

The files are in the private folder of `presence`, or in a folder that the machines of the job share.
"""

from __future__ import annotations

import json
import os
import shutil
import threading
import time
from contextlib import suppress

from ..analysis.run_comparison import RankSummary, straggler, with_devices
from ..sources.files import names
from ..store.lines import replaced
from ..torch import busiest_device, ordinals
from .presence import PresenceFile, Teller, private_folder
from .process import global_rank, job_id, local_rank, world_size

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from typing import Any

    from ..analysis.summary import Summary
    from .ledger import Ledger

_OFTEN = 1.0  # seconds between two writes
_OFTEN_SHARED = 10.0  # over a network
_OTHERS = 1.5  # seconds to wait for the other ranks at the end
_STALE = 86400.0  # seconds after which a folder of a job was left behind
_LARGEST = 1 << 16
_PREFIX = "job-"


class JobFile:
    """The figures of this rank, written by a thread of its own: a shared folder may be slow.

    `presence` is the run whose presence file is written, too, for a rank that has no agent to do so.
    """

    def __init__(self, ledger: Ledger, shared: str | None, presence: str = "") -> None:
        self._ledger = ledger
        self._shared = shared
        self._began = time.time()
        self._stopped = threading.Event()
        self._written = False
        self._teller = Teller(ledger, presence) if presence else None
        self.folder = job_folder(shared)
        self._thread = threading.Thread(target=self._write_on, name="gpulse-rank", daemon=True)
        self._thread.start()

    def finish(self, summary: Summary, deadline: float, report: bool) -> bool:
        """Write the last figures and, if this rank leads, add all ranks to the summary; return whether it leads.

        Waits for the other ranks if there is to be a `report`.
        """
        self._stopped.set()
        self._thread.join(max(0.0, deadline - time.monotonic()))
        if self.leads:
            gather(summary, self.folder, self._began, self._ledger.places, _OTHERS if report else 0.0)
            if self.folder is not None:
                shutil.rmtree(self.folder, ignore_errors=True)
        return self.leads

    @property
    def leads(self) -> bool:
        """Whether this rank reports for the others: the first of the job, or of the machine without a shared folder."""
        return leads(self._shared)

    def _write_on(self) -> None:
        present = None if self._teller is None else PresenceFile(os.getpid())
        over = False
        while not over:
            over = self._stopped.wait(_OFTEN_SHARED if self._shared else _OFTEN)
            try:
                self._write(over)
            except (OSError, ValueError):
                pass  # a full disk, or the folder is gone
            if present is not None and self._teller is not None and (told := self._teller.due()) is not None:
                present.write(told)
        if present is not None:
            present.remove()

    def _write(self, done: bool) -> None:
        rank = global_rank(os.environ)
        if rank is None or self.folder is None:
            return
        if not (
            done and self._written
        ):  # else the first rank has read them and removed the folder, which is to stay removed
            os.makedirs(self.folder, 0o700, exist_ok=True)
        self._written = True
        with replaced(os.path.join(self.folder, f"rank-{rank}.json")) as file:
            file.write(json.dumps(self._figures(rank) | {"done": done}, separators=(",", ":")).encode())

    def _figures(self, rank: int) -> dict[str, Any]:
        ledger, times = self._ledger, self._ledger.step_time
        device = busiest_device()
        uuids = (ordinals() or []) if device is not None else []
        return {
            "rank": rank,
            "time": time.time(),
            "host": os.uname().nodename,
            "pid": os.getpid(),
            "gpu": uuids[device[0]] if device is not None and device[0] < len(uuids) else None,
            "memory": None if device is None else device[1],
            "seconds": ledger.seconds,
            "steps": ledger.rhythm.steps,
            "step_p50": times and times.p50,
            "step_p95": times and times.p95,
            "step_max": times and times.max,
            "waited": ledger.rhythm.waited,
        }


def leads(shared: str | None) -> bool:
    """Return whether this process reports for its job: rank 0, or without a shared folder the first rank of each machine."""
    return not (global_rank(os.environ) if shared else local_rank(os.environ))


def job_folder(shared: str | None) -> str | None:
    """Return the folder of this job, in the shared folder if there is one; None if no place can be found."""
    name = _PREFIX + job_id(os.environ, shared is not None)
    if shared is not None:
        return os.path.join(os.path.abspath(shared), f".gpulse-{name}")
    try:
        private = private_folder(os.environ)
    except OSError:
        return None
    for entry in os.scandir(private):
        with suppress(OSError):  # another rank has just removed it
            if entry.name.startswith(_PREFIX) and time.time() - entry.stat(follow_symlinks=False).st_mtime > _STALE:
                shutil.rmtree(entry.path, ignore_errors=True)
    return os.path.join(private, name)


def gather(summary: Summary, folder: str | None, since: float, places: Mapping[int, str], seconds: float = 0.0) -> None:
    """Add all ranks that wrote their figures since a time to a summary; wait this long for those that have not ended."""
    if folder is None:
        return
    end, expected = time.monotonic() + seconds, world_size(os.environ)
    while True:
        found = _read_all(folder, since)
        if time.monotonic() >= end or (len(found) >= expected and all(rank.done for rank in found)):
            break
        time.sleep(0.02)
    if len(found) > 1:
        with_devices(found, summary, places)
        summary.ranks, summary.straggler, summary.world = tuple(found), straggler(found), max(expected, len(found))


def _read_all(folder: str, since: float) -> Sequence[RankSummary]:
    found = []
    for name in names(folder):
        try:
            with open(os.path.join(folder, name), "rb") as file:
                plain = json.loads(file.read(_LARGEST))
            if name.startswith("rank-") and name.endswith(".json") and plain["time"] >= since:
                found.append(RankSummary.from_plain(plain))
        except (OSError, ValueError, TypeError, KeyError, RecursionError):
            continue  # being replaced, or not ours
    return sorted(found, key=lambda rank: rank.rank)
