"""gpulse's own metrics as fields: the key is the name, the unit follows from the catalog."""

from __future__ import annotations

from ...model.metric import Flag, Numbers, Words
from ...units import BYTES, BYTES_PER_SECOND, CELSIUS, JOULE, MEGAHERTZ, PERCENT, SECOND, WATT, Unit
from .field import MIB, Field
from .forms import mib, watts, yes

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from typing import Any

    from ...model.metric import Metric


def short(value: Any) -> str:
    """Write a number with two digits at most, and anything else as it is."""
    return f"{value:.2f}".rstrip("0").rstrip(".") if isinstance(value, float) else str(value)


def rate(value: float) -> str:
    """Write bytes a second as MiB a second."""
    return f"{value / MIB:.2f}"


def listed(values: Iterable[object]) -> str:
    """Write a list so that it stays one column."""
    return " ".join(map(short, values)) or "none"


_UNITS: dict[Unit, tuple[Callable[[Any], str], str]] = {
    BYTES: (mib, "MiB"),
    BYTES_PER_SECOND: (rate, "MiB/s"),
    WATT: (watts, "W"),
    JOULE: (short, "J"),
    CELSIUS: (short, "C"),
    MEGAHERTZ: (short, "MHz"),
    SECOND: (short, "s"),
    PERCENT: (short, "%"),
}


def field_of(metric: Metric, kind: type[Field] = Field) -> Field:
    """Return a metric of the catalog as a field, in the manner of nvidia-smi's own."""
    form, unit = _UNITS.get(metric.unit, (short, ""))
    if isinstance(metric, Flag):
        form = yes
    elif isinstance(metric, (Words, Numbers)):
        form = listed
    return kind(metric.key, metric.key, form, unit)
