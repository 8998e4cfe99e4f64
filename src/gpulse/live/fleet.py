"""The hub of a fleet: reads all machines every interval, judges them, and keeps one text for all clients."""

from __future__ import annotations

import base64
import threading
import time

from .._version import __version__
from ..analysis.fleet import FleetWatch, Funnel
from ..analysis.fleet_usage import UNKNOWN, FleetRing, FleetUsage, share_byte, share_of
from ..model.catalog import DOWN
from ..model.fleet import HOST_STATES, FleetSnapshot
from ..present.concerns import STATES, visible_trouble, worded
from ..present.text import clean
from . import wire
from .parameters import Refusal
from .wire import StreamLog

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from typing import Any

    from ..model.catalog import Gpu
    from ..model.fleet import HostReport
    from ..model.serving import Tariff
    from ..model.verdict import Concern
    from ..remote.fleet import Fleet

SILENT = 254  # the byte of a GPU that is lost or does not respond
_KEPT = 8  # entries; each one tells all, so that a client that comes back needs only the last
_MOST_PROBLEMS = 500
_REMEMBERED, _REFUSED = 60.0, 5.0  # seconds that an answer and a refusal hold
_GLANCE = 1.0  # seconds between two samples while machines are still being connected to
_LETTERS = {state: state[0] for state in HOST_STATES}  # ok, connecting, stale, unreachable, denied, no_gpu, failed


class FleetHub(StreamLog):
    """One reader for all clients. The caller opens and closes the fleet.

    `usage` and `ring` are of machines that nothing else records; those in Prometheus have their past there.
    """

    def __init__(
        self, fleet: Fleet, tariff: Tariff | None = None, failed: Callable[[Exception], None] | None = None
    ) -> None:
        super().__init__(fleet.interval, _KEPT)
        self.fleet = fleet
        self.tariff = tariff
        self.latest = FleetSnapshot(time.time(), ())
        self.problems: list[dict[str, Any]] = []
        self.layout = 0  # changes when machines or their numbers of GPUs do
        # the most GPUs that each machine has had: the map keeps its shape while one is away
        self.counts: dict[str, int] = {}
        self.seen: dict[str, tuple[Gpu, ...]] = {}  # the GPUs that each machine had when it was heard of last
        self.ring = FleetRing(fleet.interval)
        self.usage = FleetUsage()
        self._watch = FleetWatch()
        self._failed = failed
        self._counted = 0.0
        self._tick: dict[str, Any] = {}
        self._answers: dict[tuple[Any, ...], tuple[float, Any]] = {}  # until when each holds, and what it is
        self._asking = threading.Lock()
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, name="gpulse-fleet", daemon=True)

    def start(self) -> None:
        """Begin to read."""
        self._thread.start()

    def close(self) -> None:
        """Stop, and tell those who listen."""
        self.over = True
        self._stop.set()
        if self._thread.is_alive():
            self._thread.join(1.0)
        self._tell()

    def _run(self) -> None:
        while not self._stop.is_set():
            begun = time.monotonic()
            try:
                self.add(self.fleet.read())
            except Exception as error:  # noqa: BLE001  # one bad sample must not end what all others see
                self._report(error, self._failed)
            waiting = any(host.state == "connecting" for host in self.latest.hosts) or not self.latest.hosts
            every = min(_GLANCE, self.interval) if waiting else self.interval
            self._stop.wait(max(0.0, begun + every - time.monotonic()))

    def add(self, snapshot: FleetSnapshot) -> None:
        """Take a snapshot: judge it, count it, make its text, wake those who listen."""
        own = [host for host in snapshot.hosts if host.source != "prometheus"]
        self.ring.add(snapshot.time, own)
        passed = snapshot.time - self._counted
        if self._counted and 0 < passed <= 3 * self.interval + 5:
            self.usage.add(snapshot.time, passed, own)
        self._counted = snapshot.time
        problems = fleet_problems(snapshot, self._watch.add(snapshot))
        counts = {host.name: max(len(host.gpus), self.counts.get(host.name, 0)) for host in snapshot.hosts}
        self.seen |= {host.name: host.gpus for host in snapshot.hosts if host.gpus}
        if counts != self.counts or not self.layout:
            self.layout += 1
        tick = {
            "time": round(snapshot.time, 3),
            "layout": self.layout,
            "funnel": funnel_plain(Funnel(gpu for _, gpu in snapshot.gpus())),
            "states": "".join(_LETTERS[host.state] for host in snapshot.hosts),
            "map": base64.b64encode(cells(snapshot, counts)).decode(),
            "problem_count": len(problems),
        }
        same = wire.same_problems(problems, self.problems)
        text = b"" if same else wire.message("problems", problems[:_MOST_PROBLEMS])
        text += wire.message("fleet", tick, self._next_id())

        def put() -> None:
            self.latest, self.problems, self.counts, self._tick = snapshot, problems, counts, tick

        self._append(snapshot.time, text, put)

    def known(self) -> FleetSnapshot:
        """Return the latest snapshot; 503 when there is none yet."""
        if not self.number:
            raise Refusal(503, "no sample has been taken yet.", {"retry-after": "1"})
        return self.latest

    def remembered(self, key: tuple[Any, ...], ask: Callable[[], Any]) -> Any:
        """Return an answer that was given in the last minute, else ask: what many clients want costs Prometheus once.

        A refusal holds for seconds: clients that wait for a Prometheus that hangs do not each wait for its timeout in turn.
        """
        with self._asking:
            if self._answers.get(key, (0.0, None))[0] <= time.monotonic():
                try:
                    answer, lasts = ask(), _REMEMBERED
                except Refusal as refusal:
                    answer, lasts = refusal, _REFUSED
                now = time.monotonic()
                self._answers = {known: one for known, one in self._answers.items() if one[0] > now}
                self._answers[key] = (now + lasts, answer)
            answer = self._answers[key][1]
        if isinstance(answer, Refusal):
            raise answer.with_traceback(None)  # it is raised for each client, and would grow
        return answer

    def overview(self) -> dict[str, Any]:
        """Return what a page needs to begin: the machines in their order, the newest values, the problems, and this server."""
        snapshot = self.known()
        with self._lock:
            tick, counts, problems = self._tick, self.counts, self.problems
        hosts = [[clean(name), count] for name, count in counts.items()]
        sources = sorted({host.source for host in snapshot.hosts})
        server = {
            "version": __version__,
            "started": round(self.started, 3),
            "interval": self.interval,
            "sources": sources,
            "currency": self.tariff.currency if self.tariff else "",
            "priced": bool(self.tariff),
            "recorded": "prometheus" in sources,
        }
        return {**tick, "hosts": hosts, "problems": problems[:_MOST_PROBLEMS], "server": server}

    def host(self, name: str) -> HostReport:
        """Return the newest report of a machine; 422 without a name, 404 if there is none of that name."""
        if not name:
            raise Refusal(422, "name: required.")
        found = next((host for host in self.known().hosts if name in (host.name, clean(host.name))), None)
        if found is None:
            raise Refusal(404, f"no machine is called {name[:100]!r}.")
        return found


def cells(snapshot: FleetSnapshot, counts: Mapping[str, int]) -> bytes:
    """Return one byte per GPU in the order of the machines: percent at work, SILENT or UNKNOWN."""
    found = bytearray()
    for host in snapshot.hosts:
        row = bytes(SILENT if gpu.state in DOWN else share_byte(share_of(gpu)) for gpu in host.gpus)
        found += row + bytes([UNKNOWN]) * (counts[host.name] - len(row))
    return bytes(found)


def funnel_plain(funnel: Funnel) -> dict[str, Any]:
    """Return the sums as plain data."""
    found = {name: getattr(funnel, name) for name in Funnel.__slots__}
    return {name: round(value, 3) if isinstance(value, float) else value for name, value in found.items()}


def fleet_problems(snapshot: FleetSnapshot, found: Mapping[str, Sequence[Concern]]) -> list[dict[str, Any]]:
    """Return what is wrong on all machines, the worst and costliest first, each as in the problems of one machine, with its name."""
    problems: list[dict[str, Any]] = []
    for host in snapshot.hosts:
        name = clean(host.name)
        for severity, place, text in visible_trouble(host, snapshot.time, host.name in found):
            problems.append(
                {"host": name, "key": host.state, "severity": severity, "place": place, "owner": "", "since": None,
                 "lost": 0.0, "title": STATES[host.state][0] if host.state != "ok" else text, "text": text, "remedy": ""}
            )  # fmt: skip
        for one in worded(found.get(host.name, ())):
            plain = one.to_plain()
            problems.append({"host": name, "place": "", **{key: plain[key] for key in _SHOWN}})
    return sorted(problems, key=lambda one: (one["severity"] != "critical", -one["lost"]))


_SHOWN = ("key", "severity", "gpus", "owner", "since", "lost", "title", "text", "remedy")
