"""A fleet: the newest sample of each machine, with its age and state."""

from __future__ import annotations

from types import MappingProxyType

from ..value import Value
from .codec import SCHEMA, time_text, to_plain

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from typing import Any, Literal, TypeAlias

    from .catalog import Gpu
    from .snapshot import Snapshot

    HostState: TypeAlias = Literal["ok", "connecting", "stale", "unreachable", "denied", "no_gpu", "failed"]

HOST_STATES: dict[HostState, str] = {
    "ok": "a sample is there and recent",
    "connecting": "no answer yet",
    "stale": "the newest sample is too old",
    "unreachable": "the machine cannot be reached",
    "denied": "the machine refuses access",
    "no_gpu": "the machine answers, but no GPU was found there",
    "failed": "the machine answers with something else than samples",
}


class HostReport(Value):
    """One machine: `source` is how it is read (ssh, url or prometheus), `age` the seconds since its newest sample.

    Without a recent sample, `snapshot` is None and `reason` says why, which may come from that machine.
    `link` is the address of its own page, empty if it has none. `began` is when its problems began and how many seconds of GPU time they
    have cost, as the machine itself says, by condition and UUID; empty if it does not.
    """

    name: str
    source: str
    state: HostState
    snapshot: Snapshot | None = None
    age: float | None = None
    reason: str = ""
    link: str = ""
    began: Mapping[tuple[str, str], tuple[float, float]] = MappingProxyType({})

    @property
    def gpus(self) -> tuple[Gpu, ...]:
        """Its GPUs; none while it has no recent sample."""
        return () if self.snapshot is None else self.snapshot.gpus

    def to_plain(self) -> dict[str, Any]:
        """Return the report as plain data; a machine without a recent sample has no GPUs."""
        plain: dict[str, Any] = {"name": self.name, "source": self.source, "state": self.state, "age": None}
        if self.age is not None:
            plain["age"] = round(self.age, 3)
        if self.reason:
            plain["reason"] = self.reason
        if self.link:
            plain["link"] = self.link
        sample = {} if self.snapshot is None else to_plain(self.snapshot)
        plain.update({key: sample[key] for key in ("time", "host", "driver", "errors") if key in sample})
        return {**plain, "gpus": sample.get("gpus", [])}

    def __repr__(self) -> str:
        return f"<HostReport {self.name!r} {self.state}, {len(self.gpus)} GPUs>"


class FleetSnapshot(Value):
    """All machines at one point in time; `time` is in seconds since 1970.

    `grants` are what schedulers have given to whom: user, job or pod, by machine and number of the GPU; one mapping per scheduler.
    """

    time: float
    hosts: tuple[HostReport, ...]
    grants: tuple[Mapping[str, Mapping[int, Mapping[str, str]]], ...] = ()

    def gpus(self) -> Iterator[tuple[HostReport, Gpu]]:
        """Yield every GPU with its machine."""
        return ((host, gpu) for host in self.hosts for gpu in host.gpus)

    def to_plain(self) -> dict[str, Any]:
        """Return the fleet as plain data, the JSON of `gpulse fleet --json`."""
        return {"schema": SCHEMA, "time": time_text(self.time), "hosts": [host.to_plain() for host in self.hosts]}

    def __repr__(self) -> str:
        ok = sum(host.state == "ok" for host in self.hosts)
        return f"<FleetSnapshot {ok} of {len(self.hosts)} hosts, {sum(1 for _ in self.gpus())} GPUs>"
