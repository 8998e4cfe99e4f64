"""The Jetson source: one GPU that shares the board's memory, read from the kernel."""

from __future__ import annotations

from ...errors import SourceUnavailable
from ...model.snapshot import Check
from ..base import Device, DeviceSample, Source
from ..files import read_int, read_text
from ..host import memory_info
from ..processes import LinuxMachine
from .board import (
    find_clock,
    find_fan,
    find_load,
    find_rails,
    find_zone,
    gpu_rail,
    is_board,
    slowdown_celsius,
    zone_celsius,
)

TYPE_CHECKING = False
if TYPE_CHECKING:
    from ...model.metric import Value
    from ..base import Key

_IDENTITY = frozenset({"index", "uuid", "name", "vendor", "serial", "driver_version"})
# Every GPU metric that this source can have; `gpulse metrics` and the drift test read it.
KEYS = _IDENTITY | {
    *(
        "utilization",
        "memory_used",
        "memory_total",
        "memory_free",
        "memory_unified",
        "temperature",
        "temperature_limit",
    ),
    *("power_draw", "fan_speed", "clock_sm", "clock_graphics", "clock_sm_max"),
}


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
