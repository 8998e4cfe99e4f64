"""`gpu_metrics`: one read of a table that the GPU's firmware keeps, decoded by its version, and the throttle reasons in it.

The layouts are those of the kernel's kgd_pp_interface.h, one line each: offsets follow from C's rules. A field is its name, its type
(u8 u16 u32 u64) and, for an array, its length. Unused fields are listed too: the offsets of those after them depend on them.
A field of all ones means that this chip does not have it; so does a field beyond the size the table claims.
"""

from __future__ import annotations

from ...value import Value

_SIZES = {"u8": 1, "u16": 2, "u32": 4, "u64": 8}
HEADER = 4  # u16 structure_size, u8 format_revision, u8 content_revision

_V1_TEMPERATURES = (
    "temperature_edge temperature_hotspot temperature_mem temperature_vrgfx temperature_vrsoc temperature_vrmem"
)
_V1_ACTIVITY = "average_gfx_activity average_umc_activity average_mm_activity average_socket_power"
_V1_CLOCKS = (
    "average_gfxclk average_socclk average_uclk average_vclk0 average_dclk0 average_vclk1 average_dclk1"
    " current_gfxclk current_socclk current_uclk current_vclk0 current_dclk0 current_vclk1 current_dclk1"
)
_V1_1 = (
    f"{_V1_TEMPERATURES} {_V1_ACTIVITY} energy_accumulator:u64 system_clock_counter:u64 {_V1_CLOCKS} throttle_status:u32"
    " current_fan_speed pcie_link_width pcie_link_speed padding gfx_activity_acc:u32 mem_activity_acc:u32 temperature_hbm:u16:4"
)
_V1_2 = f"{_V1_1} firmware_timestamp:u64"
_SOCKET = (
    "temperature_hotspot temperature_mem temperature_vrsoc curr_socket_power average_gfx_activity average_umc_activity"
)
_LINKS = "pcie_link_width pcie_link_speed xgmi_link_width xgmi_link_speed gfx_activity_acc:u32 mem_activity_acc:u32"
_PCIE = (
    "pcie_bandwidth_acc:u64 pcie_bandwidth_inst:u64 pcie_l0_to_recov_count_acc:u64 pcie_replay_count_acc:u64"
    " pcie_replay_rover_count_acc:u64"
)
_NAKS = "pcie_nak_sent_count_acc:u32 pcie_nak_rcvd_count_acc:u32"
_XGMI = "xgmi_read_data_acc:u64:8 xgmi_write_data_acc:u64:8"
_SOCKET_CLOCKS = "current_gfxclk:u16:8 current_socclk:u16:4 current_vclk0:u16:4 current_dclk0:u16:4 current_uclk"
_RESIDENCIES = (
    "accumulation_counter:u32 prochot_residency_acc:u32 ppt_residency_acc:u32 socket_thm_residency_acc:u32"
    " vr_thm_residency_acc:u32 hbm_thm_residency_acc:u32 gfxclk_lock_status:u32"
)
_V1_4_MIDDLE = "energy_accumulator:u64 system_clock_counter:u64 throttle_status:u32 gfxclk_lock_status:u32"
_V1_7 = (
    f"{_SOCKET} mem_max_bandwidth:u64 energy_accumulator:u64 system_clock_counter:u64 {_RESIDENCIES} {_LINKS} {_PCIE} {_NAKS}"
    f" {_XGMI} xgmi_link_status:u16:8 padding firmware_timestamp:u64 {_SOCKET_CLOCKS} num_partition"
)
_V2_TEMPERATURES = "temperature_gfx temperature_soc temperature_core:u16:8 temperature_l3:u16:2"
_V2_POWER = "average_socket_power average_cpu_power average_soc_power average_gfx_power average_core_power:u16:8"
_V2_CLOCKS = (
    "average_gfxclk average_socclk average_uclk average_fclk average_vclk0 average_dclk0 current_gfxclk current_socclk"
    " current_uclk current_fclk current_vclk0 current_dclk0 current_coreclk:u16:8 current_l3clk:u16:2 throttle_status:u32 fan_pwm"
)
_V2_1 = (
    f"{_V2_TEMPERATURES} average_gfx_activity average_mm_activity system_clock_counter:u64 {_V2_POWER} {_V2_CLOCKS}"
    " padding:u16:3"
)
_V2_2 = f"{_V2_1} indep_throttle_status:u64"
_V2_3 = f"{_V2_2} average_temperature_gfx average_temperature_soc average_temperature_core:u16:8 average_temperature_l3:u16:2"

_DECLARED = {
    (1, 0): f"system_clock_counter:u64 {_V1_TEMPERATURES} {_V1_ACTIVITY} energy_accumulator:u32 {_V1_CLOCKS}"
    " throttle_status:u32 current_fan_speed pcie_link_width:u8 pcie_link_speed:u8",
    (1, 1): _V1_1,
    (1, 2): _V1_2,
    (1, 3): f"{_V1_2} voltage_soc voltage_gfx voltage_mem padding1 indep_throttle_status:u64",
    (1, 4): f"{_SOCKET} vcn_activity:u16:4 {_V1_4_MIDDLE} {_LINKS} {_PCIE} {_XGMI}"
    f" firmware_timestamp:u64 {_SOCKET_CLOCKS} padding",
    (1, 5): f"{_SOCKET} vcn_activity:u16:4 jpeg_activity:u16:32 {_V1_4_MIDDLE} {_LINKS} {_PCIE} {_NAKS} {_XGMI}"
    f" firmware_timestamp:u64 {_SOCKET_CLOCKS} padding",
    (1, 6): f"{_SOCKET} energy_accumulator:u64 system_clock_counter:u64 {_RESIDENCIES} {_LINKS} {_PCIE} {_NAKS} {_XGMI}"
    f" firmware_timestamp:u64 {_SOCKET_CLOCKS} num_partition",
    (1, 7): _V1_7,
    (1, 8): _V1_7,
    (2, 0): f"system_clock_counter:u64 {_V2_TEMPERATURES} average_gfx_activity average_mm_activity {_V2_POWER}"
    f" {_V2_CLOCKS} padding",
    (2, 1): _V2_1,
    (2, 2): _V2_2,
    (2, 3): _V2_3,
    (2, 4): f"{_V2_3} average_cpu_voltage average_soc_voltage average_gfx_voltage average_cpu_current"
    " average_soc_current average_gfx_current",
    (3, 0): "temperature_gfx temperature_soc temperature_core:u16:16 temperature_skin average_gfx_activity vcn_activity"
    " average_ipu_activity:u16:8 average_core_c0_activity:u16:16 average_dram_reads average_dram_writes average_ipu_reads"
    " average_ipu_writes system_clock_counter:u64 average_socket_power:u32 average_ipu_power average_apu_power:u32"
    " average_gfx_power:u32 average_dgpu_power:u32 average_all_core_power:u32 average_core_power:u16:16 average_sys_power"
    " stapm_power_limit current_stapm_power_limit average_gfxclk average_socclk average_vpeclk average_ipuclk average_fclk"
    " average_vclk0 average_uclk average_mpipu current_coreclk:u16:16 current_core_maxfreq current_gfx_maxfreq"
    " throttle_residency_prochot:u32 throttle_residency_spl:u32 throttle_residency_fppt:u32 throttle_residency_sppt:u32"
    " throttle_residency_thm_core:u32 throttle_residency_thm_gfx:u32 throttle_residency_thm_soc:u32 time_filter_alphavalue:u32",
}
# What follows these fields in v1_6 to v1_8: statistics of 8 partitions. The kernel gave v1_8 two sizes under one number, so the
# size of one partition's part follows from the size of the whole; by that size, where its JPEG and VCN engines are.
PARTITIONED = frozenset({(1, 6), (1, 7), (1, 8)})
PARTITIONS = 8
PARTITION_FIELDS = {
    168: "gfx_busy_inst:u32:8 jpeg_busy:u16:32 vcn_busy:u16:4 gfx_busy_acc:u64:8",
    232: "gfx_busy_inst:u32:8 jpeg_busy:u16:32 vcn_busy:u16:4 gfx_busy_acc:u64:8",
    376: "gfx_busy_inst:u32:8 jpeg_busy:u16:40 vcn_busy:u16:4 gfx_busy_acc:u64:8",
    440: "gfx_busy_inst:u32:8 jpeg_busy:u16:40 vcn_busy:u16:4 gfx_busy_acc:u64:8",
}
# v1_9 has no layout: each attribute carries its id, type, unit and length. The ids in order, as far as they are read here.
ATTRIBUTES = (
    "temperature_hotspot", "temperature_mem", "temperature_vrsoc", "curr_socket_power", "average_gfx_activity",
    "average_umc_activity", "mem_max_bandwidth", "energy_accumulator", "system_clock_counter", "accumulation_counter",
    "prochot_residency_acc", "ppt_residency_acc", "socket_thm_residency_acc", "vr_thm_residency_acc",
    "hbm_thm_residency_acc", "gfxclk_lock_status", "pcie_link_width", "pcie_link_speed", "xgmi_link_width",
    "xgmi_link_speed", "gfx_activity_acc", "mem_activity_acc", "pcie_bandwidth_acc", "pcie_bandwidth_inst",
    "pcie_l0_to_recov_count_acc", "pcie_replay_count_acc", "pcie_replay_rover_count_acc", "pcie_nak_sent_count_acc",
    "pcie_nak_rcvd_count_acc", "xgmi_read_data_acc", "xgmi_write_data_acc", "xgmi_link_status", "firmware_timestamp",
    "current_gfxclk", "current_socclk", "current_vclk0", "current_dclk0", "current_uclk", "num_partition",
    "pcie_lc_perf_other_end_recovery", "gfx_busy_inst", "jpeg_busy", "vcn_busy", "gfx_busy_acc",
)  # fmt: skip


class StructField(Value):
    """Where a field is: its offset, the bytes of one element, and how many there are; 0 means that it is no array."""

    offset: int
    size: int
    count: int


class StructLayout:
    """The fields of one version, and the bytes they take."""

    __slots__ = ("fields", "size")

    def __init__(self, declared: str, start: int = HEADER) -> None:
        self.fields: dict[str, StructField] = {}
        offset = start
        for declaration in declared.split():
            name, _, kind = declaration.partition(":")
            word, _, length = kind.partition(":")
            size, count = _SIZES[word or "u16"], int(length or 0)
            offset = -(-offset // size) * size
            self.fields[name] = StructField(offset, size, count)
            offset += size * (count or 1)
        self.size = offset


_LAYOUTS: dict[tuple[int, int], StructLayout] = {}
_PARTITION_LAYOUTS: dict[int, StructLayout] = {}


def layout_of(version: tuple[int, int]) -> StructLayout | None:
    """Return the layout of a version; None for one that is not known."""
    if version not in _LAYOUTS and version in _DECLARED:
        _LAYOUTS[version] = StructLayout(_DECLARED[version])
    return _LAYOUTS.get(version)


def partition_layout(size: int) -> StructLayout | None:
    """Return the layout of one partition's statistics by their size; None for a size that is not known."""
    if size not in _PARTITION_LAYOUTS and size in PARTITION_FIELDS:
        _PARTITION_LAYOUTS[size] = StructLayout(PARTITION_FIELDS[size], 0)
    return _PARTITION_LAYOUTS.get(size)


_TYPE_SIZES = (1, 1, 2, 2, 4, 4, 8, 8)  # of the types an attribute of v1_9 can have: u8 s8 u16 s16 u32 s32 u64 s64
_MOST_ATTRIBUTES = 512


class MetricsTable:
    """One decoded table; `version` is (1, 3) for v1_3. Values are as the firmware has them: units differ between versions."""

    __slots__ = ("_attributes", "_content", "_fields", "version")

    def __init__(self, content: bytes, version: tuple[int, int]) -> None:
        self._content = content
        self.version = version
        layout = layout_of(version)
        self._fields: dict[str, StructField] = layout.fields if layout is not None else {}
        self._attributes: dict[str, list[int]] = _attributes(content) if layout is None else {}

    def number(self, *names: str) -> int | None:
        """Return the first of these fields that the table has; of an array, its first valid element."""
        for name in names:
            if found := self.numbers(name):
                return found[0]
        return None

    def numbers(self, name: str) -> list[int]:
        """Return the valid elements of a field."""
        if name in self._attributes:
            return self._attributes[name]
        field = self._fields.get(name)
        return [] if field is None else _valid(self._content, field.offset, field.size, field.count or 1)

    def partitions(self) -> list[dict[str, list[int]]]:
        """Return, for each partition in use, its valid busy figures by name; nothing where the table has none."""
        layout = layout_of(self.version)
        count = self.number("num_partition") or 0
        if layout is None or self.version not in PARTITIONED or not 0 < count <= PARTITIONS:
            return []
        start = -(-layout.size // 8) * 8
        size = (len(self._content) - start - 8) // PARTITIONS  # 8: the last counter and its padding
        part = partition_layout(size)
        if part is None:
            return []
        return [
            {name: _valid(self._content, start + at * size + field.offset, field.size, field.count)
             for name, field in part.fields.items()}
            for at in range(count)
        ]  # fmt: skip


def parse_table(content: bytes | None) -> MetricsTable | None:
    """Decode a table; None for one that is cut short or of a version that is not known."""
    if content is None or len(content) < HEADER:
        return None
    size, version = int.from_bytes(content[:2], "little"), (content[2], content[3])
    if size > len(content):
        return None
    if version == (1, 9):
        return MetricsTable(content[:size] if size > HEADER else content, version)
    layout = layout_of(version)
    if layout is None or size < layout.size:
        return None
    return MetricsTable(content[:size], version)


def _valid(content: bytes, offset: int, size: int, count: int, signed: bool = False) -> list[int]:
    part = content[offset : offset + size * count]
    elements = [part[at : at + size] for at in range(0, len(part) - size + 1, size)]
    nothing = b"\xff" * size
    return [int.from_bytes(element, "little", signed=signed) for element in elements if element != nothing]


def _attributes(content: bytes) -> dict[str, list[int]]:
    """Walk the attributes of v1_9: a 64-bit word describes the values that follow it."""
    count = int.from_bytes(content[4:8], "little", signed=True)
    found: dict[str, list[int]] = {}
    at = 8
    for _ in range(min(count, _MOST_ATTRIBUTES)):
        word = int.from_bytes(content[at : at + 8], "little")
        number, kind, instances = word >> 10 & 0x3FF, word >> 20 & 0xF, word & 0x3FF
        at += 8
        if kind >= len(_TYPE_SIZES) or at > len(content):
            break
        size = _TYPE_SIZES[kind]
        if at + size * instances > len(content):
            break
        if number < len(ATTRIBUTES):
            found[ATTRIBUTES[number]] = _valid(content, at, size, instances, kind % 2 == 1)
        at += size * instances
    return found


_POWER, _CURRENT, _HEAT, _HARDWARE = "sw_power_cap", "current_limit", "sw_thermal_slowdown", "hw_thermal_slowdown"
# The bits of indep_throttle_status, which are the same on all chips (swsmu/inc/amdgpu_smu.h).
_BITS = (
    (range(8), _POWER),
    (range(16, 24), _CURRENT),
    (range(32, 44), _HEAT),
    (range(44, 48), _HARDWARE),  # VRHOT and PROCHOT: a signal from outside the chip
)
# Counters of the time in which a limit was in force; one that grew since the sample before was in force in between.
_THROTTLE_TIMES = {
    "prochot_residency_acc": _HARDWARE, "ppt_residency_acc": _POWER, "socket_thm_residency_acc": _HEAT,
    "vr_thm_residency_acc": _HEAT, "hbm_thm_residency_acc": _HEAT, "throttle_residency_prochot": _HARDWARE,
    "throttle_residency_spl": _POWER, "throttle_residency_fppt": _POWER, "throttle_residency_sppt": _POWER,
    "throttle_residency_thm_core": _HEAT, "throttle_residency_thm_gfx": _HEAT, "throttle_residency_thm_soc": _HEAT,
}  # fmt: skip


class Throttle:
    """What holds one GPU's clocks down; remembers the counters of the sample before."""

    __slots__ = "_before"

    def __init__(self) -> None:
        self._before: dict[str, int] = {}

    def words(self, table: MetricsTable, busy: float | None) -> tuple[str, ...] | None:
        """Return the active reasons; None if the table has none or a second sample is needed."""
        status = table.number("indep_throttle_status")
        if status is not None:
            return _decoded(status) if busy != 0 else ()  # an idle GPU may leave bits of its last work standing
        counts = {name: count for name in _THROTTLE_TIMES if (count := table.number(name)) is not None}
        return self._grown(counts)

    def counts(self, table: MetricsTable) -> bool:
        """Return whether the reasons come from counters, which need two samples."""
        return any(table.number(name) is not None for name in _THROTTLE_TIMES)

    def _grown(self, counts: dict[str, int]) -> tuple[str, ...] | None:
        before, self._before = self._before, counts
        if not counts or not before:
            return None
        grown = [
            word
            for name, word in _THROTTLE_TIMES.items()
            if counts.get(name, 0) > before.get(name, counts.get(name, 0))
        ]
        return tuple(dict.fromkeys(grown))


def _decoded(status: int) -> tuple[str, ...]:
    return tuple(word for bits, word in _BITS if any(status >> bit & 1 for bit in bits))
