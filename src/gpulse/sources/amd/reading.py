"""One sample of one AMD GPU while it is being read."""

from __future__ import annotations

from ..once import once
from .metrics import parse_table

TYPE_CHECKING = False
if TYPE_CHECKING:
    from ...model.metric import Gap, Value
    from ..base import Counter, DeviceSample, Key
    from ..drm.hwmon import Sensors
    from ..drm.kernel import Folder
    from .metrics import MetricsTable


class AmdReading:
    """The keys that are wanted, and where they come from: `files` of the device, `sensors`, and the firmware's `table`."""

    def __init__(self, sample: DeviceSample, keys: Key, files: Folder, sensors: Sensors, apu: bool) -> None:
        self.sample = sample
        self.keys = keys
        self.files = files
        self.sensors = sensors
        self.apu = apu

    @once
    def table(self) -> MetricsTable | None:
        """The firmware's table, read once per sample: what is taken from it belongs together."""
        return parse_table(self.files.content("gpu_metrics"))

    def put(self, key: str, value: Value | None, gap: Gap = "unsupported") -> None:
        """Store a value, or the reason why there is none."""
        if key not in self.keys:
            return
        if value is None:
            self.sample.gaps[key] = gap
        else:
            self.sample.values[key] = value

    def count(self, key: str, counter: Counter | None, gap: Gap = "unsupported") -> None:
        """Store a counter, or the reason why there is none."""
        if key not in self.keys:
            return
        if counter is None:
            self.sample.gaps[key] = gap
        else:
            self.sample.counters[key] = counter

    def field(self, *names: str, formats: tuple[int, ...] = (1, 2, 3)) -> int | None:
        """Return a field of the table if its format is one of these: units differ between formats."""
        if self.table is None or self.table.version[0] not in formats:
            return None
        return self.table.number(*names)
