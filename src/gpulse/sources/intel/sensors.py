"""From the hwmon files of i915 and xe to metrics: one function per metric, sensors found by label."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from ..drm.hwmon import Sensors


def _celsius(sensors: Sensors, sensor: str, suffix: str = "_input") -> float | None:
    value = sensors.number(f"{sensor}{suffix}") if sensor else None
    return None if value is None else value / 1000


def _package(sensors: Sensors) -> str:
    """Return the sensor of the chip: by label on xe; i915 has one without a label."""
    return sensors.labelled("temp", "pkg") or (
        "temp1" if sensors.has("temp1_input") and not sensors.has("temp1_label") else ""
    )


def _memory_celsius(sensors: Sensors) -> float | None:
    if sensor := sensors.labelled("temp", "vram"):
        return _celsius(sensors, sensor)
    channels = [name for label, name in sensors.labels.get("temp", {}).items() if label.startswith("vram_ch_")]
    return max((value for name in channels if (value := _celsius(sensors, name)) is not None), default=None)


def _limit(sensors: Sensors) -> float | None:
    value = _celsius(sensors, _package(sensors), "_crit")
    return value if value and value > 0 else None


def _fan_rpm(sensors: Sensors) -> int | None:
    speeds = [speed for fan in sensors.numbered("fan") if (speed := sensors.number(f"{fan}_input")) is not None]
    return max(speeds, default=None)


def _fan_share(sensors: Sensors) -> float | None:
    shares = []
    for fan in sensors.numbered("fan"):
        speed, most = (
            sensors.number(f"{fan}_input"),
            sensors.number(f"{fan}_max") if sensors.has(f"{fan}_max") else None,
        )
        if speed is not None and most:
            shares.append(round(100.0 * speed / most, 1))
    return max(shares, default=None)


def _power_limit(sensors: Sensors) -> float | None:
    """Return the limit that holds for long; `crit` is a bound for microseconds and twice as high. 0 means that there is none."""
    first = sensors.labelled("power", "card") or "power1"
    second = sensors.labelled("power", "pkg") or "power2"
    for file in (f"{first}_max", f"{first}_cap", f"{second}_max", f"{second}_cap"):
        if sensors.has(file) and (microwatts := sensors.number(file)):
            return microwatts / 1e6
    return None


def _rated_limit(sensors: Sensors) -> float | None:
    microwatts = sensors.number("power1_rated_max") if sensors.has("power1_rated_max") else None
    return microwatts / 1e6 if microwatts else None


VITAL = ("temp1_input", "temp2_input", "energy1_input")
READERS: dict[str, Callable[[Sensors], float | None]] = {
    "temperature": lambda sensors: _celsius(sensors, _package(sensors)),
    "memory_temperature": _memory_celsius,
    "temperature_limit": _limit,
    "fan_rpm": _fan_rpm,
    "fan_speed": _fan_share,
    "power_limit": _power_limit,
    "power_default_limit": _rated_limit,
}
