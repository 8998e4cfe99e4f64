"""Recordings that come through a pipe: standard input, a FIFO, or what a shell calls /dev/fd/63."""

from __future__ import annotations

import os
import stat

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

STDIN = "-"
PATIENCE = 20.0  # seconds until the first byte: a recorder on another machine has to be reached first
_NO_WRITER = 10.0  # seconds until somebody opens a named pipe for writing
_BLOCK = 1 << 16
_STARTS = (b"{", b"\x1f", b"\n", b" ")  # of a recording, plain or packed
_kept: dict[str, int] = {}  # an unnamed file for each pipe, which can be read only once


def is_pipe(path: str) -> bool:
    """Return whether a path is standard input or a pipe, which cannot be read twice."""
    try:
        mode = os.fstat(0).st_mode if path == STDIN else os.stat(path).st_mode
    except OSError:
        return path == STDIN
    return stat.S_ISFIFO(mode) or stat.S_ISSOCK(mode) or path == STDIN


def title_of(path: str) -> str:
    """Return what messages call a path."""
    return "standard input" if path == STDIN else path


def _open(path: str) -> int:
    """Return a handle for reading without waiting for a writer; raise OSError for a terminal."""
    if path != STDIN:
        return os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    if os.isatty(0):
        raise OSError("it is a terminal; pipe a recording into it: gpulse record -o - | gpulse report -")
    return os.dup(0)


def pieces(path: str) -> Iterator[bytes]:
    """Yield what comes through a pipe until its writers have closed it, and close it; raise OSError when nothing comes at first."""
    import select

    handle, patience = _open(path), PATIENCE if path == STDIN else _NO_WRITER
    poll = select.poll()
    poll.register(handle, select.POLLIN | select.POLLHUP)
    try:
        if not poll.poll(patience * 1000):
            raise OSError(f"nothing came through this pipe within {patience:.0f} s")
        while piece := os.read(handle, _BLOCK):
            yield piece
            poll.poll()
    finally:
        os.close(handle)


def kept(path: str) -> str:
    """Copy what comes through a pipe to an unnamed file, once, and return a path of that. Raises OSError."""
    if path not in _kept:
        import tempfile

        with tempfile.TemporaryFile() as file:
            for piece in pieces(path):
                file.write(piece)
                if file.tell() == len(piece) and not piece.startswith(_STARTS):
                    break  # no recording: reading what there is says so
            file.flush()
            _kept[path] = os.dup(file.fileno())
    return f"/proc/self/fd/{_kept[path]}"
