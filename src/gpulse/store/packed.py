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

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, TypeAlias

    from typing_extensions import Buffer

    # Places to read on from: the bytes of text before, the bytes of the file read for that, and what reads on.
    Places: TypeAlias = list[tuple[int, int, Any]]

_GZIP = 31  # what zlib calls a gzip header with the largest window
_LEVEL = 6  # level 1 takes 0.03 ms less a line and three times the room
_FLUSHED = b"\x00\x00\xff\xff"  # how a sync flush ends
_FULL_EVERY = 60  # lines
_RAW = -15  # what zlib calls no header at all
_TRAILER = 8  # bytes after the end of a member: checksum and length
_BLOCK = 1 << 16
_BITE = 1 << 10  # bytes read at once: what they unpack to is held in memory
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


class PackedReader(io.RawIOBase):
    """The text of a gzip file. Where a writer died it just ends. Seeking goes by places passed before.

    Where it is damaged, the text ends with a newline and goes on at the next place from which it can be read; the text is
    the same however it is read. `damaged` says whether that has happened.
    """

    def __init__(self, path: str, places: Places) -> None:
        """Open a file; `places` is filled while reading, and may be shared with another reader of the same file."""
        super().__init__()
        self._file = open(path, "rb", buffering=0)  # noqa: SIM115  # closed by close
        self._places = places
        self.damaged = False
        if not places:
            places.append((0, 0, _unpacker()))
        self._resume(places[0])

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
            self._resume(place)
        while self._at < offset and self._some(min(_BLOCK, offset - self._at)):
            pass
        return self._at

    def close(self) -> None:
        self._file.close()
        super().close()

    def _resume(self, place: tuple[int, int, Any]) -> None:
        self._at, read, stream = place
        self._stream = stream.copy()
        self._file.seek(read)
        self._read = read
        self._ready = b""  # unpacked, and not yet given out
        self._rest = b""  # read, and not yet unpacked
        self._skip = 0  # bytes to leave out: the trailer of a member that was entered in its middle
        self._raw = False

    def _some(self, most: int) -> bytes:
        """Return some text, up to a limit; none at the end."""
        while not self._ready:
            if not self._unpack():
                return b""
        data, self._ready = self._ready[:most], self._ready[most:]
        self._at += len(data)
        if self._at > _PLENTY and self._at > _EXPANSION * self._read:
            raise OSError(f"it unpacks to more than {_EXPANSION} times its size, which no recording does")
        self._mark()
        return data

    def _unpack(self) -> bool:
        """Unpack some more; return False at the end."""
        given = self._rest
        if not given:
            given = self._file.read(_BITE) or b""
            self._read += len(given)
        if not given:
            return False
        if self._skip:
            self._rest, self._skip = given[self._skip :], max(0, self._skip - len(given))
            return True
        before = self._stream.copy()
        try:
            self._ready = self._stream.decompress(given)
        except zlib.error:
            self._go_on_behind(before, given)
            return True
        self._rest = self._stream.unused_data
        if self._stream.eof:
            self._skip, self._raw = _TRAILER if self._raw else 0, False
            self._stream = _unpacker()  # another member may follow, after padding perhaps
            self._rest = self._rest if self._skip else self._rest.lstrip(b"\x00")
        return True

    def _go_on_behind(self, stream: Any, given: bytes) -> None:
        """Unpack byte by byte up to the damage, and begin again after the next flush.

        A call that fails gives nothing of what it unpacked: only single bytes make what is given the same at any time.
        """
        self.damaged = True
        text = []
        good = 0
        try:
            for good in range(len(given)):
                text.append(stream.decompress(given[good : good + 1]))
        except zlib.error:
            pass
        self._ready = b"".join(text) + b"\n"
        self._stream, self._raw, self._rest = zlib.decompressobj(_RAW), True, b""
        self._find_flush(self._read - len(given) + good)

    def _find_flush(self, start: int) -> None:
        """Go to the first byte after the next flush that ends after a place in the file."""
        self._file.seek(start)
        tail, at = b"", start
        while block := self._file.read(_BLOCK):
            found = (tail + block).find(_FLUSHED)
            if found >= 0:
                self._read = at - len(tail) + found + len(_FLUSHED)
                self._file.seek(self._read)
                return
            tail, at = (tail + block)[-len(_FLUSHED) + 1 :], at + len(block)
        self._read = at

    def _mark(self) -> None:
        if self._at >= self._places[-1][0] + _APART and not (self._ready or self._rest or self._raw or self._skip):
            self._places.append((self._at, self._read, self._stream.copy()))


def mend(path: str) -> None:
    """Make a packed file whose writer died end properly after its last whole line, so that more can follow.

    Raises OSError when it is damaged, or cut off and not written by a Packer.
    """
    with open(path, "r+b") as file:
        data = memoryview(file.read())
        begin = 0
        while begin < len(data):
            member = _Member(data[begin:])
            if not member.ended:
                end, member = _last_line(data, begin, member)
                file.truncate(end)
                file.seek(end)
                file.write(member.trailer)
                return
            begin += member.size


def _last_line(data: memoryview, begin: int, member: _Member) -> tuple[int, _Member]:
    """Return where the last whole line of an unfinished member ends, and the member up to there."""
    end = len(data)
    while (flush := bytes(data[begin:end]).rfind(_FLUSHED)) >= 0:
        end = begin + flush + len(_FLUSHED)
        part = _Member(data[begin:end])
        if part.last == b"\n":
            return end, part
        end -= 1
    if member.lines > 1:  # of our own, a first line may be there but for the flush that ends it
        raise OSError("it was cut off and cannot be continued")
    return begin, _Member(data[:0])


class _Member:
    """One gzip member at the start of some bytes: whether it ends there, and what its text is like."""

    def __init__(self, data: memoryview) -> None:
        stream = _unpacker()
        self._check = self._length = self.lines = 0
        self.last = b""
        given = bytes(data)
        try:
            while not stream.eof and (text := stream.decompress(given, _BLOCK)):
                given = stream.unconsumed_tail
                self._check = zlib.crc32(text, self._check)
                self._length += len(text)
                self.lines += text.count(b"\n")
                self.last = text[-1:]
        except zlib.error as error:
            raise OSError(f"it is damaged ({error})") from None
        self.ended = stream.eof
        self.size = len(data) - len(stream.unused_data.lstrip(b"\x00"))

    @property
    def trailer(self) -> bytes:
        """What ends the member after a flush: an empty last block, checksum and length."""
        if not self._length:
            return b""
        return b"\x03\x00" + self._check.to_bytes(4, "little") + (self._length & 0xFFFFFFFF).to_bytes(4, "little")


def _unpacker() -> Any:
    return zlib.decompressobj(_GZIP)
