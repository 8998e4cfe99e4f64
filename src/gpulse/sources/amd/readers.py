"""From amdgpu's files to the metrics of a GPU: one function per metric or group of metrics, called only when asked."""

from __future__ import annotations

from ..base import Counter, cached_attribute
from ..drm.cards import LANES, generation
from ..drm.source import CardReading
from ..files import names, read_text
from .metrics import parse_table

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from ..base import DeviceSample, Key
    from ..drm.source import Folder, Sensors
    from .metrics import MetricsTable

_JOULES = 2.0**-16  # per count of energy_accumulator since v1_4
_TICK = 1e-8  # seconds per count of firmware_timestamp
_BANDWIDTH = (1, 4)  # from this version on, UMC activity is the used share of the memory bandwidth
_RAS_OF_LINKS = ("pcie_bif", "xgmi_wafl")  # blocks whose errors are those of links, not of memory
_RAS_COUNT = "_err_count"


class AmdReading(CardReading):
    """One sample and where it comes from: `files` of the device, `sensors`, and the firmware's `table`."""

    def __init__(self, sample: DeviceSample, keys: Key, files: Folder, sensors: Sensors, apu: bool) -> None:
        super().__init__(sample, keys)
        self.files = files
        self.sensors = sensors
        self.apu = apu

    @cached_attribute
    def table(self) -> MetricsTable | None:
        """The firmware's table, read once per sample: what is taken from it belongs together."""
        return parse_table(self.files.content("gpu_metrics"))

    def field(self, *names: str, formats: tuple[int, ...] = (1, 2, 3)) -> int | None:
        """Return a field of the table if its format is one of these: units differ between formats."""
        if self.table is None or self.table.version[0] not in formats:
            return None
        return self.table.number(*names)

    def engines(self, *names: str) -> list[int]:
        """Return the figures of the engines of one kind: the first of these fields, or those of all partitions."""
        table = self.table
        if table is None:
            return []
        known = next((found for name in names if (found := table.numbers(name))), [])
        return known or [value for part in table.partitions() for value in part.get(names[1], ())]

    def since_bandwidth(self, name: str) -> int | None:
        """Return a field whose meaning is known since v1_4 only."""
        table = self.table
        return table.number(name) if table is not None and _BANDWIDTH <= table.version < (2, 0) else None

    def sensor(self, kind: str, *labels: str, scale: float, suffix: str = "_input") -> float | None:
        """Return what the sensor of the first of these labels says, in the catalog's unit."""
        sensor = self.sensors.labelled(kind, *labels)
        value = self.sensors.number(f"{sensor}{suffix}") if sensor else None
        return None if value is None else value / scale

    def clock(self, label: str, name: str, levels: str) -> float | None:
        """Return a clock in MHz: its sensor's, that of the table (of several the fastest, of now or else the average), its level's."""
        clock = self.sensor("freq", label, scale=1e6) if label else None
        if clock is None and self.table is not None:
            clock = max(self.table.numbers(f"current_{name}") or self.table.numbers(f"average_{name}"), default=None)
        return current_clock(self.files.text(levels)) if clock is None else clock


def _first(*values: float | None) -> float | None:
    return next((value for value in values if value is not None), None)


def _scaled(value: float | None, scale: float) -> float | None:
    return None if value is None else value / scale


def _file_or_field(file: str, field: str, *formats: int) -> Callable[[AmdReading], float | None]:
    """Return a reader of a file of the device or, where that is missing, of a field of the table in these formats."""

    def read(reading: AmdReading) -> float | None:
        value = reading.files.number(file)
        return reading.field(field, formats=formats) if value is None else value

    return read


def _video(reading: AmdReading) -> float | None:
    busy = reading.files.number("vcn_busy_percent")
    if busy is None and reading.table is not None and reading.table.version[0] != 2:
        busy = max(reading.engines("vcn_activity", "vcn_busy", "average_mm_activity"), default=None)
    return busy


def _jpeg(reading: AmdReading) -> float | None:
    engines = reading.engines("jpeg_activity", "jpeg_busy")
    return round(sum(engines) / len(engines), 1) if engines else None


def _temperature(reading: AmdReading) -> float | None:
    """Read the edge sensor, or the junction on chips without one."""
    celsius = reading.sensor("temp", "edge", "junction", scale=1000)
    if not reading.sensors.labelled("temp", "edge", "junction") and reading.sensors.has("temp1_input"):
        celsius = _scaled(reading.sensors.number("temp1_input"), 1000)
    if celsius is None:
        celsius = reading.field("temperature_edge", "temperature_hotspot", formats=(1,))
    return _scaled(reading.field("temperature_gfx", formats=(2, 3)), 100) if celsius is None else celsius


def _hotspot(reading: AmdReading) -> float | None:
    celsius = reading.sensor("temp", "junction", scale=1000)
    return reading.field("temperature_hotspot", formats=(1,)) if celsius is None else celsius


def _memory_temperature(reading: AmdReading) -> float | None:
    """Read the memory's sensor; 0 means that there is none. HBM has one per stack, of which the hottest counts."""
    celsius = reading.sensor("temp", "mem", scale=1000)
    if not celsius and reading.table is not None and reading.table.version[0] == 1:
        stacks = [degrees for degrees in reading.table.numbers("temperature_hbm") if degrees]
        celsius = reading.field("temperature_mem") or max(stacks, default=None)
    return celsius or None


def _temperature_limit(reading: AmdReading) -> float | None:
    sensor = reading.sensors.labelled("temp", "edge", "junction") or "temp1"
    limit = reading.sensors.number(f"{sensor}_crit")
    return limit / 1000 if limit and limit > 0 else None


def _fan(reading: AmdReading) -> float | None:
    duty, most = reading.sensors.number("pwm1"), reading.sensors.number("pwm1_max")
    return None if duty is None else round(100.0 * duty / (most or 255), 1)


def _fan_rpm(reading: AmdReading) -> float | None:
    turns = reading.sensors.number("fan1_input")
    return reading.field("current_fan_speed", formats=(1,)) if turns is None and not reading.apu else turns


def _power(reading: AmdReading) -> float | None:
    """Read the average power, else the present one: since Linux 6.6 most chips have only one of the two files."""
    sensors = reading.sensors
    files = (name for name in ("power1_average", "power1_input") if sensors.has(name))
    microwatts = _first(*(sensors.number(name) for name in files))
    if microwatts is not None:
        return microwatts / 1e6
    watts = reading.field("curr_socket_power", "average_socket_power", formats=(1,))
    return _scaled(reading.field("average_socket_power", formats=(2, 3)), 1000) if watts is None else watts


def _energy(reading: AmdReading) -> float | None:
    """Read the energy since the driver was loaded; tables before v1_4 count in units that differ from chip to chip."""
    count = reading.since_bandwidth("energy_accumulator")
    return round(count * _JOULES, 3) if count else None


def _memory(reading: AmdReading) -> None:
    """Read memory in bytes; an APU's memory is its carve-out and what it may map of the machine's."""
    pools = ("vram", "gtt") if reading.apu else ("vram",)
    used = [reading.files.number(f"mem_info_{pool}_used") for pool in pools]
    total = [reading.files.number(f"mem_info_{pool}_total") for pool in pools]
    in_use = None if None in used else sum(amount or 0 for amount in used)
    whole = None if None in total else sum(amount or 0 for amount in total)
    gap = reading.files.gap(*(f"mem_info_{pool}_{word}" for pool in pools for word in ("used", "total")))
    reading.put("memory_used", in_use, gap)
    reading.put("memory_total", whole or None, gap)
    reading.put("memory_free", None if in_use is None or not whole else max(0, whole - in_use), gap)


def _clock(reading: AmdReading) -> None:
    clock, gap = reading.clock("sclk", "gfxclk", "pp_dpm_sclk"), reading.sensors.gap("freq1_input")
    reading.put("clock_sm", clock, gap)
    reading.put("clock_graphics", clock, gap)


def _xgmi(reading: AmdReading) -> None:
    """Read the bytes moved over all XGMI links, as counters timed by the firmware's own clock."""
    table = reading.table
    ticks = None if table is None else table.number("firmware_timestamp")
    for key, name in (("xgmi_rx", "xgmi_read_data_acc"), ("xgmi_tx", "xgmi_write_data_acc")):
        links = [] if table is None else table.numbers(name)
        if links and ticks and reading.field("xgmi_link_width"):
            reading.count(key, Counter(sum(links), ticks * _TICK, 1000.0))


def _partition_mode(reading: AmdReading) -> None:
    modes = [reading.files.text(f"current_{kind}_partition") for kind in ("compute", "memory")]
    known = [mode for mode in modes if mode and mode.isalnum() and len(mode) < 8]
    reading.put("partition_mode", "/".join(known) or None, reading.files.gap("current_compute_partition"))


def _errors(reading: AmdReading) -> None:
    """Read the errors of all memory blocks, as RAS counts them since the driver was loaded; boards without RAS have none."""
    folder = f"{reading.files.path}/ras"
    blocks = [name.removesuffix(_RAS_COUNT) for name in names(folder) if name.endswith(_RAS_COUNT)]
    texts = [read_text(f"{folder}/{block}{_RAS_COUNT}", 1024) for block in blocks if block not in _RAS_OF_LINKS]
    lines = [line.partition(":") for text in texts for line in (text or "").splitlines()]
    for key, word in (("ecc_corrected", "ce"), ("ecc_uncorrected", "ue")):  # a line such as `ue: 0`
        counts = [count.strip() for name, colon, count in lines if colon and name.strip() == word]
        known = [int(count) for count in counts if count.isdecimal() and count.isascii()]
        reading.put(key, sum(known) if known else None)
    pages = read_text(f"{folder}/gpu_vram_bad_pages")
    retired = [line for line in (pages or "").splitlines() if line.lower().startswith("0x")]
    reading.put("retired_pages_uncorrected", None if pages is None else len(retired))


def link_of_table(reading: AmdReading) -> tuple[int | None, int | None]:
    """Return generation and lanes of the PCIe link as the firmware sees it."""
    speed, lanes = reading.field("pcie_link_speed", formats=(1,)), reading.field("pcie_link_width", formats=(1,))
    return (generation(speed / 10) if speed else None), lanes if lanes in LANES else None


# What one function answers: its value, and the files of the device or of the sensors that say why there is none.
_VALUES: dict[str, tuple[Callable[[AmdReading], float | None], str, str]] = {
    # tables of format 2 count in percent or in hundredths of it, depending on the chip
    "utilization": (_file_or_field("gpu_busy_percent", "average_gfx_activity", 1, 3), "gpu_busy_percent", ""),
    "memory_utilization": (_file_or_field("mem_busy_percent", "average_umc_activity", 1), "mem_busy_percent", ""),
    "dram_active": (lambda reading: reading.since_bandwidth("average_umc_activity"), "", ""),
    "video_utilization": (_video, "vcn_busy_percent", ""),
    "jpeg_utilization": (_jpeg, "", ""),
    "bar1_used": (lambda reading: reading.files.number("mem_info_vis_vram_used"), "mem_info_vis_vram_used", ""),
    "bar1_total": (lambda reading: reading.files.number("mem_info_vis_vram_total"), "mem_info_vis_vram_total", ""),
    "temperature": (_temperature, "", "temp:edge:junction"),
    "hotspot_temperature": (_hotspot, "", "temp:junction"),
    "memory_temperature": (_memory_temperature, "", "temp:mem"),
    "temperature_limit": (_temperature_limit, "", "temp:edge:junction"),
    "fan_speed": (_fan, "", "pwm1"),
    "fan_rpm": (_fan_rpm, "", "fan1_input"),
    "power_draw": (_power, "", "power1_average power1_input"),
    "power_limit": (lambda reading: _scaled(reading.sensors.number("power1_cap") or None, 1e6), "", "power1_cap"),
    "power_default_limit": (
        lambda reading: _scaled(reading.sensors.number("power1_cap_default") or None, 1e6), "", "power1_cap_default",
    ),
    "energy": (_energy, "", ""),
    "clock_memory": (lambda reading: reading.clock("mclk", "uclk", "pp_dpm_mclk"), "", "freq2_input"),
    "clock_video": (lambda reading: reading.clock("", "vclk0", "pp_dpm_vclk"), "", ""),
    "clock_sm_max": (lambda reading: highest_clock(reading.files.text("pp_dpm_sclk")) or None, "pp_dpm_sclk", ""),
    "clock_memory_max": (lambda reading: highest_clock(reading.files.text("pp_dpm_mclk")) or None, "pp_dpm_mclk", ""),
    "pcie_replays": (_file_or_field("pcie_replay_count", "pcie_replay_count_acc", 1), "pcie_replay_count", ""),
}  # fmt: skip


def _value(key: str) -> Callable[[AmdReading], None]:
    read, file, sensor = _VALUES[key]
    kind, *labels = sensor.split(":")

    def store(reading: AmdReading) -> None:
        value = read(reading)
        if value is not None or file:
            reading.put(key, value, reading.files.gap(file))
            return
        suffix = "crit" if key == "temperature_limit" else "input"
        files = [f"{reading.sensors.labelled(kind, *labels) or 'temp1'}_{suffix}"] if labels else sensor.split()
        reading.put(key, value, reading.sensors.gap(*files))

    return store


READERS: tuple[tuple[frozenset[str], Callable[[AmdReading], None]], ...] = (
    *((frozenset({key}), _value(key)) for key in _VALUES),
    (frozenset({"memory_used", "memory_total", "memory_free"}), _memory),
    (frozenset({"clock_sm", "clock_graphics"}), _clock),
    (frozenset({"xgmi_rx", "xgmi_tx"}), _xgmi),
    (frozenset({"partition_mode"}), _partition_mode),
    (frozenset({"ecc_corrected", "ecc_uncorrected", "retired_pages_uncorrected"}), _errors),
)


# --- the levels of a clock or link: `pp_dpm_sclk` and its like, with a star at the level in force


def parse_levels(text: str | None) -> list[tuple[str, bool]]:
    """Return the levels of a file, as `0: 500Mhz *`, each with whether it has the star; a deep-sleep level is called S.

    Lines in any other shape are skipped.
    """
    levels = []
    for line in (text or "").splitlines():
        name, colon, rest = line.partition(":")
        if colon and (name.strip() == "S" or name.strip().isdecimal()):
            levels.append((rest.replace("*", "").strip(), "*" in rest))
    return levels


def current_clock(text: str | None) -> float | None:
    """Return the clock of the level in force in MHz; of several stars the last counts, without a star there is none."""
    stars = [_megahertz(level) for level, current in parse_levels(text) if current]
    return stars[-1] if stars else None


def highest_clock(text: str | None) -> float | None:
    """Return the highest clock of all levels in MHz."""
    clocks = (_megahertz(level) for level, _ in parse_levels(text))
    return max((clock for clock in clocks if clock is not None), default=None)


def current_link(text: str | None) -> tuple[int | None, int | None]:
    """Return generation and lanes of the level in force of `pp_dpm_pcie`: `1: 16.0GT/s, x16 619Mhz *`."""
    stars = [level for level, current in parse_levels(text) if current]
    return _link(stars[-1]) if stars else (None, None)


def highest_link(text: str | None) -> tuple[int | None, int | None]:
    """Return generation and lanes of the fastest level of `pp_dpm_pcie`."""
    levels = parse_levels(text)
    return _link(levels[-1][0]) if levels else (None, None)


def _link(text: str) -> tuple[int | None, int | None]:
    speed, lanes = None, None
    for word in text.replace(",", " ").split():
        if word.endswith("GT/s"):
            rate = _leading(word)
            speed = None if rate is None else generation(rate)
        elif word.startswith("x") and word[1:].isdecimal():
            lanes = int(word[1:]) if word[1:].isascii() and len(word) < 5 and int(word[1:]) in LANES else None
    return speed, lanes


def _megahertz(level: str) -> float | None:
    return next((_leading(word) for word in level.split() if word.lower().endswith("mhz")), None)


def _leading(word: str) -> float | None:
    """Return the number a word begins with."""
    digits = word[: len(word) - len(word.lstrip("0123456789."))]
    try:
        return float(digits)
    except ValueError:
        return None
