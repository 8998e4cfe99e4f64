"""The rule for verdicts: a GPU that something limits for long."""

from __future__ import annotations

from ..diagnosis.live import LiveDiagnosis
from ..diagnosis.wanted import WANTED
from .rule import Finding, Lasting, duration

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from .rule import RuleInput

# Nothing to act on, or told by a rule of its own.
_FINE = frozenset((
    "healthy", "idle", "unknown", "underused", "idle_allocation", "fault", "driver_unresponsive", "out_of_memory", "memory_leak",
    "memory_pressure", "thermal_throttled", "hw_slowdown",
))  # fmt: skip


class Diagnosed(Lasting):
    """A GPU whose verdict has been one that calls for a change for long. Judges the last minute every ten seconds."""

    name = "diagnosis"
    settings = {"for": (duration, 600.0), "clear_for": (duration, 120.0)}
    wanted = WANTED

    def __init__(self, given: Mapping[str, float] | None = None) -> None:
        super().__init__(given)
        self._live = LiveDiagnosis()

    def findings(self, sample: RuleInput) -> Iterator[Finding]:
        self._live.add(sample.snapshot)
        for uuid, gpu in sample.gpus.items():
            verdict = self._live.verdict(uuid)
            if verdict is None:
                continue
            limited = None if verdict.key == "unknown" else verdict.key not in _FINE
            values: dict[str, float | str] = {"verdict": verdict.key, "confidence": verdict.confidence}
            yield Finding(uuid, limited, event=sample.event("verdict", uuid, gpu, values=values))
