"""The newest sample of every machine, filled by feeds that never wait for each other; and one machine as a source for `top`."""

from __future__ import annotations

import threading
import time
from types import MappingProxyType

from ..errors import GpulseError, SourceUnavailable
from ..model.fleet import FleetSnapshot, HostReport
from ..model.snapshot import Problem
from ..sources.base import Machine, Source
from ..sources.slurm import granted_gpus
from ..value import Value

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
_SEEDS = {"gpu01": 7, "gpu02": 11, "gpu03": 23}  # of the simulated machines
_DEAD = "gpu04"


class _Host(Value):
    source: str
    link: str
    state: HostState = "connecting"
    snapshot: Snapshot | None = None
    came: float = 0.0  # when the sample was taken
    arrived: float = 0.0  # when it was handed over
    reason: str = ""
    began: Mapping[tuple[str, str], tuple[float, float]] = MappingProxyType({})


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

    def put(
        self,
        name: str,
        snapshot: Snapshot,
        age: float = 0.0,
        began: Mapping[tuple[str, str], tuple[float, float]] = MappingProxyType({}),
    ) -> None:
        """Take a new sample, which is already `age` seconds old; `began` is when the machine says that its problems began.

        It counts as recent for three intervals from now on: Prometheus may scrape less often than it is asked, and tells itself what is
        no longer there.
        """
        with self._changed:
            host = self._hosts[name]
            host.arrived = self._clock()
            host.snapshot, host.came, host.state, host.reason = snapshot, host.arrived - age, "ok", ""
            host.began = began
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
            return HostReport(name, host.source, "ok", host.snapshot, age, link=host.link, began=host.began)
        state = "stale" if host.state == "ok" else host.state
        reason = host.reason or ("" if age is None else f"no sample for {age:.0f} s")
        return HostReport(name, host.source, state, None, age, reason, host.link)


class PollingFeed:
    """A feed with threads that ask something every interval, until it is closed."""

    past: Past | None = None

    def __init__(self, interval: float) -> None:
        self._interval = interval
        self._stop = threading.Event()

    def close(self) -> None:
        """Tell the threads to end; one that waits for an answer ends with the process."""
        self._stop.set()

    def _begin(self, poll: Callable[..., None], *arguments: object) -> threading.Thread:
        thread = threading.Thread(target=poll, args=arguments, name=f"gpulse-{type(self).__name__}", daemon=True)
        thread.start()
        return thread

    def _rounds(self) -> Iterator[None]:
        """Yield every interval; what takes longer is done again at once."""
        while not self._stop.is_set():
            begun = time.monotonic()
            yield
            self._stop.wait(max(0.0, begun + self._interval - time.monotonic()))


class SlurmGrants(PollingFeed):
    """Tells a fleet every minute which GPUs Slurm has given to whom; no machines of its own."""

    def __init__(self, ask: Callable[[], Mapping[str, Mapping[int, Mapping[str, str]]]] = granted_gpus) -> None:
        super().__init__(_GRANTS_EVERY)
        self._ask = ask

    def start(self, fleet: Fleet) -> None:
        self._begin(self._poll, fleet)

    def _poll(self, fleet: Fleet) -> None:
        for _ in self._rounds():
            try:
                fleet.grant("slurm", self._ask())
            except GpulseError:
                fleet.grant("slurm", {})  # what it said before may no longer be so


class DemoFeed(PollingFeed):
    """The simulated fleet of `gpulse fleet --demo`: three machines with GPUs, and one that does not answer."""

    def start(self, fleet: Fleet) -> None:
        names = {fleet.expect(name, "demo"): seed for name, seed in _SEEDS.items()}
        fleet.fail(fleet.expect(_DEAD, "demo"), "unreachable", "ssh: connect to host gpu04 port 22: No route to host")
        self._thread = self._begin(self._poll, fleet, names)

    def close(self) -> None:
        """Stop sampling."""
        super().close()
        self._thread.join()

    def _poll(self, fleet: Fleet, names: dict[str, int]) -> None:
        from ..model.select import EVERYTHING
        from ..sampling.sampler import Sampler
        from ..sources.simulated.scenes import FLEET_SCENES
        from ..sources.simulated.source import SimulatedSource

        samplers = {
            name: Sampler(SimulatedSource(seed, scenes=scenes), EVERYTHING).open()
            for (name, seed), scenes in zip(names.items(), FLEET_SCENES, strict=True)
        }
        try:
            for _ in self._rounds():
                for name, sampler in samplers.items():
                    snapshot = sampler.read()
                    fleet.put(name, snapshot.replace(host=snapshot.host.replace(name=name)))
        finally:
            for sampler in samplers.values():
                sampler.close()


class HostSource(Source):
    """One machine of a fleet as a source for `top`: its newest sample; when no more come, the last one with a problem that states it."""

    name = "fleet"

    def __init__(self, fleet: Fleet, name: str) -> None:
        self.machine = Machine()
        self._fleet = fleet
        self._name = name
        self._last: Snapshot | None = None

    def open(self) -> None:
        from ..sources.replay import RecordedDevice

        first = self.recorded()
        self.driver = first.driver
        self.devices = [RecordedDevice(gpu) for gpu in first.gpus]

    def recorded(self) -> Snapshot:
        from ..sources.replay import completed

        host = next((host for host in self._fleet.read().hosts if host.name == self._name), None)
        if host is None:
            raise SourceUnavailable(f"{self._name} is not there any more.")
        if host.snapshot is not None:
            self._last = completed(host.snapshot)
            return self._last
        reason = f"{self._name} is {host.state}{f': {host.reason}' if host.reason else ''}."
        if self._last is None:
            raise SourceUnavailable(reason)
        return self._last.replace(problems=(*self._last.problems, Problem("fleet", reason)))
