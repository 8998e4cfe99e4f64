"""The Intel source: each card read from its files (identity, clocks, idle time, energy) and from /proc (its users); never asleep."""

from __future__ import annotations

import time

from ...model.catalog import PCIE_LINK
from ..base import Facts, cached_attribute
from ..drm.cards import pci_name, read_link, slot_link
from ..drm.clients import busiest, by_pid, engine_share, memory_held
from ..drm.source import CardDevice, CardReading, CardSource
from ..files import read_text
from ..host import memory_info
from .sensors import READERS, VITAL, Pace, find_gts, may_see_usage, query_memory, throttle_words

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from ...model.metric import Gap, Value
    from ...model.snapshot import Check
    from ..base import DeviceSample, Key
    from ..drm.cards import Card
    from ..drm.clients import Clients, ClientUse
    from .sensors import Gt, Memory

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
_LINK = frozenset(PCIE_LINK)
_RATES = frozenset({"utilization", "power_draw"})
# Every GPU metric that this source can have; `gpulse metrics` and the drift test read it.
KEYS = IDENTITY_KEYS | _MEMORY | _LINK | _RATES | {
    "memory_unified", "temperature", "memory_temperature", "temperature_limit", "fan_speed", "fan_rpm", "power_limit",
    "power_default_limit", "energy", "clock_sm", "clock_graphics", "clock_sm_max", "clock_video", "throttle_reasons",
}  # fmt: skip
_APART = 0.1  # seconds: idle time is counted in milliseconds, so a shorter interval gives no percents


class IntelDevice(CardDevice):
    """One card of i915 or xe."""

    drivers = DRIVERS
    runtime_status = "device/power/runtime_status"

    def __init__(
        self, card: Card, index: int, clients: Clients, root: str = "", clock: Callable[[], float] = time.monotonic
    ) -> None:
        super().__init__(card, clients, root, card.path, identify(card, index, root))
        self._clock = clock
        self._energy_pace = Pace(_APART)
        self._idle_paces: dict[str, Pace] = {}

    def prime(self, keys: Key) -> None:
        if keys & _RATES and not self._energy_pace.begun and not self._idle_paces and not self._sleeps():
            self._read_power()
            self._awake_share()

    def settled(self) -> bool:
        now = self._clock()
        return self._energy_pace.settled(now) and all(pace.settled(now) for pace in self._idle_paces.values())

    def _forget(self) -> None:
        self._energy_pace.forget()
        self._idle_paces.clear()

    def _read_awake(self, sample: DeviceSample, keys: Key, process_keys: Key | None) -> None:
        uses, reading = self._uses(keys, process_keys), CardReading(sample, keys)
        self._read_gts(reading, uses)
        self._read_sensors(reading)
        if keys & _MEMORY:
            self._read_memory(reading, uses)
        if keys & _LINK and not self._integrated:
            self._read_link(reading)
        reading.put("memory_unified", self._integrated)
        if process_keys is not None:
            sample.processes = read_processes(uses, self._integrated, process_keys)
            if not self._clients.readable:
                sample.gaps["processes"] = "unsupported"

    def _uses(self, keys: Key, process_keys: Key | None) -> list[ClientUse]:
        """Return the GPU's clients where something depends on them; the walk is the dearest part of a sample."""
        needed = (
            process_keys is not None
            or (self._integrated and keys & _MEMORY)
            or ("utilization" in keys and not self._idles)
        )
        return self._clients.of_slot(self.card.slot) if needed else []

    def _read_gts(self, reading: CardReading, uses: list[ClientUse]) -> None:
        keys, main = reading.keys, self._gts[0]
        if "utilization" in keys:
            busy = self._awake_share() if self._idles else busiest(uses)
            reading.put("utilization", busy, "pending" if self._idles or uses else "unsupported")
        if keys & {"clock_sm", "clock_graphics"}:
            clock = self._files.number(main.actual)
            for key in ("clock_sm", "clock_graphics"):
                reading.put(key, clock, self._files.gap(main.actual))
        if "clock_sm_max" in keys:
            reading.put("clock_sm_max", self._files.number(main.highest) or None if main.highest else None)
        if "clock_video" in keys:
            media = next((gt for gt in self._gts if gt.media), None)
            reading.put("clock_video", None if media is None else self._files.number(media.actual))
        if "throttle_reasons" in keys:
            reading.put("throttle_reasons", throttle_words(self._gts, self._files))

    def _awake_share(self) -> float | None:
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

    def _read_sensors(self, reading: CardReading) -> None:
        for key, read in READERS.items():
            if key in reading.keys:
                value = read(self._sensors)
                denied = value is None and self._sensors.gap(*VITAL) == "denied"
                reading.put(key, value, "denied" if denied else "unsupported")
        if "power_draw" in reading.keys:
            reading.put("power_draw", self._read_power(), "pending" if self._energy_file else "unsupported")
        if "energy" in reading.keys:
            joules = self._sensors.number(self._energy_file) if self._energy_file else None
            reading.put("energy", None if joules is None else joules / 1e6)

    def _read_power(self) -> float | None:
        """Return the power: as measured by the board if it does, else from the energy used since the previous read.

        An unchanged energy counter gives None, not 0 W: a chip that is awake always uses some energy.
        """
        if self._sensors.has("power1_input") and (microwatts := self._sensors.number("power1_input")) is not None:
            return microwatts / 1e6
        count = self._sensors.number(self._energy_file) if self._energy_file else None
        rate = None if count is None else self._energy_pace.rate(count, self._clock())
        return round(rate / 1e6, 3) if rate else None

    def _read_memory(self, reading: CardReading, uses: list[ClientUse]) -> None:
        gap: Gap = "unsupported"
        if self._integrated:
            info = memory_info(self._root)
            total, free = info.get("MemTotal"), info.get("MemAvailable")
            amounts = [use.client.held("system", "gtt", "stolen") for use in uses]
            used = sum(amount or 0 for amount in amounts) if self._clients.readable and total else None
        elif (memory := self._memory) is None:
            total = used = free = None
        else:
            total, used, gap = memory.total, memory.used, "denied"
            free = None if used is None else total - used
        reading.put("memory_total", total)
        reading.put("memory_used", used, gap)
        reading.put("memory_free", free, gap)

    @property
    def _memory(self) -> Memory | None:
        """The GPU's own memory, asked again at each sample where what is in use can be seen, else once."""
        if not may_see_usage():
            return self._memory_once
        return query_memory(self.card, self._root)

    def _read_link(self, reading: CardReading) -> None:
        for which, suffix in (("current", ""), ("max", "_max")):
            gen, width = read_link(self._slot, which)
            if self._slot == self.card.device and not self._root and (gen, width) == (1, 1):
                gen = width = None  # Arc reports this for the link inside its own switch
            reading.put(f"pcie_gen{suffix}", gen)
            reading.put(f"pcie_width{suffix}", width)

    # What follows is found out once, by the thread that first needs it and only while the GPU is awake.

    @cached_attribute
    def _integrated(self) -> bool:
        return is_integrated(self.card)

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


_RENDER = ("render", "rcs")  # i915's word and xe's
_COMPUTE = ("compute", "ccs")
_UNSAID = ("memory_utilization", "encoder_utilization", "decoder_utilization")  # one video engine does both


def read_processes(uses: Iterable[ClientUse], integrated: bool, keys: Key) -> dict[int, Facts]:
    """Return the processes of one GPU by pid; an integrated GPU's memory is the machine's."""
    regions = ("system", "gtt", "stolen") if integrated else ("local", "vram")
    return {pid: _facts(pid, own, regions, keys) for pid, own in sorted(by_pid(uses).items())}


def _facts(pid: int, uses: list[ClientUse], regions: tuple[str, ...], keys: Key) -> Facts:
    facts = Facts()
    facts.values["pid"] = pid
    facts.values["type"] = "C" if _ran(uses, _COMPUTE) and not _ran(uses, _RENDER) else "G"
    facts.put("memory_used", memory_held(uses, regions))
    facts.gaps.update({key: "unsupported" for key in _UNSAID if key in keys})
    if "sm_utilization" in keys:
        facts.put("sm_utilization", engine_share(uses, (*_RENDER, *_COMPUTE)), "pending")
    return facts


def _ran(uses: list[ClientUse], engines: tuple[str, ...]) -> bool:
    return any(use.client.busy.get(engine) or use.client.cycles.get(engine) for use in uses for engine in engines)


__all__ = ["KEYS", "IntelSource"]


class IntelSource(CardSource):
    """All Intel GPUs of a machine; `root` is prefixed to /proc and /sys: the folder of a recorded machine, or empty."""

    name = "intel"
    devices: list[IntelDevice]
    vendor, vendor_id, drivers = "Intel", 0x8086, DRIVERS
    hidden_remedy = "Run as root to see all processes that use the GPU."

    def _found(self, cards: list[Card]) -> list[IntelDevice]:
        version = driver_version(self._root)
        self.driver = {cards[0].driver or "i915": version} if version and cards else {}
        return [IntelDevice(card, index, self._clients, self._root) for index, card in enumerate(cards)]

    def _checks(self, awake: Sequence[Card]) -> list[Check]:
        from ...model.snapshot import Check

        discrete = [card for card in awake if not is_integrated(card)]
        if not discrete or self._root:
            return []
        if query_memory(discrete[0]) is None:
            remedy = "Add this user to the group that owns /dev/dri/renderD*, usually render."
            return [Check("warn", "memory", "the size of the GPU's memory cannot be read.", remedy)]
        if not may_see_usage():
            remedy = "Run gpulse as root, or give it CAP_PERFMON."
            return [Check("note", "memory", "reading the memory in use needs CAP_PERFMON.", remedy)]
        return []
