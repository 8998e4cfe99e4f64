"""Every field of --query-gpu and --query-compute-apps, in nvidia-smi's order: names and units come from the catalog."""

from __future__ import annotations

from ...errors import UnknownMetric
from ...model.catalog import GPU_METRICS, PROCESS_METRICS
from ...model.metric import Flag, Text, Words
from ...model.select import did_you_mean
from ...units import BYTES, MEGAHERTZ, PERCENT, SECOND, WATT, Unit
from . import field as forms
from .field import NOT_AVAILABLE, CountField, Field, ProcessField, SnapshotField, field_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping
    from typing import Any

    from ...model.metric import Metric

# The order of --help-query-gpu. A name that no metric of the catalog has is a field for which gpulse always prints the same.
_BEFORE_ECC_ERRORS = """
timestamp driver_version vgpu_driver_capability.heterogenous_multivGPU count name serial uuid pci.bus_id pci.domain pci.bus pci.device
pci.baseClass pci.subClass pci.device_id pci.sub_device_id vgpu_device_capability.fractional_multiVgpu
vgpu_device_capability.heterogeneous_timeSlice_profile vgpu_device_capability.heterogeneous_timeSlice_sizes
vgpu_device_capability.homogeneous_placements vgpu_device_capability.mig_timeSlicing vgpu_device_capability.mig_timeSlicing_mode
pcie.link.gen.current pcie.link.gen.gpucurrent pcie.link.gen.max pcie.link.gen.gpumax pcie.link.gen.hostmax pcie.link.width.current
pcie.link.width.max index display_mode display_attached display_active persistence_mode addressing_mode accounting.mode
accounting.buffer_size driver_model.current driver_model.pending vbios_version inforom.img inforom.oem inforom.ecc inforom.pwr
inforom.checksum_validation gpu_recovery_action gom.current gom.pending fan.speed pstate clocks_event_reasons.supported
clocks_event_reasons.active clocks_event_reasons.gpu_idle clocks_event_reasons.applications_clocks_setting
clocks_event_reasons.sw_power_cap clocks_event_reasons.hw_slowdown clocks_event_reasons.hw_thermal_slowdown
clocks_event_reasons.hw_power_brake_slowdown clocks_event_reasons.sw_thermal_slowdown clocks_event_reasons.sync_boost
clocks_event_reasons_counters.sw_power_cap clocks_event_reasons_counters.sync_boost clocks_event_reasons_counters.sw_thermal_slowdown
clocks_event_reasons_counters.hw_thermal_slowdown clocks_event_reasons_counters.hw_power_brake_slowdown memory.total memory.reserved
memory.used memory.free compute_mode compute_cap utilization.gpu utilization.memory utilization.encoder utilization.decoder
utilization.jpeg utilization.ofa encoder.stats.sessionCount encoder.stats.averageFps encoder.stats.averageLatency
dramEncryption.mode.current dramEncryption.mode.pending ecc.mode.current ecc.mode.pending
"""
_ECC_PLACES = (
    *("device_memory", "dram", "register_file", "l1_cache", "l2_cache"),
    *("texture_memory", "cbu", "sram", "total"),
)
_AFTER_ECC_ERRORS = """
ecc.errors.uncorrected.volatile.sram.parity ecc.errors.uncorrected.volatile.sram.secded ecc.errors.uncorrected.aggregate.sram.parity
ecc.errors.uncorrected.aggregate.sram.secded ecc.errors.uncorrected.aggregate.sram.thresholdExceeded
ecc.errors.uncorrected.aggregate.sram.l2 ecc.errors.uncorrected.aggregate.sram.sm ecc.errors.uncorrected.aggregate.sram.mcu
ecc.errors.uncorrected.aggregate.sram.pcie ecc.errors.uncorrected.aggregate.sram.other retired_pages.single_bit_ecc.count
retired_pages.double_bit.count retired_pages.pending remapped_rows.correctable remapped_rows.correctable_inactive
remapped_rows.uncorrectable remapped_rows.uncorrectable_inactive remapped_rows.pending remapped_rows.failure
remapped_rows.histogram.max remapped_rows.histogram.high remapped_rows.histogram.partial remapped_rows.histogram.low
remapped_rows.histogram.none temperature.gpu temperature.gpu.tlimit temperature.memory power.management power.draw power.draw.average
power.draw.instant power.limit enforced.power.limit power.default_limit power.min_limit power.max_limit module.power.draw.average
module.power.draw.instant module.power.limit module.enforced.power.limit module.power.default_limit module.power.min_limit
module.power.max_limit power_smoothing.delayed_power_smoothing_supported power_smoothing.primary_power_floor
power_smoothing.secondary_power_floor power_smoothing.min_primary_floor_activation_offset
power_smoothing.min_primary_floor_activation_point power_smoothing.window_multiplier
power_smoothing.curr_profile.secondary_power_floor power_smoothing.curr_profile.primary_floor_act_window_multiplier
power_smoothing.curr_profile.primary_floor_tar_window_multiplier power_smoothing.curr_profile.primary_floor_act_offset
power_smoothing.admin_override.secondary_power_floor power_smoothing.admin_override.primary_floor_act_window_multiplier
power_smoothing.admin_override.primary_floor_tar_window_multiplier power_smoothing.admin_override.primary_floor_act_offset
clocks.current.graphics clocks.current.sm clocks.current.memory clocks.current.video clocks.applications.graphics
clocks.applications.memory clocks.default_applications.graphics clocks.default_applications.memory clocks.max.graphics clocks.max.sm
clocks.max.memory mig.mode.current mig.mode.pending gsp.mode.current gsp.mode.default c2c.mode protected_memory.total
protected_memory.used protected_memory.free fabric.state fabric.status fabric.cliqueId fabric.clusterUuid fabric.health.summary
fabric.health.bandwidth fabric.health.route_recovery_in_progress fabric.health.route_unhealthy fabric.health.access_timeout_recovery
fabric.health.incorrect_configuration fabric.health.partition_assigned platform.chassis_serial_number platform.slot_number
platform.tray_index platform.host_id platform.peer_type platform.module_id platform.gpu_fabric_guid hostname
"""
_NAMES = (
    *_BEFORE_ECC_ERRORS.split(),
    *(
        f"ecc.errors.{word}.{life}.{place}"
        for word in ("corrected", "uncorrected")
        for life in ("volatile", "aggregate")
        for place in _ECC_PLACES
    ),
    *_AFTER_ECC_ERRORS.split(),
)
# How values are written: by the unit of the metric; then fields that are written otherwise, without a unit.
_UNITS: dict[Unit, tuple[Callable[[Any], str], str]] = {
    BYTES: (forms.mib, "MiB"), WATT: (forms.watts, "W"), PERCENT: (forms.whole, "%"), MEGAHERTZ: (forms.whole, "MHz"),
    SECOND: (forms.microseconds, "us"),
}  # fmt: skip
_TRUTHS = ("route_recovery_in_progress", "route_unhealthy", "access_timeout_recovery", "partition_assigned")
_FORMS: dict[str, Callable[[Any], str]] = {
    "pci.domain": forms.hexadecimal(4),
    **dict.fromkeys(("pci.bus", "pci.device"), forms.hexadecimal(2)),
    **dict.fromkeys(("pci.baseClass", "pci.subClass"), forms.hexadecimal(1)),
    **dict.fromkeys(("pci.device_id", "pci.sub_device_id"), forms.hexadecimal(8)),
    "display_attached": forms.yes,
    "addressing_mode": forms.addressing_mode,
    **dict.fromkeys(("driver_model.current", "driver_model.pending"), str.upper),
    "inforom.checksum_validation": forms.validity,
    "gpu_recovery_action": forms.recovery,
    **dict.fromkeys(("gom.current", "gom.pending", "fabric.state", "fabric.health.summary"), forms.titled),
    "pstate": forms.pstate,
    "compute_mode": forms.compute_mode,
    "encoder.stats.averageLatency": forms.microseconds,
    "ecc.errors.uncorrected.aggregate.sram.thresholdExceeded": forms.yes,
    **dict.fromkeys(("retired_pages.pending", "remapped_rows.pending", "remapped_rows.failure"), forms.yes),
    **dict.fromkeys((f"fabric.health.{name}" for name in _TRUTHS), forms.truth),
    "fabric.status": forms.status,
    "fabric.health.bandwidth": forms.bandwidth,
    "fabric.health.incorrect_configuration": forms.misconfiguration,
    "platform.peer_type": forms.peer,
}
_WITHOUT_VALUE = {"display_mode": "[Requested functionality has been deprecated]"}
_WITHOUT_VALUE_UNITS = {"_floor": "W", "_offset": "W", "_point": "W", "power_smoothing.window_multiplier": "ms"}


def _form(metric: Metric) -> tuple[Callable[[Any], str], str]:
    if isinstance(metric, Flag):
        return forms.enabled, ""
    if isinstance(metric, (Words, Text)):
        return (forms.mask if isinstance(metric, Words) else str), ""
    return _UNITS.get(metric.unit, (forms.whole, ""))


def _gpu_field(name: str, metrics: Mapping[str, Metric]) -> Field:
    if name == "timestamp":
        return SnapshotField(name, "", forms.time_stamp)
    group, _, word = name.partition(".")
    metric = metrics.get(name)
    if metric is None and group == "clocks_event_reasons":
        return Field(name, "throttle_reasons", forms.reason(word), aliases=(f"clocks_throttle_reasons.{word}",))
    if metric is None:
        unit = next((unit for end, unit in _WITHOUT_VALUE_UNITS.items() if name.endswith(end)), "")
        return Field(name, "", unit=unit, missing=_WITHOUT_VALUE.get(name, NOT_AVAILABLE))
    aliases = tuple(alias for alias in metric.smi[1:] if alias not in _NAMES) if name == metric.smi[0] else ()
    if name == "count":
        return CountField(name, metric.key, aliases=aliases)
    form, unit = (_FORMS[name], "") if name in _FORMS else _form(metric)
    instead = "power_limit" if name == "power.limit" else ""
    missing = "N/A" if group == "fabric" else NOT_AVAILABLE
    return Field(name, metric.key, form, unit, aliases=aliases, missing=missing, instead=instead)


def _gpu_fields() -> dict[str, Field]:
    metrics = {name: metric for metric in GPU_METRICS.values() for name in metric.smi}
    names = dict.fromkeys((*_NAMES, *(metric.smi[0] for metric in GPU_METRICS.values() if metric.smi)))
    return {name: _gpu_field(name, metrics) for name in names}


FIELDS = _gpu_fields()


# The fields that every query with several lines per GPU begins with.
GPU_COLUMNS: tuple[Field, ...] = (
    SnapshotField("timestamp", "", forms.time_stamp),
    Field("gpu_name", "name"),
    Field("gpu_bus_id", "pci_bus_id"),
    Field("gpu_serial", "serial"),
    Field("gpu_uuid", "uuid"),
)
COMPUTE_APP_FIELDS = {
    field.name: field
    for field in (
        *GPU_COLUMNS,
        ProcessField("pid", "pid", forms.whole),
        ProcessField(
            "process_name", "command", forms.program, aliases=("name",), missing="[Not Found]", instead="name"
        ),
        ProcessField("used_gpu_memory", "memory_used", forms.mib, "MiB", aliases=("used_memory",)),
    )
}


def by_every_name(fields: Iterable[Field]) -> dict[str, Field]:
    """Return fields by every name nvidia-smi takes for them, in lower case."""
    return {name.lower(): field for field in fields for name in (field.name, *field.aliases)}


_FIELD_NAMES = by_every_name(FIELDS.values())
_APP_FIELD_NAMES = by_every_name(COMPUTE_APP_FIELDS.values())


def query_fields(query: str) -> dict[str, Field]:
    """Return the fields of one of nvidia-smi's queries, by every name it takes for them."""
    if query in ("--query-gpu", "--query-compute-apps"):
        return _FIELD_NAMES if query == "--query-gpu" else _APP_FIELD_NAMES
    from .scroll import LISTS

    return by_every_name((*GPU_COLUMNS, *LISTS[query].fields))


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
