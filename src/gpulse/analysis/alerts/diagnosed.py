"""The rule for verdicts: a GPU that something limits for long."""

from __future__ import annotations

from ...model.condition import of_verdict
from ...model.event import Event
from ..concerns import BAD
from ..diagnosis.live import LiveDiagnosis
from ..diagnosis.wanted import WANTED
from .rule import Finding, Lasting, duration

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from ...model.verdict import Verdict
    from .rule import RuleInput


class Diagnosed(Lasting):
    """A GPU or MIG instance whose verdict has been one that calls for a change for long. Judges the last minute every ten seconds."""

    name = "diagnosis"
    settings = {"for": (duration, 600.0), "clear_for": (duration, 120.0)}
    wanted = WANTED

    def __init__(self, given: Mapping[str, float] | None = None) -> None:
        super().__init__(given)
        self._live = LiveDiagnosis()

    def findings(self, sample: RuleInput) -> Iterator[Finding]:
        self._live.add(sample.snapshot)
        for uuid, _, _, _ in sample.all():
            verdict = self._live.verdict(uuid)
            if verdict is None:
                continue
            limited = None if verdict.key == "unknown" else self._calls_for_a_change(verdict)
            values: dict[str, float | str] = {"verdict": verdict.key, "confidence": verdict.confidence}
            event = Event(sample.snapshot.time, "verdict", (verdict.label,), uuids=(uuid,), values=values)
            yield Finding(uuid, limited, event=event)

    def _calls_for_a_change(self, verdict: Verdict) -> bool:
        """Tell whether a verdict is bad and not told by another rule."""
        condition = of_verdict(verdict.key)
        return condition is not None and condition.alert == self.name and condition.severity() in BAD
