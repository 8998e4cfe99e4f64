"""The request of a monitor to its agent, and the agent's messages."""

from __future__ import annotations

from ..model.presets import COSTLY, HOST_CURVES, LOGGED

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable
    from typing import Any

    from ..model.catalog import Process
    from ..model.event import Event
    from ..model.snapshot import Snapshot

# Read for the summary and not logged, since a constant makes no curve.
SUMMED = (
    "throttle_reasons", "memory_total", "memory_reserved", "power_limit", "power_default_limit", "clock_sm_max", "fp32_active",
    "fp64_active",
)  # fmt: skip
SELDOM = 1.0  # seconds between two reads of the activity counters and process lists, if samples come more often
HOST = ("name", "memory_total", *HOST_CURVES)
HOST_CONSTANTS = frozenset({"memory_total", "cpu_count"})


class Request:
    """What to read, how often, from which GPUs, and for which process.

    `gpus` is "all", "visible", or a list of names; `uuids` are the GPUs by ordinal, if known. `processes` are the metrics to
    read for each process on a GPU. `path` is the import path for a source that is a plug-in. `alerts`: whether to look for them.
    `without_gpus`: if no GPU can be read, go on with the host and the program.
    """

    def __init__(
        self,
        *,
        pid: int,
        interval: float = 1.0,
        metrics: Iterable[str] | None = None,
        gpus: str | list[str] = "visible",
        uuids: list[str] | None = None,
        source: str = "auto",
        processes: Iterable[str] = ("memory_used",),
        path: Iterable[str] = (),
        alerts: bool = False,
        without_gpus: bool = False,
    ) -> None:
        self.pid = pid
        self.interval = interval
        self.metrics = None if metrics is None else list(metrics)
        self.gpus = gpus
        self.uuids = uuids
        self.source = source
        self.processes = list(processes)
        self.path = list(path)
        self.alerts = alerts
        self.without_gpus = without_gpus

    @property
    def asked(self) -> frozenset[str]:
        """The GPU metrics to read."""
        return frozenset((*(LOGGED if self.metrics is None else self.metrics), *SUMMED))

    @property
    def costly_every(self) -> float:
        """Seconds between two reads of what costs the GPU most, if samples come more often: 0 if the user asked for exactly that."""
        return SELDOM if COSTLY.isdisjoint(self.metrics or ()) else 0.0

    def to_plain(self) -> dict[str, Any]:
        """Return the request as JSON for the agent's command line."""
        return dict(vars(self))


class Birth:
    """The agent's first message: its PID, which differs from that of the process that was started for it."""

    def __init__(self, pid: int) -> None:
        self.pid = pid


class Greeting:
    """The agent is ready: its GPUs by ordinal (None: all, by the driver's index), and whether that order is certain."""

    def __init__(self, uuids: list[str] | None, certain: bool = True) -> None:
        self.uuids = uuids
        self.certain = certain


class AgentSample:
    """One sample: `at` is the monotonic clock, shared by all processes of a machine; `program` is None if it could not be read."""

    def __init__(self, at: float, snapshot: Snapshot, program: Process | None) -> None:
        self.at = at
        self.snapshot = snapshot
        self.program = program


class AlertMessage:
    """Alerts that fired or cleared; the sample they were found in follows."""

    def __init__(self, events: Iterable[Event]) -> None:
        self.events = tuple(events)


class Trouble:
    """What is wrong, in one sentence; `fatal` if the agent cannot continue."""

    def __init__(self, message: str, fatal: bool = True) -> None:
        self.message = message
        self.fatal = fatal
