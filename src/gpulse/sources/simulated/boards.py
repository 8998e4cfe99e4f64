"""The boards of the simulated machines: which product each GPU is, and what its vendor's driver can tell."""

from __future__ import annotations

from ... import value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from ...model.metric import Value

_GIB = 1 << 30
_NVIDIA_ONLY = frozenset({
    *("sm_active", "sm_occupancy", "tensor_active", "fp64_active", "fp32_active", "fp16_active", "integer_active", "graphics_active"),
    *("pstate", "nvlink_rx", "nvlink_tx", "encoder_utilization", "decoder_utilization", "ofa_utilization", "memory_reserved"),
    *("compute_mode", "persistence_mode", "mig_mode", "remapped_rows", "pcie_rx", "pcie_tx", "xid_last"),
    *("power_trace", "utilization_trace"),
})  # fmt: skip
_DATACENTER_ONLY = frozenset({"dram_active", "ecc_corrected", "ecc_uncorrected", "jpeg_utilization", "energy"})


class Board(value.Value):
    """One product. `watts` scales power and `memory` the memory of the scenes, which are written for an H100."""

    identity: dict[str, Value]
    constants: dict[str, Value]
    absent: frozenset[str]
    watts: float = 1.0
    memory: float = 1.0

    def adapt(self, values: dict[str, Value]) -> None:
        """Turn the readings of an H100 into those of this board."""
        for key in ("power_draw", "energy"):
            if isinstance(reading := values.get(key), (int, float)):
                values[key] = round(reading * self.watts, 3)
        for key in ("memory_used", "bar1_used"):
            if isinstance(reading := values.get(key), (int, float)):
                values[key] = int(reading * self.memory)
        used, total = values.get("memory_used"), self.constants.get("memory_total")
        if "memory_free" in values and isinstance(used, int) and isinstance(total, int):
            values["memory_free"] = total - used
        degrees = values.get("temperature")
        if isinstance(degrees, (int, float)):
            values["hotspot_temperature"] = degrees + 9
        for key in self.absent:
            values.pop(key, None)


def _board(
    vendor: str, name: str, architecture: str, gibibytes: int, limit: float, absent: frozenset[str], watts: float, memory: float,
    *, ordinal: int = 0, **constants: Value,
) -> Board:  # fmt: skip
    """Return a board; what is not given is as on all of them."""
    total = gibibytes * _GIB
    identity: dict[str, Value] = {"vendor": vendor, "name": name, "architecture": architecture, "ordinal": ordinal}
    shared: dict[str, Value] = {"memory_total": total, "power_limit": limit, "power_default_limit": limit}
    shared |= {"bar1_total": total, "temperature_limit": 100, "video_utilization": 0}
    return Board({**identity, "driver_version": "6.14.0"}, {**shared, **constants}, absent, watts, memory)


MIXED: tuple[Board | None, ...] = (
    None,  # the H100 the scenes are written for
    _board(
        "amd", "AMD Instinct MI300X", "CDNA 3 (gfx942)", 192, 750.0, _NVIDIA_ONLY, 1.07, 2.2,
        clock_memory=1300, clock_memory_max=1300, clock_sm_max=2100, partition_mode="SPX/NPS1",
    ),
    _board(
        "amd", "AMD Radeon RX 7900 XTX", "RDNA 3 (gfx1100)", 24, 339.0, _NVIDIA_ONLY | _DATACENTER_ONLY, 0.48, 0.28, ordinal=1,
        clock_memory=1249, clock_memory_max=1249, clock_sm_max=2990, fan_speed=41.2, fan_rpm=1380, pcie_gen=4, pcie_gen_max=4,
    ),
    _board(
        "intel", "Intel Arc B580", "Xe2-HPG", 12, 190.0,
        _NVIDIA_ONLY | _DATACENTER_ONLY
        | {"memory_utilization", "hotspot_temperature", "clock_memory", "clock_memory_max", "video_utilization"},
        0.27, 0.12, clock_sm_max=2850, fan_speed=57.2, fan_rpm=1235, pcie_gen=4, pcie_width=8, pcie_gen_max=4, pcie_width_max=8,
    ),
)  # fmt: skip
