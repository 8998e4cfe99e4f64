"""Push to an OpenTelemetry receiver: samples wait in memory until the receiver has taken them."""

from __future__ import annotations

import gzip
import os
import random
import threading
import time

from ..._version import __version__
from ...delivery.post import Poster
from ...errors import UsageError
from ...present.exposition import Family, labels, single_series
from ...present.text import masked
from ...queue_worker import QueueWorker
from ...value import Value
from .otlp import Conventions, Encoder, page_instruments, resource_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from ...delivery.post import Answer
    from ...model.snapshot import Snapshot

    Series = Callable[[], "tuple[float, list[tuple[Family, list[tuple[str, float]]]]]"]

_HEADERS = {
    "Content-Encoding": "gzip",
    "Content-Type": "application/x-protobuf",
    "User-Agent": f"gpulse/{__version__}",
}
_INTERVAL = 15.0
_LONGEST_QUEUE = 240  # requests: an hour, the most that Prometheus takes later; 10 KB each for 8 GPUs
_TIMEOUT = 10.0
_FIRST_PAUSE, _LONGEST_PAUSE = 1.0, 60.0
_PATIENCE = 5.0  # seconds that the end waits for a receiver that has answered so far
_EARLY = 0.05  # seconds that a sample may be early, so that a late one before it does not cost the next
_STEP_BACK = (
    600.0  # seconds; a clock set back by more starts anew, one set back by less has nothing to send until it caught up
)


class Receiver:
    """Where to push, and with what: `url`, and OpenTelemetry's variables in `environ` for headers, certificates and resource.

    Raises UsageError if one of them is wrong. `name` may be shown; `exposed` is true if credentials are sent unencrypted.
    """

    def __init__(self, url: str, environ: Mapping[str, str], timeout: float = _TIMEOUT) -> None:
        host = _host(url)
        headers = _headers(environ)
        self._headers = {**headers, **_HEADERS}
        self.resource = resource_of(_pairs(environ, "OTEL_RESOURCE_ATTRIBUTES"))
        self._poster = Poster(url, timeout, _certificates(environ))
        self.name = masked(url)
        local = host in ("localhost", "::1") or host.startswith("127.")
        self.exposed = bool(headers) and not local and url.startswith("http:")

    def send(self, body: bytes) -> Answer:
        """Send one request."""
        return self._poster.post(body, self._headers)


def _host(url: str) -> str:
    from urllib.parse import urlsplit

    try:
        parts = urlsplit(url)
        host = parts.hostname or ""
        _ = parts.port  # raises ValueError if it is none
    except ValueError:
        parts, host = urlsplit(""), ""
    if parts.scheme not in ("http", "https") or not host:
        shown = masked(url) if "://" in url else url
        raise UsageError(f"--otlp: {shown!r} is not an address;", "write it as http://host:4318/v1/metrics.")
    if parts.username or parts.password:
        raise UsageError(
            "--otlp: a password in an address can be seen by everybody;", "set OTEL_EXPORTER_OTLP_HEADERS."
        )
    return host


def _headers(environ: Mapping[str, str]) -> dict[str, str]:
    found: dict[str, str] = {}
    for variable in ("OTEL_EXPORTER_OTLP_HEADERS", "OTEL_EXPORTER_OTLP_METRICS_HEADERS"):
        found |= _pairs(environ, variable)
        if not "".join(found.values()).isascii():
            raise UsageError(f"{variable}: a header has ASCII characters only;", "encode its value.")
    return found


def _pairs(environ: Mapping[str, str], variable: str) -> dict[str, str]:
    """Return the pairs NAME=VALUE of a variable, separated by commas, with values that are percent-encoded."""
    from urllib.parse import unquote

    found = {}
    for number, word in enumerate(filter(str.strip, environ.get(variable, "").split(",")), 1):
        name, sign, value = (part.strip() for part in word.partition("="))
        value = unquote(value)
        if not sign or not name.isascii() or not name.isprintable() or " " in name or not value.isprintable():
            # the text itself may be a password
            raise UsageError(f"{variable}: entry {number} is not NAME=VALUE;", "percent-encode its value.")
        found[name] = value
    return found


def _certificates(environ: Mapping[str, str]) -> str | None:
    names = ("OTEL_EXPORTER_OTLP_METRICS_CERTIFICATE", "OTEL_EXPORTER_OTLP_CERTIFICATE")
    variable = next((name for name in names if environ.get(name)), None)
    if variable is None:
        return None
    import ssl

    path = environ[variable]
    try:
        ssl.create_default_context(cafile=path)
    except OSError as error:
        why = error.strerror or error
        raise UsageError(f"{variable}: {path} cannot be read ({why});", "name a PEM file.") from None
    return path


class Push(Value):
    """One request: its body, and how many points it has."""

    body: bytes
    points: int


class OtlpPush(QueueWorker):
    """Every `interval` seconds encodes the last sample, as /metrics shows it (`series`); a thread sends it, the oldest first.

    `add` is called with each sample and never waits for the network. A request that fails in a way that may get better is tried
    again, after up to 1 s and then twice as long each time up to a minute, or after what the receiver asks for; one that is refused
    (4xx) is dropped. Up to `size` requests wait in memory; then the oldest is dropped. `say` receives each kind of failure once, and the
    recovery with what was lost.
    """

    def __init__(
        self,
        receiver: Receiver,
        series: Series,
        say: Callable[[str], None],
        interval: float = _INTERVAL,
        size: int = _LONGEST_QUEUE,
        pause: float = _FIRST_PAUSE,
    ) -> None:
        super().__init__("otlp", size, say)
        self._receiver = receiver
        self._series = series
        self._interval = interval
        self._first_pause = pause
        self._encoder = Encoder(receiver.resource)
        self._conventions = Conventions()
        self._due = self._last = 0.0
        self._count = threading.Lock()
        self._pending = self._sent = self._requests = self._retries = 0
        self._lost = {"refused": 0, "full": 0}
        self._failures: dict[str, int] = {}
        self._success: float | None = None
        self._said: set[str] = set()  # kinds of failure since the last success
        self._lost_before = 0  # samples, up to the last success

    def add(self, snapshot: Snapshot) -> None:
        """Add a sample; every `interval` seconds it is sent."""
        self._conventions.add(snapshot)
        now = time.monotonic()
        if now >= self._due - _EARLY:
            following = self._due + self._interval
            self._due = following if following > now else now + self._interval
            self._enqueue()

    def stop(self) -> None:
        """Send the last sample and end the thread; what a receiver that is down has not taken is lost, and said."""
        if self._closing:
            return
        self._enqueue()
        self.close()
        if "failed" in self._said or not self.join(_PATIENCE):
            self.stopping.set()
            self.join(self._first_pause)
        if self._pending:
            self._tell(f"requests not sent to {self._receiver.name} before the end, and lost: {self._pending}.")

    def families(self) -> Iterator[Family]:
        """Yield the series about pushing itself."""
        lost = [(labels([("reason", reason)]), count) for reason, count in self._lost.items()]
        help = "Samples never sent: refused by the receiver, or dropped because the queue was full."
        yield Family("gpulse_otlp_dropped_samples_total", "counter", help, lost)
        failures = [(labels([("instrument", name)]), count) for name, count in self._failures.items()]
        help = "How often an instrument was left out because it failed."
        yield Family("gpulse_otlp_failed_instruments_total", "counter", help, failures)
        yield from single_series((
            ("gpulse_otlp_samples_total", "counter", "Samples the receiver has taken.", self._sent),
            ("gpulse_otlp_requests_total", "counter", "Requests the receiver has taken.", self._requests),
            ("gpulse_otlp_retries_total", "counter", "Requests that failed and are tried again.", self._retries),
            ("gpulse_otlp_pending_requests", "gauge", "Requests that wait in memory.", self._pending),
            ("gpulse_otlp_last_success_timestamp_seconds", "gauge", "When the receiver last took samples (Unix time).", self._success),
        ))  # fmt: skip

    def handle(self, item: Push) -> None:
        """Send one request, as often as it takes."""
        pause = self._first_pause
        while (answer := self._receiver.send(item.body)).why and answer.again:
            self._retries += 1
            self._complain("failed", f"failed: {answer.why}; up to {self._waiting.maxlen} requests are kept in memory.")
            # machines that lost the receiver at the same time do not come back at the same time
            wait = max(pause * random.uniform(0.5, 1.0), answer.after or 0.0)
            if self.stopping.wait(min(_LONGEST_PAUSE, wait)):
                return
            pause = min(_LONGEST_PAUSE, 2 * pause)
        self._settle(item, answer)

    def displace(self, oldest: Push, newest: Push) -> Push:
        """Count the request that is dropped."""
        with self._count:
            self._pending -= 1
            self._lost["full"] += oldest.points
        self._complain("full", "is too far behind: the oldest requests are dropped.")
        return newest

    def _enqueue(self) -> None:
        when, series = self._series()
        if not when or self._last - _STEP_BACK < when <= self._last:
            return  # receivers refuse samples that are not newer than the last
        self._last = when
        instruments = [*self._conventions.instruments(self._failed)]
        instruments += page_instruments(series, self._receiver.resource)
        message, points = self._encoder.request(when, instruments)
        with self._count:
            self._pending += 1
        self.put(Push(gzip.compress(message, 6), points))

    def _settle(self, item: Push, answer: Answer) -> None:
        """Count a request that the receiver has taken, whole or in part, or refused."""
        rejected, why = (item.points, "") if answer.why else self._encoder.rejected(answer.body)
        with self._count:
            self._pending -= 1
            self._lost["refused"] += rejected
            self._sent += item.points - rejected
        if answer.why:
            reason = f"{answer.why}: {answer.detail}" if answer.detail else answer.why
            self._complain("refused", f"{reason}; {item.points} samples are dropped.")
            return
        self._requests += 1
        self._success = time.time()
        if rejected:
            from ...present.text import clean

            self._complain(
                "rejected", f"lost {rejected} of {item.points} samples, which it rejected: {clean(why)[:200]}."
            )
        elif self._said:
            lost = sum(self._lost.values())
            self._tell(f"pushing to {self._receiver.name} works again; {lost - self._lost_before} samples were lost.")
            self._said.clear()
            self._lost_before = lost

    def _failed(self, name: str, error: Exception) -> None:
        if name not in self._failures:
            self._tell(f"{name} is not pushed: {error!r}.")
        self._failures[name] = self._failures.get(name, 0) + 1

    def _complain(self, kind: str, text: str) -> None:
        """Say what is wrong, each kind once until it works again."""
        if kind not in self._said:
            self._said.add(kind)
            self._tell(f"pushing to {self._receiver.name} {text}")

    def _tell(self, text: str) -> None:
        if self.say is not None:
            self.say(text)


def start_push(url: str, series: Series, say: Callable[[str], None]) -> OtlpPush:
    """Start pushing to `url`; raises GpulseError if it cannot begin."""
    receiver = Receiver(url, os.environ)
    if receiver.exposed:
        say(f"the headers for {receiver.name} are sent unencrypted; use https.")
    push = OtlpPush(receiver, series, say)
    push.start()
    return push
