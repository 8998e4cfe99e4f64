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
    from collections.abc import Callable, Iterator
    from typing import Any, BinaryIO, TypeAlias

    from typing_extensions import Buffer

    Places: TypeAlias = "list[tuple[int, Members]]"  # to read on from: the bytes of text before, and what reads on

_GZIP = 31  # what zlib calls a gzip header with the largest window
_RAW = -15  # what it calls no header at all
_LEVEL = 6  # level 1 takes 0.03 ms less a line and three times the room
_FLUSHED = b"\x00\x00\xff\xff"  # how a sync flush ends
_FULL_EVERY = 60  # lines
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
    """Gzip members one after another, unpacked piece by piece; `read` are the bytes of the file so far."""

    def __init__(self) -> None:
        self.read = 0
        self._stream: Any = None  # unpacks the member that has begun
        self._raw = False  # whether it was entered in its middle
        self._skip = 0  # bytes of its trailer that are to come

    def unpack(self, piece: bytes) -> bytes:
        """Return the text of the next bytes of the file; raise zlib.error where they are damaged."""
        self.read += len(piece)
        text = b""
        while piece:
            if self._skip:
                piece, self._skip = piece[self._skip :], max(0, self._skip - len(piece))
            elif self._stream is not None:
                text += self._unpacked(piece)
                piece = self._stream.unused_data
                if self._stream.eof:
                    self._stream, self._skip, self._raw = None, _TRAILER if self._raw else 0, False
            elif piece := piece.lstrip(b"\x00"):  # padding between members
                self._begin(self.read - len(piece))
        return text

    def forget(self) -> None:
        """Go on within a member that nothing is known of: after a full flush, nothing of before is needed."""
        self._stream, self._raw, self._skip = zlib.decompressobj(_RAW), True, 0

    @property
    def complete(self) -> bool:
        """Whether the last member has ended."""
        return self._stream is None

    def copy(self) -> Members:
        """Return one that reads on from here on its own."""
        made = copy(self)
        made._stream = self._stream and self._stream.copy()
        return made

    def _begin(self, place: int) -> None:
        """Begin to unpack the member that starts at a place in the file."""
        self._stream = zlib.decompressobj(_GZIP)

    def _unpacked(self, piece: bytes) -> bytes:
        text: bytes = self._stream.decompress(piece)
        return text


def _pieces(file: BinaryIO | io.FileIO, start: int, find: Callable[..., int] = bytes.rfind) -> Iterator[bytes]:
    """Yield the bytes of a file from a place on, a bite each; one with flushes in it ends with the last, or the first, of them."""
    file.seek(start)
    data, more = b"", True
    while data or more:
        if more and len(data) < _BITE + len(_FLUSHED):
            block = file.read(_BLOCK) or b""
            data, more = data + block, bool(block)
            continue
        found = find(data, _FLUSHED, 0, _BITE + len(_FLUSHED) - 1)
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
        self._at, self._sound, self._members = at, members, members.copy()
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
            self._sound = self._members.copy()
            self._places.append((self._at, self._sound))
        return data

    def _unpack(self) -> bool:
        """Unpack some more; return False at the end."""
        piece, start = next(self._pieces, b""), self._members.read
        try:
            self._ready = self._members.unpack(piece)
        except zlib.error:
            self.damaged = True
            self._ready = self._before_damage(start, piece) + b"\n"
        return piece != b""

    def _before_damage(self, start: int, piece: bytes) -> bytes:
        """Return the text up to the damage in the piece that starts at a place, and go on after the next flush.

        A call that fails gives nothing of what it unpacked: only single bytes make the text the same at any time.
        """
        members, text = self._sound.copy(), b""
        for sound in _pieces(self._file, members.read):
            if members.read == start:
                break
            members.unpack(sound)
        try:
            for at in range(len(piece)):
                text += members.unpack(piece[at : at + 1])
        except zlib.error:
            pass
        for lost in _pieces(self._file, members.read, bytes.find):
            members.read += len(lost)
            if lost.endswith(_FLUSHED):
                break
        members.forget()
        self._resume(self._at, members)
        return text


def mend(path: str) -> None:
    """Make a packed file whose writer died end properly after its last whole line, so that more can follow.

    Raises OSError when it is damaged, or cut off and not written by a Packer.
    """
    with open(path, "r+b") as file:
        member = _LastMember()
        try:
            for piece in _pieces(file, 0):
                member.unpack(piece)
        except zlib.error as error:
            raise OSError(f"it is damaged ({error})") from None
        if member.complete:
            return
        if (
            not member.trailer and member.lines > 1
        ):  # of our own, a first line may be there but for the flush that ends it
            raise OSError("it was cut off and cannot be continued")
        file.truncate(member.end)
        file.seek(member.end)
        file.write(member.trailer)


class _LastMember(Members):
    """What is known of the last member: its `lines`, the `end` of the last whole one, and the `trailer` that completes it there."""

    end, trailer, lines = 0, b"", 0
    _check, _length, _last = 0, 0, b""

    def unpack(self, piece: bytes) -> bytes:
        text = super().unpack(piece)
        if piece.endswith(_FLUSHED) and self._last == b"\n":
            ends = self._check, self._length % 2**32
            self.end = self.read
            self.trailer = b"\x03\x00" + b"".join(
                number.to_bytes(4, "little") for number in ends
            )  # after an empty block
        return text

    def _begin(self, place: int) -> None:
        super()._begin(place)
        self.end, self.trailer, self.lines = place, b"", 0
        self._check, self._length, self._last = 0, 0, b""

    def _unpacked(self, piece: bytes) -> bytes:
        text = super()._unpacked(piece)
        self._check = zlib.crc32(text, self._check)
        self._length += len(text)
        self.lines += text.count(b"\n")
        self._last = text[-1:] or self._last
        return text
