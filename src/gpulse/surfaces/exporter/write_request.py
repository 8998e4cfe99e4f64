"""Prometheus' remote write, version 1.0: samples as the protobuf message WriteRequest.

The message has four kinds of field. Written out here it costs 40 lines; see decision 0011 for what a package would cost.
"""

from __future__ import annotations

import re
import struct

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

_LABEL = re.compile(r'([A-Za-z_][A-Za-z0-9_]*)="((?:[^"\\]|\\.)*)"')
_ESCAPED = {r"\\": "\\", r"\"": '"', r"\n": "\n"}
# The NaN by which a sender says that a series has ended; otherwise its last value would be shown for five more minutes.
_STALE = struct.pack("<Q", 0x7FF0000000000002)


class Encoder:
    """Turns the samples of one moment after another into messages.

    `labels` are added to every series that does not have them. A series that was in the last message and is in this one no longer
    gets a stale marker.
    """

    def __init__(self, labels: Mapping[str, str]) -> None:
        self._labels = dict(labels)
        self._known: dict[tuple[str, str], bytes] = {}  # the encoded labels of the series of the last message

    def request(self, time: float, samples: Iterable[tuple[str, str, float]]) -> tuple[bytes, int]:
        """Return the message of samples, each a name, a text of labels and a value, and how many it has."""
        stamp = b"\x10" + _varint(round(1000 * time))
        head = b"\x12" + _varint(9 + len(stamp)) + b"\x09"
        series: dict[tuple[str, str], bytes] = {}
        parts = []
        for name, text, value in samples:
            key = name, text
            encoded = series[key] = self._known.get(key) or self._encoded(name, text)
            parts.append(_message(1, encoded + head + struct.pack("<d", value) + stamp))
        gone = [encoded for key, encoded in self._known.items() if key not in series]
        parts += [_message(1, encoded + head + _STALE + stamp) for encoded in gone]
        self._known = series
        return b"".join(parts), len(parts)

    def _encoded(self, name: str, text: str) -> bytes:
        """Return the labels of a series, sorted by name; empty ones are left out, as the protocol wants it."""
        own = {key: re.sub(r"\\.", _unescaped, value) for key, value in _LABEL.findall(text)}
        pairs = {**self._labels, **own, "__name__": name}
        return b"".join(
            _message(1, _message(1, key.encode()) + _message(2, _bytes(value)))
            for key, value in sorted(pairs.items())
            if value
        )


def _unescaped(match: re.Match[str]) -> str:
    return _ESCAPED.get(match[0], match[0])


def _bytes(value: str) -> bytes:
    return value.encode(errors="backslashreplace")  # a name that is not UTF-8 would fail the whole message


def _message(number: int, payload: bytes) -> bytes:
    return bytes([number << 3 | 2]) + _varint(len(payload)) + payload


def _varint(value: int) -> bytes:
    out = bytearray()
    while value > 0x7F:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    out.append(value)
    return bytes(out)
