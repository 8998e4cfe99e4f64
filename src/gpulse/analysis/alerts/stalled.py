"""The rule for stalls: a program that no longer uses its GPU but still holds its memory."""

from __future__ import annotations

from ...model.select import Wanted
from .rule import Finding, Lasting, duration

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

    from .holders import HolderTrack
    from .rule import RuleInput

_BUSY = 5.0  # percent of utilization from which a GPU counts as used


class Stalled(Lasting):
    """A GPU that was used for `used` seconds and has been at 0 % for `for`, while the same process holds its memory.

    CPU time of the program is no excuse: one that waits for data, for a lock or for another rank is stalled all the same.
    """

    name = "stalled"
    settings = {"used": (duration, 30.0), "for": (duration, 180.0), "clear_for": (duration, 5.0)}
    wanted = Wanted(
        gpu=("utilization", "sm_active"), process=("pid", "name", "user", "type", "memory_used", "running_time")
    )

    def __init__(self, given: dict[str, float] | None = None) -> None:
        super().__init__(given)
        self._used: dict[tuple[str, str], float] = {}  # seconds of use, by GPU and process
        self._last: float | None = None

    def findings(self, sample: RuleInput) -> Iterator[Finding]:
        seconds = 0.0 if self._last is None else sample.now - self._last
        self._last = sample.now
        for ended in sample.holders.ended:
            if self._used.pop((ended.uuid, ended.pid), None) is not None:
                event = ended.event(sample.snapshot.time, "process-end", value=ended.most)
                yield Finding(ended.uuid, None, what=ended.pid, over=True, event=event)
        for gpu in [*sample.gpus.values(), *(instance for _, instance in sample.instances.values())]:
            holders = [holder for holder in sample.holders.on(gpu) if holder.process.type != "G"]
            use = gpu.utilization if gpu.utilization is not None else gpu.sm_active
            if holders and use is not None:  # with several, the utilization is that of all of them
                yield self._finding(holders[0], use, seconds, sample.snapshot.time)

    def _finding(self, holder: HolderTrack, use: float, seconds: float, time: float) -> Finding:
        key = holder.uuid, holder.pid
        used = self._used[key] = self._used.get(key, 0.0) + (seconds if use >= _BUSY else 0.0)
        event = holder.event(time, "stalled", values={"idle": self.value("for")})
        return Finding(holder.uuid, use < 1 and used >= self.value("used"), use >= 1, event=event, what=holder.pid)
