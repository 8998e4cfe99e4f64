"""Throughput in words: what a run processed per second, how much of the GPUs' peak that is, and what each item cost."""

from __future__ import annotations

from .cost import money_text
from .quantities import energy_text, rate_text

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

    from ..analysis.cost import Cost
    from ..analysis.mfu import Mfu
    from ..analysis.summary import Summary

_MANY = 1e5  # items from which the price of a million is told, since that of one has too many zeros
_PREFIXES = (("E", 1e18), ("P", 1e15), ("T", 1e12), ("G", 1e9), ("M", 1e6))


def flops_text(per_second: float) -> str:
    """Return a rate of floating-point operations: 412 TFLOP/s."""
    prefix, size = next(((name, size) for name, size in _PREFIXES if per_second >= size), ("", 1.0))
    return f"{rate_text(per_second / size)} {prefix}FLOP/s"


def mfu_text(mfu: Mfu) -> str:
    """Return a utilization with its rate: "MFU 41 % (406 TFLOP/s)", or the rate and why there is no utilization."""
    rate = "" if mfu.rate is None else flops_text(mfu.rate)
    if mfu.percent is None:
        return f"{rate}{', ' if rate else ''}no MFU: {mfu.reason}"
    return f"MFU {mfu.percent:.3g} % ({rate})"


def throughput_parts(summary: Summary) -> Iterator[str]:
    """Yield what a run processed per second, its model FLOPs utilization, and the energy of each item."""
    for name, rate, count in counted(summary):
        energy = summary.energy_per(count)
        each = "" if energy is None else f" ({energy_text(energy)} each)"
        yield f"{rate_text(rate)} {name}s/s{each}"
    if summary.mfu is not None:
        yield mfu_text(summary.mfu)


def counted(summary: Summary) -> Iterator[tuple[str, float, float]]:
    """Yield what the program counted beside steps: item or token, how many per second, and how many in all."""
    for name, rate, count in (
        ("item", summary.items_per_second, summary.items),
        ("token", summary.tokens_per_second, summary.tokens),
    ):
        if rate is not None:
            yield name, rate, count


def unit_costs(summary: Summary, cost: Cost) -> dict[str, str]:
    """Return what each item and each token cost, or a million of them where there were many, by name; empty without prices."""
    if cost.total is None:
        return {}
    found = {}
    for name, _, count in counted(summary):
        many = count >= _MANY
        amount = money_text(cost.total / count * (1e6 if many else 1.0), cost.currency)
        found[name] = f"{amount} per {f'million {name}s' if many else name}"
    return found
