"""Every field of --query-gpu and --query-compute-apps, one line each, in nvidia-smi's words and order."""

from __future__ import annotations

from ...errors import UnknownMetric
from ...model.catalog import GPU_METRICS, PROCESS_METRICS
from ...model.select import did_you_mean
from .field import (
    CountField,
    Field,
    ProcessField,
    SnapshotField,
    addressing_mode,
    bandwidth,
    compute_mode,
    enabled,
    field_of,
    hexadecimal,
    mask,
    mib,
    microseconds,
    misconfiguration,
    peer,
    program,
    pstate,
    reason,
    recovery,
    status,
    time_stamp,
    titled,
    truth,
    validity,
    watts,
    whole,
    yes,
)

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from ...model.metric import Metric

_BARE = "N/A"
_DEPRECATED = "[Requested functionality has been deprecated]"
_REASONS = (
    "gpu_idle", "applications_clocks_setting", "sw_power_cap", "hw_slowdown", "hw_thermal_slowdown",
    "hw_power_brake_slowdown", "sw_thermal_slowdown", "sync_boost",
)  # fmt: skip
_ECC_PLACES = {
    "device_memory": "dram", "dram": "dram", "register_file": "registers", "l1_cache": "l1", "l2_cache": "l2",
    "texture_memory": "texture", "cbu": "cbu", "sram": "sram",
}  # fmt: skip
_ECC_TOTALS = {
    ("corrected", "volatile"): "ecc_corrected",
    ("corrected", "aggregate"): "ecc_corrected_aggregate",
    ("uncorrected", "volatile"): "ecc_uncorrected",
    ("uncorrected", "aggregate"): "ecc_uncorrected_aggregate",
}
_VGPU_DEVICE = (
    "fractional_multiVgpu", "heterogeneous_timeSlice_profile", "heterogeneous_timeSlice_sizes",
    "homogeneous_placements", "mig_timeSlicing", "mig_timeSlicing_mode",
)  # fmt: skip
_SMOOTHING = {
    "delayed_power_smoothing_supported": "", "primary_power_floor": "W", "secondary_power_floor": "W",
    "min_primary_floor_activation_offset": "W", "min_primary_floor_activation_point": "W", "window_multiplier": "ms",
}  # fmt: skip
_SMOOTHING_PROFILE = {
    "secondary_power_floor": "W", "primary_floor_act_window_multiplier": "",
    "primary_floor_tar_window_multiplier": "", "primary_floor_act_offset": "W",
}  # fmt: skip


def _reasons() -> Iterator[Field]:
    yield _reasons_mask("supported", "throttle_reasons_supported")
    yield _reasons_mask("active", "throttle_reasons")
    for word in _REASONS:
        aliases = (f"clocks_throttle_reasons.{word}",)
        yield Field(f"clocks_event_reasons.{word}", "throttle_reasons", reason(word), aliases=aliases)


def _reasons_mask(name: str, key: str) -> Field:
    return Field(f"clocks_event_reasons.{name}", key, mask, aliases=(f"clocks_throttle_reasons.{name}",))


def _ecc() -> Iterator[Field]:
    for (word, life), total in _ECC_TOTALS.items():
        for place, key in _ECC_PLACES.items():
            yield Field(f"ecc.errors.{word}.{life}.{place}", f"ecc_{word}_{life}_{key}", whole)
        yield Field(f"ecc.errors.{word}.{life}.total", total, whole)


def _smoothing() -> Iterator[Field]:
    for name, unit in _SMOOTHING.items():
        yield Field(f"power_smoothing.{name}", "", unit=unit)
    for scope in ("curr_profile", "admin_override"):
        for name, unit in _SMOOTHING_PROFILE.items():
            yield Field(f"power_smoothing.{scope}.{name}", "", unit=unit)


def _by_name(fields: Iterable[Field]) -> dict[str, Field]:
    return {field.name: field for field in fields}


FIELDS = _by_name((
    SnapshotField("timestamp", "", time_stamp),
    Field("driver_version", "driver_version"),
    Field("vgpu_driver_capability.heterogenous_multivGPU", ""),
    CountField("count", "system_gpus"),
    Field("name", "name", aliases=("gpu_name",)),
    Field("serial", "serial", aliases=("gpu_serial",)),
    Field("uuid", "uuid", aliases=("gpu_uuid",)),
    Field("pci.bus_id", "pci_bus_id", aliases=("gpu_bus_id",)),
    Field("pci.domain", "pci_domain", hexadecimal(4)),
    Field("pci.bus", "pci_bus", hexadecimal(2)),
    Field("pci.device", "pci_device", hexadecimal(2)),
    Field("pci.baseClass", "pci_base_class", hexadecimal(1)),
    Field("pci.subClass", "pci_sub_class", hexadecimal(1)),
    Field("pci.device_id", "pci_device_id", hexadecimal(8)),
    Field("pci.sub_device_id", "pci_subsystem_id", hexadecimal(8)),
    *(Field(f"vgpu_device_capability.{name}", "") for name in _VGPU_DEVICE),
    Field("pcie.link.gen.current", "pcie_gen", whole),
    Field("pcie.link.gen.gpucurrent", "pcie_gen", whole),
    Field("pcie.link.gen.max", "pcie_gen_max", whole),
    Field("pcie.link.gen.gpumax", "pcie_gen_gpu_max", whole),
    Field("pcie.link.gen.hostmax", ""),
    Field("pcie.link.width.current", "pcie_width", whole),
    Field("pcie.link.width.max", "pcie_width_max", whole),
    Field("index", "index", whole),
    Field("display_mode", "", missing=_DEPRECATED),
    Field("display_attached", "display_attached", yes),
    Field("display_active", "display_active", enabled),
    Field("persistence_mode", "persistence_mode", enabled),
    Field("addressing_mode", "addressing_mode", addressing_mode),
    Field("accounting.mode", "accounting_mode", enabled),
    Field("accounting.buffer_size", "accounting_capacity", whole),
    Field("driver_model.current", "driver_model", str.upper),
    Field("driver_model.pending", "driver_model_pending", str.upper),
    Field("vbios_version", "vbios"),
    Field("inforom.img", "inforom_image", aliases=("inforom.image",)),
    Field("inforom.oem", "inforom_oem"),
    Field("inforom.ecc", "inforom_ecc"),
    Field("inforom.pwr", "inforom_power", aliases=("inforom.power",)),
    Field("inforom.checksum_validation", "inforom_valid", validity),
    Field("gpu_recovery_action", "recovery_action", recovery),
    Field("gom.current", "operation_mode", titled, aliases=("gpu_operation_mode.current",)),
    Field("gom.pending", "operation_mode_pending", titled, aliases=("gpu_operation_mode.pending",)),
    Field("fan.speed", "fan_speed", whole, "%"),
    Field("pstate", "pstate", pstate),
    *_reasons(),
    Field("clocks_event_reasons_counters.sw_power_cap", "throttle_time_power_cap", microseconds, "us"),
    Field("clocks_event_reasons_counters.sync_boost", "throttle_time_sync_boost", microseconds, "us"),
    Field("clocks_event_reasons_counters.sw_thermal_slowdown", "throttle_time_thermal", microseconds, "us"),
    Field("clocks_event_reasons_counters.hw_thermal_slowdown", "throttle_time_thermal_hardware", microseconds, "us"),
    Field("clocks_event_reasons_counters.hw_power_brake_slowdown", "throttle_time_power_brake", microseconds, "us"),
    Field("memory.total", "memory_total", mib, "MiB"),
    Field("memory.reserved", "memory_reserved", mib, "MiB"),
    Field("memory.used", "memory_used", mib, "MiB"),
    Field("memory.free", "memory_free", mib, "MiB"),
    Field("compute_mode", "compute_mode", compute_mode),
    Field("compute_cap", "compute_capability"),
    Field("utilization.gpu", "utilization", whole, "%"),
    Field("utilization.memory", "memory_utilization", whole, "%"),
    Field("utilization.encoder", "encoder_utilization", whole, "%"),
    Field("utilization.decoder", "decoder_utilization", whole, "%"),
    Field("utilization.jpeg", "jpeg_utilization", whole, "%"),
    Field("utilization.ofa", "ofa_utilization", whole, "%"),
    Field("encoder.stats.sessionCount", "encoder_sessions", whole),
    Field("encoder.stats.averageFps", "encoder_frame_rate", whole),
    Field("encoder.stats.averageLatency", "encoder_latency", microseconds),
    Field("dramEncryption.mode.current", "dram_encryption", enabled),
    Field("dramEncryption.mode.pending", "dram_encryption_pending", enabled),
    Field("ecc.mode.current", "ecc_mode", enabled),
    Field("ecc.mode.pending", "ecc_mode_pending", enabled),
    *_ecc(),
    Field("ecc.errors.uncorrected.volatile.sram.parity", "ecc_sram_parity_volatile", whole),
    Field("ecc.errors.uncorrected.volatile.sram.secded", "ecc_sram_secded_volatile", whole),
    Field("ecc.errors.uncorrected.aggregate.sram.parity", "ecc_sram_parity_aggregate", whole),
    Field("ecc.errors.uncorrected.aggregate.sram.secded", "ecc_sram_secded_aggregate", whole),
    Field("ecc.errors.uncorrected.aggregate.sram.thresholdExceeded", "ecc_sram_exceeded", yes),
    Field("ecc.errors.uncorrected.aggregate.sram.l2", "ecc_sram_l2", whole),
    Field("ecc.errors.uncorrected.aggregate.sram.sm", "ecc_sram_sm", whole),
    Field("ecc.errors.uncorrected.aggregate.sram.mcu", "ecc_sram_mcu", whole),
    Field("ecc.errors.uncorrected.aggregate.sram.pcie", "ecc_sram_pcie", whole),
    Field("ecc.errors.uncorrected.aggregate.sram.other", "ecc_sram_other", whole),
    Field("retired_pages.single_bit_ecc.count", "retired_pages_corrected", whole, aliases=("retired_pages.sbe",)),
    Field("retired_pages.double_bit.count", "retired_pages_uncorrected", whole, aliases=("retired_pages.dbe",)),
    Field("retired_pages.pending", "retired_pages_pending", yes),
    Field("remapped_rows.correctable", "remapped_rows_corrected", whole, aliases=("remapped_rows.sbe",)),
    Field("remapped_rows.correctable_inactive", "remapped_rows_corrected_inactive", whole),
    Field("remapped_rows.uncorrectable", "remapped_rows_uncorrected", whole, aliases=("remapped_rows.dbe",)),
    Field("remapped_rows.uncorrectable_inactive", "remapped_rows_uncorrected_inactive", whole),
    Field("remapped_rows.pending", "remapped_rows_pending", yes),
    Field("remapped_rows.failure", "remapped_rows_failed", yes),
    *(Field(f"remapped_rows.histogram.{n}", f"remap_banks_{n}", whole) for n in ("max", "high", "partial", "low", "none")),
    Field("temperature.gpu", "temperature", whole),
    Field("temperature.gpu.tlimit", "temperature_margin", whole),
    Field("temperature.memory", "memory_temperature", whole),
    Field("power.management", "power_management", enabled),
    Field("power.draw", "power_draw", watts, "W"),
    Field("power.draw.average", "power_draw_average", watts, "W", aliases=("gpu.power.draw.average",)),
    Field("power.draw.instant", "power_draw_instant", watts, "W", aliases=("gpu.power.draw.instant",)),
    Field("power.limit", "power_limit_requested", watts, "W", aliases=("gpu.power.requested_limit",), instead="power_limit"),
    Field("enforced.power.limit", "power_limit", watts, "W", aliases=("gpu.power.current_limit",)),
    Field("power.default_limit", "power_default_limit", watts, "W", aliases=("gpu.power.default_limit",)),
    Field("power.min_limit", "power_limit_min", watts, "W", aliases=("gpu.power.min_limit",)),
    Field("power.max_limit", "power_limit_max", watts, "W", aliases=("gpu.power.max_limit",)),
    Field("module.power.draw.average", "module_power_draw_average", watts, "W"),
    Field("module.power.draw.instant", "module_power_draw_instant", watts, "W"),
    Field("module.power.limit", "module_power_limit_requested", watts, "W", aliases=("module.power.requested_limit",)),
    Field("module.enforced.power.limit", "module_power_limit", watts, "W", aliases=("module.power.current_limit",)),
    Field("module.power.default_limit", "module_power_limit_default", watts, "W"),
    Field("module.power.min_limit", "module_power_limit_min", watts, "W"),
    Field("module.power.max_limit", "module_power_limit_max", watts, "W"),
    *_smoothing(),
    Field("clocks.current.graphics", "clock_graphics", whole, "MHz", aliases=("clocks.gr",)),
    Field("clocks.current.sm", "clock_sm", whole, "MHz", aliases=("clocks.sm",)),
    Field("clocks.current.memory", "clock_memory", whole, "MHz", aliases=("clocks.mem",)),
    Field("clocks.current.video", "clock_video", whole, "MHz", aliases=("clocks.video",)),
    Field("clocks.applications.graphics", "clock_graphics_application", whole, "MHz", aliases=("clocks.applications.gr",)),
    Field("clocks.applications.memory", "clock_memory_application", whole, "MHz", aliases=("clocks.applications.mem",)),
    Field("clocks.default_applications.graphics", "clock_graphics_default", whole, "MHz", aliases=("clocks.default_applications.gr",)),
    Field("clocks.default_applications.memory", "clock_memory_default", whole, "MHz", aliases=("clocks.default_applications.mem",)),
    Field("clocks.max.graphics", "clock_graphics_max", whole, "MHz", aliases=("clocks.max.gr",)),
    Field("clocks.max.sm", "clock_sm_max", whole, "MHz"),
    Field("clocks.max.memory", "clock_memory_max", whole, "MHz", aliases=("clocks.max.mem",)),
    Field("mig.mode.current", "mig_mode", enabled),
    Field("mig.mode.pending", "mig_mode_pending", enabled),
    Field("gsp.mode.current", "gsp_mode", enabled),
    Field("gsp.mode.default", "gsp_mode_default", enabled),
    Field("c2c.mode", "c2c_mode", enabled),
    Field("protected_memory.total", "memory_protected_total", mib, "MiB"),
    Field("protected_memory.used", "memory_protected_used", mib, "MiB"),
    Field("protected_memory.free", "memory_protected_free", mib, "MiB"),
    Field("fabric.state", "fabric_state", titled, missing=_BARE),
    Field("fabric.status", "fabric_status", status, missing=_BARE),
    Field("fabric.cliqueId", "fabric_clique", whole, missing=_BARE),
    Field("fabric.clusterUuid", "fabric_cluster", missing=_BARE),
    Field("fabric.health.summary", "fabric_health", titled, missing=_BARE),
    Field("fabric.health.bandwidth", "fabric_degraded", bandwidth, missing=_BARE),
    Field("fabric.health.route_recovery_in_progress", "fabric_route_recovery", truth, missing=_BARE),
    Field("fabric.health.route_unhealthy", "fabric_route_unhealthy", truth, missing=_BARE),
    Field("fabric.health.access_timeout_recovery", "fabric_access_timeout", truth, missing=_BARE),
    Field("fabric.health.incorrect_configuration", "fabric_misconfiguration", misconfiguration, missing=_BARE),
    Field("fabric.health.partition_assigned", "fabric_partition", truth, missing=_BARE),
    Field("platform.chassis_serial_number", "platform_chassis"),
    Field("platform.slot_number", "platform_slot", whole),
    Field("platform.tray_index", "platform_tray", whole),
    Field("platform.host_id", "platform_host", whole),
    Field("platform.peer_type", "platform_peer", peer),
    Field("platform.module_id", "platform_module", whole),
    Field("platform.gpu_fabric_guid", "platform_guid"),
    Field("hostname", "hostname"),
))  # fmt: skip


COMPUTE_APP_FIELDS = _by_name(
    (
        SnapshotField("timestamp", "", time_stamp),
        Field("gpu_name", "name"),
        Field("gpu_bus_id", "pci_bus_id"),
        Field("gpu_serial", "serial"),
        Field("gpu_uuid", "uuid"),
        ProcessField("pid", "pid", whole),
        ProcessField("process_name", "command", program, aliases=("name",), missing="[Not Found]", instead="name"),
        ProcessField("used_gpu_memory", "memory_used", mib, "MiB", aliases=("used_memory",)),
    )
)


def _lookup(fields: Mapping[str, Field]) -> dict[str, Field]:
    return {name.lower(): field for field in fields.values() for name in (field.name, *field.aliases)}


_FIELD_NAMES = _lookup(FIELDS)
_APP_FIELD_NAMES = _lookup(COMPUTE_APP_FIELDS)


def query_fields(query: str) -> dict[str, Field]:
    """Return the fields of one of nvidia-smi's queries, by every name it takes for them."""
    if query in ("--query-gpu", "--query-compute-apps"):
        return _FIELD_NAMES if query == "--query-gpu" else _APP_FIELD_NAMES
    from .lists import list_fields

    return list_fields(query)


def field_named(name: str) -> Field:
    """Return the field of a GPU by any of nvidia-smi's names or by a key of the catalog; raise UnknownMetric otherwise."""
    return _named(name, _FIELD_NAMES, GPU_METRICS, Field, "--help-query-gpu")


def app_field_named(name: str) -> Field:
    """Return the field of a compute process by any of nvidia-smi's names or by a key of the catalog; raise UnknownMetric otherwise."""
    return _named(name, _APP_FIELD_NAMES, PROCESS_METRICS, ProcessField, "--help-query-compute-apps")


def _named(
    name: str, fields: Mapping[str, Field], metrics: Mapping[str, Metric], kind: type[Field], option: str
) -> Field:
    word = name.strip().lower()
    if word in fields:
        return fields[word]
    if word in metrics:
        return field_of(metrics[word], kind)
    hint = did_you_mean(word, [*fields, *metrics])
    raise UnknownMetric(f"unknown field {name!r}{hint}", f"see `gpulse query {option}` and `gpulse metrics`.")


def unsupported_fields() -> list[str]:
    """Return the nvidia-smi fields for which gpulse always prints the same text."""
    return [field.name for field in FIELDS.values() if not field.key and not isinstance(field, SnapshotField)]


def help_lines(query: str = "--query-gpu") -> list[str]:
    """Return every field of a query with all its names and its meaning."""
    metrics = PROCESS_METRICS if query == "--query-compute-apps" else GPU_METRICS
    lines = [f"Fields of {query}; every key of `gpulse metrics` works, too."]
    for field in dict.fromkeys(query_fields(query).values()):
        names = " or ".join(f'"{name}"' for name in (field.name, *field.aliases))
        lines += ["", names, _help(field, metrics)]
    return lines


def _help(field: Field, metrics: Mapping[str, Metric]) -> str:
    if isinstance(field, SnapshotField):
        return "Local time of the sample, to the millisecond."
    if not field.key:
        return f"Always {field.missing}."
    return (metrics if isinstance(field, ProcessField) else GPU_METRICS)[field.key].help
