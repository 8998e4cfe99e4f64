"""NVIDIA Jetson boards: one GPU that shares the board's memory: load, clocks, heat and power rails.

Read from kernel files whose paths differ between modules and JetPacks, because NVML reports little there or does not exist.
"""

from __future__ import annotations

import os

from .. import value
from ..errors import SourceUnavailable
from ..model.snapshot import Check
from .base import Device, DeviceSample, Source
from .files import names, read_bytes, read_int, read_text
from .host import memory_info
from .processes import LinuxMachine

TYPE_CHECKING = False
if TYPE_CHECKING:
    from ..model.metric import Value
    from .base import Key


_IDENTITY = frozenset({"index", "uuid", "name", "vendor", "serial", "driver_version"})
# Every GPU metric that this source can have; `gpulse metrics` and the drift test read it.
KEYS = _IDENTITY | {
    "utilization", "memory_used", "memory_total", "memory_free", "memory_unified", "temperature", "temperature_limit", "power_draw",
    "fan_speed", "clock_sm", "clock_graphics", "clock_sm_max",
}  # fmt: skip
LOADS = (
    "/sys/devices/platform/gpu.0/load",
    "/sys/devices/gpu.0/load",
    "/sys/devices/platform/bus@0/17000000.gpu/load",
    "/sys/devices/platform/17000000.gpu/load",
)
_CHIPS = ("gm20b", "gp10b", "gv11b", "ga10b", "gb10b")
_OTHER_DOMAINS = ("nvd", "sys")  # of Thor's GPU: video and system; what computes is gpc
_OFF = -256  # °C, and in thousandths on other kernels: the sensor's rail is off


class JetsonDevice(Device):
    """The GPU of a Jetson. It has no list of processes that a user may read."""

    def __init__(self, root: str = "") -> None:
        self._root = root
        self._load = find_load(root)
        self._clock = find_clock(root)
        self._zone = find_zone(root)
        self._rail = gpu_rail(find_rails(root))
        self._fan = find_fan(root)
        model = read_text(f"{root}/proc/device-tree/model", 256) or "NVIDIA Jetson"
        serial = read_text(f"{root}/proc/device-tree/serial-number", 64) or ""
        identity: dict[str, Value] = {"index": 0, "vendor": "nvidia", "name": model, "uuid": f"TEGRA-{serial or '0'}"}
        if serial:
            identity["serial"] = serial
        if version := driver_version(root):
            identity["driver_version"] = version
        self.identity = identity

    @property
    def found(self) -> bool:
        """Whether the kernel reports a GPU."""
        return bool(self._load or self._clock)

    def read(self, keys: Key, process_keys: Key | None) -> DeviceSample:
        sample = DeviceSample()
        values = self._values(keys)
        sample.values.update({key: value for key, value in values.items() if key in keys and value is not None})
        sample.gaps.update(dict.fromkeys(keys - sample.values.keys() - self.identity.keys(), "unsupported"))
        if "temperature" in sample.gaps and self._zone:
            sample.gaps["temperature"] = "asleep"  # the sensor is off together with the GPU's rail
        if process_keys is not None:
            sample.gaps["processes"] = "unsupported"
        return sample

    def _values(self, keys: Key) -> dict[str, Value | None]:
        values: dict[str, Value | None] = {"memory_unified": True}
        if "utilization" in keys:
            values["utilization"] = self._busy()
        if keys & {"clock_sm", "clock_graphics"}:
            values["clock_sm"] = values["clock_graphics"] = _megahertz(f"{self._clock}/cur_freq")
        if "clock_sm_max" in keys:
            values["clock_sm_max"] = _megahertz(f"{self._clock}/max_freq")
        if "temperature" in keys and self._zone:
            values["temperature"] = zone_celsius(self._zone)
        if "temperature_limit" in keys and self._zone:
            values["temperature_limit"] = slowdown_celsius(self._zone)
        if "power_draw" in keys and self._rail is not None:
            values["power_draw"] = self._rail.watts()
        if "fan_speed" in keys and self._fan:
            duty = read_int(f"{self._fan}/pwm1")
            values["fan_speed"] = None if duty is None else round(duty / 2.55, 1)
        if keys & {"memory_used", "memory_total", "memory_free"}:
            values.update(self._memory())
        return values

    def _busy(self) -> float | None:
        """Return the load; older kernels flicker to 0 on single reads, so 0 is read twice."""
        load = read_int(self._load) or read_int(self._load) if self._load else None
        return None if load is None else load / 10

    def _memory(self) -> dict[str, Value | None]:
        info = memory_info(self._root)
        total, free = info.get("MemTotal"), info.get("MemAvailable")
        used = None if total is None or free is None else max(0, total - free)
        return {"memory_total": total, "memory_free": free, "memory_used": used}


class JetsonSource(Source):
    """The GPU of a Jetson; `root` is prefixed to /proc and /sys: the folder of a recorded board, or empty."""

    name = "jetson"

    def __init__(self, root: str = "") -> None:
        self._root = root
        self.machine = LinuxMachine(root)
        self.machine.real = not root

    def open(self) -> None:
        device = JetsonDevice(self._root)
        if not device.found:
            raise SourceUnavailable(
                "Jetson: the kernel shows no GPU of a Tegra chip.",
                'This source is for Jetson boards; elsewhere use source="nvidia" or "auto".',
                option="This source is for Jetson boards; elsewhere use --source nvidia or auto.",
            )
        self.devices = [device]
        version = driver_version(self._root)
        self.driver = {"l4t": version} if version else {}

    def close(self) -> None:
        self.devices = ()

    def examine(self) -> list[Check]:
        if is_board(self._root):
            return [Check("ok", "board", f"{read_text(f'{self._root}/proc/device-tree/model', 256) or 'a Jetson'}.")]
        return [Check("note", "board", "this is no Jetson.")]


def driver_version(root: str) -> str:
    """Return the version of L4T: `# R35 (release), REVISION: 4.1, …` is 35.4.1; nothing where it does not say."""
    words = (read_text(f"{root}/etc/nv_tegra_release", 512) or "").replace(",", " ").split()
    major = next((word[1:] for word in words if word.startswith("R") and word[1:].isdecimal()), "")
    minor = words[words.index("REVISION:") + 1] if "REVISION:" in words[:-1] else ""
    return f"{major}.{minor}" if major and minor else major


def _megahertz(path: str) -> float | None:
    hertz = read_int(path)
    return None if hertz is None else hertz / 1e6


class Rail(value.Value):
    """One power rail: two files whose product is its power, or one that has it in mW."""

    label: str
    voltage: str = ""
    current: str = ""
    power: str = ""

    def watts(self) -> float | None:
        """Return the power now."""
        parts = [read_int(self.power)] if self.power else [read_int(self.voltage), read_int(self.current)]
        if any(part is None or part < 0 for part in parts):
            return None
        return (parts[0] or 0) / 1000 if self.power else round((parts[0] or 0) * (parts[1] or 0) / 1e6, 3)


def is_board(root: str = "") -> bool:
    """Return whether this machine is a Jetson, by its device tree; one read, so that every start can afford it."""
    return b"nvidia,tegra" in (read_bytes(f"{root}/proc/device-tree/compatible", 4096) or b"")


def find_load(root: str) -> str:
    """Return the file of the GPU's load in thousandths, or an empty string."""
    known = [f"{root}{path}" for path in LOADS]
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
        for chip in names(folder := f"{root}/sys/bus/i2c/drivers/{driver}"):
            place = f"{folder}/{chip}"
            rails += [rail for name in names(f"{place}/hwmon") for rail in _hwmon(f"{place}/hwmon/{name}")]
            rails += [rail for name in names(place) if name.startswith("iio:") for rail in _iio(f"{place}/{name}")]
    return rails or [rail for place in _hwmons(root, "ina3221") for rail in _hwmon(place)]


def gpu_rail(rails: list[Rail]) -> Rail | None:
    """Return the rail of the GPU: its own, else one it shares, else the input of the whole module."""
    own = [rail for rail in rails if "GPU" in rail.label and "CPU" not in rail.label]
    shared = [rail for rail in rails if "GPU" in rail.label]
    whole = [rail for rail in rails if rail.label in ("VDD_IN", "POM_5V_IN", "VIN")]
    return next(iter([*own, *shared, *whole]), None)


def find_fan(root: str) -> str:
    """Return the hwmon folder of the fan, or an empty string."""
    return next(iter(_hwmons(root, "pwmfan")), "")


def _hwmons(root: str, kind: str) -> list[str]:
    folder = f"{root}/sys/class/hwmon"
    return [f"{folder}/{name}" for name in names(folder) if read_text(f"{folder}/{name}/name", 64) == kind]


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
