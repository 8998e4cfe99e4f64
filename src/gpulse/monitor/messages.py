"""What a monitor asks of its agent, and what the agent answers.

In a separate process the messages are lines of JSON, with snapshots as in recordings.
"""

from __future__ import annotations

import os
import time

from ..errors import RecordingError
from ..model.catalog import COSTLY, EVIDENCE, HOST_CURVES, PROCESS_EVIDENCE, TIMED_POWER, TRAINING
from ..value import Value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import TextIO, TypeAlias

    from ..model.catalog import Process
    from ..model.event import Event
    from ..model.snapshot import Snapshot

    Message: TypeAlias = "Birth | Greeting | AgentSample | AlertMessage | Trouble"

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


class Request(Value):
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

    pid: int
    run: str = ""
    root: int | None = None
    interval: float = 1.0
    metrics: Sequence[str] | None = None
    gpus: str | list[str] = "visible"
    uuids: list[str] | None = None
    source: str = "auto"
    processes: Sequence[str] = ()
    path: Sequence[str] = ()
    alerts: bool = False
    without_gpus: bool = False
    started: float = 0.0
    report: bool = False
    files: Sequence[str] = ()
    stderr: int = -1
    shared: str | None = None
    stacks: bool = False
    serving: bool = False

    @property
    def asked(self) -> frozenset[str]:
        """The GPU metrics to read: those to log, and those that verdicts need, so that these do not depend on what is logged."""
        from ..analysis.diagnosis.window import WANTED

        traced = TIMED_POWER if self.stacks else ()
        return WANTED.gpu.union(EVIDENCE, traced, TRAINING if self.metrics is None else self.metrics)

    @property
    def asked_of_processes(self) -> frozenset[str]:
        """The metrics to read for each process on a GPU."""
        return frozenset((*PROCESSES, *self.processes))

    @property
    def costly_every(self) -> float:
        """Seconds between two reads of what costs the GPU most, if samples come more often: 0 if the user asked for exactly that."""
        return SELDOM if COSTLY.isdisjoint(self.metrics or ()) else 0.0


class Birth(Value):
    """The agent's first message: its PID, which differs from that of the process that was started for it."""

    pid: int


class Greeting(Value):
    """The agent is ready: its GPUs by ordinal (None: all, by the driver's index), and whether that order is certain."""

    uuids: list[str] | None
    certain: bool = True


class AgentSample(Value):
    """One sample: `at` is the monotonic clock, shared by all processes of a machine; `program` is None if it could not be read.

    `own` are the PIDs on the GPUs that belong to the program; None if processes cannot be told apart. `slow`: what is read
    every few seconds was read for this sample.
    """

    at: float
    snapshot: Snapshot
    program: Process | None
    own: frozenset[int] | None = None
    slow: bool = False


class AlertMessage(Value):
    """Alerts that fired or cleared; the sample they were found in follows."""

    events: Sequence[Event]


class Trouble(Value):
    """What is wrong, in one sentence; `fatal` if the agent cannot continue."""

    message: str
    fatal: bool = True


_PLAIN = {"birth": Birth, "greeting": Greeting, "trouble": Trouble}  # messages that are written as their fields


def encode(message: Message) -> bytes:
    """Return a message as a line."""
    import json

    from ..model.codec import to_plain

    if isinstance(message, AgentSample):
        plain = to_plain(message.snapshot)
        plain["at"], plain["slow"] = message.at, message.slow
        plain["own"] = None if message.own is None else [*message.own]
        if message.program is not None:
            plain["program"] = {**dict(message.program.items()), "gaps": dict(message.program.gaps)}
    elif isinstance(message, AlertMessage):
        plain = {"alerts": [event.to_plain() for event in message.events]}
    else:
        plain = {type(message).__name__.lower(): message.to_plain()}
    return json.dumps(plain, separators=(",", ":"), allow_nan=False).encode() + b"\n"


def decode(line: bytes) -> Message | None:
    """Return the message in a line; None if the line is not a message, for example truncated by a dying process."""
    import json

    from ..model.codec import from_plain
    from ..model.event import Event

    try:
        plain = json.loads(line)
        for name, kind in _PLAIN.items():
            if name in plain:
                return kind(**plain[name])  # type: ignore[no-any-return]
        if "alerts" in plain:
            return AlertMessage([Event.from_plain(event) for event in plain["alerts"]])
        program, own = plain.get("program"), plain.get("own")
        return AgentSample(
            float(plain["at"]),
            from_plain(plain),
            None if program is None else _program(program),
            None if own is None else frozenset(map(int, own)),
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
