"""One Intel GPU: identity, clocks, idle time and energy from its files, who uses it from /proc; never read while it sleeps."""

from __future__ import annotations

import time

from ..base import Device, DeviceSample, cached_attribute
from ..drm.cards import pci_name, read_link, slot_link
from ..drm.clients import busiest
from ..drm.kernel import Folder, Sensors
from ..files import read_text
from ..host import memory_info
from .processes import read_processes
from .regions import may_see_usage, query_memory
from .sensors import READERS, VITAL, Pace, find_gts, throttle_words

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from ...model.metric import Gap, Value
    from ..base import Key
    from ..drm.cards import Card
    from ..drm.clients import Clients, ClientUse
    from .regions import Memory
    from .sensors import Gt

IDENTITY_KEYS = frozenset(
    {"index", "ordinal", "uuid", "name", "vendor", "architecture", "pci_bus_id", "driver_version"}
)
_NAMES = {
    0x5690: "Arc A770M", 0x5691: "Arc A730M", 0x5692: "Arc A550M", 0x5693: "Arc A370M", 0x5694: "Arc A350M", 0x56A0: "Arc A770",
    0x56A1: "Arc A750", 0x56A2: "Arc A580", 0x56A5: "Arc A380", 0x56A6: "Arc A310", 0x56B0: "Arc Pro A30M", 0x56B1: "Arc Pro A40/A50",
    0x56B2: "Arc Pro A60M", 0x56B3: "Arc Pro A60", 0x56C0: "Data Center GPU Flex 170", 0x56C1: "Data Center GPU Flex 140",
    0xE20B: "Arc B580", 0xE20C: "Arc B570", 0xE211: "Arc Pro B60", 0xE212: "Arc Pro B50", 0x4905: "Iris Xe MAX",
    0x0BD5: "Data Center GPU Max 1550", 0x0BDA: "Data Center GPU Max 1100", 0x64A0: "Arc 140V", 0x7D55: "Arc Graphics (Meteor Lake)",
    0x9A49: "Iris Xe", 0x46A6: "Iris Xe", 0xA7A0: "Iris Xe", 0x4680: "UHD Graphics 770", 0xA780: "UHD Graphics 770",
}  # fmt: skip
_ARCHITECTURES = (
    (range(0x4905, 0x490A), "Xe-LP"), (range(0x5690, 0x56C2), "Xe-HPG"), (range(0x0BD0, 0x0BE6), "Xe-HPC"),
    (range(0xE200, 0xE240), "Xe2-HPG"), (range(0x6420, 0x64C0), "Xe2-LPG"), (range(0x7D40, 0x7DE0), "Xe-LPG"),
    (range(0xB080, 0xB0C0), "Xe3-LPG"),
)  # fmt: skip
_INTEGRATED = "0000:00:02.0"  # where every Intel processor has its graphics


def identify(card: Card, index: int, root: str) -> dict[str, Value]:
    """Return the identity of a card; the chips have no unique id, so the UUID is made from the PCI slot."""
    known = _NAMES.get(card.device_id) or pci_name(root, 0x8086, card.device_id)
    name = known or ("Graphics" if is_integrated(card) else f"GPU {card.device_id:04x}")
    values: dict[str, Value] = {
        "index": index,
        "ordinal": index,
        "vendor": "intel",
        "name": name if name.startswith("Intel") else f"Intel {name}",
        "uuid": f"PCI-{card.slot or card.name}",
    }
    if card.slot:
        values["pci_bus_id"] = card.slot
    if family := next((family for ids, family in _ARCHITECTURES if card.device_id in ids), ""):
        values["architecture"] = family
    if version := driver_version(root):
        values["driver_version"] = version
    return values


def driver_version(root: str) -> str:
    """Return the version of the kernel, of which both drivers are a part."""
    return read_text(f"{root}/proc/sys/kernel/osrelease", 256) or ""


def is_integrated(card: Card) -> bool:
    """Return whether the GPU is part of the processor and shares its memory."""
    return card.slot == _INTEGRATED


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

    @cached_attribute
    def _integrated(self) -> bool:
        return is_integrated(self.card)

    @cached_attribute
    def _sensors(self) -> Sensors:
        return Sensors(self.card.device, DRIVERS)

    @cached_attribute
    def _gts(self) -> list[Gt]:
        return find_gts(self.card)

    @cached_attribute
    def _idles(self) -> list[str]:
        """The idle counters of the GTs that render and compute."""
        return [gt.idle for gt in self._gts if gt.idle and not gt.media]

    @cached_attribute
    def _energy_file(self) -> str:
        """The energy of the card, else of its package, else the first one; counters at 0 are skipped."""
        sensors = self._sensors
        ordered = [sensors.labelled("energy", "card"), sensors.labelled("energy", "pkg"), *sensors.numbered("energy")]
        files = [f"{sensor}_input" for sensor in ordered if sensor]
        return next((file for file in files if sensors.number(file)), files[0] if files else "")

    @cached_attribute
    def _memory_once(self) -> Memory | None:
        return query_memory(self.card, self._root)

    @cached_attribute
    def _slot(self) -> str:
        return slot_link(self.card.device, "0x8086")


def _put(sample: DeviceSample, keys: Key, key: str, value: Value | None, gap: Gap = "unsupported") -> None:
    if key not in keys:
        return
    if value is None:
        sample.gaps[key] = gap
    else:
        sample.values[key] = value
