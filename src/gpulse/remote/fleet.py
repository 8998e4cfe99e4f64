"""The newest sample of every machine, filled by feeds that never wait for each other; and a simulated feed."""

from __future__ import annotations

import threading
import time

from ..errors import GpulseError
from ..model.fleet import FleetSnapshot, HostReport
from ..sources.slurm import granted_gpus

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence
    from typing import Protocol

    from ..model.fleet import HostState
    from ..model.snapshot import Snapshot
    from .past import Past

    class Feed(Protocol):
        """One way to reach machines. `start` returns at once; `close` ends everything that it has started.

        `past` answers what was before, where that is recorded.
        """

        @property
        def past(self) -> Past | None: ...

        def start(self, fleet: Fleet) -> None: ...

        def close(self) -> None: ...


_LATE = 3.0  # intervals after which a sample is no longer shown
_SHORTEST_LATE = 10.0  # seconds
_GRANTS_EVERY = 60.0  # seconds; the controller serves the whole cluster


class _Host:
    __slots__ = ("arrived", "came", "link", "reason", "snapshot", "source", "state")

    def __init__(self, source: str, link: str) -> None:
        self.source = source
        self.link = link
        self.state: HostState = "connecting"
        self.snapshot: Snapshot | None = None
        self.came = 0.0  # when the sample was taken
        self.arrived = 0.0  # when it was handed over
        self.reason = ""


class Fleet:
    """Reads all machines of some feeds. Feeds call `put` and `fail` from their threads; `read` never waits.

    The caller that opens it closes it. Names are unique: a second machine with the same name gets "name (2)".
    """

    def __init__(
        self, feeds: Sequence[Feed], interval: float = 5.0, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self.interval = interval
        self._feeds = tuple(feeds)
        self._clock = clock
        self._hosts: dict[str, _Host] = {}
        self._grants: dict[str, Mapping[str, Mapping[int, Mapping[str, str]]]] = {}
        self._changed = threading.Condition()

    def __enter__(self) -> Fleet:
        for feed in self._feeds:
            feed.start(self)
        return self

    def __exit__(self, *failure: object) -> None:
        for feed in self._feeds:
            feed.close()

    @property
    def pasts(self) -> list[Past]:
        """What can be asked about the past of some machines."""
        return [feed.past for feed in self._feeds if feed.past is not None]

    def expect(self, name: str, source: str, link: str = "") -> str:
        """Add a machine that is being connected to, and return the name it is shown by; `link` is its own page."""
        with self._changed:
            unique, count = name, 1
            while unique in self._hosts:
                count += 1
                unique = f"{name} ({count})"
            self._hosts[unique] = _Host(source, link)
            return unique

    def forget(self, name: str) -> None:
        """Remove a machine, one that Prometheus no longer knows for instance."""
        with self._changed:
            self._hosts.pop(name, None)
            self._changed.notify_all()

    def put(self, name: str, snapshot: Snapshot, age: float = 0.0) -> None:
        """Take a new sample, which is already `age` seconds old.

        It counts as recent for three intervals from now on: Prometheus may scrape less often than it is asked, and tells itself what is
        no longer there.
        """
        with self._changed:
            host = self._hosts[name]
            host.arrived = self._clock()
            host.snapshot, host.came, host.state, host.reason = snapshot, host.arrived - age, "ok", ""
            self._changed.notify_all()

    def fail(self, name: str, state: HostState, reason: str) -> None:
        """Note why a machine has no samples; the newest one stands until it is too old."""
        with self._changed:
            host = self._hosts[name]
            host.state, host.reason = state, reason
            self._changed.notify_all()

    def grant(self, by: str, grants: Mapping[str, Mapping[int, Mapping[str, str]]]) -> None:
        """Take which GPUs a scheduler has given to whom: user, job or pod by machine and number; replaces what it said before."""
        with self._changed:
            self._grants[by] = grants

    def read(self) -> FleetSnapshot:
        """Return what is known now."""
        with self._changed:
            now = self._clock()
            reports = tuple(self._report(name, host, now) for name, host in self._hosts.items())
            return FleetSnapshot(time.time(), reports, tuple(self._grants.values()))

    def wait(self, seconds: float) -> None:
        """Return as soon as every machine has answered or failed, at most after `seconds`."""
        with self._changed:
            self._changed.wait_for(lambda: all(host.state != "connecting" for host in self._hosts.values()), seconds)

    def stream(self, seconds: float) -> Iterator[FleetSnapshot]:
        """Yield the fleet once all have answered, or after `seconds`, and then every interval."""
        self.wait(seconds)
        due = time.monotonic()
        while True:
            yield self.read()
            due += self.interval
            time.sleep(max(0.0, due - time.monotonic()))

    def _report(self, name: str, host: _Host, now: float) -> HostReport:
        age = None if host.snapshot is None else max(0.0, now - host.came)
        if age is not None and now - host.arrived <= max(_SHORTEST_LATE, _LATE * self.interval):
            return HostReport(name, host.source, "ok", host.snapshot, age, link=host.link)
        state = "stale" if host.state == "ok" else host.state
        reason = host.reason or ("" if age is None else f"no sample for {age:.0f} s")
        return HostReport(name, host.source, state, None, age, reason, host.link)


class SlurmGrants:
    """Tells a fleet every minute which GPUs Slurm has given to whom; no machines of its own."""

    past = None

    def __init__(self, ask: Callable[[], Mapping[str, Mapping[int, Mapping[str, str]]]] = granted_gpus) -> None:
        self._ask = ask
        self._stop = threading.Event()

    def start(self, fleet: Fleet) -> None:
        threading.Thread(target=self._run, args=(fleet,), name="gpulse-grants", daemon=True).start()

    def close(self) -> None:
        """Tell the thread to end."""
        self._stop.set()

    def _run(self, fleet: Fleet) -> None:
        while not self._stop.is_set():
            try:
                fleet.grant("slurm", self._ask())
            except GpulseError:
                fleet.grant("slurm", {})  # what it said before may no longer be so
            self._stop.wait(_GRANTS_EVERY)


_SEEDS = {"gpu01": 7, "gpu02": 11, "gpu03": 23}
_DEAD = "gpu04"


class DemoFeed:
    """The feed of `gpulse fleet --demo`."""

    past = None

    def __init__(self, interval: float) -> None:
        self._interval = interval
        self._ended = threading.Event()
        self._thread: threading.Thread | None = None

    def start(self, fleet: Fleet) -> None:
        """Start to sample the machines in one thread."""
        names = {fleet.expect(name, "demo"): seed for name, seed in _SEEDS.items()}
        fleet.fail(fleet.expect(_DEAD, "demo"), "unreachable", "ssh: connect to host gpu04 port 22: No route to host")
        self._thread = threading.Thread(target=self._run, args=(fleet, names), name="gpulse-demo-fleet", daemon=True)
        self._thread.start()

    def close(self) -> None:
        """Stop sampling."""
        self._ended.set()
        if self._thread is not None:
            self._thread.join()

    def _run(self, fleet: Fleet, names: dict[str, int]) -> None:
        from ..model.select import EVERYTHING
        from ..sampling.sampler import Sampler
        from ..sources.simulated.source import SimulatedSource

        samplers = {name: Sampler(SimulatedSource(seed), EVERYTHING).open() for name, seed in names.items()}
        try:
            while not self._ended.is_set():
                for name, sampler in samplers.items():
                    snapshot = sampler.read()
                    fleet.put(name, snapshot.replace(host=snapshot.host.replace(name=name)))
                self._ended.wait(self._interval)
        finally:
            for sampler in samplers.values():
                sampler.close()
