"""Answers: what a reader of a history is given."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    import sqlite3
    from collections.abc import Mapping, Sequence
    from typing import Any

UNATTRIBUTED = "unattributed"  # the owner of energy that no process used
UNATTRIBUTED_PID = -1
TEXTS = ("user", "name", "command", "job", "container", "pod", "project", "job_name")


class HistorySeries:
    """One metric of one GPU, or of the host with uuid "": least, mean and most at each of `times`, NaN where there is none.

    `times` are seconds since 1970 at which each stretch begins, rising, not always evenly; `seconds` is how much time with
    values each holds, the weight of its mean. `gaps` are the stretches without records, by the recorder's own interval: the last
    moment before and the first one after each. Series of one call share `times` and `gaps`.
    """

    __slots__ = ("gaps", "key", "max", "mean", "min", "seconds", "times", "uuid")

    def __init__(
        self,
        uuid: str,
        key: str,
        times: list[float],
        seconds: list[float],
        values: tuple[list[float], list[float], list[float]],
        gaps: Sequence[tuple[float, float]] = (),
    ) -> None:
        self.uuid = uuid
        self.key = key
        self.gaps = gaps
        self.times = times
        self.seconds = seconds
        self.min, self.mean, self.max = values


class GpuIdentity:
    """What a GPU was known by: `facts` has all that does not change with time by catalog key, `parent` the UUID of an instance's GPU."""

    __slots__ = ("facts", "index", "memory_total", "name", "parent", "uuid")

    def __init__(self, uuid: str, facts: Mapping[str, Any]) -> None:
        self.uuid = uuid
        self.facts = {key: value for key, value in facts.items() if key != "parent"}
        self.parent: str = facts.get("parent", "")
        self.index: int | None = facts.get("index")
        self.name: str | None = facts.get("name")
        self.memory_total: float | None = facts.get("memory_total")


class Usage:
    """What somebody used. `gpu_hours` shares a GPU that several hold at once evenly, so all add up to the time GPUs were held.

    A MIG instance counts by its slices (a seventh of an H100 each); `instance_hours` count it whole, None without instances.
    `busy_hours` are those in which kernels ran, `memory_hours` GiB times hours, `memory_most` bytes of the largest process,
    `energy` joules; None where nothing is known. `owner` is None for processes that have no such owner, and UNATTRIBUTED for
    energy that no process used.
    """

    __slots__ = (
        "busy_hours", "energy", "gpu_hours", "instance_hours", "memory_hours", "memory_most", "owner", "processes",
    )  # fmt: skip

    def __init__(self, owner: str | None) -> None:
        self.owner = owner
        self.processes = 0
        self.gpu_hours = 0.0
        self.instance_hours: float | None = None
        self.busy_hours: float | None = None
        self.memory_hours: float | None = None
        self.memory_most: float | None = None
        self.energy: float | None = None

    def add(self, use: ProcessUse) -> None:
        """Add what a process used besides the time it held the GPU."""
        self.busy_hours = _sum(self.busy_hours, use.busy_seconds, 1 / 3600)
        self.memory_hours = _sum(self.memory_hours, use.memory_seconds, 1 / 3600 / 2**30)
        self.energy = _sum(self.energy, use.energy)
        if use.memory_most is not None:
            self.memory_most = max(self.memory_most or 0.0, use.memory_most)


class ProcessUse:
    """One process on one GPU, from `first` to `last` seen in the time asked for; `text` has what is known of TEXTS.

    `seconds` it was there, `held` its even share of them beside others, `memory_seconds` bytes times seconds, `energy` joules.
    """

    __slots__ = (
        "busy_seconds", "energy", "first", "held", "last", "memory_most", "memory_seconds", "pid", "seconds", "started", "text", "uuid",
    )  # fmt: skip

    def __init__(self, uuid: str, pid: int, started: float | None, text: dict[str, str]) -> None:
        self.uuid = uuid
        self.pid = pid
        self.started = started
        self.text = text
        self.first, self.last = float("inf"), float("-inf")
        self.seconds = self.held = 0.0
        self.memory_most: float | None = None
        self.memory_seconds: float | None = None
        self.busy_seconds: float | None = None
        self.energy: float | None = None

    def part(self, share: float) -> ProcessUse:
        """Return a part of it, as large as `share`."""
        found = ProcessUse(self.uuid, self.pid, self.started, self.text)
        for name in ("seconds", "held", "memory_seconds", "busy_seconds", "energy"):
            whole = getattr(self, name)
            setattr(found, name, None if whole is None else whole * share)
        found.first, found.last, found.memory_most = self.first, self.last, self.memory_most
        return found

    def add(self, more: ProcessUse) -> None:
        """Add another hour of the same process."""
        self.first, self.last = min(self.first, more.first), max(self.last, more.last)
        self.seconds += more.seconds
        self.held += more.held
        if more.memory_most is not None:
            self.memory_most = max(self.memory_most or 0.0, more.memory_most)
        self.memory_seconds = _sum(self.memory_seconds, more.memory_seconds)
        self.busy_seconds = _sum(self.busy_seconds, more.busy_seconds)
        self.energy = _sum(self.energy, more.energy)


def _sum(total: float | None, more: float | None, scale: float = 1.0) -> float | None:
    return total if more is None else (total or 0.0) + more * scale


def latest_facts(connection: sqlite3.Connection, end: float) -> list[tuple[int, str, dict[str, Any]]]:
    """Return number, UUID and facts of each GPU as last told before a moment, or first told when that was later."""
    import json

    facts: dict[int, tuple[int, str, dict[str, Any]]] = {}
    for gpu, uuid, since, text in connection.execute(
        "SELECT gpu, uuid, since, facts FROM fact JOIN gpu ON gpu.id = fact.gpu ORDER BY fact.id"
    ):
        if since < end or gpu not in facts:
            try:
                facts[gpu] = (gpu, uuid, dict(json.loads(text)))
            except (ValueError, TypeError):
                continue  # damaged, in a file without checksums
    return list(facts.values())


def labels_of(connection: sqlite3.Connection, end: float = float("inf")) -> dict[str, str]:
    """Return the number that people know each GPU by at a moment, by UUID."""
    found = latest_facts(connection, end)
    return {uuid: f"{facts['index']:.0f}" for _, uuid, facts in found if isinstance(facts.get("index"), (int, float))}
