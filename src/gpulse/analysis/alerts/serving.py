"""Rules for model servers: requests that wait, are slow or fail, and a server that no longer produces tokens."""

from __future__ import annotations

from ...model.event import Event
from ...model.select import Wanted
from ..serving import STUCK_AFTER, activity
from .rule import Finding, Lasting, duration, number, number_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

    from ...model.catalog import Server
    from .rule import RuleInput


class _OfServers(Lasting):
    """A rule about one figure of each server: at or above a value it holds."""

    key = ""
    kind = ""
    wanted = Wanted(serving=True)

    def findings(self, sample: RuleInput) -> Iterator[Finding]:
        for server in sample.snapshot.serving:
            value = server.get(self.key)
            known = isinstance(value, (int, float))
            holds = self.holds(server) if known else None
            values: dict[str, float | str] = {"above": self.value("above")}
            yield Finding(server.key, holds, event=self._event(sample, server, value if known else None, values))

    def holds(self, server: Server) -> bool:
        """Return whether a server is beyond the threshold."""
        value = server.get(self.key)
        return isinstance(value, (int, float)) and value >= self.value("above")

    def _event(self, sample: RuleInput, server: Server, value: object, values: dict[str, float | str]) -> Event:
        own = set(server.gpus or ())
        labels = [
            number_of(gpu) or "?"
            for gpu in sample.snapshot.gpus
            if any(part.uuid in own for part in (gpu, *gpu.instances))
        ]
        figure = float(value) if isinstance(value, (int, float)) else None
        note = server.model or server.server or ""
        uuids = server.gpus or ()
        return Event(
            sample.snapshot.time, self.kind, tuple(labels), uuids=uuids, value=figure, values=values, note=note
        )


class ServingQueue(_OfServers):
    """More requests wait than a server should have waiting."""

    name, key, kind = "serving_queue", "waiting", "serving-queue-long"
    settings = {"above": (number, 50.0), "for": (duration, 120.0), "clear_for": (duration, 60.0)}


class ServingFirstToken(_OfServers):
    """The first token comes late: the 95th percentile of the last minute."""

    name, key, kind = "serving_first_token", "first_token_p95", "serving-slow"
    settings = {"above": (number, 10.0), "for": (duration, 120.0), "clear_for": (duration, 60.0)}


class ServingErrors(_OfServers):
    """Requests fail."""

    name, key, kind = "serving_errors", "error_rate", "serving-errors"
    settings = {"above": (number, 0.1), "for": (duration, 60.0), "clear_for": (duration, 60.0)}


class ServingStuck(_OfServers):
    """A server has requests and has made no token for a while."""

    name, key, kind = "serving_stuck", "idle_time", "serving-stuck"
    settings = {"above": (duration, STUCK_AFTER), "for": (duration, 60.0), "clear_for": (duration, 0.0)}

    def holds(self, server: Server) -> bool:
        return activity(server) == "stuck" and super().holds(server)
