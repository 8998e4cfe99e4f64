"""Packed recordings: a gzip file that is whole after every line, and one that can be read from any place.

Each line is closed by a sync flush, so that whatever ends the writer costs at most the line being written. That makes a
line of 8 GPUs 300 bytes instead of 225; a gzip member a line would make it 2500, since nothing is shared between lines.
Every 60th line is closed by a full flush, after which nothing of before is needed: damage costs at most the lines up to there,
and a line 34 bytes more.
"""

from __future__ import annotations

import io
import os
import zlib
from copy import copy

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any, BinaryIO, TypeAlias

    from typing_extensions import Buffer, Self

    Places: TypeAlias = "list[tuple[int, Members]]"  # to read on from: the bytes of text before, and what reads on

_GZIP = 31  # what zlib calls a gzip header with the largest window
_RAW = -15  # what it calls no header at all
_LEVEL = 6  # level 1 takes 0.03 ms less a line and three times the room
_FLUSHED = b"\x00\x00\xff\xff"  # how a sync flush ends
_FULL_EVERY = 60  # lines
_MAGIC = b"\x1f\x8b\x08"
_HEADER = 10  # bytes of a member before its name, if it has one
_LONGEST_HEADER = 4096
_TRAILER = 8  # bytes after the end of a member: checksum and length
_BLOCK = 1 << 13
_BITE = 1 << 10  # bytes unpacked at once: what they unpack to is held in memory
# a recording of 8 idle GPUs unpacks to 90 times its size; gzip can do 1030, of one byte over and over
_EXPANSION = 1000
_PLENTY = 4 << 20  # bytes of text from which that counts
_APART = 4 << 20  # bytes of text between two places to read on from: 40 KB of memory each


class Packer:
    """Turns lines into gzip; what it has returned for a line suffices to read the line."""

    def __init__(self) -> None:
        self._stream = zlib.compressobj(_LEVEL, zlib.DEFLATED, _GZIP)
        self._lines = 0

    def line(self, data: bytes) -> bytes:
        """Return the bytes to append for a line."""
        self._lines += 1
        flush = zlib.Z_SYNC_FLUSH if self._lines % _FULL_EVERY else zlib.Z_FULL_FLUSH
        return self._stream.compress(data) + self._stream.flush(flush)

    def end(self) -> bytes:
        """Return the bytes that end the file properly."""
        return self._stream.flush()


class Members:
    """Gzip members one after another, unpacked piece by piece; `read` are the bytes of the file so far.

    Their own checksums are not compared: lines have theirs. Of the last member, `lines` are those unpacked so far, `end` is where
    the last whole one ends in the file, and `trailer` is what the member needs there to be complete.
    """

    def __init__(self) -> None:
        self.read = 0
        self._stream: Any = None  # unpacks the member that has begun
        self._head = b""  # what is there of its header
        self._skip = 0  # bytes of its trailer that are to come
        self._begin(0)

    def unpack(self, piece: bytes) -> bytes:
        """Return the text of the next bytes of the file; raise zlib.error where they are damaged."""
        self.read += len(piece)
        flushed = piece.endswith(_FLUSHED)
        texts = []
        while piece:
            if self._skip:
                piece, self._skip = piece[self._skip :], max(0, self._skip - len(piece))
            elif self._stream is None:
                piece = self._without_header(piece)
            else:
                texts.append(self._unpacked(piece))
                piece = self._stream.unused_data
                if self._stream.eof:
                    self._stream, self._skip = None, _TRAILER
        if flushed and self._last == b"\n":
            self.end = self.read
            # an empty last block, checksum and length
            self.trailer = (
                b"\x03\x00" + self._check.to_bytes(4, "little") + (self._length % 2**32).to_bytes(4, "little")
            )
        return b"".join(texts)

    def leave_out(self, count: int) -> None:
        """Go on within a member, some bytes further on: after a full flush, nothing of before is needed."""
        self.read += count
        self._stream, self._head, self._skip = zlib.decompressobj(_RAW), b"", 0

    @property
    def complete(self) -> bool:
        """Whether the last member has ended."""
        return self._stream is None and not self._head and not self._skip

    def copy(self) -> Self:
        """Return one that reads on from here on its own."""
        made = copy(self)
        made._stream = self._stream and self._stream.copy()
        return made

    def _begin(self, place: int) -> None:
        self.end, self.trailer, self.lines = place, b"", 0
        self._check: int = 0
        self._length: int = 0
        self._last: bytes = b""  # character

    def _without_header(self, piece: bytes) -> bytes:
        """Return what follows the header of a member, before which there may be padding."""
        if not self._head:
            piece = piece.lstrip(b"\x00")
            self._begin(self.read - len(piece))
        self._head += piece
        if (size := _header_size(self._head)) is None:
            return b""
        rest, self._head, self._stream = self._head[size:], b"", zlib.decompressobj(_RAW)
        return rest

    def _unpacked(self, piece: bytes) -> bytes:
        text: bytes = self._stream.decompress(piece)
        self._check = zlib.crc32(text, self._check)
        self._length += len(text)
        self.lines += text.count(b"\n")
        self._last = text[-1:] or self._last
        return text


def _header_size(data: bytes) -> int | None:
    """Return the length of the header of a member, None if there is more of it to come; raise zlib.error if it is none."""
    if data[:3] != _MAGIC[: len(data)] or len(data) > _LONGEST_HEADER:
        raise zlib.error("it has no header of gzip")
    if len(data) < _HEADER:
        return None
    flags, size = data[3], _HEADER
    if flags & 4:
        size += 2 + int.from_bytes(data[size : size + 2], "little")
    for flag in (8, 16):  # a name and a comment, each up to a zero
        if flags & flag:
            size = data.find(0, size) + 1 or len(data) + 1
    size += flags & 2
    return size if size <= len(data) else None


def _pieces(file: BinaryIO | io.FileIO, start: int) -> Iterator[bytes]:
    """Yield the bytes of a file from a place on, in pieces that end with a flush or else are a bite."""
    file.seek(start)
    data, more = b"", True
    while data or more:
        if more and len(data) < _BITE + len(_FLUSHED):
            block = file.read(_BLOCK) or b""
            data, more = data + block, bool(block)
            continue
        found = data.find(_FLUSHED, 0, _BITE + len(_FLUSHED) - 1)
        size = _BITE if found < 0 else found + len(_FLUSHED)
        yield data[:size]
        data = data[size:]


class PackedReader(io.RawIOBase):
    """The text of a gzip file. Where a writer died it just ends. Seeking goes by places passed before.

    Where it is damaged, the text ends with a newline and goes on after the next flush from which it can be read; the text is
    the same however it is read. `damaged` says whether that has happened.
    """

    def __init__(self, path: str, places: Places) -> None:
        """Open a file; `places` is filled while reading, and may be shared with another reader of the same file."""
        super().__init__()
        self._file = open(path, "rb", buffering=0)  # noqa: SIM115  # closed by close
        self._places = places
        self.damaged = False
        if not places:
            places.append((0, Members()))
        self._resume(*places[0])

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def tell(self) -> int:
        return self._at

    def readinto(self, buffer: Buffer) -> int:
        view = memoryview(buffer).cast("B")
        data = self._some(len(view))
        view[: len(data)] = data
        return len(data)

    def seek(self, offset: int, whence: int = os.SEEK_SET) -> int:
        """Go to a place counted from the start, the only way it can be counted."""
        if whence != os.SEEK_SET:
            raise io.UnsupportedOperation("a packed recording is counted from its start")
        place = max((place for place in self._places if place[0] <= offset), key=lambda place: place[0])
        if not place[0] <= self._at <= offset:
            self._resume(*place)
        while self._at < offset and self._some(min(_BLOCK, offset - self._at)):
            pass
        return self._at

    def close(self) -> None:
        self._file.close()
        super().close()

    def _resume(self, at: int, members: Members) -> None:
        self._at, self._members = at, members.copy()
        self._pieces = _pieces(self._file, members.read)
        self._ready = b""  # unpacked, and not yet given out

    def _some(self, most: int) -> bytes:
        """Return some text, up to a limit; none at the end."""
        while not self._ready:
            if not self._unpack():
                return b""
        data, self._ready = self._ready[:most], self._ready[most:]
        self._at += len(data)
        if self._at > _PLENTY and self._at > _EXPANSION * self._members.read:
            raise OSError(f"it unpacks to more than {_EXPANSION} times its size, which no recording does")
        if self._at >= self._places[-1][0] + _APART and not self._ready:
            self._places.append((self._at, self._members.copy()))
        return data

    def _unpack(self) -> bool:
        """Unpack some more; return False at the end."""
        piece = next(self._pieces, b"")
        try:
            self._ready = self._members.unpack(piece)
        except zlib.error:
            self.damaged, self._ready = True, b"\n"
            self._members.leave_out(0)
            while piece and not piece.endswith(_FLUSHED):
                piece = next(self._pieces, b"")
                self._members.leave_out(len(piece))
            return True
        return piece != b""


def mend(path: str) -> None:
    """Make a packed file whose writer died end properly after its last whole line, so that more can follow.

    Raises OSError when it is damaged, or cut off and not written by a Packer.
    """
    with open(path, "r+b") as file:
        members = Members()
        try:
            for piece in _pieces(file, 0):
                members.unpack(piece)
        except zlib.error as error:
            raise OSError(f"it is damaged ({error})") from None
        if members.complete:
            return
        if (
            not members.trailer and members.lines > 1
        ):  # of our own, a first line may be there but for the flush that ends it
            raise OSError("it was cut off and cannot be continued")
        file.truncate(members.end)
        file.seek(members.end)
        file.write(members.trailer)
