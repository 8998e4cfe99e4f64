"""What a monitor asks of its agent, and what the agent answers.

In a separate process the messages are lines of JSON, with snapshots as in recordings.
"""

from __future__ import annotations

import os
import time

from ..errors import RecordingError
from ..model.presets import COSTLY, EVIDENCE, HOST_CURVES, LOGGED, PROCESS_EVIDENCE, TIMED_POWER

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable
    from typing import Any, TextIO

    from ..model.catalog import Process
    from ..model.event import Event
    from ..model.snapshot import Snapshot

SELDOM = 1.0  # seconds between two reads of the activity counters and process lists, if samples come more often
HOST = ("name", "memory_total", "cpu_count", *HOST_CURVES)
# What summaries and verdicts need to know of every process on a GPU; how long their kernels ran costs 2 ms per GPU every 5 s.
PROCESSES = (*PROCESS_EVIDENCE, "user")
HOST_CONSTANTS = frozenset({"memory_total", "cpu_count"})


PART_OF = "GPULSE_RUN"  # environment variable with the id of the `gpulse run` that a program is part of


def new_run() -> str:
    """Return a name for a run that sorts by time and is its own: 20261116-062301-4f2a1c."""
    return f"{time.strftime('%Y%m%d-%H%M%S', time.gmtime())}-{os.urandom(3).hex()}"


def descriptor_of(stream: TextIO | None) -> int:
    """Return the descriptor of a stream; -1 for one that has none, as in a notebook."""
    try:
        return -1 if stream is None else stream.fileno()
    except (OSError, ValueError, AttributeError):
        return -1


class Request:
    """What to read, how often, from which GPUs, and for which process.

    `run` is the id of the run. `root` and its descendants are the program: `pid` itself, or the launcher of the ranks that it samples for.
    `gpus` is "all", "visible", or a list of names; `uuids` are the GPUs by ordinal, if known. `processes` are metrics to read for
    each process on a GPU besides the usual ones. `path` is the import path for a source that is a plug-in. `alerts`: whether to
    look for them. `without_gpus`: if no GPU can be read, go on with the host and the program. `stacks`: the program samples its stacks,
    which need the driver's own samples of power beside them.
    `started` is when the run was, on the monotonic clock. If the program is killed, the agent writes its last sample to `files`
    (sinks by name) and, with `report`, the report to the program's descriptor `stderr`. `shared` is a folder that
    all machines of the job can write to. `serving`: whether model servers are asked how they are doing.
    """

    def __init__(
        self,
        *,
        pid: int,
        run: str = "",
        root: int | None = None,
        interval: float = 1.0,
        metrics: Iterable[str] | None = None,
        gpus: str | list[str] = "visible",
        uuids: list[str] | None = None,
        source: str = "auto",
        processes: Iterable[str] = (),
        path: Iterable[str] = (),
        alerts: bool = False,
        without_gpus: bool = False,
        started: float = 0.0,
        report: bool = False,
        files: Iterable[str] = (),
        stderr: int = -1,
        shared: str | None = None,
        stacks: bool = False,
        serving: bool = False,
    ) -> None:
        self.serving = serving
        self.pid = pid
        self.run = run
        self.root = pid if root is None else root
        self.interval = interval
        self.metrics = None if metrics is None else list(metrics)
        self.gpus = gpus
        self.uuids = uuids
        self.source = source
        self.processes = [*PROCESSES, *(key for key in processes if key not in PROCESSES)]
        self.path = list(path)
        self.alerts = alerts
        self.without_gpus = without_gpus
        self.started = started
        self.report = report
        self.files = list(files)
        self.stderr = stderr
        self.shared = shared
        self.stacks = stacks

    @property
    def asked(self) -> frozenset[str]:
        """The GPU metrics to read: those to log, and those that verdicts need, so that these do not depend on what is logged."""
        from ..analysis.diagnosis.wanted import WANTED

        traced = TIMED_POWER if self.stacks else ()
        return WANTED.gpu.union(EVIDENCE, traced, LOGGED if self.metrics is None else self.metrics)

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
    """One sample: `at` is the monotonic clock, shared by all processes of a machine; `program` is None if it could not be read.

    `own` are the PIDs on the GPUs that belong to the program; None if processes cannot be told apart. `slow`: what is read
    every few seconds was read for this sample.
    """

    def __init__(
        self,
        at: float,
        snapshot: Snapshot,
        program: Process | None,
        own: Iterable[int] | None = None,
        slow: bool = False,
    ) -> None:
        self.at = at
        self.snapshot = snapshot
        self.program = program
        self.own = None if own is None else frozenset(own)
        self.slow = slow

    def with_snapshot(self, snapshot: Snapshot) -> AgentSample:
        """Return the sample with another snapshot."""
        return AgentSample(self.at, snapshot, self.program, self.own, self.slow)


class AlertMessage:
    """Alerts that fired or cleared; the sample they were found in follows."""

    def __init__(self, events: Iterable[Event]) -> None:
        self.events = tuple(events)


class Trouble:
    """What is wrong, in one sentence; `fatal` if the agent cannot continue."""

    def __init__(self, message: str, fatal: bool = True) -> None:
        self.message = message
        self.fatal = fatal


def encode(message: Birth | Greeting | AgentSample | AlertMessage | Trouble) -> bytes:
    """Return a message as a line."""
    import json

    from ..model.codec import to_plain

    if isinstance(message, AgentSample):
        plain = to_plain(message.snapshot)
        plain["at"], plain["slow"] = message.at, message.slow
        plain["own"] = None if message.own is None else [*message.own]
        if message.program is not None:
            plain["program"] = {**dict(message.program.items()), "gaps": dict(message.program.gaps)}
    elif isinstance(message, Greeting):
        plain = {"greeting": vars(message)}
    elif isinstance(message, Birth):
        plain = {"birth": message.pid}
    elif isinstance(message, AlertMessage):
        plain = {"alerts": [event.to_plain() for event in message.events]}
    else:
        plain = {"trouble": message.message, "fatal": message.fatal}
    return json.dumps(plain, separators=(",", ":"), allow_nan=False).encode() + b"\n"


def decode(line: bytes) -> Birth | Greeting | AgentSample | AlertMessage | Trouble | None:
    """Return the message in a line; None if the line is not a message, for example truncated by a dying process."""
    import json

    from ..model.codec import from_plain
    from ..model.event import Event

    try:
        plain = json.loads(line)
        if "greeting" in plain:
            return Greeting(plain["greeting"]["uuids"], plain["greeting"]["certain"])
        if "birth" in plain:
            return Birth(int(plain["birth"]))
        if "alerts" in plain:
            return AlertMessage(Event.from_plain(event) for event in plain["alerts"])
        if "trouble" in plain:
            return Trouble(str(plain["trouble"]), bool(plain.get("fatal", True)))
        program, own = plain.get("program"), plain.get("own")
        return AgentSample(
            float(plain["at"]),
            from_plain(plain),
            None if program is None else _program(program),
            None if own is None else map(int, own),
            bool(plain.get("slow")),
        )
    except (ValueError, TypeError, KeyError, AttributeError, RecursionError, RecordingError):
        return None


def _program(plain: dict[str, object]) -> Process:
    from ..model.catalog import Process
    from ..model.metric import GAPS

    gaps = plain.pop("gaps", None)
    values = {key: value for key, value in plain.items() if isinstance(value, (int, float))}
    return Process(values, {k: v for k, v in gaps.items() if v in GAPS} if isinstance(gaps, dict) else {})
