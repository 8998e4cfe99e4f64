"""The names of other exporters: dcgm-exporter's fields and labels, and those of nvidia_gpu_exporter (nvidia_smi_*)."""

from __future__ import annotations

import os

from ...model.catalog import DOWN, GPU_METRICS, THROTTLE_BITS, Gpu
from ...model.metric import Flag, Number
from ...model.select import Wanted
from ...present.exposition import Family, labels
from ...units import BYTES, JOULE, MEGAHERTZ, PERCENT, SECOND, WATT, Unit
from ...value import Value
from .families import owners
from .tenants import tenant_labels

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from ...model.metric import Metric
    from ...model.snapshot import Snapshot
    from .families import Counters, Owners


# Keys whose catalog line has another DCGM field, or none because only this module exports them.
_ALSO = {
    "remapped_rows_corrected": "DCGM_FI_DEV_CORRECTABLE_REMAPPED_ROWS",
    "remapped_rows_uncorrected": "DCGM_FI_DEV_UNCORRECTABLE_REMAPPED_ROWS",
    "remapped_rows_failed": "DCGM_FI_DEV_ROW_REMAP_FAILURE",
    "ecc_corrected_aggregate": "DCGM_FI_DEV_ECC_SBE_AGG_TOTAL",
    "ecc_uncorrected_aggregate": "DCGM_FI_DEV_ECC_DBE_AGG_TOTAL",
    "retired_pages_corrected": "DCGM_FI_DEV_RETIRED_SBE",
    "retired_pages_uncorrected": "DCGM_FI_DEV_RETIRED_DBE",
    "retired_pages_pending": "DCGM_FI_DEV_RETIRED_PENDING",
    "remapped_rows_pending": "DCGM_FI_DEV_ROW_REMAP_PENDING",
    "power_limit_requested": "DCGM_FI_DEV_POWER_MGMT_LIMIT",
}
_APART = {"remapped_rows", "xid_last", "throttle_reasons"}
FIELDS = {
    key: _ALSO.get(key, metric.dcgm)
    for key, metric in GPU_METRICS.items()
    if key not in _APART and (key in _ALSO or metric.dcgm) and isinstance(metric, (Number, Flag))
}
# Nanoseconds: the driver's counters that make up each, and the throttle reasons whose time is summed without them.
_VIOLATIONS = {
    "DCGM_FI_DEV_POWER_VIOLATION": (("throttle_time_power_cap",), ("sw_power_cap", "hw_power_brake_slowdown")),
    "DCGM_FI_DEV_THERMAL_VIOLATION": (
        ("throttle_time_thermal", "throttle_time_thermal_hardware"),
        ("sw_thermal_slowdown", "hw_thermal_slowdown"),
    ),
    "DCGM_FI_DEV_SYNC_BOOST_VIOLATION": (("throttle_time_sync_boost",), ("sync_boost",)),
}
# Totals that grow, by the rates they add up and the bytes of DCGM's unit.
_TOTALS: dict[str, tuple[tuple[str, ...], int, str]] = {
    "DCGM_FI_DEV_PCIE_TX_THROUGHPUT": (("pcie_tx",), 1000, "Data sent over PCIe, in KB."),
    "DCGM_FI_DEV_PCIE_RX_THROUGHPUT": (("pcie_rx",), 1000, "Data received over PCIe, in KB."),
    "DCGM_FI_DEV_NVLINK_BANDWIDTH_TOTAL": (("nvlink_rx", "nvlink_tx"), 10**6, "Data moved over all NVLinks, in MB."),
}
_REASON_FIELDS = ("DCGM_FI_DEV_CLOCK_THROTTLE_REASONS", "DCGM_FI_DEV_CLOCKS_EVENT_REASONS")
HEALTH = ("recovery_action", "remapped_rows_failed", "remapped_rows_pending", "retired_pages_pending")
DCGM_WANTED = Wanted(
    gpu=(
        *FIELDS,
        *(key for keys, *_ in _TOTALS.values() for key in keys),
        *(key for keys, _ in _VIOLATIONS.values() for key in keys),
        *HEALTH,
        *("xid_last", "xids", "throttle_reasons", "virtualization_mode"),
        *("name", "uuid", "index", "pci_bus_id", "driver_version"),
    ),
    process=("pid", "container", "pod", "memory_used"),
    host=("name",),
)


class _Card(Value):
    """A GPU or MIG instance: the name its counters have, itself, the GPU it is part of, and its labels."""

    name: str
    gpu: Gpu
    whole: Gpu | None
    text: str


def dcgm_families(snapshot: Snapshot, counters: Counters, owned: Owners) -> Iterator[Family]:
    """Yield the fields that dcgm-exporter has by default, and those it has on request, as far as gpulse knows them.

    `owned` says which pod was given which GPU; without a kubelet the processes' own cgroups do.
    """
    known = (_Card(name, gpu, whole, _labels(gpu, whole, snapshot, owned)) for name, gpu, whole in owners(snapshot))
    cards = list({card.text: card for card in known}.values())
    there = [card for card in cards if (card.whole or card.gpu).state not in DOWN]
    for key, field in FIELDS.items():
        metric = GPU_METRICS[key]
        told = [(card.gpu, card.text) for card in _without_sums(there, key)]
        yield Family(field, "counter" if metric.kind == "counter" else "gauge", metric.help, _samples(metric, told))
    yield from _xids(cards, counters)
    whole = [card for card in there if card.whole is None]
    masks = reason_masks([(card.gpu, card.text) for card in whole])
    yield from (Family(field, "gauge", "Throttle reasons as a bit mask.", masks) for field in _REASON_FIELDS)
    yield from _grown(whole, counters)
    licenses = ((card.text, 0.0) for card in whole if card.gpu.virtualization_mode not in (None, "vgpu"))
    help = "Whether a vGPU has its license; 0 on what is none."
    yield Family("DCGM_FI_DEV_VGPU_LICENSE_STATUS", "gauge", help, licenses)
    well = ((card.text, health(card.gpu)) for card in cards if card.whole is None)
    yield Family("DCGM_EXP_GPU_HEALTH_STATUS", "gauge", "0 healthy, 10 warning, 20 failed.", well)


def _without_sums(cards: list[_Card], key: str) -> list[_Card]:
    """Return who says a metric: a divided GPU only where its instances do not, or a sum would count it twice."""
    said = {id(card.whole) for card in cards if card.whole is not None and card.gpu.get(key) is not None}
    return [card for card in cards if id(card.gpu) not in said]


def _xids(cards: list[_Card], counters: Counters) -> Iterator[Family]:
    """Yield the last code of each GPU, also of one that fell off the bus, and how often each code was seen."""
    last, seen = [], []
    for card in cards:
        if card.whole is None:
            code = counters.last_xid(card.name)
            if code is None and card.gpu.gap("xid_last") in ("pending", "lost"):
                code = 0.0
            last += [(card.text, code)] if code is not None else []
            for number, count in counters.xids.get(card.name, {}).items():
                seen.append((f'{card.text[:-1]},xid="{number}"}}', float(count)))
    help = "Code of the last XID error; 0 if there was none while gpulse was running."
    yield Family("DCGM_FI_DEV_XID_ERRORS", "gauge", help, last)
    yield Family("DCGM_EXP_XID_ERRORS_COUNT", "gauge", "XID errors seen while gpulse watched, by code.", seen)


def _grown(cards: list[_Card], counters: Counters) -> Iterator[Family]:
    for field, (keys, unit, help) in _TOTALS.items():
        yield Family(field, "counter", help, _moved(cards, keys, unit, counters))
    for field, (keys, reasons) in _VIOLATIONS.items():
        help = "Time throttled for this reason, in nanoseconds."
        yield Family(field, "counter", help, _slowed(cards, keys, reasons, counters))
    begun = (
        (f'{card.text[:-1]},clock_event="{reason}"}}', float(count))
        for card in cards
        for reason, count in counters.throttlings.get(card.name, {}).items()
    )
    yield Family("DCGM_EXP_CLOCK_EVENTS_COUNT", "gauge", "How often clocks were lowered, by reason.", begun)


def _moved(cards: list[_Card], keys: Sequence[str], unit: int, counters: Counters) -> Iterator[tuple[str, float]]:
    for card in cards:
        totals = [counters.moved(card.name, card.gpu, key) for key in keys]
        if None not in totals:
            yield card.text, float(sum(total or 0 for total in totals) // unit)


def _slowed(
    cards: list[_Card], keys: Sequence[str], reasons: Sequence[str], counters: Counters
) -> Iterator[tuple[str, float]]:
    for card in cards:
        seconds = _violation(card.gpu, keys, reasons, counters.throttled.get(card.name))
        if seconds is not None:
            yield card.text, round(1e9 * seconds)


def _violation(gpu: Gpu, keys: Sequence[str], reasons: Sequence[str], sums: Mapping[str, float] | None) -> float | None:
    """Return the seconds that the driver counted; without its counters, those in which samples showed a reason."""
    counted = [value for key in keys if isinstance(value := gpu.get(key), (int, float))]
    if counted:
        return sum(counted)
    if sums is None or gpu.throttle_reasons is None:
        return None
    return sum(sums.get(reason, 0.0) for reason in reasons)


def health(gpu: Gpu) -> float:
    """Return 0 for a healthy GPU, 10 for one that needs a reset, 20 for one that failed, as DCGM does."""
    if gpu.state in DOWN or gpu.get("remapped_rows_failed"):
        return 20.0
    needed = gpu.recovery_action not in (None, "none") or gpu.get("remapped_rows_pending")
    return 10.0 if needed or gpu.get("retired_pages_pending") else 0.0


def _samples(metric: Metric, gpus: list[tuple[Gpu, str]]) -> Iterator[tuple[str, float]]:
    """Yield the values in the units of DCGM: MiB, mJ, and percentages as 0 to 100, except profiling metrics, which are 0 to 1."""
    key, scale = metric.key, 1.0
    if metric.unit is BYTES:
        scale = 1 / (1 << 20)
    elif metric.unit is JOULE:
        scale = 1000.0
    elif metric.unit is PERCENT and metric.dcgm.startswith("DCGM_FI_PROF_"):
        scale = 0.01
    whole = metric.unit in (BYTES, JOULE)
    for gpu, text in gpus:
        if isinstance(value := gpu.get(key), (int, float)):
            yield text, round(value * scale) if whole else value * scale


def reason_masks(gpus: list[tuple[Gpu, str]], key: str = "throttle_reasons") -> list[tuple[str, float]]:
    """Return the throttle reasons at a key of each GPU as NVML's bit mask."""
    return [
        (text, float(sum(THROTTLE_BITS.get(str(word), 0) for word in words)))
        for gpu, text in gpus
        if isinstance(words := gpu.get(key), tuple)
    ]


def _labels(gpu: Gpu, whole: Gpu | None, snapshot: Snapshot, owned: Owners) -> str:
    card = whole or gpu
    number = None if card.index is None else f"{card.index:.0f}"
    host = snapshot.host.name or os.uname().nodename
    instance: list[tuple[str, str | None]] = []
    if whole is not None:
        place = None if gpu.gpu_instance is None else f"{gpu.gpu_instance:.0f}"
        instance = [("GPU_I_PROFILE", (gpu.name or "").removeprefix("MIG ")), ("GPU_I_ID", place)]
    device = None if number is None else f"nvidia{number}"
    driver = card.driver_version or snapshot.driver.get("version")
    pairs = [
        *(("gpu", number), ("UUID", card.uuid), ("pci_bus_id", card.pci_bus_id)),
        *(("device", device), ("modelName", card.name)),
        *instance,
        *(("Hostname", host), ("hostname", host)),  # renamed in 2026: dashboards use either name
        ("DCGM_FI_DRIVER_VERSION", driver),
    ]
    return labels([*pairs, *tenant_labels(gpu, whole, owned.tenants), *_owner(gpu, whole, owned)])


def _owner(gpu: Gpu, whole: Gpu | None, owned: Owners) -> list[tuple[str, str | None]]:
    """Return the user, and the job under the name that dcgm-exporter has for it, if GPUs are to have the labels of their owners."""
    if not owned.labelled:
        return []
    told = dict(owned.of_gpu(gpu, gpu.processes if whole is not None else gpu.all_processes()))
    return [("user", told.get("user")), ("hpc_job", told.get("job_id"))]


_SUFFIXES: dict[Unit, tuple[str, float]] = {
    BYTES: ("_bytes", 1.0),
    MEGAHERTZ: ("_clock_hz", 1e6),
    PERCENT: ("_ratio", 0.01),
    SECOND: ("_seconds", 1.0),
    WATT: ("_watts", 1.0),
}
_REASONS = (
    "gpu_idle", "applications_clocks_setting", "sw_power_cap", "hw_slowdown", "hw_thermal_slowdown",
    "hw_power_brake_slowdown", "sw_thermal_slowdown", "sync_boost",
)  # fmt: skip
_COMPUTE_MODES = {"default": 0.0, "exclusive_thread": 1.0, "prohibited": 2.0, "exclusive_process": 3.0}
_INFO = ("driver_model", "driver_model_pending", "vbios", "driver_version")
_INFO_LABELS = ("driver_model_current", "driver_model_pending", "vbios_version", "driver_version")


def smi_name(metric: Metric) -> tuple[str, float]:
    """Return the name of a metric's series there and what takes its value to the unit of that name."""
    suffix, scale = _SUFFIXES.get(metric.unit, ("", 1.0))
    words = "".join(f"_{letter.lower()}" if letter.isupper() else letter for letter in metric.smi[0])
    return f"nvidia_smi_{words.replace('.', '_').replace('__', '_')}{suffix}", scale


# The pieces of a PCI address are numbers in hex there, which nobody draws.
SMI_SERIES = tuple(
    metric
    for metric in GPU_METRICS.values()
    if metric.smi and isinstance(metric, (Number, Flag)) and not metric.key.startswith("pci_")
)
SMI_WANTED = Wanted(
    gpu=(
        *(metric.key for metric in SMI_SERIES),
        *("index", "uuid", "name", "compute_mode", "throttle_reasons", "throttle_reasons_supported"),
        *_INFO,
    )
)


def smi_families(snapshot: Snapshot) -> Iterator[Family]:
    """Yield one family per field of --query-gpu that is a number or a switch, and what never changes of a GPU."""
    gpus = [(gpu, labels([("uuid", _uuid(gpu))])) for gpu in snapshot.gpus if gpu.state not in DOWN]
    info = [
        (labels([("uuid", _uuid(gpu)), ("name", gpu.name), *zip(_INFO_LABELS, map(gpu.get, _INFO), strict=True)]), 1.0)
        for gpu, _ in gpus
    ]
    yield Family("nvidia_smi_gpu_info", "gauge", "What never changes of a GPU.", info)
    yield Family("nvidia_smi_command_exit_code", "gauge", "0 while samples can be taken.", [("", 0.0)])
    yield Family("nvidia_smi_failed_scrapes_total", "counter", "Scrapes without an answer.", [("", 0.0)])
    yield from (_of_metric(metric, gpus) for metric in SMI_SERIES)
    modes = ((text, _COMPUTE_MODES.get(gpu.compute_mode or "")) for gpu, text in gpus)
    known = ((text, mode) for text, mode in modes if mode is not None)
    yield Family("nvidia_smi_compute_mode", "gauge", GPU_METRICS["compute_mode"].help, known)
    yield from _reasons(gpus)


def _of_metric(metric: Metric, gpus: list[tuple[Gpu, str]]) -> Family:
    name, scale = smi_name(metric)
    told = ((text, gpu.get(metric.key)) for gpu, text in gpus)
    samples = ((text, value * scale) for text, value in told if isinstance(value, (int, float)))
    return Family(name, "gauge", metric.help, samples)


def _reasons(gpus: list[tuple[Gpu, str]]) -> Iterator[Family]:
    """Yield each reason under the new and the old name of the field, and all of them as a bit mask."""
    for prefix in ("nvidia_smi_clocks_event_reasons", "nvidia_smi_clocks_throttle_reasons"):
        for field, key in (("active", "throttle_reasons"), ("supported", "throttle_reasons_supported")):
            yield Family(f"{prefix}_{field}", "gauge", GPU_METRICS[key].help, reason_masks(gpus, key))
        for reason in _REASONS:
            told = ((text, gpu.throttle_reasons) for gpu, text in gpus)
            samples = [(text, float(reason in words)) for text, words in told if words is not None]
            yield Family(f"{prefix}_{reason}", "gauge", "Whether this lowers the clocks.", samples)


def _uuid(gpu: Gpu) -> str:
    return (gpu.uuid or "").removeprefix("GPU-").lower()
