"""Costs in words."""

from __future__ import annotations

from .text import clean

TYPE_CHECKING = False
if TYPE_CHECKING:
    from ..analysis.cost import Cost

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
