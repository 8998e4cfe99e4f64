"""Paths of a Jetson's GPU files, which differ between modules and between versions of JetPack."""

from __future__ import annotations

import os

from ..files import names, read_bytes, read_int, read_text

_LOADS = (
    "/sys/devices/platform/gpu.0/load",
    "/sys/devices/gpu.0/load",
    "/sys/devices/platform/bus@0/17000000.gpu/load",
    "/sys/devices/platform/17000000.gpu/load",
)
_CHIPS = ("gm20b", "gp10b", "gv11b", "ga10b", "gb10b")
_OTHER_DOMAINS = ("nvd", "sys")  # of Thor's GPU: video and system; what computes is gpc
_OFF = -256  # °C, and in thousandths on other kernels: the sensor's rail is off


class Rail:
    """One power rail: two files whose product is its power, or one that has it in mW."""

    __slots__ = ("_current", "_power", "_voltage", "label")

    def __init__(self, label: str, voltage: str = "", current: str = "", power: str = "") -> None:
        self.label = label
        self._voltage = voltage
        self._current = current
        self._power = power

    def watts(self) -> float | None:
        """Return the power now."""
        if self._power:
            milliwatts = read_int(self._power)
            return None if milliwatts is None or milliwatts < 0 else milliwatts / 1000
        volts, amperes = read_int(self._voltage), read_int(self._current)
        return None if volts is None or amperes is None or volts < 0 or amperes < 0 else round(volts * amperes / 1e6, 3)


def is_board(root: str = "") -> bool:
    """Return whether this machine is a Jetson, by its device tree; one read, so that every start can afford it."""
    return b"nvidia,tegra" in (read_bytes(f"{root}/proc/device-tree/compatible", 4096) or b"")


def find_load(root: str) -> str:
    """Return the file of the GPU's load in thousandths, or an empty string."""
    known = [f"{root}{path}" for path in _LOADS]
    devfreq = find_clock(root)
    return next((path for path in [*known, f"{devfreq}/device/load"] if os.path.exists(path)), "")


def find_clock(root: str) -> str:
    """Return the devfreq folder of the GPU, or an empty string."""
    folder = f"{root}/sys/class/devfreq"
    found = [
        name for name in names(folder) if _is_gpu(name, read_text(f"{folder}/{name}/device/of_node/name", 256) or "")
    ]
    computing = [name for name in found if not any(word in name for word in _OTHER_DOMAINS)]
    return f"{folder}/{(computing or found)[0]}" if found else ""


def find_zone(root: str) -> str:
    """Return the thermal zone of the GPU, else that of the junction; nothing where there is neither."""
    folder = f"{root}/sys/class/thermal"
    zones = {
        (read_text(f"{folder}/{name}/type", 64) or "").lower(): name
        for name in names(folder)
        if name.startswith("thermal_zone")
    }
    gpu = [zones[kind] for kind in sorted(zones) if kind.startswith("gpu")]
    return f"{folder}/{gpu[0]}" if gpu else f"{folder}/{zones['tj-thermal']}" if "tj-thermal" in zones else ""


def zone_celsius(zone: str) -> float | None:
    """Return the temperature of a zone; None while its sensor is off."""
    value = read_int(f"{zone}/temp")
    return None if value is None or value in (_OFF, _OFF * 1000) else value / 1000


def slowdown_celsius(zone: str) -> float | None:
    """Return the lowest temperature at which the kernel slows the chip down."""
    trips = [
        name.removesuffix("_type") for name in names(zone) if name.startswith("trip_point_") and name.endswith("_type")
    ]
    passive = [trip for trip in trips if read_text(f"{zone}/{trip}_type", 64) == "passive"]
    limits = [value for trip in passive if (value := read_int(f"{zone}/{trip}_temp")) is not None and value > 0]
    return min(limits) / 1000 if limits else None


def find_rails(root: str) -> list[Rail]:
    """Return the rails of the board's INA3221 monitors, in hwmon since JetPack 5 and in iio before."""
    rails = []
    for driver in ("ina3221", "ina3221x"):
        folder = f"{root}/sys/bus/i2c/drivers/{driver}"
        for chip in names(folder):
            rails += [
                rail for name in names(f"{folder}/{chip}/hwmon") for rail in _hwmon(f"{folder}/{chip}/hwmon/{name}")
            ]
            rails += [
                rail
                for name in names(f"{folder}/{chip}")
                if name.startswith("iio:")
                for rail in _iio(f"{folder}/{chip}/{name}")
            ]
    if not rails:
        folder = f"{root}/sys/class/hwmon"
        monitors = [name for name in names(folder) if read_text(f"{folder}/{name}/name", 64) == "ina3221"]
        rails = [rail for name in monitors for rail in _hwmon(f"{folder}/{name}")]
    return rails


def gpu_rail(rails: list[Rail]) -> Rail | None:
    """Return the rail of the GPU: its own, else one it shares, else the input of the whole module."""
    own = [rail for rail in rails if "GPU" in rail.label and "CPU" not in rail.label]
    shared = [rail for rail in rails if "GPU" in rail.label]
    whole = [rail for rail in rails if rail.label in ("VDD_IN", "POM_5V_IN", "VIN")]
    return next(iter([*own, *shared, *whole]), None)


def find_fan(root: str) -> str:
    """Return the hwmon folder of the fan, or an empty string."""
    folder = f"{root}/sys/class/hwmon"
    return next(
        (f"{folder}/{name}" for name in names(folder) if read_text(f"{folder}/{name}/name", 64) == "pwmfan"), ""
    )


def _is_gpu(name: str, node: str) -> bool:
    return any(chip in word for word in (name, node) for chip in (*_CHIPS, "gpu"))


def _hwmon(folder: str) -> list[Rail]:
    rails = []
    for name in names(folder):
        number = name.removeprefix("in").removesuffix("_label")
        if name == f"in{number}_label" and number.isdecimal():
            label = (read_text(f"{folder}/{name}", 64) or "").upper()
            if os.path.exists(f"{folder}/curr{number}_input"):
                rails.append(Rail(label, f"{folder}/in{number}_input", f"{folder}/curr{number}_input"))
    return rails


def _iio(folder: str) -> list[Rail]:
    rails = []
    for name in names(folder):
        number = name.removeprefix("rail_name_")
        if name != number and number.isdecimal():
            label = (read_text(f"{folder}/{name}", 64) or "").upper()
            rails.append(Rail(label, power=f"{folder}/in_power{number}_input"))
    return rails
