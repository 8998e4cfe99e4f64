"""Throughput and costs as text: what a run processed per second, and what that cost in money, energy and CO2e."""

from __future__ import annotations

from .quantities import energy_text, rate_text
from .text import clean

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

    from ..analysis.cost import Cost
    from ..analysis.summary import Mfu, Summary

_SMALL = 0.1  # amounts below have three digits instead of two decimals


def cost_text(cost: Cost) -> str:
    """Return a cost on one line: cost 1.23 EUR (GPU time 1.20, energy 0.030), of that idle 0.40 · 12.3 g CO2e."""
    parts = []
    if cost.total is not None:
        both = cost.gpu_time is not None and cost.energy is not None
        split = f" (GPU time {money_text(cost.gpu_time)}, energy {money_text(cost.energy)})" if both else ""
        idle = "" if cost.idle is None else f", of that idle {money_text(cost.idle)}"
        parts.append(f"cost {money_text(cost.total, cost.currency)}{split}{idle}")
    if cost.carbon is not None:
        parts.append(carbon_text(cost.carbon))
    estimated = cost.estimated and (cost.energy is not None or cost.carbon is not None)
    return " · ".join(parts) + (" · energy estimated from power" if estimated and parts else "")


def money_text(amount: float | None, currency: str = "") -> str:
    """Return an amount: 1,234.50 EUR, 0.42, 0.0123; a dash if unknown."""
    if amount is None:
        return "–"
    number = f"{amount:,.2f}" if amount >= _SMALL or not amount else f"{amount:.3g}" if amount >= 1e-4 else "<0.0001"
    return f"{number} {clean(currency)}" if currency else number


def carbon_text(grams: float | None) -> str:
    """Return an amount of CO2e: 12.3 g CO2e, 4.56 kg CO2e; a dash if unknown."""
    if grams is None:
        return "–"
    return f"{grams / 1000:,.2f} kg CO2e" if grams >= 1000 else f"{grams:.3g} g CO2e"


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
