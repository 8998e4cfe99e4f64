"""Push to a Prometheus remote-write receiver: samples are kept on disk until the receiver has taken them.

The protobuf message WriteRequest (remote write 1.0) has four kinds of field. Written out here it costs 40 lines; see decision 0011
for what a package would cost.
"""

from __future__ import annotations

import re
import struct
import threading
import time

from ..._version import __version__
from ...delivery.post import Poster
from ...errors import GpulseError
from ...present.exposition import Family, labels, single_series
from ...present.text import masked
from ...queue_worker import QueueWorker
from ...sinks.base import load

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping
    from typing import Any

    from ...delivery.post import Answer
    from ...model.snapshot import Snapshot
    from ...store.spool import Body, Spool

    Series = Callable[[], "tuple[float, list[tuple[str, str, float]]]"]
    from collections.abc import Iterable

_PACKAGE = "cramjam"
_HEADERS = {
    "Content-Encoding": "snappy",
    "Content-Type": "application/x-protobuf",
    "X-Prometheus-Remote-Write-Version": "0.1.0",
    "User-Agent": f"gpulse/{__version__}",
}
_TIMEOUT = 30.0
_FIRST_PAUSE, _LONGEST_PAUSE = 1.0, 60.0
_EARLY = 0.05  # seconds that a sample may be early, so that a late one before it does not cost the next
_STEP_BACK = (
    600.0  # seconds; a clock set back by more starts anew, one set back by less has nothing to send until it caught up
)


class Receiver:
    """Where to send: the URL, and a function that returns the headers, read again for each request because tokens change.

    `name` may be shown; `private` tells whether nobody on the network can read what is sent.
    """

    def __init__(
        self, url: str, headers: Callable[[], Mapping[str, str]], ca_file: str | None = None, timeout: float = _TIMEOUT
    ) -> None:
        self._poster = Poster(url, timeout, ca_file)
        self._headers = headers
        self.name = masked(url)
        self.private = url.startswith(("https:", "http://127.", "http://localhost", "http://[::1]"))

    def send(self, body: bytes) -> Answer:
        """Send one request; a file of the settings that cannot be read is a failure to try again."""
        from ...delivery.post import Answer

        try:
            return self._poster.post(body, {**self._headers(), **_HEADERS})
        except GpulseError as error:
            return Answer(str(error), True)


class RemoteWrite(QueueWorker):
    """Every `interval` seconds encodes all series into the spool; a second thread sends what is there, the oldest first.

    `add` is called with each sample and never waits. A request that fails in a way that may get better is tried again, after 1 s and
    then twice as long each time up to a minute, or after what the receiver asks for; one that is refused (4xx) is dropped and said.
    A request is removed from the disk once the receiver has taken it. After a crash in between, the same bytes are sent again: the
    same series with the same time and value, which receivers store once.
    """

    def __init__(
        self,
        receiver: Receiver,
        spool: Spool,
        series: Series,
        interval: float,
        extra: Mapping[str, str],
        say: Callable[[str], None],
        pause: float = _FIRST_PAUSE,
    ) -> None:
        super().__init__("remote-write", 1, say)
        self._compress: Any = load("cramjam", _PACKAGE).snappy.compress_raw
        self._receiver = receiver
        self._spool = spool
        self._series = series
        self._interval = interval
        self._encoder = Encoder(extra)
        self._first_pause = pause
        self._due = 0.0
        self._last = 0.0
        self._arrived = threading.Event()
        self._sender = threading.Thread(target=self._send_all, name="gpulse-remote-write-send", daemon=True)
        self._sent = self._requests = self._retries = 0
        self._lost = {"refused": 0, "full": 0, "disk": 0}
        self._success: float | None = None
        self._trouble = ""  # what was said last, so that it is said once

    def start(self) -> None:
        super().start()
        self._sender.start()

    def add(self, snapshot: Snapshot) -> None:
        """Take note of a sample; every `interval` seconds all series are sent."""
        now = time.monotonic()
        if now >= self._due - _EARLY:
            following = self._due + self._interval
            self._due = following if following > now else now + self._interval
            self.put(snapshot)

    def handle(self, item: Snapshot) -> None:
        """Encode the series of the latest sample into the spool."""
        when, series = self._series()
        if self._last - _STEP_BACK < when <= self._last:
            return  # receivers refuse samples that are not newer than the last
        message, count = self._encoder.request(when, series)
        try:
            dropped = self._spool.put(bytes(self._compress(message)), count)
        except OSError as error:
            self._lost["disk"] += count
            self._complain(f"samples for {self._receiver.name} cannot be kept on disk ({error.strerror}).")
            return
        self._last = when
        if dropped:
            self._lost["full"] += dropped
            self._complain(f"the samples for {self._receiver.name} fill their buffer; the oldest are dropped.")
        self._arrived.set()

    def end(self, seconds: float) -> None:
        """Stop within this time; what is not sent stays on disk for the next start."""
        self.stopping.set()
        self._arrived.set()
        self.close()
        self.join(seconds)
        self._sender.join(seconds)
        self._spool.close()

    def families(self) -> Iterator[Family]:
        """Yield the series about pushing itself."""
        lost = [(labels([("reason", reason)]), count) for reason, count in self._lost.items()]
        help = "Samples never sent: refused by the receiver, buffer full, or not writable to disk."
        yield Family("gpulse_remote_write_dropped_samples_total", "counter", help, lost)
        own = (
            ("samples_total", "counter", "Samples the receiver has taken.", self._sent),
            ("requests_total", "counter", "Requests the receiver has taken.", self._requests),
            ("retries_total", "counter", "Requests that failed and are tried again.", self._retries),
            ("pending_requests", "gauge", "Requests that wait on disk.", self._spool.waiting),
            ("pending_bytes", "gauge", "Their size.", self._spool.size),
            ("last_success_timestamp_seconds", "gauge", "When the receiver last took samples, in seconds since 1970.", self._success),
        )  # fmt: skip
        yield from single_series((f"gpulse_remote_write_{name}", *rest) for name, *rest in own)

    def _send_all(self) -> None:
        pause = self._first_pause
        while not self.stopping.is_set():
            body = self._spool.first()
            if body is None:
                self._arrived.wait()
                self._arrived.clear()
                continue
            answer = self._answer(body)
            if answer.why and answer.again:
                self._retries += 1
                self._complain(
                    f"remote write to {self._receiver.name} failed: {answer.why}; samples are kept until it works."
                )
                self.stopping.wait(min(_LONGEST_PAUSE, pause if answer.after is None else max(pause, answer.after)))
                pause = min(_LONGEST_PAUSE, 2 * pause)
                continue
            pause = self._first_pause
            self._finish(body, answer)

    def _answer(self, body: Body) -> Answer:
        from ...delivery.post import Answer

        try:
            return self._receiver.send(self._spool.read(body))
        except OSError as error:
            return Answer(f"{body.name} cannot be read ({error.strerror})")

    def _finish(self, body: Body, answer: Answer) -> None:
        """Count a body that the receiver has taken or refused, and remove it."""
        self._spool.done(body)
        if not answer.why:
            self._sent += body.samples
            self._requests += 1
            self._success = time.time()
            if self._trouble:
                self._trouble = ""
                self._tell(f"remote write to {self._receiver.name} works again.")
            return
        self._lost["refused"] += body.samples
        reason = f"{answer.why}: {answer.detail}" if answer.detail else answer.why
        self._complain(f"remote write to {self._receiver.name} {reason}; {body.samples} samples are dropped.")

    def _complain(self, text: str) -> None:
        """Say what is wrong, once until it is something else or works again."""
        kind = text.partition(" failed")[0].partition(" status")[0]
        if kind != self._trouble:
            self._trouble = kind
            self._tell(text)

    def _tell(self, text: str) -> None:
        if self.say is not None:
            self.say(text)


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
        own = {
            key: re.sub(r"\\.", lambda match: _ESCAPED.get(match[0], match[0]), value)
            for key, value in _LABEL.findall(text)
        }
        pairs = {**self._labels, **own, "__name__": name}
        return b"".join(
            _message(1, _message(1, key.encode()) + _message(2, _bytes(value)))
            for key, value in sorted(pairs.items())
            if value
        )


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
