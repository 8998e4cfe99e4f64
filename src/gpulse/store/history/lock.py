"""One writer per history: a lock file beside the database, which the kernel releases however its holder ends."""

from __future__ import annotations

import fcntl
import os
import time

from .failure import HistoryBusy, HistoryError

_PATIENCE = 0.1  # somebody may be looking at who holds it, which takes it for an instant


class WriterLock:
    """The right to write a history, held until `release`. Raises HistoryBusy when somebody else has it."""

    def __init__(self, path: str, mode: int = 0o600) -> None:
        try:
            self._handle = os.open(f"{path}.lock", os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC, mode & 0o600)
        except OSError as error:
            if isinstance(error, PermissionError) and os.path.exists(f"{path}.lock"):
                raise HistoryBusy(path, "another user") from None
            raise HistoryError(f"{path}.lock cannot be opened: {error.strerror}.") from None
        if not self._taken():
            text = os.pread(self._handle, 200, 0).decode("utf-8", "replace").strip()
            os.close(self._handle)
            raise HistoryBusy(path, text or "another process")
        os.ftruncate(self._handle, 0)
        try:
            os.pwrite(self._handle, f"process {os.getpid()} ({_program()})\n".encode(), 0)
        except OSError:
            pass  # a full disk: the lock holds all the same, it only does not say who has it

    def release(self) -> None:
        """Let others write; safe to call twice."""
        if self._handle >= 0:
            os.close(self._handle)
            self._handle = -1

    def _taken(self) -> bool:
        until = time.monotonic() + _PATIENCE
        while True:
            try:
                fcntl.flock(self._handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
                return True
            except OSError:
                if time.monotonic() > until:
                    return False
                time.sleep(_PATIENCE / 5)


def holder(path: str) -> str | None:
    """Return who writes a history now, as `process 1234 (gpulse serve)`; None when nobody does."""
    try:
        handle = os.open(f"{path}.lock", os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC)
    except PermissionError:
        return "another user"  # or nobody: the lock of another user cannot be tried
    except OSError:
        return None
    try:
        fcntl.flock(handle, fcntl.LOCK_SH | fcntl.LOCK_NB)
        return None
    except OSError:
        return os.pread(handle, 200, 0).decode("utf-8", "replace").strip() or "another process"
    finally:
        os.close(handle)


def _program() -> str:
    """Return the program and its verb; further words of a command line are nobody's business."""
    try:
        with open("/proc/self/cmdline", "rb") as file:
            words = file.read(4096).decode("utf-8", "replace").split("\0")
    except OSError:
        return "gpulse"
    # the text after -c is no name, and may hold a secret
    names = [
        os.path.basename(word) for word in words[:3] if word and word[0] != "-" and not set(word) & set(" \n\t\"'=;(")
    ]
    return " ".join("".join(char for char in name if char.isprintable()) for name in names)[:80]
