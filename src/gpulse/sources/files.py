"""Read small kernel files to their end, None instead of an exception; the graphics cards of a machine and their drivers."""

from __future__ import annotations

import os

_PAGE = 1024  # bytes: the kernel hands out long files in pieces of nearly a page, so a shorter piece is the last one
_PIECE = 1 << 15  # bytes to ask for at a time: room for much more is mapped and freed again, which takes 60 µs
_SHORT = 64  # bytes; no number the kernel writes is longer


def read_bytes(path: str, size: int = 65536) -> bytes | None:
    """Return the content of a small file, or None if it cannot be read; os.read costs a third of open().read()."""
    try:
        handle = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK)  # a pipe in a recorded tree must not block
    except (OSError, ValueError):
        return None
    try:
        content = piece = os.read(handle, min(size, _PIECE))
        while len(piece) >= _PAGE and len(content) < size:
            piece = os.read(handle, min(size - len(content), _PIECE))
            content += piece
        return content
    except OSError:
        return None
    finally:
        os.close(handle)


class ProcessFile:
    """A file of a process in /proc that is kept open: reading it again takes half as long as opening it each time.

    It reads as None once the process has ended, also when another one has its PID.
    """

    __slots__ = ("_handle",)

    def __init__(self, path: str) -> None:
        try:
            self._handle = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
        except (OSError, ValueError):
            self._handle = -1

    def read(self, size: int = 4096) -> bytes | None:
        """Return the content as of now, at most `size` bytes; None if it cannot be read."""
        try:
            return os.pread(self._handle, size, 0)
        except OSError:
            return None

    def __del__(self) -> None:
        if self._handle >= 0:
            os.close(self._handle)


def read_text(path: str, size: int = 65536) -> str | None:
    """Return the content as text up to the first NUL, stripped, or None."""
    content = read_bytes(path, size)
    return None if content is None else content.split(b"\0", 1)[0].decode("utf-8", "replace").strip()


def read_int(path: str) -> int | None:
    """Return the content as an integer, or None."""
    content = read_bytes(path, _SHORT)
    return None if content is None else parse_number(content, _SHORT)


def parse_number(content: bytes, size: int) -> int | None:
    """Return the integer a file contains, up to the first NUL. A number that fills all `size` bytes may be cut off and gives None."""
    text, ended, _ = content.partition(b"\0")
    if len(content) >= size and not ended:
        return None
    digits = text.strip()
    if not digits.removeprefix(b"-").isdigit():  # int() alone would take 1_000 and +5
        return None
    return int(digits)


def names(path: str) -> list[str]:
    """Return the sorted names in a folder, or nothing if it cannot be read."""
    try:
        return sorted(os.listdir(path))
    except OSError:
        return []


def effective_capabilities(root: str = "") -> int:
    """Return the capabilities of this process as bits, which its threads may use; 0 if they are unknown."""
    for line in (read_text(f"{root}/proc/self/status") or "").splitlines():
        if line.startswith("CapEff:") and (digits := line[7:].strip()) and not digits.strip("0123456789abcdef"):
            return int(digits, 16)
    return 0


def read_environ(path: str) -> dict[str, str]:
    """Return the variables in the `environ` file of a process; empty if it cannot be read."""
    text = (read_bytes(path, 1 << 18) or b"").decode("utf-8", "replace")
    return dict(entry.partition("=")[::2] for entry in text.split("\0") if entry)


def link(path: str) -> str:
    """Return the target of a symbolic link, or an empty text if it cannot be read."""
    try:
        return os.readlink(path)
    except OSError:
        return ""


def uevent(device: str) -> dict[str, str]:
    """Return the variables of a device's uevent file."""
    lines = (read_text(f"{device}/uevent", 4096) or "").splitlines()
    return {word: rest.strip() for word, equals, rest in (line.partition("=") for line in lines) if equals}


def driver_of(device: str) -> str:
    """Return the kernel driver of a device, or an empty text; a recorded tree has no link to it."""
    return os.path.basename(link(f"{device}/driver")) or uevent(device).get("DRIVER", "")


def card_names(root: str) -> list[str]:
    """Return the cards of a machine; connectors (card0-DP-1) and render nodes are none."""
    return [name for name in names(f"{root}/sys/class/drm") if name.startswith("card") and name[4:].isdecimal()]
