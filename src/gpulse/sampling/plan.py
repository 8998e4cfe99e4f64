"""The plan: which keys to read, from what and how often, computed once from the wanted metrics."""

from __future__ import annotations

from ..model.catalog import GPU_METRICS, PROCESS_METRICS
from ..model.presets import COSTLY, EVIDENCE, TIMED_POWER, TRACES

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Collection, Mapping

    from ..model.metric import Metric
    from ..model.select import Wanted

ALLOCATION = ("job", "job_user")  # who was given a GPU, which the machine knows
HELD = ("held_for", "held_until")  # who has claimed or reserved a GPU, which the queue knows
# Values that the sampler derives, and the keys it needs for them.
_DERIVED = {
    "memory_percent": ("memory_used", "memory_total", "memory_reserved"),
    "memory_unattributed": ("memory_used", "memory_total"),
    **dict.fromkeys((*ALLOCATION, *HELD), ()),
}


class Plan:
    """Keys to read, by cost. `costly` are those of `fast` that may be read less often.

    `traced` are the keys to read of each trace, by its name, which have a pace of their own; other slow and static values are
    `lasting`: they stand until read again.

    `lists`: read the process list of each GPU; `describes`: read the details of processes from the host; `tells`: what is told
    of a process, None for all that the list has; `allocates`: ask the machine which batch job was given each GPU; `holds`: ask the queue
    who has claimed or reserved it.
    """

    def __init__(self, wanted: Wanted) -> None:
        self.asked = wanted.gpu.difference(HELD)  # a GPU that does not respond tells nothing about the queue
        self.derives = not wanted.gpu.isdisjoint(_DERIVED.keys() - {*ALLOCATION, *HELD})
        self.holds = not wanted.gpu.isdisjoint(HELD)
        self.allocates = not wanted.gpu.isdisjoint(ALLOCATION)
        needed = wanted.gpu.union(*(_DERIVED[key] for key in wanted.gpu & _DERIVED.keys())) - _DERIVED.keys()
        self.traced = {keys[0]: asked for keys in (TIMED_POWER, EVIDENCE) if (asked := needed.intersection(keys))}
        needed -= TRACES
        self.fast = _of_cost(needed, GPU_METRICS, "fast")
        self.costly = self.fast & COSTLY
        self.slow = _of_cost(needed, GPU_METRICS, "slow")
        self.static = _of_cost(needed, GPU_METRICS, "static")
        self.lasting = self.slow | self.static
        self.host = wanted.host
        self.serving = wanted.serving
        self.describes = wanted.process is not None
        self.lists = self.describes or wanted.serving or "memory_unattributed" in wanted.gpu
        self.process_slow = _of_cost(wanted.process or (), PROCESS_METRICS, "slow")
        self._process = wanted.process or frozenset()
        self.tells = None if wanted.process is None else wanted.process | {"pid"}

    def process(self, slow: bool) -> frozenset[str]:
        """Return the process keys due now."""
        return self._process if slow else self._process - self.process_slow


def _of_cost(keys: Collection[str], metrics: Mapping[str, Metric], cost: str) -> frozenset[str]:
    return frozenset(key for key in keys if metrics[key].cost == cost and metrics[key].kind != "identity")
