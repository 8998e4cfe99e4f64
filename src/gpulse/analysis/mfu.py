"""Model FLOPs utilization: the floating-point operations of a program's steps against the dense peak of its GPUs."""

from __future__ import annotations

from ..model.peaks import peak

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence


class Mfu:
    """`percent` of the dense peak, None with the `reason` where it cannot be told; `rate` in operations per second, None if unknown."""

    __slots__ = ("percent", "rate", "reason")

    def __init__(self, percent: float | None, rate: float | None = None, reason: str = "") -> None:
        self.percent = percent
        self.rate = rate
        self.reason = reason


def mfu(per_second: Mapping[str, float], models: Sequence[str], reason: str = "") -> Mfu:
    """Return the utilization of GPUs of these models; `per_second` are operations per second by data type, "" for an unknown one.

    Several types share the time: each needs its part at its own peak.
    """
    rate = sum(per_second.values())
    if not rate:
        return Mfu(None, None, reason or "no step was counted")
    if "" in per_second:
        return Mfu(None, rate, 'the data type is not known: pass dtype="bfloat16" or whichever your model computes in')
    if not models:
        return Mfu(None, rate, "the program used no GPU that was sampled")
    share = 0.0
    for dtype, flops in per_second.items():
        peaks = []
        for model in models:
            if (most := peak(model, dtype)) is None:
                return Mfu(None, rate, f"the dense {dtype} peak of {model} is not known")
            peaks.append(most)
        share += flops / sum(peaks)
    return Mfu(100.0 * share, rate)
