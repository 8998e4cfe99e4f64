"""From the files of i915 and xe to metrics: sensors by label, the files of each GT, throttle reasons, rates, memory.

A GT is for rendering and compute, or for media. How much memory a discrete GPU has is asked of its driver, for which the group of the
render node is needed: sysfs does not say. Without CAP_PERFMON the drivers answer that nothing is in use (xe) or that all is free
(i915): that is no measurement.
"""

from __future__ import annotations

import os
import struct

from ...value import Value
from ..files import effective_capabilities, names, read_text

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from ..drm.cards import Card
    from ..drm.source import Folder, Sensors


def _celsius(sensors: Sensors, sensor: str, suffix: str = "_input") -> float | None:
    value = sensors.number(f"{sensor}{suffix}") if sensor else None
    return None if value is None else value / 1000


def _package(sensors: Sensors) -> str:
    """Return the sensor of the chip: by label on xe; i915 has one without a label."""
    unlabelled = sensors.has("temp1_input") and not sensors.has("temp1_label")
    return sensors.labelled("temp", "pkg") or ("temp1" if unlabelled else "")


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
        speed = sensors.number(f"{fan}_input")
        most = sensors.number(f"{fan}_max") if sensors.has(f"{fan}_max") else None
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


class Pace:
    """Growth per second of one counter between reads that are at least `apart` seconds from each other."""

    __slots__ = ("_apart", "_at", "_last", "_value")

    def __init__(self, apart: float) -> None:
        self._apart = apart * 0.999  # a wait of exactly that long may come out a hair shorter
        self._value: float | None = None
        self._at = 0.0
        self._last: float | None = None

    @property
    def begun(self) -> bool:
        """Whether there is a count to compare the next one with."""
        return self._value is not None

    def settled(self, now: float) -> bool:
        """Return whether a count taken now would give a rate."""
        return self._value is None or now - self._at >= self._apart

    def rate(self, value: float, now: float) -> float | None:
        """Return the growth per second since the count before; None for the first count and for one that went back.

        Counts too close to each other are one: the rate before them still holds.
        """
        before, elapsed = self._value, now - self._at
        if before is not None and value >= before and 0 <= elapsed < self._apart:
            return self._last
        grown = None if before is None or value < before or elapsed <= 0 else (value - before) / elapsed
        self._value, self._at, self._last = value, now, grown
        return grown

    def forget(self) -> None:
        """Start over: after the GPU slept, its counts do not compare."""
        self._value = self._last = None


class Gt:
    """The files of one GT by meaning, as paths below the card's folder; one that the kernel does not have is empty."""

    __slots__ = ("actual", "highest", "idle", "media", "reasons", "status")

    def __init__(self, card: Card, actual: str, highest: tuple[str, ...], idle: tuple[str, ...], media: bool) -> None:
        self.actual = actual
        self.highest = _existing(card, highest)
        self.idle = _existing(card, idle)
        self.media = media
        self.status = ""
        self.reasons: dict[str, str] = {}  # word of the driver → file


def find_gts(card: Card) -> list[Gt]:
    """Return the GTs of a card; at least one, whatever the kernel has of it."""
    found = _xe(card) if os.path.isdir(f"{card.device}/tile0") else _i915(card)
    return found or [_old(card)]


def _xe(card: Card) -> list[Gt]:
    gts = []
    for tile in _numbered(card.device, "tile"):
        for gt in _numbered(f"{card.device}/{tile}", "gt"):
            base = f"device/{tile}/{gt}"
            media = (read_text(f"{card.path}/{base}/gtidle/name", 64) or "").endswith("-mc")
            made = Gt(card, f"{base}/freq0/act_freq", (f"{base}/freq0/rp0_freq", f"{base}/freq0/max_freq"),
                      (f"{base}/gtidle/idle_residency_ms",), media)  # fmt: skip
            _reasons(made, card, f"{base}/freq0/throttle", "status", "reason_")
            gts.append(made)
    return gts


def _i915(card: Card) -> list[Gt]:
    gts = []
    for at, gt in enumerate(_numbered(f"{card.path}/gt", "gt")):
        base = f"gt/{gt}"
        idle = (f"{base}/rc6_residency_ms",) if at else (f"{base}/rc6_residency_ms", "power/rc6_residency_ms")
        made = Gt(
            card, f"{base}/rps_act_freq_mhz", (f"{base}/rps_RP0_freq_mhz", f"{base}/rps_max_freq_mhz"), idle, at > 0
        )
        _reasons(made, card, base, "throttle_reason_status", "throttle_reason_")
        gts.append(made)
    return gts


def _old(card: Card) -> Gt:
    """Return the one GT of kernels before 5.18, whose files are those of the card."""
    return Gt(card, "gt_act_freq_mhz", ("gt_RP0_freq_mhz", "gt_max_freq_mhz"), ("power/rc6_residency_ms",), False)


def _reasons(gt: Gt, card: Card, folder: str, status: str, prefix: str) -> None:
    entries = names(f"{card.path}/{folder}")
    gt.status = f"{folder}/{status}" if status in entries else ""
    gt.reasons = {
        name.removeprefix(prefix): f"{folder}/{name}" for name in entries if name.startswith(prefix) and name != status
    }


def _numbered(folder: str, kind: str) -> list[str]:
    found = [name for name in names(folder) if name.startswith(kind) and name[len(kind) :].isdecimal()]
    return sorted(found, key=lambda name: int(name[len(kind) :]))


def _existing(card: Card, paths: tuple[str, ...]) -> str:
    return next((path for path in paths if os.path.exists(f"{card.path}/{path}")), "")


_REASONS = {  # the catalog's word, and those of the drivers
    "sw_power_cap": "pl1 pl2 pl4 psys_pl1 psys_pl2",
    "sw_thermal_slowdown": "thermal soc_thermal mem_thermal soc_avg_thermal ratl",  # ratl: the running average of the temperature
    "hw_thermal_slowdown": "prochot vr_thermal vr_thermalert",
    "current_limit": "vr_tdc iccmax fastvmode",
}
_WORDS = {reason: word for word, reasons in _REASONS.items() for reason in reasons.split()}


def throttle_words(gts: Iterable[Gt], files: Folder) -> tuple[str, ...] | None:
    """Return the reasons active on any GT; None if no GT reports them."""
    words: list[str] = []
    said = False
    for gt in gts:
        status = files.number(gt.status) if gt.status else None
        if status is None and not gt.reasons:
            continue
        if status == 0:
            said = True
            continue
        for reason, path in gt.reasons.items():
            value = files.number(path)
            said = said or value is not None
            if value:
                words.append(_WORDS.get(reason, reason))
    return tuple(dict.fromkeys(words)) if said else None


_CAP_PERFMON, _CAP_SYS_ADMIN = 38, 21
_VRAM = 1
_REGION = 88  # bytes of one region, in both drivers
_XE_QUERY = struct.Struct("<QIIQQQ")
_XE_MEMORY = 1
_I915_QUERY = struct.Struct("<IIQ")
_I915_ITEM = struct.Struct("<QiIQ")
_I915_MEMORY = 4
_MOST = 1 << 16


class Memory(Value):
    """Bytes in all and in use; `used` is None where the driver does not tell us."""

    total: int
    used: int | None


def query_memory(card: Card, root: str = "") -> Memory | None:
    """Return the GPU's own memory; None where the driver cannot be asked. Only a machine that is here can be."""
    if root:
        return None
    nodes = [name for name in names(f"{card.device}/drm") if name.startswith("renderD")]
    if not nodes:
        return None
    try:
        handle = os.open(f"/dev/dri/{nodes[0]}", os.O_RDWR | os.O_CLOEXEC)
    except OSError:
        return None
    try:
        answer = _ask_xe(handle) if card.driver == "xe" else _ask_i915(handle)
    except OSError:
        return None
    finally:
        os.close(handle)
    parse = parse_xe if card.driver == "xe" else parse_i915
    return parse(answer, may_see_usage())


def may_see_usage(root: str = "") -> bool:
    """Return whether this process has CAP_PERFMON, or CAP_SYS_ADMIN which includes it."""
    capabilities = effective_capabilities(root)
    return bool(capabilities >> _CAP_PERFMON & 1 or capabilities >> _CAP_SYS_ADMIN & 1)


def parse_xe(answer: bytes, may_see: bool) -> Memory | None:
    """Read xe's regions: class, instance, page size, total, used."""
    return _sum(_vram(answer, 8), may_see)


def parse_i915(answer: bytes, may_see: bool) -> Memory | None:
    """Read i915's regions: class, instance, reserved, probed, not allocated."""
    return _sum([(probed, probed - free) for probed, free in _vram(answer, 16) if free <= probed], may_see)


def _vram(answer: bytes, start: int) -> list[tuple[int, int]]:
    """Return the two amounts of each region of the GPU's own memory."""
    count = int.from_bytes(answer[:4], "little")
    parts = [answer[start + at * _REGION : start + (at + 1) * _REGION] for at in range(min(count, 64))]
    found = [struct.unpack_from("<HHIQQ", part) for part in parts if len(part) == _REGION]
    return [(total, amount) for kind, _, _, total, amount in found if kind == _VRAM]


def _sum(vram: list[tuple[int, int]], may_see: bool) -> Memory | None:
    if not vram:
        return None
    used = sum(amount for _, amount in vram)
    return Memory(sum(total for total, _ in vram), used if used or may_see else None)


def _request(number: int, size: int) -> int:
    return 3 << 30 | size << 16 | ord("d") << 8 | number  # _IOWR


def _ask_xe(handle: int) -> bytes:
    """Ask for the size of the answer, then for the answer."""
    import fcntl
    from ctypes import addressof, create_string_buffer

    query = bytearray(_XE_QUERY.pack(0, _XE_MEMORY, 0, 0, 0, 0))
    fcntl.ioctl(handle, _request(0x40, _XE_QUERY.size), query)
    size = min(_XE_QUERY.unpack(query)[2], _MOST)
    answer = create_string_buffer(size)
    query = bytearray(_XE_QUERY.pack(0, _XE_MEMORY, size, addressof(answer), 0, 0))
    fcntl.ioctl(handle, _request(0x40, _XE_QUERY.size), query)
    return answer.raw


def _ask_i915(handle: int) -> bytes:
    import fcntl
    from ctypes import addressof, create_string_buffer

    size, answer = 0, create_string_buffer(1)
    for _ in range(2):
        item = create_string_buffer(_I915_ITEM.pack(_I915_MEMORY, size, 0, addressof(answer) if size else 0))
        fcntl.ioctl(handle, _request(0x79, _I915_QUERY.size), bytearray(_I915_QUERY.pack(1, 0, addressof(item))))
        said = _I915_ITEM.unpack(item.raw[: _I915_ITEM.size])[1]
        if said <= 0:
            return b""
        if not size:
            size = min(said, _MOST)
            answer = create_string_buffer(size)
    return answer.raw
