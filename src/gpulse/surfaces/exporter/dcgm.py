"""DCGM's names, units and labels, so that dashboards and alerts made for dcgm-exporter work unchanged."""

from __future__ import annotations

import os

from ...model.catalog import GPU_METRICS
from ...model.metric import Flag, Number
from ...model.select import Wanted
from ...present.exposition import DOWN, Family, labels
from ...units import BYTES, JOULE, PERCENT
from .counters import owners

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

    from ...model.catalog import Gpu
    from ...model.metric import Metric
    from ...model.snapshot import Snapshot
    from .counters import Counters

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
}
_APART = {"remapped_rows", "xid_last", "throttle_reasons"}
FIELDS = {
    key: _ALSO.get(key, metric.dcgm)
    for key, metric in GPU_METRICS.items()
    if key not in _APART and (key in _ALSO or metric.dcgm) and isinstance(metric, (Number, Flag))
}
# Nanoseconds, as NVML counts them; by the throttle reasons that make up each.
_VIOLATIONS = {
    "DCGM_FI_DEV_POWER_VIOLATION": ("sw_power_cap", "hw_power_brake_slowdown"),
    "DCGM_FI_DEV_THERMAL_VIOLATION": ("sw_thermal_slowdown", "hw_thermal_slowdown"),
    "DCGM_FI_DEV_SYNC_BOOST_VIOLATION": ("sync_boost",),
}
DCGM_WANTED = Wanted(
    gpu=(*FIELDS, "xid_last", "throttle_reasons", "name", "uuid", "index", "pci_bus_id", "driver_version"),
    host=("name",),
)


def dcgm_families(snapshot: Snapshot, counters: Counters) -> Iterator[Family]:
    """Yield the fields that dcgm-exporter exports by default or on request, as far as gpulse knows them."""
    told = [
        (name, gpu, _labels(gpu, whole, snapshot))
        for name, gpu, whole in owners(snapshot)
        if (whole or gpu).state not in DOWN
    ]
    there = list({text: (name, gpu, text) for name, gpu, text in told}.values())
    gpus = [(gpu, text) for _, gpu, text in there]
    for key, field in FIELDS.items():
        metric = GPU_METRICS[key]
        yield Family(field, "counter" if metric.kind == "counter" else "gauge", metric.help, _samples(metric, gpus))
    xids = [(text, _xid(gpu)) for gpu, text in gpus]
    help = "Code of the last XID error; 0 if there was none while gpulse was running."
    yield Family("DCGM_FI_DEV_XID_ERRORS", "gauge", help, [(text, code) for text, code in xids if code is not None])
    yield _reasons(gpus)
    for field, reasons in _VIOLATIONS.items():
        seconds = [(text, counters.throttled.get(name), gpu) for name, gpu, text in there]
        samples = [
            (text, round(1e9 * sum(sums.get(reason, 0.0) for reason in reasons)))
            for text, sums, gpu in seconds
            if sums is not None and gpu.throttle_reasons is not None
        ]
        yield Family(field, "counter", "Time throttled for this reason, in nanoseconds.", samples)


def _samples(metric: Metric, gpus: list[tuple[Gpu, str]]) -> list[tuple[str, float]]:
    """Return the values in the units of DCGM: MiB, mJ, and percentages as 0 to 100, except profiling metrics, which are 0 to 1."""
    key, scale = metric.key, 1.0
    if metric.unit is BYTES:
        scale = 1 / (1 << 20)
    elif metric.unit is JOULE:
        scale = 1000.0
    elif metric.unit is PERCENT and metric.dcgm.startswith("DCGM_FI_PROF_"):
        scale = 0.01
    told = [(text, gpu.get(key)) for gpu, text in gpus]
    whole = metric.unit in (BYTES, JOULE)
    return [
        (text, round(value * scale) if whole else value * scale)
        for text, value in told
        if isinstance(value, (int, float))
    ]


def _xid(gpu: Gpu) -> float | None:
    return 0.0 if gpu.gap("xid_last") == "pending" else gpu.xid_last


def _reasons(gpus: list[tuple[Gpu, str]]) -> Family:
    from ...sources.nvidia.readers import THROTTLE_WORDS

    bits = {word: bit for bit, word in THROTTLE_WORDS.items()}
    samples = [
        (text, float(sum(bits.get(word, 0) for word in words)))
        for words, text in ((gpu.throttle_reasons, text) for gpu, text in gpus)
        if words is not None
    ]
    field, help = GPU_METRICS["throttle_reasons"].dcgm, "Throttle reasons as a bit mask."
    return Family(field, "gauge", help, samples)


def _labels(gpu: Gpu, whole: Gpu | None, snapshot: Snapshot) -> str:
    card = whole or gpu
    number = None if card.index is None else f"{card.index:.0f}"
    host = snapshot.host.name or os.uname().nodename
    instance: list[tuple[str, str | None]] = []
    if whole is not None:
        place = None if gpu.gpu_instance is None else f"{gpu.gpu_instance:.0f}"
        instance = [("GPU_I_PROFILE", (gpu.name or "").removeprefix("MIG ")), ("GPU_I_ID", place)]
    return labels(
        [
            ("gpu", number),
            ("UUID", card.uuid),
            ("pci_bus_id", card.pci_bus_id),
            ("device", None if number is None else f"nvidia{number}"),
            ("modelName", card.name),
            *instance,
            *(("Hostname", host), ("hostname", host)),  # renamed in 2026: dashboards use either name
            ("DCGM_FI_DRIVER_VERSION", card.driver_version or snapshot.driver.get("version")),
        ]
    )
