"""Checksums of a recording's lines: the last key of each line, which other programs may ignore and other writers leave out."""

from __future__ import annotations

_KEY = b', "check": "'
_LENGTH = len(_KEY) + 8 + len(b'"}')


def checked(line: bytes) -> bytes:
    """Return a line of JSON with its CRC-32 as the last key of the object."""
    from zlib import crc32

    return b'%s%s%08x"}' % (line[:-1], _KEY, crc32(line))


def has_check(line: bytes) -> bool:
    """Return whether a line has a checksum, right or wrong."""
    return line.rstrip()[-_LENGTH:].startswith(_KEY)


def is_damaged(line: bytes) -> bool:
    """Return whether a line has a checksum that is not its own; one without a checksum cannot be told."""
    line = line.rstrip()
    tail = line[-_LENGTH:]
    if not tail.startswith(_KEY):
        return False
    from zlib import crc32

    return b"%08x" % crc32(line[:-_LENGTH] + b"}") != line[-10:-2]
