"""The options for prices, and the prices in force: an option, else the environment, else [cost] of the settings file."""

from __future__ import annotations

import os

from ..errors import UsageError
from .options import Option

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from ..model.tariff import Tariff
    from .options import Arguments

_MOST = 1e12


def _amount(option: str) -> Callable[[str], float]:
    def parse(text: str) -> float:
        try:
            amount = float(text)
        except ValueError:
            amount = -1.0
        if not 0 <= amount <= _MOST:
            raise UsageError(f"{option}: {text!r} is not a price;", f"write it as {option} 0.30.")
        return amount

    return parse


COST = (
    Option("--price", value="PRICE", parse=_amount("--price"),
           help="Price of one kWh, to show the cost of energy (default: cost.price of the settings)"),
    Option("--gpu-price", value="PRICE", parse=_amount("--gpu-price"),
           help="Price of one GPU hour, to show the cost of GPU time (default: cost.gpu_price of the settings)"),
    Option("--carbon", value="GRAMS", parse=_amount("--carbon"),
           help="Grams of CO2e per kWh, to show emissions (default: cost.carbon of the settings)"),
)  # fmt: skip


def tariff_of(arguments: Arguments) -> Tariff:
    """Return the prices in force; raise ConfigError if the settings are wrong."""
    from ..settings.effective import tariff_in_force

    options = ((key, getattr(arguments, key)) for key in ("price", "gpu_price", "carbon"))
    return tariff_in_force(os.environ, {key: value for key, value in options if value is not None})
