"""One machine of a fleet as a source, so that `top` can show it."""

from __future__ import annotations

from ..errors import SourceUnavailable
from ..model.snapshot import Problem, Snapshot
from ..sources.base import Machine, Source
from ..sources.replay.source import RecordedDevice, completed

TYPE_CHECKING = False
if TYPE_CHECKING:
    from ..model.fleet import HostReport
    from .fleet import Fleet


class HostSource(Source):
    """The newest sample of a machine; when no more come, the last one stays, with a problem that says so."""

    name = "fleet"

    def __init__(self, fleet: Fleet, name: str) -> None:
        self.machine = Machine()
        self._fleet = fleet
        self._name = name
        self._last: Snapshot | None = None

    def open(self) -> None:
        first = self.recorded()
        self.driver = first.driver
        self.devices = [RecordedDevice(gpu) for gpu in first.gpus]

    def recorded(self) -> Snapshot:
        host = self._report()
        if host.snapshot is not None:
            self._last = completed(host.snapshot)
            return self._last
        reason = f"{self._name} is {host.state}{f': {host.reason}' if host.reason else ''}."
        if self._last is None:
            raise SourceUnavailable(reason)
        return self._last.replace(problems=(*self._last.problems, Problem("fleet", reason)))

    def _report(self) -> HostReport:
        found = next((host for host in self._fleet.read().hosts if host.name == self._name), None)
        if found is None:
            raise SourceUnavailable(f"{self._name} is not there any more.")
        return found
