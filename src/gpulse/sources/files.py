"""Read small kernel files: one open, one read, and None instead of an exception."""

from __future__ import annotations

import os


def read_bytes(path: str, size: int = 65536) -> bytes | None:
    """Return the content of a small file, or None if it cannot be read; os.read costs a third of open().read()."""
    try:
        handle = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    except (OSError, ValueError):
        return None
    try:
        return os.read(handle, size)
    except OSError:
        return None
    finally:
        os.close(handle)


def read_text(path: str, size: int = 65536) -> str | None:
    """Return the content as text up to the first NUL, stripped, or None."""
    content = read_bytes(path, size)
    return None if content is None else content.split(b"\0", 1)[0].decode("utf-8", "replace").strip()


def read_int(path: str) -> int | None:
    """Return the content as an integer, or None."""
    text = read_text(path, 64)
    try:
        return None if text is None else int(text)
    except ValueError:
        return None


def names(path: str) -> list[str]:
    """Return the sorted names in a folder, or nothing if it cannot be read."""
    try:
        return sorted(os.listdir(path))
    except OSError:
        return []


def link(path: str) -> str:
    """Return the target of a symbolic link, or an empty text if it cannot be read."""
    try:
        return os.readlink(path)
    except OSError:
        return ""
