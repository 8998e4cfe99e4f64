"""From amdgpu's files to the metrics of a GPU: one function per file or group of files, called only when asked."""

from __future__ import annotations

from ..base import Counter, cached_attribute
from ..drm.cards import LANES, generation
from ..files import names, read_text
from .levels import current_clock, highest_clock
from .metrics import parse_table

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from ...model.metric import Gap, Value
    from ..base import DeviceSample, Key
    from ..drm.kernel import Folder, Sensors
    from .metrics import MetricsTable

_LINKS = ("pcie_bif", "xgmi_wafl")  # blocks whose errors are those of links, not of memory
_SUFFIX = "_err_count"


def read_errors(reading: AmdReading) -> None:
    """Store the corrected and uncorrected errors of all memory blocks; boards without RAS have neither."""
    folder = f"{reading.files.path}/ras"
    files = [name for name in names(folder) if name.endswith(_SUFFIX) and name.removesuffix(_SUFFIX) not in _LINKS]
    counts = [_counts(read_text(f"{folder}/{name}", 1024) or "") for name in files]
    for key, word in (("ecc_corrected", "ce"), ("ecc_uncorrected", "ue")):
        known = [count[word] for count in counts if word in count]
        reading.put(key, sum(known) if known else None)
    pages = read_text(f"{folder}/gpu_vram_bad_pages")
    lines = [line for line in (pages or "").splitlines() if line.lower().startswith("0x")]
    reading.put("retired_pages_uncorrected", None if pages is None else len(lines))


def _counts(text: str) -> dict[str, int]:
    """Read lines such as `ue: 0`."""
    found = {}
    for line in text.splitlines():
        word, colon, number = line.partition(":")
        if colon and number.strip().isdecimal() and number.isascii():
            found[word.strip()] = int(number)
    return found


_JOULES = 2.0**-16  # per count of energy_accumulator since v1_4
_TICK = 1e-8  # seconds per count of firmware_timestamp
_BANDWIDTH = (1, 4)  # from this version on, UMC activity is the used share of the memory bandwidth


def _utilization(reading: AmdReading) -> None:
    busy = reading.files.number("gpu_busy_percent")
    if busy is None:  # tables of format 2 count in percent or in hundredths of it, depending on the chip
        busy = reading.field("average_gfx_activity", formats=(1, 3))
    reading.put("utilization", busy, reading.files.gap("gpu_busy_percent"))


def _memory_utilization(reading: AmdReading) -> None:
    busy = reading.files.number("mem_busy_percent")
    if busy is None:
        busy = reading.field("average_umc_activity", formats=(1,))
    reading.put("memory_utilization", busy, reading.files.gap("mem_busy_percent"))


def _dram(reading: AmdReading) -> None:
    table = reading.table
    used = table.number("average_umc_activity") if table is not None and _BANDWIDTH <= table.version < (2, 0) else None
    reading.put("dram_active", used)


def _video(reading: AmdReading) -> None:
    busy = reading.files.number("vcn_busy_percent")
    if busy is None and reading.table is not None and reading.table.version[0] != 2:
        table = reading.table
        engines = table.numbers("vcn_activity") or table.numbers("vcn_busy") or table.numbers("average_mm_activity")
        engines = engines or [value for part in table.partitions() for value in part["vcn_busy"]]
        busy = max(engines, default=None)
    reading.put("video_utilization", busy, reading.files.gap("vcn_busy_percent"))


def _jpeg(reading: AmdReading) -> None:
    table = reading.table
    engines = [] if table is None else table.numbers("jpeg_activity") or table.numbers("jpeg_busy")
    if not engines and table is not None:
        engines = [value for part in table.partitions() for value in part["jpeg_busy"]]
    reading.put("jpeg_utilization", round(sum(engines) / len(engines), 1) if engines else None)


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


def _window(reading: AmdReading) -> None:
    for key, file in (("bar1_used", "mem_info_vis_vram_used"), ("bar1_total", "mem_info_vis_vram_total")):
        reading.put(key, reading.files.number(file), reading.files.gap(file))


def _temperature(reading: AmdReading) -> None:
    """Read the edge sensor, or the junction on chips without one."""
    sensors = reading.sensors
    sensor = sensors.labelled("temp", "edge", "junction") or ("temp1" if sensors.has("temp1_input") else "")
    celsius = _thousandth(reading, f"{sensor}_input") if sensor else None
    if celsius is None:
        celsius = reading.field("temperature_edge", "temperature_hotspot", formats=(1,))
    if celsius is None:
        hundredths = reading.field("temperature_gfx", formats=(2, 3))
        celsius = None if hundredths is None else hundredths / 100
    reading.put("temperature", celsius, sensors.gap(f"{sensor}_input"))


def _hotspot(reading: AmdReading) -> None:
    sensor = reading.sensors.labelled("temp", "junction")
    celsius = _thousandth(reading, f"{sensor}_input") if sensor else None
    if celsius is None:
        celsius = reading.field("temperature_hotspot", formats=(1,))
    reading.put("hotspot_temperature", celsius, reading.sensors.gap(f"{sensor}_input"))


def _memory_temperature(reading: AmdReading) -> None:
    """Read the memory's sensor; 0 means that there is none. HBM has one per stack, of which the hottest counts."""
    sensor = reading.sensors.labelled("temp", "mem")
    celsius = _thousandth(reading, f"{sensor}_input") if sensor else None
    if not celsius and reading.table is not None and reading.table.version[0] == 1:
        stacks = [degrees for degrees in reading.table.numbers("temperature_hbm") if degrees]
        celsius = reading.field("temperature_mem") or max(stacks, default=None)
    reading.put("memory_temperature", celsius or None, reading.sensors.gap(f"{sensor}_input"))


def _temperature_limit(reading: AmdReading) -> None:
    sensor = reading.sensors.labelled("temp", "edge", "junction") or "temp1"
    limit = _thousandth(reading, f"{sensor}_crit")
    reading.put("temperature_limit", limit if limit and limit > 0 else None, reading.sensors.gap(f"{sensor}_crit"))


def _fan(reading: AmdReading) -> None:
    sensors = reading.sensors
    duty, most = sensors.number("pwm1"), sensors.number("pwm1_max")
    share = None if duty is None else round(100.0 * duty / (most or 255), 1)
    reading.put("fan_speed", share, sensors.gap("pwm1"))


def _fan_rpm(reading: AmdReading) -> None:
    turns = reading.sensors.number("fan1_input")
    if turns is None and not reading.apu:
        turns = reading.field("current_fan_speed", formats=(1,))
    reading.put("fan_rpm", turns, reading.sensors.gap("fan1_input"))


def _power(reading: AmdReading) -> None:
    """Read the average power, else the present one: since Linux 6.6 most chips have only one of the two files."""
    sensors = reading.sensors
    watts = None
    for file in ("power1_average", "power1_input"):
        if watts is None and sensors.has(file) and (microwatts := sensors.number(file)) is not None:
            watts = microwatts / 1e6
    if watts is None:
        watts = reading.field("curr_socket_power", "average_socket_power", formats=(1,))
    if watts is None and (milliwatts := reading.field("average_socket_power", formats=(2, 3))) is not None:
        watts = milliwatts / 1000
    reading.put("power_draw", watts, sensors.gap("power1_average", "power1_input"))


def _power_limits(reading: AmdReading) -> None:
    for key, file in (("power_limit", "power1_cap"), ("power_default_limit", "power1_cap_default")):
        if key in reading.keys:
            microwatts = reading.sensors.number(file)
            reading.put(key, microwatts / 1e6 if microwatts else None, reading.sensors.gap(file))


def _energy(reading: AmdReading) -> None:
    """Read the energy since the driver was loaded; tables before v1_4 count in units that differ from chip to chip."""
    table = reading.table
    count = table.number("energy_accumulator") if table is not None and _BANDWIDTH <= table.version < (2, 0) else None
    reading.put("energy", round(count * _JOULES, 3) if count else None)


def _clock(reading: AmdReading) -> None:
    clock = _labelled_clock(reading, "sclk")
    if clock is None:
        clock = _table_clock(reading, "gfxclk")
    if clock is None:
        clock = current_clock(reading.files.text("pp_dpm_sclk"))
    gap = reading.sensors.gap("freq1_input")
    reading.put("clock_sm", clock, gap)
    reading.put("clock_graphics", clock, gap)


def _memory_clock(reading: AmdReading) -> None:
    clock = _labelled_clock(reading, "mclk")
    if clock is None:
        clock = _table_clock(reading, "uclk")
    if clock is None:
        clock = current_clock(reading.files.text("pp_dpm_mclk"))
    reading.put("clock_memory", clock, reading.sensors.gap("freq2_input"))


def _video_clock(reading: AmdReading) -> None:
    clock = _table_clock(reading, "vclk0")
    reading.put("clock_video", current_clock(reading.files.text("pp_dpm_vclk")) if clock is None else clock)


def _highest_clocks(reading: AmdReading) -> None:
    for key, file in (("clock_sm_max", "pp_dpm_sclk"), ("clock_memory_max", "pp_dpm_mclk")):
        if key in reading.keys:
            reading.put(key, highest_clock(reading.files.text(file)) or None, reading.files.gap(file))


def _replays(reading: AmdReading) -> None:
    count = reading.files.number("pcie_replay_count")
    if count is None:
        count = reading.field("pcie_replay_count_acc", formats=(1,))
    reading.put("pcie_replays", count, reading.files.gap("pcie_replay_count"))


def _xgmi(reading: AmdReading) -> None:
    """Read the bytes moved over all XGMI links, as counters timed by the firmware's own clock."""
    table = reading.table
    ticks = None if table is None else table.number("firmware_timestamp")
    for key, name in (("xgmi_rx", "xgmi_read_data_acc"), ("xgmi_tx", "xgmi_write_data_acc")):
        links = [] if table is None else table.numbers(name)
        counter = Counter(sum(links), ticks * _TICK, 1000.0) if links and ticks else None
        reading.count(key, counter if counter is not None and reading.field("xgmi_link_width") else None)


def _partition_mode(reading: AmdReading) -> None:
    modes = [reading.files.text(f"current_{kind}_partition") for kind in ("compute", "memory")]
    known = [mode for mode in modes if mode and mode.isalnum() and len(mode) < 8]
    reading.put("partition_mode", "/".join(known) or None, reading.files.gap("current_compute_partition"))


def _labelled_clock(reading: AmdReading, label: str) -> float | None:
    sensor = reading.sensors.labelled("freq", label)
    hertz = reading.sensors.number(f"{sensor}_input") if sensor else None
    return None if hertz is None else hertz / 1e6


def _table_clock(reading: AmdReading, name: str) -> float | None:
    """Return a clock of the table, of several the fastest: what runs now, else the average."""
    table = reading.table
    if table is None:
        return None
    return max(table.numbers(f"current_{name}") or table.numbers(f"average_{name}"), default=None)


def _thousandth(reading: AmdReading, file: str) -> float | None:
    value = reading.sensors.number(file)
    return None if value is None else value / 1000


def link_of_table(reading: AmdReading) -> tuple[int | None, int | None]:
    """Return generation and lanes of the PCIe link as the firmware sees it."""
    speed, lanes = reading.field("pcie_link_speed", formats=(1,)), reading.field("pcie_link_width", formats=(1,))
    return (generation(speed / 10) if speed else None), lanes if lanes in LANES else None


READERS: tuple[tuple[frozenset[str], Callable[[AmdReading], None]], ...] = (
    (frozenset({"utilization"}), _utilization),
    (frozenset({"memory_utilization"}), _memory_utilization),
    (frozenset({"dram_active"}), _dram),
    (frozenset({"video_utilization"}), _video),
    (frozenset({"jpeg_utilization"}), _jpeg),
    (frozenset({"memory_used", "memory_total", "memory_free"}), _memory),
    (frozenset({"bar1_used", "bar1_total"}), _window),
    (frozenset({"temperature"}), _temperature),
    (frozenset({"hotspot_temperature"}), _hotspot),
    (frozenset({"memory_temperature"}), _memory_temperature),
    (frozenset({"temperature_limit"}), _temperature_limit),
    (frozenset({"fan_speed"}), _fan),
    (frozenset({"fan_rpm"}), _fan_rpm),
    (frozenset({"power_draw"}), _power),
    (frozenset({"power_limit", "power_default_limit"}), _power_limits),
    (frozenset({"energy"}), _energy),
    (frozenset({"clock_sm", "clock_graphics"}), _clock),
    (frozenset({"clock_memory"}), _memory_clock),
    (frozenset({"clock_video"}), _video_clock),
    (frozenset({"clock_sm_max", "clock_memory_max"}), _highest_clocks),
    (frozenset({"pcie_replays"}), _replays),
    (frozenset({"xgmi_rx", "xgmi_tx"}), _xgmi),
    (frozenset({"partition_mode"}), _partition_mode),
    (frozenset({"ecc_corrected", "ecc_uncorrected", "retired_pages_uncorrected"}), read_errors),
)


class AmdReading:
    """The keys that are wanted, and where they come from: `files` of the device, `sensors`, and the firmware's `table`."""

    def __init__(self, sample: DeviceSample, keys: Key, files: Folder, sensors: Sensors, apu: bool) -> None:
        self.sample = sample
        self.keys = keys
        self.files = files
        self.sensors = sensors
        self.apu = apu

    @cached_attribute
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
