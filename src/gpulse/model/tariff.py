"""The user's own prices, and what GPU time and energy cost by them."""

from __future__ import annotations

_HOUR, _KWH = 3600.0, 3.6e6  # in seconds and joules


class Tariff:
    """Prices: `price` per kWh, `gpu_price` per GPU hour, `carbon` in grams of CO2e per kWh; None if not given."""

    __slots__ = ("carbon", "currency", "gpu_price", "price")

    def __init__(
        self,
        price: float | None = None,
        gpu_price: float | None = None,
        carbon: float | None = None,
        currency: str = "",
    ) -> None:
        self.price = price
        self.gpu_price = gpu_price
        self.carbon = carbon
        self.currency = currency

    def __bool__(self) -> bool:
        return any(value is not None for value in (self.price, self.gpu_price, self.carbon))

    def per_million(self, tokens: float | None, gpu_seconds: float, joules: float | None) -> float | None:
        """Return what a million tokens cost if some took this much; None without tokens or prices, or with one for an unknown amount."""
        if not tokens or (self.price is None and self.gpu_price is None) or (self.price is not None and joules is None):
            return None
        return (
            ((self.gpu_price or 0.0) * gpu_seconds / _HOUR + (self.price or 0.0) * (joules or 0.0) / _KWH)
            / tokens
            * 1e6
        )
