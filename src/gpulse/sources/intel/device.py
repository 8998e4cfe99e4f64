"""One Intel GPU: clocks, idle time and energy from its files, who uses it from /proc; never read while it sleeps."""

from __future__ import annotations

import time

from ..base import Device, DeviceSample
from ..drm.clients import busiest
from ..drm.hwmon import Sensors
from ..drm.kernel import Folder
from ..drm.pace import Pace
from ..drm.pcie import read_link, slot_link
from ..host import memory_info
from ..once import once
from .identity import IDENTITY_KEYS, identify, is_integrated
from .processes import read_processes
from .regions import may_see_usage, query_memory
from .sensors import READERS, VITAL
from .throttle import throttle_words
from .tiles import find_gts

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from ...model.metric import Gap, Value
    from ..base import Key
    from ..drm.cards import Card
    from ..drm.clients import Clients, ClientUse
    from .regions import Memory
    from .tiles import Gt

DRIVERS = ("i915", "xe")
_MEMORY = frozenset({"memory_used", "memory_total", "memory_free"})
_LINK = frozenset({"pcie_gen", "pcie_width", "pcie_gen_max", "pcie_width_max"})
_RATES = frozenset({"utilization", "power_draw"})
# Every GPU metric that this source can have; `gpulse metrics` and the drift test read it.
KEYS = (
    IDENTITY_KEYS
    | _MEMORY
    | _LINK
    | _RATES
    | {
        "memory_unified",
        "temperature",
        "memory_temperature",
        "temperature_limit",
        "fan_speed",
        "fan_rpm",
        "power_limit",
    }
    | {"power_default_limit", "energy", "clock_sm", "clock_graphics", "clock_sm_max", "clock_video", "throttle_reasons"}
)
_APART = 0.1  # seconds: idle time is counted in milliseconds, so a shorter interval gives no percents
_ASLEEP = ("suspended", "suspending")


class IntelDevice(Device):
    """One card of i915 or xe."""

    def __init__(
        self, card: Card, index: int, clients: Clients, root: str = "", clock: Callable[[], float] = time.monotonic
    ) -> None:
        self.card = card
        self._clients = clients
        self._root = root
        self._clock = clock
        self._files = Folder(card.path)
        self._energy_pace = Pace(_APART)
        self._idle_paces: dict[str, Pace] = {}
        self.identity: Mapping[str, Value] = identify(card, index, root)

    def prime(self, keys: Key) -> None:
        if keys & _RATES and not self._energy_pace.begun and not self._idle_paces and not self._sleeps():
            self._read_power()
            self._read_awake()

    def settled(self) -> bool:
        now = self._clock()
        return self._energy_pace.settled(now) and all(pace.settled(now) for pace in self._idle_paces.values())

    def read(self, keys: Key, process_keys: Key | None) -> DeviceSample:
        sample = DeviceSample()
        if self._sleeps():
            self._energy_pace.forget()
            self._idle_paces.clear()
            sample.state = "asleep"
            sample.gaps.update(dict.fromkeys(keys - self.identity.keys(), "asleep"))
            return sample
        uses = self._uses(keys, process_keys)
        self._read_gts(sample, keys, uses)
        self._read_sensors(sample, keys)
        if keys & _MEMORY:
            self._read_memory(sample, keys, uses)
        if keys & _LINK:
            self._read_link(sample, keys)
        _put(sample, keys, "memory_unified", self._integrated)
        if process_keys is not None:
            sample.processes = read_processes(uses, self._integrated, process_keys)
            if not self._clients.readable:
                sample.gaps["processes"] = "unsupported"
        for key in keys:
            if key not in sample.values and key not in sample.gaps:
                sample.gaps[key] = "unsupported"
        self.card.lose(sample, keys)
        return sample

    def close(self) -> None:
        """Close all files; a later read opens them again."""
        self._files.close()
        self._sensors.close()

    def _sleeps(self) -> bool:
        return self._files.text("device/power/runtime_status") in _ASLEEP

    def _uses(self, keys: Key, process_keys: Key | None) -> list[ClientUse]:
        """Return the GPU's clients where something depends on them; the walk is the dearest part of a sample."""
        needed = (
            process_keys is not None
            or (self._integrated and keys & _MEMORY)
            or ("utilization" in keys and not self._idles)
        )
        return self._clients.of(self.card.slot) if needed else []

    def _read_gts(self, sample: DeviceSample, keys: Key, uses: list[ClientUse]) -> None:
        if "utilization" in keys:
            busy = self._read_awake() if self._idles else busiest(uses)
            _put(sample, keys, "utilization", busy, "pending" if self._idles or uses else "unsupported")
        main = self._gts[0]
        if keys & {"clock_sm", "clock_graphics"}:
            clock = self._files.number(main.actual)
            for key in ("clock_sm", "clock_graphics"):
                _put(sample, keys, key, clock, self._files.gap(main.actual))
        if "clock_sm_max" in keys:
            _put(sample, keys, "clock_sm_max", self._files.number(main.highest) or None if main.highest else None)
        if "clock_video" in keys:
            media = next((gt for gt in self._gts if gt.media), None)
            _put(sample, keys, "clock_video", None if media is None else self._files.number(media.actual))
        if "throttle_reasons" in keys:
            _put(sample, keys, "throttle_reasons", throttle_words(self._gts, self._files))

    def _read_awake(self) -> float | None:
        """Return the share of time in which a GT was awake: an upper bound of its work. The busiest GT counts.

        In a recorded tree the counter does not move, which would read as 100 %, so there an unchanged counter gives None.
        """
        now, shares = self._clock(), []
        for path in self._idles:
            idle = self._files.number(path)
            if idle is None:
                continue
            pace = self._idle_paces.setdefault(path, Pace(_APART))
            rate = pace.rate(idle, now)
            if rate is not None and (rate or not self._root):
                shares.append(round(min(100.0, max(0.0, 100.0 - rate / 10)), 1))
        return max(shares, default=None)

    def _read_sensors(self, sample: DeviceSample, keys: Key) -> None:
        for key, read in READERS.items():
            if key in keys:
                value = read(self._sensors)
                _put(
                    sample,
                    keys,
                    key,
                    value,
                    "denied" if value is None and self._sensors.gap(*VITAL) == "denied" else "unsupported",
                )
        if "power_draw" in keys:
            watts = self._read_power()
            _put(sample, keys, "power_draw", watts, "pending" if self._energy_file else "unsupported")
        if "energy" in keys:
            joules = self._sensors.number(self._energy_file) if self._energy_file else None
            _put(sample, keys, "energy", None if joules is None else joules / 1e6)

    def _read_power(self) -> float | None:
        """Return the power: as measured by the board if it does, else from the energy used since the previous read.

        An unchanged energy counter gives None, not 0 W: a chip that is awake always uses some energy.
        """
        if self._sensors.has("power1_input") and (microwatts := self._sensors.number("power1_input")) is not None:
            return microwatts / 1e6
        count = self._sensors.number(self._energy_file) if self._energy_file else None
        rate = None if count is None else self._energy_pace.rate(count, self._clock())
        return round(rate / 1e6, 3) if rate else None

    def _read_memory(self, sample: DeviceSample, keys: Key, uses: list[ClientUse]) -> None:
        if not self._integrated:
            memory = self._memory
            used, gap = (None, "unsupported") if memory is None else (memory.used, "denied")
            total = None if memory is None else memory.total
            free = None if used is None or total is None else total - used
        else:
            info = memory_info(self._root)
            total, free, gap = info.get("MemTotal"), info.get("MemAvailable"), "unsupported"
            amounts = [use.client.held("system", "gtt", "stolen") for use in uses]
            used = sum(amount or 0 for amount in amounts) if self._clients.readable and total else None
        _put(sample, keys, "memory_total", total)
        _put(sample, keys, "memory_used", used, "denied" if gap == "denied" else "unsupported")
        _put(sample, keys, "memory_free", free, "denied" if gap == "denied" else "unsupported")

    @property
    def _memory(self) -> Memory | None:
        """The GPU's own memory, asked again at each sample where what is in use can be seen, else once."""
        if not may_see_usage():
            return self._memory_once
        return query_memory(self.card, self._root)

    def _read_link(self, sample: DeviceSample, keys: Key) -> None:
        if self._integrated:
            return
        for which, gen_key, width_key in (
            ("current", "pcie_gen", "pcie_width"),
            ("max", "pcie_gen_max", "pcie_width_max"),
        ):
            gen, width = read_link(self._slot, which)
            if self._slot == self.card.device and not self._root and (gen, width) == (1, 1):
                gen = width = None  # Arc reports this for the link inside its own switch
            _put(sample, keys, gen_key, gen)
            _put(sample, keys, width_key, width)

    # What follows is found out once, by the thread that first needs it and only while the GPU is awake.

    @once
    def _integrated(self) -> bool:
        return is_integrated(self.card)

    @once
    def _sensors(self) -> Sensors:
        return Sensors(self.card.device, DRIVERS)

    @once
    def _gts(self) -> list[Gt]:
        return find_gts(self.card)

    @once
    def _idles(self) -> list[str]:
        """The idle counters of the GTs that render and compute."""
        return [gt.idle for gt in self._gts if gt.idle and not gt.media]

    @once
    def _energy_file(self) -> str:
        """The energy of the card, else of its package, else the first one; counters at 0 are skipped."""
        sensors = self._sensors
        ordered = [sensors.labelled("energy", "card"), sensors.labelled("energy", "pkg"), *sensors.numbered("energy")]
        files = [f"{sensor}_input" for sensor in ordered if sensor]
        return next((file for file in files if sensors.number(file)), files[0] if files else "")

    @once
    def _memory_once(self) -> Memory | None:
        return query_memory(self.card, self._root)

    @once
    def _slot(self) -> str:
        return slot_link(self.card.device, "0x8086")


def _put(sample: DeviceSample, keys: Key, key: str, value: Value | None, gap: Gap = "unsupported") -> None:
    if key not in keys:
        return
    if value is None:
        sample.gaps[key] = gap
    else:
        sample.values[key] = value
