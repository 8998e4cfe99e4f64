"""The log of a GPU: what nvidia-smi -q writes, in its order, its words and its tags."""

from __future__ import annotations

from .field import MIB, enabled, microseconds, reason, spelt, switch, whole, yes
from .log_line import CLOCKS, NOTHING, PROCESSES, LogEntry

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from typing import Any

# How a log writes values that a query writes otherwise: celsius, lanes and banks are given its text.
_celsius, _lanes, _banks = "{} C".format, "{}x".format, "{} bank(s)".format
_degrees, _megahertz, _watts = "{:.0f} C".format, "{:.0f} MHz".format, "{:.2f} W".format
_virtualization = spelt({"pass_through": "Pass-Through", "vgpu": "VGPU", "host_vgpu": "Host VGPU", "host_vsga": "Host VSGA"})  # fmt: skip


def _kilobytes(rate: float) -> str:
    return f"{rate / 1000:.0f} KB/s"


def _full_mib(count: float) -> str:
    """Write bytes as whole MiB, a started one left out."""
    return f"{count // MIB:.0f} MiB"


def _rest(total: float, used: float) -> str:
    """Write what is left of a total, so that the MiB add up."""
    return f"{total // MIB - used // MIB:.0f} MiB"


def _none_if(word: str) -> Callable[[str], str]:
    """Return what writes a list that is known to be empty by this word; otherwise nobody lists what is in it."""
    return lambda text: "None" if text == word else NOTHING


def _rows(field: str, labels: dict[str, str], form: Callable[..., str] | None = None, **more: Any) -> list[LogEntry]:
    """Return a line for each label: its tag and the name of its field, which is the tag itself where there is one word."""
    pairs = [(label, words.split()) for label, words in labels.items()]
    return [LogEntry(label, words[0], field.format(words[-1]), form, **more) for label, words in pairs]


def _keyed(form: Callable[..., str] | None, labels: dict[str, str], **more: Any) -> list[LogEntry]:
    """Return a line for each label: its tag and the keys of the catalog it is written from; without a key, nothing is known."""
    pairs = [(label, words.split()) for label, words in labels.items()]
    return [LogEntry(label, tag, form=form, keys=tuple(keys), **more) for label, (tag, *keys) in pairs]


def _group(label: str, tag: str, *entries: LogEntry, **more: Any) -> LogEntry:
    return LogEntry(label, tag, entries=entries, **more)


def _modes(label: str, tag: str, word: str, field: str, section: str = "") -> LogEntry:
    lines = _rows(f"{field}.{{}}", {"Current": f"current_{word} current", "Pending": f"pending_{word} pending"})
    return _group(label, tag, *lines, section=section)


def _samples(title: str, section: str, key: str, unit: str) -> LogEntry:
    """Return the statistics of the samples that the driver keeps; where it keeps none, nvidia-smi says Not Found."""
    digits = 2 if unit == "W" else 0

    def value(at: int) -> Callable[[Sequence[float]], str]:
        return lambda kept: f"{kept[at] if digits else int(kept[at]):.{digits}f} {unit}"

    forms: dict[str, Callable[[Sequence[float]], str]] = {
        "Duration": lambda kept: f"{kept[0]:.2f} sec",
        "Number of Samples": lambda kept: f"{kept[1]:.0f}",
        "Max": value(2),
        "Min": value(3),
        "Avg": value(4),
    }
    lines = [LogEntry(label, "", form=form, keys=(key,), missing="Not Found") for label, form in forms.items()]
    return _group(title, "", *lines, section=section, asked=True)


# fmt: off
def _errors(label: str, scope: str, *more: LogEntry) -> LogEntry:
    """Return the ECC errors since the driver was loaded or of a lifetime."""
    good, bad = f"ecc.errors.corrected.{scope}.{{}}", f"ecc.errors.uncorrected.{scope}.{{}}"
    return _group(label, scope,
        *_rows(good, {"SRAM Correctable": "sram_correctable sram"}),
        *_rows(bad, {"SRAM Uncorrectable": "sram_uncorrectable sram"}, before="Ampere"),
        *_rows(bad, {"SRAM Uncorrectable Parity": "sram_uncorrectable_parity sram.parity",
                     "SRAM Uncorrectable SEC-DED": "sram_uncorrectable_secded sram.secded"}, since="Ampere"),
        *_rows(good, {"DRAM Correctable": "dram_correctable dram"}),
        *_rows(bad, {"DRAM Uncorrectable": "dram_uncorrectable dram"}),
        *more)


def _reasons(labels: dict[str, str], deeper: bool = False) -> list[LogEntry]:
    lines = {label: f"clocks_event_reason_{name} {name}" for label, name in labels.items()}
    return _rows("clocks_event_reasons.{}", lines, deeper=deeper)


def _clocks(label: str, tag: str, field: str, clocks: str, *more: LogEntry) -> LogEntry:
    tags = {"Graphics": "graphics_clock", "SM": "sm_clock", "Memory": "mem_clock", "Video": "video_clock"}
    lines = _rows(field, {clock: f"{tags[clock]} {clock.lower()}" for clock in clocks.split()})
    return _group(label, tag, *lines, *more, section="CLOCK")


def _sources(labels: dict[str, str]) -> list[LogEntry]:
    return _rows("ecc.errors.uncorrected.aggregate.sram.{}", labels, since="Ampere")


def _retired(tag: str, field: str) -> LogEntry:
    return _group("", tag, LogEntry("", "retired_count", field), LogEntry("", "retired_pagelist", field, _none_if("0"), lists=True))


def _limits(enforced: str, power: str) -> list[LogEntry]:
    """Return the power of a GPU or of its module."""
    return [
        LogEntry("", "power_state", "pstate"),
        *_rows(f"{power}.{{}}", {"Average Power Draw": "average_power_draw draw.average",
                                 "Instantaneous Power Draw": "instant_power_draw draw.instant"}),
        LogEntry("Current Power Limit", "current_power_limit", enforced),
        *_rows(f"{power}.{{}}", {
            "Requested Power Limit": "requested_power_limit limit", "Default Power Limit": "default_power_limit default_limit",
            "Min Power Limit": "min_power_limit min_limit", "Max Power Limit": "max_power_limit max_limit"}),
    ]


def _memory(section: str = "") -> list[LogEntry]:
    """Return the memory of a GPU or an instance, and its BAR1 window."""
    sizes = {"Total": "total", "Reserved": "reserved", "Used": "used", "Free": "free"}
    return [
        _group("FB Memory Usage", "fb_memory_usage", *_rows("memory.{}", sizes), section=section),
        _group("BAR1 Memory Usage", "bar1_memory_usage",
            *_keyed(_full_mib, {"Total": "total bar1_total", "Used": "used bar1_used"}),
            *_keyed(_rest, {"Free": "free bar1_total bar1_used"}), section=section),
    ]


_INSTANCE = (
    *_keyed(whole, {"Index": "index index", "GPU Instance ID": "gpu_instance_id gpu_instance",
                    "Compute Instance ID": "compute_instance_id compute_instance"}),
    _group("Device Attributes", "device_attributes", _group("Shared", "shared", *_keyed(whole, {
        "Multiprocessor count": "multiprocessor_count mig_multiprocessors", "Copy Engine count": "copy_engine_count mig_copy_engines",
        "Encoder count": "encoder_count mig_encoders", "Decoder count": "decoder_count mig_decoders",
        "OFA count": "ofa_count mig_ofas", "JPG count": "jpg_count mig_jpegs"}))),
    _group("ECC Errors", "ecc_error_count",
        _group("Volatile", "volatile_count", *_keyed(whole, {"SRAM Uncorrectable": "sram_uncorrectable ecc_uncorrected"}))),
    *_memory(),
)
_ABOUT = (
    *_rows("{}", {"Product Name": "product_name name"}),
    *_keyed(None, {"Product Brand": "product_brand brand"}),
    *_keyed(lambda name: "Ada Lovelace" if name == "Ada" else name, {"Product Architecture": "product_architecture architecture"}),
    *_rows("{}", {"Display Mode": "display_mode", "Display Attached": "display_attached", "Display Active": "display_active",
                  "Persistence Mode": "persistence_mode", "Addressing Mode": "addressing_mode"}),
    _modes("MIG Mode", "mig_mode", "mig", "mig.mode"),
    _group("MIG Device", "mig_devices", *_INSTANCE, instances=True),
    *_rows("accounting.{}", {"Accounting Mode": "accounting_mode mode",
                             "Accounting Mode Buffer Size": "accounting_mode_buffer_size buffer_size"}, section="ACCOUNTING"),
    _modes("Driver Model", "driver_model", "dm", "driver_model"),
    *_rows("{}", {"Serial Number": "serial", "GPU UUID": "uuid"}),
    *_keyed(None, {"GPU PDI": "pdi pdi"}),
    *_keyed(whole, {"Minor Number": "minor_number minor_number"}),
    *_rows("{}", {"VBIOS Version": "vbios_version"}),
    *_keyed(yes, {"MultiGPU Board": "multigpu_board multi_gpu_board"}),
    *_keyed(lambda value: f"0x{int(value):x}", {"Board ID": "board_id board_id"}),
    *_keyed(None, {"Board Part Number": "board_part_number board_part_number", "GPU Part Number": "gpu_part_number chip_part_number",
                   "FRU Part Number": "gpu_fru_part_number"}),
    _group("Platform Info", "platformInfo",
        *_rows("platform.{}", {"Chassis Serial Number": "chassis_serial_number", "Slot Number": "slot_number", "Tray Index": "tray_index",
                               "Host ID": "host_id", "Peer Type": "peer_type"}, needs="platform.chassis_serial_number"),
        *_keyed(whole, {"Module Id": "module_id module_id"}),
        *_rows("platform.{}", {"GPU Fabric GUID": "gpu_fabric_guid"}, needs="platform.chassis_serial_number")),
    _group("Inforom Version", "inforom_version", *_rows("inforom.{}", {
        "Image Version": "img_version img", "OEM Object": "oem_object oem", "ECC Object": "ecc_object ecc",
        "Power Management Object": "pwr_object pwr"})),
    _group("Inforom BBX Object Flush", "inforom_bbx_flush",
        *_keyed(None, {"Latest Timestamp": "latest_timestamp", "Latest Duration": "latest_duration"})),
    _modes("GPU Operation Mode", "gpu_operation_mode", "gom", "gom"),
    LogEntry("GPU C2C Mode", "c2c_mode", "c2c.mode"),
    _group("GPU Virtualization Mode", "gpu_virtualization_mode",
        *_keyed(_virtualization, {"Virtualization Mode": "virtualization_mode virtualization_mode"}),
        *_keyed(None, {"Host VGPU Mode": "host_vgpu_mode", "vGPU Heterogeneous Mode": "vgpu_heterogeneous_mode"})),
    LogEntry("GPU Recovery Action", "gpu_recovery_action", "gpu_recovery_action"),
    *_keyed(None, {"GSP Firmware Version": "gsp_firmware_version gsp_version"}, section="GSP_FIRMWARE_VERSION"),
    _group("IBMNPU", "ibmnpu", LogEntry("Relaxed Ordering Mode", "relaxed_ordering_mode")),
)
_PCI = (
    *_rows("pci.{}", {"Bus": "pci_bus bus", "Device": "pci_device device", "Domain": "pci_domain domain",
                      "Base Classcode": "pci_base_class baseClass", "Sub Classcode": "pci_sub_class subClass",
                      "Device Id": "pci_device_id device_id"}, bare=True),
    LogEntry("Bus Id", "pci_bus_id", "pci.bus_id"),
    LogEntry("Sub System Id", "pci_sub_system_id", "pci.sub_device_id", bare=True),
    _group("GPU Link Info", "pci_gpu_link_info",
        _group("PCIe Generation", "pcie_gen", *_rows("pcie.link.gen.{}", {
            "Max": "max_link_gen max", "Current": "current_link_gen current", "Device Current": "device_current_link_gen gpucurrent",
            "Device Max": "max_device_link_gen gpumax", "Host Max": "max_host_link_gen hostmax"})),
        _group("Link Width", "link_widths",
            *_rows("pcie.link.width.{}", {"Max": "max_link_width max", "Current": "current_link_width current"}, _lanes))),
    _group("Bridge Chip", "pci_bridge_chip", *_keyed(None, {"Type": "bridge_chip_type", "Firmware": "bridge_chip_fw"})),
    *_keyed(whole, {"Replays Since Reset": "replay_counter pcie_replays",
                    "Replay Number Rollovers": "replay_rollover_counter pcie_replay_rollovers"}),
    *_keyed(_kilobytes, {"Tx Throughput": "tx_util pcie_tx", "Rx Throughput": "rx_util pcie_rx"}),
    *_keyed(None, {"Atomic Caps Outbound": "atomic_caps_outbound", "Atomic Caps Inbound": "atomic_caps_inbound"}),
)
TABLE: tuple[LogEntry, ...] = (
    *_ABOUT,
    _group("PCI", "pci", *_PCI),
    LogEntry("Fan Speed", "fan_speed", "fan.speed"),
    LogEntry("Performance State", "performance_state", "pstate", section="PERFORMANCE"),
    _group("Clocks Event Reasons", "clocks_event_reasons",
        *_reasons({"Idle": "gpu_idle", "Applications Clocks Setting": "applications_clocks_setting", "SW Power Cap": "sw_power_cap",
                   "HW Slowdown": "hw_slowdown"}),
        *_reasons({"HW Thermal Slowdown": "hw_thermal_slowdown", "HW Power Brake Slowdown": "hw_power_brake_slowdown"}, deeper=True),
        *_reasons({"Sync Boost": "sync_boost", "SW Thermal Slowdown": "sw_thermal_slowdown"}),
        *_keyed(reason("display_clock_setting"), {
            "Display Clock Setting": "clocks_event_reason_display_clocks_setting throttle_reasons"}),
        section="PERFORMANCE"),
    _group("Clocks Event Reasons Counters", "clocks_event_reasons_counters", *_rows("clocks_event_reasons_counters.{}", {
        "SW Power Capping": "clocks_event_reasons_counters_sw_power_cap sw_power_cap",
        "Sync Boost": "clocks_event_reasons_counters_sync_boost sync_boost",
        "SW Thermal Slowdown": "clocks_event_reasons_counters_sw_therm_slowdown sw_thermal_slowdown",
        "HW Thermal Slowdown": "clocks_event_reasons_counters_hw_therm_slowdown hw_thermal_slowdown",
        "HW Power Braking": "clocks_event_reasons_counters_hw_power_brake hw_power_brake_slowdown"}), section="PERFORMANCE"),
    *_keyed(enabled, {"Sparse Operation Mode": "sparse_operation_mode sparse_operation_mode"}, section="PERFORMANCE"),
    *_memory("MEMORY"),
    _group("Conf Compute Protected Memory Usage", "cc_protected_memory_usage",
        *_rows("protected_memory.{}", {"Total": "total", "Used": "used", "Free": "free"}), section="MEMORY"),
    LogEntry("Compute Mode", "compute_mode", "compute_mode", section="COMPUTE"),
    _group("Utilization", "utilization", *_rows("utilization.{}", {
        "GPU": "gpu_util gpu", "Memory": "memory_util memory", "Encoder": "encoder_util encoder", "Decoder": "decoder_util decoder",
        "JPEG": "jpeg_util jpeg", "OFA": "ofa_util ofa"}), section="UTILIZATION"),
    _samples("GPU Utilization Samples", "UTILIZATION", "utilization_samples", "%"),
    _samples("Memory Utilization Samples", "UTILIZATION", "memory_utilization_samples", "%"),
    _samples("ENC Utilization Samples", "UTILIZATION", "encoder_samples", "%"),
    _samples("DEC Utilization Samples", "UTILIZATION", "decoder_samples", "%"),
    _samples("JPG Utilization Samples", "UTILIZATION", "jpeg_samples", "%"),
    _samples("OFA Utilization Samples", "UTILIZATION", "ofa_samples", "%"),
    _group("Encoder Stats", "encoder_stats", *_rows("encoder.stats.{}", {
        "Active Sessions": "session_count sessionCount", "Average FPS": "average_fps averageFps",
        "Average Latency": "average_latency averageLatency"}), section="ENCODER_STATS"),
    _group("FBC Stats", "fbc_stats",
        *_keyed(whole, {"Active Sessions": "session_count fbc_sessions", "Average FPS": "average_fps fbc_frame_rate"}),
        *_keyed(microseconds, {"Average Latency": "average_latency fbc_latency"}), section="FBC_STATS"),
    _modes("DRAM Encryption Mode", "dram_encryption_mode", "dram_encryption", "dramEncryption.mode"),
    _modes("ECC Mode", "ecc_mode", "ecc", "ecc.mode", "ECC"),
    _group("ECC Errors", "ecc_errors",
        _errors("Volatile", "volatile"),
        _errors("Aggregate", "aggregate", *_sources({"SRAM Threshold Exceeded": "sram_threshold_exceeded thresholdExceeded"})),
        _group("Aggregate Uncorrectable SRAM Sources", "aggregate_uncorrectable_sram_sources", *_sources({
            "SRAM L2": "sram_l2 l2", "SRAM SM": "sram_sm sm", "SRAM Microcontroller": "sram_microcontroller mcu",
            "SRAM PCIE": "sram_pcie pcie", "SRAM Other": "sram_other other"}), since="Ampere"),
        *_keyed(yes, {"Channel Repair Pending": "channel_repair_pending repair_channel_pending",
                      "TPC Repair Pending": "tpc_repair_pending repair_tpc_pending",
                      "Unrepairable Memory": "unrepairable_memory memory_unrepairable"}, since="Ampere"),
        section="ECC"),
    _group("Retired Pages", "retired_pages",
        LogEntry("Single Bit ECC", "", "retired_pages.single_bit_ecc.count"),
        LogEntry("Double Bit ECC", "", "retired_pages.double_bit.count"),
        LogEntry("Pending Page Blacklist", "", "retired_pages.pending"),
        _retired("multiple_single_bit_retirement", "retired_pages.single_bit_ecc.count"),
        _retired("double_bit_retirement", "retired_pages.double_bit.count"),
        LogEntry("", "pending_blacklist", "retired_pages.pending"),
        LogEntry("", "pending_retirement", "retired_pages.pending"),
        section="PAGE_RETIREMENT"),
    _group("Remapped Rows", "remapped_rows",
        *_rows("remapped_rows.{}", {
            "Correctable Error": "remapped_row_corr correctable",
            "Inactive Correctable Error": "remapped_row_corr_inactive correctable_inactive",
            "Uncorrectable Error": "remapped_row_unc uncorrectable",
            "Inactive Uncorrectable Error": "remapped_row_unc_inactive uncorrectable_inactive",
            "Pending": "remapped_row_pending pending", "Remapping Failure Occurred": "remapped_row_failure failure"}),
        _group("Bank Remap Availability Histogram", "row_remapper_histogram", *_rows("remapped_rows.histogram.{}", {
            label: f"row_remapper_histogram_{label.lower()} {label.lower()}" for label in ("Max", "High", "Partial", "Low", "None")},
            _banks), folds=True),
        section="ROW_REMAPPER", folds=True),
    _group("Temperature", "temperature",
        *_rows("temperature.{}", {"GPU Current Temp": "gpu_temp gpu", "GPU T.Limit Temp": "gpu_temp_tlimit gpu.tlimit"}, _celsius),
        *_keyed(_degrees, {
            "GPU Shutdown T.Limit Temp": "gpu_temp_max_tlimit_threshold temperature_margin_shutdown",
            "GPU Slowdown T.Limit Temp": "gpu_temp_slow_tlimit_threshold temperature_margin_slowdown",
            "GPU Max Operating T.Limit Temp": "gpu_temp_max_gpu_tlimit_threshold temperature_margin_gpu"}, since="Ada"),
        *_keyed(_degrees, {
            "GPU Shutdown Temp": "gpu_temp_max_threshold temperature_shutdown",
            "GPU Slowdown Temp": "gpu_temp_slow_threshold temperature_limit",
            "GPU Max Operating Temp": "gpu_temp_max_gpu_threshold temperature_max"}, before="Ada"),
        *_keyed(_degrees, {"GPU Target Temperature": "gpu_target_temperature temperature_target"}),
        LogEntry("Memory Current Temp", "memory_temp", "temperature.memory", _celsius),
        *_keyed(_degrees, {
            "Memory Max Operating T.Limit Temp": "gpu_temp_max_mem_tlimit_threshold temperature_margin_memory"}, since="Ada"),
        *_keyed(_degrees, {"Memory Max Operating Temp": "gpu_temp_max_mem_threshold memory_temperature_max"}, before="Ada"),
        section="TEMPERATURE"),
    _group("Supported GPU_TARGET_TEMP", "supported_gpu_target_temp",
        *_keyed(_degrees, {"Min": "gpu_target_temp_min temperature_target_min", "Max": "gpu_target_temp_max temperature_target_max"}),
        section="SUPPORTED_GPU_TARGET_TEMP", asked=True),
    _group("GPU Power Readings", "gpu_power_readings", *_limits("enforced.power.limit", "power"), section="POWER"),
    _samples("Power Samples", "POWER", "power_samples", "W"),
    _group("GPU Memory Power Readings ", "gpu_memory_power_readings",  # the space is nvidia-smi's
        *_keyed(_watts, {"Average Power Draw": "average_power_draw memory_power_draw"}),
        LogEntry("Instantaneous Power Draw", "instant_power_draw"), section="POWER"),
    _group("Module Power Readings", "module_power_readings", *_limits("module.enforced.power.limit", "module.power"), section="POWER"),
    LogEntry("Power Smoothing", "power_smoothing", section="POWER_SMOOTHING"),
    _group("Workload Power Profiles", "power_profiles", *_keyed(None, {
        "Requested Profiles": "power_profile_requested_profiles", "Enforced Profiles": "power_profile_enforced_profiles"}),
        section="POWER_PROFILES"),
    _clocks("Clocks", "clocks", "clocks.current.{}", "Graphics SM Memory Video"),
    _clocks("Applications Clocks", "applications_clocks", "clocks.applications.{}", "Graphics Memory"),
    _clocks("Default Applications Clocks", "default_applications_clocks", "clocks.default_applications.{}", "Graphics Memory"),
    _group("Deferred Clocks", "deferred_clocks", LogEntry("Memory", "mem_clock"), section="CLOCK"),
    _clocks("Max Clocks", "max_clocks", "clocks.max.{}", "Graphics SM Memory",
        *_keyed(_megahertz, {"Video": "video_clock clock_video_max"})),
    _group("Max Customer Boost Clocks", "max_customer_boost_clocks",
        *_keyed(_megahertz, {"Graphics": "graphics_clock clock_graphics_boost"}), section="CLOCK"),
    _samples("SM Clock Samples", "CLOCK", "clock_sm_samples", "MHz"),
    _samples("Memory Clock Samples", "CLOCK", "clock_memory_samples", "MHz"),
    _group("Clock Policy", "clock_policy", *_keyed(switch("On", "Off"), {
        "Auto Boost": "auto_boost auto_boost", "Auto Boost Default": "auto_boost_default auto_boost_default"}), section="CLOCK"),
    _group("Fabric", "fabric",
        *_rows("fabric.{}", {"State": "state", "Status": "status", "CliqueId": "cliqueId", "ClusterUUID": "clusterUuid"}),
        _group("Health", "health", *_rows("fabric.health.{}", {
            "Summary": "summary", "Bandwidth": "bandwidth", "Route Recovery in progress": "route_recovery_in_progress",
            "Route Unhealthy": "route_unhealthy", "Access Timeout Recovery": "access_timeout_recovery",
            "Incorrect Configuration": "incorrect_configuration", "Partition Assigned": "partition_assigned"}))),
    LogEntry("Supported Clocks", "supported_clocks", keys=("clocks_supported",), records=CLOCKS, section="SUPPORTED_CLOCKS", asked=True),
    LogEntry("Processes", "processes", records=PROCESSES, lists=True, section="PIDS"),
    LogEntry("Accounted Processes", "accounted_processes", "accounting.mode", _none_if("Disabled"), lists=True, section="ACCOUNTING",
             asked=True),
    _group("Capabilities", "capabilities", *_keyed(switch("enabled", "disabled"), {"EGM": "egm egm"})),
)
# fmt: on
