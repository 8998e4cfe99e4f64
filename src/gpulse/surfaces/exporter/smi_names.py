"""nvidia_gpu_exporter's names, so that dashboards made for it work unchanged: nvidia_smi_memory_used_bytes."""

from __future__ import annotations

from ...model.catalog import GPU_METRICS, Gpu
from ...model.metric import Flag, Number
from ...model.select import Wanted
from ...present.exposition import DOWN, Family, labels
from ...units import BYTES, MEGAHERTZ, PERCENT, SECOND, WATT, Unit
from .dcgm import reason_masks

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

    from ...model.metric import Metric
    from ...model.snapshot import Snapshot

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
