"""A recording that comes through a pipe, as a live source: its newest sample is what there is now."""

from __future__ import annotations

import os
import threading
import time

from ...errors import RecordingError
from ...model.snapshot import Problem, Snapshot
from ...store.recording import PIPE_PATIENCE, read_pipe, title_of
from ..base import Machine, Source
from ..files import link, names, read_bytes
from .source import RecordedDevice, completed

_LATE = 10.0  # seconds, or three times what is usual, after which a new sample is missed


class PipeSource(Source):
    """Reads a pipe in a thread. `recorded` returns the newest sample, and raises StopIteration when the pipe has ended."""

    name = "replay"
    patience = PIPE_PATIENCE + 5.0

    def __init__(self, path: str) -> None:
        self.path = path
        self.machine = Machine()
        self._changed = threading.Condition()
        self._newest: Snapshot | None = None
        self._given: Snapshot | None = None
        self._came = self._usual = 0.0
        self._over = False
        self._rivals: tuple[Problem, ...] = ()
        self._error: RecordingError | None = None

    def open(self) -> None:
        threading.Thread(target=self._read, name="gpulse-pipe", daemon=True).start()
        with self._changed:
            self._changed.wait_for(lambda: self._newest is not None or self._over)
            first = self._newest
        if first is None:
            assert self._error is not None
            raise self._error
        self.driver = first.driver
        self.devices = [RecordedDevice(gpu) for gpu in first.gpus]
        self._rivals = rivals(os.getpgrp())

    def recorded(self) -> Snapshot:
        with self._changed:
            assert self._newest is not None
            if self._over and self._given is self._newest:
                raise StopIteration
            self._given = newest = self._newest
            limit = max(_LATE, 3 * self._usual)
            late = time.monotonic() - self._came > limit
        if not late:
            return newest.replace(problems=(*newest.problems, *self._rivals)) if self._rivals else newest
        said = Problem("replay", f"no new sample has come through {title_of(self.path)} for more than {limit:.0f} s.")
        return newest.replace(problems=(*newest.problems, said))

    def _read(self) -> None:
        try:
            for sample in read_pipe(self.path):
                now = time.monotonic()
                with self._changed:
                    self._usual = now - self._came if self._newest is not None else 0.0
                    self._came, self._newest = now, completed(sample)
                    self._changed.notify_all()
        except RecordingError as error:
            self._error = error
        finally:
            with self._changed:
                self._over = True
                self._changed.notify_all()


def rivals(group: int, root: str = "") -> tuple[Problem, ...]:
    """Return a problem if an ssh of the same pipeline reads the terminal: it takes some of the keys that are typed."""
    for pid in filter(str.isdecimal, names(f"{root}/proc")):
        name, _, rest = (read_bytes(f"{root}/proc/{pid}/stat", 4096) or b"").rpartition(b")")
        ours = name.endswith(b"(ssh") and rest.split()[2:3] == [b"%d" % group]
        if ours and link(f"{root}/proc/{pid}/fd/0").startswith(("/dev/pts/", "/dev/tty")):
            return (Problem("replay", "ssh reads the keyboard, too, so that keys are lost.", "Use `ssh -n`."),)
    return ()
