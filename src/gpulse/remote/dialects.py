"""The series of exporters that Prometheus may hold: which catalog key each is, and what takes its value to the stored unit."""

from __future__ import annotations

import re

from ..model.catalog import GPU_METRICS
from ..present.exposition import series_name

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

_MIB = float(1 << 20)
KEYS = ("utilization", "sm_active", "memory_used", "memory_total", "memory_free", "power_draw", "temperature")

# gpulse's own series.
_GPULSE = {series_name(GPU_METRICS[key], "gpu"): (key, 1 / GPU_METRICS[key].unit.base) for key in KEYS}
_DCGM = {
    "DCGM_FI_DEV_GPU_UTIL": ("utilization", 1.0),
    "DCGM_FI_PROF_SM_ACTIVE": ("sm_active", 100.0),
    "DCGM_FI_DEV_FB_USED": ("memory_used", _MIB),
    "DCGM_FI_DEV_FB_TOTAL": ("memory_total", _MIB),
    "DCGM_FI_DEV_FB_FREE": ("memory_free", _MIB),
    "DCGM_FI_DEV_POWER_USAGE": ("power_draw", 1.0),
    "DCGM_FI_DEV_GPU_TEMP": ("temperature", 1.0),
}
# nvidia_gpu_exporter
_SMI = {
    "nvidia_smi_utilization_gpu_ratio": ("utilization", 100.0),
    "nvidia_smi_memory_used_bytes": ("memory_used", 1.0),
    "nvidia_smi_memory_total_bytes": ("memory_total", 1.0),
    "nvidia_smi_power_draw_watts": ("power_draw", 1.0),
    "nvidia_smi_temperature_gpu": ("temperature", 1.0),
}
# AMD's device-metrics-exporter
_AMD = {
    "gpu_gfx_activity": ("utilization", 1.0),
    "gpu_used_vram": ("memory_used", _MIB),
    "gpu_total_vram": ("memory_total", _MIB),
    "gpu_package_power": ("power_draw", 1.0),
    "gpu_edge_temperature": ("temperature", 1.0),
    "gpu_junction_temperature": ("temperature", 1.0),
}
SERIES: Mapping[str, tuple[str, float]] = {**_AMD, **_SMI, **_DCGM, **_GPULSE}
# Series that only have labels: the identity of a GPU and its owner.
INFO = ("gpulse_gpu_info", "nvidia_smi_gpu_info")
OWNER = "gpulse_gpu_job_info"
# Labels in the order in which they are believed. A DCGM exporter's `instance` is its pod; its Hostname is the machine.
HOST_LABELS = ("Hostname", "hostname", "node", "instance")
UUID_LABELS = ("uuid", "UUID", "gpu_uuid", "serial_number")
INDEX_LABELS = ("gpu", "gpu_id", "index")
NAME_LABELS = ("name", "modelName", "card_model")
# The pod that a GPU was given to. Prometheus renames it if the scraped exporter is a pod itself, whose own name `pod` is then.
POD_LABELS = ("exported_pod", "pod")
_EXPORTERS = ("exporter", "dcgm-exporter", "nvidia-dcgm-exporter", "gpulse")
_PORT = re.compile(r":\d+$")


def matcher(*keys: str) -> str:
    """Return what selects all series of these keys, whoever exported them."""
    names = [name for name, (key, _) in SERIES.items() if key in keys]
    return f'__name__=~"{"|".join(names)}"'


def first_of(labelled: Mapping[str, str], names: Iterable[str]) -> str:
    """Return the first label that has a value, empty if none has."""
    return next((labelled[name] for name in names if labelled.get(name)), "")


def host_of(labelled: Mapping[str, str]) -> str:
    """Return the machine of a series."""
    return _PORT.sub("", first_of(labelled, HOST_LABELS)) or "unknown"


def job_label(labelled: Mapping[str, str]) -> str:
    """Return the job of a series with its scheduler: slurm:42; empty if it has none."""
    return f"{labelled.get('scheduler', '')}:{labelled['job_id']}" if labelled.get("job_id") else ""


def granted(labelled: Mapping[str, str]) -> Mapping[str, str]:
    """Return the pod that Kubernetes has given a GPU to, as the DCGM exporter tells; nothing if it does not."""
    pod = first_of(labelled, POD_LABELS)
    if not pod or ("exported_pod" not in labelled and labelled.get("container") in _EXPORTERS):
        return {}
    space = labelled.get("exported_namespace") or labelled.get("namespace", "")
    return {"pod": f"{space}/{pod}" if space else pod}
