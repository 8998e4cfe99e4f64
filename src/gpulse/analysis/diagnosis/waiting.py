"""What the program itself knows: the time it waited for data, which from outside can only be inferred."""

from __future__ import annotations

from ...model.verdict import Diagnosis, Evidence

TYPE_CHECKING = False
if TYPE_CHECKING:
    from ...model.verdict import Verdict

TOLD = 10.0  # percent of the time from which waiting is worth telling
MUCH = 20.0  # percent from which it is the cause where nothing else is; TensorFlow's profiler calls that high
_INPUT = ("input_bound_cpu", "host_bound", "input_bound_io")
_OPEN = ("unknown", "waiting", "underused", "idle_allocation")


def with_wait(diagnosis: Diagnosis, share: float) -> Diagnosis:
    """Return a diagnosis that knows for how many percent of the time the program waited for data."""
    if share < TOLD:
        return diagnosis
    verdicts = [_with_wait(verdict, share) for verdict in diagnosis]
    return Diagnosis(verdicts, diagnosis.start, diagnosis.end, diagnosis.samples)


def _with_wait(verdict: Verdict, share: float) -> Verdict:
    told = Evidence("data_wait", round(share, 1), TOLD if share < MUCH else MUCH, "above")
    if verdict.key in _INPUT:
        return verdict.replace(confidence="high", evidence=(told, *verdict.evidence))
    if verdict.key in _OPEN and share >= MUCH:
        from .rules import BY_KEY

        # that it waited for data is certain; storage would need evidence of its own
        return verdict.replace(
            key="input_bound_io",
            confidence="medium",
            evidence=(told, *verdict.evidence),
            advice=(*BY_KEY["host_bound"].advice[:1], *BY_KEY["input_bound_io"].advice),
            values={"kind": "data"},
        )
    return verdict
