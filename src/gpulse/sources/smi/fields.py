"""Which element of nvidia-smi's XML has which metric: one line each, with the names that schemas v10 to v13 gave it."""

from __future__ import annotations

from .words import gap_of, number, plain, state, switch, text_at, word

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from xml.etree.ElementTree import Element

    from .words import Reading

IDENTITY: dict[str, tuple[str, ...]] = {
    "uuid": ("uuid",),
    "name": ("product_name",),
    "architecture": ("product_architecture",),
    "pci_bus_id": ("pci/pci_bus_id",),
    "serial": ("serial",),
    "vbios": ("vbios_version",),
}
_LINK = "pci/pci_gpu_link_info"
_POWER = ("gpu_power_readings", "power_readings")


def _power(*names: str) -> tuple[str, ...]:
    return tuple(f"{group}/{name}" for group in _POWER for name in names)


FIELDS: dict[str, tuple[Callable[[str], Reading], tuple[str, ...]]] = {
    "utilization": (number, ("utilization/gpu_util",)),
    "memory_utilization": (number, ("utilization/memory_util",)),
    "encoder_utilization": (number, ("utilization/encoder_util",)),
    "decoder_utilization": (number, ("utilization/decoder_util",)),
    "jpeg_utilization": (number, ("utilization/jpeg_util",)),
    "ofa_utilization": (number, ("utilization/ofa_util",)),
    "memory_used": (number, ("fb_memory_usage/used",)),
    "memory_total": (number, ("fb_memory_usage/total",)),
    "memory_free": (number, ("fb_memory_usage/free",)),
    "memory_reserved": (number, ("fb_memory_usage/reserved",)),
    "bar1_used": (number, ("bar1_memory_usage/used",)),
    "bar1_total": (number, ("bar1_memory_usage/total",)),
    "temperature": (number, ("temperature/gpu_temp",)),
    "memory_temperature": (number, ("temperature/memory_temp",)),
    "temperature_limit": (number, ("temperature/gpu_temp_slow_threshold",)),
    "fan_speed": (number, ("fan_speed",)),
    "power_draw": (number, _power("power_draw", "average_power_draw", "instant_power_draw")),
    "power_limit": (number, _power("enforced_power_limit", "current_power_limit", "power_limit")),
    "power_default_limit": (number, _power("default_power_limit")),
    "clock_graphics": (number, ("clocks/graphics_clock",)),
    "clock_sm": (number, ("clocks/sm_clock",)),
    "clock_memory": (number, ("clocks/mem_clock",)),
    "clock_video": (number, ("clocks/video_clock",)),
    "clock_sm_max": (number, ("max_clocks/sm_clock",)),
    "clock_memory_max": (number, ("max_clocks/mem_clock",)),
    "pstate": (state, ("performance_state", *_power("power_state"))),
    "pcie_gen": (number, (f"{_LINK}/pcie_gen/current_link_gen", f"{_LINK}/pcie_gen/device_current_link_gen")),
    "pcie_gen_max": (number, (f"{_LINK}/pcie_gen/max_link_gen",)),
    "pcie_width": (number, (f"{_LINK}/link_widths/current_link_width",)),
    "pcie_width_max": (number, (f"{_LINK}/link_widths/max_link_width",)),
    "pcie_rx": (number, ("pci/rx_util",)),
    "pcie_tx": (number, ("pci/tx_util",)),
    "pcie_replays": (number, ("pci/replay_counter",)),
    "compute_mode": (word, ("compute_mode",)),
    "persistence_mode": (switch, ("persistence_mode",)),
    "mig_mode": (switch, ("mig_mode/current_mig",)),
    "display_active": (switch, ("display_active",)),
    "driver_model": (word, ("driver_model/current_dm",)),
    "addressing_mode": (word, ("addressing_mode",)),
    "board_part_number": (plain, ("board_part_number",)),
    "chip_part_number": (plain, ("gpu_part_number",)),
    "sparse_operation_mode": (switch, ("sparse_operation_mode",)),
}
_REASONS = ("clocks_event_reasons", "clocks_throttle_reasons")
_PREFIXES = ("clocks_event_reason_", "clocks_throttle_reason_")
_OUR_WORDS = {"display_clocks_setting": "display_clock_setting"}
_ERRORS = "ecc_errors/volatile"


def throttle(gpu: Element) -> Reading:
    """Read the reasons that are active; R575 and later also count them in elements of other names, which are skipped."""
    group = next((found for name in _REASONS if (found := gpu.find(name)) is not None), None)
    if group is None or not len(group):
        return None, gap_of("" if group is None else (group.text or "").strip())
    words = []
    for child in group:
        reason = child.tag
        for prefix in _PREFIXES:
            reason = reason.removeprefix(prefix)
        if reason != child.tag and (child.text or "").strip() == "Active":
            words.append(_OUR_WORDS.get(reason, reason))
    return tuple(words), "unsupported"


def memory_errors(gpu: Element, corrected: bool) -> Reading:
    """Add up errors since the driver was loaded: of DRAM and SRAM, or the total that schema v10 has."""
    total = text_at(gpu, (f"{_ERRORS}/{'single_bit' if corrected else 'double_bit'}/total",))
    if total:
        return number(total)
    group = gpu.find(_ERRORS)
    kind = "_correctable" if corrected else "_uncorrectable"
    texts = [(child.text or "").strip() for child in (() if group is None else group) if kind in child.tag]
    counts = [count for text in texts if isinstance(count := number(text)[0], int)]
    return (sum(counts), "unsupported") if counts else (None, gap_of(texts[0] if texts else ""))


def remapped_rows(gpu: Element) -> Reading:
    """Add up rows replaced after corrected and uncorrected errors."""
    texts = [text_at(gpu, (f"remapped_rows/remapped_row_{kind}",)) for kind in ("corr", "unc")]
    counts = [count for text in texts if isinstance(count := number(text)[0], int)]
    return (sum(counts), "unsupported") if len(counts) == 2 else (None, gap_of(texts[0]))


SPECIAL: dict[str, Callable[[Element], Reading]] = {
    "throttle_reasons": throttle,
    "ecc_corrected": lambda gpu: memory_errors(gpu, True),
    "ecc_uncorrected": lambda gpu: memory_errors(gpu, False),
    "remapped_rows": remapped_rows,
}


def identity_of(gpu: Element, index: int) -> dict[str, Reading]:
    """Read who a GPU is."""
    found = {key: plain(text_at(gpu, paths)) for key, paths in IDENTITY.items()}
    if found["pci_bus_id"][0] is None and gpu.get("id"):
        found["pci_bus_id"] = (str(gpu.get("id")), "unsupported")
    found["index"] = (index, "unsupported")
    return found
